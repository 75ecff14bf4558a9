use super::*;
use crate::base::key::MAX_SEQUENCE;
use crate::merge_operator::{MergeError, UInt64Add};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

type Owned = (Vec<u8>, Sequence, Kind, Vec<u8>);

/// Entries that all expire at the same time.
struct Entries {
    all: Vec<Owned>,
    expiry_ms: u64,
    at: usize,
}

impl Cursor for Entries {
    fn seek_to_first(&mut self) -> Result<()> {
        self.at = 0;
        Ok(())
    }
    fn seek_to_last(&mut self) -> Result<()> {
        unreachable!("retain only goes forward")
    }
    fn seek(&mut self, _key: &[u8], _sequence: Sequence) -> Result<()> {
        unreachable!("retain only goes forward")
    }
    fn next(&mut self) -> Result<()> {
        self.at += 1;
        Ok(())
    }
    fn prev(&mut self) -> Result<()> {
        unreachable!("retain only goes forward")
    }
    fn valid(&self) -> bool {
        self.at < self.all.len()
    }
    fn entry(&self) -> Entry<'_> {
        let (key, sequence, kind, value) = &self.all[self.at];
        Entry { key, sequence: *sequence, kind: *kind, expiry_ms: self.expiry_ms, value }
    }
}

/// The value behind a reference is the reference, twice; that of an empty one cannot be read.
fn load_large(reference: &[u8]) -> Result<Vec<u8>> {
    if reference.is_empty() { Err(crate::Error::invalid("unreadable")) } else { Ok(reference.repeat(2)) }
}

fn run(entries: &[Owned], snapshots: &[Sequence], bottom: bool, operator: &dyn MergeOperator) -> Vec<Owned> {
    run_with(entries, &RangeTombstones::default(), snapshots, bottom, operator)
}

fn run_with(
    entries: &[Owned],
    tombstones: &RangeTombstones,
    snapshots: &[Sequence],
    bottom: bool,
    operator: &dyn MergeOperator,
) -> Vec<Owned> {
    let rules = Rules { snapshots, bottom, operator: Some(operator), ..Rules::default() };
    run_expiring(entries, NEVER, tombstones, rules).0.into_iter().map(|(entry, _)| entry).collect()
}

/// What is kept, each with its expiry, of entries that all expire at `expiry_ms`, and what was
/// counted.
fn run_expiring(
    entries: &[Owned],
    expiry_ms: u64,
    tombstones: &RangeTombstones,
    rules: Rules<'_>,
) -> (Vec<(Owned, u64)>, Retained) {
    let mut kept = Vec::new();
    let done = retain(
        &mut Entries { all: entries.to_vec(), expiry_ms, at: 0 },
        tombstones,
        rules,
        &load_large,
        &mut |e| {
            kept.push(((e.key.to_vec(), e.sequence, e.kind, e.value.to_vec()), e.expiry_ms));
            Ok(())
        },
        &mut || Ok(()),
    );
    (kept, done.expect("nothing can fail here"))
}

/// What a reader at `snapshot` sees for one key: `below` is the value under the input.
fn read(entries: &[Owned], snapshot: Sequence, below: Option<u64>) -> Option<u64> {
    let mut sum = 0u64;
    for (_, sequence, kind, value) in entries {
        if *sequence > snapshot {
            continue;
        }
        let number = || u64::from_le_bytes(value.as_slice().try_into().expect("8 bytes"));
        match kind {
            Kind::Put | Kind::PutBlob => return Some(sum.wrapping_add(number())),
            Kind::Delete => return (sum > 0).then_some(sum),
            Kind::Merge => sum = sum.wrapping_add(number()),
            Kind::MergeFirst => return Some(sum.wrapping_add(number())),
        }
    }
    match below {
        Some(below) => Some(below.wrapping_add(sum)),
        None => (sum > 0).then_some(sum),
    }
}

