//! The studies that are plans and nothing else: a command line from the options of the plan, and
//! its cells. One more study is one more file in `crates/esker-bench/studies`, named here.

use crate::exit::EXIT_USAGE;
use crate::output::complain;
use crate::sweep::grid::{Execution, GridArguments, Plan, run_study};
use crate::sweep::plan::{OptionKind, OptionTable, PlanText, Wanted};
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, value_parser};
use std::path::Path;

/// The files, in the order of the help.
const FILES: [(&str, &str); 4] = [
    ("rmw.toml", include_str!("../../studies/rmw.toml")),
    ("memtable.toml", include_str!("../../studies/memtable.toml")),
    ("leveldb-2011.toml", include_str!("../../studies/leveldb-2011.toml")),
    ("workloads.toml", include_str!("../../studies/workloads.toml")),
];

/// A study with its plan.
pub struct Planned {
    plan: PlanText,
}

impl Planned {
    /// All of them.
    pub fn all() -> Vec<Planned> {
        let read = |(name, text): &(&str, &str)| PlanText::parse(&Path::new("studies").join(name), text);
        let plans = FILES.iter().map(read).collect::<Result<Vec<PlanText>, String>>();
        let plans = plans.expect("they are part of the program, and a test reads every one");
        plans.into_iter().map(|plan| Planned { plan }).collect()
    }

    /// The one with this name.
    pub fn find(name: &str) -> Option<Planned> {
        Planned::all().into_iter().find(|study| study.name() == name)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.plan.file().study.as_ref().map_or("", |study| &study.name)
    }

    /// Its command line.
    pub fn command(&self) -> Command {
        let mut command = GridArguments::augment_args(Command::new(self.name().to_owned()));
        if let Some(study) = &self.plan.file().study {
            command = command.about(study.about.clone()).after_help(study.examples.clone());
        }
        let options = self.plan.file().options.iter().map(|option| self.argument(option));
        command.args(options)
    }

    fn argument(&self, option: &OptionTable) -> Arg {
        let name = option.name.clone();
        let mut argument = Arg::new(name.clone()).long(name).help(option.help.clone());
        if option.kind == OptionKind::Switch {
            return argument.action(ArgAction::SetTrue);
        }
        argument = argument.value_name(option.value_name.clone()).default_values(option.default.clone());
        match option.kind {
            OptionKind::Count => argument.value_parser(value_parser!(u64)),
            OptionKind::Fraction => argument.value_parser(value_parser!(f64)),
            OptionKind::Experiments => argument.value_delimiter(',').value_parser(self.experiments()),
            OptionKind::Choice | OptionKind::Switch => argument.value_parser(choices(&option.choices)),
        }
    }

    fn experiments(&self) -> PossibleValuesParser {
        let named = self.plan.file().experiments.iter().filter(|experiment| !experiment.about.is_empty());
        let pairs: Vec<(String, String)> =
            named.map(|experiment| (experiment.name.replace(' ', "-"), experiment.about.clone())).collect();
        choices(&pairs)
    }

    /// Does it as its command line says. Returns the exit code of the process.
    pub fn main(&self, matches: &ArgMatches) -> i32 {
        let command = format!("study {}", self.name());
        let (grid, wanted, engines) = match self.asked(matches) {
            Ok(asked) => asked,
            Err(problem) => return complain(&command, &problem, EXIT_USAGE),
        };
        let plan = |engines: &[String]| self.plan.plan(&Wanted { engines: engines.to_vec(), ..wanted });
        let (kinds, out) = (crate::all_kinds(), &mut std::io::stdout());
        run_study(Execution::of_program(&kinds), &command, &grid, &engines.join(","), plan, out)
    }

    /// What such a command line plans for these engines, without doing it; those of the study if
    /// none are given. `numbers` are names in its expressions that are replaced. The error is what
    /// is said of it.
    pub fn plan(&self, arguments: &[&str], engines: &[&str], numbers: &[(&str, &str)]) -> Result<Plan, String> {
        let matches = self.command().no_binary_name(true).try_get_matches_from(arguments);
        let (_, mut wanted, own) = self.asked(&matches.map_err(|error| error.to_string())?)?;
        wanted.engines = engines.iter().map(|name| name.to_string()).collect();
        if engines.is_empty() {
            wanted.engines = own;
        }
        wanted.numbers.extend(numbers.iter().map(|(name, text)| (name.to_string(), text.to_string())));
        self.plan.plan(&wanted)
    }

    /// What a command line asks for, and the engines that the study measures by itself then.
    fn asked(&self, matches: &ArgMatches) -> Result<(GridArguments, Wanted, Vec<String>), String> {
        let grid = GridArguments::from_arg_matches(matches).map_err(|error| error.to_string())?;
        let mut wanted = self.plan.wanted();
        wanted.repeat = grid.repeat.unwrap_or(wanted.repeat);
        for option in &self.plan.file().options {
            let value = match option.kind {
                OptionKind::Count => matches.get_one::<u64>(&option.name).map(u64::to_string),
                OptionKind::Fraction => matches.get_one::<f64>(&option.name).map(f64::to_string),
                OptionKind::Choice => matches.get_one::<String>(&option.name).cloned(),
                OptionKind::Switch if matches.get_flag(&option.name) => {
                    wanted.numbers.extend(option.numbers.iter().map(|(name, text)| (name.clone(), text.0.clone())));
                    Some("1".into())
                }
                OptionKind::Switch => None,
                OptionKind::Experiments => {
                    let named = matches.get_many::<String>(&option.name).into_iter().flatten();
                    wanted.experiments = named.map(|name| self.experiment(name)).collect();
                    None
                }
            };
            wanted.numbers.extend(value.map(|value| (option.number_name(), value)));
        }
        let engines = self.plan.engines(&wanted)?;
        Ok((grid, wanted, engines))
    }

    /// The name in cells of what the command line calls so.
    fn experiment(&self, name: &str) -> String {
        let mut names = self.plan.file().experiments.iter().map(|experiment| &experiment.name);
        names.find(|known| known.replace(' ', "-") == name).cloned().unwrap_or_else(|| name.to_owned())
    }
}

fn choices(pairs: &[(String, String)]) -> PossibleValuesParser {
    let value = |(name, help): &(String, String)| PossibleValue::new(name.clone()).help(help.clone());
    pairs.iter().map(value).collect::<Vec<_>>().into()
}
