use super::*;
use std::ops::Bound;

fn write(key: &str, change: Change) -> Write {
    Write::new(0, key, change)
}

fn put(key: &str, value: &str) -> Write {
    write(key, Change::Put(value.into()))
}

fn merge(key: &str, operand: &str) -> Write {
    write(key, Change::Merge(operand.into()))
}

fn value(text: &str) -> Answer {
    Ok(Some(text.as_bytes().into()))
}

/// A keyspace that joins with commas and lets entries expire.
fn expiring(default: Option<u64>) -> Model {
    let mut model = Model::with_ttl(&[(Operator::StringAppend, Ttl::On(default))]);
    model.set_now(1000);
    model
}

fn get(model: &Model, key: &str) -> Answer {
    model.get(0, key.as_bytes(), model.present())
}

fn expiry(model: &Model, key: &str) -> Option<u64> {
    model.expires_at(0, key.as_bytes(), model.present())
}

#[test]
fn snapshots_keep_their_answers() {
    let mut model = Model::new(&[Operator::StringAppend]);
    let start = model.present();
    let before = model.commit(&[merge("k", "a"), merge("k", "b")]);
    let after = model.commit(&[write("k", Change::Delete), merge("k", "c")]);
    assert_eq!(model.get(0, b"k", start), Ok(None));
    assert_eq!(model.get(0, b"k", before), value("a,b"));
    assert_eq!(model.get(0, b"k", after), value("c"));
}

#[test]
fn an_unfit_value_fails_the_read_only() {
    let mut model = Model::new(&[Operator::UInt64Add]);
    assert!(model.refuses(&merge("k", "abc")));
    let eight = |key| write(key, Change::Merge(vec![0; 8]));
    model.commit(&[put("k", "abc"), eight("k")]);
    assert_eq!(get(&model, "k"), Err(MergeFails));
    model.commit(&[eight("k"), eight("other")]);
    assert_eq!(get(&model, "k"), Err(MergeFails));
    assert_eq!(get(&model, "other"), Ok(Some([0; 8][..].into())));
    let at = model.commit(&[write("k", Change::Delete), write("other", Change::Delete)]);
    assert_eq!(model.scan(0, &Span::All, at), vec![]);
}

#[test]
fn operators_take_operands_in_order() {
    let all = |operator: Operator, operands: &[&[u8]]| {
        operands.iter().try_fold(None, |old: Option<Vec<u8>>, operand| operator.combine(old.as_deref(), operand))
    };
    let number = |number: i64| number.to_le_bytes();
    let sum = all(Operator::Int64Add, &[&number(i64::MAX - 1), &number(5), &number(-3)]);
    assert_eq!(sum, Ok(Some(number(i64::MAX - 3).to_vec())), "saturates at each step");
    assert_eq!(all(Operator::BytesXor, &[b"\x01\x02", b"\x03"]), Ok(Some(vec![2, 2])));
    assert_eq!(all(Operator::BytesXor, &[b"\x03", b"\x03\x04"]), Ok(Some(vec![0, 4])));
    assert_eq!(all(Operator::BitOr, &[b"\x01", b"\x02\x80", b""]), Ok(Some(vec![3, 0x80])));
    assert_eq!(all(Operator::Longest, &[b"aa", b"b", b"cc"]), Ok(Some(b"cc".to_vec())));
    assert_eq!(all(Operator::Longest, &[b"aaa", b"", b"b"]), Ok(Some(b"b".to_vec())));
    assert_eq!(all(Operator::Longest, &[b"aaa", b""]), Ok(None));
    assert_eq!(all(Operator::Fragile, &[b"aaa", b"!", b"b"]), Err(MergeFails));
}

#[test]
fn bounds_the_wrong_way_round_cover_nothing() {
    let span = Span::Range(Bound::Included(b"c".to_vec()), Bound::Excluded(b"a".to_vec()));
    assert!(!span.contains(b"b"));
    assert_eq!(span.first(), None);
    assert!(Span::Prefix(Vec::new()).contains(b""));
}

#[test]
fn spans_meet_where_a_key_is_in_both() {
    let range = |low: Bound<&str>, high: Bound<&str>| {
        Span::Range(low.map(|key| key.as_bytes().to_vec()), high.map(|key| key.as_bytes().to_vec()))
    };
    let (included, excluded) = (|key| Bound::Included(key), |key| Bound::Excluded(key));
    let b_to_d = range(included("b"), excluded("d"));
    assert!(b_to_d.meets(&Span::All) && Span::All.meets(&b_to_d));
    assert!(b_to_d.meets(&range(included("c"), included("x"))));
    assert!(!b_to_d.meets(&range(included("d"), Bound::Unbounded)));
    assert!(!b_to_d.meets(&range(Bound::Unbounded, excluded("b"))));
    assert!(b_to_d.meets(&Span::Prefix(b"c".to_vec())));
    assert!(!range(excluded("a"), excluded("a\0")).meets(&Span::All), "no key lies between");
}

