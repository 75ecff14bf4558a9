//! Long runs of the checks, and replays of single ones.

use clap::{Args, Parser, Subcommand};
use esker_check::Checked;
use esker_check::campaign::Campaign;
use esker_check::counts::Feature;
use esker_check::crashes::Crashes;
use esker_check::faults::Faults;
use esker_check::kill9::{self, KillLoop};
use esker_check::powerloss::PowerLoss;
use esker_check::rot::{FIXED_DATABASES, Rot};
use esker_check::settings::Settings;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Checks Esker. Every failure prints the command that repeats it.
#[derive(Parser)]
#[command(name = "esker-check")]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Random operations against the reference model
    Model(Model),
    /// Power loss at every call of the scripts, then of all sequences of steps; half of the time
    /// for either
    Powerloss(Powerloss),
    /// Random scripts over the whole interface, with losses at random calls
    Crashes(Scripts),
    /// A failing call at every index of the scripts
    Faults(Chosen),
    /// Power loss with one sync left out at a time
    Ablation(Chosen),
    /// Damage to stored files, while closed and while open
    Rot(Damage),
    /// Writers, readers and losses at the same time
    Threads(Common),
    /// A writing process killed again and again
    Kill9(Kill9),
    /// How far a follower is behind a writing process
    Lag(Lag),
    /// Writers faster than the disk, thousands of readers and of keyspaces, full disks, too few
    /// descriptors, little memory; needs Linux
    Overload(Overload),
    /// File systems cut off from their device while a process writes, and one that is full and
    /// whose files share blocks; needs root and Linux
    Realdisk(Realdisk),
    /// The process that `kill9` kills
    #[command(hide = true)]
    Kill9Child { path: PathBuf, seed: u64, salt: u64 },
    /// The process that `lag` follows
    #[command(hide = true)]
    LagChild { path: PathBuf, rate: u64 },
    /// The process of one scenario of `overload`
    #[command(hide = true)]
    OverloadChild {
        #[arg(allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// `realdisk` in a mount namespace of its own
    #[command(hide = true)]
    RealdiskInside(Realdisk),
    /// The process that writes while its file system is cut off
    #[command(hide = true)]
    RealdiskChild { path: PathBuf, seed: u64, cuts: u64 },
    /// The process that fills a disk whose blocks two databases share
    #[command(hide = true)]
    RealdiskFullChild { path: PathBuf, seed: u64 },
}

#[derive(Args)]
struct Common {
    /// Where all randomness comes from
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// When to begin nothing new
    #[arg(long)]
    seconds: Option<u64>,
}

impl Common {
    fn settings(&self) -> Settings {
        Settings::new(self.seed, Duration::from_secs(self.seconds.unwrap_or(60)))
    }
}

#[derive(Args)]
struct Lag {
    /// Puts of the writer, a second
    #[arg(long, default_value_t = 100_000)]
    rate: u64,
    /// How long
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// Where the database goes
    #[arg(long, default_value_os_t = std::env::temp_dir())]
    dir: PathBuf,
}

#[derive(Args)]
struct Chosen {
    #[command(flatten)]
    common: Common,
    /// Only scripts whose name contains this
    #[arg(long, default_value = "")]
    only: String,
    /// Runs at the same time
    #[arg(long, default_value_t = cores())]
    threads: usize,
}

#[derive(Args)]
struct Model {
    #[command(flatten)]
    common: Common,
    /// Only option sets whose name contains this
    #[arg(long, default_value = "")]
    only: String,
    /// The number of the first run
    #[arg(long, default_value_t = 0)]
    first_run: u64,
    /// No more runs than this
    #[arg(long, default_value_t = u64::MAX)]
    runs: u64,
    /// Operations of a run
    #[arg(long, default_value_t = 2000)]
    operations: usize,
    /// No new run after so many; without --seconds there is no other limit then
    #[arg(long, default_value_t = u64::MAX)]
    operations_total: u64,
    /// What half of the operations are to be about
    #[arg(long, value_enum)]
    mostly: Option<Feature>,
    /// What the runs may use besides: clock-back
    #[arg(long, default_value = "")]
    with: String,
    /// What they may not use: ttl,ranges,operators,custom,maintenance,transactions,orders,drops,
    /// loads,changes,settings
    #[arg(long, default_value = "")]
    without: String,
    /// Where databases on a real disk go
    #[arg(long, default_value_os_t = std::env::temp_dir())]
    dir: PathBuf,
    /// Runs at the same time
    #[arg(long, default_value_t = cores())]
    workers: usize,
}

