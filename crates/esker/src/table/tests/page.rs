//! The worked example of `doc/format/table.md` is what the builder writes.

use super::support::*;
use crate::base::key::Kind;
use crate::table::TableOptions;

const PAGE: &str = include_str!("../../../../../doc/format/table.md");

/// The bytes of the page's example: hexadecimal up to the bar in each line of the block marked
/// `hex`.
fn example() -> Vec<u8> {
    let block = PAGE.split("```hex\n").nth(1).and_then(|rest| rest.split("```").next()).expect("an example");
    let digits = block.lines().filter_map(|line| line.split('|').next()).flat_map(str::split_whitespace);
    digits.map(|byte| u8::from_str_radix(byte, 16).expect("two hexadecimal digits")).collect()
}

#[test]
fn the_example_is_what_the_builder_writes() {
    let mut entries = vec![Owned::put("user:1", 5, "ann"), Owned::put("user:2", 9, ""), Owned::put("user:2", 7, "bob")];
    entries[1].kind = Kind::Delete;
    let (bytes, _) = build(&entries, TableOptions::default());
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x} ")).collect();
    assert!(example() == bytes, "the page shows other bytes than these:\n{hex}");
    let table = open(example(), ACCESSES[1]).expect("the example is a table");
    assert_eq!(super::round_trip::collect(&mut table.cursor(true)), entries);
}
