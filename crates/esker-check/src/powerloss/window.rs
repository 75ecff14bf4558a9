//! In which order the keyspace that keeps its newest tables may lose what was written to it.
//!
//! FIFO drops whole tables, those with the smallest numbers first, and only while all that are left
//! take more than [`WINDOW_BYTES`]. No table is rewritten there. So a flush that has returned
//! divides what was written: everything before it is in tables with smaller numbers than everything
//! behind it. Of an entry that is missing this says two things, with the last flush before it:
//!
//! * Nothing from before that flush is there.
//! * What was written behind that flush has taken more than [`WINDOW_BYTES`]: when its table was
//!   dropped, no older ones were left to make that much.
//!
//! More cannot be said. Memtables are flushed at other times too, one flush makes several tables,
//! divided by key, and a load has the numbers of its tables before older writes are flushed: so of
//! what was written between two flushes that are known, any part can go before any other.
//!
//! Under another style tables are compacted, into new ones with greater numbers than those of newer
//! writes, also in the background for a while after FIFO is back. From then on nothing is known.

use super::script::{WINDOW, WINDOW_BYTES};
use crate::model::{Change, Write};
use crate::state::{Place, State};

/// More than a table of one entry takes beside its key and value, which a test asks of the engine.
const TABLE_BYTES: u64 = 500;
/// More often than a key is in such a table: in the block, in the index, as the first, as the last.
const KEY_COPIES: u64 = 8;

/// What is known of the order of its tables.
#[derive(Clone, Debug)]
pub struct Tables {
    /// How many commits there were at each flush that has returned, ascending.
    flushes: Vec<usize>,
    /// Whether none has ever been compacted.
    are_in_order: bool,
}

impl Default for Tables {
    /// Of an empty database: before the first commit is as good as a flush.
    fn default() -> Tables {
        Tables { flushes: vec![0], are_in_order: true }
    }
}

impl Tables {
    /// Of a database of which nothing is known.
    pub fn unknown() -> Tables {
        Tables { flushes: Vec::new(), are_in_order: false }
    }

    /// Notes a flush of everything, after so many commits.
    pub fn note_flush(&mut self, commits: usize) {
        if self.are_in_order {
            self.flushes.push(commits);
        }
    }

    /// What is known of a recovered database with so many commits. `lacks_some`: it may lack some
    /// of them that were in no log, which is not for the order of tables to tell from what was
    /// dropped.
    pub fn recovered(&self, commits: usize, lacks_some: bool) -> Tables {
        let flushes = self.flushes.iter().copied().filter(|&flush| !lacks_some && flush <= commits);
        Tables { flushes: flushes.collect(), are_in_order: self.are_in_order }
    }

    /// An entry of what is expected that was not found, and cannot have been dropped. `commits`
    /// have led to what is expected. A later one that was lost made nothing go: the manifest has
    /// its tables before it says so.
    pub fn lost_too_early<'s>(&self, commits: &[&[Write]], expected: &'s State, found: &State) -> Option<&'s Place> {
        let written = |place: &Place| last_write(commits, place);
        let missing = own(expected).filter(|place| !found.contains_key(*place));
        let (newest, place) = missing.map(|place| (written(place), place)).max()?;
        let flush = self.flushes.iter().copied().rfind(|&flush| flush < newest)?;
        let has_older = own(found).any(|place| written(place) <= flush);
        let bytes: u64 = commits[flush..].iter().copied().flatten().map(most_bytes).sum();
        (has_older || bytes <= WINDOW_BYTES).then_some(place)
    }
}

/// What a state has of the window.
fn own(state: &State) -> impl Iterator<Item = &Place> {
    state.range((WINDOW, Vec::new())..(WINDOW + 1, Vec::new())).map(|(place, _)| place)
}

/// The number of the commit that was the last to write a key; 0 if none of these was.
fn last_write(commits: &[&[Write]], (keyspace, key): &Place) -> usize {
    let writes_it = |write: &Write| write.keyspace == *keyspace && !write.change.is_range() && write.key == *key;
    commits.iter().rposition(|writes| writes.iter().any(writes_it)).map_or(0, |index| index + 1)
}

