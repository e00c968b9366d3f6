//! Two real processes and one file: the second is refused; the first is killed, and nothing it acknowledged is lost.

mod common;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use common::{create, key, opened, place, settle};
use longhaul_store::{Store, SystemClock};
use longhaul_store_sqlite::{SqliteOptions, open};

/// Set for the other process: the store that it is to open.
const STORE: &str = "LONGHAUL_TEST_STORE";

fn main() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    if let Some(path) = std::env::var_os(STORE) {
        return runtime.block_on(write_until_killed(Path::new(&path)));
    }
    for (name, claim) in [
        ("a_store_that_another_process_has_is_refused", a_store_that_another_process_has_is_refused as fn(_)),
        ("a_killed_process_loses_nothing_that_it_acknowledged", a_killed_process_loses_nothing_that_it_acknowledged),
    ] {
        claim(&runtime);
        println!("test {name} ... ok");
    }
}

/// The other process: creates and settles tasks, and says of each when it is acknowledged.
async fn write_until_killed(path: &Path) {
    let store = opened(path);
    let mut out = std::io::stdout();
    let mut say = |word: &str, n: u64| writeln!(out, "{word} {n}").and_then(|()| out.flush()).unwrap();
    say("opened", 0);
    for n in 0.. {
        create(&store, n).await;
        say("created", n);
        settle(&store, n).await;
        say("settled", n);
    }
}

struct Other(Child);

impl Other {
    fn start(path: &Path) -> Self {
        let this = std::env::current_exe().unwrap();
        Self(Command::new(this).env(STORE, path).stdout(Stdio::piped()).spawn().unwrap())
    }

    /// The next words of the other process, until it is killed after so many.
    fn words(&mut self, count: usize) -> Vec<(String, u64)> {
        let mut lines = BufReader::new(self.0.stdout.take().unwrap()).lines();
        let parse = |line: String| {
            let (word, n) = line.split_once(' ').unwrap();
            (word.to_owned(), n.parse().unwrap())
        };
        let mut words: Vec<_> = lines.by_ref().take(count).map(|line| parse(line.unwrap())).collect();
        self.kill();
        // What it still said on its way counts as well.
        words.extend(lines.map_while(Result::ok).filter(|line| line.contains(' ')).map(parse));
        words
    }

    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn a_store_that_another_process_has_is_refused(_: &tokio::runtime::Runtime) {
    let (_directory, path) = place();
    let mut other = Other::start(&path);
    let mut opened_there = String::new();
    BufReader::new(other.0.stdout.as_mut().unwrap()).read_line(&mut opened_there).unwrap();
    assert_eq!(opened_there, "opened 0\n");

    let error = open(&path, &SqliteOptions::default(), SystemClock).unwrap_err();
    let there = other.0.id();
    assert_eq!(error.code(), "STORE_LOCKED");
    assert!(error.to_string().contains(&format!("process {there},")), "{error}");
    assert!(error.to_string().contains("tasks.db.lock"), "{error}");

    other.kill();
    opened(&path);
}

fn a_killed_process_loses_nothing_that_it_acknowledged(runtime: &tokio::runtime::Runtime) {
    for count in [2, 3, 10, 57, 200] {
        let (_directory, path) = place();
        let words = Other::start(&path).words(count);
        assert!(words.len() >= count);
        runtime.block_on(async {
            let store = opened(&path);
            for (word, n) in words.iter().skip(1) {
                let task = store.read(&key(*n)).await.unwrap().task;
                assert!(word == "created" || task.is_settled(), "{word} {n}");
            }
        });
    }
}
