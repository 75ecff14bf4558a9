//! Plans as data: what a sweep's file or a study's asks for, as cells.

mod expand;
pub mod expression;
mod file;
mod problem;
mod step;
mod values;

use super::grid::Plan;
use crate::flags::config::engine_names;
use expression::{evaluate, holds};
use problem::Problem;
use std::path::{Path, PathBuf};

pub use expand::Wanted;
pub use file::{OptionKind, OptionTable, PlanFile};

/// A plan that was read and checked.
#[derive(Debug, Clone)]
pub struct PlanText {
    path: PathBuf,
    text: String,
    file: PlanFile,
}

impl PlanText {
    /// Reads a file. The error is one line: the file, the line and the column in it, and what is
    /// wrong there.
    pub fn read(path: &Path) -> Result<PlanText, String> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        let read = PlanText::parse(path, &text)?;
        // Whatever is wrong with it is wrong for every engine: learn it now.
        let wanted = read.wanted();
        let engines = read.engines(&wanted)?.into_iter().take(1).collect();
        read.plan(&Wanted { engines, repeat: 1, ..wanted })?;
        Ok(read)
    }

    /// The same with its text passed in, and what its experiments say not checked yet.
    pub fn parse(path: &Path, text: &str) -> Result<PlanText, String> {
        let file = file::parse(text).and_then(|file| check(&file).map(|()| file));
        let file = file.map_err(|problem| problem.describe(path, text))?;
        Ok(PlanText { path: path.to_path_buf(), text: text.to_owned(), file })
    }

    /// As it is written.
    pub fn file(&self) -> &PlanFile {
        &self.file
    }

    /// The name of the file.
    pub fn name(&self) -> String {
        self.path.file_stem().map_or_else(|| "sweep".into(), |stem| stem.to_string_lossy().into_owned())
    }

    /// What it asks for by itself, but for the engines.
    pub fn wanted(&self) -> Wanted {
        let mut wanted = Wanted { repeat: *self.file.repeat.get_ref(), ..Wanted::default() };
        for option in &self.file.options {
            let default = if option.kind == OptionKind::Switch { Some("0") } else { option.default.as_deref() };
            wanted.numbers.extend(default.map(|value| (option.number_name(), value.to_owned())));
        }
        wanted
    }

    /// The engines that it measures by itself.
    pub fn engines(&self, wanted: &Wanted) -> Result<Vec<String>, String> {
        let names = wanted.names(&self.file);
        let mut engines: Vec<String> = Vec::new();
        for entry in &self.file.engines {
            let engine = &entry.get_ref().0;
            if engine.when.as_ref().map_or(Ok(true), |when| holds(when, &names))? {
                for name in engine_names(&engine.name)? {
                    if !engines.contains(&name) {
                        engines.push(name);
                    }
                }
            }
        }
        Ok(engines)
    }

    /// The cells.
    pub fn plan(&self, wanted: &Wanted) -> Result<Plan, String> {
        if wanted.repeat == 0 {
            return Err("--repeat must be at least 1".into());
        }
        let names = wanted.names(&self.file);
        for option in &self.file.options {
            let Some((least, most)) = option.range else { continue };
            let value = evaluate(&option.number_name(), &names)?;
            if !(least..=most).contains(&value) {
                let bounds =
                    if most.is_finite() { format!("between {least} and {most}") } else { format!("at least {least}") };
                return Err(format!("--{} must be {bounds}", option.name));
            }
        }
        let plan = expand::expand(&self.file, wanted, &self.name());
        plan.map_err(|problem| problem.describe(&self.path, &self.text))
    }
}

/// What can be seen without expanding it.
fn check(file: &PlanFile) -> Result<(), Problem> {
    for name in &file.engines {
        let engine = &name.get_ref().0.name;
        // A comma in a name would make it two.
        let known = if engine.contains(',') { Err("one name each, please".into()) } else { engine_names(engine) };
        known.map_err(|text| Problem::at(name.span(), text))?;
    }
    let seconds = &file.limits.benchmark_seconds;
    let wrong = seconds.as_ref().filter(|seconds| !seconds.get_ref().is_finite() || *seconds.get_ref() <= 0.0);
    if file.processes.is_empty() && file.experiments.is_empty() {
        Err(Problem::at(0..0, "a sweep needs at least one [[process]]".into()))
    } else if *file.repeat.get_ref() == 0 {
        Err(Problem::at(file.repeat.span(), "`repeat` must be at least 1".into()))
    } else if file.engines.is_empty() {
        Err(Problem::at(0..0, "`engines` names no engine".into()))
    } else if let Some(seconds) = wrong {
        Err(Problem::at(seconds.span(), "`benchmark_seconds` must be above 0".into()))
    } else {
        Ok(())
    }
}
