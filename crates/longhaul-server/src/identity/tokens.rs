//! Bearer tokens and their owners.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt::Write as _;
use std::sync::Arc;

use longhaul_receiver::Caller;
use longhaul_task::{NameError, Owner};
use sha2::{Digest, Sha256};

use super::{ANONYMOUS, Credentials, Identify, LOCAL, NotIdentified};

/// The bearer tokens of a server, as hashes, so that the token file does not reveal them. An owner may have several.
#[derive(Debug, Default)]
pub struct Tokens {
    by_hash: HashMap<[u8; 32], Arc<Caller>>,
}

/// Why the text of a token file is not valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    #[error("line {0} must be an owner's name, a space, and the SHA-256 of a token in hex")]
    Line(usize),
    #[error("line {0} is not UTF-8")]
    NotText(usize),
    #[error("line {0}: the owner's name cannot be used: {1}")]
    Owner(usize, NameError),
    #[error("line {0}: {1:?} is reserved for callers without a token; give this owner another name")]
    Reserved(usize, Owner),
    /// Two lines have the same token for different owners.
    #[error("line {0}: this token belongs to {1} already")]
    Twice(usize, Owner),
}

impl Tokens {
    /// Reads lines of `OWNER SHA256`. Empty lines and those that begin with `#` are ignored.
    pub fn parse(text: &str) -> Result<Self, TokenError> {
        let mut tokens = Self::default();
        for (number, line) in (1..).zip(text.lines()) {
            let Some((owner, hash)) = parse_line(number, line)? else { continue };
            match tokens.by_hash.entry(hash) {
                Entry::Vacant(entry) => {
                    entry.insert(Arc::new(Caller::known(owner)));
                }
                Entry::Occupied(entry) if entry.get().owner == owner => {}
                Entry::Occupied(entry) => return Err(TokenError::Twice(number, entry.get().owner.clone())),
            }
        }
        Ok(tokens)
    }

    pub(super) fn parse_bytes(bytes: &[u8]) -> Result<Self, TokenError> {
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let valid = &bytes[..error.valid_up_to()];
            TokenError::NotText(valid.split(|byte| *byte == b'\n').count())
        })?;
        Self::parse(text)
    }

    /// The text of a token file without the lines of this owner, and how many they were.
    pub fn without(text: &str, owner: &Owner) -> Result<(String, usize), TokenError> {
        let (mut kept, mut removed) = (String::with_capacity(text.len()), 0);
        for (number, line) in (1..).zip(text.split_inclusive('\n')) {
            match parse_line(number, line)? {
                Some((of, _)) if of == *owner => removed += 1,
                _ => kept.push_str(line),
            }
        }
        Ok((kept, removed))
    }

    /// The line of a token file for this token.
    pub fn line(owner: &Owner, token: &str) -> String {
        let mut line = format!("{owner} ");
        for byte in hash(token.as_bytes()) {
            // Writing to a string does not fail.
            let _ = write!(line, "{byte:02x}");
        }
        line
    }

    /// Whether a name is reserved for callers without a token: `local` or `anonymous`.
    pub fn is_reserved(owner: &Owner) -> bool {
        [LOCAL, ANONYMOUS].contains(&owner.as_str())
    }

    pub fn is_empty(&self) -> bool {
        self.by_hash.is_empty()
    }

    pub fn len(&self) -> usize {
        self.by_hash.len()
    }

    /// Replaces the tokens. A token that keeps its owner keeps its `Caller`, so its connections go on. Returns how many tokens
    /// are new or have another owner, and the callers whose right to call has ended.
    pub(super) fn replace(&mut self, mut replacement: Self) -> (usize, Vec<Arc<Caller>>) {
        let mut changed = 0;
        for (hash, caller) in &mut replacement.by_hash {
            match self.by_hash.get(hash) {
                Some(before) if before.owner == caller.owner => *caller = Arc::clone(before),
                _ => changed += 1,
            }
        }
        let before = std::mem::replace(self, replacement);
        let is_kept =
            |hash: &[u8; 32], caller: &Arc<Caller>| self.by_hash.get(hash).is_some_and(|now| Arc::ptr_eq(now, caller));
        let ended = before.by_hash.iter().filter(|(hash, caller)| !is_kept(hash, caller));
        (changed, ended.map(|(_, caller)| Arc::clone(caller)).collect())
    }

    pub(super) fn find(&self, hash: &[u8; 32]) -> Result<Arc<Caller>, NotIdentified> {
        self.by_hash.get(hash).map(Arc::clone).ok_or(NotIdentified::Unknown)
    }
}

