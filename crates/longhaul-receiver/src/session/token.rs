//! The token of a session: the `Mcp-Session-Id`, sealed for one owner. It holds everything that another node, or the
//! next process, needs to continue the session. It grants no rights: the owner comes from each request's identity.

use longhaul_engine::RandomSource;
use longhaul_task::{Owner, Timestamp};
use longhaul_wire::{Capabilities, Peer, Revision};

use crate::seal::{Seal, binding_of};

/// How long a session lasts from its handshake: one week.
pub(crate) const SESSION_MS_MAX: u64 = 7 * 24 * 60 * 60 * 1_000;

const VERSION: u8 = 1;

pub(crate) type SessionId = [u8; 16];

/// The content of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SessionClaims {
    pub(crate) id: SessionId,
    pub(crate) peer: Peer,
    pub(crate) expires_at: Timestamp,
}

impl SessionClaims {
    pub(crate) fn new(peer: Peer, now: Timestamp, random: &dyn RandomSource) -> Self {
        Self { id: random.bits(), peer, expires_at: now.plus_ms(SESSION_MS_MAX) }
    }

    pub(crate) fn seal(&self, owner: &Owner, seal: &Seal, random: &dyn RandomSource) -> Option<String> {
        let revision = Revision::SESSIONS.iter().position(|revision| *revision == self.peer.revision)?;
        // Counted from the oldest revision, so that adding a newer one leaves existing tokens valid.
        let revision = u8::try_from(Revision::SESSIONS.len() - revision).ok()?;
        let mut plain = vec![VERSION, revision];
        plain.extend(self.peer.capabilities.bits().to_be_bytes());
        plain.extend(self.id);
        plain.extend(self.expires_at.as_ms().to_be_bytes());
        seal.close(&binding(owner), &plain, random)
    }

    /// Opens a token. `None` if it was not made for this owner or has expired.
    pub(crate) fn open(token: &[u8], owner: &Owner, seal: &Seal, now: Timestamp) -> Option<Self> {
        let plain = seal.open(&binding(owner), token)?;
        let [VERSION, revision, high, low, rest @ ..] = plain.as_slice() else { return None };
        let revision = Revision::SESSIONS.len().checked_sub(usize::from(*revision))?;
        let capabilities = Capabilities::from_bits(u16::from_be_bytes([*high, *low]));
        let (id, expires_at) = rest.split_first_chunk::<16>()?;
        let expires_at = Timestamp::from_ms(u64::from_be_bytes(expires_at.try_into().ok()?));
        let peer = Peer { revision: *Revision::SESSIONS.get(revision)?, capabilities };
        (now < expires_at).then_some(Self { id: *id, peer, expires_at })
    }
}

fn binding(owner: &Owner) -> Vec<u8> {
    binding_of(&["session", owner.as_str()])
}

#[cfg(test)]
mod tests {
    use longhaul_engine::SystemRandom;

    use super::*;

    const NOW: Timestamp = Timestamp::from_ms(1_000_000);

    #[test]
    fn a_token_opens_only_for_its_owner_and_until_it_expires() {
        let (seal, ada, bob) = (Seal::new(&[1; 32]), Owner::parse("ada").unwrap(), Owner::parse("bob").unwrap());
        for revision in Revision::SESSIONS {
            let peer = Peer { revision, capabilities: Capabilities::from_bits(0b101) };
            let claims = SessionClaims::new(peer, NOW, &SystemRandom);
            let token = claims.seal(&ada, &seal, &SystemRandom).unwrap();
            assert!(token.bytes().all(|byte| byte.is_ascii_graphic()));
            let open = |owner, now| SessionClaims::open(token.as_bytes(), owner, &seal, now);
            assert_eq!(open(&ada, NOW.plus_ms(SESSION_MS_MAX - 1)), Some(claims));
            assert_eq!(open(&ada, NOW.plus_ms(SESSION_MS_MAX)), None);
            assert_eq!(open(&bob, NOW), None);
            assert_eq!(SessionClaims::open(&token.as_bytes()[1..], &ada, &seal, NOW), None);
            assert_eq!(SessionClaims::open(token.as_bytes(), &ada, &Seal::new(&[2; 32]), NOW), None);
        }
    }
}
