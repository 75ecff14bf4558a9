use super::*;
use crate::base::key::{Kind, MAX_SEQUENCE, NEVER, compare};
use crate::base::random::Random;

type Item = (Vec<u8>, Sequence, Vec<u8>);

/// A cursor over a sorted vector that can be told to fail.
#[derive(Debug, Default)]
struct VecCursor {
    items: Vec<Item>,
    at: Option<usize>,
    /// Steps until one fails.
    fuse: Option<u32>,
    failed: bool,
}

impl VecCursor {
    fn go(&mut self, seek: bool, at: Option<usize>) -> Result<()> {
        self.failed &= !seek;
        if let Some(fuse) = &mut self.fuse {
            self.failed |= *fuse == 0;
            *fuse = fuse.saturating_sub(1);
        }
        if self.failed {
            self.at = None;
            return Err(Error::corruption("child", 1, "told to fail"));
        }
        self.at = at.filter(|&at| at < self.items.len());
        Ok(())
    }
}

impl Cursor for VecCursor {
    fn seek_to_first(&mut self) -> Result<()> {
        self.go(true, Some(0))
    }

    fn seek_to_last(&mut self) -> Result<()> {
        self.go(true, self.items.len().checked_sub(1))
    }

    fn seek(&mut self, key: &[u8], sequence: Sequence) -> Result<()> {
        let at = self.items.partition_point(|(k, s, _)| compare(k, *s, key, sequence) == Ordering::Less);
        self.go(true, Some(at))
    }

    fn next(&mut self) -> Result<()> {
        self.go(false, self.at.map(|at| at + 1))
    }

    fn prev(&mut self) -> Result<()> {
        self.go(false, self.at.and_then(|at| at.checked_sub(1)))
    }

    fn valid(&self) -> bool {
        self.at.is_some()
    }

    fn entry(&self) -> Entry<'_> {
        let (key, sequence, value) = &self.items[self.at.expect("a valid cursor")];
        Entry { key, sequence: *sequence, kind: Kind::Put, expiry_ms: NEVER, value }
    }
}

/// Children of random entries, and their merge: entries equal in key and sequence in the order of
/// the children.
fn children(count: u64, random: &mut Random) -> (Vec<VecCursor>, Vec<Item>) {
    let prefix = if random.below(2) == 0 { "" } else { "a prefix longer than a head " };
    let runs = random.below(2) == 0;
    let mut children = Vec::new();
    let mut all = Vec::new();
    for child in 0..count {
        let mut items: Vec<Item> = (0..random.below(60))
            .map(|_| {
                let number = if runs { child * 30 + random.below(40) } else { random.below(100) };
                let key = if random.below(20) == 0 { String::new() } else { format!("{prefix}{number}") };
                (key.into_bytes(), random.below(4), format!("{child}").into_bytes())
            })
            .collect();
        items.sort_by(|a, b| compare(&a.0, a.1, &b.0, b.1));
        items.dedup_by(|a, b| a.0 == b.0 && a.1 == b.1);
        all.extend(items.iter().cloned());
        children.push(VecCursor { items, ..VecCursor::default() });
    }
    all.sort_by(|a, b| compare(&a.0, a.1, &b.0, b.1));
    (children, all)
}

fn item(entry: Entry<'_>) -> Item {
    (entry.key.to_vec(), entry.sequence, entry.value.to_vec())
}

#[test]
fn a_merge_is_the_sorted_whole_in_both_directions() {
    let mut random = Random::new(1);
    for round in 0..600 {
        let (children, all) = children(round % 12, &mut random);
        let mut cursor = MergingCursor::new(children, &KeyOrder::Bytewise);
        assert!(!cursor.valid());
        let mut model: Option<usize> = None;
        for _ in 0..200 {
            match random.below(16) {
                0 => {
                    cursor.seek_to_first().expect("no failure");
                    model = Some(0);
                }
                1 => {
                    cursor.seek_to_last().expect("no failure");
                    model = all.len().checked_sub(1);
                }
                2 | 3 if !all.is_empty() => {
                    let (key, sequence, _) = &all[random.below(all.len() as u64) as usize];
                    let sequence = [0, *sequence, MAX_SEQUENCE][random.below(3) as usize];
                    cursor.seek(key, sequence).expect("no failure");
                    model = Some(all.partition_point(|i| compare(&i.0, i.1, key, sequence) == Ordering::Less));
                }
                4..=8 => {
                    cursor.prev().expect("no failure");
                    model = model.and_then(|at| at.checked_sub(1));
                }
                _ => {
                    cursor.next().expect("no failure");
                    model = model.map(|at| at + 1);
                }
            }
            model = model.filter(|&at| at < all.len());
            assert_eq!(cursor.valid(), model.is_some());
            if let Some(at) = model {
                assert_eq!(item(cursor.entry()), all[at]);
            }
        }
    }
}

#[test]
fn a_failing_child_fails_every_step_until_the_next_seek() {
    let mut random = Random::new(2);
    for round in 0..300 {
        let (mut children, all) = children(1 + round % 5, &mut random);
        let failing = random.below(children.len() as u64) as usize;
        children[failing].fuse = Some(random.below(12) as u32);
        let mut cursor = MergingCursor::new(children, &KeyOrder::Bytewise);
        let mut failed = cursor.seek_to_first().is_err();
        let mut seen = 0;
        while !failed && cursor.valid() {
            assert_eq!(item(cursor.entry()), all[seen]);
            seen += 1;
            failed = cursor.next().is_err();
        }
        if failed {
            for _ in 0..3 {
                assert!(!cursor.valid());
                assert!(matches!(cursor.next(), Err(Error::Corruption { .. })));
                assert!(matches!(cursor.prev(), Err(Error::Corruption { .. })));
            }
            cursor.children[failing].fuse = None;
            cursor.seek_to_last().expect("no failure any more");
            assert_eq!(cursor.valid().then(|| item(cursor.entry())), all.last().cloned());
        } else {
            assert_eq!(seen, all.len());
        }
    }
}
