//! What a client on a pipe may use.

use longhaul::{Limits, Server};
use longhaul_server::stdio;
use serde_json::{Value, json};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio_util::sync::CancellationToken;

use crate::kit::is_refused;
use crate::support::schema::Asked;
use crate::support::{VERSION, in_time};

async fn next_line(lines: &mut Lines<impl AsyncBufRead + Unpin>, asked: &Asked) -> Value {
    let line = in_time("a line from the server", lines.next_line()).await.unwrap().expect("a line");
    let message = serde_json::from_str(&line).unwrap();
    asked.hears(None, &message);
    message
}

#[tokio::test]
async fn a_stdio_client_has_so_many_requests_under_way_and_lines_so_long() {
    let store = longhaul::StoreUrl::Memory.open().await.unwrap();
    let started = Server::new("test").start(store).await.unwrap();
    let limits = Limits::default().in_flight_max(2).message_bytes_max(1_000);
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    let (input, output) = tokio::io::split(theirs);
    let stop = CancellationToken::new();
    let serving =
        stdio::serve(started.receiver().clone(), longhaul_server::local(), BufReader::new(input), output, limits, stop);
    let serving = tokio::spawn(serving);
    let (read, mut write) = tokio::io::split(ours);
    let mut lines = BufReader::new(read).lines();
    let asked = Asked::default();

    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let message = |id: &str, method: &str| {
        let params = json!({ "_meta": meta, "notifications": {} });
        let line = format!("{}\n", json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        asked.sends(line.as_bytes());
        line
    };
    for id in ["one", "two"] {
        write.write_all(message(id, "subscriptions/listen").as_bytes()).await.unwrap();
        let first = next_line(&mut lines, &asked).await;
        assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    }
    write.write_all(message("three", "tools/list").as_bytes()).await.unwrap();
    let refused = next_line(&mut lines, &asked).await;
    assert_eq!(refused["id"], "three");
    is_refused(&refused["error"], -32603, "TOO_MANY_IN_FLIGHT");

    // One that is cancelled makes room: the word of it is read although there is none.
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": "one" } });
    write.write_all(format!("{cancel}\n").as_bytes()).await.unwrap();
    in_time("room for one more", async {
        loop {
            write.write_all(message("three", "tools/list").as_bytes()).await.unwrap();
            let answer = next_line(&mut lines, &asked).await;
            assert_eq!(answer["id"], "three");
            if answer.get("result").is_some() {
                break;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;

    let good = message("four", "tools/list");
    for (bytes, is_taken) in [(1_000, true), (1_001, false)] {
        let line = format!("{}{}\n", good.trim_end(), " ".repeat(bytes - good.trim_end().len()));
        write.write_all(line.as_bytes()).await.unwrap();
        let answer = next_line(&mut lines, &asked).await;
        assert_eq!(answer.get("result").is_some(), is_taken, "{bytes} bytes: {answer}");
    }
    write.shutdown().await.unwrap();
    let last = next_line(&mut lines, &asked).await;
    assert_eq!((&last["id"], &last["result"]["resultType"]), (&json!("two"), &json!("complete")));
    in_time("the end of the session", serving).await.unwrap().unwrap();
}
