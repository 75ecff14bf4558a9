//! Memory: buffer and cache as the engines say they have them in force.
//!
//! ```text
//! setting `memory` = term { " + " term }
//! term             = [ copies " x " ] number [ " MiB" | " KiB" | " pages" ] { " " word }     counts
//!                  | other text                                                             does not
//! ```
//!
//! Memory mapped from the file is nobody's budget: an engine that has no cache of its own but this,
//! or has it beside its cache, is told of as long as others stand beside it that have none. Esker
//! and LevelDB say that they map their tables in settings of their own.
//!
//! What an engine takes beside buffer and cache is told of where the resident memory, with all that
//! is mapped, reached more than twice those.
//!
//! A second write buffer that an engine may fill while the first is flushed does not count, for all
//! of them may have one.

use super::violation::{Member, Violation};
use crate::record::Record;

/// More than the least by less than this is rounding.
const TOLERANCE: f64 = 1.25;

/// Words of the setting `memory` that stand for mapped memory.
const MAPPED: [&str; 2] = ["mapped", "page cache of the system"];

/// What a process has resident beside its engine, with room to spare.
const PROGRAM_BYTES: u64 = 64 << 20;

/// Settings that say that tables are mapped: those of Esker and of LevelDB.
const MAPS_TABLES: [(&str, &str); 2] = [("read_mode", "auto"), ("mmap_read", "first 1000 files (fixed)")];

pub(super) fn check(group: &[Member<'_>], found: &mut Vec<Violation>) {
    budgets(group, found);
    mapped(group, found);
    resident(group, found);
}

fn resident(group: &[Member<'_>], found: &mut Vec<Violation>) {
    for member in group {
        let Some(budget) = in_force(member.record).filter(|bytes| *bytes > 0) else { continue };
        let beside = member.record.rss_peak_bytes.saturating_sub(PROGRAM_BYTES);
        // As a power of two: what differs from row to row by a little is one thing.
        let times = 1u64 << (beside / budget).max(1).ilog2();
        if beside > budget.saturating_mul(2) {
            found.push(
                member.violation(format!("its resident memory reached more than {times} times its buffer and cache")),
            );
        }
    }
}

fn mapped(group: &[Member<'_>], found: &mut Vec<Violation>) {
    if group.iter().all(|member| mapped_term(member.record).is_some()) {
        return;
    }
    for member in group {
        if let Some(term) = mapped_term(member.record) {
            found.push(member.violation(format!("it works beside its budget with mapped memory ({term})")));
        }
    }
}

fn mapped_term(record: &Record) -> Option<&str> {
    let term = record.setting("memory")?.split(" + ").find(|term| MAPPED.iter().any(|words| term.contains(words)));
    term.or_else(|| MAPS_TABLES.iter().find(|(name, value)| record.setting(name) == Some(value)).map(|_| "its tables"))
}

fn budgets(group: &[Member<'_>], found: &mut Vec<Violation>) {
    let known: Vec<(&Member<'_>, u64)> =
        group.iter().filter_map(|member| in_force(member.record).map(|bytes| (member, bytes))).collect();
    let Some((least, bytes)) = known.iter().min_by_key(|(_, bytes)| *bytes) else { return };
    for (member, more) in &known {
        if *more as f64 > *bytes as f64 * TOLERANCE {
            let (more, bytes) = (mebibytes(*more), mebibytes(*bytes));
            let reason = format!("it has {more} MiB of buffer and cache, and {} has {bytes} MiB", least.name());
            found.push(member.violation(reason));
        }
    }
}

fn mebibytes(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / 1_048_576.0)
}

/// Bytes of write buffer and cache; `None` where the engine has no limit of its own.
fn in_force(record: &Record) -> Option<u64> {
    let page = record.setting("page_size").and_then(|text| text.split(' ').next()?.parse().ok());
    let terms = record.setting("memory")?.split(" + ").filter_map(|term| term_bytes(term, page));
    terms.reduce(u64::saturating_add)
}

fn term_bytes(term: &str, page_bytes: Option<u64>) -> Option<u64> {
    let term = term.split_once(" x ").map_or(term, |(_, size)| size);
    let mut words = term.split(' ');
    let number: u64 = words.next()?.parse().ok()?;
    let unit = match words.next() {
        Some("MiB") => 1 << 20,
        Some("KiB") => 1 << 10,
        Some("pages") => page_bytes?,
        _ => 1,
    };
    Some(number.saturating_mul(unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(text: &str) -> Option<u64> {
        let settings = [("page_size", "1024"), ("memory", text)];
        let settings = settings.map(|(name, value)| (name.to_string(), value.to_string())).to_vec();
        in_force(&Record { settings, ..Record::default() })
    }

    #[test]
    fn what_engines_say_is_understood() {
        assert_eq!(memory("4194304 write buffer + 64 MiB (default) block cache"), Some(68 << 20));
        assert_eq!(memory("2 x 4194304 write buffer + 8388608 block cache"), Some(12 << 20));
        assert_eq!(memory("4194304 memtable + 8388608 cache"), Some(12 << 20));
        assert_eq!(memory("4096 pages of page cache"), Some(4 << 20));
        assert_eq!(memory("4096 KiB of page cache"), Some(4 << 20));
        assert_eq!(memory("4194304 page cache + file mapped up to 268435456"), Some(4 << 20));
        assert_eq!(memory("8388608 cache"), Some(8 << 20));
        assert_eq!(memory("page cache of the system, no limit of its own"), None);
        assert_eq!(memory("unbounded"), None);
    }
}
