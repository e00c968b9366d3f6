//! `longhaul config host`: the text that tells how to configure a host, so that it uses this server.

use std::fmt::Write as _;
use std::path::Path;

use clap::ValueEnum;
use serde_json::{Value, json};

/// A host whose configuration format is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Host {
    ClaudeCode,
    ClaudeDesktop,
    Cursor,
    Vscode,
    Codex,
}

/// The server that the host is to use.
#[derive(Debug)]
pub(crate) struct ServerEntry<'a> {
    /// The path of this program.
    pub(crate) program: &'a Path,
    /// The arguments for a server on standard input and output.
    pub(crate) arguments: Vec<String>,
    pub(crate) name: &'a str,
    pub(crate) url: &'a str,
    pub(crate) needs_token: bool,
}

/// Checks that every host accepts a name for the server: Claude Code and Codex refuse other characters.
pub(crate) fn name(text: &str) -> Result<String, String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    if !(1..=64).contains(&text.len()) || !text.bytes().all(is_plain) {
        return Err("use 1 to 64 letters, digits, - and _".into());
    }
    Ok(text.to_owned())
}

/// Stands for the token, which this program does not know: a token file has only hashes.
const TOKEN: &str = "YOUR-TOKEN";

/// The text that `longhaul config host` prints for this host.
pub(crate) fn describe(host: Host, server: &ServerEntry<'_>) -> String {
    match host {
        Host::ClaudeCode => claude_code(server),
        Host::ClaudeDesktop => claude_desktop(server),
        Host::Cursor => cursor(server),
        Host::Vscode => vscode(server),
        Host::Codex => codex(server),
    }
}

impl ServerEntry<'_> {
    fn stdio(&self) -> Value {
        json!({ "command": self.program.display().to_string(), "args": self.arguments })
    }

    fn http(&self, with_type: bool) -> Value {
        let mut server = json!({ "url": self.url });
        if with_type {
            server["type"] = "http".into();
        }
        if self.needs_token {
            server["headers"] = json!({ "Authorization": format!("Bearer {TOKEN}") });
        }
        server
    }

    /// The JSON of an object whose member `key` has this server under its name.
    fn under(&self, key: &str, server: &Value) -> String {
        let object = json!({ key: { self.name: server } });
        serde_json::to_string_pretty(&object).unwrap_or_default()
    }

    /// The command line, for a shell.
    fn command_line(&self) -> String {
        let words = std::iter::once(self.program.display().to_string()).chain(self.arguments.iter().cloned());
        words.map(|word| quote(&word)).collect::<Vec<_>>().join(" ")
    }
}

fn quote(word: &str) -> String {
    let is_plain =
        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/._-:=@%+,".contains(&byte));
    if is_plain { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

fn claude_code(server: &ServerEntry<'_>) -> String {
    let (name, url) = (quote(server.name), quote(server.url));
    let header = if server.needs_token { format!(" --header 'Authorization: Bearer {TOKEN}'") } else { String::new() };
    let stdio = json!({ "type": "stdio", "command": server.program.display().to_string(), "args": server.arguments });
    format!(
        "Claude Code starts the server itself (stdio). Run in a shell:\n\n  \
         claude mcp add {name} -- {command}\n\n\
         or connect to a server that runs (HTTP):\n\n  \
         claude mcp add --transport http {name} {url}{header}\n\n\
         To share it with all who work on a project, put one of these into .mcp.json in its root folder:\n\n{}\n\n{}\n",
        server.under("mcpServers", &stdio),
        server.under("mcpServers", &server.http(true)),
        command = server.command_line(),
    )
}

fn claude_desktop(server: &ServerEntry<'_>) -> String {
    let header =
        if server.needs_token { format!(", \"--header\", \"Authorization: Bearer {TOKEN}\"") } else { String::new() };
    format!(
        "Settings, Developer, Edit Config opens claude_desktop_config.json. On macOS it is in\n\
         ~/Library/Application Support/Claude/, on Windows in %APPDATA%\\Claude\\. Claude Desktop starts the server itself (stdio):\n\n\
         {}\n\n\
         This file takes no servers over HTTP. To connect to one that runs, add its URL under Settings, Connectors, Add custom\n\
         connector, if it can be reached from the internet; otherwise let mcp-remote pass the messages on (it needs Node.js):\n\n  \
         \"command\": \"npx\", \"args\": [\"-y\", \"mcp-remote\", \"{}\"{header}]\n\n\
         Restart Claude Desktop after the change.\n",
        server.under("mcpServers", &server.stdio()),
        server.url,
    )
}

fn cursor(server: &ServerEntry<'_>) -> String {
    format!(
        "Put one of these into ~/.cursor/mcp.json, or into .cursor/mcp.json in the folder of a project.\n\n\
         Cursor starts the server itself (stdio):\n\n{}\n\nor connects to a server that runs (HTTP):\n\n{}\n",
        server.under("mcpServers", &server.stdio()),
        server.under("mcpServers", &server.http(false)),
    )
}

fn vscode(server: &ServerEntry<'_>) -> String {
    let mut stdio = server.stdio();
    stdio["type"] = "stdio".into();
    format!(
        "Put one of these into .vscode/mcp.json in the folder of a project, or into the file that the command\n\
         \"MCP: Open User Configuration\" opens.\n\n\
         VS Code starts the server itself (stdio):\n\n{}\n\nor connects to a server that runs (HTTP):\n\n{}\n",
        server.under("servers", &stdio),
        server.under("servers", &server.http(true)),
    )
}

fn codex(server: &ServerEntry<'_>) -> String {
    // A JSON string is also a TOML string, unless it contains DEL. No path or argument is expected to contain it.
    let text = |value: &str| Value::from(value).to_string();
    let table = format!("[mcp_servers.{}]", text(server.name));
    let mut out =
        String::from("Put one of these into ~/.codex/config.toml.\n\nCodex starts the server itself (stdio):\n\n");
    let arguments = server.arguments.iter().map(|argument| text(argument)).collect::<Vec<_>>().join(", ");
    let program = text(&server.program.display().to_string());
    let _ = write!(out, "{table}\ncommand = {program}\nargs = [{arguments}]\n");
    let _ = write!(out, "\nor connects to a server that runs (HTTP):\n\n{table}\nurl = {}\n", text(server.url));
    if server.needs_token {
        out.push_str(
            "bearer_token_env_var = \"LONGHAUL_TOKEN\"   # the token is in this variable of Codex's environment\n",
        );
    }
    out
}
