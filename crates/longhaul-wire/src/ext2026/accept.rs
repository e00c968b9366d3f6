use std::borrow::Cow;

use super::{Headers, Meta, Method, Params, VERSION, headers};
use crate::jsonrpc::{Request, RpcError};
use crate::text;

/// A request that may be looked at: its metadata is there, its version is ours, its headers agree with it.
#[derive(Debug)]
pub struct Accepted<'a> {
    /// What is asked for.
    pub method: Method,
    /// With what.
    pub params: Params<'a>,
    /// By whom.
    pub meta: Meta<'a>,
}

/// What every request goes through before its operation sees it. `headers` are those of HTTP; other transports have
/// none. `versions` is what the server speaks, this version among it, for whoever asks for another.
///
/// The order of the checks is part of the protocol: header against body before the version is judged, the method
/// before the name that only some methods have.
pub fn accept<'a>(
    request: &Request<'a>,
    headers: Option<&dyn Headers>,
    versions: &[&str],
) -> Result<Accepted<'a>, RpcError> {
    let params = Params::parse(request.params)?;
    let meta = Meta::parse(&params).map_err(|error| match &*request.method {
        // The handshake of older versions, which their clients show to people when it fails: say what would work.
        "initialize" => RpcError::unsupported_version(versions, &handshake_version(request)),
        _ => error,
    })?;
    if let Some(headers) = headers {
        headers::check_version(headers, &meta)?;
    }
    if meta.protocol_version != VERSION {
        return Err(RpcError::unsupported_version(versions, &meta.protocol_version));
    }
    if let Some(headers) = headers {
        headers::check_method(headers, &request.method)?;
    }
    let method = Method::parse(&request.method).ok_or_else(|| RpcError::method_not_found(&request.method))?;
    if let Some(headers) = headers {
        headers::check_name(headers, method, &params)?;
    }
    Ok(Accepted { method, params, meta })
}

/// The version that an `initialize` asks for.
fn handshake_version<'a>(request: &Request<'a>) -> Cow<'a, str> {
    let version = request.params.and_then(|params| text::member(params, "protocolVersion"));
    version.and_then(text::string).unwrap_or_default()
}
