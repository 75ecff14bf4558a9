use super::lazy::{FOR_GETS, FOR_WRITES};
use super::shape::{Part, RunShape, TableShape};
use super::*;

const STYLES: [CompactionStyle; 3] = [CompactionStyle::LazyLeveling, CompactionStyle::Leveled, CompactionStyle::Tiered];

fn table(number: u64, bytes: u64, smallest: &'static str, largest: &'static str) -> TableShape<'static> {
    TableShape {
        blob_bytes: 0,
        number,
        bytes,
        entries: bytes,
        deletes: 0,
        expiring_entries: 0,
        smallest_expiry_ms: 0,
        largest_expiry_ms: 0,
        newest: number,
        smallest: smallest.as_bytes(),
        largest: Bound::Included(largest.as_bytes()),
        rewrite_futile: false,
    }
}

/// Runs of one table each, which all overlap.
fn sizes(bytes: &[u64], paused: bool) -> Shape<'static> {
    let tables = bytes.iter().enumerate().map(|(at, &bytes)| table(1000 - at as u64, bytes, "a", "z"));
    let runs = tables.map(|table| RunShape::new(vec![table])).collect();
    Shape { runs, paused, oldest_snapshot: u64::MAX, level_base_bytes: 4, ..Shape::default() }
}

fn shape(runs: Vec<Vec<TableShape<'static>>>) -> Shape<'static> {
    let runs = runs.into_iter().map(RunShape::new).collect();
    Shape { runs, oldest_snapshot: u64::MAX, level_base_bytes: 4, ..Shape::default() }
}

fn lazy(bytes: &[u64], paused: bool) -> Option<(usize, usize)> {
    match pick(&sizes(bytes, paused), CompactionStyle::LazyLeveling) {
        Some(Plan::Merge { first, last }) => Some((first, last)),
        None => None,
        other => panic!("{other:?}"),
    }
}

#[test]
fn lazy_leaves_fewer_runs_while_gets_probe_many() {
    let suffering = |bytes: &[u64]| match pick(
        &Shape { high_read_amp: true, ..sizes(bytes, false) },
        CompactionStyle::LazyLeveling,
    ) {
        Some(Plan::Merge { first, last }) => Some((first, last)),
        None => None,
        other => panic!("{other:?}"),
    };
    let huge = 100 << 30;
    assert_eq!(suffering(&[1, 1, huge]), None, "few enough");
    assert_eq!(suffering(&[1, 1, 5, huge]), Some((0, 1)), "those of one size");
    assert_eq!(suffering(&[1, 2, 4, 8, huge]), Some((0, 1)), "too many");
    assert_eq!(suffering(&[1, 1, 2, 16]), Some((0, 3)), "a quarter of the last run is worth it");
    assert_eq!(lazy(&[1, 2, 4, 8, huge], false), None);
}

#[test]
fn lazy_plans_follow_the_shape() {
    assert_eq!(lazy(&[], true), None);
    assert_eq!(lazy(&[5], true), None);
    assert_eq!(lazy(&[1, 5], false), None);
    assert_eq!(lazy(&[1, 5], true), Some((0, 1)));
    let huge = 100 << 30;
    assert_eq!(lazy(&[1, huge], true), None, "a large last run is not rewritten for a little data");
    assert_eq!(lazy(&[1, 1, huge], true), Some((0, 1)));
    assert_eq!(lazy(&[1, 1, 1, 1, 1, 1, 1, huge], false), None, "few enough");
    assert_eq!(lazy(&[1, 1, 1, 1, 1, 1, 1, 1, huge], false), Some((0, 7)));
    assert_eq!(lazy(&[1, 1, 1, 1, 1, 1, 1, 1, 16], false), Some((0, 8)), "half of the last run is worth it");
    assert_eq!(lazy(&[1, 1, 5, 5, 5, 5, 5, 5, 70, huge], false), Some((2, 7)), "those of one size");
    assert_eq!(lazy(&[1, 2, 4, 8, 16, 32, 64, 128, 256, huge], false), None, "all of different sizes");
    assert_eq!(lazy(&[1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, huge], false), Some((0, 1)), "too many");
}

/// A run of `tables` tables of `bytes` each, which divide the keys among them.
fn divided(tables: u64, bytes: u64) -> RunShape<'static> {
    const KEYS: &str = "abcdefghijklmnopqrstuvwxyz";
    let step = KEYS.len() / tables as usize;
    let at = |at: usize| &KEYS[at..=at];
    RunShape::new((0..tables as usize).map(|n| table(n as u64, bytes, at(n * step), at(n * step + step - 1))).collect())
}

