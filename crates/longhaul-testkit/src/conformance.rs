//! The tools of the `conformance` example, for servers in this process.

use longhaul::Server;

#[path = "../../../examples/conformance/asks.rs"]
mod asks;
#[path = "../../../examples/conformance/content.rs"]
mod content;
#[path = "../../../examples/conformance/crash_jobs.rs"]
mod crash_jobs;
#[path = "../../../examples/conformance/input_required.rs"]
mod input_required;
#[path = "../../../examples/conformance/jobs.rs"]
mod jobs;
#[path = "../../../examples/conformance/prompts.rs"]
mod prompts;
#[path = "../../../examples/conformance/protocol.rs"]
mod protocol;
#[path = "../../../examples/conformance/resources.rs"]
mod resources;

pub fn conformance() -> Server {
    let server = Server::new("longhaul-conformance")
        .tools(protocol::greeting())
        .tools(jobs::tools())
        .tools(crash_jobs::tools(crash_jobs::ATTEMPTS_MAX, crash_jobs::BACKOFF_MS))
        .tools(content::tools())
        .tools(asks::tools())
        .tools(input_required::tools())
        .tools(protocol::tools())
        .poll_interval_ms(100);
    resources::offer(prompts::offer(server))
}
