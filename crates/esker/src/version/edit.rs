//! The state that a manifest describes, and the edits that change it.
//!
//! ```text
//! edit  := field*
//! field := tag varint, values
//!   1 next file      number                     numbers below it were given out
//!   2 last sequence  sequence                   at least this far writes were given numbers
//!   3 log floor      segment number             older log segments are not needed
//!   4 keyspace       id, name bytes, comparator bytes, operator bytes ("" for none), ttl (0: off)
//!   5 flushed        keyspace id, sequence      all of its writes up to there are in tables
//!   6 add table      keyspace id, run id, file number, file bytes
//!   7 remove table   keyspace id, file number
//!   8 closed         log segment number, offset: the database was closed with its log ending there
//!   9 style          keyspace id, style, parameter: 0 lazy leveling, 1 leveled, 2 tiered, 3 FIFO of so many bytes; the parameter of the others is 0
//!  10 log synced    log segment number, offset: the log is on the device up to there
//!  11 drop keyspace keyspace id: it is gone, with its tables
//!  12 next keyspace id: all below it were given out; without it, all up to the greatest there is
//!  13 changes from  sequence, log segment number changes are kept from this write on, in this segment and those behind it
//!  14 loaded        sequence, keyspace id      a load, which the log has not
//!  15 dropped       sequence, keyspace id, name bytes, comparator bytes: a drop, which the log has not
//!  16 altered       sequence, keyspace id, name bytes, operator bytes, ttl: until there the keyspace had these settings
//!  17 dropped       as 15, and operator bytes, ttl: of a keyspace that had an operator or a ttl
//!  18 recovered     sequence, log segment number changes up to there were recovered, and some may be lost; later ones are in this segment and those behind it
//! ```
//! The id of a dropped keyspace is not given out again: the log may still hold writes to it, which
//! are skipped, and its tables may still be there.
//!
//! All integers are varints; bytes stand behind their length. An unknown tag is an error: newer
//! versions raise the manifest's version.

use crate::base::coding::{Cursor, DecodeError, put_bytes, put_varint};
#[cfg(test)]
use crate::base::comparator::BYTEWISE;
use crate::base::file_number::MAX_NUMBER;
use crate::base::key::Sequence;
use crate::options::CompactionStyle;
use crate::table::TableKeyspace;
use std::collections::{BTreeMap, BTreeSet};

/// Keyspaces are fewer than this.
pub const MAX_KEYSPACES: u64 = 1 << 16;
/// Keyspace ids are below this: they index a table. It bounds how many are created in the life of a
/// database.
pub const MAX_KEYSPACE_ID: u64 = 1 << 20;

/// So many loads, drops and other settings of keyspaces are listed for readers of changes.
const MOST_UNLOGGED: usize = 4096;

/// So many recoveries are listed for them. What is said of one that is not is said of the next.
const MOST_RECOVERED: usize = 64;

/// A change to a [`ManifestState`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    NextFile(u64),
    LastSequence(Sequence),
    LogFloor(u64),
    Keyspace { id: u64, name: String, comparator: String, operator: Option<String>, ttl: u64 },
    Flushed { keyspace: u64, sequence: Sequence },
    AddTable { keyspace: u64, run: u64, number: u64, bytes: u64 },
    RemoveTable { keyspace: u64, number: u64 },
    Closed { segment: u64, offset: u64 },
    Style { keyspace: u64, style: u64, parameter: u64 },
    LogSynced { segment: u64, offset: u64 },
    DropKeyspace { id: u64 },
    NextKeyspace(u64),
    ChangesFrom { sequence: Sequence, segment: u64 },
    Loaded { sequence: Sequence, keyspace: u64 },
    Dropped { sequence: Sequence, keyspace: u64, comparator: String, settings: Settings },
    Altered { sequence: Sequence, keyspace: u64, before: Settings },
    ChangesRecovered { sequence: Sequence, segment: u64 },
}

