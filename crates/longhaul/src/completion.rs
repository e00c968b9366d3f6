//! Completions of arguments.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use longhaul_engine::{EngineTool, Failure};
use longhaul_receiver::Completions;
use longhaul_wire::call_result::function_name;
use longhaul_wire::completion;
use serde::Deserialize;

use crate::function::{self, FunctionRules};

/// What a function that completes an argument gets.
#[derive(Debug, Clone)]
pub struct CompletionRequest {
    /// What the user has typed so far.
    pub value: String,
    /// The other arguments, as far as the client knows them.
    pub arguments: BTreeMap<String, String>,
}

type Completing = Pin<Box<dyn Future<Output = Result<Vec<String>, Failure>> + Send>>;

/// Completes one argument.
type Completer = Arc<dyn Fn(CompletionRequest) -> Completing + Send + Sync>;

/// The arguments that are completed, each with its function.
#[derive(Clone, Default)]
pub(crate) struct Completers(BTreeMap<String, Completer>);

impl Completers {
    pub(crate) fn add<F, Fut>(&mut self, argument: String, function: F)
    where
        F: Fn(CompletionRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<String>, Failure>> + Send + 'static,
    {
        self.0.insert(argument, Arc::new(move |request| Box::pin(function(request))));
    }

    /// Completes from a fixed list: the values that begin with what was typed, in the order of the list.
    pub(crate) fn add_values(&mut self, argument: String, values: Vec<String>) {
        let values: Arc<[String]> = values.into();
        self.add(argument, move |request| {
            let typed = request.value.to_lowercase();
            let matching: Vec<_> =
                values.iter().filter(|value| value.to_lowercase().starts_with(&typed)).cloned().collect();
            async move { Ok(matching) }
        });
    }

    pub(crate) fn arguments(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// What the catalogue knows of them, and what the engine runs; `None` if there are none.
    pub(crate) fn split(self, of: &str) -> Option<(Completions, EngineTool)> {
        #[derive(Deserialize)]
        struct CompletionInput {
            argument: String,
            value: String,
            arguments: BTreeMap<String, String>,
        }
        if self.0.is_empty() {
            return None;
        }
        let engine_name = function_name("completion/complete", of);
        let arguments = self.0.keys().cloned().collect();
        let completers = Arc::new(self.0);
        let complete = move |_, input: CompletionInput| {
            let completer = completers.get(&input.argument).cloned();
            async move {
                let values = match completer {
                    Some(completer) => {
                        completer(CompletionRequest { value: input.value, arguments: input.arguments }).await?
                    }
                    None => Vec::new(),
                };
                Ok(completion::result(&values))
            }
        };
        let tool = function::engine_tool(engine_name.clone(), "completion", FunctionRules::default(), complete);
        Some((Completions { engine_name: engine_name.into(), arguments }, tool))
    }
}

impl fmt::Debug for Completers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.arguments()).finish()
    }
}
