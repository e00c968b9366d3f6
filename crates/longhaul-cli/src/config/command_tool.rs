//! The tool of a config file: its handler runs a command.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use longhaul::command::{Command, CommandError, CommandOutput, OutputStream};
use longhaul::{Ctx, Failure, Json, Tool, ToolResult};
use serde_json::{Map, Value};

use super::limits::Limits;
use super::message::{self, MessageFinder};
use super::template::Template;
use super::tool::{CommandLine, MessageStream, Output, ProgressPattern, ToolConfig};

/// How much longer the grace period of a cancelled handler is than that of its command, so that the command ends before the
/// handler is dropped.
const GRACE_MARGIN_MS: u64 = 3_000;

/// How much longer than its command's time limit an attempt may run before the engine ends it.
const RUNNING_MARGIN: Duration = Duration::from_secs(60);

/// How much longer than the time limit of its command a task may exist before it must have ended, if the config file has no
/// limit for this: a task also waits in the queue and for answers.
const LIFE_MARGIN: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Makes the tool that a section of the config file describes.
pub(crate) fn tool(config: ToolConfig, limits: &Limits) -> Tool {
    let config = Arc::new(config);
    let handled = Arc::clone(&config);
    let mut tool = Tool::new(config.name.clone(), move |ctx: Ctx, arguments: Map<String, Value>| {
        let config = Arc::clone(&handled);
        async move { run(&config, ctx, arguments).await }
    })
    .input_schema(&config.arguments.schema)
    .annotations(config.hints.clone())
    .task_support(config.task)
    .on_crash(config.on_crash);
    if let Some(title) = &config.title {
        tool = tool.title(title);
    }
    if let Some(description) = &config.description {
        tool = tool.description(description);
    }
    if let Some(version) = &config.version {
        tool = tool.version(version);
    }
    if let Output::Json { schema: Some(schema) } = &config.output {
        tool = tool.output_schema(schema);
    }
    if let Some(retention) = config.retention {
        tool = tool.retention(retention);
    }
    if config.retry_failures {
        tool = tool.retry_failures();
    }
    if let Some(time) = config.answers_within {
        tool = tool.answers_within(time);
    }
    if config.cancels_abandoned {
        tool = tool.cancel_abandoned_calls();
    }
    limit(tool, &config, limits)
}

fn limit(mut tool: Tool, config: &ToolConfig, limits: &Limits) -> Tool {
    let policy = &limits.policy;
    let attempts = config.attempts.and_then(|attempts| u32::try_from(attempts).ok()).or(policy.attempts_max);
    if let Some(attempts) = attempts {
        tool = tool.attempts_max(attempts);
    }
    if let Some(backoff) = config.backoff.or(policy.backoff_ms.map(Duration::from_millis)) {
        tool = tool.backoff(backoff);
    }
    if let Some(ms) = policy.backoff_ms_max {
        tool = tool.backoff_max(Duration::from_millis(ms));
    }
    if let Some(ms) = policy.running_ms_max {
        tool = tool.running_time_max(Duration::from_millis(ms));
    }
    if let Some(ms) = policy.life_ms_max {
        tool = tool.life_time_max(Duration::from_millis(ms));
    }
    let mut own = limits.tool.clone();
    if let Some(timeout) = config.timeout {
        // The time limit of the command must come first: its error contains what the command wrote to standard error.
        tool = tool.running_time_max(timeout + RUNNING_MARGIN + config.grace.unwrap_or_default());
        if policy.life_ms_max.is_none() {
            tool = tool.life_time_max(timeout + LIFE_MARGIN);
        }
    }
    if let Some(concurrency) = config.concurrency.and_then(|number| usize::try_from(number).ok()) {
        own = own.running_max(concurrency).calls_max(concurrency);
    }
    if let Some(grace) = config.grace {
        let ms = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX).saturating_add(GRACE_MARGIN_MS);
        own.grace_ms = own.grace_ms.max(ms);
    }
    tool.limits(own)
}

async fn run(config: &ToolConfig, mut ctx: Ctx, arguments: Map<String, Value>) -> Result<ToolResult, Failure> {
    let arguments = config.arguments.complete_arguments(arguments)?;
    refuse_nul(config, &arguments)?;
    let failed = |error| failure(config, error);
    let mut running = command(config, &arguments).start().await.map_err(failed)?;
    let mut messages = config.messages.map(|stream| MessageFinder::new(output_stream(stream)));
    while let Some(line) = running.next_line(&ctx).await.map_err(failed)? {
        if let Some(message) = messages.as_mut().and_then(|messages| messages.find(&line)) {
            running.discard(&line);
            message::obey(&mut ctx, &mut running, &message?).await?;
        } else if let Some(pattern) = &config.progress {
            report(&mut ctx, pattern, &line.text()).await?;
        }
    }
    let output = running.finish(&ctx).await.map_err(failed)?;
    result(config, output)
}

