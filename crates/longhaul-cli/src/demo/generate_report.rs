use std::fmt::Write as _;
use std::time::Duration;

use longhaul::{Ctx, Failure, JsonSchema, OnCrash, Structured, Tool};
use serde::{Deserialize, Serialize};

#[derive(Deserialize, JsonSchema)]
struct ReportRequest {
    /// What the report is about.
    topic: String,
    /// How many seconds to take, at most 3600.
    #[serde(default = "default_seconds")]
    #[schemars(range(min = 0, max = 3600))]
    seconds: u32,
}

fn default_seconds() -> u32 {
    5
}

#[derive(Serialize, JsonSchema)]
struct ReportResult {
    topic: String,
    words: usize,
    sections: Vec<Section>,
    attempt: u32,
}

#[derive(Serialize, JsonSchema)]
struct Section {
    heading: String,
    text: String,
}

const PHASES: [&str; 5] = ["Gathering sources", "Reading", "Outlining", "Writing", "Proofreading"];

/// Reports progress through five phases, then returns a text for people and structured content for programs.
pub(super) fn tool() -> Tool {
    Tool::new("generate_report", generate)
        .title("Generate a report")
        .description("Writes a short report on a topic, slowly enough to watch. Started again if the server crashes.")
        .on_crash(OnCrash::Retry)
        .attempts(10, Duration::from_millis(200))
}

async fn generate(
    mut ctx: Ctx,
    ReportRequest { topic, seconds }: ReportRequest,
) -> Result<Structured<ReportResult>, Failure> {
    let phases = u32::try_from(PHASES.len()).unwrap_or(1);
    for (done, phase) in (0..phases).zip(PHASES) {
        let message = format!("{phase} ({}/{phases})", done + 1);
        ctx.progress(done, phases, &message).await?;
        tokio::time::sleep(Duration::from_secs(seconds.into()) / phases).await;
    }
    let sections: Vec<Section> = [
        ("In short", format!("{topic} takes longer than a client waits, and is worth it.")),
        ("What was found", format!("Of everything written about {topic}, most repeats the rest.")),
        ("What to do", format!("Start on {topic} now, go away, and collect the result later.")),
    ]
    .into_iter()
    .map(|(heading, text)| Section { heading: heading.into(), text })
    .collect();
    let mut text = format!("# {topic}\n");
    for Section { heading, text: body } in &sections {
        // Writing to a string does not fail.
        let _ = write!(text, "\n## {heading}\n\n{body}\n");
    }
    let words = text.split_whitespace().count();
    let attempt = ctx.attempt();
    Ok(Structured::new(ReportResult { topic, words, sections, attempt }).with_text(text))
}
