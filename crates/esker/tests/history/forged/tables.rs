//! Tables.

use super::trying::{Outcomes, outcomes};
use super::writing::{
    Files, KEYSPACE, TableParts, add_table, block, block_header, counted, entry, first_edit, lz4_bomb, manifest,
    section, segment, varint, varints, zstd_bomb, zstd_lies, zstd_stored,
};
use esker::Compression;

/// The number of the table at issue.
const NUMBER: u64 = 20;

/// Two blocks, of three keys each.
fn sound() -> TableParts {
    TableParts::new(
        NUMBER,
        &[vec![entry("a", 11), entry("b", 12), entry("c", 13)], vec![entry("d", 14), entry("e", 15), entry("f", 16)]],
    )
}

/// A database with this table and an empty log.
fn database(table: &[u8]) -> Files {
    let mut files = manifest(&[first_edit(&[add_table(KEYSPACE, 30, NUMBER, table)])]);
    files.insert(format!("{NUMBER:06}.table"), table.to_vec());
    files.insert("000001.wal".into(), segment(1, [0, 0, 0], &[]));
    files
}

fn tried(name: &str, parts: &TableParts) -> Outcomes {
    outcomes(&format!("table-{name}"), &database(&parts.build()))
}

/// The table is not even opened: gets in it could miss keys.
fn assert_refused(name: &str, parts: &TableParts) {
    let found = tried(name, parts);
    for what in ["read", "open"] {
        assert!(found[what].starts_with("Corruption"), "{name}, {what}: {found:#?}");
    }
    assert!(found["repair"] == "ok" && found["after repair"] == "ok", "{name}: {found:#?}");
}

/// Some attempt must have told that the table is damaged: a `verify` of everything, if nothing
/// before it.
fn assert_noticed(name: &str, parts: &TableParts) {
    let found = tried(name, parts);
    let told = |what: &str| found.get(what).is_some_and(|outcome| outcome.starts_with("Corruption"));
    assert!(told("open") || told("verify"), "{name}: nobody noticed: {found:#?}");
}

/// What the forger writes is what the engine reads: else nothing below would mean anything.
#[test]
fn a_table_that_was_forged_without_a_lie_is_read() {
    let found = tried("sound", &sound());
    assert!(found.len() > 8 && found.values().all(|outcome| outcome == "ok"), "{found:#?}");
}

/// Last keys that overlap, repeat, run backwards, or are not those of the blocks; blocks that have
/// the wrong place.
#[test]
fn an_index_out_of_order_is_noticed() {
    let key = |key: &str, sequence| (key.as_bytes().to_vec(), sequence);
    let out_of_order = [
        ("backwards", vec![key("f", 16), key("c", 13)]),
        ("twice", vec![key("c", 13), key("c", 13)]),
        ("versions-backwards", vec![key("c", 13), key("c", 14)]),
    ];
    for (name, lasts) in out_of_order {
        assert_refused(name, &TableParts { lasts, ..sound() });
    }
    let wrong = [
        ("too-low", vec![key("b", 12), key("f", 16)]),
        ("too-high", vec![key("e", 15), key("f", 16)]),
        ("other-sequence", vec![key("c", 12), key("f", 16)]),
        ("impossible-sequence", vec![key("c", u64::MAX), key("f", 16)]),
        ("endless", vec![key("c", 13), (vec![255; 70_000], 16)]),
    ];
    for (name, lasts) in wrong {
        assert_noticed(name, &TableParts { lasts, ..sound() });
    }
}

/// Blocks whose entries run backwards, repeat, or overlap those of the block before.
#[test]
fn entries_out_of_order_are_noticed() {
    let blocks = [
        ("entries-backwards", vec![vec![entry("c", 13), entry("b", 12), entry("a", 11)]]),
        ("entries-twice", vec![vec![entry("a", 11), entry("a", 11), entry("c", 13)]]),
        ("versions-of-a-key-backwards", vec![vec![entry("a", 11), entry("a", 12), entry("c", 13)]]),
        ("blocks-overlap", vec![vec![entry("a", 11), entry("d", 13)], vec![entry("c", 12), entry("f", 14)]]),
        ("the-same-block-twice", vec![vec![entry("a", 11), entry("c", 13)], vec![entry("a", 11), entry("c", 13)]]),
        ("no-entries", vec![vec![], vec![entry("c", 13)]]),
        ("sequence-beyond-all", vec![vec![entry("a", 11), entry("c", (1 << 56) + 5)]]),
    ];
    for (name, blocks) in blocks {
        let mut parts = TableParts::new(NUMBER, &blocks);
        let last = blocks.len() - 1;
        parts.lasts[last].0 = parts.lasts[last].0.clone().max(b"c".to_vec());
        assert_noticed(name, &parts);
    }
}

