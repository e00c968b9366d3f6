use std::borrow::Borrow;

use serde::de::{Deserialize, Deserializer, Error as _, SeqAccess, Visitor};
use serde_json::error::Category;
use serde_json::value::RawValue;

use super::{InvalidMessage, Message, RpcError, parse};

/// How many messages one batch may have.
pub const BATCH_MAX: usize = 100;

/// Whether the message starts like a batch.
pub fn is_batch(bytes: &[u8]) -> bool {
    bytes.trim_ascii_start().first() == Some(&b'[')
}

/// Reads each message of a batch by itself, so that a bad one does not affect the others. An empty batch is refused.
pub fn parse_batch(bytes: &[u8]) -> Result<Vec<Result<Message<'_>, InvalidMessage>>, InvalidMessage> {
    let without_id = |error| InvalidMessage { id: None, error };
    let json = std::str::from_utf8(bytes).map_err(|_| without_id(RpcError::parse("the message is not UTF-8")))?;
    let elements: Elements<'_> = serde_json::from_str(json).map_err(|error| {
        without_id(match error.classify() {
            // Only the limit is such an error: elements are read one by one below.
            Category::Data => RpcError::invalid_request(&format!("a batch has at most {BATCH_MAX} messages")),
            Category::Syntax | Category::Eof | Category::Io => RpcError::not_json(&error),
        })
    })?;
    if elements.0.is_empty() {
        return Err(without_id(RpcError::invalid_request("a batch must have at least one message")));
    }
    let nested = || without_id(RpcError::invalid_request("a batch contains messages, not batches"));
    let messages = elements.0.into_iter().map(|element| match element.get().as_bytes() {
        element if is_batch(element) => Err(nested()),
        element => parse(element),
    });
    Ok(messages.collect())
}

/// The responses to the requests of a batch as one message; `None` if there are none.
pub fn batch<T: Borrow<str>>(responses: &[T]) -> Option<String> {
    (!responses.is_empty()).then(|| format!("[{}]", responses.join(",")))
}

struct Elements<'a>(Vec<&'a RawValue>);

impl<'de: 'a, 'a> Deserialize<'de> for Elements<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct ElementsVisitor;

        impl<'de> Visitor<'de> for ElementsVisitor {
            type Value = Elements<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an array of messages")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut elements = Vec::new();
                while let Some(element) = seq.next_element::<&RawValue>()? {
                    if elements.len() == BATCH_MAX {
                        return Err(A::Error::custom("too many messages"));
                    }
                    elements.push(element);
                }
                Ok(Elements(elements))
            }
        }

        from.deserialize_seq(ElementsVisitor)
    }
}
