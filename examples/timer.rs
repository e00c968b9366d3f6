//! Timers: a task that sleeps for days, uses no memory meanwhile, and keeps its schedule when the server restarts.
//!
//! `cargo run --release -p longhaul --example timer`

use std::time::Duration;

use longhaul::{Ctx, JsonSchema, OnCrash, Server, StoreUrl, Tool};

const A_DAY: Duration = Duration::from_secs(24 * 60 * 60);

#[derive(serde::Deserialize, JsonSchema)]
struct Invoice {
    number: u32,
}

fn remind() -> Tool {
    Tool::new("remind", |mut ctx: Ctx, invoice: Invoice| async move {
        for (name, days) in [("first reminder", 14), ("second reminder", 7), ("last reminder", 7)] {
            ctx.sleep(name, A_DAY * days).await?;
            if ctx.step("look", || is_paid(invoice.number)).await? {
                return Ok(format!("invoice {} is paid", invoice.number));
            }
            ctx.step("write", || write(invoice.number)).await?;
        }
        Ok(format!("invoice {} goes to the lawyers", invoice.number))
    })
    .description("Reminds a customer of an invoice until it is paid.")
    .life_time_max(A_DAY * 60)
    .on_crash(OnCrash::Resume)
}

/// Pretends to look into the books: invoices with even numbers are paid.
async fn is_paid(invoice: u32) -> Result<bool, std::io::Error> {
    tokio::task::yield_now().await;
    Ok(invoice.is_multiple_of(2))
}

/// Pretends to write a letter.
async fn write(_invoice: u32) -> Result<(), std::io::Error> {
    tokio::task::yield_now().await;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let store = "sqlite:invoices.db".parse::<StoreUrl>()?.open().await?;
    let server = Server::new("invoices").tool(remind()).start(store).await?;
    Ok(server.listen("127.0.0.1:8377".parse()?).await?.serve_until(tokio::signal::ctrl_c()).await?)
}

#[tokio::test]
async fn four_weeks_pass_in_no_time() {
    let mut run = longhaul::testing::run(remind(), serde_json::json!({ "number": 7 })).await;
    assert_eq!(run.result().await.text().unwrap(), "invoice 7 goes to the lawyers");
    run.assert_resumable().await;
}
