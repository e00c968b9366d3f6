//! Words for people and programs. Whoever reads them may have gone away, which is no reason to stop.

use std::borrow::Cow;

/// Somebody else's words on one line: whatever would move a terminal's cursor, or worse, is written out.
pub(crate) fn harmless(words: &str) -> Cow<'_, str> {
    if !words.contains(char::is_control) {
        return Cow::Borrowed(words);
    }
    let written = |character: char| {
        if character.is_control() { character.escape_default().to_string() } else { character.to_string() }
    };
    words.chars().map(written).collect()
}

/// A line on standard output.
macro_rules! say {
    ($($words:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stdout(), $($words)*);
    }};
}

/// A line on standard error.
macro_rules! tell {
    ($($words:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($words)*);
    }};
}

pub(crate) use {say, tell};

#[cfg(test)]
mod tests {
    use super::harmless;

    #[test]
    fn words_that_steer_a_terminal_are_written_out() {
        assert_eq!(harmless("Grüße, 世界"), "Grüße, 世界");
        assert_eq!(harmless("\u{1b}[2J\u{9b}31m\r\n"), "\\u{1b}[2J\\u{9b}31m\\r\\n");
    }
}