#[derive(Args)]
struct Powerloss {
    #[command(flatten)]
    chosen: Chosen,
    /// Random images of each moment, beside the fixed ones
    #[arg(long, default_value_t = 8)]
    seeds: usize,
    /// How often recovery is interrupted in turn
    #[arg(long, default_value_t = 2)]
    depth: usize,
    /// Steps of the sequences
    #[arg(long, default_value_t = 3)]
    length: u32,
}

#[derive(Args)]
struct Scripts {
    #[command(flatten)]
    common: Common,
    /// Only under options whose name contains this
    #[arg(long, default_value = "")]
    only: String,
    /// The number of the first run
    #[arg(long, default_value_t = 0)]
    first_run: u64,
    /// No more runs than this
    #[arg(long, default_value_t = u64::MAX)]
    runs: u64,
    /// Moments of each run at which something dies
    #[arg(long, default_value_t = 6)]
    points: usize,
    /// What the scripts may not do
    #[arg(long, value_parser = ["repair"])]
    without: Option<String>,
    /// Runs at the same time
    #[arg(long, default_value_t = cores())]
    threads: usize,
}

#[derive(Args)]
struct Damage {
    #[command(flatten)]
    common: Common,
    /// The number of the first database
    #[arg(long, default_value_t = 0)]
    first_run: u64,
    /// No more databases than this; of --full without --seconds, the fixed ones if not given
    #[arg(long)]
    runs: Option<u64>,
    /// Flips in each database
    #[arg(long)]
    flips: Option<u64>,
    /// Every bit of every file instead; without --seconds there is no limit of time then
    #[arg(long)]
    full: bool,
    /// Databases at the same time
    #[arg(long, default_value_t = cores())]
    threads: usize,
}

impl Damage {
    /// A full sweep without a limit of time ends behind the fixed databases, if nobody has said how
    /// many there are to be: there is no end of random ones.
    fn campaign(&self) -> Rot {
        let mut settings = self.common.settings();
        let mut runs = u64::MAX;
        if self.full && self.common.seconds.is_none() {
            settings.budget = Duration::MAX;
            runs = FIXED_DATABASES.saturating_sub(self.first_run).max(1);
        }
        let mut campaign = Rot::new(settings);
        campaign.first_run = self.first_run;
        campaign.runs = self.runs.unwrap_or(runs);
        campaign.flips = self.flips.unwrap_or(campaign.flips);
        campaign.full = self.full;
        campaign.threads = self.threads;
        campaign
    }
}

#[derive(Args)]
struct Kill9 {
    #[command(flatten)]
    common: Common,
    /// No more kills than this
    #[arg(long, default_value_t = 200)]
    rounds: u64,
    /// The longest time to a kill, in milliseconds
    #[arg(long, default_value_t = 200)]
    longest_life: usize,
    /// Where the databases go
    #[arg(long, default_value_os_t = std::env::temp_dir())]
    dir: PathBuf,
}

#[derive(Args)]
struct Overload {
    #[command(flatten)]
    common: Common,
    /// Only scenarios whose name contains this
    #[arg(long, default_value = "")]
    only: String,
    /// Snapshots and iterators held at the same time
    #[arg(long, default_value_t = 3000)]
    readers: u64,
    /// Keyspaces of one database
    #[arg(long, default_value_t = 10_000)]
    keyspaces: u64,
    /// Where the databases go
    #[arg(long, default_value_os_t = std::env::temp_dir())]
    dir: PathBuf,
}

#[derive(Args)]
struct Realdisk {
    #[command(flatten)]
    common: Common,
    /// Only file systems whose name contains this
    #[arg(long, default_value = "")]
    only: String,
    /// No more cuts than this
    #[arg(long, default_value_t = u64::MAX)]
    cuts: u64,
    /// Where the images of the file systems go
    #[arg(long, default_value_os_t = std::env::temp_dir())]
    dir: PathBuf,
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from)
}

fn program() -> Checked<PathBuf> {
    std::env::current_exe().map_err(|error| format!("the own program is not known: {error}"))
}