/// All histories of up to four versions of a key, all sets of snapshots, at the bottom and above
/// it: no reader can tell.
#[test]
fn no_snapshot_can_tell_the_difference() {
    let kinds = [Kind::Put, Kind::Delete, Kind::Merge];
    let mut checked = 0;
    for length in 1..=4usize {
        for code in 0..kinds.len().pow(length as u32) {
            let entries: Vec<Owned> = (0..length)
                .map(|at| {
                    let kind = kinds[code / kinds.len().pow(at as u32) % kinds.len()];
                    let sequence = (length - at) as u64 * 2;
                    let value = if kind == Kind::Delete { vec![] } else { (sequence * 100).to_le_bytes().to_vec() };
                    (b"k".to_vec(), sequence, kind, value)
                })
                .collect();
            for mask in 0..1u32 << (length + 1) {
                let snapshots: Vec<u64> =
                    (0..=length as u64).filter(|n| mask >> n & 1 == 1).map(|n| n * 2 + 1).collect();
                for bottom in [false, true] {
                    let kept = run(&entries, &snapshots, bottom, &UInt64Add);
                    let below = if bottom { None } else { Some(7) };
                    for &snapshot in snapshots.iter().chain([&u64::MAX]) {
                        let context = format!("{entries:?} {snapshots:?} bottom {bottom} -> {kept:?} at {snapshot}");
                        assert_eq!(read(&kept, snapshot, below), read(&entries, snapshot, below), "{context}");
                    }
                    assert!(kept.windows(2).all(|pair| pair[0].1 > pair[1].1), "{kept:?}");
                    assert!(kept.len() <= snapshots.len() + 1, "one version for each reader is enough: {kept:?}");
                    checked += 1;
                }
            }
        }
    }
    assert!(checked > 4000);
}

struct Failing;