#[test]
fn large_runs_go_down_in_pieces() {
    let style = CompactionStyle::LazyLeveling;
    let small = |count: usize| vec![divided(1, 1); count];
    let with = |runs: Vec<RunShape<'static>>| Shape { runs, oldest_snapshot: u64::MAX, ..Shape::default() };
    let part = |run, tables| Part { run, tables };
    let mut runs: Vec<_> = small(7).into_iter().chain([divided(13, 50), divided(26, 50)]).collect();
    let piece = Plan::Partial { parts: vec![part(7, 0..1), part(8, 0..2)], target: 8 };
    assert_eq!(pick(&with(runs.clone()), style), Some(piece));
    // What has begun goes on, also with fewer runs, and also where less is left.
    runs.drain(..4);
    runs[3].tables.drain(..6);
    runs[3].tables.iter_mut().for_each(|table| table.bytes = 30);
    runs[3].bytes = 7 * 30;
    let piece = Plan::Partial { parts: vec![part(3, 0..1), part(4, 12..14)], target: 4 };
    assert_eq!(pick(&with(runs.clone()), style), Some(piece));
    // Not when too much would be rewritten for it.
    runs[3].tables.iter_mut().for_each(|table| table.bytes = 20);
    runs[3].bytes = 7 * 20;
    assert_eq!(pick(&with(runs.clone()), style), None);
    // Too many runs are compacted first, of those that are not going down already.
    let many: Vec<_> = small(11).into_iter().chain([divided(13, 50), divided(26, 50)]).collect();
    assert_eq!(pick(&with(many), style), Some(Plan::Merge { first: 0, last: 10 }));
    // In a pause, small runs are first compacted into one that can be divided.
    let paused = |runs| Shape { paused: true, ..with(runs) };
    let few: Vec<_> = small(2).into_iter().chain([divided(26, 1 << 30)]).collect();
    assert_eq!(pick(&paused(few), style), Some(Plan::Merge { first: 0, last: 1 }));
    let one = vec![divided(8, 26 << 28), divided(26, 1 << 30)];
    assert_eq!(pick(&paused(one), style), Some(Plan::Partial { parts: vec![part(0, 0..1), part(1, 0..3)], target: 1 }));
}

/// Whatever the sizes, working as planned comes to an end with few runs: fewer than those at which
/// writes wait.
#[test]
fn every_style_comes_to_an_end() {
    for style in STYLES {
        for (paused, high_read_amp) in [(false, false), (true, false), (false, true)] {
            let sizes = |bytes: &[u64]| Shape { high_read_amp, ..sizes(bytes, paused) };
            let mut bytes: Vec<u64> = (0..40).map(|n| 1 << (n * 7 % 36)).collect();
            for _ in 0..100 {
                match pick(&sizes(&bytes), style) {
                    None => break,
                    Some(Plan::Merge { first, last }) => {
                        assert!(first < last && last < bytes.len());
                        let merged = bytes[first..=last].iter().sum();
                        bytes.splice(first..=last, [merged]);
                    }
                    Some(Plan::Partial { parts, target }) => {
                        assert_eq!(parts.len(), 2, "one table each");
                        bytes[target] += bytes[target - 1];
                        bytes.remove(target - 1);
                    }
                    Some(other) => panic!("{other:?}"),
                }
            }
            assert_eq!(pick(&sizes(&bytes), style), None, "{style:?}: {bytes:?}");
            assert!(bytes.len() <= 12, "{style:?}: {bytes:?}");
            let limits = if high_read_amp { FOR_GETS } else { FOR_WRITES };
            assert!(style != CompactionStyle::LazyLeveling || bytes.len() <= limits.most_upper_runs);
        }
    }
}

