//! What a write says, and which keys a span covers.

use std::ops::Bound;

/// Whether entries of a keyspace can expire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ttl {
    /// They cannot, and writes that ask for it are refused.
    Off,
    /// They can; without a life of its own an entry lives that many milliseconds, or for ever.
    On(Option<u64>),
}

/// How long what is written lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Life {
    /// As the keyspace says: its default, or for ever; a merge into a live key keeps that key's.
    #[default]
    Usual,
    /// That many milliseconds from the commit on.
    For(u64),
    /// Up to that many milliseconds since the Unix epoch. Only for puts and changes of an expiry.
    Until(u64),
    /// Up to so many milliseconds from the present. Only for puts and changes of an expiry; the
    /// caller that knows the time turns it into an absolute one first.
    Around(i64),
}

impl Life {
    /// The same without [`Life::Around`].
    pub fn settled(self, now: u64) -> Life {
        match self {
            Life::Around(offset) => Life::Until(now.saturating_add_signed(offset)),
            life => life,
        }
    }
}

/// What happens to one key, or to a range of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The key gets this value.
    Put(Vec<u8>),
    /// The key goes.
    Delete,
    /// The operand is combined with what is there.
    Merge(Vec<u8>),
    /// The value gets the life of the write, [`Life::Usual`] for one without end; nothing happens
    /// where there is none.
    Expire,
    /// All keys between the bounds go; none if the bounds are the wrong way round.
    DeleteRange(Bound<Vec<u8>>, Bound<Vec<u8>>),
    /// All keys that begin with these bytes go.
    DeletePrefix(Vec<u8>),
}

impl Change {
    /// Whether it happens to a range of keys.
    pub fn is_range(&self) -> bool {
        matches!(self, Change::DeleteRange(..) | Change::DeletePrefix(_))
    }
}

/// One change of one keyspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// Index of the keyspace.
    pub keyspace: usize,
    /// The key; empty and without meaning where a range is deleted.
    pub key: Vec<u8>,
    /// What happens to it.
    pub change: Change,
    /// How long that lives.
    pub life: Life,
}

impl Write {
    /// A change with the usual life.
    pub fn new(keyspace: usize, key: impl Into<Vec<u8>>, change: Change) -> Write {
        Write { keyspace, key: key.into(), change, life: Life::Usual }
    }

    /// A deletion of all keys between the bounds.
    pub fn delete_range(keyspace: usize, low: Bound<Vec<u8>>, high: Bound<Vec<u8>>) -> Write {
        Write::new(keyspace, [], Change::DeleteRange(low, high))
    }

    /// The same change with that life.
    pub fn living(self, life: Life) -> Write {
        Write { life, ..self }
    }

    /// The keys it changes, as a span: one key, or a range.
    pub fn touched(&self) -> Span {
        match &self.change {
            Change::DeleteRange(low, high) => Span::Range(low.clone(), high.clone()),
            Change::DeletePrefix(prefix) => Span::Prefix(prefix.clone()),
            _ => Span::Range(Bound::Included(self.key.clone()), Bound::Included(self.key.clone())),
        }
    }

    /// Writes of the same kind with a shorter value, or without a life of its own.
    pub fn simpler(&self) -> Vec<Write> {
        let mut candidates = Vec::new();
        if self.life != Life::Usual {
            candidates.push(self.clone().living(Life::Usual));
        }
        let Change::Put(value) = &self.change else { return candidates };
        for length in [1, 8, value.len() / 2] {
            if length < value.len() {
                candidates.push(Write { change: Change::Put(value[..length].to_vec()), ..self.clone() });
            }
        }
        candidates
    }
}

/// Which keys a scan covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Span {
    /// All of them.
    All,
    /// Those between two bounds; none if the bounds are the wrong way round.
    Range(Bound<Vec<u8>>, Bound<Vec<u8>>),
    /// Those that begin with these bytes.
    Prefix(Vec<u8>),
}

impl Span {
    /// Whether the key is covered.
    pub fn contains(&self, key: &[u8]) -> bool {
        match self {
            Span::All => true,
            Span::Prefix(prefix) => key.starts_with(prefix),
            Span::Range(low, high) => {
                let above = match low {
                    Bound::Included(bound) => key >= bound.as_slice(),
                    Bound::Excluded(bound) => key > bound.as_slice(),
                    Bound::Unbounded => true,
                };
                let below = match high {
                    Bound::Included(bound) => key <= bound.as_slice(),
                    Bound::Excluded(bound) => key < bound.as_slice(),
                    Bound::Unbounded => true,
                };
                above && below
            }
        }
    }

    /// The same as bounds: of a prefix up to the least key above all that begin with it, if there
    /// is one.
    pub fn bounds(&self) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
        match self {
            Span::All => (Bound::Unbounded, Bound::Unbounded),
            Span::Range(low, high) => (low.clone(), high.clone()),
            Span::Prefix(prefix) => {
                let raised = prefix.iter().rposition(|byte| *byte < u8::MAX).map(|last| {
                    let mut raised = prefix[..=last].to_vec();
                    raised[last] += 1;
                    raised
                });
                (Bound::Included(prefix.clone()), raised.map_or(Bound::Unbounded, Bound::Excluded))
            }
        }
    }

    /// A bound that nothing covered lies below, as a map takes it.
    pub fn upwards(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (Bound::Included(self.lowest()), Bound::Unbounded)
    }

    fn lowest(&self) -> &[u8] {
        match self {
            Span::Prefix(prefix) => prefix,
            Span::Range(Bound::Included(bound) | Bound::Excluded(bound), _) => bound,
            _ => &[],
        }
    }

    /// Whether every covered key lies below this one, so that a walk upwards can stop there.
    pub fn is_past(&self, key: &[u8]) -> bool {
        match self {
            Span::All | Span::Range(_, Bound::Unbounded) => false,
            Span::Prefix(prefix) => key > prefix.as_slice() && !key.starts_with(prefix),
            Span::Range(_, Bound::Included(bound) | Bound::Excluded(bound)) => key > bound.as_slice(),
        }
    }

    /// The least key covered, if any key is: where two spans meet, one of them covers the other's
    /// least key.
    pub fn first(&self) -> Option<Vec<u8>> {
        let first = match self {
            // Nothing lies between a key and itself with a zero byte behind it.
            Span::Range(Bound::Excluded(bound), _) => [bound, &[0][..]].concat(),
            span => span.lowest().to_vec(),
        };
        self.contains(&first).then_some(first)
    }

    /// Whether some key is covered by both.
    pub fn meets(&self, other: &Span) -> bool {
        match (self.first(), other.first()) {
            (Some(first), Some(others)) => self.contains(&others) || other.contains(&first),
            _ => false,
        }
    }
}
