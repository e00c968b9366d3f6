//! Fan-out: a task that splits its work into subtasks, which run at the same time, and joins their results.
//!
//! `cargo run --release -p longhaul --example fan_out`

use longhaul::{Ctx, Failure, JsonSchema, OnCrash, Server, StoreUrl, Subtask, Tool};
use serde::{Deserialize, Serialize};

#[derive(Deserialize, JsonSchema)]
struct Book {
    pages: Vec<String>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Page {
    text: String,
}

fn tools() -> [Tool; 2] {
    [translate_book().on_crash(OnCrash::Resume), translate_page().on_crash(OnCrash::Resume)]
}

/// The results come in the order of the requests. A page that fails does not fail the book.
fn translate_book() -> Tool {
    Tool::new("translate_book", |mut ctx: Ctx, book: Book| async move {
        let pages = book.pages.into_iter().map(|text| Subtask::new("translate_page", Page { text }));
        let mut translated = Vec::new();
        for page in ctx.subtasks("pages", pages).await? {
            translated.push(page.text().unwrap_or_else(|_| "(this page could not be translated)".into()));
        }
        Ok(translated.join("\n"))
    })
    .description("Translates a book, all pages at once.")
}

fn translate_page() -> Tool {
    Tool::new("translate_page", |mut ctx: Ctx, page: Page| async move {
        let text = ctx.step("translate", || translate(&page.text)).await?;
        Ok(text)
    })
    .description("Translates a page.")
}

/// Pretends to be a service that translates.
async fn translate(text: &str) -> Result<String, Failure> {
    tokio::task::yield_now().await;
    if text.is_empty() { Err(Failure::permanent("the page is empty")) } else { Ok(text.to_uppercase()) }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let store = "sqlite:translations.db".parse::<StoreUrl>()?.open().await?;
    let server = Server::new("translations").tools(tools()).start(store).await?;
    Ok(server.listen("127.0.0.1:8377".parse()?).await?.serve_until(tokio::signal::ctrl_c()).await?)
}

#[tokio::test]
async fn a_book_is_translated_in_order_across_crashes() {
    let [book, page] = tools();
    let pages = serde_json::json!({ "pages": ["one", "", "three"] });
    let mut run = longhaul::testing::run(book, pages).tool(page).await;
    assert_eq!(run.result().await.text().unwrap(), "ONE\n(this page could not be translated)\nTHREE");
    run.assert_resumable().await;
}
