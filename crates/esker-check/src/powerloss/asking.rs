//! Steps that ask: writes that look at what they replace, and single writes of all kinds.

use super::progress::Progress;
use crate::asked::Question;
use crate::model::{Change, Life, Operator, Write};
use crate::operators::supply;
use crate::state::{Durability, shown, time, write_one};
use esker::{Counters, Error, Keyspace, StallPolicy, TypedKeyspace, WriteOptions};
use std::time::Duration;

/// The options of the next write. Not all wait where writes are stalled.
pub fn write_options(durability: Durability, progress: &Progress) -> WriteOptions {
    let policy = match progress.next_number() % 4 {
        1 => StallPolicy::Fail,
        2 => StallPolicy::For(Duration::from_micros(100)),
        _ => StallPolicy::Wait,
    };
    durability.options().stall(policy)
}

/// Makes a write that has been noted as attempted. One that is refused because writes are stalled
/// has written nothing, "not after a power failure either": it is as if it had not been tried.
pub fn make<T>(
    progress: &mut Progress,
    attempt: impl FnOnce(&mut Progress),
    write: impl FnOnce() -> esker::Result<T>,
) -> esker::Result<Option<T>> {
    let before = progress.clone();
    attempt(progress);
    match write() {
        Ok(made) => Ok(Some(made)),
        Err(Error::WriteStalled { .. }) => {
            progress.take_back(before);
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Ends the run: an answer was wrong. The runner of scripts catches panics and reports them with
/// the command that repeats the run.
pub fn wrong(what: impl std::fmt::Display) -> ! {
    panic!("wrong answer: {what}")
}

/// A single write, by a typed handle or by a plain one.
pub fn write_single(
    keyspace: &Keyspace,
    write: &Write,
    durability: Durability,
    is_typed: bool,
    progress: &mut Progress,
) -> esker::Result<()> {
    let one = std::slice::from_ref(write);
    let durability = kept_durability(write, durability, is_typed);
    let options = write_options(durability, progress);
    let by = if is_typed { write_typed } else { write_one };
    if make(progress, |progress| progress.attempt(one, durability), || by(keyspace, write, options))?.is_some() {
        progress.acknowledge(durability);
    }
    Ok(())
}

/// Asks, and compares the answer. What it says that it wrote is there from then on, and what it
/// declined to write never is.
pub fn ask(
    keyspace: &Keyspace,
    question: &Question,
    durability: Durability,
    progress: &mut Progress,
) -> esker::Result<()> {
    if let Question::Key(write, _) = question {
        progress.note_tried(std::slice::from_ref(write));
    }
    let durability = question.durability(durability);
    let options = write_options(durability, progress);
    let Ok((expected, written)) = progress.right(question) else { return ask_what_fails(keyspace, question, &options) };
    let attempt = |progress: &mut Progress| match &written {
        Some(write) if matches!(question, Question::PopFirst(_)) => {
            progress.attempt_transaction(std::slice::from_ref(write), durability);
        }
        Some(write) => progress.attempt(std::slice::from_ref(write), durability),
        None => {}
    };
    let Some(found) = make(progress, attempt, || question.put(keyspace, &options))? else { return Ok(()) };
    if found != expected {
        let words =
            |reply: &crate::asked::Reply| reply.as_ref().map(|(key, value)| [shown(key), shown(value)].join("="));
        wrong(format!("{question:?} is answered {:?}, expected {:?}", words(&found), words(&expected)));
    }
    match (&written, question) {
        (Some(_), _) => progress.acknowledge(durability),
        (None, Question::Key(write, _)) if durability == Durability::Sync => {
            progress.note_seen(write.keyspace, &write.key);
        }
        (None, _) => {}
    }
    Ok(())
}

/// "A key whose operands cannot be combined is `MergeFailed`, and nothing is written."
fn ask_what_fails(keyspace: &Keyspace, question: &Question, options: &WriteOptions) -> esker::Result<()> {
    match question.put(keyspace, options) {
        Err(Error::MergeFailed { .. } | Error::WriteStalled { .. }) => Ok(()),
        Err(error) => Err(error),
        Ok(found) => wrong(format!("{question:?} is answered {found:?}, and its operands cannot be combined")),
    }
}

/// A single write through typed handles, of counters where the keyspace has them. Merges, changes
/// of an expiry and deletes of ranges are asynchronous whatever was requested.
fn write_typed(keyspace: &Keyspace, write: &Write, options: WriteOptions) -> esker::Result<()> {
    let typed = TypedKeyspace::<Vec<u8>, Vec<u8>>::new(keyspace.clone());
    let key = &write.key;
    let life = match write.life {
        Life::For(milliseconds) => Some(Duration::from_millis(milliseconds)),
        _ => None,
    };
    match (&write.change, write.life, life) {
        (Change::Put(value), Life::Until(expiry), _) => typed.put_until(key, value, time(expiry)),
        (Change::Put(value), _, Some(life)) => typed.put_with_ttl(key, value, life),
        (Change::Put(value), ..) => typed.put_with(key, value, &options),
        (Change::Delete, ..) => typed.delete_with(key, &options),
        (Change::Merge(operand), ..) => {
            let counts = supply(Operator::UInt64Add).map(|operator| operator.name().to_owned());
            let number: Option<u64> = operand.as_slice().try_into().ok().map(u64::from_le_bytes);
            match (number.filter(|_| keyspace.merge_operator() == counts), life) {
                (Some(number), Some(life)) => {
                    Counters::<Vec<u8>>::new(keyspace.clone())?.add_with_ttl(key, number, life)
                }
                (Some(number), None) => Counters::<Vec<u8>>::new(keyspace.clone())?.add_with(key, number, &options),
                (None, None) => typed.merge(key, operand),
                // No call of a typed handle takes it.
                (None, Some(_)) => write_one(keyspace, write, options),
            }
        }
        (Change::Expire, _, Some(life)) => typed.touch(key, life).map(drop),
        (Change::Expire, Life::Until(expiry), _) => typed.expire_at(key, time(expiry)).map(drop),
        (Change::Expire, ..) => typed.persist(key).map(drop),
        (Change::DeleteRange(low, high), ..) => typed.delete_range((low.clone(), high.clone())),
        (Change::DeletePrefix(prefix), ..) => typed.delete_prefix(prefix),
    }
}

/// How safe a single write is when it returned: some calls take no options.
pub fn kept_durability(write: &Write, durability: Durability, is_typed: bool) -> Durability {
    let is_set = matches!(write.life, Life::Until(_));
    let takes = match &write.change {
        Change::Expire | Change::DeletePrefix(_) => false,
        Change::DeleteRange(..) => !is_typed,
        Change::Put(_) => !(is_set || is_typed && write.life != Life::Usual),
        Change::Merge(_) => !is_typed,
        Change::Delete => true,
    };
    if takes { durability } else { Durability::Async }
}
