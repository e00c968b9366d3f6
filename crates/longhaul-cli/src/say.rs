//! Words for people and programs. Whoever reads them may have gone away, which is no reason to stop.

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
