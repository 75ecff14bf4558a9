//! `esker explain`: every option of the engine, and where its value comes from.

use crate::failure::Failure;
use crate::output::Output;
use crate::size::size;
use esker::{Explanation, Options, Profile};
use serde_json::{Value, json};

const EXAMPLES: &str = "\
Examples:
  esker explain
  esker explain --profile counters
  esker explain --memory-budget 256MiB --json

Sizes are bytes, or have a unit: KiB, MiB, GiB. A memory budget has at least 1 MiB.";

/// Show every option of the engine: its value, where it comes from, what it trades
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Explain {
    /// The kind of load: counters, balanced, read-heavy or large-values
    #[arg(long, value_name = "PROFILE")]
    profile: Option<Profile>,
    /// A limit for all memory together
    #[arg(long, value_name = "SIZE", value_parser = size)]
    memory_budget: Option<usize>,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

impl Explain {
    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        let mut options = Options::default();
        if let Some(profile) = self.profile {
            options = options.profile(profile);
        }
        if let Some(bytes) = self.memory_budget {
            options = options.memory_budget_bytes(bytes);
        }
        options.validate().map_err(|error| match error {
            esker::Error::InvalidArgument { what } => Failure::Usage(what),
            other => other.into(),
        })?;
        let explanation = options.explain();
        let mut output = Output::standard();
        if self.json {
            output.line(&explanation_json(&explanation).to_string())?;
        } else {
            output.line(explanation.to_string().trim_end())?;
        }
        output.finish()
    }
}

fn explanation_json(explanation: &Explanation) -> Value {
    let option = |option: &esker::ExplainedOption| {
        json!({
            "name": option.name,
            "value": option.value,
            "origin": option.origin.to_string(),
            "trade_off": option.trade_off,
        })
    };
    explanation.options.iter().map(option).collect()
}
