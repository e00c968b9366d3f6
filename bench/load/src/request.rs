//! The bytes of a request. The constant parts are rendered once, at the start of the run.

use std::{io::Write as _, net::SocketAddr};

/// The argument of every echo task, which its result must contain. It needs no escaping in JSON.
pub const ECHO_TEXT: &str = "The quick brown fox jumps over the lazy dog, and then it waits.";

/// The arguments object with [`ECHO_TEXT`].
pub const ECHO_ARGUMENTS: &str = r#"{"text":"The quick brown fox jumps over the lazy dog, and then it waits."}"#;

const META: &str = concat!(
    r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
    r#""io.modelcontextprotocol/clientInfo":{"name":"load","version":"0.0.0"},"#,
    r#""io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}"#,
);

/// Renders requests for one server.
#[derive(Clone)]
pub struct Requests {
    call_head: String,
    get_head: String,
    /// Reused, so that a request allocates nothing.
    body: Vec<u8>,
}

impl Requests {
    #[must_use]
    pub fn new(server: SocketAddr, token: Option<&str>) -> Self {
        let authorization = token.map_or_else(String::new, |token| format!("Authorization: Bearer {token}\r\n"));
        let head = |method: &str| {
            format!(
                "POST /mcp HTTP/1.1\r\nHost: {server}\r\nContent-Type: application/json\r\n\
                 Accept: application/json, text/event-stream\r\n{authorization}\
                 MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\nMcp-Name: "
            )
        };
        Self { call_head: head("tools/call"), get_head: head("tasks/get"), body: Vec::with_capacity(1024) }
    }

    /// Renders `tools/call` into `out`.
    pub fn call(&mut self, id: u64, tool: &str, arguments: &str, out: &mut Vec<u8>) {
        self.body.clear();
        append(
            &mut self.body,
            format_args!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments},{META}}}}}"#
            ),
        );
        write_request(out, &self.call_head, tool, &self.body);
    }

    /// Renders `tasks/get` into `out`.
    pub fn get(&mut self, id: u64, task_id: &str, out: &mut Vec<u8>) {
        self.body.clear();
        append(
            &mut self.body,
            format_args!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"tasks/get","params":{{"taskId":"{task_id}",{META}}}}}"#
            ),
        );
        write_request(out, &self.get_head, task_id, &self.body);
    }
}

/// Replaces the content of `out` by a request. `head` ends before the value of `Mcp-Name`.
fn write_request(out: &mut Vec<u8>, head: &str, name: &str, body: &[u8]) {
    out.clear();
    append(out, format_args!("{head}{name}\r\nContent-Length: {}\r\n\r\n", body.len()));
    out.extend_from_slice(body);
}

fn append(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("writing to a Vec cannot fail");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_contain_the_text() {
        assert!(ECHO_ARGUMENTS.contains(ECHO_TEXT));
    }

    #[test]
    fn a_request_carries_its_headers_and_a_body_of_the_stated_length() {
        let server = "127.0.0.1:8377".parse().unwrap();
        let mut bytes = Vec::new();
        Requests::new(server, Some("secret")).get(7, "abc", &mut bytes);
        let text = String::from_utf8(bytes).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        for line in [
            "Host: 127.0.0.1:8377",
            "Accept: application/json, text/event-stream",
            "Authorization: Bearer secret",
            "MCP-Protocol-Version: 2026-07-28",
            "Mcp-Method: tasks/get",
            "Mcp-Name: abc",
            &format!("Content-Length: {}", body.len()),
        ] {
            assert!(head.lines().any(|sent| sent == line), "the head has no line {line:?}");
        }
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(body["params"]["taskId"], "abc");
        assert_eq!(body["id"], 7);
    }
}
