//! Protection against web pages that send requests to servers on their visitors' machines (DNS rebinding).

use hyper::Uri;
use hyper::header::{self, HeaderMap};

/// Which `Host` and `Origin` headers are accepted.
#[derive(Debug, Clone)]
pub struct Guard {
    /// Accept only names of this machine as the host. Without tokens, the name is the only difference between a local client
    /// and a web page whose name resolves to this machine.
    pub loopback_only: bool,
    /// Accepted origins beside the server's own.
    pub origins: Vec<String>,
}

impl Guard {
    pub(super) fn check(&self, headers: &HeaderMap) -> Result<(), &'static str> {
        // If the header is repeated, a proxy may have checked another of its values.
        let mut hosts = headers.get_all(header::HOST).iter();
        let (Some(Ok(host)), None) = (hosts.next().map(|value| value.to_str()), hosts.next()) else {
            return Err("a request needs one Host header");
        };
        if self.loopback_only && !is_loopback(host_name(host)) {
            return Err("this server only answers to names of this machine");
        }
        for origin in headers.get_all(header::ORIGIN) {
            let origin = origin.to_str().map_err(|_| "the Origin header is not a URL")?;
            if !self.accepts(origin, host) {
                return Err("requests from this origin are not accepted");
            }
        }
        Ok(())
    }

    fn accepts(&self, origin: &str, host: &str) -> bool {
        if self.origins.iter().any(|known| known == origin) {
            return true;
        }
        let Some(authority) = origin.parse::<Uri>().ok().and_then(|uri| uri.authority().cloned()) else {
            return false;
        };
        if self.loopback_only { is_loopback(authority.host()) } else { authority.as_str() == host }
    }
}

/// The name in `name:port` or `name`.
fn host_name(host: &str) -> &str {
    if let Some((address, _)) = host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return address;
    }
    host.rsplit_once(':').map_or(host, |(name, _)| name)
}

fn is_loopback(name: &str) -> bool {
    let name = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(guard: &Guard, host: &str, origin: Option<&str>) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, origin.parse().unwrap());
        }
        guard.check(&headers).is_ok()
    }

    #[test]
    fn a_local_server_accepts_only_names_of_this_machine() {
        let guard = Guard { loopback_only: true, origins: vec![] };
        for host in ["localhost", "localhost:8377", "127.0.0.1:8377", "[::1]:8377", "LOCALHOST:1"] {
            assert!(check(&guard, host, None), "{host}");
            assert!(check(&guard, host, Some(&format!("http://{host}"))), "{host}");
        }
        for host in
            ["evil.example", "evil.example:8377", "127.0.0.1.evil.example", "localhost.evil.example:80", "10.0.0.1"]
        {
            assert!(!check(&guard, host, None), "{host}");
            assert!(!check(&guard, "localhost:8377", Some(&format!("http://{host}"))), "{host}");
        }
        assert!(!check(&guard, "localhost", Some("null")));
        assert!(!check(&guard, "localhost", Some("not a url")));
    }

    #[test]
    fn a_public_server_accepts_its_own_origin_and_configured_ones() {
        let guard = Guard { loopback_only: false, origins: vec!["https://app.example".into()] };
        assert!(check(&guard, "tasks.example", Some("https://tasks.example")));
        assert!(check(&guard, "tasks.example", Some("https://app.example")));
        assert!(!check(&guard, "tasks.example", Some("https://evil.example")));
    }
}
