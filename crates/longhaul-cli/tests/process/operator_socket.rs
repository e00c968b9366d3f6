//! The operator's socket: who can open it, and what silent connections can do to it.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use longhaul_testkit::{StatelessClient, in_time};
use serde_json::json;
use tokio::io::AsyncReadExt as _;
use tokio::net::UnixStream;

use crate::kit::{Launch, place};
use crate::operator::run;

fn socket(file: &Path) -> String {
    format!("{}.sock", file.display())
}

#[tokio::test]
async fn every_file_beside_the_store_is_private_whatever_the_umask() {
    let (directory, file) = place("tasks.db");
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let server = Launch::longhaul().under(["sh", "-c", r#"umask 000; exec "$0" "$@""#]).store(&file).start().await;
    for entry in std::fs::read_dir(directory.path()).unwrap() {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{} has mode {mode:o}", entry.path().display());
    }
    assert!(Path::new(&socket(&file)).exists());
    server.says("other users can write to the directory of the store").await;
    server.kill().await;
}

#[tokio::test]
async fn silent_connections_do_not_keep_an_order_from_the_server() {
    let (_directory, file) = place("tasks.db");
    // Fewer descriptors than there are silent connections.
    let server = Launch::conformance().under(["sh", "-c", r#"ulimit -n 160; exec "$0" "$@""#]).store(&file).start();
    let server = server.await;
    let mut client = StatelessClient::connect(server.address()).await.unwrap();
    let id = client.create("slow_compute", json!({ "seconds": 1_000 })).await.unwrap();
    let mut silent = Vec::new();
    for _ in 0..200 {
        silent.push(UnixStream::connect(socket(&file)).await.unwrap());
    }
    let store = format!("sqlite:{}", file.display());
    let said = in_time("the cancellation", run(&["task", "cancel", &id, "--store", &store])).await;
    assert_eq!(said.succeeded(), format!("{id} is cancelled.\n"));
    for mut stream in silent {
        let closed = in_time("the end of a silent connection", stream.read_u8()).await;
        assert!(closed.is_err());
    }
    assert!(server.stop().await);
}

#[tokio::test]
async fn the_socket_of_the_next_server_is_left_alone() {
    let (_directory, file) = place("tasks.db");
    let server = Launch::conformance().store(&file).start().await;
    std::fs::remove_file(&file).unwrap();
    std::fs::remove_file(socket(&file)).unwrap();
    let _next = std::os::unix::net::UnixListener::bind(socket(&file)).unwrap();
    assert_eq!(server.exit_code().await, Some(4));
    assert!(Path::new(&socket(&file)).exists());
}
