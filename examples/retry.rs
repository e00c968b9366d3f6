//! Retries: a step that fails is tried again, with a growing wait that survives restarts.
//!
//! `cargo run --release -p longhaul --example retry`

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use longhaul::{Ctx, Failure, JsonSchema, OnCrash, Retry, Server, StoreUrl, Tool};

#[derive(serde::Deserialize, JsonSchema)]
struct Page {
    url: String,
}

fn download() -> Tool {
    Tool::new("download", |mut ctx: Ctx, page: Page| async move {
        // Up to five tries, after waits of about 10, 20, 40 and 60 seconds.
        let retry = Retry::times(5).backoff(Duration::from_secs(10));
        let text = ctx.step("fetch", || fetch(&page.url)).retry(retry).await?;
        Ok(text)
    })
    .description("Downloads a page from a server that is sometimes down.")
    .on_crash(OnCrash::Resume)
}

/// Pretends to download something. Two of three tries fail.
async fn fetch(url: &str) -> Result<String, Failure> {
    static TRIES: AtomicU32 = AtomicU32::new(0);
    tokio::task::yield_now().await;
    if !url.starts_with("https://") {
        // Trying this again is of no use.
        return Err(Failure::permanent(format!("{url} is not an https address")));
    }
    match TRIES.fetch_add(1, Ordering::SeqCst) % 3 {
        2 => Ok(format!("the text of {url}")),
        _ => Err(Failure::tool("the server is down")),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let store = "sqlite:pages.db".parse::<StoreUrl>()?.open().await?;
    let server = Server::new("pages").tool(download()).start(store).await?;
    Ok(server.listen("127.0.0.1:8377".parse()?).await?.serve_until(tokio::signal::ctrl_c()).await?)
}

#[tokio::test]
async fn a_download_is_tried_until_it_works() {
    let mut run = longhaul::testing::run(download(), serde_json::json!({ "url": "https://example.com" })).await;
    assert_eq!(run.result().await.text().unwrap(), "the text of https://example.com");
    let tries = [", failed and to be tried again", ", failed and to be tried again", ""];
    assert_eq!(run.entries(), tries.map(|end| format!("step \"fetch\"{end}")));
    run.assert_resumable().await;
}

#[tokio::test]
async fn what_cannot_work_is_tried_once() {
    let mut run = longhaul::testing::run(download(), serde_json::json!({ "url": "ftp://example.com" })).await;
    assert_eq!(run.result().await.error().unwrap(), "ftp://example.com is not an https address");
    assert_eq!(run.entries(), [r#"step "fetch", failed"#]);
}
