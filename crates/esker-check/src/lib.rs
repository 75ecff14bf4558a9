//! Checks Esker against its documentation rather than against its code.
//!
//! * [`model`]: what every operation means, as a multi-version map.
//! * [`cast`], [`generator`], [`driver`], [`transaction`], [`shrink`], [`campaign`], [`counts`]:
//!   random operations on engine and model, every answer compared.
//! * [`asked`]: writes that look at what they replace, and what they must answer.
//! * [`operators`]: the merge operators that the engine is given, failing ones among them.
//! * [`fuzzed`]: the same with the choices of a coverage-guided fuzzer, and options with its
//!   numbers.
//! * [`powerloss`]: every mutating call of small scripts, with power lost there, reopened and
//!   compared.
//! * [`crashes`]: random scripts over the whole interface, with losses at random calls.
//! * [`faults`]: every call of small scripts failing once, or from then on.
//! * [`ablation`], [`sync_sites`]: the same power losses with one sync left out, which must be
//!   noticed, for every place that syncs.
//! * [`rot`]: bits of stored files that flip, while closed and while open.
//! * [`threads`]: writers, readers, maintenance and losses at the same time, and full disks.
//! * [`kill9`]: a real process on a real directory, killed and reopened.
//! * `overload` (Linux): more than there is room, memory or descriptors for.
//! * `realdisk` (Linux): a real file system, cut off from its device and mounted again.
//!
//! One 64-bit seed reproduces every single-threaded run; it is printed with the command that
//! replays it.

pub mod ablation;
pub mod answer;
pub mod asked;
pub mod campaign;
pub mod cast;
pub mod counts;
pub mod crashes;
pub mod driver;
pub mod faults;
pub mod feed;
pub mod fuzzed;
pub mod generator;
pub mod kill9;
pub mod lag;
pub mod model;
pub mod operators;
pub mod option_sets;
pub mod orders;
#[cfg(target_os = "linux")]
pub mod overload;
pub mod powerloss;
pub mod random;
#[cfg(target_os = "linux")]
pub mod realdisk;
pub mod rot;
pub mod settings;
pub mod shrink;
pub mod simulated;
pub mod state;
pub mod sync_sites;
pub mod threads;
pub mod transaction;

/// The outcome of a check: the text says what was expected and what was found.
pub type Checked<T> = Result<T, String>;
