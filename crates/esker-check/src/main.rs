//! Long runs of the checks, and replays of single ones.

use esker_check::Checked;
use esker_check::campaign::Campaign;
use esker_check::crashes::Crashes;
use esker_check::faults::Faults;
use esker_check::kill9::{self, KillLoop};
use esker_check::powerloss::PowerLoss;
use esker_check::rot::Rot;
use esker_check::settings::Settings;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

const USAGE: &str = "\
Checks Esker. Every failure prints the command that repeats it.

usage: esker-check COMMAND [--seed N] [--seconds N] [more options]

commands:
  model      random operations against the reference model
             [--only OPTION_SET] [--first-run N] [--runs N] [--operations N] [--operations-total N]
             [--with clock-back] [--without ttl,ranges,operators,custom,maintenance,transactions]
             [--dir D] [--workers N]
  powerloss  power loss at every call of the scripts, then of all sequences of steps
             [--only SCRIPT] [--seeds N] [--depth N] [--length N] [--threads N]
  crashes    random scripts over the whole interface, with losses at random calls
             [--runs N] [--first-run N] [--points N] [--only OPTIONS] [--without repair] [--threads N]
  faults     a failing call at every index of the scripts   [--only SCRIPT] [--threads N]
  ablation   power loss with one sync left out at a time     [--only SCRIPT]
  rot        flipped bits of stored files, while closed and while open
             [--runs N] [--first-run N] [--flips N] [--full yes] [--threads N]
  threads    writers, readers and losses at the same time
  kill9      a writing process killed again and again       [--rounds N] [--dir D]
  overload   writers faster than the disk, thousands of readers and of keyspaces, full disks, too few descriptors, little memory; needs Linux
             [--only SCENARIO] [--readers N] [--keyspaces N] [--dir D]
  realdisk   file systems cut off from their device while a process writes; needs root and Linux
             [--only FILE_SYSTEM] [--cuts N] [--dir D]
";

/// The options after the command, in any order.
struct Arguments(Vec<String>);

impl Arguments {
    fn text(&self, name: &str) -> Option<&str> {
        let place = self.0.iter().position(|argument| argument == name)?;
        self.0.get(place + 1).map(String::as_str)
    }

    fn number(&self, name: &str, default: u64) -> Checked<u64> {
        let Some(text) = self.text(name) else { return Ok(default) };
        text.parse().map_err(|_| format!("{name} takes a number, not {text:?}"))
    }

    fn only(&self) -> String {
        self.text("--only").unwrap_or_default().to_string()
    }

    fn directory(&self) -> PathBuf {
        self.text("--dir").map_or_else(std::env::temp_dir, PathBuf::from)
    }

    fn threads(&self, name: &str) -> Checked<usize> {
        let available = std::thread::available_parallelism().map_or(2, usize::from);
        Ok(self.number(name, available as u64)? as usize)
    }

    fn settings(&self) -> Checked<Settings> {
        Ok(Settings::new(self.number("--seed", 1)?, Duration::from_secs(self.number("--seconds", 60)?)))
    }
}