fn model(given: Model) -> Checked<()> {
    let mut settings = given.common.settings();
    if given.operations_total != u64::MAX && given.common.seconds.is_none() {
        settings.budget = Duration::MAX;
    }
    let mut campaign = Campaign::new(settings, &given.dir);
    campaign.runs = given.runs;
    campaign.first_run = given.first_run;
    campaign.operations = given.operations;
    campaign.operations_total = given.operations_total;
    campaign.features.set(&given.without, false)?;
    campaign.features.set(&given.with, true)?;
    campaign.mostly = given.mostly;
    campaign.only = given.only;
    campaign.workers = given.workers;
    let totals = campaign.run()?;
    for set in &totals.option_sets {
        println!("  {set}");
    }
    let seconds = settings.elapsed_seconds();
    println!("  {}", totals.feed());
    println!("  {}", totals.features());
    println!(
        "model: seed {}, {} runs, {} operations, {} option sets, {seconds:.0} s, {:.0} operations/s: no difference",
        settings.seed,
        totals.runs,
        totals.operations,
        totals.option_sets.len(),
        totals.operations as f64 / seconds
    );
    Ok(())
}

fn powerloss(given: Powerloss) -> Checked<()> {
    let Chosen { common, only, threads } = given.chosen;
    let whole = common.settings();
    // Half of the time for either: the first would take all of a short one.
    let campaign = |budget| {
        let settings = Settings::new(whole.seed, budget);
        let mut campaign = PowerLoss::new(settings);
        (campaign.seeds, campaign.depth, campaign.threads) = (given.seeds, given.depth, threads);
        campaign.only.clone_from(&only);
        campaign
    };
    println!("powerloss, every call: seed {}, {}", whole.seed, campaign(whole.budget / 2).every_call()?);
    let rest = whole.budget.saturating_sub(Duration::from_secs_f64(whole.elapsed_seconds()));
    let length = given.length;
    println!("powerloss, sequences of {length}: seed {}, {}", whole.seed, campaign(rest).every_sequence(length)?);
    Ok(())
}

fn crashes(given: Scripts) -> Checked<()> {
    let settings = given.common.settings();
    let mut campaign = Crashes::new(settings);
    campaign.first_run = given.first_run;
    campaign.runs = given.runs;
    campaign.limits.repair = given.without.is_none();
    campaign.points = given.points;
    campaign.only = given.only;
    campaign.threads = given.threads;
    println!("crashes: seed {}, {}", settings.seed, campaign.run()?);
    Ok(())
}

fn rot(given: &Damage) -> Checked<()> {
    println!("rot: seed {}, {}", given.common.seed, given.campaign().run()?);
    Ok(())
}

fn faults(given: Chosen) -> Checked<()> {
    let settings = given.common.settings();
    let campaign = Faults { settings, only: given.only, threads: given.threads };
    println!("faults: seed {}, {}", settings.seed, campaign.every_call()?);
    Ok(())
}

fn ablation(given: Chosen) -> Checked<()> {
    let settings = given.common.settings();
    for ((target, step), count) in esker_check::ablation::run_all(settings, &given.only)? {
        println!(
            "ablation: {target}, in {step}: {} syncs left out one at a time, {} noticed",
            count.left_out, count.noticed
        );
    }
    if settings.over() {
        println!("ablation: the time was up before every sync had been left out");
    }
    Ok(())
}

fn threads(given: Common) -> Checked<()> {
    let settings = given.settings();
    println!("threads: seed {}, {:?}", settings.seed, esker_check::threads::run(settings)?);
    Ok(())
}

fn lag(given: Lag) -> Checked<()> {
    let (rate, duration) = (given.rate, Duration::from_secs(given.seconds));
    let lag = esker_check::lag::Lag { program: program()?, directory: given.dir, rate, duration };
    println!("lag at {rate} puts/s: {}", lag.run()?);
    Ok(())
}

fn kill9(given: Kill9) -> Checked<()> {
    let kills = KillLoop {
        program: program()?,
        directory: given.dir,
        rounds: given.rounds,
        seed: given.common.seed,
        longest_life: given.longest_life,
    };
    let totals = kills.run(Duration::from_secs(given.common.seconds.unwrap_or(u64::MAX / 2)))?;
    println!("kill9: seed {}, {totals:?}: no acknowledged commit lost", kills.seed);
    Ok(())
}

