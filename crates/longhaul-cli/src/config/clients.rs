//! `[clients_without_tasks]`: how clients that know no tasks get long work done.

use std::time::Duration;

use super::keys;
use super::section::NamedSection;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ClientsWithoutTasks {
    /// How long a call of such a client is held open before it gets a ticket.
    pub(crate) patience: Option<Duration>,
    /// Other names for the ticket tools, by their usual ones without `task_`.
    pub(crate) tools: Vec<(&'static str, String)>,
}

pub(super) fn read(root: &NamedSection<'_>) -> ClientsWithoutTasks {
    let Some(section) = root.section("clients_without_tasks", keys::CLIENTS_WITHOUT_TASKS) else {
        return ClientsWithoutTasks::default();
    };
    let mut tools: Vec<(&'static str, String)> = Vec::new();
    if let Some(names) = section.section("tools", keys::TICKET_TOOLS) {
        for key in keys::TICKET_TOOLS {
            let Some(name) = names.words(key.name) else { continue };
            if !super::tool::is_name(&name) {
                names.wrong(
                    key.name,
                    format!("is {name:?}, which cannot be the name of a tool"),
                    super::tool::NAME_CHARACTERS,
                );
            } else if let Some((other, _)) = tools.iter().find(|(_, taken)| *taken == name) {
                names.wrong(
                    key.name,
                    format!("is the name of `{other}`, too"),
                    "give each of these tools a name of its own",
                );
            }
            tools.push((key.name, name));
        }
    }
    ClientsWithoutTasks { patience: section.duration("patience"), tools }
}
