/// The value of one header field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeaderValue<'a> {
    /// It was not sent.
    Absent,
    /// What was sent.
    Once(&'a [u8]),
    /// It was sent several times: what stands between may have read another one than we would.
    Repeated,
}

/// The headers of an HTTP request, whoever parsed them.
pub trait Headers {
    /// The value of a field, by its name in lower case.
    fn value(&self, name: &str) -> HeaderValue<'_>;
}

/// Names and values, as in tests and small hosts.
impl Headers for &[(&str, &str)] {
    fn value(&self, name: &str) -> HeaderValue<'_> {
        let mut sent = self.iter().filter(|(sent, _)| sent.eq_ignore_ascii_case(name));
        match (sent.next(), sent.next()) {
            (None, _) => HeaderValue::Absent,
            (Some((_, value)), None) => HeaderValue::Once(value.as_bytes()),
            (Some(_), Some(_)) => HeaderValue::Repeated,
        }
    }
}
