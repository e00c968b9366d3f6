//! Lines in the output of a command that are messages to the server: `longhaul: {"progress": 3, "total": 10}`.

use longhaul::command::{CommandError, LINE_BYTES_MAX, OutputLine, OutputStream, RunningCommand};
use longhaul::{Ask, Ctx, CtxError, Failure, Json, QuestionKind, Race, Severity};
use longhaul_task::{QuestionKey, TransitionError};
use longhaul_wire::jsonrpc::quote;
use longhaul_wire::question::check_question;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// How such a line begins.
const PREFIX: &str = "longhaul:";

/// What such a line says.
#[derive(Debug)]
enum CommandMessage {
    Progress { done: f64, total: Option<f64>, message: Option<String> },
    Status(String),
    Log { level: Severity, data: Value },
    Ask { label: String, question: JsonForm },
}

/// Reads the text after the prefix. The error says what is wrong with it.
fn parse(text: &str) -> Result<CommandMessage, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| format!("it is not JSON: {error}"))?;
    let Value::Object(mut members) = value else { return Err("it is not an object of JSON".to_owned()) };
    members.retain(|_, value| !value.is_null());
    let (progress, total) = (take_number(&mut members, "progress")?, take_number(&mut members, "total")?);
    let (status, message) = (take_text(&mut members, "status")?, take_text(&mut members, "message")?);
    let (label, schema) = (take_text(&mut members, "ask")?, members.remove("schema"));
    let (log, level) = (members.remove("log"), level(members.remove("level").as_ref())?);
    if let Some(other) = members.keys().next() {
        return Err(format!("it has `{}`, which no message has", quote(other)));
    }
    match (progress, status, log, label) {
        (Some(done), None, None, None) => Ok(CommandMessage::Progress { done, total, message }),
        (None, Some(status), None, None) => Ok(CommandMessage::Status(status)),
        (None, None, Some(data), None) => Ok(CommandMessage::Log { level, data }),
        (None, None, None, Some(label)) => {
            let message = message.unwrap_or_else(|| label.clone());
            Ok(CommandMessage::Ask { label, question: JsonForm { message, schema } })
        }
        (None, None, None, None) => Err("it has none of `progress`, `status`, `log` and `ask`".to_owned()),
        _ => Err("it has more than one of `progress`, `status`, `log` and `ask`; write a line for each".to_owned()),
    }
}

fn take_number(members: &mut Map<String, Value>, name: &str) -> Result<Option<f64>, String> {
    let read = |value: Value| value.as_f64().ok_or_else(|| format!("`{name}` must be a number"));
    members.remove(name).map(read).transpose()
}

fn take_text(members: &mut Map<String, Value>, name: &str) -> Result<Option<String>, String> {
    match members.remove(name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(format!("`{name}` must be a text")),
    }
}

fn level(value: Option<&Value>) -> Result<Severity, String> {
    match value.map(|value| value.as_str().unwrap_or_default()) {
        Some("debug") => Ok(Severity::Debug),
        None | Some("info") => Ok(Severity::Info),
        Some("notice") => Ok(Severity::Notice),
        Some("warning") => Ok(Severity::Warning),
        Some("error") => Ok(Severity::Error),
        Some(_) => Err("`level` must be `debug`, `info`, `notice`, `warning` or `error`".to_owned()),
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
        if !self.is_line_complete && line.bytes.len() >= LINE_BYTES_MAX {
            return Some(Err(Failure::tool(format!(
                "The command wrote a message that is too long: a line that begins with `{PREFIX}` can have at most \
                 {LINE_BYTES_MAX} bytes, with its line break"
            ))));
        }
        Some(Ok(text))
    }
}

/// Does what a message says. The answer to a question is written to the command's standard input.
pub(super) async fn obey(ctx: &mut Ctx, running: &mut RunningCommand, text: &str) -> Result<(), Failure> {
    match parse(text).map_err(|why| wrong(text, &why))? {
        CommandMessage::Progress { done, total, message } => {
            Ok(ctx.progress(done, total, message.as_deref().unwrap_or_default()).await?)
        }
        CommandMessage::Status(status) => Ok(ctx.report(&status).await?),
        CommandMessage::Log { level, data } => {
            ctx.log(level, data);
            Ok(())
        }
        CommandMessage::Ask { label, question } => {
            if !QuestionKey::is_label(&label) {
                let why = TransitionError::BadLabel;
                return Err(Failure::tool(format!("The command cannot ask {:?}: {why}", quote(&label))));
            }
            check_question(question.kind(), &question.params())
                .map_err(|wrong| Failure::tool(format!("The command cannot ask `{label}`: {wrong}")))?;
            let mut answer = match ask(ctx, running, &label, question).await? {
                Some(Ok(answer)) => answer,
                // The command decides what to do without an answer.
                Some(Err(CtxError::NotAnswered(reason))) => json!({ "action": "cancel", "reason": reason }),
                Some(Err(stop)) => return Err(stop.into()),
                // The command has ended and needs no answer. Its exit status decides the result.
                None => return Ok(()),
            };
            answer["ask"] = label.into();
            // The write fails if the command has ended meanwhile. Its exit status decides the result.
            let _ = running.write(format!("{answer}\n"));
            Ok(())
        }
    }
}

/// The answer; `None` if the command ends before there is one, which closes the question.
async fn ask(
    ctx: &mut Ctx,
    running: &RunningCommand,
    label: &str,
    question: JsonForm,
) -> Result<Option<Result<Value, CtxError>>, Failure> {
    let answer = |mut ctx: Ctx| async move { ctx.ask(label, question).await };
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
#[derive(Debug)]
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
