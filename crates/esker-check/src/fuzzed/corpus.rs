//! What a coverage-guided fuzzer has found worth keeping, and a run of it that needs no such
//! fuzzer: in every test run, each kept input and random changes of it.
//!
//! ```text
//! corpus := entry*          a file `fuzz/corpus/TARGET`
//! entry  := length u32 le, bytes
//! ```

use super::Target;
use crate::Checked;
use crate::random::Random;
use crate::settings::Settings;
use std::path::Path;

/// The inputs kept for this target.
pub fn entries(directory: &Path, target: &str) -> Checked<Vec<Vec<u8>>> {
    let path = directory.join(target);
    let packed = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut rest = &packed[..];
    let mut entries = Vec::new();
    while let Some((length, behind)) = rest.split_first_chunk::<4>() {
        let length = u32::from_le_bytes(*length) as usize;
        let (entry, behind) = behind.split_at_checked(length).ok_or(format!("{}: it is cut short", path.display()))?;
        entries.push(entry.to_vec());
        rest = behind;
    }
    if entries.is_empty() { Err(format!("{}: it is empty", path.display())) } else { Ok(entries) }
}

/// An input made of these.
fn changed(random: &mut Random, entries: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = entries[random.below(entries.len())].clone();
    for _ in 0..random.between(1, 4) {
        let at = random.below(bytes.len() + 1);
        match random.below(6) {
            0 => bytes.insert(at, random.next() as u8),
            1 => bytes.truncate(at),
            2 => {
                // The end of another one.
                let other = &entries[random.below(entries.len())];
                bytes.truncate(at);
                bytes.extend_from_slice(&other[random.below(other.len() + 1)..]);
            }
            3 => drop(bytes.drain(at..(at + random.below(9)).min(bytes.len()))),
            _ => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = if random.percent(50) { *byte ^ 1 << random.below(8) } else { random.next() as u8 };
                }
            }
        }
    }
    bytes
}

/// Runs a target on every input that is kept and then, until time is up, on changes of them:
/// `least` at least. Returns how many inputs.
pub fn run(settings: Settings, target: Target, entries: &[Vec<u8>], least: u64) -> Checked<u64> {
    let (name, run) = target;
    let attempt = |bytes: &[u8]| {
        let outcome = std::panic::catch_unwind(|| run(bytes));
        outcome.map_err(|_| format!("{name}, seed {}, on these bytes: {bytes:?}", settings.seed))
    };
    entries.iter().try_for_each(|entry| attempt(entry))?;
    let mut random = Random::new(settings.seed);
    let mut count = entries.len() as u64;
    while count < least || !settings.over() {
        attempt(&changed(&mut random, entries))?;
        count += 1;
    }
    Ok(count)
}
