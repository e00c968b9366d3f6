//! `docs/limits.md` lists exactly the limits in the code, with their values.
//!
//! A limit is a constant whose name ends with `_MAX` or `_MIN`, a field of a `…Limits` struct or of `Policy`, or a
//! field of a `…Options` struct that ends with `_max`. A new limit needs a row with its meaning, name, default and
//! effect.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Names that look like limits and are not: a helper of a computation, a choice, a struct of other limits.
const NO_LIMITS: &[&str] = &["wire.SAFE_INTEGER_MAX", "task.on_crash", "server.session"];

#[test]
fn every_limit_is_on_the_page_with_its_value() {
    let page = std::fs::read_to_string(root().join("docs/limits.md")).unwrap();
    let (documented, code) = (rows(&page), in_code());
    assert!(code.len() > 50, "only {} were found: {code:#?}", code.len());
    let mut wrong = Vec::new();
    for (name, value) in &code {
        match documented.get(name) {
            Some(shown) if shown == value => {}
            Some(shown) => wrong.push(format!("`{name}` is {value}, and the page says {shown}")),
            None => wrong.push(format!("a row is missing: | … | `{name}` | {value} | … |")),
        }
    }
    wrong.extend(documented.keys().filter(|name| !code.contains_key(*name)).map(|name| format!("`{name}` is gone")));
    assert!(wrong.is_empty(), "docs/limits.md:\n{}", wrong.join("\n"));
}

fn rows(page: &str) -> BTreeMap<String, String> {
    let cells = page.lines().map(|line| line.split('|').map(str::trim).collect::<Vec<_>>());
    let row = |cells: Vec<&str>| {
        let name = cells.get(2)?.strip_prefix('`')?.strip_suffix('`')?;
        Some((name.to_owned(), (*cells.get(3)?).to_owned()))
    };
    cells.filter_map(row).collect()
}

/// The limits in the code of all shipped crates.
fn in_code() -> BTreeMap<String, String> {
    let mut limits = BTreeMap::new();
    for directory in children(&root().join("crates")) {
        let name = directory.file_name().unwrap().to_str().unwrap().to_owned();
        let short = name.strip_prefix("longhaul-").unwrap_or(&name).trim_start_matches("store-");
        for file in sources(&directory.join("src")) {
            let text = std::fs::read_to_string(&file).unwrap();
            for (limit, value) in constants(&text).chain(fields(&text)) {
                let limit = format!("{short}.{limit}");
                if short != "sim" && !NO_LIMITS.contains(&&*limit) {
                    let shown = show(&limit, value).unwrap_or_else(|| panic!("{limit} = {value} is not understood"));
                    limits.insert(limit, shown);
                }
            }
        }
    }
    limits
}

/// `const NAME: TYPE = VALUE;`
fn constants(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines().filter_map(|line| {
        let (_, declaration) = line.split_once("const ")?;
        let (name, rest) = declaration.split_once(": ")?;
        let (_, value) = rest.split_once(" = ")?;
        let is_limit =
            name.ends_with("_MAX") || name.ends_with("_MIN") || ["RETENTION_MS", "PARK_AFTER"].contains(&name);
        is_limit.then(|| (name, value.trim_end_matches(';')))
    })
}

/// `impl Default for SomeLimits { … Self { name: VALUE, … } … }`
fn fields(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let implementations = text.split("impl Default for ").skip(1);
    let bodies = implementations.filter_map(|rest| {
        let (name, body) = rest.split_once(" {")?;
        let (values, _) = body.split_once("-> Self {")?.1.split_once("Self {")?.1.split_once('}')?;
        (name.ends_with("Limits") || name == "Policy" || name.ends_with("Options")).then_some((name, values))
    });
    bodies.flat_map(|(of, values)| values.split(',').map(move |field| (of, field))).filter_map(|(of, field)| {
        let (name, value) = field.split_once(": ")?;
        (!of.ends_with("Options") || name.ends_with("_max")).then_some((name.trim(), value.trim()))
    })
}

/// The value as on the page, in the unit that the name implies.
fn show(name: &str, value: &str) -> Option<String> {
    let name = name.to_lowercase();
    let duration = |start: &str| value.strip_prefix(start)?.strip_suffix(')').and_then(number);
    if let Some(seconds) = duration("Duration::from_secs(") {
        return Some(time(seconds * 1_000));
    }
    if let Some(ms) = duration("Duration::from_millis(") {
        return Some(time(ms));
    }
    let number = number(value)?;
    Some(match () {
        () if name.ends_with("_ms") || name.contains("_ms_") => time(number),
        () if name.contains("bytes") => {
            in_units(number, &[("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)], "bytes")
        }
        () => count(number),
    })
}

/// `7`, `10_000`, `4 << 20`, `60 * 60 * 1_000`
fn number(value: &str) -> Option<u64> {
    if let Some((number, shift)) = value.split_once(" << ") {
        return Some(plain(number)? << plain(shift)?);
    }
    value.split(" * ").try_fold(1, |product, factor| Some(product * plain(factor)?))
}

fn plain(digits: &str) -> Option<u64> {
    digits.replace('_', "").parse().ok()
}

fn time(ms: u64) -> String {
    match ms {
        // Around one day, hours are easier to read.
        ms if ms % 86_400_000 == 0 && ms > 2 * 86_400_000 => format!("{} days", ms / 86_400_000),
        ms => in_units(ms, &[("h", 3_600_000), ("min", 60_000), ("s", 1_000)], "ms"),
    }
}

fn in_units(number: u64, units: &[(&str, u64)], smallest: &str) -> String {
    let fits = units.iter().find(|(_, size)| number >= *size && number.is_multiple_of(*size));
    fits.map_or_else(|| format!("{} {smallest}", count(number)), |(unit, size)| format!("{} {unit}", number / size))
}

fn count(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().map(|group| std::str::from_utf8(group).unwrap()).collect();
    groups.join(",")
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn children(directory: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect()
}

fn sources(directory: &Path) -> Vec<PathBuf> {
    let (directories, files): (Vec<_>, Vec<_>) = children(directory).into_iter().partition(|path| path.is_dir());
    let rust = files.into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
    rust.chain(directories.iter().flat_map(|directory| sources(directory))).collect()
}
