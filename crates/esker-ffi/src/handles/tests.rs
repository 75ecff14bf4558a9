use super::table::{CHUNKS, FIRST_CHUNK, LAST_GENERATION, MARK, SLOT_BITS, Table};
use super::*;
use std::num::NonZero;
use std::sync::atomic::Ordering;

struct One(u32);
struct Other;

struct Pair(&'static [u8]);

impl Object for Pair {
    const NAME: &'static str = "a pair";
}

impl Lender for Pair {
    const KIND: NonZero<u32> = NonZero::<u32>::MIN;

    fn loan(&mut self) -> Option<(&[u8], &[u8])> {
        (!self.0.is_empty()).then(|| (self.0, &self.0[1..]))
    }
}

struct OtherPair;

impl Object for OtherPair {
    const NAME: &'static str = "an other pair";
}

impl Lender for OtherPair {
    const KIND: NonZero<u32> = NonZero::<u32>::MAX;

    fn loan(&mut self) -> Option<(&[u8], &[u8])> {
        None
    }
}

impl Object for One {
    const NAME: &'static str = "a one";
}

impl Object for Other {
    const NAME: &'static str = "an other";
}

#[test]
fn a_slot_that_is_used_again_is_another_handle() {
    let first = insert(Arc::new(One(1))).unwrap();
    assert_eq!(remove::<One>(first).map(|one| one.0), Ok(1));
    let seen: Vec<usize> = (0..1000).map(|n| insert(Arc::new(One(n))).unwrap()).collect();
    assert!(!seen.contains(&first));
    assert!(matches!(get::<One>(first), Err(HandleError::Closed { .. })));
    assert!(matches!(remove::<One>(first), Err(HandleError::Closed { .. })));
    for (n, handle) in seen.into_iter().enumerate() {
        assert_eq!(remove::<One>(handle).map(|one| one.0 as usize), Ok(n));
    }
}

#[test]
fn another_type_is_told_and_stays_open() {
    let handle = insert(Arc::new(Other)).unwrap();
    let expected = HandleError::OtherType { expected: "a one", found: "an other" };
    assert_eq!(get::<One>(handle).map(|_| ()), Err(expected));
    assert_eq!(remove::<One>(handle).map(|_| ()), Err(expected));
    assert!(remove::<Other>(handle).is_ok());
}

#[test]
fn no_pattern_of_bits_is_taken_for_a_handle() {
    let handle = insert(Arc::new(One(0))).unwrap();
    assert!(matches!(get::<One>(0), Err(HandleError::Null { .. })));
    let aligned = &raw const handle as usize;
    for wrong in [aligned, usize::MAX, 1, MARK, 1 << 63 | handle] {
        // `MARK` alone is the first handle of all, closed or another's by now.
        assert!(wrong == MARK || matches!(get::<One>(wrong), Err(HandleError::NoHandle { .. })), "{wrong:x}");
    }
    for bit in 0..64 {
        let other = handle ^ (1 << bit);
        assert!(get::<Other>(other).is_err(), "bit {bit}");
    }
    assert!(remove::<One>(handle).is_ok());
}

#[test]
fn every_slot_has_a_place_of_its_own() {
    let mut expected = (0, 0);
    for slot in 0..10_000 {
        assert_eq!(Table::place(slot), expected);
        expected.1 += 1;
        if expected.1 == FIRST_CHUNK << expected.0 {
            expected = (expected.0 + 1, 0);
        }
    }
    let (chunk, place) = Table::place(1 << (SLOT_BITS - 1));
    assert!(chunk < CHUNKS && place < FIRST_CHUNK << chunk);
}

#[test]
fn a_used_up_slot_is_not_used_again() {
    let handle = insert(Arc::new(One(0))).unwrap();
    let (slot, parts) = find(handle, "").unwrap();
    slot.occupant.write().generation = LAST_GENERATION;
    let last = Parts { generation: LAST_GENERATION, ..parts }.handle();
    assert!(remove::<One>(last).is_ok());
    assert!(matches!(get::<One>(last), Err(HandleError::Closed { .. })));
    let next: Vec<usize> = (0..100).map(|n| insert(Arc::new(One(n))).unwrap()).collect();
    assert!(next.iter().all(|next| Parts::of(*next).unwrap().slot != parts.slot));
    next.into_iter().for_each(|next| drop(remove::<One>(next)));
}

#[test]
fn a_thread_keeps_the_slot_that_it_has_left_until_it_ends() {
    let slot_of = |handle| table::Parts::of(handle).unwrap().slot;
    let make_and_close = move || {
        let handle = insert(Arc::new(One(0))).unwrap();
        assert!(remove::<One>(handle).is_ok());
        let next = insert(Arc::new(One(1))).unwrap();
        assert_eq!(slot_of(next), slot_of(handle));
        assert!(next != handle && remove::<One>(next).is_ok());
    };
    let before = table::TABLE.unused.load(Ordering::Relaxed);
    for _ in 0..5000 {
        std::thread::spawn(make_and_close).join().unwrap();
    }
    // Other tests take some thousand, too.
    assert!(table::TABLE.unused.load(Ordering::Relaxed) - before < 4000, "slots were lost with their threads");
}

#[test]
fn an_object_lives_as_long_as_a_call_uses_it() {
    let handle = insert(Arc::new(One(7))).unwrap();
    let used = get::<One>(handle).unwrap();
    drop(remove::<One>(handle).unwrap());
    assert_eq!(used.0, 7);
}

#[test]
fn what_is_lent_is_that_of_the_last_call() {
    let text: &'static [u8] = b"lent";
    let handle = insert_owned(Box::new(Pair(b""))).unwrap();
    assert_eq!(loan::<Pair>(handle), Ok(None));
    with(handle, |pair: &mut Pair| pair.0 = text).unwrap();
    let found = loan::<Pair>(handle).unwrap().unwrap();
    assert_eq!(found, Loan { key: (text.as_ptr(), 4), value: (text[1..].as_ptr(), 3) });
    // Without the lock of the slot, which this thread has here.
    with(handle, |_: &mut Pair| assert_eq!(loan::<Pair>(handle), Err(HandleError::Within { expected: "a pair" })))
        .unwrap();
    let (slot, _) = find(handle, "").unwrap();
    let held = slot.occupant.write();
    assert_eq!(loan::<Pair>(handle), Ok(Some(found)), "it takes no lock");
    drop(held);
    let end: fn(&mut Pair) = |pair| pair.0 = b"";
    with(handle, end).unwrap();
    assert_eq!(loan::<Pair>(handle), Ok(None));
    assert!(remove_owned::<Pair>(handle).is_ok());
    assert_eq!(loan::<Pair>(handle), Err(HandleError::Closed { expected: "a pair" }));
    let next = insert_owned(Box::new(Pair(text))).unwrap();
    assert!(loan::<Pair>(next).unwrap().is_some(), "what lends from its beginning on");
    assert_eq!(loan::<Pair>(handle), Err(HandleError::Closed { expected: "a pair" }));
    assert!(remove_owned::<Pair>(next).is_ok());
}

#[test]
fn shared_and_owned_objects_are_told_apart() {
    let owned = insert_owned(Box::new(Pair(b"lent"))).unwrap();
    let shared = insert(Arc::new(One(1))).unwrap();
    let no_one = HandleError::OtherType { expected: "a one", found: "a pair" };
    assert_eq!(get::<One>(owned).map(drop), Err(no_one));
    assert_eq!(remove::<One>(owned).map(drop), Err(no_one));
    assert!(matches!(get::<Pair>(owned), Err(HandleError::OtherType { .. })), "nothing shares it");
    let no_pair = HandleError::OtherType { expected: "a pair", found: "a one" };
    assert_eq!(with(shared, |_: &mut Pair| ()), Err(no_pair));
    assert_eq!(loan::<Pair>(shared), Err(no_pair));
    assert_eq!(remove_owned::<Pair>(shared).map(drop), Err(no_pair));
    let no_other = HandleError::OtherType { expected: "an other pair", found: "a pair" };
    assert_eq!(loan::<OtherPair>(owned), Err(no_other));
    assert_eq!(with(owned, |_: &mut OtherPair| ()), Err(no_other));
    assert!(matches!(loan::<Pair>(0), Err(HandleError::Null { .. })));
    assert!(matches!(loan::<Pair>(usize::MAX), Err(HandleError::NoHandle { .. })));
    assert!(remove::<One>(shared).is_ok() && remove_owned::<Pair>(owned).is_ok());
}

#[test]
fn a_call_from_inside_of_a_call_of_the_same_object_is_refused() {
    let handle = insert_owned(Box::new(Pair(b"lent"))).unwrap();
    let inside = with(handle, |_: &mut Pair| {
        let again = with(handle, |_: &mut Pair| ());
        let closed = remove_owned::<Pair>(handle).map(drop);
        (again, closed, get::<One>(handle).map(drop))
    });
    let within = HandleError::Within { expected: "a pair" };
    let of_another_type = HandleError::Within { expected: "a one" };
    assert_eq!(inside, Ok((Err(within), Err(within), Err(of_another_type))));
    assert!(remove_owned::<Pair>(handle).is_ok());
}

#[test]
fn a_panic_ends_what_is_lent_and_leaves_the_object() {
    let handle = insert_owned(Box::new(Pair(b"lent"))).unwrap();
    let text = crate::contain::contained(|| {
        with(handle, |pair: &mut Pair| {
            pair.0 = b"";
            panic!("in the middle");
        })
    });
    assert_eq!(text, Err("in the middle".to_owned()));
    assert_eq!(loan::<Pair>(handle), Ok(None));
    assert_eq!(with(handle, |pair: &mut Pair| pair.0.len()), Ok(0), "and it is in use no more");
    assert!(remove_owned::<Pair>(handle).is_ok());
}

#[test]
fn a_close_waits_for_a_call_of_another_thread() {
    let handle = insert_owned(Box::new(Pair(b"lent"))).unwrap();
    let (is_inside, inside) = std::sync::mpsc::channel();
    let (end, is_ended) = std::sync::mpsc::channel();
    let call = std::thread::spawn(move || {
        with(handle, |pair: &mut Pair| {
            is_inside.send(()).unwrap();
            is_ended.recv().unwrap();
            pair.0 = b"x";
        })
    });
    inside.recv().unwrap();
    let close = std::thread::spawn(move || remove_owned::<Pair>(handle).map(|pair| pair.0));
    end.send(()).unwrap();
    assert_eq!(call.join().unwrap(), Ok(()));
    assert_eq!(close.join().unwrap(), Ok(&b"x"[..]));
}