impl Identify for Tokens {
    fn identify(&self, request: &Credentials<'_>) -> Result<Arc<Caller>, NotIdentified> {
        self.find(&hash(request.bearer().ok_or(NotIdentified::Missing)?))
    }
}

/// The owner and the hash of a line. `None` for an empty line and a comment.
fn parse_line(number: usize, line: &str) -> Result<Option<(Owner, [u8; 32])>, TokenError> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let (owner, hash) = line.rsplit_once(char::is_whitespace).ok_or(TokenError::Line(number))?;
    let owner = Owner::parse(owner.trim()).map_err(|error| TokenError::Owner(number, error))?;
    if Tokens::is_reserved(&owner) {
        return Err(TokenError::Reserved(number, owner));
    }
    let hash = from_hex(hash).ok_or(TokenError::Line(number))?;
    Ok(Some((owner, hash)))
}

pub(super) fn hash(token: &[u8]) -> [u8; 32] {
    Sha256::digest(token).into()
}

fn from_hex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * index..2 * index + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use hyper::header::{AUTHORIZATION, HeaderMap, HeaderValue};

    use super::*;

    fn owner(name: &str) -> Owner {
        Owner::parse(name).unwrap()
    }

    fn line(name: &str, token: &str) -> String {
        Tokens::line(&owner(name), token)
    }

    fn identified(tokens: &Tokens, values: &[&'static str]) -> Result<String, NotIdentified> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, HeaderValue::from_static(value));
        }
        tokens.identify(&Credentials::from_headers(&headers)).map(|caller| caller.owner.to_string())
    }

    #[test]
    fn a_token_identifies_its_owner() {
        let file = format!("# the first one\n\n{}\n{}\n", line("ada", "secret"), line("ada", "her second"));
        assert!(!file.contains("secret"));
        let tokens = Tokens::parse(&file).unwrap();
        assert_eq!(identified(&tokens, &["Bearer secret"]), Ok("ada".into()));
        assert_eq!(identified(&tokens, &["bearer  her second"]), Ok("ada".into()));
        assert_eq!(identified(&tokens, &["Bearer other"]), Err(NotIdentified::Unknown));
        assert_eq!(identified(&tokens, &["Basic secret"]), Err(NotIdentified::Missing));
        assert_eq!(identified(&tokens, &[]), Err(NotIdentified::Missing));
        assert_eq!(identified(&tokens, &["Bearer other", "Bearer secret"]), Err(NotIdentified::Missing));
    }

    #[test]
    fn an_invalid_line_is_named_in_the_error() {
        let error_for = |text: &str| Tokens::parse(text).unwrap_err();
        assert_eq!(error_for("ada"), TokenError::Line(1));
        assert_eq!(error_for("\nada 12"), TokenError::Line(2));
        assert_eq!(error_for(&format!("ada {}", "é".repeat(32))), TokenError::Line(1));
        assert_eq!(error_for(&format!("ada {}", "+f".repeat(32))), TokenError::Line(1));
        assert_eq!(Tokens::parse_bytes(b"# 1\n# 2\nada \xff\n").unwrap_err(), TokenError::NotText(3));
        for name in ["local", "anonymous"] {
            assert_eq!(error_for(&format!("#\n{}", line(name, "x"))), TokenError::Reserved(2, owner(name)));
        }
        let two = format!("{}\n{}\n{}", line("ada", "x"), line("ada", "x"), line("bob", "x"));
        assert_eq!(error_for(&two), TokenError::Twice(3, owner("ada")));
    }

    #[test]
    fn a_token_that_is_removed_or_changes_its_owner_ends_its_caller() {
        let mut tokens = Tokens::parse(&[line("ada", "a"), line("bob", "b"), line("eve", "e")].join("\n")).unwrap();
        let [ada, bob, eve] = ["a", "b", "e"].map(|token| tokens.find(&hash(token.as_bytes())).unwrap());
        let replacement = Tokens::parse(&[line("ada", "a"), line("ada", "b"), line("dan", "d")].join("\n")).unwrap();
        let (changed, mut ended) = tokens.replace(replacement);
        ended.sort_by(|one, other| one.owner.cmp(&other.owner));
        assert_eq!(changed, 2);
        assert!(Arc::ptr_eq(&tokens.find(&hash(b"a")).unwrap(), &ada));
        assert!(ended.len() == 2 && Arc::ptr_eq(&ended[0], &bob) && Arc::ptr_eq(&ended[1], &eve));
        assert_eq!(tokens.find(&hash(b"b")).unwrap().owner, owner("ada"));
        assert_eq!(tokens.find(&hash(b"e")).unwrap_err(), NotIdentified::Unknown);
    }
}
