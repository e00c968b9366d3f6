//! `notifications/message`, which is the same in every generation.

use longhaul_task::LogLine;

use crate::jsonrpc;
use crate::text;

/// The notification; `meta` appends what else the generation has to say.
pub(crate) fn notification(line: &LogLine, meta: impl FnOnce(&mut String)) -> String {
    jsonrpc::notification("notifications/message", 192 + line.data.bytes(), |out| {
        out.push_str("{\"level\":\"");
        out.push_str(line.level.as_str());
        out.push('"');
        if let Some(logger) = &line.logger {
            text::push_str_member(out, "logger", logger);
        }
        text::push_raw_member(out, "data", line.data.as_str());
        meta(out);
        out.push('}');
    })
}
