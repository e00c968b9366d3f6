//! Output of the program. A reader that has closed the stream is no reason to stop.

use std::borrow::Cow;

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

/// Writes a line to standard output.
macro_rules! say {
    ($($words:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stdout(), $($words)*);
    }};
}

/// Writes a line to standard error.
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
