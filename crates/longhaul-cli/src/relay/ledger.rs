//! What a client has sent that the next server must know: its handshake, its log level, the tasks that it follows, and
//! its open requests.
//!
//! An open request is sent to the next server again. A call of a tool, a prompt and a read of a resource have an idempotency key
//! for that, so the task that the old server may have made is found, and not made twice. They also say that they are repeated: the
//! server refuses a call that is not stored, because it could run twice.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{SystemTime, UNIX_EPOCH};

use longhaul_wire::idempotency;
use longhaul_wire::jsonrpc::RequestId;
use rand::RngExt as _;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// Tasks that are followed again.
const TASKS_MAX: usize = 1_000;

/// Begins the IDs of requests of the ledger itself.
const OWN_ID: &str = "longhaul-relay-";

#[derive(Debug, Default)]
pub(super) struct Ledger {
    initialize: Option<String>,
    initialized: Option<String>,
    log_level: Option<String>,
    /// Requests without a response, by their IDs as JSON, in the order in which they came.
    open: Vec<(String, OpenRequest)>,
    /// Tasks of the client that have not ended.
    tasks: BTreeSet<String>,
    own_ids: u64,
    /// The client has closed its input.
    is_closed: bool,
}

#[derive(Debug)]
enum OpenRequest {
    /// It does no harm twice.
    Repeatable(Vec<u8>),
    /// A request that may have created a task, with its idempotency key. It is marked as repeated, and the server decides what
    /// that means.
    MayHaveTask(Vec<u8>),
    /// It may have run, and must not run again.
    Once,
}

/// What to send at the beginning of a connection.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Replay {
    pub(super) to_server: Vec<String>,
    pub(super) to_client: Vec<String>,
}

#[derive(Deserialize)]
struct RelayedMessage<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

type Members = BTreeMap<String, Box<RawValue>>;

