use super::*;

struct By(fn(&[u8], &[u8]) -> Ordering);

impl Comparator for By {
    fn name(&self) -> &str {
        "by"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        (self.0)(a, b)
    }
}

fn by(compare: fn(&[u8], &[u8]) -> Ordering) -> KeyOrder {
    KeyOrder::custom("by".into(), Arc::new(By(compare)), Database::new())
}

#[test]
fn places_come_right_behind_their_keys() {
    let orders =
        [KeyOrder::built_in(REVERSE_BYTEWISE).unwrap(), by(|a, b| a.len().cmp(&b.len()).then_with(|| a.cmp(b)))];
    let keys: [&[u8]; 6] = [b"", b"\0", b"\x01", b"a", b"a\x01", b"\x02"];
    for order in orders {
        for (a, b) in keys.into_iter().flat_map(|a| keys.map(|b| (a, b))) {
            let (at, other) = (order.stored(a), order.stored(b));
            assert_eq!(order.key_of(&at), a);
            assert!(order.less(b"", &at));
            let behind = order.successor(&at);
            assert!(order.less(&at, &behind));
            assert_eq!(order.less(&at, &other), a != b && order.compare(&behind, &other).is_lt(), "{a:?} {b:?}");
            assert_eq!(order.head(&at, 0), 0);
        }
        assert_eq!(order.faults(), 0);
    }
}

#[test]
fn a_lawless_comparator_is_noticed_and_decides_nothing_about_equal_bytes() {
    let equal = by(|_, _| Ordering::Equal);
    assert_eq!(equal.compare(b"a\x01", b"a\x01"), Ordering::Equal);
    assert_eq!(equal.compare(b"a\x01", b"b\x01"), Ordering::Less);
    assert_eq!(equal.faults(), 1);
    let panics = by(|_, _| panic!("injected"));
    assert_eq!(panics.compare(b"b\x01", b"a\x01"), Ordering::Greater);
    assert_eq!(panics.faults(), 1);
    let less = by(|_, _| Ordering::Less);
    assert_eq!(less.compare(b"a\x01", b"b\x01"), Ordering::Less);
    // Asked the other way round in debug builds.
    assert_eq!(less.faults(), u64::from(cfg!(debug_assertions)));
    let mut items: Vec<u32> = (0..1000).collect();
    less.sort_by(&mut items, |_, _| Ordering::Less);
    items.sort();
    assert!(items.into_iter().eq(0..1000), "none is lost");
}

#[test]
fn its_own_sort_is_a_stable_one() {
    let mut items: Vec<(u32, u32)> = (0..500).map(|at| (at * 7919 % 50, at)).collect();
    let mut expected = items.clone();
    expected.sort_by_key(|item| item.0);
    merge_sort(&mut items, |a, b| a.0.cmp(&b.0));
    assert_eq!(items, expected);
}