#[cfg(target_os = "linux")]
fn overload(given: Overload) -> Checked<()> {
    let settings = given.common.settings();
    let campaign = esker_check::overload::Overload {
        settings,
        program: program()?,
        directory: given.dir.clone(),
        device: given.dir,
        only: given.only,
        readers: given.readers,
        keyspaces: given.keyspaces,
    };
    let totals = campaign.run(&mut |name, line| println!("overload: seed {}, {name}: {line}", settings.seed))?;
    println!("overload: seed {}, {} scenarios, {} skipped", settings.seed, totals.scenarios, totals.skipped);
    Ok(())
}

#[cfg(target_os = "linux")]
fn overload_child(words: &[String]) -> Checked<()> {
    println!("{}", esker_check::overload::child(words)?);
    Ok(())
}

#[cfg(target_os = "linux")]
fn realdisk(given: &Realdisk) -> Checked<()> {
    match esker_check::realdisk::obstacle() {
        Some(what) if esker_check::realdisk::must_run(&given.only) => {
            Err(format!("realdisk: CI does not skip it: {what}"))
        }
        Some(what) => {
            println!("realdisk: skipped: {what}");
            Ok(())
        }
        None => {
            let words: Vec<String> = std::env::args().skip(2).collect();
            Err(esker_check::realdisk::enter_namespace(&words))
        }
    }
}

#[cfg(target_os = "linux")]
fn realdisk_inside(given: Realdisk) -> Checked<()> {
    let settings = given.common.settings();
    let campaign = esker_check::realdisk::RealDisk {
        settings,
        program: program()?,
        directory: given.dir,
        only: given.only,
        cuts: given.cuts,
    };
    campaign.run(&mut |name, line| println!("realdisk: seed {}, {name}: {line}", settings.seed))
}

#[cfg(not(target_os = "linux"))]
fn linux_only(command: &Command) -> Checked<()> {
    match command {
        Command::Overload(_) => println!("overload: skipped: needs Linux"),
        _ => println!("realdisk: skipped: needs Linux"),
    }
    Ok(())
}