#[test]
fn what_goes_down_takes_along_what_it_would_pass() {
    let shape = shape(vec![
        vec![table(9, 1, "a", "f"), table(8, 1, "p", "q")],
        vec![table(6, 1, "c", "d"), table(5, 1, "e", "k"), table(4, 1, "r", "s")],
        vec![table(3, 1, "a", "b"), table(2, 1, "i", "m"), table(1, 1, "n", "o")],
    ]);
    let plan = merge_range(&shape, b"c", Bound::Included(b"d"), false).expect("something to merge");
    let parts = vec![Part { run: 0, tables: 0..1 }, Part { run: 1, tables: 0..2 }, Part { run: 2, tables: 0..2 }];
    assert_eq!(plan, Plan::Partial { parts, target: 2 });
    let upper = vec![Part { run: 0, tables: 0..1 }, Part { run: 1, tables: 0..2 }];
    assert!(!shape.is_bottom(&Plan::Partial { parts: upper, target: 1 }));
    let free = vec![Part { run: 0, tables: 1..2 }];
    assert!(shape.is_bottom(&Plan::Partial { parts: free, target: 1 }), "nothing below has keys from p to q");
    assert!(shape.is_bottom(&Plan::Rewrite { run: 1, table: 2 }));
    assert!(!shape.is_bottom(&Plan::Rewrite { run: 0, table: 0 }));
    assert_eq!(merge_range(&shape, b"t", Bound::Unbounded, true), None);
}

#[test]
fn ends_of_ranges_may_be_open() {
    let open = |end: &'static str| TableShape { largest: Bound::Excluded(end.as_bytes()), ..table(9, 1, "a", "") };
    let run = |table| RunShape::new(vec![table]);
    assert_eq!(run(open("c")).overlapping(b"c", Bound::Unbounded), 1..1);
    assert_eq!(run(open("c")).overlapping(b"bzz", Bound::Unbounded), 0..1);
    assert_eq!(run(TableShape { largest: Bound::Unbounded, ..open("") }).overlapping(b"z", Bound::Unbounded), 0..1);
    assert_eq!(run(table(1, 1, "c", "d")).overlapping(b"a", Bound::Excluded(b"c")), 0..0);
}

#[test]
fn fifo_drops_the_oldest_and_never_from_above_what_it_hides() {
    let style = |max_bytes| CompactionStyle::Fifo { max_bytes };
    let runs = || shape(vec![vec![table(4, 10, "a", "f")], vec![table(2, 10, "a", "b"), table(3, 10, "c", "d")]]);
    assert_eq!(pick(&runs(), style(30)), None);
    assert_eq!(pick(&runs(), style(29)), Some(Plan::Drop { tables: vec![2] }));
    assert_eq!(pick(&runs(), style(10)), Some(Plan::Drop { tables: vec![2, 3] }));
    assert_eq!(pick(&runs(), style(1)), Some(Plan::Drop { tables: vec![2, 3] }), "the newest stays");
    let odd = shape(vec![vec![table(1, 10, "a", "f")], vec![table(2, 10, "a", "b")]]);
    assert_eq!(pick(&odd, style(10)), Some(Plan::Drop { tables: vec![2] }), "what lies below goes first");
}

/// A table of ten entries that expire from 1000 to 2000.
fn expiring(number: u64, smallest: &'static str, largest: &'static str) -> TableShape<'static> {
    let entries = table(number, 10, smallest, largest);
    TableShape { expiring_entries: 10, smallest_expiry_ms: 1000, largest_expiry_ms: 2000, ..entries }
}