fn model(arguments: &Arguments) -> Checked<()> {
    let mut settings = arguments.settings()?;
    let operations_total = arguments.number("--operations-total", u64::MAX)?;
    if operations_total != u64::MAX && arguments.text("--seconds").is_none() {
        settings.budget = Duration::MAX;
    }
    let mut campaign = Campaign::new(settings, &arguments.directory());
    campaign.runs = arguments.number("--runs", u64::MAX)?;
    campaign.first_run = arguments.number("--first-run", 0)?;
    campaign.operations = arguments.number("--operations", 2000)? as usize;
    campaign.operations_total = operations_total;
    campaign.features.set(arguments.text("--without").unwrap_or_default(), false)?;
    campaign.features.set(arguments.text("--with").unwrap_or_default(), true)?;
    campaign.only = arguments.only();
    campaign.workers = arguments.threads("--workers")?;
    let totals = campaign.run()?;
    for set in &totals.option_sets {
        println!("  {set}");
    }
    let seconds = settings.elapsed_seconds();
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

fn powerloss(arguments: &Arguments) -> Checked<()> {
    let settings = arguments.settings()?;
    let mut campaign = PowerLoss::new(settings);
    campaign.seeds = arguments.number("--seeds", 8)? as usize;
    campaign.depth = arguments.number("--depth", 2)? as usize;
    campaign.only = arguments.only();
    campaign.threads = arguments.threads("--threads")?;
    println!("powerloss, every call: seed {}, {}", settings.seed, campaign.every_call()?);
    let length = arguments.number("--length", 3)? as u32;
    println!("powerloss, sequences of {length}: seed {}, {}", settings.seed, campaign.every_sequence(length)?);
    Ok(())
}

fn crashes(arguments: &Arguments) -> Checked<()> {
    let settings = arguments.settings()?;
    let mut campaign = Crashes::new(settings);
    campaign.first_run = arguments.number("--first-run", 0)?;
    campaign.runs = arguments.number("--runs", u64::MAX)?;
    campaign.limits.repair = arguments.text("--without") != Some("repair");
    campaign.points = arguments.number("--points", 6)? as usize;
    campaign.only = arguments.only();
    campaign.threads = arguments.threads("--threads")?;
    println!("crashes: seed {}, {}", settings.seed, campaign.run()?);
    Ok(())
}

fn rot(arguments: &Arguments) -> Checked<()> {
    let settings = arguments.settings()?;
    let mut campaign = Rot::new(settings);
    campaign.first_run = arguments.number("--first-run", 0)?;
    campaign.runs = arguments.number("--runs", u64::MAX)?;
    campaign.flips = arguments.number("--flips", campaign.flips)?;
    campaign.full = arguments.text("--full").is_some();
    campaign.threads = arguments.threads("--threads")?;
    println!("rot: seed {}, {}", settings.seed, campaign.run()?);
    Ok(())
}

fn faults(arguments: &Arguments) -> Checked<()> {
    let settings = arguments.settings()?;
    let campaign = Faults { settings, only: arguments.only(), threads: arguments.threads("--threads")? };
    println!("faults: seed {}, {}", settings.seed, campaign.every_call()?);
    Ok(())
}

fn ablation(arguments: &Arguments) -> Checked<()> {
    let settings = arguments.settings()?;
    for ((target, step), count) in esker_check::ablation::run_all(settings, &arguments.only())? {
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

fn threads(arguments: &Arguments) -> Checked<()> {
    let settings = arguments.settings()?;
    println!("threads: seed {}, {:?}", settings.seed, esker_check::threads::run(settings)?);
    Ok(())
}

fn kill9(arguments: &Arguments) -> Checked<()> {
    let program = std::env::current_exe().map_err(|error| format!("the own program is not known: {error}"))?;
    let kills = KillLoop {
        program,
        directory: arguments.directory(),
        rounds: arguments.number("--rounds", 200)?,
        seed: arguments.number("--seed", 1)?,
        longest_life: 200,
    };
    let totals = kills.run(Duration::from_secs(arguments.number("--seconds", u64::MAX / 2)?))?;
    println!("kill9: seed {}, {totals:?}: no acknowledged commit lost", kills.seed);
    Ok(())
}

fn kill9_child(arguments: &Arguments) -> Checked<()> {
    let [path, seed, salt] = arguments.0.as_slice() else { return Err(USAGE.to_string()) };
    let number = |text: &str| text.parse().map_err(|_| format!("not a number: {text:?}"));
    kill9::child(Path::new(path), number(seed)?, number(salt)?)
}

#[cfg(target_os = "linux")]
fn overload(arguments: &Arguments) -> Checked<()> {
    let settings = arguments.settings()?;
    let campaign = esker_check::overload::Overload {
        settings,
        program: std::env::current_exe().map_err(|error| format!("the own program is not known: {error}"))?,
        directory: arguments.directory(),
        only: arguments.only(),
        readers: arguments.number("--readers", 3000)?,
        keyspaces: arguments.number("--keyspaces", 10_000)?,
    };
    let totals = campaign.run(&mut |name, line| println!("overload: seed {}, {name}: {line}", settings.seed))?;
    println!("overload: seed {}, {} scenarios, {} skipped", settings.seed, totals.scenarios, totals.skipped);
    Ok(())
}

#[cfg(target_os = "linux")]
fn overload_child(arguments: &Arguments) -> Checked<()> {
    println!("{}", esker_check::overload::child(&arguments.0)?);
    Ok(())
}

#[cfg(target_os = "linux")]
fn realdisk(arguments: &Arguments) -> Checked<()> {
    match esker_check::realdisk::obstacle() {
        Some(what) => {
            println!("realdisk: skipped: {what}");
            Ok(())
        }
        None => Err(esker_check::realdisk::enter_namespace(&arguments.0)),
    }
}

#[cfg(target_os = "linux")]
fn realdisk_inside(arguments: &Arguments) -> Checked<()> {
    let settings = arguments.settings()?;
    let campaign = esker_check::realdisk::RealDisk {
        settings,
        program: std::env::current_exe().map_err(|error| format!("the own program is not known: {error}"))?,
        directory: arguments.directory(),
        only: arguments.only(),
        cuts: arguments.number("--cuts", u64::MAX)?,
    };
    campaign.run(&mut |name, totals| println!("realdisk: seed {}, {name}: {totals:?}", settings.seed))
}

#[cfg(target_os = "linux")]
fn realdisk_child(arguments: &Arguments) -> Checked<()> {
    let [path, seed, cuts] = arguments.0.as_slice() else { return Err(USAGE.to_string()) };
    let number = |text: &str| text.parse().map_err(|_| format!("not a number: {text:?}"));
    esker_check::realdisk::write(Path::new(path), number(seed)?, number(cuts)?)
}

#[cfg(not(target_os = "linux"))]
fn overload(_: &Arguments) -> Checked<()> {
    println!("overload: skipped: needs Linux");
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn realdisk(_: &Arguments) -> Checked<()> {
    println!("realdisk: skipped: needs Linux");
    Ok(())
}

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let command = words.next().unwrap_or_default();
    let arguments = Arguments(words.collect());
    let outcome = match command.as_str() {
        "model" => model(&arguments),
        "powerloss" => powerloss(&arguments),
        "crashes" => crashes(&arguments),
        "rot" => rot(&arguments),
        "faults" => faults(&arguments),
        "ablation" => ablation(&arguments),
        "threads" => threads(&arguments),
        "kill9" => kill9(&arguments),
        "kill9-child" => kill9_child(&arguments),
        "overload" => overload(&arguments),
        #[cfg(target_os = "linux")]
        "overload-child" => overload_child(&arguments),
        "realdisk" => realdisk(&arguments),
        #[cfg(target_os = "linux")]
        "realdisk-inside" => realdisk_inside(&arguments),
        #[cfg(target_os = "linux")]
        "realdisk-child" => realdisk_child(&arguments),
        _ => Err(USAGE.to_string()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            eprintln!("{what}");
            ExitCode::FAILURE
        }
    }
}
