//! Errors at the start of a server.

use longhaul::{Ctx, NoArgs, Server, StoreUrl, Tool};

const TOOL: usize = longhaul_wire::tool::TOOL_NAME_BYTES_MAX;

async fn start(tools: impl IntoIterator<Item = Tool>) -> Result<(), longhaul::Error> {
    Server::new("test").tools(tools).start(StoreUrl::Memory.open().await.unwrap()).await.map(drop)
}

#[tokio::test]
async fn a_tool_name_that_is_too_long_or_taken_is_refused() {
    let named = |bytes: usize| Tool::new("x".repeat(bytes), |_: Ctx, _: NoArgs| async move { Ok("done") });
    start([named(TOOL)]).await.unwrap();
    for tools in [vec![named(TOOL + 1)], vec![named(3), named(3)]] {
        let error = start(tools).await.unwrap_err();
        assert_eq!(error.code(), "BAD_TOOL", "{error}");
    }
}