/// How much a write takes in the window at most, in a table of its own.
fn most_bytes(write: &Write) -> u64 {
    let value = match &write.change {
        _ if write.keyspace != WINDOW => return 0,
        // In parts, as others divide it, and in many tables.
        Change::DeleteRange(..) | Change::DeletePrefix(_) => return WINDOW_BYTES + 1,
        Change::Put(value) | Change::Merge(value) => value.len(),
        Change::Delete | Change::Expire => 0,
    };
    TABLE_BYTES + KEY_COPIES * write.key.len() as u64 + value as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::NEVER;
    use crate::powerloss::option_variants;
    use crate::powerloss::progress::Progress;
    use crate::powerloss::script::Step;
    use crate::powerloss::session::{Ground, OPTION_CHANGES, Session};
    use crate::random::Random;
    use crate::state::{Durability, Held};
    use esker::Options;
    use esker::env::mem::MemEnv;
    use std::ops::Bound;

    /// A window whose tables take this much each.
    struct Written {
        commits: Vec<Vec<Write>>,
        tables: Tables,
    }

    impl Written {
        /// A put of each key in turn, and a flush after so many of them.
        fn of(keys: &[&str], bytes: usize, flushes: &[usize]) -> Written {
            let put = |key: &&str| vec![Write::new(WINDOW, *key, Change::Put(vec![0; bytes]))];
            let mut tables = Tables::default();
            flushes.iter().for_each(|&flush| tables.note_flush(flush));
            Written { commits: keys.iter().map(put).collect(), tables }
        }

        /// Whether these of all keys may be what is there.
        fn may_have(&self, left: &[&str]) -> bool {
            let commits: Vec<&[Write]> = self.commits.iter().map(|writes| &writes[..]).collect();
            let held = |key: &[u8]| ((WINDOW, key.to_vec()), Held::value(Vec::new(), NEVER));
            let expected: State = self.commits.iter().map(|writes| held(&writes[0].key)).collect();
            let found: State = left.iter().map(|key| held(key.as_bytes())).collect();
            self.tables.lost_too_early(&commits, &expected, &found).is_none()
        }
    }

    /// If anything could be missing, or what is there were compared with nothing older, this would
    /// fail.
    #[test]
    fn nothing_goes_before_what_an_earlier_flush_has_written() {
        let written = Written::of(&["a", "b", "c"], 1500, &[1, 2]);
        assert!(written.may_have(&["a", "b", "c"]) && written.may_have(&["b", "c"]) && written.may_have(&["c"]));
        assert!(!written.may_have(&["a", "c"]) && !written.may_have(&["a", "b"]) && !written.may_have(&["a"]));
        // One flush has made the tables of the last two.
        let written = Written::of(&["a", "b", "c"], 1500, &[1]);
        assert!(written.may_have(&["b"]) && written.may_have(&["c"]) && !written.may_have(&["a", "b"]));
    }

    #[test]
    fn nothing_goes_before_what_is_behind_the_flush_before_it_is_too_much() {
        let written = Written::of(&["a", "b", "c"], 1500, &[1, 2]);
        assert!(!written.may_have(&[]), "the newest table alone is not too much");
        let written = Written::of(&["a", "b", "c"], 20, &[]);
        assert!(!written.may_have(&["b", "c"]) && !written.may_have(&[]) && written.may_have(&["a", "b", "c"]));
        let written = Written::of(&["a", "b", "c", "d", "e"], 20, &[]);
        assert!(written.may_have(&["b", "d", "e"]), "five tables can be too much");
        let mut written = Written::of(&["a", "b"], 20, &[]);
        assert!(!written.may_have(&["b"]));
        written.commits[1].push(Write::delete_range(WINDOW, Bound::Unbounded, Bound::Unbounded));
        assert!(written.may_have(&["b"]), "a range can be in many tables");
    }

    #[test]
    fn where_tables_were_compacted_or_writes_are_in_no_log_nothing_is_said_of_what_was_before() {
        let whole = Written::of(&["a", "b"], 1500, &[1]);
        assert!(!whole.may_have(&["a"]));
        let with = |tables: Tables| Written { tables, ..Written::of(&["a", "b"], 1500, &[]) };
        assert!(with(Tables::unknown()).may_have(&["a"]));
        assert!(with(whole.tables.recovered(2, true)).may_have(&["a"]));
        assert!(!with(whole.tables.recovered(2, false)).may_have(&["a"]));
        let mut behind = whole.tables.recovered(2, true);
        behind.note_flush(1);
        assert!(!with(behind).may_have(&["a"]), "what a later flush divides is known");
        let mut compacted = Tables::unknown();
        compacted.note_flush(1);
        assert!(with(compacted).may_have(&["a"]));
    }

    /// What FIFO counts of a window with nothing but what this step writes: its tables, and the
    /// large values that they refer to. Its name is the longer one, which tables repeat.
    fn bytes_of(step: &Step, (options, changed): (&Options, Option<usize>)) -> u64 {
        let env = MemEnv::new();
        let ground = Ground::new(options, env.clone());
        let ground = changed.map_or(ground.clone(), |number| ground.changed(number));
        let mut progress = Progress::default();
        let mut session = Session::open(&ground, &mut progress).unwrap();
        for step in [&Step::Rename(WINDOW), step, &Step::Flush] {
            session.perform(step, &mut progress).unwrap();
        }
        let tables = env.files().into_iter().filter(|path| path.extension().is_some_and(|end| end == "table"));
        let bytes = tables.map(|path| env.file_bytes(&path).map_or(0, |bytes| bytes.len() as u64));
        bytes.sum::<u64>() + session.db().stats().live_blob_bytes
    }

    /// If tables became larger than the oracle takes them for, or the oracle took them for many
    /// times as large as they are, this would fail: it would call wrong what FIFO may drop, or
    /// allow what it may not.
    #[test]
    fn what_is_written_takes_no_more_than_the_oracle_takes_it_for() {
        let mut most_beside = 0;
        for (name, options) in option_variants() {
            for changed in std::iter::once(None).chain((0..OPTION_CHANGES).map(Some)) {
                for (key, value) in [(0, 0), (0, 3000), (41, 0), (41, 40), (41, 3000), (900, 0), (900, 40)] {
                    let mut random = Random::new(key + value);
                    let (key, value) = (random.bytes(key as usize), random.bytes(value as usize));
                    let beside = |bytes: u64| bytes.saturating_sub((key.len() + value.len()) as u64);
                    let write = Write::new(WINDOW, key.clone(), Change::Put(value.clone()));
                    let load = Step::Ingest(WINDOW, vec![(key.clone(), value.clone())]);
                    for step in [Step::Single(write.clone(), Durability::Sync), load] {
                        let (bytes, most) = (bytes_of(&step, (&options, changed)), most_bytes(&write));
                        let (keys, values) = (key.len(), value.len());
                        assert!(
                            (1..=most).contains(&bytes),
                            "{name}, changed: {changed:?}: {bytes} bytes of a key of {keys} and a value of {values}"
                        );
                        most_beside = most_beside.max(if keys == 0 { beside(bytes) } else { 0 });
                    }
                }
            }
        }
        println!("{most_beside} bytes at most beside key and value");
        assert!(most_beside * 4 >= TABLE_BYTES, "{most_beside}");
    }
}
