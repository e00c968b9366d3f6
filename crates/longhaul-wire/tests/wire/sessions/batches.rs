//! Batches, which one revision had.

use longhaul_wire::jsonrpc::{self, BATCH_MAX, InvalidMessage};
use longhaul_wire::{ClientNotification, Operation, Revision, acknowledge};

use super::{Incoming, LATEST, read, sort, to};
use crate::common::*;

fn batch(messages: &str) -> Result<Vec<Result<Incoming<'_>, InvalidMessage>>, InvalidMessage> {
    assert!(Revision::V2025_03_26.has_batches() && jsonrpc::is_batch(messages.as_bytes()));
    let messages = jsonrpc::parse_batch(messages.as_bytes())?;
    Ok(messages.into_iter().map(|message| sort(message?, Revision::V2025_03_26)).collect())
}

#[test]
fn each_message_of_a_batch_stands_for_itself() {
    let messages = batch(
        r#" [{"jsonrpc":"2.0","id":1,"method":"ping"},
            {"jsonrpc":"2.0","method":"notifications/initialized"},
            {"jsonrpc":"2.0","id":2,"method":"never/heard/of"},
            {"jsonrpc":"2.0","id":"q","result":{}},
            {"jsonrpc":"2.0","id":3,"method":"initialize","params":{}},
            5, [], {"id":4}]"#,
    )
    .unwrap();
    assert!(matches!(&messages[0], Ok(Incoming::Request(request)) if matches!(request.operation, Operation::Ping)));
    assert!(matches!(&messages[1], Ok(Incoming::Notice(ClientNotification::Initialized))));
    assert!(matches!(&messages[3], Ok(Incoming::Response(_))));
    let refused: Vec<_> = messages
        .iter()
        .filter_map(|message| message.as_ref().err())
        .map(|rejected| (rejected.id.as_ref().map(ToString::to_string), rejected.error.code))
        .collect();
    let some = |id: &str| Some(id.to_owned());
    assert_eq!(
        refused,
        [(some("2"), -32601), (some("3"), -32600), (None, -32600), (None, -32600), (some("4"), -32600)],
        "the handshake is not part of a batch"
    );
}

#[test]
fn answers_go_out_together_and_nothing_when_there_are_none() {
    assert_eq!(jsonrpc::batch::<String>(&[]), None);
    let answers = [acknowledge(&to(&1.into(), LATEST)), acknowledge(&to(&2.into(), LATEST))];
    let message = jsonrpc::batch(&answers).unwrap();
    assert_eq!(message, r#"[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":2,"result":{}}]"#);
    must_fit("mcp-2025-03-26", "JSONRPCBatchResponse", &message, "");
}

#[test]
fn what_is_no_batch_is_refused_as_a_whole() {
    assert_eq!(batch("[]").unwrap_err().error.code, -32600);
    assert_eq!(batch("[").unwrap_err().error.code, -32700);
    assert_eq!(batch(r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},]"#).unwrap_err().error.code, -32700);
    let many = |count| format!("[{}]", vec![r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#; count].join(","));
    assert_eq!(batch(&many(BATCH_MAX)).unwrap().len(), BATCH_MAX);
    let error = batch(&many(BATCH_MAX + 1)).unwrap_err().error;
    assert!(error.code == -32600 && error.message.contains("100"), "{error}");
}

#[test]
fn other_revisions_take_no_batch() {
    for revision in [Revision::V2025_06_18, Revision::V2025_11_25] {
        assert!(!revision.has_batches());
        let rejected = read(br#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, revision).unwrap_err();
        assert_eq!((rejected.id, rejected.error.code, rejected.error.http_status()), (None, -32600, 400));
    }
}
