//! The section `[clients_without_tasks]`: how clients that know no tasks get long work done.

use std::time::Duration;

use longhaul::{Server, TicketNames};
use longhaul_wire::tool::is_tool_name;

use super::keys;
use super::section::NamedSection;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ClientsWithoutTasks {
    /// Whether these clients get tickets. `None` stands for the default of the library, here and below.
    pub(crate) enabled: Option<bool>,
    /// How long a call of such a client is held open before it gets a ticket.
    pub(crate) patience: Option<Duration>,
    /// How often such a client is sent progress while its call waits, if the tool reports none.
    pub(crate) heartbeat: Option<Duration>,
    pub(crate) names: TicketNames,
}

pub(super) fn read(root: &NamedSection<'_>) -> ClientsWithoutTasks {
    let Some(section) = root.section("clients_without_tasks", keys::CLIENTS_WITHOUT_TASKS) else {
        return ClientsWithoutTasks::default();
    };
    let enabled = section.flag("enabled");
    for key in ["patience", "heartbeat", "tools"] {
        if enabled == Some(false) && section.has(key) {
            section.wrong(key, "has no effect, because `enabled` is false", "remove one of them");
        }
    }
    let mut names = TicketNames::default();
    if let Some(tools) = section.section("tools", keys::TICKET_TOOLS) {
        for key in keys::TICKET_TOOLS {
            let Some(name) = tools.non_blank_text(key.name) else { continue };
            if !is_tool_name(&name) {
                let what = format!("is {name:?}, which cannot be the name of a tool");
                tools.wrong(key.name, what, super::tool::name_remedy());
            }
            *ticket_name_mut(&mut names, key.name) = name;
        }
        let by_key = names_by_key(&names);
        for (index, (key, name)) in by_key.iter().enumerate().filter(|(_, (key, _))| tools.has(key)) {
            // If the file sets both names, the problem is reported once, for the key that comes later in `by_key`.
            let clashes = |other: usize| by_key[other].1 == *name && (other < index || !tools.has(by_key[other].0));
            if let Some(other) = (0..by_key.len()).find(|other| *other != index && clashes(*other)) {
                let what = format!("is the name of `{}`, too", by_key[other].0);
                tools.wrong(key, what, "give each of these tools a name of its own");
            }
        }
    }
    let (patience, heartbeat) = (section.duration("patience"), section.duration("heartbeat"));
    ClientsWithoutTasks { enabled, patience, heartbeat, names }
}

/// The name that a key of `[clients_without_tasks.tools]` sets.
fn ticket_name_mut<'n>(names: &'n mut TicketNames, key: &str) -> &'n mut String {
    match key {
        "result" => &mut names.result,
        "answer" => &mut names.answer,
        "cancel" => &mut names.cancel,
        "list" => &mut names.list,
        _ => &mut names.status,
    }
}

/// The keys of that table, each with the name that it sets.
pub(super) fn names_by_key(names: &TicketNames) -> [(&'static str, &str); 5] {
    let TicketNames { status, result, answer, cancel, list } = names;
    [("status", status), ("result", result), ("answer", answer), ("cancel", cancel), ("list", list)]
}

impl ClientsWithoutTasks {
    pub(crate) fn configure(&self, mut server: Server) -> Server {
        if self.enabled == Some(false) {
            return server.no_tickets();
        }
        if let Some(patience) = self.patience {
            server = server.patience(patience);
        }
        if let Some(heartbeat) = self.heartbeat {
            server = server.heartbeat(heartbeat);
        }
        server.ticket_names(self.names.clone())
    }
}