/// Refuses arguments with the character U+0000, which neither a word of a command line nor an environment variable can
/// contain.
fn refuse_nul(config: &ToolConfig, arguments: &Map<String, Value>) -> Result<(), Failure> {
    let words = match &config.command {
        CommandLine::Program(parts) => parts.as_slice(),
        CommandLine::Shell(_) => &[],
    };
    let templates = words.iter().flatten().chain(config.env.iter().map(|(_, template)| template));
    let has_nul = |value: &Value| value.as_str().is_some_and(|text| text.contains('\0'));
    let is_refused = |name: &&str| match arguments.get(*name) {
        Some(Value::Array(items)) => items.iter().any(has_nul),
        Some(value) => has_nul(value),
        None => false,
    };
    match templates.flat_map(Template::arguments).find(is_refused) {
        Some(name) => {
            let why = format!("The argument `{name}` has the character U+0000, which no command can take. Remove it.");
            Err(Failure::tool(why))
        }
        None => Ok(()),
    }
}

/// Makes the tool's failure from an error of its command. If a limit was reached, the message names the tool and the key of
/// the limit in the config file.
fn failure(config: &ToolConfig, error: CommandError) -> Failure {
    let name = &config.name;
    Failure::tool(match error {
        CommandError::TimeLimit { limit, stderr } => {
            let said = if stderr.trim().is_empty() { String::new() } else { format!(":\n{}", stderr.trim_end()) };
            let seconds = limit.as_secs_f64();
            format!(
                "The command of `{name}` was ended because it ran for longer than {seconds} s (its `timeout`){said}"
            )
        }
        CommandError::OutputTooLarge { bytes_max } => format!(
            "The command of `{name}` was ended because it wrote more than {bytes_max} bytes to standard output (its \
             `output_max`)"
        ),
        CommandError::NotStarted { cause, .. } if cause.kind() == io::ErrorKind::ArgumentListTooLong => format!(
            "The command of `{name}` cannot be started: its arguments are too long for a command line. Pass them with \
             `stdin = \"json\"` in the config file, or send shorter ones"
        ),
        other => return other.into(),
    })
}

fn output_stream(stream: MessageStream) -> OutputStream {
    match stream {
        MessageStream::Stdout => OutputStream::Stdout,
        MessageStream::Stderr => OutputStream::Stderr,
    }
}

fn command(config: &ToolConfig, arguments: &Map<String, Value>) -> Command {
    let mut command = match &config.command {
        CommandLine::Shell(text) => Command::new("sh").args(["-c", text]),
        CommandLine::Program(parts) => {
            let mut words = Vec::new();
            for part in parts {
                let filled: Option<Vec<_>> = part.iter().map(|word| word.words(arguments)).collect();
                // A part whose argument was not given is left out.
                words.extend(filled.into_iter().flatten().flatten());
            }
            let mut words = words.into_iter();
            let program = words.next().unwrap_or_default();
            Command::new(program_path(&program, &config.directory)).args(words)
        }
    };
    command = command.directory(&config.directory);
    for (name, template) in &config.env {
        if let Some(value) = template.fill(arguments) {
            command = command.env(name, value);
        }
    }
    let input = if config.has_json_input { format!("{}\n", Value::Object(arguments.clone())) } else { String::new() };
    command = match config.messages {
        Some(_) => command.endless_input(input),
        None if config.has_json_input => command.input(input),
        None => command,
    };
    if let Some(timeout) = config.timeout {
        command = command.time_limit(timeout);
    }
    if let Some(grace) = config.grace {
        command = command.grace(grace);
    }
    if let Some(bytes) = config.output_max.and_then(|bytes| usize::try_from(bytes).ok()) {
        command = command.output_bytes_max(bytes);
    }
    command
}

/// A relative path starts from the tool's working folder; a name without a slash is looked up in `PATH` when it is run.
pub(super) fn program_path(program: &str, folder: &Path) -> std::ffi::OsString {
    if program.contains('/') { folder.join(program).into() } else { program.into() }
}

async fn report(ctx: &mut Ctx, progress: &ProgressPattern, line: &str) -> Result<(), Failure> {
    let Some(found) = progress.pattern.captures(line) else { return Ok(()) };
    let is_named = found.name("done").is_some();
    let part = |name: &str, index: usize| if is_named { found.name(name) } else { found.get(index) };
    let number = |name: &str, index: usize| part(name, index).and_then(|part| part.as_str().parse::<f64>().ok());
    let Some(done) = number("done", 1) else { return Ok(()) };
    #[expect(clippy::cast_precision_loss, reason = "progress is shown, and not computed with")]
    let total = number("total", 2).or(progress.total.map(|total| total as f64));
    let message = found.name("message").map_or(line, |part| part.as_str());
    Ok(ctx.progress(done, total, message.trim()).await?)
}

fn result(config: &ToolConfig, output: CommandOutput) -> Result<ToolResult, Failure> {
    let text = output.text()?;
    let text = text.trim_end_matches(['\n', '\r']);
    let Output::Json { schema } = &config.output else { return Ok(ToolResult::text(text)) };
    let value: Value = serde_json::from_str(text)
        .map_err(|error| Failure::tool(format!("The output of the command is not JSON: {error}")))?;
    if let Some(schema) = schema {
        let validator = jsonschema::validator_for(schema)
            .map_err(|error| Failure::tool(format!("The output schema is not valid: {error}")))?;
        if let Err(error) = validator.validate(&value) {
            let at = error.instance_path().to_string();
            let why = format!("The output of the command does not fit its schema: {at}: {error}");
            return Err(Failure::tool(why));
        }
    }
    let result = ToolResult::text(text);
    Ok(if value.is_object() { result.with_structured(Json::from_text(value.to_string())) } else { result })
}