/// What can be changed of a keyspace, but for how it is compacted.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Settings {
    pub name: String,
    pub operator: Option<String>,
    pub ttl: u64,
}

impl Change {
    /// That a keyspace is compacted like this.
    pub fn style(keyspace: u64, style: CompactionStyle) -> Change {
        let (style, parameter) = match style {
            CompactionStyle::LazyLeveling => (0, 0),
            CompactionStyle::Leveled => (1, 0),
            CompactionStyle::Tiered => (2, 0),
            CompactionStyle::Fifo { max_bytes } => (3, max_bytes),
        };
        Change::Style { keyspace, style, parameter }
    }
}

fn style_of(style: u64, parameter: u64) -> Option<CompactionStyle> {
    match (style, parameter) {
        (0, 0) => Some(CompactionStyle::LazyLeveling),
        (1, 0) => Some(CompactionStyle::Leveled),
        (2, 0) => Some(CompactionStyle::Tiered),
        (3, max_bytes) => Some(CompactionStyle::Fifo { max_bytes }),
        _ => None,
    }
}

/// A table of a keyspace, as the manifest knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableRecord {
    pub run: u64,
    pub bytes: u64,
}

/// A keyspace, as the manifest knows it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct KeyspaceRecord {
    pub name: String,
    pub comparator: String,
    pub operator: Option<String>,
    pub ttl: u64,
    pub style: CompactionStyle,
    pub flushed: Sequence,
    pub tables: BTreeMap<u64, TableRecord>,
}

impl KeyspaceRecord {
    /// What can be changed of it.
    pub fn settings(&self) -> Settings {
        Settings { name: self.name.clone(), operator: self.operator.clone(), ttl: self.ttl }
    }

    /// What tables of this keyspace, with number `id`, say about it.
    pub fn label(&self, id: u64) -> TableKeyspace {
        let KeyspaceRecord { name, comparator, operator, ttl, flushed, .. } = self.clone();
        TableKeyspace { id, name, operator, ttl, flushed, comparator }
    }
}

/// Everything a manifest says.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ManifestState {
    pub next_file: u64,
    pub last_sequence: Sequence,
    pub log_floor: u64,
    pub keyspaces: BTreeMap<u64, KeyspaceRecord>,
    /// The ids below it were given out; those that are not in `keyspaces` were dropped.
    pub next_keyspace: u64,
    pub closed: Option<(u64, u64)>,
    /// The segment and offset up to which the log is known to be on the device.
    pub log_synced: (u64, u64),
    /// The write from which on changes are kept; 0 if none are.
    pub changes_from: Sequence,
    /// The oldest log segment that has them.
    pub changes_segment: u64,
    /// What the log does not say of the changes from there on, by its place in the order of writes.
    pub unlogged: BTreeMap<Sequence, UnloggedChange>,
    /// The last writes of logs that were recovered though the device need not have all of them, and
    /// the segments that the log went on in: of the changes that are kept up to the last of these
    /// writes some may be lost with the power (`db/lifecycle/keep_changes.rs`).
    pub changes_recovered: BTreeMap<Sequence, u64>,
}

/// A change of a whole keyspace, which is in no log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnloggedChange {
    Load { keyspace: u64 },
    Drop { keyspace: u64, comparator: String, settings: Settings },
    Alter { keyspace: u64, before: Settings },
}

impl UnloggedChange {
    /// Whether builds that read version 4 of the manifest do not know it.
    pub fn is_later(&self) -> bool {
        match self {
            UnloggedChange::Load { .. } => false,
            UnloggedChange::Drop { settings, .. } => settings.operator.is_some() || settings.ttl > 0,
            UnloggedChange::Alter { .. } => true,
        }
    }
}

