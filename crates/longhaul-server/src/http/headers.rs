use axum::http::HeaderMap;
use longhaul_wire::ext2026::{HeaderValue, Headers};

/// The headers of a request, for the wire's rules about them.
pub(super) struct RequestHeaders<'a>(pub(super) &'a HeaderMap);

impl Headers for RequestHeaders<'_> {
    fn value(&self, name: &str) -> HeaderValue<'_> {
        let mut values = self.0.get_all(name).iter();
        match (values.next(), values.next()) {
            (None, _) => HeaderValue::Absent,
            (Some(value), None) => HeaderValue::Once(value.as_bytes()),
            (Some(_), Some(_)) => HeaderValue::Repeated,
        }
    }
}
