//! Every kind of content that a tool can answer with.

use std::time::Duration;

use longhaul::{Content, Ctx, Failure, NoArgs, TaskSupport, Tool, ToolResult};

/// A picture of one pixel.
pub(crate) const PNG: &[u8] = &[
    0x89, b'P', b'N', b'G', 0x0D, 0x0A, 0x1A, 0x0A, 0, 0, 0, 13, b'I', b'H', b'D', b'R', 0, 0, 0, 1, 0, 0, 0, 1, 8, 6,
    0, 0, 0, 0x1F, 0x15, 0xC4, 0x89, 0, 0, 0, 13, b'I', b'D', b'A', b'T', 0x78, 0x9C, 0x63, 0xF8, 0xCF, 0xC0, 0xF0,
    0x1F, 0, 5, 0, 1, 0xFF, 0x89, 0x99, 0x3D, 0x1D, 0, 0, 0, 0, b'I', b'E', b'N', b'D', 0xAE, 0x42, 0x60, 0x82,
];

/// A sound without samples.
const WAV: &[u8] = &[
    b'R', b'I', b'F', b'F', 36, 0, 0, 0, b'W', b'A', b'V', b'E', b'f', b'm', b't', b' ', 16, 0, 0, 0, 1, 0, 1, 0, 0x40,
    0x1F, 0, 0, 0x40, 0x1F, 0, 0, 1, 0, 8, 0, b'd', b'a', b't', b'a', 0, 0, 0, 0,
];

pub(crate) fn tools() -> Vec<Tool> {
    vec![
        ordinary("test_simple_text", || ToolResult::text("This is a simple text response for testing.")),
        ordinary("test_image_content", || ToolResult::new().with(Content::image(PNG, "image/png"))),
        ordinary("test_audio_content", || ToolResult::new().with(Content::audio(WAV, "audio/wav"))),
        ordinary("test_embedded_resource", || {
            let text = "This is an embedded resource content.";
            ToolResult::new().with(Content::embedded_text("test://embedded-resource", text, Some("text/plain")))
        }),
        ordinary("test_multiple_content_types", || {
            let json = r#"{"test":"data","value":123}"#;
            ToolResult::text("Multiple content types test:")
                .with(Content::image(PNG, "image/png"))
                .with(Content::embedded_text("test://mixed-content-resource", json, Some("application/json")))
        }),
        ordinary("test_error_handling", || ToolResult::error("This tool intentionally returns an error for testing")),
        Tool::new("test_tool_with_progress", progress)
            .description("Reports its progress.")
            .task_support(TaskSupport::Forbidden),
    ]
}

fn ordinary(name: &str, answer: fn() -> ToolResult) -> Tool {
    Tool::new(name, move |_: Ctx, _: NoArgs| async move { Ok(answer()) })
        .description("Answers with content of some kind.")
        .task_support(TaskSupport::Forbidden)
}

async fn progress(mut ctx: Ctx, _: NoArgs) -> Result<String, Failure> {
    for done in [0.0, 50.0, 100.0] {
        ctx.progress(done, 100, "working").await?;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok("done".into())
}