impl Ledger {
    /// Takes a message of the client. Returns what to pass on.
    pub(super) fn take_from_client(&mut self, line: Vec<u8>) -> Vec<u8> {
        if let Ok(batch) = serde_json::from_slice::<Vec<RelayedMessage<'_>>>(&line) {
            let ids = batch.iter().filter(|message| message.method.is_some()).filter_map(|message| message.id);
            self.open.extend(ids.map(|id| (id.get().to_owned(), OpenRequest::Once)));
            return line;
        }
        // What is not a message is refused by the server.
        let Ok(message) = serde_json::from_slice::<RelayedMessage<'_>>(&line) else { return line };
        let Some(method) = &message.method else { return line };
        let text = || String::from_utf8_lossy(&line).into_owned();
        // The response to a request with a wrong ID does not have it.
        let id = message.id.filter(|id| RequestId::parse(id).is_some());
        let Some(id) = id.map(|id| id.get().to_owned()) else {
            match &**method {
                "notifications/initialized" => self.initialized = Some(text()),
                "notifications/cancelled" => {
                    let cancelled =
                        message.params.and_then(|params| serde_json::from_str::<Members>(params.get()).ok());
                    if let Some(id) = cancelled.as_ref().and_then(|members| members.get("requestId")) {
                        self.open.retain(|(open, _)| open != id.get());
                    }
                }
                _ => {}
            }
            return line;
        };
        match &**method {
            "initialize" => self.initialize = Some(text()),
            "logging/setLevel" => self.log_level = Some(text()),
            "tools/call" | "prompts/get" | "resources/read" => {
                // The server refuses a request to which no key can be added. A call must not run twice even so.
                let (line, request) = match with_key(&line, now_ms()) {
                    Some(line) => (line.clone(), OpenRequest::MayHaveTask(line)),
                    None if method == "tools/call" => (line, OpenRequest::Once),
                    None => (line.clone(), OpenRequest::Repeatable(line)),
                };
                self.open.push((id, request));
                return line;
            }
            _ => {}
        }
        self.open.push((id, OpenRequest::Repeatable(line.clone())));
        line
    }

    /// The client sends nothing more.
    pub(super) fn close(&mut self) {
        self.is_closed = true;
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Whether the client waits for a response.
    pub(super) fn has_open_requests(&self) -> bool {
        !self.open.is_empty()
    }

    /// Takes a message of the server. Returns what to pass on.
    pub(super) fn take_from_server(&mut self, line: String) -> Option<String> {
        if let Ok(batch) = serde_json::from_str::<Vec<RelayedMessage<'_>>>(&line) {
            for id in batch.iter().filter_map(|message| message.id) {
                self.open.retain(|(open, _)| open != id.get());
            }
            return Some(line);
        }
        let Ok(message) = serde_json::from_str::<RelayedMessage<'_>>(&line) else { return Some(line) };
        if message.method.is_some() {
            self.note_task(message.params);
            return Some(line);
        }
        let id = message.id.map(RawValue::get).unwrap_or_default();
        if id.starts_with(&format!("\"{OWN_ID}")) {
            self.note_task(message.result);
            return None;
        }
        // The server stops, and the next one answers; but no server serves a client that has closed its input for long.
        if !self.is_closed && message.error.is_some_and(is_draining) && self.open.iter().any(|(open, _)| open == id) {
            return None;
        }
        self.open.retain(|(open, _)| open != id);
        self.note_task(message.result);
        Some(line)
    }

    /// Remembers a task that was made or has changed.
    fn note_task(&mut self, value: Option<&RawValue>) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Shown {
            task_id: Option<String>,
            status: Option<String>,
            task: Option<Box<RawValue>>,
        }
        let Some(shown) = value.and_then(|value| serde_json::from_str::<Shown>(value.get()).ok()) else { return };
        if let Some(task) = &shown.task {
            return self.note_task(Some(task));
        }
        let (Some(id), Some(status)) = (shown.task_id, shown.status) else { return };
        if matches!(&*status, "completed" | "failed" | "cancelled") {
            self.tasks.remove(&id);
        } else if self.tasks.len() < TASKS_MAX {
            self.tasks.insert(id);
        }
    }

    /// What a new connection begins with.
    pub(super) fn replay(&mut self) -> Replay {
        let mut replay = Replay::default();
        let is_open = |id: &str, open: &[(String, OpenRequest)]| open.iter().any(|(other, _)| other == id);
        for handshake in [self.initialize.clone(), self.log_level.clone()].into_iter().flatten() {
            let is_initialize = self.initialize.as_deref() == Some(&handshake);
            // If the client waits for its response, it is among the open requests.
            let has_response = request_id(&handshake).is_some_and(|id| !is_open(&id, &self.open));
            if has_response && let Some(message) = self.own_request(&handshake) {
                replay.to_server.push(message);
                if is_initialize {
                    replay.to_server.extend(self.initialized.clone());
                }
            }
        }
        if self.initialize.is_some() {
            // The server follows a task for the session that reads it.
            for id in self.tasks.clone() {
                let request = json!({ "jsonrpc": "2.0", "id": 0, "method": "tasks/get", "params": { "taskId": id } });
                replay.to_server.extend(self.own_request(&request.to_string()));
            }
        }
        self.open.retain(|(id, request)| {
            match request {
                OpenRequest::Repeatable(line) => replay.to_server.push(String::from_utf8_lossy(line).into_owned()),
                // A mark can be added wherever a key could.
                OpenRequest::MayHaveTask(line) => replay.to_server.extend(as_repeated(line)),
                OpenRequest::Once => replay.to_client.push(lost(id)),
            }
            !matches!(request, OpenRequest::Once)
        });
        replay
    }

    /// The same request under an ID of the ledger.
    fn own_request(&mut self, line: &str) -> Option<String> {
        self.own_ids += 1;
        let mut message: Members = serde_json::from_str(line).ok()?;
        message.insert("id".into(), raw(&Value::from(format!("{OWN_ID}{}", self.own_ids)))?);
        serde_json::to_string(&message).ok()
    }
}

