//! Lines on standard output and standard error.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write as _};

use crate::exit::CommandError;

/// Escapes control characters in text that does not come from this program. They could steer the terminal, or break a line
/// in two.
pub(crate) fn escape_control(text: &str) -> Cow<'_, str> {
    if !text.contains(char::is_control) {
        return Cow::Borrowed(text);
    }
    let escape = |character: char| {
        if character.is_control() { character.escape_default().to_string() } else { character.to_string() }
    };
    text.chars().map(escape).collect()
}

/// Writes a line to standard output. A closed pipe is not an error: a reader such as `head` closes it when it has read enough.
pub(crate) fn write_stdout_line(line: fmt::Arguments<'_>) -> Result<(), CommandError> {
    match writeln!(io::stdout(), "{line}") {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(CommandError::Output(error)),
        _ => Ok(()),
    }
}

/// Writes a line to standard output, or returns the error from the function.
macro_rules! stdout_line {
    ($($arguments:tt)*) => {
        crate::output::write_stdout_line(format_args!($($arguments)*))?
    };
}

/// Writes a line to standard error. A failure is ignored, because it could be reported nowhere else.
macro_rules! stderr_line {
    ($($arguments:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($arguments)*);
    }};
}

pub(crate) use {stderr_line, stdout_line};

#[cfg(test)]
mod tests {
    use super::escape_control;

    #[test]
    fn characters_that_steer_a_terminal_are_escaped() {
        assert_eq!(escape_control("Grüße, 世界"), "Grüße, 世界");
        assert_eq!(escape_control("\u{1b}[2J\u{9b}31m\r\n"), "\\u{1b}[2J\\u{9b}31m\\r\\n");
    }
}