/// Appends the bytes of `changes`.
pub fn encode(changes: &[Change], out: &mut Vec<u8>) {
    for change in changes {
        let mut put = |values: &[u64]| values.iter().for_each(|&value| put_varint(out, value));
        match change {
            Change::NextFile(number) => put(&[1, *number]),
            Change::LastSequence(sequence) => put(&[2, *sequence]),
            Change::LogFloor(number) => put(&[3, *number]),
            Change::Keyspace { id, name, comparator, operator, ttl } => {
                put(&[4, *id]);
                put_bytes(out, name.as_bytes());
                put_bytes(out, comparator.as_bytes());
                put_bytes(out, operator.as_deref().unwrap_or_default().as_bytes());
                put_varint(out, *ttl);
            }
            Change::Flushed { keyspace, sequence } => put(&[5, *keyspace, *sequence]),
            Change::AddTable { keyspace, run, number, bytes } => put(&[6, *keyspace, *run, *number, *bytes]),
            Change::RemoveTable { keyspace, number } => put(&[7, *keyspace, *number]),
            Change::Closed { segment, offset } => put(&[8, *segment, *offset]),
            Change::Style { keyspace, style, parameter } => put(&[9, *keyspace, *style, *parameter]),
            Change::LogSynced { segment, offset } => put(&[10, *segment, *offset]),
            Change::DropKeyspace { id } => put(&[11, *id]),
            Change::NextKeyspace(id) => put(&[12, *id]),
            Change::ChangesFrom { sequence, segment } => put(&[13, *sequence, *segment]),
            Change::ChangesRecovered { sequence, segment } => put(&[18, *sequence, *segment]),
            Change::Loaded { sequence, keyspace } => put(&[14, *sequence, *keyspace]),
            Change::Dropped { sequence, keyspace, comparator, settings: Settings { name, operator: None, ttl: 0 } } => {
                put(&[15, *sequence, *keyspace]);
                put_bytes(out, name.as_bytes());
                put_bytes(out, comparator.as_bytes());
            }
            Change::Dropped { sequence, keyspace, comparator, settings } => {
                put(&[17, *sequence, *keyspace]);
                put_bytes(out, settings.name.as_bytes());
                put_bytes(out, comparator.as_bytes());
                put_bytes(out, settings.operator.as_deref().unwrap_or_default().as_bytes());
                put_varint(out, settings.ttl);
            }
            Change::Altered { sequence, keyspace, before } => {
                put(&[16, *sequence, *keyspace]);
                put_bytes(out, before.name.as_bytes());
                put_bytes(out, before.operator.as_deref().unwrap_or_default().as_bytes());
                put_varint(out, before.ttl);
            }
        }
    }
}

/// The changes in an edit.
pub fn decode(payload: &[u8]) -> Result<Vec<Change>, DecodeError> {
    let mut cursor = Cursor::new(payload);
    let mut changes = Vec::new();
    while !cursor.is_empty() {
        let tag = cursor.varint("a field of a manifest edit")?;
        let mut next = || cursor.varint("a number in a manifest edit");
        changes.push(match tag {
            1 => Change::NextFile(next()?),
            2 => Change::LastSequence(next()?),
            3 => Change::LogFloor(next()?),
            4 => {
                let id = next()?;
                let name = text(&mut cursor)?;
                let comparator = text(&mut cursor)?;
                let operator = operator(&mut cursor)?;
                Change::Keyspace { id, name, comparator, operator, ttl: cursor.varint("a ttl")? }
            }
            5 => Change::Flushed { keyspace: next()?, sequence: next()? },
            6 => Change::AddTable { keyspace: next()?, run: next()?, number: next()?, bytes: next()? },
            7 => Change::RemoveTable { keyspace: next()?, number: next()? },
            8 => Change::Closed { segment: next()?, offset: next()? },
            9 => Change::Style { keyspace: next()?, style: next()?, parameter: next()? },
            10 => Change::LogSynced { segment: next()?, offset: next()? },
            11 => Change::DropKeyspace { id: next()? },
            12 => Change::NextKeyspace(next()?),
            13 => Change::ChangesFrom { sequence: next()?, segment: next()? },
            14 => Change::Loaded { sequence: next()?, keyspace: next()? },
            15 => {
                let (sequence, keyspace) = (next()?, next()?);
                let settings = Settings { name: text(&mut cursor)?, ..Settings::default() };
                Change::Dropped { sequence, keyspace, comparator: text(&mut cursor)?, settings }
            }
            16 => {
                let (sequence, keyspace) = (next()?, next()?);
                let (name, operator) = (text(&mut cursor)?, operator(&mut cursor)?);
                let before = Settings { name, operator, ttl: cursor.varint("a ttl")? };
                Change::Altered { sequence, keyspace, before }
            }
            17 => {
                let (sequence, keyspace) = (next()?, next()?);
                let (name, comparator, operator) = (text(&mut cursor)?, text(&mut cursor)?, operator(&mut cursor)?);
                let settings = Settings { name, operator, ttl: cursor.varint("a ttl")? };
                Change::Dropped { sequence, keyspace, comparator, settings }
            }
            18 => Change::ChangesRecovered { sequence: next()?, segment: next()? },
            _ => return Err(cursor.expected("a known field of a manifest edit")),
        });
    }
    Ok(changes)
}

