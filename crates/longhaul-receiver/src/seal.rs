//! Encrypts what clients keep for the server: the state of a call between two rounds, session tokens, cursors. A client
//! cannot read it, change it, or use it for another purpose.

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{KeyInit, XChaCha20Poly1305, XNonce};
use longhaul_engine::RandomSource;
use longhaul_task::{Json, Owner, TaskId, Timestamp};
use serde::{Deserialize, Serialize};

/// How long a client may take between two rounds of a call.
pub(crate) const STATE_MS_MAX: u64 = 60 * 60 * 1_000;

const NONCE_BYTES: usize = 24;

/// Seals and opens texts. The key is kept in the store, so every node and the next process can open what this one
/// sealed.
pub(crate) struct Seal {
    cipher: XChaCha20Poly1305,
}

/// The call that a sealed state is bound to. The state cannot be opened for another call.
pub(crate) struct CallBinding<'a> {
    pub(crate) owner: &'a Owner,
    pub(crate) tool: &'a str,
    pub(crate) arguments: &'a str,
}

/// The state of a call between two rounds.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct CallState {
    pub(crate) answers: HashMap<String, Json>,
    /// The ID of the task that the call will create. A client that repeats the last round because its response was lost
    /// finds this task instead of creating another.
    pub(crate) task_id: TaskId,
    expires_at: Timestamp,
}

impl CallState {
    pub(crate) fn new(answers: Vec<(String, Json)>, task_id: TaskId, now: Timestamp) -> Self {
        Self { answers: answers.into_iter().collect(), task_id, expires_at: now.plus_ms(STATE_MS_MAX) }
    }
}

impl Seal {
    pub(crate) fn new(key: &[u8; 32]) -> Self {
        Self { cipher: XChaCha20Poly1305::new(key.into()) }
    }

    /// Encrypts a text. Only [`open`](Self::open) with the same `binding` can read it.
    pub(crate) fn close(&self, binding: &[u8], plain: &[u8], random: &dyn RandomSource) -> Option<String> {
        let mut nonce = [0; NONCE_BYTES];
        nonce[..16].copy_from_slice(&random.bits());
        nonce[16..].copy_from_slice(&random.bits()[..8]);
        let sealed = self.cipher.encrypt(&XNonce::from(nonce), Payload { msg: plain, aad: binding }).ok()?;
        let mut bytes = nonce.to_vec();
        bytes.extend(sealed);
        Some(URL_SAFE_NO_PAD.encode(bytes))
    }

    /// Decrypts a sealed text. `None` if it was not sealed with this key and this `binding`.
    pub(crate) fn open(&self, binding: &[u8], text: impl AsRef<[u8]>) -> Option<Vec<u8>> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (nonce, sealed) = bytes.split_at_checked(NONCE_BYTES)?;
        let nonce: [u8; NONCE_BYTES] = nonce.try_into().ok()?;
        self.cipher.decrypt(&XNonce::from(nonce), Payload { msg: sealed, aad: binding }).ok()
    }

    pub(crate) fn close_state(
        &self,
        call: &CallBinding<'_>,
        state: &CallState,
        random: &dyn RandomSource,
    ) -> Option<String> {
        self.close(&call.bytes(), &serde_json::to_vec(state).ok()?, random)
    }

    /// Opens the state of a call. `None` if it was not sealed for this call, or has expired.
    pub(crate) fn open_state(&self, call: &CallBinding<'_>, text: &str, now: Timestamp) -> Option<CallState> {
        let state: CallState = serde_json::from_slice(&self.open(&call.bytes(), text)?).ok()?;
        (now < state.expires_at).then_some(state)
    }
}

impl CallBinding<'_> {
    fn bytes(&self) -> Vec<u8> {
        binding_of(&[self.owner.as_str(), self.tool, self.arguments])
    }
}

/// What a text is sealed for, as bytes. Each part is preceded by its length, so that different parts never give the
/// same bytes.
pub(crate) fn binding_of(parts: &[&str]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(64);
    for part in parts {
        bytes.extend((part.len() as u64).to_be_bytes());
        bytes.extend(part.as_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use longhaul_engine::SystemRandom;

    use super::*;

    const NOW: Timestamp = Timestamp::from_ms(1_000_000);

    fn sealed(seal: &Seal, owner: &Owner) -> String {
        let answers = vec![("name".to_owned(), Json::from_text("\"Ada\""))];
        let call = CallBinding { owner, tool: "greet", arguments: "{}" };
        let state = CallState::new(answers, TaskId::mint(NOW, [7; 16]), NOW);
        seal.close_state(&call, &state, &SystemRandom).unwrap()
    }

    #[test]
    fn a_state_opens_for_no_other_owner_tool_or_arguments() {
        let (seal, ada, bob) = (Seal::new(&[1; 32]), Owner::parse("ada").unwrap(), Owner::parse("bob").unwrap());
        let text = sealed(&seal, &ada);
        for call in [
            CallBinding { owner: &bob, tool: "greet", arguments: "{}" },
            CallBinding { owner: &ada, tool: "other", arguments: "{}" },
            CallBinding { owner: &ada, tool: "greet", arguments: "{\"x\":1}" },
        ] {
            assert!(seal.open_state(&call, &text, NOW).is_none());
        }
        let call = CallBinding { owner: &ada, tool: "greet", arguments: "{}" };
        assert!(Seal::new(&[2; 32]).open_state(&call, &text, NOW).is_none(), "another key");
    }

    #[test]
    fn a_state_that_was_changed_does_not_open() {
        let (seal, ada) = (Seal::new(&[1; 32]), Owner::parse("ada").unwrap());
        let text = sealed(&seal, &ada);
        let call = CallBinding { owner: &ada, tool: "greet", arguments: "{}" };
        assert!(seal.open_state(&call, &format!("{text}-TAMPERED"), NOW).is_none());
        assert!(seal.open_state(&call, "", NOW).is_none());
        for index in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[index] = if bytes[index] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(bytes).unwrap();
            assert!(seal.open_state(&call, &changed, NOW).is_none(), "at {index}");
        }
    }
}
