//! Lines in the output of a command that are messages to the server: `longhaul: {"progress": 3, "total": 10}`.

use longhaul::command::{CommandError, OutputLine, OutputStream, RunningCommand};
use longhaul::{Ask, Ctx, CtxError, Failure, Json, QuestionKind, Race, Severity};
use longhaul_task::{QuestionKey, TransitionError};
use longhaul_wire::jsonrpc::quote;
use longhaul_wire::question::check_question;
use serde::Deserialize;
use serde_json::{Value, json};

/// How such a line begins.
const PREFIX: &str = "longhaul:";

/// The longest such line, with its line break. Longer lines are not read as a whole.
const MESSAGE_LINE_BYTES_MAX: usize = 64 << 10;

/// The content of such a line. Exactly one of `progress`, `status`, `log` and `ask` must be set.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CommandMessage {
    progress: Option<f64>,
    total: Option<f64>,
    message: Option<String>,
    status: Option<String>,
    log: Option<Value>,
    level: Option<Level>,
    ask: Option<String>,
    schema: Option<Value>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Level {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
}

impl From<Level> for Severity {
    fn from(level: Level) -> Self {
        match level {
            Level::Debug => Self::Debug,
            Level::Info => Self::Info,
            Level::Notice => Self::Notice,
            Level::Warning => Self::Warning,
            Level::Error => Self::Error,
        }
    }
}

/// Finds the messages in one stream of a command.
#[derive(Debug)]
pub(super) struct MessageFinder {
    stream: OutputStream,
    /// Whether the last piece of the stream ended its line. A long line comes in pieces, and only its first one begins it.
    is_line_complete: bool,
}

impl MessageFinder {
    pub(super) fn new(stream: OutputStream) -> Self {
        Self { stream, is_line_complete: true }
    }

    /// The text of the message, if the line is one.
    pub(super) fn find(&mut self, line: &OutputLine) -> Option<Result<String, Failure>> {
        if line.stream != self.stream {
            return None;
        }
        let is_begin = self.is_line_complete;
        self.is_line_complete = line.bytes.ends_with(b"\n") || line.bytes.ends_with(b"\r");
        let text = line.text().strip_prefix(PREFIX).filter(|_| is_begin)?.to_owned();
        if !self.is_line_complete && line.bytes.len() >= MESSAGE_LINE_BYTES_MAX {
            return Some(Err(Failure::tool(format!(
                "The command wrote a message that is too long: a line that begins with `{PREFIX}` can have at most \
                 {MESSAGE_LINE_BYTES_MAX} bytes, with its line break"
            ))));
        }
        Some(Ok(text))
    }
}

/// Does what a message says. The answer to a question is written to the command's standard input.
pub(super) async fn obey(ctx: &mut Ctx, running: &mut RunningCommand, text: &str) -> Result<(), Failure> {
    let message: CommandMessage = serde_json::from_str(text).map_err(|error| wrong(text, &error.to_string()))?;
    match message {
        CommandMessage { progress: Some(done), total, message, status: None, log: None, ask: None, .. } => {
            Ok(ctx.progress(done, total, message.as_deref().unwrap_or_default()).await?)
        }
        CommandMessage { status: Some(status), progress: None, log: None, ask: None, .. } => {
            Ok(ctx.report(&status).await?)
        }
        CommandMessage { log: Some(data), level, progress: None, status: None, ask: None, .. } => {
            ctx.log(level.unwrap_or(Level::Info).into(), data);
            Ok(())
        }
        CommandMessage { ask: Some(key), message, schema, progress: None, status: None, log: None, .. } => {
            if !QuestionKey::is_label(&key) {
                let why = TransitionError::BadLabel;
                return Err(Failure::tool(format!("The command cannot ask {:?}: {why}", quote(&key))));
            }
            let question = JsonForm { message: message.unwrap_or_else(|| key.clone()), schema };
            check_question(question.kind(), &question.params())
                .map_err(|wrong| Failure::tool(format!("The command cannot ask `{key}`: {wrong}")))?;
            let mut answer = match ask(ctx, running, &key, question).await? {
                Some(Ok(answer)) => answer,
                // The command decides what to do without an answer.
                Some(Err(CtxError::NotAnswered(reason))) => json!({ "action": "cancel", "reason": reason }),
                Some(Err(stop)) => return Err(stop.into()),
                // The command has ended and needs no answer. Its exit status decides the result.
                None => return Ok(()),
            };
            answer["ask"] = key.into();
            // The write fails if the command has ended meanwhile. Its exit status decides the result.
            let _ = running.write(format!("{answer}\n"));
            Ok(())
        }
        _ => Err(wrong(text, "it needs one of `progress`, `status`, `log` and `ask`")),
    }
}

/// The answer; `None` if the command ends before there is one, which closes the question.
async fn ask(
    ctx: &mut Ctx,
    running: &RunningCommand,
    key: &str,
    question: JsonForm,
) -> Result<Option<Result<Value, CtxError>>, Failure> {
    let answer = |mut ctx: Ctx| async move { ctx.ask(key, question).await };
    let end = |ctx: Ctx| {
        // This ends the context's branch. Only the branch that asks is left, so the handler counts as waiting and gives its
        // worker back.
        drop(ctx);
        running.exited()
    };
    match ctx.race("answer or end", answer, end).await? {
        Race::First(answer) => Ok(Some(answer)),
        Race::Second(exited) => {
            exited.map_err(CommandError::from)?;
            Ok(None)
        }
    }
}

fn wrong(text: &str, why: &str) -> Failure {
    Failure::tool(format!(
        "The command wrote a line that begins with `{PREFIX}` and cannot be read ({why}): {}",
        quote(text.trim())
    ))
}

/// A form whose fields are described by the command.
struct JsonForm {
    message: String,
    schema: Option<Value>,
}

impl Ask for JsonForm {
    type Answer = Value;

    fn kind(&self) -> QuestionKind {
        QuestionKind::Elicitation
    }

    fn params(&self) -> Json {
        let schema = self.schema.clone().unwrap_or_else(|| json!({ "type": "object", "properties": {} }));
        let params = json!({ "mode": "form", "message": self.message, "requestedSchema": schema });
        Json::from_text(params.to_string())
    }

    fn read(&self, answer: &Json) -> Result<Value, CtxError> {
        #[derive(Deserialize)]
        struct Answered {
            action: String,
            content: Option<Value>,
        }
        let Answered { action, content } =
            serde_json::from_str(answer.as_str()).map_err(|error| CtxError::BadAnswer(error.to_string()))?;
        let mut answer = json!({ "action": action });
        if let Some(content) = content {
            answer["content"] = content;
        }
        Ok(answer)
    }
}
