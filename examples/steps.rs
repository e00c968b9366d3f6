//! Steps: each part of the work is recorded, so that a crash does not repeat it.
//!
//! `cargo run --release -p longhaul --example steps`

use longhaul::{Ctx, JsonSchema, OnCrash, Server, StoreUrl, Tool};

#[derive(serde::Deserialize, JsonSchema)]
struct Order {
    /// What to send.
    article: String,
    /// What it costs, in cents.
    cents: u32,
}

fn order() -> Tool {
    Tool::new("order", |mut ctx: Ctx, order: Order| async move {
        // A crash between the payment and its record repeats the step. The token stays the same, so that the payment
        // service recognises a payment that it has already received.
        let token = ctx.token();
        let payment = ctx.step("pay", || pay(&token, order.cents)).await?;
        let parcel = ctx.step("send", || send(&order.article)).await?;
        Ok(format!("{payment} is paid, and {parcel} is on its way"))
    })
    .description("Orders an article.")
    .on_crash(OnCrash::Resume)
}

/// Pretends to call a payment service.
async fn pay(token: &str, cents: u32) -> Result<String, std::io::Error> {
    tokio::task::yield_now().await;
    assert!(!token.is_empty(), "every operation has a token");
    Ok(format!("{}.{:02} €", cents / 100, cents % 100))
}

/// Pretends to call a warehouse.
async fn send(article: &str) -> Result<String, std::io::Error> {
    tokio::task::yield_now().await;
    Ok(format!("a parcel with {article}"))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let store = "sqlite:orders.db".parse::<StoreUrl>()?.open().await?;
    let server = Server::new("shop").tool(order()).start(store).await?;
    Ok(server.listen("127.0.0.1:8377".parse()?).await?.serve_until(tokio::signal::ctrl_c()).await?)
}

#[tokio::test]
async fn an_order_survives_a_crash_anywhere() {
    let arguments = serde_json::json!({ "article": "a book", "cents": 1_250 });
    let mut run = longhaul::testing::run(order(), arguments).await;
    assert_eq!(run.result().await.text().unwrap(), "12.50 € is paid, and a parcel with a book is on its way");
    run.assert_resumable().await;
}
