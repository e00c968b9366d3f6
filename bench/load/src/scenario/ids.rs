//! The task IDs of a run in a file, one per line.

use std::{fs, ops::Range, path::Path};

use anyhow::{Context, bail};

/// Task IDs, all in one string: a million strings would take too much memory and time.
#[derive(Default)]
pub struct Ids {
    /// One ID per line.
    text: String,
    /// Where the line after each ID begins.
    next_lines: Vec<usize>,
}

impl Ids {
    pub fn push(&mut self, id: &str) {
        self.text.push_str(id);
        self.text.push('\n');
        self.next_lines.push(self.text.len());
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.next_lines.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.next_lines.is_empty()
    }

    /// The ID at `index`, which must be below [`len`](Self::len).
    #[must_use]
    pub fn get(&self, index: usize) -> &str {
        &self.text[self.range(index)]
    }

    fn range(&self, index: usize) -> Range<usize> {
        let start = index.checked_sub(1).map_or(0, |previous| self.next_lines[previous]);
        let newline = self.next_lines[index] - 1;
        start..newline
    }

    /// # Errors
    /// The file cannot be read, or holds no IDs.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let text = fs::read_to_string(path).with_context(|| format!("cannot read the IDs in {}", path.display()))?;
        let mut ids = Self::default();
        text.lines().for_each(|line| ids.push(line));
        if ids.is_empty() {
            bail!("there are no IDs in {}", path.display());
        }
        Ok(ids)
    }

    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, path: &Path) -> anyhow::Result<()> {
        fs::write(path, &self.text).with_context(|| format!("cannot write the IDs to {}", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_is_found_at_its_index() {
        let mut ids = Ids::default();
        for id in ["a", "bcd", "ef"] {
            ids.push(id);
        }
        let all: Vec<_> = (0..ids.len()).map(|index| ids.get(index)).collect();
        assert_eq!(all, ["a", "bcd", "ef"]);
    }
}
