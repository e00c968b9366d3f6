//! Mistakes in a config file: the position, the key, what is wrong with it, and what to do.

use std::cell::RefCell;
use std::fmt;
use std::ops::Range;

/// One mistake in a config file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Counted from 1.
    pub(crate) line: usize,
    /// In characters, counted from 1.
    pub(crate) column: usize,
    /// The full path of the key, such as `tool.train.timeout`. Empty if the text is not TOML.
    pub(crate) key: String,
    pub(crate) what: String,
    pub(crate) remedy: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, column, key, what, remedy } = self;
        write!(f, "line {line}, column {column}: ")?;
        if !key.is_empty() {
            write!(f, "`{key}` ")?;
        }
        write!(f, "{what}; {remedy}")
    }
}

/// Collects the mistakes of one file, so that its author sees all of them at once.
#[derive(Debug)]
pub(super) struct Problems<'a> {
    text: &'a str,
    found: RefCell<Vec<Problem>>,
}

impl<'a> Problems<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        Self { text, found: RefCell::default() }
    }

    pub(super) fn add(&self, at: &Range<usize>, key: &str, what: impl Into<String>, remedy: impl Into<String>) {
        let before = self.text.get(..at.start).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        let problem = Problem { line, column, key: key.to_owned(), what: what.into(), remedy: remedy.into() };
        self.found.borrow_mut().push(problem);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.found.borrow().is_empty()
    }

    /// The problems, in the order of their positions in the file.
    pub(super) fn into_sorted(self) -> Vec<Problem> {
        let mut found = self.found.into_inner();
        found.sort_by_key(|problem| (problem.line, problem.column));
        found
    }
}