impl MergeOperator for Failing {
    fn name(&self) -> &str {
        "failing"
    }
    fn full_merge(
        &self,
        _: &[u8],
        _: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> std::result::Result<Option<Vec<u8>>, MergeError> {
        if operands[0] == b"panic" { panic!("on purpose") } else { Err(MergeError("on purpose".into())) }
    }
    fn partial_merge(&self, _: &[u8], _: &[u8], _: &[u8]) -> Option<Vec<u8>> {
        None
    }
}

#[test]
fn a_failing_operator_changes_nothing() {
    std::panic::set_hook(Box::new(|_| {}));
    for operand in [&b"panic"[..], b"error"] {
        let entries = vec![
            (b"k".to_vec(), 3, Kind::Merge, operand.to_vec()),
            (b"k".to_vec(), 2, Kind::Merge, operand.to_vec()),
            (b"k".to_vec(), 1, Kind::Put, b"v".to_vec()),
        ];
        assert_eq!(run(&entries, &[], true, &Failing), entries);
    }
    let _ = std::panic::take_hook();
}

#[test]
fn a_range_tombstone_is_a_delete_of_each_key_at_its_place() {
    let number = |n: u64| n.to_le_bytes().to_vec();
    let entry = |key: &str, sequence, kind, n| (key.as_bytes().to_vec(), sequence, kind, number(n));
    let entries = [
        entry("a", 4, Kind::Put, 1),
        entry("b", 9, Kind::Merge, 2),
        entry("b", 8, Kind::Merge, 3),
        entry("b", 4, Kind::Put, 4),
        entry("c", 6, Kind::Merge, 5),
        entry("d", 6, Kind::Put, 6),
        entry("d", 4, Kind::Put, 7),
        entry("e", 4, Kind::Put, 8),
    ];
    let sets = [RangeTombstones::one(b"b", b"e", 5), RangeTombstones::one(b"d", b"e", 7)];
    let tombstones = RangeTombstones::union(&sets);
    let kept = run_with(&entries, &tombstones, &[], false, &UInt64Add);
    // The operands have the tombstone for a base; the tombstone itself is no entry.
    let expected = [
        entry("a", 4, Kind::Put, 1),
        entry("b", 9, Kind::Put, 5),
        entry("c", 6, Kind::Put, 5),
        entry("e", 4, Kind::Put, 8),
    ];
    assert_eq!(kept, expected);
    let rules = |snapshots, bottom| Rules { snapshots, bottom, ..Rules::default() };
    assert_eq!(rules(&[], false).reduce(&tombstones).fragments().len(), 2, "one tombstone each");
    assert_eq!(rules(&[], false).reduce(&tombstones).cover(b"d", 6), 0);
    assert!(rules(&[], true).reduce(&tombstones).is_empty());
    // A snapshot between the tombstone and what it hides keeps both.
    let kept = run_with(&entries, &tombstones, &[4], true, &UInt64Add);
    assert_eq!(kept.iter().map(|entry| entry.1).collect::<Vec<_>>(), [0, 9, 0, 6, 0, 0]);
    assert_eq!(rules(&[4], true).reduce(&tombstones).cover(b"b", MAX_SEQUENCE), 5);
    assert_eq!(rules(&[5], true).reduce(&tombstones).cover(b"b", MAX_SEQUENCE), 0);
    assert_eq!(rules(&[5], true).reduce(&tombstones).cover(b"d", MAX_SEQUENCE), 7);
}

#[test]
fn a_range_tombstone_hides_only_what_is_older() {
    let entries = [(b"k".to_vec(), 5, Kind::Put, vec![])];
    let kept = |sequence| run_with(&entries, &RangeTombstones::one(b"a", b"z", sequence), &[], false, &UInt64Add);
    assert_eq!(kept(5), entries);
    assert_eq!(kept(6), []);
}

#[test]
fn what_has_expired_becomes_a_bare_delete_and_is_counted() {
    let entries = [(b"k".to_vec(), 3, Kind::Put, b"v".to_vec()), (b"l".to_vec(), 2, Kind::Merge, b"w".to_vec())];
    let rules = |expired_until_ms| Rules { expired_until_ms, expires: true, ..Rules::default() };
    let run = |until| run_expiring(&entries, 7, &RangeTombstones::default(), rules(until));
    let (kept, done) = run(7);
    let delete = |key: &[u8], sequence| ((key.to_vec(), sequence, Kind::Delete, vec![]), NEVER);
    assert_eq!(kept, [delete(b"k", 3), delete(b"l", 2)]);
    assert_eq!(done, Retained { read: 2, kept: 2, expired: 2, filtered: 0 });
    let (kept, done) = run(6);
    assert_eq!(kept, entries.map(|entry| (entry, 7)));
    assert_eq!(done, Retained { read: 2, kept: 2, expired: 0, filtered: 0 });
}

/// A recovery leaves operands on top of a large value to later jobs, and merges all others.
#[test]
fn large_values_are_left_alone_where_the_rules_say_so() {
    let number = |n: u64| n.to_le_bytes().to_vec();
    let entry = |key: &str, sequence, kind, value| (key.as_bytes().to_vec(), sequence, kind, value);
    let entries = [
        entry("k", 9, Kind::Merge, number(1)),
        entry("k", 8, Kind::Merge, number(2)),
        // Loaded, it would be a number.
        entry("k", 7, Kind::PutBlob, vec![1, 0, 0, 0]),
        entry("l", 6, Kind::Merge, number(3)),
        entry("l", 5, Kind::Put, number(4)),
    ];
    for leaves_large in [true, false] {
        let rules = Rules { leaves_large, operator: Some(&UInt64Add), ..Rules::default() };
        let (kept, _) = run_expiring(&entries, NEVER, &RangeTombstones::default(), rules);
        let kept: Vec<Owned> = kept.into_iter().map(|(entry, _)| entry).collect();
        let expected = match leaves_large {
            true => vec![entry("k", 9, Kind::Merge, number(3)), entries[2].clone()],
            false => vec![entry("k", 9, Kind::Put, number(0x1_0000_0001 + 3))],
        };
        assert_eq!(kept, [expected, vec![entry("l", 6, Kind::Put, number(7))]].concat(), "{leaves_large}");
    }
}

/// Where entries can expire, operands on top of a range tombstone are what is left of an expired
/// value: the operator is not asked what they make of nothing.
#[test]
fn operands_without_a_base_are_a_delete_where_entries_expire() {
    let entries = [(b"k".to_vec(), 9, Kind::Merge, 2u64.to_le_bytes().to_vec())];
    let rules = Rules { expires: true, operator: Some(&UInt64Add), ..Rules::default() };
    let (kept, _) = run_expiring(&entries, 7, &RangeTombstones::one(b"a", b"z", 5), rules);
    assert_eq!(kept, [((b"k".to_vec(), 9, Kind::Delete, vec![]), NEVER)]);
}

#[test]
fn a_first_operand_alone_becomes_a_put() {
    let number = |n: u64| n.to_le_bytes().to_vec();
    let entry = |sequence, kind, n| (b"k".to_vec(), sequence, kind, number(n));
    let entries = [entry(6, Kind::Merge, 1), entry(4, Kind::MergeFirst, 2)];
    assert_eq!(run(&entries[1..], &[], false, &UInt64Add), [entry(4, Kind::Put, 2)]);
    // An operand in a newer stripe has no part in it.
    let kept = run(&entries, &[5], false, &UInt64Add);
    assert_eq!(kept, [entry(6, Kind::Merge, 1), entry(4, Kind::Put, 2)]);
}

#[test]
fn the_longest_chain_of_operands_is_noted() {
    let operand = |key: &str, sequence| (key.as_bytes().to_vec(), sequence, Kind::Merge, vec![1]);
    let base = (b"b".to_vec(), 3, Kind::Put, vec![]);
    let entries = [operand("a", 9), operand("a", 8), operand("a", 2), operand("b", 7), operand("b", 6), base];
    let longest = LongestChain::default();
    // Without an operator they stay apart; the snapshot has those of a key emitted in two parts.
    let rules = Rules { snapshots: &[5], longest_chain: Some(&longest), ..Rules::default() };
    run_expiring(&entries, NEVER, &RangeTombstones::default(), rules);
    assert_eq!(longest.get(), 3);
}

/// Decides by the key.
struct ByKey;

impl CompactionFilter for ByKey {
    fn name(&self) -> &str {
        "by key"
    }
    fn decide(&self, key: &[u8], _: &[u8]) -> Decision {
        match key {
            b"remove" => Decision::Remove,
            b"replace" => Decision::Replace(b"new".to_vec()),
            // Allocated zeroed and never touched, it takes no memory.
            b"too long" => Decision::Replace(vec![0; MAX_VALUE_BYTES + 1]),
            _ => Decision::Keep,
        }
    }
}

#[test]
fn what_a_filter_removes_or_replaces_is_counted_and_nothing_else_changes() {
    let put = |key: &str, value: &str| (key.as_bytes().to_vec(), 3, Kind::Put, value.as_bytes().to_vec());
    let entries = [put("keep", "1"), put("remove", "2"), put("replace", "3"), put("too long", "4")];
    let rules = Rules { filter: Some(&ByKey), ..Rules::default() };
    let (kept, done) = run_expiring(&entries, 7, &RangeTombstones::default(), rules);
    let expected = [
        (put("keep", "1"), 7),
        ((b"remove".to_vec(), 3, Kind::Delete, vec![]), NEVER),
        (put("replace", "new"), 7),
        (put("too long", "4"), 7),
    ];
    assert_eq!(kept, expected);
    assert_eq!(done, Retained { read: 4, kept: 4, expired: 0, filtered: 2 });
}

/// Appends, and counts the bytes that it copies in doing so.
#[derive(Default)]
struct Append(AtomicU64);

impl MergeOperator for Append {
    fn name(&self) -> &str {
        "append"
    }
    fn full_merge(
        &self,
        _: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> std::result::Result<Option<Vec<u8>>, MergeError> {
        Ok(Some([existing.unwrap_or_default(), &operands.concat()].concat()))
    }
    fn partial_merge(&self, _: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        self.0.fetch_add((older.len() + newer.len()) as u64, Relaxed);
        Some([older, newer].concat())
    }
}

/// Each is copied as often as the number of operands can be halved, not once for each newer one.
#[test]
fn operands_are_combined_without_copying_each_for_every_other() {
    const COUNT: u64 = 1024;
    const BYTES: usize = 300;
    let operand = |sequence: u64| (b"k".to_vec(), sequence, Kind::Merge, vec![sequence as u8; BYTES]);
    let entries: Vec<Owned> = (1..=COUNT).rev().map(operand).collect();
    let operator = Append::default();
    let kept = run(&entries, &[], false, &operator);
    let value: Vec<u8> = entries.iter().rev().flat_map(|entry| entry.3.clone()).collect();
    assert_eq!(kept, [(b"k".to_vec(), COUNT, Kind::Merge, value)]);
    let copied = operator.0.load(Relaxed);
    assert!(copied <= COUNT * BYTES as u64 * u64::from(COUNT.ilog2()), "{copied} bytes");
    // What was left apart for its size is combined in the end.
    let entries = [(b"k".to_vec(), 2, Kind::Merge, vec![2; 900]), (b"k".to_vec(), 1, Kind::Merge, vec![1; 10])];
    let kept = run(&entries, &[], false, &Append::default());
    assert_eq!(kept, [(b"k".to_vec(), 2, Kind::Merge, [vec![1; 10], vec![2; 900]].concat())]);
}
