//! `esker explain`: every option of the engine, and where its value comes from.

use crate::failure::Failure;
use crate::output::Output;
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

/// A number of bytes with or without a unit.
fn size(text: &str) -> Result<usize, String> {
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let shift = match unit {
        "" | "B" => 0,
        "KiB" => 10,
        "MiB" => 20,
        "GiB" => 30,
        _ => return Err("use a number of bytes, or one with KiB, MiB or GiB".into()),
    };
    let number: usize = number.parse().map_err(|_| "use a whole number, as in 64MiB".to_owned())?;
    number.checked_mul(1 << shift).ok_or_else(|| "the size is too large".into())
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_have_units() {
        assert_eq!([size("0"), size("7B"), size("64MiB"), size("3KiB")], [Ok(0), Ok(7), Ok(64 << 20), Ok(3 << 10)]);
        for wrong in ["", "MiB", "-1", "1.5GiB", "64MB", "99999999999GiB", "99999999999999999999999"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}
