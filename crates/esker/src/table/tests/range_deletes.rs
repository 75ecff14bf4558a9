//! Tables with range tombstones, with entries and without.

use super::support::*;
use crate::base::key::Sequence;
use crate::base::range_tombstone::RangeTombstones;
use crate::error::Error;
use crate::iter::Cursor;
use crate::table::{TableBuilder, TableOptions, TableSummary};
use std::path::PathBuf;

/// Start, end and sequence of a range tombstone.
type Range<'a> = (&'a str, &'a str, Sequence);

fn built(entries: &[Owned], ranges: &[Range<'_>]) -> (Vec<u8>, TableSummary) {
    let file = MemoryWrite::default();
    let options = TableOptions::default();
    let mut builder = TableBuilder::new(Box::new(file.clone()), PathBuf::from("memory"), FILE_NUMBER, options);
    entries.iter().for_each(|entry| builder.add(entry.entry()).expect("entries in order"));
    let sets: Vec<_> =
        ranges.iter().map(|(start, end, at)| RangeTombstones::one(start.as_bytes(), end.as_bytes(), *at)).collect();
    builder.set_range_tombstones(RangeTombstones::union(&sets));
    let summary = builder.finish().expect("memory does not fail");
    let bytes = file.0.lock().expect("no panic in another holder").clone();
    (bytes, summary)
}

/// Entries, range tombstones; smallest and largest key, whether exclusive, smallest and largest
/// sequence.
type Case<'a> = (&'a [Owned], &'a [Range<'a>], &'a str, &'a str, bool, (Sequence, Sequence));

#[test]
fn bounds_and_sequences_include_the_tombstones() {
    let entries = [Owned::put("d", 5, "v"), Owned::put("m", 6, "v")];
    let cases: [Case<'_>; 6] = [
        (&entries, &[("e", "f", 9)], "d", "m", false, (5, 9)),
        (&entries, &[("d", "m", 3)], "d", "m", false, (3, 6)),
        (&entries, &[("a", "m\0", 5)], "a", "m\0", true, (5, 6)),
        (&entries, &[("x", "", 9), ("a", "b", 2)], "a", "", true, (2, 9)),
        (&[], &[("b", "c", 7)], "b", "c", true, (7, 7)),
        (&[], &[("", "", 7), ("b", "c", 9)], "", "", true, (7, 9)),
    ];
    for (entries, ranges, smallest, largest, exclusive, sequences) in cases {
        let (bytes, summary) = built(entries, ranges);
        assert_eq!(summary.smallest_key, smallest.as_bytes());
        assert_eq!((summary.largest_key.as_slice(), summary.largest_exclusive), (largest.as_bytes(), exclusive));
        assert_eq!((summary.smallest_sequence, summary.largest_sequence), sequences);
        for access in ACCESSES {
            let table = open(bytes.clone(), access).expect("intact");
            assert_eq!(*table.summary(), summary);
            table.verify(&mut |_| {}).expect("intact");
            let mut cursor = table.cursor(true);
            for entry in entries {
                cursor.seek(&entry.key, entry.sequence).expect("intact");
                assert_eq!(Owned::from(cursor.entry()), *entry);
            }
            cursor.seek_to_last().expect("intact");
            assert_eq!(cursor.valid(), !entries.is_empty());
        }
    }
    let (_, summary) = built(&[], &[("b", "d", 1)]);
    assert!(summary.spans(b"b") && summary.spans(b"c") && !summary.spans(b"d") && !summary.spans(b"a"));
    assert!(summary.is_before(b"d") && !summary.is_before(b"cc"));
}

#[test]
fn every_flipped_byte_of_a_table_with_tombstones_is_noticed() {
    for entries in [&[][..], &[Owned::put("d", 5, "v")]] {
        let (bytes, summary) = built(entries, &[("a", "e", 3), ("c", "", 9)]);
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            let checked = open(damaged, ACCESSES[1]).and_then(|table| {
                table.verify(&mut |_| {})?;
                assert_eq!(*table.summary(), summary);
                Ok(())
            });
            assert!(matches!(checked, Err(Error::Corruption { .. } | Error::Unsupported { .. })), "byte {at}");
        }
    }
}
