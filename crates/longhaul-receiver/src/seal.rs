//! What a client keeps for us between two rounds of a call, so that nobody can change it, read it, or use it
//! elsewhere.

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{KeyInit, XChaCha20Poly1305, XNonce};
use longhaul_engine::Chance;
use longhaul_task::{Json, Owner, TaskId, Timestamp};
use serde::{Deserialize, Serialize};

/// How long a client may take between two rounds.
pub(crate) const STATE_MS_MAX: u64 = 60 * 60 * 1_000;

const NONCE_BYTES: usize = 24;

/// Seals and opens request states with a key that the store keeps, so that any node, after any restart, can.
pub(crate) struct Seal {
    cipher: XChaCha20Poly1305,
}

/// Which call a state belongs to. It opens for no other.
pub(crate) struct CallOf<'a> {
    pub(crate) owner: &'a Owner,
    pub(crate) tool: &'a str,
    pub(crate) arguments: &'a str,
}

/// What a call has behind it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct State {
    pub(crate) answered: HashMap<String, Json>,
    /// The ID of the task that the call becomes, if it becomes one: whoever sends the last round again, because its
    /// answer was lost, finds that task instead of making another.
    pub(crate) task_id: TaskId,
    expires_at: Timestamp,
}

impl State {
    /// What will be true after this round.
    pub(crate) fn new(answered: Vec<(String, Json)>, task_id: TaskId, now: Timestamp) -> Self {
        Self { answered: answered.into_iter().collect(), task_id, expires_at: now.plus_ms(STATE_MS_MAX) }
    }
}

impl Seal {
    pub(crate) fn new(key: &[u8; 32]) -> Self {
        Self { cipher: XChaCha20Poly1305::new(key.into()) }
    }

    pub(crate) fn close(&self, call: &CallOf<'_>, state: &State, chance: &dyn Chance) -> Option<String> {
        let mut nonce = [0; NONCE_BYTES];
        nonce[..16].copy_from_slice(&chance.bits());
        nonce[16..].copy_from_slice(&chance.bits()[..8]);
        let plain = serde_json::to_vec(state).ok()?;
        let bound = call.bytes();
        let sealed = self.cipher.encrypt(&XNonce::from(nonce), Payload { msg: &plain, aad: &bound }).ok()?;
        let mut bytes = nonce.to_vec();
        bytes.extend(sealed);
        Some(URL_SAFE_NO_PAD.encode(bytes))
    }

    /// What earlier rounds of this very call led to; `None` for anything that we did not seal for it, or too long ago.
    pub(crate) fn open(&self, call: &CallOf<'_>, text: &str, now: Timestamp) -> Option<State> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (nonce, sealed) = bytes.split_at_checked(NONCE_BYTES)?;
        let nonce: [u8; NONCE_BYTES] = nonce.try_into().ok()?;
        let bound = call.bytes();
        let plain = self.cipher.decrypt(&XNonce::from(nonce), Payload { msg: sealed, aad: &bound }).ok()?;
        let state: State = serde_json::from_slice(&plain).ok()?;
        (now < state.expires_at).then_some(state)
    }
}

impl CallOf<'_> {
    /// The call in bytes that no other call has: lengths keep the parts apart.
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(64 + self.arguments.len());
        for part in [self.owner.as_str(), self.tool, self.arguments] {
            bytes.extend((part.len() as u64).to_be_bytes());
            bytes.extend(part.as_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use longhaul_engine::SystemChance;

    use super::*;

    const NOW: Timestamp = Timestamp::from_ms(1_000_000);

    fn sealed(seal: &Seal, owner: &Owner) -> String {
        let answered = vec![("name".to_owned(), Json::from_text("\"Ada\""))];
        let call = CallOf { owner, tool: "greet", arguments: "{}" };
        let state = State::new(answered, TaskId::mint(NOW, [7; 16]), NOW);
        seal.close(&call, &state, &SystemChance).unwrap()
    }

    #[test]
    fn a_state_opens_for_its_own_call_until_it_expires() {
        let (seal, ada) = (Seal::new(&[1; 32]), Owner::parse("ada").unwrap());
        let text = sealed(&seal, &ada);
        let call = CallOf { owner: &ada, tool: "greet", arguments: "{}" };
        let state = seal.open(&call, &text, NOW.plus_ms(STATE_MS_MAX - 1)).unwrap();
        assert_eq!((state.answered["name"].as_str(), state.task_id), ("\"Ada\"", TaskId::mint(NOW, [7; 16])));
        assert!(seal.open(&call, &text, NOW.plus_ms(STATE_MS_MAX)).is_none());
    }

    #[test]
    fn a_state_opens_for_nobody_else_and_for_nothing_else() {
        let (seal, ada, bob) = (Seal::new(&[1; 32]), Owner::parse("ada").unwrap(), Owner::parse("bob").unwrap());
        let text = sealed(&seal, &ada);
        for call in [
            CallOf { owner: &bob, tool: "greet", arguments: "{}" },
            CallOf { owner: &ada, tool: "other", arguments: "{}" },
            CallOf { owner: &ada, tool: "greet", arguments: "{\"x\":1}" },
        ] {
            assert!(seal.open(&call, &text, NOW).is_none());
        }
        let call = CallOf { owner: &ada, tool: "greet", arguments: "{}" };
        assert!(Seal::new(&[2; 32]).open(&call, &text, NOW).is_none(), "another key");
    }

    #[test]
    fn a_state_that_was_touched_does_not_open() {
        let (seal, ada) = (Seal::new(&[1; 32]), Owner::parse("ada").unwrap());
        let text = sealed(&seal, &ada);
        let call = CallOf { owner: &ada, tool: "greet", arguments: "{}" };
        assert!(seal.open(&call, &format!("{text}-TAMPERED"), NOW).is_none());
        assert!(seal.open(&call, "", NOW).is_none());
        for place in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[place] = if bytes[place] == b'A' { b'B' } else { b'A' };
            let touched = String::from_utf8(bytes).unwrap();
            assert!(seal.open(&call, &touched, NOW).is_none(), "at {place}");
        }
    }
}
