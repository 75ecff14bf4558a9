//! The reference: a database as a list of versions per key, written from the meaning of the operations and from nothing else.
//!
//! Every change gets the next sequence number; a commit's changes are visible together because readers only ever hold
//! the number of a commit's last change.

use std::collections::BTreeMap;
use std::ops::Bound;

/// The merge operator of a keyspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// No operator: merging is refused.
    None,
    /// Adds 8-byte little-endian numbers, wrapping.
    UInt64Add,
    /// Joins with a comma.
    StringAppend,
    /// Keeps the greatest byte string.
    Max,
    /// Keeps the least byte string.
    Min,
    /// Keeps the last operand.
    Put,
}

/// What happens to one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The key gets this value.
    Put(Vec<u8>),
    /// The key goes.
    Delete,
    /// The operand is combined with what is there.
    Merge(Vec<u8>),
}

/// One change of one key of one keyspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// Index of the keyspace.
    pub keyspace: usize,
    /// The key.
    pub key: Vec<u8>,
    /// What happens to it.
    pub change: Change,
}

impl Write {
    /// The same write with a shorter value, if it has a long one.
    pub fn simpler(&self) -> Vec<Write> {
        let Change::Put(value) = &self.change else { return Vec::new() };
        let shorter = |length: &usize| {
            let change = Change::Put(value[..*length].to_vec());
            Write { change, ..self.clone() }
        };
        [1, 8, value.len() / 2].iter().filter(|length| **length < value.len()).map(shorter).collect()
    }
}

/// The read that needs this merge must fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MergeFails;

/// What a read of one key must yield.
pub type Answer = Result<Option<Vec<u8>>, MergeFails>;

/// A visible key and its value, or the failure that reading it must yield.
pub type Entry = (Vec<u8>, Result<Vec<u8>, MergeFails>);

/// Which keys a scan covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Span {
    /// All of them.
    All,
    /// Those between two bounds; none if the bounds are the wrong way round.
    Range(Bound<Vec<u8>>, Bound<Vec<u8>>),
    /// Those that begin with these bytes.
    Prefix(Vec<u8>),
}

impl Span {
    /// Whether the key is covered.
    pub fn contains(&self, key: &[u8]) -> bool {
        match self {
            Span::All => true,
            Span::Prefix(prefix) => key.starts_with(prefix),
            Span::Range(low, high) => {
                let above = match low {
                    Bound::Included(bound) => key >= bound.as_slice(),
                    Bound::Excluded(bound) => key > bound.as_slice(),
                    Bound::Unbounded => true,
                };
                let below = match high {
                    Bound::Included(bound) => key <= bound.as_slice(),
                    Bound::Excluded(bound) => key < bound.as_slice(),
                    Bound::Unbounded => true,
                };
                above && below
            }
        }
    }
}

#[derive(Clone, Debug)]
struct ModelKeyspace {
    operator: Operator,
    versions: BTreeMap<Vec<u8>, Vec<(u64, Change)>>,
}

/// The longest key that is one.
pub const LONGEST_KEY: usize = 64 << 10;

/// A database with its whole history.
#[derive(Clone, Debug)]
pub struct Model {
    keyspaces: Vec<ModelKeyspace>,
    sequence: u64,
}

impl Model {
    /// An empty database with a keyspace per operator.
    pub fn new(operators: &[Operator]) -> Model {
        let keyspace = |&operator: &Operator| ModelKeyspace { operator, versions: BTreeMap::new() };
        Model { keyspaces: operators.iter().map(keyspace).collect(), sequence: 0 }
    }

    /// How many keyspaces there are.
    pub fn keyspace_count(&self) -> usize {
        self.keyspaces.len()
    }

    /// The operator of a keyspace.
    pub fn operator(&self, keyspace: usize) -> Operator {
        self.keyspaces[keyspace].operator
    }

    /// Whether the write is visibly wrong and must be refused before anything is written.
    pub fn refuses(&self, write: &Write) -> bool {
        if write.key.len() > LONGEST_KEY {
            return true;
        }
        match (&write.change, self.keyspaces[write.keyspace].operator) {
            (Change::Merge(_), Operator::None) => true,
            (Change::Merge(operand), Operator::UInt64Add) => operand.len() != 8,
            _ => false,
        }
    }

    /// Applies the writes in order as one unit, and yields the sequence at which they are all visible.
    pub fn commit(&mut self, writes: &[Write]) -> u64 {
        for write in writes {
            self.sequence += 1;
            let versions = &mut self.keyspaces[write.keyspace].versions;
            versions.entry(write.key.clone()).or_default().push((self.sequence, write.change.clone()));
        }
        self.sequence
    }