fn request_id(line: &str) -> Option<String> {
    Some(serde_json::from_str::<RelayedMessage<'_>>(line).ok()?.id?.get().to_owned())
}

fn raw(value: &Value) -> Option<Box<RawValue>> {
    serde_json::value::to_raw_value(value).ok()
}

fn is_draining(error: &RawValue) -> bool {
    serde_json::from_str::<Value>(error.get()).is_ok_and(|error| error["data"]["code"] == "DRAINING")
}

fn lost(id: &str) -> String {
    let words = "The server ended before this call was done, and its result is lost. Call again if that does no harm.";
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32603,"message":"{words}","data":{{"code":"ANSWER_LOST"}}}}}}"#
    )
}

fn now_ms() -> u64 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_1970.as_millis()).unwrap_or_default()
}

/// A request with an idempotency key. Everything else in it stays as it was written.
fn with_key(line: &[u8], now_ms: u64) -> Option<Vec<u8>> {
    with_meta(line, |meta| {
        // As for the server, null counts as absent.
        if meta.get(idempotency::META_KEY).is_none_or(|key| key.get() == "null") {
            let key = Value::from(format!("relay-{:032x}", rand::rng().random::<u128>()));
            meta.insert(idempotency::META_KEY.into(), raw(&key)?);
            meta.insert(idempotency::RELAYED_META_KEY.into(), raw(&Value::from(now_ms))?);
        }
        Some(())
    })
}

/// A request that may have run already.
fn as_repeated(line: &[u8]) -> Option<String> {
    let marked = with_meta(line, |meta| {
        meta.insert(idempotency::REPEATED_META_KEY.into(), raw(&Value::Bool(true))?);
        Some(())
    })?;
    String::from_utf8(marked).ok()
}

