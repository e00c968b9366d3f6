//! A minimal keep-alive HTTP/1.1 connection.
//!
//! A general HTTP client takes several times the processor time, on cores that the measured server needs. This one
//! accepts only a status line, headers with a `Content-Length`, and a body. Anything else is an error.

use std::net::SocketAddr;

use anyhow::{Context, bail};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The maximum number of headers in a response.
const HEADERS_MAX: usize = 32;
/// The maximum size of a response. Echo tasks are small.
const RESPONSE_BYTES_MAX: usize = 1 << 20;
const READ_BYTES: usize = 8 * 1024;

/// A connection that carries one request at a time.
pub struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
    filled: usize,
    /// Length of the head of the last response in the buffer.
    head: usize,
}

struct Head {
    length: usize,
    body_length: usize,
    status: u16,
}

impl Connection {
    /// Connects, with Nagle's algorithm off.
    ///
    /// # Errors
    /// If the server does not accept the connection.
    pub async fn open(server: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(server).await.with_context(|| format!("cannot connect to {server}"))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: vec![0; READ_BYTES], filled: 0, head: 0 })
    }

    /// Sends one request and returns the body of its response.
    ///
    /// # Errors
    /// If the server closes the connection, or the response has another status than 200 or no `Content-Length`.
    pub async fn exchange(&mut self, request: &[u8]) -> anyhow::Result<&[u8]> {
        self.stream.write_all(request).await?;
        self.filled = 0;
        let mut head: Option<Head> = None;
        loop {
            if let Some(head) = &head {
                let end = head.length + head.body_length;
                if self.filled >= end {
                    self.head = head.length;
                    let body = &self.buffer[head.length..end];
                    if head.status != 200 {
                        bail!("HTTP {}: {}", head.status, String::from_utf8_lossy(body));
                    }
                    if self.filled > end {
                        bail!("the server sent more than its Content-Length");
                    }
                    return Ok(body);
                }
                if self.buffer.len() < end {
                    self.buffer.resize(end, 0);
                }
            } else if self.filled == self.buffer.len() {
                bail!("the headers of a response exceed {READ_BYTES} bytes");
            }
            let count = self.stream.read(&mut self.buffer[self.filled..]).await.context("cannot read a response")?;
            if count == 0 {
                bail!("the server closed the connection");
            }
            self.filled += count;
            if head.is_none() {
                head = parse_head(&self.buffer[..self.filled])?;
            }
        }
    }
}

impl Connection {
    /// A header of the last response.
    ///
    /// # Errors
    /// If the response does not have this header.
    pub fn header(&self, name: &str) -> anyhow::Result<String> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut response = httparse::Response::new(&mut headers);
        response.parse(&self.buffer[..self.head])?;
        let header = response.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name));
        let value = header.with_context(|| format!("a response has no header {name}"))?.value;
        Ok(std::str::from_utf8(value)?.to_owned())
    }
}

fn parse_head(bytes: &[u8]) -> anyhow::Result<Option<Head>> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut response = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(length) = response.parse(bytes)? else {
        return Ok(None);
    };
    let body_length = response
        .headers
        .iter()
        .find(|header| header.name.eq_ignore_ascii_case("content-length"))
        .context("a response has no Content-Length (a stream instead of one JSON object?)")?;
    let body_length: usize = std::str::from_utf8(body_length.value)?.parse()?;
    if body_length > RESPONSE_BYTES_MAX {
        bail!("a response has {body_length} bytes; the limit is {RESPONSE_BYTES_MAX}");
    }
    Ok(Some(Head { length, body_length, status: response.code.unwrap_or_default() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_incomplete_head_is_not_parsed() {
        let bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n";
        assert!(parse_head(bytes).unwrap().is_none());
    }

    #[test]
    fn the_body_begins_after_the_empty_line() {
        let bytes = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
        let head = parse_head(bytes).unwrap().unwrap();
        assert_eq!(&bytes[head.length..], b"{}");
        assert_eq!((head.body_length, head.status), (2, 200));
    }

    #[test]
    fn a_stream_is_refused() {
        let bytes = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert!(parse_head(bytes).is_err());
    }
}
