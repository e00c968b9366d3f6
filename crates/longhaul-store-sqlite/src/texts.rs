//! Texts that occur in many rows share one allocation in memory.

use std::sync::Arc;

use foldhash::{HashMap, HashSet};
use longhaul_task::{NameError, Owner};

/// The maximum number of texts, and of owners. At the limit the table is emptied, which is rare: tools and busy owners are
/// few.
const TEXTS_MAX: usize = 4_096;

/// The owners, tools, versions and origins that one connection has read.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    texts: HashSet<Arc<str>>,
    owners: HashMap<Box<str>, Owner>,
}

impl Texts {
    pub(crate) fn text(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.texts.get(text) {
            return Arc::clone(known);
        }
        if self.texts.len() >= TEXTS_MAX {
            self.texts.clear();
        }
        let new: Arc<str> = text.into();
        self.texts.insert(Arc::clone(&new));
        new
    }

    pub(crate) fn owner(&mut self, text: &str) -> Result<Owner, NameError> {
        if let Some(known) = self.owners.get(text) {
            return Ok(known.clone());
        }
        if self.owners.len() >= TEXTS_MAX {
            self.owners.clear();
        }
        let new = Owner::parse(text)?;
        self.owners.insert(text.into(), new.clone());
        Ok(new)
    }
}
