//! The table of config files that are refused: `bad_files.txt`.

use std::path::Path;

use super::*;

#[test]
fn every_bad_file_is_refused_with_line_key_and_remedy() {
    let table = include_str!("bad_files.txt");
    let mut wrong = Vec::new();
    let mut count = 0;
    for case in table.split("\n=== ").skip(1) {
        let (head, text) = case.split_once('\n').unwrap();
        let [line, key, words] = head.splitn(3, " | ").collect::<Vec<_>>()[..] else { panic!("{head}") };
        count += 1;
        let problems = parse(text, Path::new("/")).err().unwrap_or_default();
        let fits = |problem: &Problem| {
            let shown = problem.to_string();
            problem.line.to_string() == line
                && problem.key == key
                && shown.contains(words)
                && shown.starts_with(&format!("line {line}, column {}: ", problem.column))
                && !problem.remedy.is_empty()
        };
        if !problems.iter().any(fits) {
            let shown: Vec<String> = problems.iter().map(|problem| format!("    {problem}")).collect();
            wrong.push(format!("{head}\n{text}\n  is refused with:\n{}", shown.join("\n")));
        }
    }
    assert!(count >= 200, "{count}");
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n\n"));
}

#[test]
fn a_uri_is_accepted_at_its_limit_and_refused_past_it() {
    let read = |bytes: usize| {
        let uri = format!("docs:{}", "a".repeat(bytes - "docs:".len()));
        parse(&format!("[resource.r]\nuri = \"{uri}\"\ntext = \"a\"\n"), Path::new("/"))
    };
    let limit = longhaul_wire::resource::URI_BYTES_MAX;
    assert!(read(limit).is_ok());
    let problems = read(limit + 1).unwrap_err();
    assert!(problems[0].to_string().contains(&format!("has {} bytes", limit + 1)), "{}", problems[0]);
}

#[test]
fn all_mistakes_of_a_file_are_reported_in_their_order() {
    let text = "[tool.a]\ncomand = [\"true\"]\n[tool.b]\ncommand = [\"true\"]\ntimeout = 5\n";
    let problems = parse(text, Path::new("/")).unwrap_err();
    let places: Vec<_> = problems.iter().map(|problem| (problem.line, problem.column, problem.key.as_str())).collect();
    assert_eq!(places, [(1, 7, "tool.a.command"), (2, 1, "tool.a.comand"), (5, 11, "tool.b.timeout")]);
    let shown = problems[1].to_string();
    assert_eq!(shown, "line 2, column 1: `tool.a.comand` is not a key of this section; did you mean `command`?");
}

#[test]
fn the_example_is_valid() {
    let config = parse(example::EXAMPLE, Path::new("/")).unwrap();
    assert_eq!(config.tools.len(), 3);
}