fn operator(cursor: &mut Cursor<'_>) -> Result<Option<String>, DecodeError> {
    Ok(Some(text(cursor)?).filter(|name| !name.is_empty()))
}

fn text(cursor: &mut Cursor<'_>) -> Result<String, DecodeError> {
    let bytes = cursor.bytes("a name")?;
    String::from_utf8(bytes.to_vec()).map_err(|_| cursor.expected("a name in UTF-8"))
}

/// The greatest keyspace id in a change, and the greatest of its other numbers that have a bound.
fn bounded(change: &Change) -> (u64, u64) {
    match change {
        Change::NextFile(number) | Change::LogFloor(number) => (0, *number),
        Change::LastSequence(sequence) | Change::Flushed { sequence, .. } => (0, *sequence),
        Change::ChangesFrom { sequence, segment } | Change::ChangesRecovered { sequence, segment } => {
            (0, *sequence.max(segment))
        }
        Change::Loaded { sequence, keyspace }
        | Change::Dropped { sequence, keyspace, .. }
        | Change::Altered { sequence, keyspace, .. } => (*keyspace, *sequence),
        Change::Keyspace { id, .. } => (*id, 0),
        // Behind the greatest.
        Change::NextKeyspace(next) => (next.saturating_sub(1), 0),
        Change::AddTable { run, number, .. } => (0, *run.max(number)),
        Change::Closed { segment, .. } | Change::LogSynced { segment, .. } => (0, *segment),
        Change::RemoveTable { .. } | Change::Style { .. } | Change::DropKeyspace { .. } => (0, 0),
    }
}