#[test]
fn a_range_delete_hides_what_is_older_only() {
    let mut model = Model::new(&[Operator::StringAppend]);
    let before = model.commit(&[put("a", "1"), put("b", "2"), put("c", "3")]);
    let (low, high) = (Bound::Included(b"a".to_vec()), Bound::Excluded(b"c".to_vec()));
    model.commit(&[Write::delete_range(0, low, high), merge("b", "4")]);
    assert_eq!(get(&model, "a"), Ok(None));
    assert_eq!(get(&model, "b"), value("4"));
    assert_eq!(get(&model, "c"), value("3"));
    assert_eq!(model.get(0, b"b", before), value("2"));
}

#[test]
fn forgetting_changes_no_answer_that_is_still_asked_for() {
    let mut model = Model::new(&[Operator::StringAppend]);
    let mut readers = Vec::new();
    for number in 0..20 {
        let change = if number % 3 == 0 { Change::Delete } else { Change::Merge(vec![b'a' + number]) };
        readers.push(model.commit(&[write("k", change)]));
    }
    let kept = [readers[0], readers[4], readers[5], readers[13]];
    let answers = kept.map(|at| model.get(0, b"k", at));
    let now = get(&model, "k");
    model.forget_unseen(&kept.map(|at| at.sequence));
    assert_eq!(kept.map(|at| model.get(0, b"k", at)), answers);
    assert_eq!(get(&model, "k"), now);
    assert!(model.keyspaces[0].versions[&b"k"[..]].len() <= 5);
    model.commit(&[write("k", Change::Delete)]);
    model.forget_unseen(&[]);
    assert!(model.keyspaces[0].versions.is_empty());
}

// What is promised about the time to live, point by point.

#[test]
fn ttl_1_is_refused_where_it_means_nothing() {
    let plain = Model::new(&[Operator::StringAppend]);
    for life in [Life::For(5), Life::Until(5)] {
        assert!(plain.refuses(&put("k", "v").living(life)));
        assert!(!expiring(None).refuses(&put("k", "v").living(life)));
    }
    assert!(expiring(None).refuses(&put("k", "v").living(Life::For(0))));
    let mut model = expiring(None);
    model.commit(&[put("never", "v"), put("saturated", "v").living(Life::For(u64::MAX))]);
    assert_eq!((expiry(&model, "never"), expiry(&model, "saturated")), (Some(NEVER), Some(NEVER)));
    let mut model = expiring(Some(50));
    model.commit(&[
        put("usual", "v"),
        put("own", "v").living(Life::For(7)),
        put("until", "v").living(Life::Until(1003)),
    ]);
    assert_eq!(expiry(&model, "usual"), Some(1050));
    assert_eq!(expiry(&model, "own"), Some(1007));
    assert_eq!(expiry(&model, "until"), Some(1003));
}

#[test]
fn ttl_2_leaves_values_as_they_are() {
    let mut model = expiring(Some(1));
    model.commit(&[put("k", "any \0 value")]);
    assert_eq!(get(&model, "k"), value("any \0 value"));
}

#[test]
fn ttl_3_an_entry_is_visible_before_its_expiry_to_each_reader_by_its_own_clock() {
    let mut model = expiring(None);
    let early = model.commit(&[put("k", "v").living(Life::For(10)), put("now", "v").living(Life::Until(1000))]);
    assert_eq!(get(&model, "now"), Ok(None));
    model.set_now(1009);
    assert_eq!(get(&model, "k"), value("v"));
    model.set_now(1010);
    assert_eq!(get(&model, "k"), Ok(None));
    assert_eq!(expiry(&model, "k"), None);
    assert_eq!(model.get(0, b"k", early), value("v"));
    assert_eq!(model.scan(0, &Span::All, model.present()), vec![]);
}

#[test]
fn ttl_4_an_expired_entry_masks_older_ones() {
    let mut model = expiring(None);
    model.commit(&[put("k", "for ever")]);
    model.commit(&[put("k", "short").living(Life::For(1))]);
    model.set_now(1001);
    assert_eq!(get(&model, "k"), Ok(None));
    model.commit(&[put("k", "past").living(Life::Until(3))]);
    assert_eq!(get(&model, "k"), Ok(None));
}

