//! Output of a command, line by line.

use std::io;

use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};

/// The most bytes of a line of output that is read as a whole, with its line break. A longer line comes in pieces.
pub const LINE_BYTES_MAX: usize = 64 << 10;

/// One of the output streams of a command.
#[derive(Debug)]
pub(super) struct LineReader<R> {
    pipe: Option<BufReader<R>>,
    line: Vec<u8>,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub(super) fn new(pipe: R) -> Self {
        Self { pipe: Some(BufReader::new(pipe)), line: Vec::new() }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.pipe.is_none()
    }

    /// The next line with its line break, or a piece of a long one; `None` at the end. If the future is dropped, nothing is
    /// lost: the next call goes on where it was.
    pub(super) async fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            let Some(pipe) = &mut self.pipe else { return Ok(None) };
            let available = pipe.fill_buf().await?;
            if available.is_empty() {
                self.pipe = None;
                let rest = std::mem::take(&mut self.line);
                return Ok((!rest.is_empty()).then_some(rest));
            }
            let room = LINE_BYTES_MAX - self.line.len();
            let within = &available[..available.len().min(room)];
            let end = line_end(within);
            let used = end.unwrap_or(within.len());
            self.line.extend_from_slice(&within[..used]);
            pipe.consume(used);
            if end.is_some() || self.line.len() == LINE_BYTES_MAX {
                return Ok(Some(std::mem::take(&mut self.line)));
            }
        }
    }
}

/// The length of the first line. A carriage return ends one, too, unless a line break follows: programs draw their progress so.
fn line_end(bytes: &[u8]) -> Option<usize> {
    let end = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r'))? + 1;
    Some(if bytes[end - 1] == b'\r' && bytes.get(end) == Some(&b'\n') { end + 1 } else { end })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_carriage_return_ends_a_line() {
        assert_eq!(
            (line_end(b"1%\r2%"), line_end(b"a\r\nb"), line_end(b"a\n"), line_end(b"a")),
            (Some(3), Some(3), Some(2), None)
        );
    }

    #[tokio::test]
    async fn lines_and_pieces_of_long_lines_are_the_output_in_order() {
        let long = "x".repeat(LINE_BYTES_MAX + 5);
        let text = format!("one\n\n{long}\nlast");
        let mut lines = LineReader::new(text.as_bytes());
        let mut read = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            read.push(line);
        }
        assert_eq!(read.concat(), text.as_bytes());
        let lengths: Vec<usize> = read.iter().map(Vec::len).collect();
        assert_eq!(lengths, [4, 1, LINE_BYTES_MAX, 6, 4]);
        assert!(lines.has_ended());
    }
}
