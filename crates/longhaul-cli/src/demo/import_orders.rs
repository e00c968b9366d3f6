use std::time::Duration;

use longhaul::{Ctx, Failure, JsonSchema, Tool};
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Import {
    /// The file to import.
    #[serde(default = "file")]
    file: String,
}

fn file() -> String {
    "orders.csv".into()
}

/// Fails, and says why in words that a model can use.
pub(super) fn tool() -> Tool {
    Tool::new("import_orders", import)
        .title("Import orders")
        .description("Imports a (pretended) file of orders, and fails in line 37.")
}

async fn import(mut ctx: Ctx, Import { file }: Import) -> Result<String, Failure> {
    ctx.progress(36, 120, &format!("Reading {file}")).await?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    Err(Failure::tool(format!("{file}, line 37: the quantity is not a number. Nothing was imported.")))
}
