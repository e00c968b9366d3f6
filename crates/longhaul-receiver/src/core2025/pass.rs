//! A session's token: everything that any node, after any restart, needs to know of it. It gives no rights: who is
//! calling comes from the request, and must be whom the session is for.

use longhaul_engine::Chance;
use longhaul_task::{Owner, Timestamp};
use longhaul_wire::Capabilities;
use longhaul_wire::core2025::{Peer, Revision};

use crate::seal::{Seal, bound};

/// How long a session lasts from its handshake: a week.
pub const SESSION_MS_MAX: u64 = 7 * 24 * 60 * 60 * 1_000;

const VERSION: u8 = 1;

/// The name of a session.
pub type SessionId = [u8; 16];

/// What a token says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pass {
    /// Which session.
    pub id: SessionId,
    /// With whom.
    pub peer: Peer,
    /// Until when.
    pub expires_at: Timestamp,
}

impl Pass {
    /// A pass for a new session.
    pub(crate) fn new(peer: Peer, now: Timestamp, chance: &dyn Chance) -> Self {
        Self { id: chance.bits(), peer, expires_at: now.plus_ms(SESSION_MS_MAX) }
    }

    /// The token for it.
    pub(crate) fn seal(&self, owner: &Owner, seal: &Seal, chance: &dyn Chance) -> Option<String> {
        let revision = Revision::ALL.iter().position(|revision| *revision == self.peer.revision)?;
        // Counted from the oldest, so that a new revision at the front changes no token that is out.
        let revision = u8::try_from(Revision::ALL.len() - revision).ok()?;
        let mut plain = vec![VERSION, revision];
        plain.extend(self.peer.capabilities.bits().to_be_bytes());
        plain.extend(self.id);
        plain.extend(self.expires_at.as_ms().to_be_bytes());
        seal.close(&place(owner), &plain, chance)
    }

    /// What a token says; `None` for one that was never given to this owner, or is too old.
    pub(crate) fn open(token: &[u8], owner: &Owner, seal: &Seal, now: Timestamp) -> Option<Self> {
        let plain = seal.open(&place(owner), token)?;
        let [VERSION, revision, high, low, rest @ ..] = plain.as_slice() else { return None };
        let revision = Revision::ALL.len().checked_sub(usize::from(*revision))?;
        let capabilities = Capabilities::from_bits(u16::from_be_bytes([*high, *low]));
        let (id, expires_at) = rest.split_first_chunk::<16>()?;
        let expires_at = Timestamp::from_ms(u64::from_be_bytes(expires_at.try_into().ok()?));
        let peer = Peer { revision: *Revision::ALL.get(revision)?, capabilities };
        (now < expires_at).then_some(Self { id: *id, peer, expires_at })
    }
}

fn place(owner: &Owner) -> Vec<u8> {
    bound(&["session", owner.as_str()])
}

#[cfg(test)]
mod tests {
    use longhaul_engine::SystemChance;

    use super::*;

    const NOW: Timestamp = Timestamp::from_ms(1_000_000);

    #[test]
    fn a_token_opens_for_its_owner_until_it_expires_and_for_nobody_else() {
        let (seal, ada, bob) = (Seal::new(&[1; 32]), Owner::parse("ada").unwrap(), Owner::parse("bob").unwrap());
        for revision in Revision::ALL {
            let peer = Peer { revision, capabilities: Capabilities::from_bits(0b101) };
            let pass = Pass::new(peer, NOW, &SystemChance);
            let token = pass.seal(&ada, &seal, &SystemChance).unwrap();
            assert!(token.bytes().all(|byte| byte.is_ascii_graphic()));
            let open = |owner, now| Pass::open(token.as_bytes(), owner, &seal, now);
            assert_eq!(open(&ada, NOW.plus_ms(SESSION_MS_MAX - 1)), Some(pass));
            assert_eq!(open(&ada, NOW.plus_ms(SESSION_MS_MAX)), None);
            assert_eq!(open(&bob, NOW), None);
            assert_eq!(Pass::open(&token.as_bytes()[1..], &ada, &seal, NOW), None);
            assert_eq!(Pass::open(token.as_bytes(), &ada, &Seal::new(&[2; 32]), NOW), None);
        }
    }
}
