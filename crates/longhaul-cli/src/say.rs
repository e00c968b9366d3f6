//! Output of the program.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write as _};

use crate::exit::CommandError;

/// Text of another origin on one line: control characters, which could steer the terminal, are escaped.
pub(crate) fn escape_control(words: &str) -> Cow<'_, str> {
    if !words.contains(char::is_control) {
        return Cow::Borrowed(words);
    }
    let written = |character: char| {
        if character.is_control() { character.escape_default().to_string() } else { character.to_string() }
    };
    words.chars().map(written).collect()
}

/// Writes a line to standard output. A reader that has closed the pipe, such as `head`, has what it wants.
pub(crate) fn write_line(line: fmt::Arguments<'_>) -> Result<(), CommandError> {
    match writeln!(io::stdout(), "{line}") {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(CommandError::Output(error)),
        _ => Ok(()),
    }
}

/// Writes a line to standard output, or returns the error from the function.
macro_rules! say {
    ($($words:tt)*) => {
        crate::say::write_line(format_args!($($words)*))?
    };
}

/// Writes a line to standard error. Whether it could is not reported: there is no other place for it.
macro_rules! tell {
    ($($words:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($words)*);
    }};
}

pub(crate) use {say, tell};

#[cfg(test)]
mod tests {
    use super::escape_control;

    #[test]
    fn characters_that_steer_a_terminal_are_escaped() {
        assert_eq!(escape_control("Grüße, 世界"), "Grüße, 世界");
        assert_eq!(escape_control("\u{1b}[2J\u{9b}31m\r\n"), "\\u{1b}[2J\\u{9b}31m\\r\\n");
    }
}
