use hyper::header::{HeaderMap, HeaderName};
use longhaul_wire::{HeaderValue, Headers};

/// The headers of a request, for the wire's rules about them.
pub(super) struct RequestHeaders<'a>(pub(super) &'a HeaderMap);

/// The headers that every request has, under names that need no parsing.
static KNOWN: [HeaderName; 3] = [
    HeaderName::from_static("mcp-protocol-version"),
    HeaderName::from_static("mcp-method"),
    HeaderName::from_static("mcp-name"),
];

impl Headers for RequestHeaders<'_> {
    fn value(&self, name: &str) -> HeaderValue<'_> {
        let known = KNOWN.iter().find(|known| known.as_str() == name);
        let mut values = match known {
            Some(known) => self.0.get_all(known).iter(),
            None => self.0.get_all(name).iter(),
        };
        match (values.next(), values.next()) {
            (None, _) => HeaderValue::Absent,
            (Some(value), None) => HeaderValue::Once(value.as_bytes()),
            (Some(_), Some(_)) => HeaderValue::Repeated,
        }
    }
}