/// Sizes that are not there: of entries, columns, blocks, and of what LZ4 makes of a few bytes.
#[test]
fn blocks_that_claim_too_much_are_refused() {
    let with = |content: Vec<u8>, compression| {
        let mut parts = sound();
        parts.blocks[0] = (content, compression);
        parts
    };
    let header = |count, prefix, keys, values, flags| block_header(count, prefix, keys, values, flags, 1, 11);
    let raw = [
        ("four-billion-empty-entries", header(u32::MAX, 0, 0, 0, 0)),
        ("four-billion-equal-keys", [header(u32::MAX, 1, 0, 0, 0), b"c".to_vec()].concat()),
        ("columns-that-wrap", header(u32::MAX, u32::MAX, u32::MAX, u32::MAX, 127)),
        ("keys-that-wrap", [header(2, 0, u32::MAX - 1, 2, 0), b"acxx".to_vec()].concat()),
        ("offsets-backwards", {
            let mut content = block(&[entry("a", 11), entry("b", 12), entry("c", 13)]);
            content[36 + 3 + 4..36 + 3 + 8].copy_from_slice(&u32::MAX.to_le_bytes());
            content
        }),
        ("unknown-flags", header(1, 0, 1, 1, 128)),
        ("shorter-than-a-header", vec![1; 20]),
    ];
    for (name, content) in raw {
        assert_noticed(name, &with(content, 0));
    }
    let packed = [
        ("4-gib-of-40-bytes", [u32::MAX.to_le_bytes().to_vec(), vec![0x10; 36]].concat()),
        ("1-gib-of-40-bytes", [(1u32 << 30).to_le_bytes().to_vec(), vec![0x10; 36]].concat()),
        ("less-than-it-makes", lz4_bomb(100, 4000)),
        ("more-than-it-makes", lz4_bomb(900_000, 4000)),
        ("as-much-as-it-makes", lz4_bomb(1 + 19 + 4000 * 255 + 5, 4000)),
    ];
    for (name, content) in packed {
        assert_noticed(name, &with(content, 1));
    }
    assert_noticed("unknown-compression", &with(sound().blocks[0].0.clone(), 77));
}

/// The sound table with its blocks compressed with zstd, which it says of itself.
fn with_zstd() -> TableParts {
    let mut parts = sound();
    for (content, compression) in &mut parts.blocks {
        *content = zstd_stored(content);
        *compression = ZSTD;
    }
    parts.properties.extend(section(9, &varints(&[ZSTD.into()])));
    parts
}

/// How a block is compressed.
const ZSTD: u8 = 2;

/// A build without zstd says so, of every table that has it.
fn assert_zstd_refused(name: &str, parts: &TableParts) {
    if Compression::Zstd.is_available() {
        return assert_noticed(name, parts);
    }
    let found = tried(name, parts);
    let refused = found.values().filter(|outcome| outcome.starts_with("UnsupportedCompression"));
    assert!(refused.count() > 1, "{name}: {found:#?}");
}

/// What the forger compresses is what the engine decompresses.
#[test]
fn a_table_that_was_forged_with_zstd_and_without_a_lie_is_read() {
    let found = tried("zstd-sound", &with_zstd());
    let is_read = found.values().all(|outcome| outcome == "ok");
    let is_refused = found["open"].starts_with("UnsupportedCompression");
    assert!(if Compression::Zstd.is_available() { is_read } else { is_refused }, "{found:#?}");
}

/// Sizes that no frame has, and frames that become more than their blocks say. A block of four
/// bytes makes 128 KiB: the last of these is as large as it claims.
#[test]
fn zstd_frames_that_claim_too_much_are_refused() {
    let whole = ("as-much-as-it-makes", zstd_bomb(64 * (128 << 10), 64));
    for (name, content) in zstd_lies().into_iter().chain([whole]) {
        let mut parts = with_zstd();
        parts.blocks[0].0 = content;
        assert_zstd_refused(&format!("zstd-{name}"), &parts);
    }
}

