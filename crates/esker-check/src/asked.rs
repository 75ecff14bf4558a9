//! Writes that look at what they replace: what each must answer, and whether it writes.

use crate::generator::Expected;
use crate::model::{Answer, Change, Life, MergeFails, Model, Operator, Write};
use crate::state::{Durability, time};
use esker::{CompareAndSwap, Keyspace, Slice, WriteOptions};
use std::time::Duration;

/// A call that looks at the value of a key and writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// `put_if_absent` with this value.
    PutIfAbsent(Vec<u8>),
    /// `compare_and_swap`.
    Swap {
        /// The value that must be there.
        expected: Option<Vec<u8>>,
        /// The one that replaces it.
        new: Option<Vec<u8>>,
    },
    /// `merge_and_get` with this operand.
    MergeAndGet(Vec<u8>),
    /// `take`.
    Take,
    /// `touch`, `expire_at` or `persist`, which say whether there is a value.
    Expire(Life),
}

impl Call {
    /// The conditional write of the kind of a write: a put if absent or as a swap, a delete as a
    /// take or a swap, a merge with its result, a change of the expiry. `found` is what the key
    /// holds. A delete of a range is none.
    pub fn of(write: &Write, expected: Expected, found: Option<&[u8]>) -> Option<Call> {
        let wanted = match expected {
            Expected::Current => found.map(<[u8]>::to_vec),
            Expected::Absent => None,
            Expected::Other => Some(b"another value".to_vec()),
        };
        Some(match (&write.change, expected) {
            (Change::Put(value), Expected::Absent) => Call::PutIfAbsent(value.clone()),
            (Change::Put(value), _) => Call::Swap { expected: wanted, new: Some(value.clone()) },
            (Change::Delete, Expected::Current) => Call::Take,
            (Change::Delete, _) => Call::Swap { expected: wanted, new: None },
            (Change::Merge(operand), _) => Call::MergeAndGet(operand.clone()),
            (Change::Expire, _) => Call::Expire(write.life),
            (Change::DeleteRange(..) | Change::DeletePrefix(_), _) => return None,
        })
    }

    /// Makes the call. What a swap says is told as the value that it has found; of an expiry only
    /// whether there is a value.
    pub fn make(&self, keyspace: &Keyspace, key: &[u8], options: &WriteOptions) -> esker::Result<Option<Slice>> {
        let is_there = |there: bool| there.then(|| Slice::from(Vec::new()));
        match self {
            Call::PutIfAbsent(value) if *options == WriteOptions::new() => keyspace.put_if_absent(key, value),
            Call::PutIfAbsent(value) => keyspace.put_if_absent_with(key, value, options),
            Call::Swap { expected, new } => {
                let (wanted, new) = (expected.as_deref(), new.as_deref());
                let swapped = if *options == WriteOptions::new() {
                    keyspace.compare_and_swap(key, wanted, new)
                } else {
                    keyspace.compare_and_swap_with(key, wanted, new, options)
                };
                Ok(match swapped? {
                    CompareAndSwap::Swapped => expected.clone().map(Slice::from),
                    CompareAndSwap::Unequal { current } => current,
                })
            }
            Call::MergeAndGet(operand) if *options == WriteOptions::new() => keyspace.merge_and_get(key, operand),
            Call::MergeAndGet(operand) => keyspace.merge_and_get_with(key, operand, options),
            Call::Take if *options == WriteOptions::new() => keyspace.take(key),
            Call::Take => keyspace.take_with(key, options),
            Call::Expire(Life::For(milliseconds)) => {
                keyspace.touch(key, Duration::from_millis(*milliseconds)).map(is_there)
            }
            Call::Expire(Life::Until(at)) => keyspace.expire_at(key, time(*at)).map(is_there),
            Call::Expire(_) => keyspace.persist(key).map(is_there),
        }
    }

    /// What it must answer about a key that holds `before`, and whether it writes.
    pub fn right(&self, before: &Answer, operator: Operator) -> (Answer, bool) {
        let found = before.as_ref().ok().and_then(|value| value.as_deref());
        match self {
            Call::PutIfAbsent(_) => (before.clone(), *before == Ok(None)),
            Call::Take => (before.clone(), found.is_some()),
            Call::Swap { expected, .. } => (before.clone(), before.is_ok() && found == expected.as_deref()),
            Call::MergeAndGet(operand) => {
                let right = before.clone().and_then(|_| operator.combine(found, operand));
                let goes_ahead = right.is_ok();
                (right.map(|value| value.map(|value| value.as_slice().into())), goes_ahead)
            }
            Call::Expire(_) => (before.clone().map(|value| value.map(|_| [].into())), found.is_some()),
        }
    }
}

