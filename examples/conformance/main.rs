//! A server with the tools that the conformance suite and the cross-implementation tests call.
//!
//! `cargo run --release --example conformance -- --listen 127.0.0.1:8377 --store memory:`, and the other flags of
//! `longhaul serve`.

mod content;
mod files;
mod input_required;
mod jobs;
mod protocol;

use std::process::ExitCode;

use clap::Parser;
use longhaul::Server;
use longhaul_cli::command::serve::Serve;
use longhaul_cli::exit;

#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    serve: Serve,
}

fn main() -> ExitCode {
    // The suite calls the first tool of the list without arguments, so that one must be an ordinary one.
    let tools = protocol::greeting()
        .into_iter()
        .chain(jobs::tools())
        .chain(files::tools())
        .chain(content::tools())
        .chain(input_required::tools())
        .chain(protocol::tools());
    let server = Server::new("longhaul-conformance").tools(tools).poll_interval_ms(100);
    exit::report(Arguments::parse().serve.run(server))
}
