//! The smallest durable server: one tool, one file.
//!
//! `cargo run --release -p longhaul --example smallest`

use std::time::Duration;

use longhaul::{Ctx, Failure, JsonSchema, OnCrash, Server, StoreUrl, Tool};

#[derive(serde::Deserialize, JsonSchema)]
struct Book {
    /// How many pages to write.
    pages: u32,
}

/// Pretends to write a page.
async fn write(_page: u32) -> Result<(), Failure> {
    tokio::time::sleep(Duration::from_secs(1)).await;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let write_book = Tool::new("write_book", |mut ctx: Ctx, Book { pages }| async move {
        for page in 1..=pages {
            ctx.progress(page, pages, &format!("page {page}")).await?;
            ctx.step("write", || write(page)).await?;
        }
        Ok(format!("{pages} pages written"))
    })
    .description("Writes a book.")
    .on_crash(OnCrash::Resume);

    let store = "sqlite:books.db".parse::<StoreUrl>()?.open().await?;
    let server = Server::new("library").tool(write_book).start(store).await?;
    let listening = server.listen("127.0.0.1:8377".parse()?).await?;
    println!("listening on http://{}/mcp", listening.address());
    Ok(listening.serve_until(tokio::signal::ctrl_c()).await?)
}
