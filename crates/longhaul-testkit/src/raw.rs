//! Requests as data. A test can send requests that are not valid, and over a socket only a part of one.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};

use hyper::body::Bytes;
use hyper::header::{HeaderMap, HeaderName};
use longhaul_wire::headers::encode_value;
use serde_json::{Value, json};

use crate::schema::SentRequests;
use crate::{PATIENCE, Reply, TestEndpoint, VERSION, WholeReply, endpoint, stateless_message};

/// A request as it is sent.
#[derive(Debug, Clone)]
pub struct RawRequest {
    pub method: &'static str,
    pub path: &'static str,
    pub headers: Vec<(String, Vec<u8>)>,
    pub body: Vec<u8>,
}

impl RawRequest {
    /// A POST of this body, with the headers that every client sends.
    pub fn post(body: impl Into<Vec<u8>>) -> Self {
        let request = Self { method: "POST", path: "/mcp", headers: Vec::new(), body: body.into() };
        request
            .with("Host", "localhost")
            .with("Content-Type", "application/json")
            .with("Accept", "application/json, text/event-stream")
    }

    /// A POST of this message, with the headers that repeat parts of it.
    pub fn rpc(message: &Value) -> Self {
        let params = &message["params"];
        let request = Self::post(message.to_string())
            .with("MCP-Protocol-Version", VERSION)
            .with("Mcp-Method", message["method"].as_str().unwrap_or_default());
        match params["name"].as_str().or(params["taskId"].as_str()) {
            Some(name) => request.with("Mcp-Name", encode_value(name).as_bytes()),
            None => request,
        }
    }

    /// A request in good order, for tests that spoil it.
    pub fn discover() -> Self {
        Self::rpc(&stateless_message(&json!(1), "server/discover", json!({}), &json!({})))
    }

    pub fn get(path: &'static str) -> Self {
        let request = Self { method: "GET", path, headers: Vec::new(), body: Vec::new() };
        request.with("Host", "localhost")
    }

    pub fn method(self, method: &'static str) -> Self {
        Self { method, ..self }
    }

    /// Adds a header. Others of the same name stay.
    pub fn with(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.headers.push((name.to_owned(), value.as_ref().to_vec()));
        self
    }

    pub fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self
    }

    /// Replaces all headers of this name.
    pub fn set(self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.without(name).with(name, value)
    }

    /// The head, for a body of this many bytes.
    pub fn head(&self, length: usize) -> Vec<u8> {
        let mut bytes = format!("{} {} HTTP/1.1\r\n", self.method, self.path).into_bytes();
        for (name, value) in &self.headers {
            bytes.extend(name.as_bytes());
            bytes.extend(b": ");
            bytes.extend(value);
            bytes.extend(b"\r\n");
        }
        bytes.extend(format!("Content-Length: {length}\r\n\r\n").bytes());
        bytes
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.head(self.body.len());
        bytes.extend(&self.body);
        bytes
    }

    /// Sends the request on a new connection. The response must not be a stream.
    pub async fn send(&self, endpoint: impl Into<TestEndpoint>) -> WholeReply {
        match endpoint.into() {
            TestEndpoint::Http(address) => {
                let bytes = self.bytes();
                let exchange = move || {
                    let mut connection = RawConnection::open(address);
                    connection.write(&bytes);
                    connection.answer().expect("a response")
                };
                tokio::task::spawn_blocking(exchange).await.expect("no panic")
            }
            endpoint @ TestEndpoint::Memory(_) => {
                self.begin(&endpoint).await.read_checked(&SentRequests::of(&self.body)).await.expect("a whole body")
            }
        }
    }

    /// Passes the request to a receiver in this process, and returns the response before its body was received.
    pub async fn begin(&self, endpoint: &TestEndpoint) -> Reply {
        let TestEndpoint::Memory(receiver) = endpoint else { panic!("{endpoint:?} is not in this process") };
        endpoint::enter(receiver, self.method, &self.headers, &self.body).await
    }
}

pub struct RawConnection {
    socket: BufReader<TcpStream>,
    sent: Vec<u8>,
}

impl RawConnection {
    pub fn open(address: SocketAddr) -> Self {
        let socket = TcpStream::connect(address).expect("a server that listens");
        socket.set_nodelay(true).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { socket: BufReader::new(socket), sent: Vec::new() }
    }

    /// Writes these bytes. If the server has closed the connection, reading the response shows it.
    pub fn write(&mut self, bytes: &[u8]) {
        self.sent.extend(bytes);
        let _ = self.socket.get_mut().write_all(bytes);
    }

    /// Closes the sending half.
    pub fn finish(&mut self) {
        let _ = self.socket.get_mut().shutdown(Shutdown::Write);
    }

    /// The next response, checked against the schema. `None` if the server closed the connection.
    pub fn answer(&mut self) -> Option<WholeReply> {
        let (status, headers) = self.head()?;
        let mut reply = WholeReply { status, headers, body: Bytes::new() };
        if let Some(length) = reply.header("content-length") {
            let mut body = vec![0; length.parse().expect("a length")];
            self.socket.read_exact(&mut body).expect("the whole body");
            reply.body = body.into();
        }
        // A body begins after an empty line. Another request may follow the body.
        let sent_requests = SentRequests::default();
        for after in self.sent.windows(4).enumerate().filter(|(_, bytes)| bytes == b"\r\n\r\n").map(|(at, _)| at + 4) {
            let mut values = serde_json::Deserializer::from_slice(&self.sent[after..]).into_iter::<Value>();
            if let Some(Ok(message)) = values.next() {
                sent_requests.record_sent(message.to_string().as_bytes());
            }
        }
        sent_requests.check_received_body(None, reply.header("content-type"), &reply.body);
        Some(reply)
    }

    fn head(&mut self) -> Option<(u16, HeaderMap)> {
        let status = self.line()?;
        let status = status.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status line");
        let mut headers = HeaderMap::new();
        loop {
            let line = self.line().expect("a whole head");
            if line.is_empty() {
                return Some((status, headers));
            }
            let (name, value) = line.split_once(':').expect("a header");
            headers.append(
                HeaderName::try_from(name).expect("a header name"),
                value.trim().parse().expect("a header value"),
            );
        }
    }

    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        match self.socket.read_line(&mut line) {
            Ok(0) => None,
            Ok(_) => Some(line.trim_end_matches(['\r', '\n']).to_owned()),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => None,
            Err(error) => panic!("the server says nothing: {error}"),
        }
    }
}