fn main() -> ExitCode {
    let outcome = match CommandLine::parse().command {
        Command::Model(given) => model(given),
        Command::Powerloss(given) => powerloss(given),
        Command::Crashes(given) => crashes(given),
        Command::Faults(given) => faults(given),
        Command::Ablation(given) => ablation(given),
        Command::Rot(given) => rot(&given),
        Command::Threads(given) => threads(given),
        Command::Kill9(given) => kill9(given),
        Command::Lag(given) => lag(given),
        Command::LagChild { path, rate } => esker_check::lag::child(&path, rate),
        Command::Kill9Child { path, seed, salt } => kill9::child(&path, seed, salt),
        #[cfg(target_os = "linux")]
        Command::Overload(given) => overload(given),
        #[cfg(target_os = "linux")]
        Command::OverloadChild { words } => overload_child(&words),
        #[cfg(target_os = "linux")]
        Command::Realdisk(given) => realdisk(&given),
        #[cfg(target_os = "linux")]
        Command::RealdiskInside(given) => realdisk_inside(given),
        #[cfg(target_os = "linux")]
        Command::RealdiskChild { path, seed, cuts } => esker_check::realdisk::write(&path, seed, cuts),
        #[cfg(target_os = "linux")]
        Command::RealdiskFullChild { path, seed } => esker_check::realdisk::fill_shared(&path, seed),
        #[cfg(not(target_os = "linux"))]
        other => linux_only(&other),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            eprintln!("{what}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the shell would make of the line, as the command line takes it.
    fn parsed(line: &str) -> Command {
        let words = line.split_whitespace().map(|word| word.trim_matches('"'));
        let own = words.skip_while(|word| *word != "--" && *word != "esker-check").skip(1);
        // Of `cargo run -p esker-check -- model` as of `esker-check overload`.
        let own = own.skip_while(|word| *word == "--");
        match CommandLine::try_parse_from(std::iter::once("esker-check").chain(own)) {
            Ok(parsed) => parsed.command,
            Err(error) => panic!("{line}\n{error}"),
        }
    }

    #[test]
    fn the_line_that_repeats_a_database_of_rot_means_the_same() {
        for full in [false, true] {
            let settings = Settings::new(3, Duration::ZERO);
            let Command::Rot(given) = parsed(&Rot { flips: 5, full, ..Rot::new(settings) }.command(7)) else {
                panic!("another campaign");
            };
            assert_eq!((given.common.seed, given.first_run, given.runs), (3, 7, Some(1)));
            assert_eq!((given.flips, given.full), (Some(5), full));
        }
    }

    /// If the time of other commands ended it, this would fail.
    #[test]
    fn a_full_sweep_ends_by_time_only_if_one_is_given() {
        let campaign = |line: &str| {
            let Command::Rot(given) = parsed(line) else { panic!("another campaign") };
            given.campaign()
        };
        let ends = |line: &str| {
            let campaign = campaign(line);
            (campaign.settings.budget, campaign.runs)
        };
        assert_eq!(ends("esker-check rot"), (Duration::from_secs(60), u64::MAX));
        assert_eq!(ends("esker-check rot --full --seconds 5"), (Duration::from_secs(5), u64::MAX));
        assert_eq!(ends("esker-check rot --full --seconds 5 --runs 2"), (Duration::from_secs(5), 2));
        assert_eq!(ends("esker-check rot --full"), (Duration::MAX, FIXED_DATABASES));
        assert_eq!(ends("esker-check rot --full --first-run 3"), (Duration::MAX, FIXED_DATABASES - 3));
        assert_eq!(ends("esker-check rot --full --first-run 464"), (Duration::MAX, 1));
        assert_eq!(ends("esker-check rot --full --first-run 464 --runs 9"), (Duration::MAX, 9));
        let repeated = Rot { full: true, ..Rot::new(Settings::new(3, Duration::ZERO)) }.command(7);
        assert_eq!(ends(&repeated), (Duration::MAX, 1), "a database with a wrong answer is swept again as a whole");
    }

    #[test]
    fn the_line_that_repeats_a_run_of_the_model_means_the_same() {
        let settings = Settings::new(3, Duration::ZERO);
        let mut campaign = Campaign::new(settings, &std::env::temp_dir());
        let features = <Feature as clap::ValueEnum>::value_variants();
        for mostly in features.iter().copied().map(Some).chain([None]) {
            campaign.mostly = mostly;
            let Command::Model(given) = parsed(&campaign.command(7)) else { panic!("another campaign") };
            assert_eq!((given.common.seed, given.first_run, given.runs), (3, 7, 1));
            assert_eq!((given.only.as_str(), given.mostly), ("", mostly));
        }
        campaign.features.set("ttl,settings", false).expect("there are such features");
        campaign.features.set("clock-back", true).expect("there is such a feature");
        campaign.only = "mapped".to_owned();
        let Command::Model(given) = parsed(&campaign.command(7)) else { panic!("another campaign") };
        assert_eq!((given.only.as_str(), given.with.as_str()), ("mapped", "clock-back"));
        assert_eq!(given.without, "ttl,settings");
    }

    /// The commands in the messages of a source file, with a 1 for whatever a message fills in.
    fn commands_in(source: &str) -> Vec<String> {
        // A line that ends with a backslash goes on behind the indentation of the next one.
        let joined: String = source.split("\\\n").map(str::trim_start).collect();
        let behind = ["repeat with: cargo ", "run again with: esker-check "].into_iter().flat_map(|words| {
            let begin = words.find(": ").map_or(0, |at| at + 2);
            let found = joined.match_indices(words).map(|(at, _)| &joined[at + begin..]);
            found.map(|rest| rest.split(['"', '\\']).next().unwrap_or_default().to_owned()).collect::<Vec<_>>()
        });
        let filled = |message: String| {
            let mut parts = message.split('{');
            let first = parts.next().unwrap_or_default().to_owned();
            parts.fold(first, |text, part| text + "1" + part.split_once('}').map_or(part, |(_, rest)| rest))
        };
        behind.map(filled).collect()
    }

    #[test]
    fn every_line_that_repeats_a_failure_is_a_command() {
        let sources = [
            ("crashes", include_str!("crashes.rs")),
            ("faults", include_str!("faults.rs")),
            ("powerloss", include_str!("powerloss/mod.rs")),
            ("kill9", include_str!("kill9.rs")),
            ("overload", include_str!("overload/mod.rs")),
            ("realdisk", include_str!("realdisk/mod.rs")),
        ];
        for (name, source) in sources {
            let commands = commands_in(source);
            assert!(commands.iter().any(|command| command.contains(name)), "{name}: {commands:?}");
            commands.iter().for_each(|command| drop(parsed(command)));
        }
    }
}
