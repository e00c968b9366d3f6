//! `docs/config.md` lists exactly the keys in the code, with the form of their values. The limits in `docs/limits.md`
//! that can be changed are exactly those that the config file can set.

use std::collections::BTreeMap;
use std::path::Path;

use super::keys;
use super::limits::LIMITS;
use super::section::Key;

fn page(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)).unwrap()
}

/// The rows of a page's tables whose cell in `column` is a key in backticks: the key, and the cell after it.
fn rows(page: &str, column: usize) -> BTreeMap<String, String> {
    let cells = page.lines().map(|line| line.split('|').map(str::trim).collect::<Vec<_>>());
    let row = |cells: Vec<&str>| {
        let name = cells.get(column)?.strip_prefix('`')?.strip_suffix('`')?;
        let is_key = name.contains('.') && !name.contains(' ');
        is_key.then(|| Some((name.to_owned(), (*cells.get(column + 1)?).to_owned())))?
    };
    cells.filter_map(row).collect()
}

#[test]
fn every_key_is_on_the_page_with_its_form() {
    let sections: [(&str, &[Key]); 10] = [
        ("server", keys::SERVER),
        ("tool.NAME", keys::TOOL),
        ("tool.NAME.args.ARG", keys::ARGUMENT),
        ("tool.NAME.progress", keys::PROGRESS),
        ("tool.NAME.retention", keys::RETENTION),
        ("tool.NAME.hints", keys::HINTS),
        ("prompt.NAME", keys::PROMPT),
        ("resource.NAME", keys::RESOURCE),
        ("clients_without_tasks", keys::CLIENTS_WITHOUT_TASKS),
        ("clients_without_tasks.tools", keys::TICKET_TOOLS),
    ];
    let of_section = |(section, keys): (&str, &[Key])| {
        let row = |key: &Key| (format!("{section}.{}", key.name), key.form.describe());
        keys.iter().map(row).collect::<Vec<_>>()
    };
    let code: BTreeMap<String, String> = sections.into_iter().flat_map(of_section).collect();
    assert_eq!(rows(&page("config.md"), 1), code);
}

#[test]
fn every_limit_that_can_be_changed_can_be_set_in_the_file() {
    let documented: Vec<String> = rows(&page("limits.md"), 2).into_keys().collect();
    let is_fixed = |name: &str| name.rsplit('.').next().is_some_and(|last| last.to_uppercase() == last);
    let settable: Vec<&str> = documented.iter().map(String::as_str).filter(|name| !is_fixed(name)).collect();
    let mut code: Vec<&str> = LIMITS.iter().map(|limit| limit.name).collect();
    code.sort_unstable();
    assert_eq!(code, settable);
}
