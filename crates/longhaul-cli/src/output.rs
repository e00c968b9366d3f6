//! Lines on standard output and standard error.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write as _};

use crate::exit::CommandError;

/// Characters that are not control characters, but change the order of the text around them or break its line.
const LAYOUT_CHARACTERS: [char; 14] = [
    '\u{61c}', '\u{200e}', '\u{200f}', '\u{2028}', '\u{2029}', '\u{202a}', '\u{202b}', '\u{202c}', '\u{202d}',
    '\u{202e}', '\u{2066}', '\u{2067}', '\u{2068}', '\u{2069}',
];

/// Escapes control characters and layout characters. In text that does not come from this program they could steer the
/// terminal, break a line in two, or show text that is not there.
pub(crate) fn escape(text: &str) -> Cow<'_, str> {
    let is_escaped = |character: char| character.is_control() || LAYOUT_CHARACTERS.contains(&character);
    if !text.contains(is_escaped) {
        return Cow::Borrowed(text);
    }
    let escape = |character: char| {
        if is_escaped(character) { character.escape_default().to_string() } else { character.to_string() }
    };
    text.chars().map(escape).collect()
}

/// Reverses [`escape`] for a name. Only layout characters are restored, because a name has no control characters.
pub(crate) fn unescape_name(text: &str) -> String {
    let unescape =
        |text: String, character: &char| text.replace(&character.escape_default().to_string(), &character.to_string());
    LAYOUT_CHARACTERS.iter().fold(text.to_owned(), unescape)
}

/// Writes JSON, or lines of this program, to standard output as they are. A closed pipe is not an error: a reader such as `head`
/// closes it when it has read enough.
pub(crate) fn write_stdout_raw(text: &(impl fmt::Display + ?Sized)) -> Result<(), CommandError> {
    match writeln!(io::stdout(), "{text}") {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(CommandError::Output(error)),
        _ => Ok(()),
    }
}

/// Writes a line for people to standard output, with escapes for what could disturb the terminal, or returns the error from the
/// function.
macro_rules! stdout_line {
    ($($arguments:tt)*) => {
        crate::output::write_stdout_raw(&crate::output::escape(&format!($($arguments)*)))?
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
    use super::*;

    #[test]
    fn characters_that_steer_a_terminal_are_escaped() {
        assert_eq!(escape("Grüße, 世界, שלום"), "Grüße, 世界, שלום");
        assert_eq!(escape("\u{1b}[2J\u{9b}31m\r\n"), "\\u{1b}[2J\\u{9b}31m\\r\\n");
        assert_eq!(escape("a\u{202e}b\u{2028}c"), "a\\u{202e}b\\u{2028}c");
    }

    #[test]
    fn an_escaped_name_can_be_read_back() {
        let name: String = LAYOUT_CHARACTERS.iter().flat_map(|character| ['x', *character]).collect();
        assert!(!escape(&name).contains(LAYOUT_CHARACTERS));
        assert_eq!(unescape_name(&escape(&name)), name);
    }
}