#[test]
fn expired_tables_are_rewritten_and_then_dropped_in_time() {
    for style in STYLES {
        let at =
            |now| Shape { expired_until_ms: now, ..shape(vec![vec![expiring(7, "a", "c"), table(8, 9, "d", "e")]]) };
        assert_eq!(pick(&at(1499), style), None);
        assert_eq!(next_due(&at(1499), style), Some(1500));
        assert_eq!(pick(&at(1500), style), Some(Plan::Rewrite { run: 0, table: 0 }));
        assert_eq!(next_due(&at(1500), style), Some(2000));
        assert_eq!(pick(&at(2000), style), Some(Plan::Drop { tables: vec![7] }));
        assert_eq!(next_due(&at(2000), style), None);
        let mut tried = at(1500);
        // What a rewrite leaves expires later, whatever was estimated.
        tried.runs[0].tables[0].smallest_expiry_ms = 1501;
        assert_eq!(pick(&tried, style), None);
    }
    let fifo = CompactionStyle::Fifo { max_bytes: 1000 };
    let hiding =
        |now| Shape { expired_until_ms: now, ..shape(vec![vec![expiring(7, "a", "c")], vec![table(3, 9, "b", "b")]]) };
    assert_eq!(pick(&hiding(9000), fifo), None, "it hides an older table");
    assert_eq!(next_due(&hiding(0), fifo), None);
    let alone =
        |now| Shape { expired_until_ms: now, ..shape(vec![vec![expiring(7, "a", "c")], vec![table(3, 9, "d", "d")]]) };
    assert_eq!(next_due(&alone(0), fifo), Some(2000), "a FIFO rewrites nothing");
    assert_eq!(pick(&alone(2000), fifo), Some(Plan::Drop { tables: vec![7] }));
}

#[test]
fn deletes_go_down_when_idle_and_when_worth_it() {
    let deletes = TableShape { deletes: 6, ..table(9, 10, "a", "c") };
    let huge = 100 << 30;
    let below = |entries| TableShape { entries, bytes: huge, ..table(1, huge, "b", "d") };
    let with = |entries| Shape { paused: true, ..shape(vec![vec![deletes], vec![below(entries)]]) };
    let parts = vec![Part { run: 0, tables: 0..1 }, Part { run: 1, tables: 0..1 }];
    let style = CompactionStyle::LazyLeveling;
    assert_eq!(pick(&with(96), style), Some(Plan::Partial { parts, target: 1 }));
    assert_eq!(pick(&with(97), style), None, "too much to rewrite for so few");
    assert_eq!(pick(&Shape { oldest_snapshot: 5, ..with(96) }, style), None, "a snapshot keeps them");
    assert_eq!(pick(&Shape { paused: false, ..with(96) }, style), None);
    let alone = Shape { paused: true, ..shape(vec![vec![deletes]]) };
    assert_eq!(pick(&alone, style), Some(Plan::Rewrite { run: 0, table: 0 }));
    let nothing_else = TableShape { deletes: 10, ..deletes };
    assert_eq!(pick(&shape(vec![vec![nothing_else]]), style), Some(Plan::Drop { tables: vec![9] }));
    let hides = shape(vec![vec![nothing_else], vec![below(1)]]);
    assert_eq!(pick(&hides, style), None, "what it hides would come back");
}

#[test]
fn scans_that_pass_over_much_lead_to_a_merge() {
    let deletes = TableShape { deletes: 1, ..table(9, 10_000, "a", "c") };
    let with = |tombstones_skipped| Shape { tombstones_skipped, ..shape(vec![vec![deletes]]) };
    let style = CompactionStyle::LazyLeveling;
    assert_eq!(pick(&with(9_999), style), None);
    assert_eq!(pick(&with(10_000), style), Some(Plan::Merge { first: 0, last: 0 }));
    let clean = Shape { tombstones_skipped: 1 << 40, ..shape(vec![vec![table(9, 10, "a", "c")]]) };
    assert_eq!(pick(&clean, style), None);
    assert!(skipped_tombstones_are_due(&clean));
}
