//! The worked examples of `doc/format/manifest.md` are what the engine writes, and it reads them
//! back.

use super::edit::{Change, ManifestState};
use super::manifest::{InForce, Manifest, read_current};
use crate::base::comparator::BYTEWISE;
use crate::env::Env;
use crate::env::mem::MemEnv;
use std::path::Path;

const PAGE: &str = include_str!("../../../../doc/format/manifest.md");
const DIRECTORY: &str = "/db";

/// The bytes of the page's example: hexadecimal up to the bar in each line of the block marked
/// `hex`.
fn example() -> Vec<u8> {
    let block = PAGE.split("```hex\n").nth(1).and_then(|rest| rest.split("```").next()).expect("an example");
    let digits = block.lines().filter_map(|line| line.split('|').next()).flat_map(str::split_whitespace);
    digits.map(|byte| u8::from_str_radix(byte, 16).expect("two hexadecimal digits")).collect()
}

/// The line of the block marked `current`.
fn current() -> &'static str {
    PAGE.split("```current\n").nth(1).and_then(|rest| rest.split("```").next()).expect("an example of CURRENT")
}

fn read(env: &MemEnv, name: &str) -> Vec<u8> {
    let file = env.open(&Path::new(DIRECTORY).join(name)).expect("the file is there");
    let mut bytes = vec![0; file.len() as usize];
    file.read_at(0, &mut bytes).expect("as long as it is");
    bytes
}

fn write(env: &MemEnv, name: &str, bytes: &[u8]) {
    let mut file = env.create(&Path::new(DIRECTORY).join(name)).expect("no fault is set");
    file.append(bytes).and_then(|()| file.sync()).expect("no fault is set");
}

fn first_state() -> ManifestState {
    let mut state = ManifestState { next_file: 8, last_sequence: 0, log_floor: 1, ..ManifestState::default() };
    let operator = Some("uint64add".to_owned());
    state
        .apply(&Change::Keyspace { id: 1, name: "hits".into(), comparator: BYTEWISE.into(), operator, ttl: 0 })
        .expect("a new keyspace");
    state
}

fn flush() -> [Change; 5] {
    [
        Change::Flushed { keyspace: 1, sequence: 300 },
        Change::LastSequence(300),
        Change::LogFloor(2),
        Change::AddTable { keyspace: 1, run: 9, number: 8, bytes: 1000 },
        Change::NextFile(10),
    ]
}

fn closed() -> [Change; 2] {
    [Change::LastSequence(300), Change::Closed { segment: 2, offset: 136 }]
}

#[test]
fn the_examples_are_what_the_engine_writes() {
    let env = MemEnv::new();
    env.create_dir_all(Path::new(DIRECTORY)).expect("no fault is set");
    let mut manifest = Manifest::create(&env, Path::new(DIRECTORY), 7, first_state()).expect("no fault is set");
    manifest.commit(&flush()).expect("possible");
    manifest.commit(&closed()).expect("possible");
    let bytes = read(&env, "MANIFEST-000007");
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x} ")).collect();
    assert!(example() == bytes, "the page shows other bytes than these:\n{hex}");
    assert_eq!(current().as_bytes(), read(&env, "CURRENT"));
}

#[test]
fn the_examples_are_read_back() {
    let env = MemEnv::new();
    env.create_dir_all(Path::new(DIRECTORY)).expect("no fault is set");
    write(&env, "MANIFEST-000007", &example());
    write(&env, "CURRENT", current().as_bytes());
    let mut expected = first_state();
    flush().iter().chain(&closed()).for_each(|change| expected.apply(change).expect("possible"));
    let found = read_current(&env, Path::new(DIRECTORY)).expect("the examples are intact");
    assert_eq!(found, Some(InForce { number: 7, state: expected, is_torn: false, vouched: Some(300) }));
}
