use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// Entries of one kind, by name and in the order in which they were added.
#[derive(Debug)]
pub(crate) struct Entries<T> {
    /// The place of an entry never changes, so that it can be a cursor: entries that are added or removed between two pages
    /// neither repeat nor hide others.
    by_place: BTreeMap<u64, Arc<T>>,
    places: HashMap<Arc<str>, u64>,
    next_place: u64,
}

impl<T> Default for Entries<T> {
    fn default() -> Self {
        Self { by_place: BTreeMap::new(), places: HashMap::new(), next_place: 0 }
    }
}

impl<T> Clone for Entries<T> {
    fn clone(&self) -> Self {
        Self { by_place: self.by_place.clone(), places: self.places.clone(), next_place: self.next_place }
    }
}

/// One page of entries.
pub(crate) struct EntryPage<'a, T> {
    pub(crate) entries: Vec<&'a T>,
    pub(crate) next_cursor: Option<String>,
}

impl<T> Entries<T> {
    /// Adds an entry, or puts it into the place of the one of its name, which is returned.
    pub(super) fn put(&mut self, name: Arc<str>, entry: Arc<T>) -> Option<Arc<T>> {
        let place = *self.places.entry(name).or_insert_with(|| {
            self.next_place += 1;
            self.next_place
        });
        self.by_place.insert(place, entry)
    }

    pub(super) fn remove(&mut self, name: &str) -> Option<Arc<T>> {
        self.by_place.remove(&self.places.remove(name)?)
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Arc<T>> {
        self.by_place.get(self.places.get(name)?)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<T>> {
        self.by_place.values()
    }

    /// The page after a cursor; `None` if the cursor is not one of this list. `list` names the list in its cursors.
    pub(crate) fn page(&self, list: &str, cursor: Option<&str>, entries_max: usize) -> Option<EntryPage<'_, T>> {
        let after = match cursor {
            None => 0,
            Some(cursor) => {
                let bytes = URL_SAFE_NO_PAD.decode(cursor).ok()?;
                let (named, place) = std::str::from_utf8(&bytes).ok()?.split_once(' ')?;
                place.parse().ok().filter(|place| named == list && *place < u64::MAX)?
            }
        };
        let mut rest = self.by_place.range(after + 1..);
        let shown: Vec<_> = rest.by_ref().take(entries_max.max(1)).collect();
        let last = shown.last().map(|(place, _)| **place).filter(|_| rest.next().is_some());
        Some(EntryPage {
            entries: shown.into_iter().map(|(_, entry)| &**entry).collect(),
            next_cursor: last.map(|place| URL_SAFE_NO_PAD.encode(format!("{list} {place}"))),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(names: &[&str]) -> Entries<String> {
        let mut entries = Entries::default();
        for name in names {
            entries.put((*name).into(), Arc::new((*name).to_owned()));
        }
        entries
    }

    #[test]
    fn pages_neither_repeat_nor_hide_what_stays() {
        let mut entries = entries(&["a", "b", "c", "d", "e"]);
        let first = entries.page("l", None, 2).unwrap();
        assert_eq!(first.entries, ["a", "b"]);
        let cursor = first.next_cursor.unwrap();
        entries.remove("b");
        entries.put("f".into(), Arc::new("f".into()));
        let second = entries.page("l", Some(&cursor), 2).unwrap();
        assert_eq!(second.entries, ["c", "d"]);
        let last = entries.page("l", second.next_cursor.as_deref(), 2).unwrap();
        assert_eq!((last.entries, last.next_cursor), (vec![&"e".to_owned(), &"f".to_owned()], None));
    }

    #[test]
    fn a_replaced_entry_keeps_its_place() {
        let mut entries = entries(&["a", "b"]);
        assert_eq!(*entries.put("a".into(), Arc::new("new".into())).unwrap(), "a");
        assert_eq!(entries.page("l", None, 9).unwrap().entries, ["new", "b"]);
    }

    #[test]
    fn only_cursors_of_the_same_list_are_taken() {
        let entries = entries(&["a", "b"]);
        let cursor = entries.page("l", None, 1).unwrap().next_cursor.unwrap();
        assert!(entries.page("l", Some(&cursor), 1).is_some());
        let huge = URL_SAFE_NO_PAD.encode(format!("l {}", u64::MAX));
        for wrong in ["", "x", "!", &huge, &URL_SAFE_NO_PAD.encode("m 1"), &URL_SAFE_NO_PAD.encode("l -1")] {
            assert!(entries.page("l", Some(wrong), 1).is_none(), "{wrong}");
        }
    }
}
