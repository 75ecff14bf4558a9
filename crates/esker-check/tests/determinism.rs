//! Without background threads the same calls leave the same files, byte for byte: what a seed shows
//! once it shows again.
//!
//! `ESKER_CHECK_SEED` and `ESKER_CHECK_RUNS` make it different and longer.

use esker_check::campaign::run_operations;
use esker_check::cast::Features;
use esker_check::generator::Generator;
use esker_check::operators::silence_panics_on_purpose;
use esker_check::option_sets::{OPTION_SETS, OptionSet};
use esker_check::random::Random;
use esker_check::simulated::Place;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Operations of a run.
const OPERATIONS: usize = 600;

/// What a run leaves: every file with its bytes, and how often the files were changed.
type Left = (u64, BTreeMap<PathBuf, Vec<u8>>);

/// The option sets whose work is all done inside the calls.
fn inline_sets() -> Vec<OptionSet> {
    let is_inline = |set: &&OptionSet| format!("{:?}", set.options()).contains("background_threads: 0");
    OPTION_SETS.iter().filter(|set| !set.on_disk).filter(is_inline).copied().collect()
}

fn run(set: OptionSet, seed: u64) -> Left {
    let mut generator = Generator::new(seed, Features::ALL);
    let operations = generator.operations(OPERATIONS);
    let place = Place::memory();
    let outcome = run_operations(set, place.clone(), generator.cast(), &operations);
    outcome.unwrap_or_else(|(reached, what)| panic!("{}, seed {seed}, operation {reached}: {what}", set.name));
    let Place::Memory(env) = place else { unreachable!("it was made in memory") };
    let files = env.files().into_iter().map(|path| (path.clone(), env.file_bytes(&path).unwrap_or_default()));
    (env.mutations(), files.collect())
}

/// Where two runs differ; empty if nowhere.
fn difference(first: &Left, second: &Left) -> String {
    let mut names = first.1.keys().chain(second.1.keys());
    match names.find(|name| first.1.get(*name) != second.1.get(*name)) {
        Some(name) => {
            let bytes = [first, second].map(|left| left.1.get(name).cloned().unwrap_or_default());
            let same = bytes[0].iter().zip(&bytes[1]).take_while(|(one, other)| one == other).count();
            let lengths = bytes.each_ref().map(Vec::len);
            format!("{} has {lengths:?} bytes, and differs from byte {same} on", name.display())
        }
        None if first.0 != second.0 => format!("the files were changed {} and {} times", first.0, second.0),
        None => String::new(),
    }
}

/// Other calls leave others: the comparison sees something.
#[test]
fn other_calls_leave_other_files() {
    silence_panics_on_purpose();
    let (set, seed) = (inline_sets()[0], seed());
    assert!(!difference(&run(set, seed), &run(set, !seed)).is_empty());
}

/// On two processors at a time.
#[test]
fn the_same_calls_leave_the_same_files_in_each_even_run() {
    compare(0);
}

#[test]
fn the_same_calls_leave_the_same_files_in_each_odd_run() {
    compare(1);
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

fn seed() -> u64 {
    number("ESKER_CHECK_SEED").unwrap_or(18)
}

/// Makes every other run from this one on twice.
fn compare(first: u64) {
    silence_panics_on_purpose();
    let (sets, seed) = (inline_sets(), seed());
    let runs = number("ESKER_CHECK_RUNS").unwrap_or(10 * sets.len() as u64);
    println!("seed {seed}, every other of {runs} runs, {} option sets", sets.len());
    assert!(sets.len() >= 10, "only {} option sets without threads", sets.len());
    let mut bytes = 0;
    for at in (first..runs).step_by(2) {
        let set = sets[at as usize % sets.len()];
        let seed = Random::derived(seed, &[at]).next();
        let (first, second) = (run(set, seed), run(set, seed));
        let what = difference(&first, &second);
        assert!(what.is_empty(), "{}, seed {seed}: {what}", set.name);
        bytes += first.1.values().map(Vec::len).sum::<usize>();
    }
    println!("{bytes} bytes of files, twice the same");
}
