//! Who is calling.

use std::collections::HashMap;
use std::fmt::Write as _;

use longhaul_task::{NameError, Owner};
use sha2::{Digest, Sha256};

/// How callers are told apart.
#[derive(Debug)]
pub enum Identity {
    /// Everybody is the same owner: for a server that only this machine can reach.
    Everyone(Owner),
    /// By bearer token.
    Tokens(Tokens),
}

/// Why a caller could not be told from anybody else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotIdentified {
    /// No token came with the request.
    #[error("this server needs a bearer token")]
    Missing,
    /// The token is not one of ours.
    #[error("this bearer token is not known here")]
    Unknown,
}

impl Identity {
    /// The owner behind an `Authorization` header.
    pub fn owner(&self, authorization: Option<&[u8]>) -> Result<Owner, NotIdentified> {
        match self {
            Self::Everyone(owner) => Ok(owner.clone()),
            Self::Tokens(tokens) => {
                let token = authorization.and_then(bearer).ok_or(NotIdentified::Missing)?;
                tokens.owner(token).cloned().ok_or(NotIdentified::Unknown)
            }
        }
    }
}

impl Identity {
    /// Whether callers can be told from each other: only then does listing tasks tell nobody about somebody else.
    pub fn tells_apart(&self) -> bool {
        matches!(self, Self::Tokens(_))
    }
}

fn bearer(authorization: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = authorization.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}

/// Tokens by their hash: a file that somebody reads gives nobody away.
#[derive(Debug, Default)]
pub struct Tokens {
    by_hash: HashMap<[u8; 32], Owner>,
}

/// Why a token file cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// A line is not `OWNER SHA256`.
    #[error("line {0} must be an owner's name, a space, and the SHA-256 of a token in hex")]
    Line(usize),
    /// A name cannot be one.
    #[error("line {0}: {1}")]
    Owner(usize, NameError),
}

impl Tokens {
    /// Reads lines of `OWNER SHA256`. Empty ones and those that begin with `#` are passed over.
    pub fn parse(text: &str) -> Result<Self, TokenError> {
        let mut tokens = Self::default();
        for (place, line) in text.lines().enumerate().map(|(place, line)| (place + 1, line.trim())) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (owner, hash) = line.rsplit_once(char::is_whitespace).ok_or(TokenError::Line(place))?;
            let owner = Owner::parse(owner.trim()).map_err(|error| TokenError::Owner(place, error))?;
            tokens.by_hash.insert(from_hex(hash).ok_or(TokenError::Line(place))?, owner);
        }
        Ok(tokens)
    }

    /// The line that stands for a token.
    pub fn line(owner: &Owner, token: &str) -> String {
        let mut line = format!("{owner} ");
        for byte in hash(token.as_bytes()) {
            // Writing to a string does not fail.
            let _ = write!(line, "{byte:02x}");
        }
        line
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.by_hash.is_empty()
    }

    fn owner(&self, token: &[u8]) -> Option<&Owner> {
        self.by_hash.get(&hash(token))
    }
}

fn hash(token: &[u8]) -> [u8; 32] {
    Sha256::digest(token).into()
}

fn from_hex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (place, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * place..2 * place + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_names_its_owner_and_no_other_does() {
        let ada = Owner::parse("ada").unwrap();
        let file = format!("# the first one\n\n{}\n", Tokens::line(&ada, "secret"));
        assert!(!file.contains("secret"));
        let identity = Identity::Tokens(Tokens::parse(&file).unwrap());
        assert_eq!(identity.owner(Some(b"Bearer secret")), Ok(ada.clone()));
        assert_eq!(identity.owner(Some(b"bearer  secret")), Ok(ada));
        assert_eq!(identity.owner(Some(b"Bearer other")), Err(NotIdentified::Unknown));
        assert_eq!(identity.owner(Some(b"Basic secret")), Err(NotIdentified::Missing));
        assert_eq!(identity.owner(None), Err(NotIdentified::Missing));
    }

    #[test]
    fn a_line_that_is_none_is_named() {
        assert_eq!(Tokens::parse("ada").unwrap_err(), TokenError::Line(1));
        assert_eq!(Tokens::parse("\nada 12").unwrap_err(), TokenError::Line(2));
        assert_eq!(Tokens::parse(&format!("ada {}", "é".repeat(32))).unwrap_err(), TokenError::Line(1));
    }
}
