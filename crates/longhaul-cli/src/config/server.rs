//! The section `[server]`: the settings that are also flags of `longhaul serve`, and a few that are not.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use longhaul::StoreUrl;

use super::keys;
use super::section::NamedSection;
use crate::command::serve::address;
use crate::log::LogFormat;

/// The settings of `[server]`. A value on the command line takes precedence over the one in the file. Origins of both
/// are accepted, and `stdio` and `demo` hold if either sets them.
#[derive(Debug, Clone, Default)]
pub(crate) struct ServerConfig {
    pub(crate) name: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) instructions: Option<String>,
    pub(crate) listen: Option<SocketAddr>,
    pub(crate) stdio: bool,
    pub(crate) store: Option<StoreUrl>,
    pub(crate) token_file: Option<PathBuf>,
    pub(crate) allow_origin: Vec<String>,
    pub(crate) audit: Option<PathBuf>,
    pub(crate) log_format: Option<LogFormat>,
    pub(crate) demo: bool,
    pub(crate) poll_interval: Option<Duration>,
}

pub(super) fn read(root: &NamedSection<'_>, folder: &Path) -> ServerConfig {
    let Some(section) = root.section("server", keys::SERVER) else { return ServerConfig::default() };
    let stdio = section.flag("stdio").unwrap_or(false);
    if stdio && section.has("token_file") {
        let remedy = "remove one of them: a server on standard input has one client, the program that started it";
        section.wrong("token_file", "has no meaning together with `stdio`", remedy);
    }
    let token_file = section.non_blank_text("token_file").map(|path| folder.join(path));
    let listen = listen(&section);
    if let Some(address) = listen
        && token_file.is_none()
        && !section.has("token_file")
        && !address.ip().is_loopback()
        && !stdio
    {
        let remedy = "add token_file = \"tokens\" (it is made if it does not exist), or listen on 127.0.0.1";
        section.wrong("listen", "can be reached from other machines, so callers need tokens", remedy);
    }
    let origins = section.texts("allow_origin").unwrap_or_default();
    for (origin, span) in &origins {
        let host = origin.split_once("://").map(|(_, host)| host);
        if host.is_none_or(|host| host.is_empty() || host.contains('/')) {
            let remedy = "write a scheme, a host and a port if it has one, such as \"https://app.example.com\"";
            let what = format!("has {origin:?}, which is not an origin");
            section.problems().add(span, &section.key_path("allow_origin"), what, remedy);
        }
    }
    ServerConfig {
        name: section.non_blank_text("name"),
        version: section.non_blank_text("version"),
        instructions: section.non_blank_text("instructions"),
        listen,
        stdio,
        store: store(&section, folder),
        token_file,
        allow_origin: origins.into_iter().map(|(origin, _)| origin.to_owned()).collect(),
        audit: section.non_blank_text("audit").map(|path| if path == "-" { path.into() } else { folder.join(path) }),
        log_format: section.choice("log_format").map(|word| match word {
            "json" => LogFormat::Json,
            _ => LogFormat::Text,
        }),
        demo: section.flag("demo").unwrap_or(false),
        poll_interval: section.duration("poll_interval"),
    }
}

fn listen(section: &NamedSection<'_>) -> Option<SocketAddr> {
    let text = section.text("listen")?;
    match address(text) {
        Ok(address) => Some(address),
        Err(why) => {
            section.wrong("listen", format!("is {text:?}"), why);
            None
        }
    }
}

fn store(section: &NamedSection<'_>, folder: &Path) -> Option<StoreUrl> {
    let text = section.text("store")?;
    match text.parse::<StoreUrl>() {
        Ok(StoreUrl::Sqlite(path)) => Some(StoreUrl::Sqlite(folder.join(path))),
        Ok(url) => Some(url),
        Err(error) => {
            section.wrong("store", format!("is {text:?}"), format!("write sqlite:PATH or memory: ({error})"));
            None
        }
    }
}