/// Handles that point past the end, wrap, overlap, or all at the same block.
#[test]
fn handles_that_lead_nowhere_are_refused() {
    let file = sound().build();
    let length = file.len() as u64;
    let handle_of = |word: usize| u64::from_le_bytes(file[file.len() - 64 + 8 * word..][..8].try_into().unwrap());
    let (index, properties) = ([handle_of(0), handle_of(1)], [handle_of(4), handle_of(5)]);
    let lies = [
        ("past-the-end", [[length, 50], [0, 0], properties]),
        ("wraps", [[u64::MAX - 10, 50], [0, 0], properties]),
        ("whole-address-space", [[0, u64::MAX], [0, 0], properties]),
        ("two-gib", [index, [0, 2 << 30], properties]),
        ("index-is-properties", [properties, [0, 0], properties]),
        ("properties-are-the-index", [index, [0, 0], index]),
        ("filter-is-the-index", [index, index, properties]),
        ("index-is-a-data-block", [[0, 100], [0, 0], properties]),
        ("empty", [[0, 0], [0, 0], [0, 0]]),
    ];
    for (name, handles) in lies {
        assert_noticed(&format!("handle-{name}"), &TableParts { handles: Some(handles), ..sound() });
    }
    let count = |count: u64| [varint(count), counted(b"")].concat();
    for (name, index) in [
        ("index-of-very-many", count(u64::MAX)),
        ("index-of-none", count(0)),
        ("index-with-a-long-block", [count(1), counted(b"f"), varints(&[16, u64::MAX])].concat()),
        ("index-with-a-long-key", [count(1), varint(u64::MAX)].concat()),
        (
            "index-with-a-short-block",
            [count(2), counted(b"c"), varints(&[13, 1]), counted(b"f"), varints(&[16, 1])].concat(),
        ),
    ] {
        assert_noticed(name, &TableParts { index: Some(index), ..sound() });
    }
}

/// Properties with another number at this place of this section.
fn with_number(properties: &[u8], wanted: u64, place: usize, number: u64) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = properties;
    // Ids, lengths and numbers are all of one byte in these tables.
    while let [id, length, behind @ ..] = rest {
        let (payload, next) = behind.split_at(usize::from(*length));
        let mut numbers: Vec<u64> = payload.iter().map(|&byte| byte.into()).collect();
        if u64::from(*id) == wanted {
            numbers[place] = number;
            out.extend(section(wanted, &varints(&numbers)));
        } else {
            out.extend(section((*id).into(), payload));
        }
        rest = next;
    }
    out
}

/// Properties and range tombstones with counts that are not there. A filter whose claims are wrong
/// may hide keys from a get, and must not do worse.
#[test]
fn properties_and_filters_that_claim_too_much_are_refused() {
    let base = sound().properties;
    let tombstones = |payload: Vec<u8>| [base.clone(), section(7, &payload)].concat();
    let range = |start: &[u8], end: &[u8], numbers: &[u64]| [counted(start), counted(end), varints(numbers)].concat();
    let wrong = [
        ("section-of-16-eib", [base.clone(), varints(&[7, u64::MAX])].concat()),
        ("very-many-tombstones", tombstones(range(b"a", b"b", &[u64::MAX, 5]))),
        ("no-tombstones", tombstones(range(b"a", b"b", &[0]))),
        ("tombstone-that-ends-before-it-starts", tombstones(range(b"c", b"b", &[1, 5]))),
        ("tombstones-that-overlap", tombstones([range(b"a", b"c", &[1, 5]), range(b"b", b"d", &[1, 5])].concat())),
        ("tombstone-older-than-nothing", tombstones(range(b"a", b"b", &[2, 5, 6]))),
        ("tombstone-newer-than-all", tombstones(range(b"a", b"b", &[1, u64::MAX]))),
        ("sections-out-of-order", [section(2, b"a"), base.clone()].concat()),
        ("nothing-known", Vec::new()),
        ("blob-bytes", [base.clone(), section(8, &varints(&[5, u64::MAX, 6, u64::MAX]))].concat()),
    ];
    for (name, properties) in wrong {
        assert_noticed(name, &TableParts { properties, ..sound() });
    }
    // Each number of each section in turn.
    let sections = [(1, 3), (4, 2), (5, 3), (6, 2)];
    for (id, place) in sections.iter().flat_map(|&(id, numbers)| (0..numbers).map(move |place| (id, place))) {
        for largest in [u64::MAX, 1 << 48] {
            let properties = with_number(&base, id, place, largest);
            assert_noticed(&format!("section-{id}-{place}-{largest}"), &TableParts { properties, ..sound() });
        }
    }
    for (name, filter) in
        [("no-probes", vec![255; 65].into_iter().chain([0]).collect()), ("probes", vec![255; 65]), ("empty", vec![])]
    {
        assert_noticed(&format!("filter-{name}"), &TableParts { filter: Some(filter), ..sound() });
    }
}
