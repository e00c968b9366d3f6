use std::fmt::Write as _;
use std::time::Duration;

use longhaul::{Ctx, Failure, JsonSchema, OnCrash, Structured, StructuredWithText, Tool};
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
    phases: Vec<FinishedPhase>,
    attempt: u32,
}

/// A phase, and the attempt in which it was done: a crash does not repeat it.
#[derive(Serialize, Deserialize, JsonSchema)]
struct FinishedPhase {
    phase: String,
    attempt: u32,
}

#[derive(Serialize, JsonSchema)]
struct Section {
    heading: String,
    text: String,
}

const PHASES: [&str; 5] = ["Gathering sources", "Reading", "Outlining", "Writing", "Proofreading"];

/// Works through five phases, each of them a recorded step, then returns a text for people and structured content for
/// programs.
pub(super) fn tool() -> Tool {
    Tool::new("generate_report", generate)
        .title("Generate a report")
        .description(
            "Writes a short report on a topic, slowly enough to watch. Goes on where it was if the server crashes.",
        )
        .on_crash(OnCrash::Resume)
        .attempts(10, Duration::from_millis(200))
}

async fn generate(
    mut ctx: Ctx,
    ReportRequest { topic, seconds }: ReportRequest,
) -> Result<StructuredWithText<ReportResult>, Failure> {
    let count = u32::try_from(PHASES.len()).unwrap_or(1);
    let (time, attempt) = (Duration::from_secs(seconds.into()) / count, ctx.attempt());
    let mut phases = Vec::new();
    for (done, phase) in (0..count).zip(PHASES) {
        ctx.progress(done, count, &format!("{phase} ({}/{count})", done + 1)).await?;
        phases.push(ctx.step(phase, || work_on(phase, time, attempt)).await?);
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
    Ok(Structured(ReportResult { topic, words, sections, phases, attempt }).with_text(text))
}

/// Pretends to work.
async fn work_on(phase: &str, time: Duration, attempt: u32) -> Result<FinishedPhase, Failure> {
    tokio::time::sleep(time).await;
    Ok(FinishedPhase { phase: phase.into(), attempt })
}
