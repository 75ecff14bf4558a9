use super::*;
use crate::base::random::Random;

/// Tombstones as they were written, for a search one by one.
type Model = Vec<(Vec<u8>, Vec<u8>, Sequence)>;

fn cover(model: &Model, key: &[u8], max_sequence: Sequence) -> Sequence {
    let over =
        model.iter().filter(|(start, end, _)| start.as_slice() <= key && KeyOrder::Bytewise.is_before_end(key, end));
    over.map(|(_, _, sequence)| *sequence).filter(|&sequence| sequence <= max_sequence).max().unwrap_or(0)
}

/// What is drawn here.
trait Draws {
    fn key(&mut self) -> Vec<u8>;
}

impl Draws for Random {
    fn key(&mut self) -> Vec<u8> {
        let length = self.below(3);
        (0..length).map(|_| b"abc"[self.below(3) as usize]).collect()
    }
}

fn all_keys() -> Vec<Vec<u8>> {
    let mut keys: Vec<Vec<u8>> = vec![Vec::new()];
    for length in 0..3 {
        let longer: Vec<Vec<u8>> = keys.iter().filter(|key| key.len() == length).cloned().collect();
        keys.extend(longer.iter().flat_map(|key| b"\0abc\xff".map(|byte| [key.as_slice(), &[byte]].concat())));
    }
    keys
}

fn check(set: &RangeTombstones, model: &Model, seed: u64) {
    for pair in set.fragments().windows(2) {
        assert!(!pair[0].end.is_empty() && pair[0].end <= pair[1].start, "seed {seed}");
    }
    for key in all_keys() {
        for max_sequence in [1, 4, 9, MAX_SEQUENCE] {
            let expected = cover(model, &key, max_sequence);
            assert_eq!(set.cover(&key, max_sequence), expected, "seed {seed}, key {key:?} up to {max_sequence}");
            let span = set.cover_span(&key, max_sequence);
            assert_eq!(span.cover, expected, "seed {seed}");
            assert!(span.start <= key.as_slice() && KeyOrder::Bytewise.is_before_end(&key, span.end), "seed {seed}");
            for other in all_keys() {
                if span.start <= other.as_slice() && KeyOrder::Bytewise.is_before_end(&other, span.end) {
                    assert_eq!(cover(model, &other, max_sequence), expected, "seed {seed}");
                }
            }
        }
    }
}

#[test]
fn sets_of_random_tombstones_answer_as_a_search_one_by_one() {
    let seed = std::time::UNIX_EPOCH.elapsed().map_or(7, |since| since.as_nanos() as u64);
    println!("seed {seed}");
    let mut random = Random::new(seed);
    for _ in 0..60 {
        let mut model = Model::new();
        let mut set = RangeTombstones::default();
        for sequence in 1..=1 + random.below(12) {
            let (start, end) = (random.key(), if random.below(6) == 0 { Vec::new() } else { random.key() });
            if KeyOrder::Bytewise.is_before_end(&start, &end) {
                set = RangeTombstones::union([&set, &RangeTombstones::one(&start, &end, sequence)]);
                model.push((start, end, sequence));
            }
        }
        check(&set, &model, seed);
        let mut bytes = Vec::new();
        set.encode(&mut bytes);
        assert_eq!(RangeTombstones::decode(&bytes, &KeyOrder::Bytewise), Ok(set.clone()), "seed {seed}");
        // Cut into tables and put together again, it is the same.
        let cut = random.key();
        let (left, right) = if cut.is_empty() {
            (RangeTombstones::default(), set.clone())
        } else {
            (set.clip(b"", &cut), set.clip(&cut, b""))
        };
        check(&RangeTombstones::concatenate([&left, &right]), &model, seed);
        assert_eq!(RangeTombstones::union([&left, &right]), set, "seed {seed}");
        for key in all_keys() {
            assert!(left.cover(&key, MAX_SEQUENCE) == 0 || key < cut, "seed {seed}");
            assert!(right.cover(&key, MAX_SEQUENCE) == 0 || key >= cut, "seed {seed}");
        }
        let newest = set.reduced(|sequences| sequences[..1].to_vec());
        assert!(all_keys().iter().all(|key| newest.cover(key, MAX_SEQUENCE) == set.cover(key, MAX_SEQUENCE)));
    }
}

#[test]
fn hostile_bytes_are_refused() {
    let mut bytes = Vec::new();
    let sets = [RangeTombstones::one(b"a", b"c", 5), RangeTombstones::one(b"b", b"", 9)];
    RangeTombstones::union(&sets).encode(&mut bytes);
    assert!(RangeTombstones::decode(&bytes, &KeyOrder::Bytewise).is_ok());
    for length in 0..bytes.len() {
        let _ = RangeTombstones::decode(&bytes[..length], &KeyOrder::Bytewise);
        for value in [0, 1, 0x7f, 0xff] {
            let mut damaged = bytes.clone();
            damaged[length] = value;
            let _ = RangeTombstones::decode(&damaged, &KeyOrder::Bytewise);
        }
    }
    assert!(RangeTombstones::decode(b"\x01b\x01a\x01\x05", &KeyOrder::Bytewise).is_err(), "inverted");
    assert!(RangeTombstones::decode(b"\x01a\x01b\x00", &KeyOrder::Bytewise).is_err(), "no tombstone");
    assert!(RangeTombstones::decode(b"\x01a\x01b\x02\x05\x05", &KeyOrder::Bytewise).is_err(), "sequence 0");
    assert!(
        RangeTombstones::decode(b"\x01a\x01b\xff\xff\xff\xff\x0f\x05", &KeyOrder::Bytewise).is_err(),
        "impossible count"
    );
    assert!(
        RangeTombstones::decode(b"\x01a\x00\x01\x05\x01b\x01c\x01\x05", &KeyOrder::Bytewise).is_err(),
        "behind an unbounded one"
    );
}
