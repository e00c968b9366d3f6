//! A server with its own implementation of `Identify`.

use std::collections::HashMap;
use std::sync::Arc;

use longhaul::{Caller, Credentials, Ctx, Identify, NoArgs, NotIdentified, Owner, Server, Tool};
use longhaul_testkit::raw::RawRequest;
use longhaul_testkit::{StatelessClient, TestServer};
use serde_json::json;

/// Identifies callers by a header that a proxy sets.
#[derive(Debug)]
struct ByHeader(HashMap<&'static str, Arc<Caller>>);

impl Identify for ByHeader {
    fn identify(&self, shown: &Credentials<'_>) -> Result<Arc<Caller>, NotIdentified> {
        let name = shown.header("x-user").ok_or(NotIdentified::Missing)?;
        let name = std::str::from_utf8(name).map_err(|_| NotIdentified::Unknown)?;
        self.0.get(name).cloned().ok_or(NotIdentified::Unknown)
    }
}

async fn posted(
    client: &mut StatelessClient,
    user: &str,
    method: &str,
    params: serde_json::Value,
) -> (u16, serde_json::Value) {
    let (message, mut headers) = client.message(method, params);
    headers.push(("x-user".to_owned(), user.to_owned()));
    let answer = client.exchange(message.to_string(), &headers).await.unwrap();
    (answer.status, answer.json())
}

#[tokio::test]
async fn a_custom_identity_names_owners_and_ends_their_rights() {
    let owner = |name| Owner::parse(name).unwrap();
    let (ada, guest) = (Arc::new(Caller::known(owner("ada"))), Arc::new(Caller::anonymous(owner("guest"))));
    let identity = ByHeader([("ada", Arc::clone(&ada)), ("guest", guest)].into());
    let tool = Tool::new("quick", |_: Ctx, _: NoArgs| async move { Ok("done") });
    let server = TestServer::listen(Server::new("test").tool(tool).identity(identity)).await;
    let mut client = server.client().await;

    let call = json!({ "name": "quick", "arguments": {} });
    let id = posted(&mut client, "ada", "tools/call", call).await.1["result"]["taskId"].clone();
    let task = json!({ "taskId": id });
    assert!(posted(&mut client, "ada", "tasks/get", task.clone()).await.1.get("result").is_some());
    assert!(posted(&mut client, "guest", "tasks/get", task.clone()).await.1.get("error").is_some());
    assert_eq!(posted(&mut client, "eve", "tasks/get", task).await.0, 401);
    assert_eq!(RawRequest::post("").send(&server).await.status, 401);

    let (message, mut headers) = client.message("subscriptions/listen", json!({ "notifications": { "taskIds": [] } }));
    headers.push(("x-user".to_owned(), "ada".to_owned()));
    let mut events = client.again().await.post_stream(message.to_string(), &headers).await;
    events.next().await.unwrap();
    ada.revoked.cancel();
    assert!(events.next().await.unwrap().get("error").is_some());
    assert_eq!(events.next().await, None);
    // A request whose head arrived earlier and whose body arrives only now is refused, too.
    let call = json!({ "name": "quick", "arguments": {} });
    let (status, refusal) = posted(&mut client, "ada", "tools/call", call).await;
    assert_eq!((status, refusal["error"]["message"].as_str().unwrap().ends_with("is no longer good")), (401, true));
    server.stop().await;
}