    /// The sequence that a read made now sees.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The value of a key as of a sequence.
    pub fn get(&self, keyspace: usize, key: &[u8], at: u64) -> Answer {
        let keyspace = &self.keyspaces[keyspace];
        match keyspace.versions.get(key) {
            Some(versions) => resolve(keyspace.operator, versions, at),
            None => Ok(None),
        }
    }

    /// The visible entries of a span in key order as of a sequence.
    pub fn scan(&self, keyspace: usize, span: &Span, at: u64) -> Vec<Entry> {
        let keyspace = &self.keyspaces[keyspace];
        let mut entries = Vec::new();
        for (key, versions) in keyspace.versions.iter().filter(|(key, _)| span.contains(key)) {
            match resolve(keyspace.operator, versions, at) {
                Ok(Some(value)) => entries.push((key.clone(), Ok(value))),
                Ok(None) => {}
                Err(failure) => entries.push((key.clone(), Err(failure))),
            }
        }
        entries
    }
}

/// Walks back to the newest put or delete, then combines the operands above it, oldest first.
fn resolve(operator: Operator, versions: &[(u64, Change)], at: u64) -> Answer {
    let visible = &versions[..versions.partition_point(|(sequence, _)| *sequence <= at)];
    let mut operands: Vec<&[u8]> = Vec::new();
    let mut existing = None;
    for (_, change) in visible.iter().rev() {
        match change {
            Change::Put(value) => {
                existing = Some(value.as_slice());
                break;
            }
            Change::Delete => break,
            Change::Merge(operand) => operands.push(operand),
        }
    }
    operands.reverse();
    if operands.is_empty() {
        return Ok(existing.map(<[u8]>::to_vec));
    }
    combine(operator, existing, &operands).map(Some)
}

fn combine(operator: Operator, existing: Option<&[u8]>, operands: &[&[u8]]) -> Result<Vec<u8>, MergeFails> {
    let all = existing.into_iter().chain(operands.iter().copied());
    match operator {
        Operator::None => Err(MergeFails),
        Operator::UInt64Add => {
            let mut sum = 0u64;
            for part in all {
                let bytes: [u8; 8] = part.try_into().map_err(|_| MergeFails)?;
                sum = sum.wrapping_add(u64::from_le_bytes(bytes));
            }
            Ok(sum.to_le_bytes().to_vec())
        }
        Operator::StringAppend => Ok(all.collect::<Vec<_>>().join(&b","[..])),
        Operator::Max => all.max().map(<[u8]>::to_vec).ok_or(MergeFails),
        Operator::Min => all.min().map(<[u8]>::to_vec).ok_or(MergeFails),
        Operator::Put => all.last().map(<[u8]>::to_vec).ok_or(MergeFails),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(key: &str, change: Change) -> Write {
        Write { keyspace: 0, key: key.into(), change }
    }

    #[test]
    fn snapshots_keep_their_answers() {
        let mut model = Model::new(&[Operator::StringAppend]);
        let before = model.commit(&[write("k", Change::Merge("a".into())), write("k", Change::Merge("b".into()))]);
        let after = model.commit(&[write("k", Change::Delete), write("k", Change::Merge("c".into()))]);
        assert_eq!(model.get(0, b"k", 0), Ok(None));
        assert_eq!(model.get(0, b"k", before), Ok(Some(b"a,b".to_vec())));
        assert_eq!(model.get(0, b"k", after), Ok(Some(b"c".to_vec())));
    }

    #[test]
    fn an_unfit_value_fails_the_read_only() {
        let mut model = Model::new(&[Operator::UInt64Add]);
        assert!(model.refuses(&write("k", Change::Merge(vec![1; 3]))));
        let at = model.commit(&[write("k", Change::Put(vec![1; 3])), write("k", Change::Merge(vec![0; 8]))]);
        assert_eq!(model.get(0, b"k", at), Err(MergeFails));
        let at = model.commit(&[write("k", Change::Delete)]);
        assert_eq!(model.scan(0, &Span::All, at), vec![]);
    }

    #[test]
    fn bounds_the_wrong_way_round_cover_nothing() {
        let span = Span::Range(Bound::Included(b"c".to_vec()), Bound::Excluded(b"a".to_vec()));
        assert!(!span.contains(b"b"));
        assert!(Span::Prefix(Vec::new()).contains(b""));
    }
}