#[test]
fn ttl_5_a_merge_keeps_the_expiry_of_a_live_key_and_starts_from_nothing_otherwise() {
    let mut model = expiring(Some(100));
    model.commit(&[put("k", "a").living(Life::For(10)), merge("k", "b")]);
    assert_eq!((get(&model, "k"), expiry(&model, "k")), (value("a,b"), Some(1010)));
    model.commit(&[merge("k", "c").living(Life::For(20))]);
    assert_eq!((get(&model, "k"), expiry(&model, "k")), (value("a,b,c"), Some(1020)), "longer");
    model.commit(&[merge("k", "d").living(Life::For(5))]);
    assert_eq!((get(&model, "k"), expiry(&model, "k")), (value("a,b,c,d"), Some(1005)), "shorter");
    model.set_now(1005);
    model.commit(&[merge("k", "e"), merge("new", "x").living(Life::For(1))]);
    assert_eq!((get(&model, "k"), expiry(&model, "k")), (value("e"), Some(1105)), "expired: the default");
    assert_eq!((get(&model, "new"), expiry(&model, "new")), (value("x"), Some(1006)), "absent: its own");
    model.commit(&[write("k", Change::Delete), merge("k", "f"), put("k", "g").living(Life::Until(9)), merge("k", "h")]);
    assert_eq!((get(&model, "k"), expiry(&model, "k")), (value("h"), Some(1105)), "a batch's own writes count");
}

#[test]
fn ttl_6_overwriting_clears_it_and_delete_wins() {
    let mut model = expiring(None);
    model.commit(&[put("k", "a").living(Life::For(10))]);
    model.commit(&[put("k", "b")]);
    assert_eq!(expiry(&model, "k"), Some(NEVER));
    model.commit(&[put("k", "c").living(Life::For(10)), write("k", Change::Delete)]);
    assert_eq!((get(&model, "k"), expiry(&model, "k")), (Ok(None), None));
}

#[test]
fn ttl_7_nothing_is_left_after_everything_expired() {
    let mut model = expiring(Some(5));
    model.commit(&[put("a", "1"), merge("b", "2")]);
    assert_eq!(model.next_expiry(), Some(1005));
    model.set_now(1005);
    assert_eq!(model.scan(0, &Span::All, model.present()), vec![]);
    assert_eq!(model.next_expiry(), None);
}

#[test]
fn ttl_8_a_change_of_the_expiry_keeps_the_value_and_is_nothing_where_there_is_none() {
    let mut model = expiring(None);
    let change = |life| write("k", Change::Expire).living(life);
    assert!(!model.is_told(&change(Life::For(5))));
    model.commit(&[change(Life::For(5))]);
    assert_eq!((get(&model, "k"), expiry(&model, "k")), (Ok(None), None));
    model.commit(&[put("k", "a"), merge("k", "b"), change(Life::For(5))]);
    assert_eq!((get(&model, "k"), expiry(&model, "k")), (value("a,b"), Some(1005)));
    assert!(model.is_told(&change(Life::For(5))));
    model.commit(&[change(Life::Until(2000)), merge("k", "c")]);
    assert_eq!((get(&model, "k"), expiry(&model, "k")), (value("a,b,c"), Some(2000)), "longer, and it is kept");
    model.commit(&[change(Life::Usual)]);
    assert_eq!((get(&model, "k"), expiry(&model, "k")), (value("a,b,c"), Some(NEVER)), "for good");
    model.commit(&[change(Life::Until(1000))]);
    assert_eq!((get(&model, "k"), expiry(&model, "k")), (Ok(None), None), "a time that has passed");
    assert!(!model.is_told(&change(Life::Usual)), "what has expired has no value");
}

#[test]
fn a_prefix_is_a_range_of_its_own_keys() {
    let mut model = Model::new(&[Operator::None]);
    let keys: [&[u8]; 7] = [b"", b"p", b"p\0", b"p\xff", b"p\xff\xff", b"q", b"\xff\xff"];
    let all: Vec<Write> = keys.iter().map(|key| Write::new(0, *key, Change::Put(Vec::new()))).collect();
    let prefixes: [&[u8]; 6] = [b"", b"p", b"p\xff", b"p\xff\xff\xff", b"\xff", b"\xff\xff"];
    for prefix in prefixes {
        let full = model.commit(&all);
        let span = Span::Prefix(prefix.to_vec());
        let (low, high) = span.bounds();
        let expected = keys.iter().filter(|key| key.starts_with(prefix)).count() as u64;
        assert_eq!(model.count(0, &span, full), Ok(expected));
        assert_eq!(model.count(0, &Span::Range(low, high), full), Ok(expected));
        let left = model.commit(&[Write::new(0, [], Change::DeletePrefix(prefix.to_vec()))]);
        assert_eq!(model.count(0, &Span::All, left), Ok(keys.len() as u64 - expected));
        assert_eq!(model.end(0, true, left).is_none(), prefix.is_empty());
    }
}