impl ManifestState {
    /// Applies `change`, or says what is impossible about it.
    pub fn apply(&mut self, change: &Change) -> Result<(), String> {
        let (id, number) = bounded(change);
        if id >= MAX_KEYSPACE_ID || number >= MAX_NUMBER {
            return Err(format!("an impossible number: {change:?}"));
        }
        match change {
            Change::NextFile(number) => self.next_file = self.next_file.max(*number),
            Change::LastSequence(sequence) => self.last_sequence = self.last_sequence.max(*sequence),
            Change::LogFloor(number) => self.log_floor = self.log_floor.max(*number),
            Change::Keyspace { id, name, comparator, operator, ttl } => {
                let record = KeyspaceRecord {
                    name: name.clone(),
                    comparator: comparator.clone(),
                    operator: operator.clone(),
                    ttl: *ttl,
                    ..KeyspaceRecord::default()
                };
                if self.keyspaces.insert(*id, record).is_some() {
                    return Err(format!("keyspace {id} is created twice"));
                }
                self.next_keyspace = self.next_keyspace.max(*id + 1);
            }
            Change::DropKeyspace { id } => {
                if self.keyspaces.remove(id).is_none() {
                    return Err(format!("keyspace {id} is dropped but not there"));
                }
            }
            Change::NextKeyspace(id) => self.next_keyspace = self.next_keyspace.max(*id),
            Change::ChangesFrom { .. }
            | Change::ChangesRecovered { .. }
            | Change::Loaded { .. }
            | Change::Dropped { .. }
            | Change::Altered { .. } => self.note_kept(change),
            Change::Flushed { keyspace, sequence } => {
                let record = self.keyspace(*keyspace)?;
                record.flushed = record.flushed.max(*sequence);
            }
            Change::AddTable { keyspace, run, number, bytes } => {
                let record = TableRecord { run: *run, bytes: *bytes };
                if self.keyspace(*keyspace)?.tables.insert(*number, record).is_some() {
                    return Err(format!("table {number} is added twice"));
                }
            }
            Change::RemoveTable { keyspace, number } => {
                if self.keyspace(*keyspace)?.tables.remove(number).is_none() {
                    return Err(format!("table {number} is removed but not there"));
                }
            }
            Change::Closed { segment, offset } => self.closed = Some((*segment, *offset)),
            Change::LogSynced { segment, offset } => self.log_synced = self.log_synced.max((*segment, *offset)),
            Change::Style { keyspace, style, parameter } => {
                let known = style_of(*style, *parameter);
                self.keyspace(*keyspace)?.style =
                    known.ok_or_else(|| format!("an unknown compaction style: {change:?}"))?;
            }
        }
        Ok(())
    }

    /// Of many the older half goes, with all changes before the rest.
    fn note_unlogged(&mut self, sequence: Sequence, change: UnloggedChange) {
        self.unlogged.insert(sequence, change);
        if self.unlogged.len() > MOST_UNLOGGED
            && let Some(&half) = self.unlogged.keys().nth(MOST_UNLOGGED / 2)
        {
            self.changes_from = self.changes_from.max(half);
            self.forget_before_changes();
        }
    }

    /// Keeps changes from that write on only, in that segment and those behind it.
    pub fn forget_changes_before(&mut self, sequence: Sequence, segment: u64) {
        self.changes_from = self.changes_from.max(sequence);
        self.changes_segment = self.changes_segment.max(segment);
        self.forget_before_changes();
    }

    /// Notes that a log was recovered up to that write, and went on in that segment.
    pub fn note_recovered(&mut self, last: Sequence, segment: u64) {
        self.changes_recovered.insert(last, segment);
        if self.changes_recovered.len() > MOST_RECOVERED {
            self.changes_recovered.pop_first();
        }
    }

    /// Notes that the log goes on from segment `last` in segment `next`: those between held
    /// nothing, and are given up.
    pub fn note_given_up(&mut self, last: u64, next: u64) {
        let given_up = self.changes_recovered.values_mut().filter(|segment| **segment > last);
        given_up.for_each(|segment| *segment = next);
    }

    /// Forgets what is listed about changes that are kept no more.
    fn forget_before_changes(&mut self) {
        self.unlogged = self.unlogged.split_off(&self.changes_from);
        self.changes_recovered = self.changes_recovered.split_off(&self.changes_from);
    }

    /// What concerns the changes that are kept.
    fn note_kept(&mut self, change: &Change) {
        match change {
            // 0 says nothing.
            Change::ChangesFrom { sequence: 0, .. } => {}
            Change::ChangesFrom { sequence, segment } => {
                self.forget_changes_before(*sequence, *segment);
            }
            Change::ChangesRecovered { sequence, segment } => self.note_recovered(*sequence, *segment),
            Change::Loaded { sequence, keyspace } => {
                self.note_unlogged(*sequence, UnloggedChange::Load { keyspace: *keyspace });
            }
            Change::Dropped { sequence, keyspace, comparator, settings } => {
                let (comparator, settings) = (comparator.clone(), settings.clone());
                self.note_unlogged(*sequence, UnloggedChange::Drop { keyspace: *keyspace, comparator, settings });
            }
            Change::Altered { sequence, keyspace, before } => {
                let alter = UnloggedChange::Alter { keyspace: *keyspace, before: before.clone() };
                self.note_unlogged(*sequence, alter);
            }
            _ => {}
        }
    }

