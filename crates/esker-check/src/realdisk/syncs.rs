//! The environment alone, while the file system is cut off under its syncs.
//!
//! A cut takes about a millisecond, and a sync that is under way may end in it either way. What it
//! promises must hold all the same: a file system that gives up after an error of its device is cut
//! off in the same way, and its process lives on.

use super::filesystem::Disk;
use super::shutdown::Cut;
use crate::Checked;
use crate::random::Random;
use esker::env::{Env, os::OsEnv};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const BLOCK_BYTES: usize = 4096;
/// The most steps of a writer.
const STEPS: usize = 2048;
/// The longest time until the cut, in microseconds: most writers are not at the end by then.
const LONGEST: usize = 30_000;

/// What is synced step by step. Each block is written once, so that its sync has to note it as
/// written, or the length behind it.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Blocks of a segment of the log.
    Log,
    /// Blocks at the end of a file.
    Growing,
    /// Names of a directory.
    Names,
}

/// Takes the step of that number and makes it durable.
type Step = Box<dyn FnMut(usize) -> esker::Result<()> + Send>;

impl Kind {
    fn begin(self, directory: &Path) -> esker::Result<Step> {
        OsEnv.create_dir_all(directory)?;
        let path = file(directory);
        let step: Step = match self {
            Kind::Log => {
                let log = OsEnv.open_log(&path, Some(offset(STEPS)), true)?;
                log.sync()?;
                Box::new(move |number| {
                    // Both ways into a segment: through its mapping and by a call.
                    let (from, to) = (offset(number), offset(number + 1));
                    let write = if number.is_multiple_of(2) {
                        log.store(from, &block(number))
                    } else {
                        log.write(from, &block(number))
                    };
                    write.and_then(|()| log.sync_range(from, to))
                })
            }
            Kind::Growing => {
                let file = OsEnv.create_growing(&path)?;
                Box::new(move |number| file.write(offset(number), &block(number)).and_then(|()| file.sync()))
            }
            Kind::Names => {
                let directory = directory.to_path_buf();
                Box::new(move |number| {
                    OsEnv.create(&name(&directory, number))?;
                    OsEnv.sync_dir(&directory)
                })
            }
        };
        OsEnv.sync_dir(directory)?;
        OsEnv.sync_dir(directory.parent().unwrap_or(directory))?;
        Ok(step)
    }

    /// The first of so many steps that is lost.
    fn lost(self, directory: &Path, steps: usize) -> std::io::Result<Option<usize>> {
        if matches!(self, Kind::Names) {
            return Ok((0..steps).find(|&number| !name(directory, number).exists()));
        }
        let found = std::fs::read(file(directory))?;
        let mut blocks = found.chunks(BLOCK_BYTES);
        Ok((0..steps).find(|&number| blocks.next() != Some(&block(number)[..])))
    }
}

fn file(directory: &Path) -> PathBuf {
    directory.join("blocks")
}

fn name(directory: &Path, number: usize) -> PathBuf {
    directory.join(number.to_string())
}

fn offset(number: usize) -> u64 {
    (number * BLOCK_BYTES) as u64
}

fn block(number: usize) -> [u8; BLOCK_BYTES] {
    let mut bytes = [0xa5; BLOCK_BYTES];
    bytes[..8].copy_from_slice(&(number as u64).to_le_bytes());
    bytes
}

/// Steps that were taken, and when the next one was refused.
struct Taken {
    steps: usize,
    refused: Option<(esker::Error, Instant)>,
}

/// Until a step is refused, or all are taken. Its files are closed then.
fn take(mut step: Step) -> Taken {
    for number in 0..STEPS {
        if let Err(error) = step(number) {
            return Taken { steps: number, refused: Some((error, Instant::now())) };
        }
    }
    Taken { steps: STEPS, refused: None }
}

/// One cut under a thread that takes one step after the other. How many it took: all are there.
pub(super) fn round(disk: &mut Disk, random: &mut Random) -> Checked<u64> {
    let directory = disk.root().join("syncs");
    let kind = [Kind::Log, Kind::Growing, Kind::Names][random.below(3)];
    let cut = if disk.can_be_aborted() && random.below(2) == 0 { Cut::Abort } else { Cut::Nothing };
    let step = kind.begin(&directory).map_err(|error| format!("{kind:?} cannot begin: {error}"))?;
    let wait = Duration::from_micros(random.below(LONGEST) as u64);
    let (cut_at, outcome, taken) = std::thread::scope(|scope| {
        let writer = scope.spawn(move || take(step));
        std::thread::sleep(wait);
        let cut_at = Instant::now();
        (cut_at, disk.cut(cut), writer.join())
    });
    outcome?;
    let Taken { steps, refused } = taken.map_err(|_| "the writer panicked".to_string())?;
    if let Some((error, _)) = refused.filter(|(_, at)| *at < cut_at) {
        return Err(format!("{kind:?}: number {steps} was refused before the cut: {error}"));
    }
    disk.restart()?;
    match kind.lost(&directory, steps) {
        Ok(None) => {}
        Ok(Some(number)) => {
            return Err(format!("{kind:?}, {cut:?}: number {number} of {steps} that were synced is lost"));
        }
        Err(error) => return Err(format!("{kind:?}, {cut:?}: {error}")),
    }
    std::fs::remove_dir_all(&directory).map_err(|error| format!("{kind:?} cannot be removed: {error}"))?;
    Ok(steps as u64)
}
