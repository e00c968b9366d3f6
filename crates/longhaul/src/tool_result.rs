//! Results of a handler.

use longhaul_task::Json;
use longhaul_wire::content::ToolResult;
use schemars::JsonSchema;
use serde::Serialize;

use crate::Failure;
use crate::schema;

/// A value that a handler can return: a text, a [`Structured`] value, a [`ToolResult`], or a type of your own.
///
/// ```
/// use longhaul::{IntoToolResult, Content, Failure, Json, ToolResult};
///
/// struct Chart {
///     png: Vec<u8>,
/// }
///
/// impl IntoToolResult for Chart {
///     fn output_schema() -> Option<Json> {
///         Some(Json::from_text(r#"{"type":"object","properties":{"bytes":{"type":"integer"}}}"#))
///     }
///
///     fn into_result(self) -> Result<ToolResult, Failure> {
///         let bytes = Json::from_text(format!(r#"{{"bytes":{}}}"#, self.png.len()));
///         Ok(ToolResult::new().with(Content::image(&self.png, "image/png")).with_structured(bytes))
///     }
/// }
/// ```
pub trait IntoToolResult {
    /// The schema of the structured content, if there is one. Clients see it before they call.
    fn output_schema() -> Option<Json> {
        None
    }

    /// The tool result.
    fn into_result(self) -> Result<ToolResult, Failure>;
}

impl IntoToolResult for ToolResult {
    fn into_result(self) -> Result<ToolResult, Failure> {
        Ok(self)
    }
}

impl IntoToolResult for String {
    fn into_result(self) -> Result<ToolResult, Failure> {
        Ok(ToolResult::text(&self))
    }
}

impl IntoToolResult for &str {
    fn into_result(self) -> Result<ToolResult, Failure> {
        Ok(ToolResult::text(self))
    }
}

/// A typed result. Programs get the value, with a schema that clients see before they call; models get its JSON, or the text
/// that [`with_text`](Self::with_text) sets.
///
/// ```
/// use longhaul::Structured;
/// # use longhaul::JsonSchema;
/// #[derive(serde::Serialize, JsonSchema)]
/// struct Report {
///     pages: u32,
/// }
///
/// let result = Structured(Report { pages: 3 });
/// let result = Structured(Report { pages: 3 }).with_text("Three pages are ready.");
/// ```
#[derive(Debug, Clone)]
pub struct Structured<T>(pub T);

/// A typed result with a text for models. See [`Structured::with_text`].
#[derive(Debug, Clone)]
pub struct StructuredWithText<T> {
    value: T,
    text: String,
}

impl<T> Structured<T> {
    /// Sets the text for models.
    pub fn with_text(self, text: impl Into<String>) -> StructuredWithText<T> {
        StructuredWithText { value: self.0, text: text.into() }
    }
}

impl<T: Serialize + JsonSchema> IntoToolResult for Structured<T> {
    fn output_schema() -> Option<Json> {
        Some(schema::of::<T>())
    }

    fn into_result(self) -> Result<ToolResult, Failure> {
        let json = serde_json::to_string(&self.0)?;
        Ok(ToolResult::text(&json).with_structured(Json::from_text(json)))
    }
}

impl<T: Serialize + JsonSchema> IntoToolResult for StructuredWithText<T> {
    fn output_schema() -> Option<Json> {
        Some(schema::of::<T>())
    }

    fn into_result(self) -> Result<ToolResult, Failure> {
        let json = serde_json::to_string(&self.value)?;
        Ok(ToolResult::text(&self.text).with_structured(Json::from_text(json)))
    }
}