    fn keyspace(&mut self, id: u64) -> Result<&mut KeyspaceRecord, String> {
        self.keyspaces.get_mut(&id).ok_or_else(|| format!("there is no keyspace {id}"))
    }

    /// Whether a keyspace with this number was dropped.
    pub fn was_dropped(&self, id: u64) -> bool {
        id < self.next_keyspace && !self.keyspaces.contains_key(&id)
    }

    /// The tables that belong to several keyspaces: whichever of those is compacted first would
    /// take it from the others. No engine writes that.
    pub fn shared_tables(&self) -> BTreeSet<u64> {
        let mut seen = BTreeSet::new();
        let tables = self.keyspaces.values().flat_map(|keyspace| keyspace.tables.keys().copied());
        tables.filter(|&number| !seen.insert(number)).collect()
    }

    /// Keeps no changes any more.
    pub fn forget_changes(&mut self) {
        self.changes_from = 0;
        self.changes_segment = 0;
        self.changes_recovered.clear();
        self.unlogged.clear();
    }

    /// The changes that make this state from nothing. That the database was closed is not among
    /// them: it is open now.
    pub fn snapshot(&self) -> Vec<Change> {
        let mut changes = vec![
            Change::NextFile(self.next_file),
            Change::LastSequence(self.last_sequence),
            Change::LogFloor(self.log_floor),
            Change::LogSynced { segment: self.log_synced.0, offset: self.log_synced.1 },
        ];
        if self.keyspaces.last_key_value().map_or(0, |(last, _)| last + 1) < self.next_keyspace {
            changes.push(Change::NextKeyspace(self.next_keyspace));
        }
        if self.changes_from > 0 {
            changes.push(Change::ChangesFrom { sequence: self.changes_from, segment: self.changes_segment });
        }
        let recovered = self.changes_recovered.iter();
        changes.extend(recovered.map(|(&sequence, &segment)| Change::ChangesRecovered { sequence, segment }));
        changes.extend(self.unlogged.iter().map(|(&sequence, change)| match change {
            UnloggedChange::Load { keyspace } => Change::Loaded { sequence, keyspace: *keyspace },
            UnloggedChange::Drop { keyspace, comparator, settings } => {
                let (comparator, settings) = (comparator.clone(), settings.clone());
                Change::Dropped { sequence, keyspace: *keyspace, comparator, settings }
            }
            UnloggedChange::Alter { keyspace, before } => {
                Change::Altered { sequence, keyspace: *keyspace, before: before.clone() }
            }
        }));
        for (&id, record) in &self.keyspaces {
            changes.push(Change::Keyspace {
                id,
                name: record.name.clone(),
                comparator: record.comparator.clone(),
                operator: record.operator.clone(),
                ttl: record.ttl,
            });
            if record.style != CompactionStyle::default() {
                changes.push(Change::style(id, record.style));
            }
            changes.push(Change::Flushed { keyspace: id, sequence: record.flushed });
            changes.extend(record.tables.iter().map(|(&number, table)| Change::AddTable {
                keyspace: id,
                run: table.run,
                number,
                bytes: table.bytes,
            }));
        }
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_rebuilds_the_state_through_its_bytes() {
        let mut state = ManifestState { next_file: 9, last_sequence: 1 << 40, log_floor: 3, ..Default::default() };
        let operator = Some("uint64add".to_owned());
        let named = |name: &str| Settings { name: name.into(), ..Settings::default() };
        let changes = [
            Change::Keyspace { id: 1, name: "hits".into(), comparator: BYTEWISE.into(), operator, ttl: 0 },
            Change::AddTable { keyspace: 1, run: 4, number: 5, bytes: 600 },
            Change::AddTable { keyspace: 1, run: 4, number: 6, bytes: 700 },
            Change::RemoveTable { keyspace: 1, number: 5 },
            Change::Flushed { keyspace: 1, sequence: 77 },
            Change::style(1, CompactionStyle::Leveled),
            Change::style(1, CompactionStyle::Fifo { max_bytes: 1 << 40 }),
            Change::LogSynced { segment: 4, offset: 128 },
            Change::LogSynced { segment: 3, offset: 256 },
            Change::Loaded { sequence: 5, keyspace: 1 },
            Change::ChangesRecovered { sequence: 5, segment: 2 },
            Change::ChangesFrom { sequence: 6, segment: 3 },
            Change::Loaded { sequence: 6, keyspace: 1 },
            Change::ChangesRecovered { sequence: 6, segment: 4 },
            Change::ChangesRecovered { sequence: 9, segment: 5 },
            Change::Dropped { sequence: 8, keyspace: 0, comparator: "x".into(), settings: named("names") },
            Change::Altered {
                sequence: 9,
                keyspace: 1,
                before: Settings { operator: Some("max".into()), ..named("x") },
            },
            Change::Dropped {
                sequence: 10,
                keyspace: 0,
                comparator: BYTEWISE.into(),
                settings: Settings { ttl: 7, ..named("a") },
            },
        ];
        changes.iter().for_each(|change| state.apply(change).expect("possible"));
        assert_eq!(state.log_synced, (4, 128), "never back");
        assert_eq!(state.unlogged.keys().copied().collect::<Vec<_>>(), [6, 8, 9, 10], "nothing from before");
        assert_eq!(state.changes_recovered, [(6, 4), (9, 5)].into());
        let mut bytes = Vec::new();
        encode(&state.snapshot(), &mut bytes);
        let mut again = ManifestState::default();
        decode(&bytes).expect("intact").iter().for_each(|change| again.apply(change).expect("possible"));
        assert_eq!(again, state);
        assert!(again.apply(&changes[0]).is_err());
        assert!(again.apply(&Change::Style { keyspace: 1, style: 4, parameter: 0 }).is_err());
        assert!(again.apply(&Change::RemoveTable { keyspace: 1, number: 5 }).is_err());
        assert!(again.apply(&Change::Flushed { keyspace: 2, sequence: 1 }).is_err());
        for length in 0..bytes.len() {
            let _ = decode(&bytes[..length]);
        }
    }

    #[test]
    fn of_many_recoveries_the_first_are_not_listed() {
        let mut state = ManifestState { changes_from: 1, ..Default::default() };
        for number in 1..=100 {
            state.apply(&Change::ChangesRecovered { sequence: number * 10, segment: number }).expect("possible");
        }
        let listed: Vec<_> = state.changes_recovered.into_iter().collect();
        assert_eq!((listed.len(), listed[0], listed[63]), (64, (370, 37), (1000, 100)));
    }

    #[test]
    fn of_one_change_too_many_for_the_list_the_older_half_goes() {
        let mut state = ManifestState { last_sequence: 1 << 20, changes_from: 1, ..Default::default() };
        let most = MOST_UNLOGGED as u64;
        for number in 1..=most {
            state.apply(&Change::Loaded { sequence: number * 10, keyspace: 1 }).expect("possible");
        }
        assert_eq!((state.unlogged.len(), state.changes_from), (4096, 1), "there is room for these");
        state.apply(&Change::Loaded { sequence: (most + 1) * 10, keyspace: 1 }).expect("possible");
        assert_eq!((state.unlogged.len(), state.changes_from), (2049, 20490), "the changes before go with them");
        assert_eq!(state.unlogged.keys().next(), Some(&20490));
        // Each reader of the manifest comes to the same.
        let mut bytes = Vec::new();
        encode(&state.snapshot(), &mut bytes);
        let mut again = ManifestState::default();
        decode(&bytes).expect("intact").iter().for_each(|change| again.apply(change).expect("possible"));
        assert_eq!(again, state);
    }
}