/// What a step asks, with all that the engine is to be told.
#[derive(Clone, Debug)]
pub enum Question {
    /// Of a key.
    Key(Write, Call),
    /// For the first pair of a keyspace, which goes.
    PopFirst(usize),
}

/// A key, and what was said of it; nothing where there is nothing.
pub type Reply = Option<(Vec<u8>, Vec<u8>)>;

/// What a question must be answered, and what that writes.
pub type Right = Result<(Reply, Option<Write>), MergeFails>;

impl Question {
    /// The question that goes with a write, of a key that holds what the model says; none if there
    /// is none.
    pub fn of(write: &Write, expected: Expected, model: &Model) -> Option<Question> {
        // No conditional write takes an absolute time.
        let keeps = write.change == Change::Expire || matches!(write.life, Life::For(_));
        let life = if keeps { write.life } else { Life::Usual };
        let write = write.clone().living(life);
        if model.refuses(&write) {
            return None;
        }
        let found = model.get(write.keyspace, &write.key, model.present()).ok().flatten();
        let call = Call::of(&write, expected, found.as_deref())?;
        Some(Question::Key(write, call))
    }

    /// The keyspace that it is about.
    pub fn keyspace(&self) -> usize {
        match self {
            Question::Key(write, _) => write.keyspace,
            Question::PopFirst(keyspace) => *keyspace,
        }
    }

    /// How safe its write is when it has been answered: some calls take no options.
    pub fn durability(&self, requested: Durability) -> Durability {
        match self {
            Question::PopFirst(_) | Question::Key(_, Call::Expire(_)) => Durability::Async,
            Question::Key(..) => requested,
        }
    }

    /// Puts it to the engine.
    pub fn put(&self, keyspace: &Keyspace, options: &WriteOptions) -> esker::Result<Reply> {
        match self {
            Question::PopFirst(_) => Ok(keyspace.pop_first()?.map(|(key, value)| (key.to_vec(), value.to_vec()))),
            Question::Key(write, call) => {
                let options = match write.life {
                    Life::For(milliseconds) if !matches!(call, Call::Expire(_)) => {
                        options.ttl(Duration::from_millis(milliseconds))
                    }
                    _ => *options,
                };
                let found = call.make(keyspace, &write.key, &options)?;
                Ok(found.map(|found| (write.key.clone(), found.to_vec())))
            }
        }
    }

    /// What the model answers.
    pub fn right(&self, model: &Model) -> Right {
        match self {
            Question::PopFirst(keyspace) => match model.end(*keyspace, true, model.present()) {
                None => Ok((None, None)),
                Some((key, value)) => {
                    let delete = Write::new(*keyspace, &key[..], Change::Delete);
                    Ok((Some((key.to_vec(), value?.to_vec())), Some(delete)))
                }
            },
            Question::Key(write, call) => {
                let before = model.get(write.keyspace, &write.key, model.present());
                let (right, goes_ahead) = call.right(&before, model.operator(write.keyspace));
                let reply = right?.map(|value| (write.key.clone(), value.to_vec()));
                Ok((reply, goes_ahead.then(|| write.clone())))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Ttl;

    #[test]
    fn each_question_is_answered_as_the_table_says() {
        let mut model = Model::with_ttl(&[(Operator::StringAppend, Ttl::Off)]);
        model.commit(&[Write::new(0, "a", Change::Put(b"1".to_vec()))]);
        let put = |key: &str| Write::new(0, key, Change::Put(b"2".to_vec()));
        let delete = |key: &str| Write::new(0, key, Change::Delete);
        let merge = |key: &str| Write::new(0, key, Change::Merge(b"3".to_vec()));
        let asked = |write: Write, expected| {
            let (reply, written) = Question::of(&write, expected, &model).unwrap().right(&model).unwrap();
            (reply.map(|(_, value)| String::from_utf8(value).unwrap()), written.is_some())
        };
        let one = Some("1".to_string());
        assert_eq!(asked(put("a"), Expected::Absent), (one.clone(), false), "put_if_absent");
        assert_eq!(asked(put("b"), Expected::Absent), (None, true));
        assert_eq!(asked(put("a"), Expected::Current), (one.clone(), true), "compare_and_swap");
        assert_eq!(asked(put("b"), Expected::Other), (None, false));
        assert_eq!(asked(delete("a"), Expected::Absent), (one.clone(), false));
        assert_eq!(asked(delete("a"), Expected::Current), (one, true), "take");
        assert_eq!(asked(delete("b"), Expected::Current), (None, false));
        assert_eq!(asked(merge("b"), Expected::Current), (Some("3".to_string()), true), "merge_and_get");
        assert!(asked(merge("a"), Expected::Current).1);
        let first = Question::PopFirst(0).right(&model).unwrap();
        assert_eq!(first, (Some((b"a".to_vec(), b"1".to_vec())), Some(delete("a"))));
    }
}