fn with_meta(line: &[u8], change: impl FnOnce(&mut Members) -> Option<()>) -> Option<Vec<u8>> {
    let mut message: Members = serde_json::from_slice(line).ok()?;
    let mut params: Members = serde_json::from_str(message.get("params")?.get()).ok()?;
    // In a session, null counts as absent.
    let mut meta: Members = match params.get("_meta").filter(|meta| meta.get() != "null") {
        Some(meta) => serde_json::from_str(meta.get()).ok()?,
        None => Members::new(),
    };
    change(&mut meta)?;
    params.insert("_meta".into(), serde_json::value::to_raw_value(&meta).ok()?);
    message.insert("params".into(), serde_json::value::to_raw_value(&params).ok()?);
    serde_json::to_vec(&message).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from_client(ledger: &mut Ledger, message: &Value) -> Value {
        serde_json::from_slice(&ledger.take_from_client(message.to_string().into_bytes())).unwrap()
    }

    fn messages(texts: &[String]) -> Vec<Value> {
        texts.iter().map(|text| serde_json::from_str(text).unwrap()).collect()
    }

    #[test]
    fn the_next_server_gets_the_handshake_the_tasks_and_the_open_requests() {
        let mut ledger = Ledger::default();
        let initialize = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": { "capabilities": {} } });
        assert_eq!(from_client(&mut ledger, &initialize), initialize);
        assert!(ledger.take_from_server(r#"{"jsonrpc":"2.0","id":0,"result":{}}"#.into()).is_some());
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        from_client(&mut ledger, &initialized);
        let call =
            json!({ "jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": { "name": "t", "task": {} } });
        let passed_on = from_client(&mut ledger, &call);
        assert!(passed_on["params"]["_meta"][idempotency::META_KEY].as_str().unwrap().starts_with("relay-"));
        assert!(
            passed_on["params"]["_meta"][idempotency::RELAYED_META_KEY].is_u64(),
            "so that it joins like a call without a key"
        );
        let batch = json!([{ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": { "name": "t" } }]);
        from_client(&mut ledger, &batch);
        let made = r#"{"jsonrpc":"2.0","id":"x","result":{"task":{"taskId":"T","status":"working"}}}"#;
        ledger.take_from_server(made.into());

        let replay = ledger.replay();
        let sent = messages(&replay.to_server);
        let methods: Vec<&str> = sent.iter().map(|message| message["method"].as_str().unwrap()).collect();
        assert_eq!(methods, ["initialize", "notifications/initialized", "tasks/get", "tools/call"]);
        let mut again = passed_on;
        again["params"]["_meta"][idempotency::REPEATED_META_KEY] = json!(true);
        assert_eq!(sent[3], again, "under the same key");
        let told = messages(&replay.to_client);
        assert_eq!(
            (told.len(), &told[0]["id"], &told[0]["error"]["data"]["code"]),
            (1, &json!(7), &json!("ANSWER_LOST"))
        );
        let own = sent[0]["id"].as_str().unwrap();
        assert_eq!(ledger.take_from_server(format!(r#"{{"jsonrpc":"2.0","id":"{own}","result":{{}}}}"#)), None);
        let ended =
            r#"{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"T","status":"completed"}}"#;
        assert!(ledger.take_from_server(ended.into()).is_some());
        assert!(ledger.tasks.is_empty());
    }

    #[test]
    fn a_prompt_and_a_read_are_sent_again_under_their_keys_with_a_mark() {
        let mut ledger = Ledger::default();
        let prompt = json!({ "jsonrpc": "2.0", "id": 1, "method": "prompts/get", "params": { "name": "p" } });
        let read = json!({ "jsonrpc": "2.0", "id": 2, "method": "resources/read", "params": { "uri": "x:y" } });
        let refused = json!({ "jsonrpc": "2.0", "id": 3, "method": "prompts/get" });
        let mut passed_on = [&prompt, &read].map(|request| from_client(&mut ledger, request));
        assert_eq!(from_client(&mut ledger, &refused), refused, "the server refuses it");
        let key = |request: &Value| request["params"]["_meta"][idempotency::META_KEY].as_str().unwrap().to_owned();
        assert_ne!(key(&passed_on[0]), key(&passed_on[1]));
        for request in &mut passed_on {
            request["params"]["_meta"][idempotency::REPEATED_META_KEY] = json!(true);
        }
        let [prompt, read] = passed_on;
        assert_eq!(messages(&ledger.replay().to_server), [prompt, read, refused], "under the same keys");
    }

    #[test]
    fn a_key_that_is_null_counts_as_absent() {
        let mut ledger = Ledger::default();
        let meta = json!({ idempotency::META_KEY: null });
        let call =
            json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "t", "_meta": meta } });
        let passed_on = from_client(&mut ledger, &call);
        let meta = &passed_on["params"]["_meta"];
        assert!(meta[idempotency::META_KEY].is_string() && meta[idempotency::RELAYED_META_KEY].is_u64(), "{meta}");
    }

    #[test]
    fn a_cancelled_request_is_not_sent_again_and_a_stopping_server_answers_nothing() {
        let mut ledger = Ledger::default();
        from_client(&mut ledger, &json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }));
        from_client(&mut ledger, &json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" }));
        from_client(&mut ledger, &json!({ "jsonrpc": "2.0", "id": 1.5, "method": "tools/list" }));
        let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
        from_client(&mut ledger, &cancel);
        let draining = r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"","data":{"code":"DRAINING"}}}"#;
        assert_eq!(ledger.take_from_server(draining.into()), None);
        let sent = messages(&ledger.replay().to_server);
        assert_eq!((sent.len(), &sent[0]["id"]), (1, &json!(2)));
        ledger.close();
        assert!(ledger.take_from_server(draining.into()).is_some(), "a client that leaves gets that as its answer");
        assert!(!ledger.has_open_requests());
    }

    #[test]
    fn numbers_of_a_call_stay_as_they_were_written() {
        let call = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{"n":12345678901234567890123.10}}}"#;
        let passed_on = with_key(call, 0).unwrap();
        assert!(String::from_utf8(passed_on).unwrap().contains(r#"{"n":12345678901234567890123.10}"#));
    }
}
