//! The same step with less in it, for scripts that are to be shortened.

use super::counts;
use crate::model::{Change, Write};
use crate::powerloss::script::Step;

/// Counters keep their eight bytes: merges onto others fail.
fn simpler_write(write: &Write) -> Vec<Write> {
    let counts = counts(write.keyspace);
    let sound = |simpler: &Write| !counts || matches!(&simpler.change, Change::Put(value) if value.len() == 8);
    write.simpler().into_iter().filter(sound).collect()
}

/// The same step with less in it.
pub fn simpler(step: &Step) -> Vec<Step> {
    fn parts<T: Clone>(items: &[T]) -> Vec<Vec<T>> {
        let half = items.len() / 2;
        let mut parts = Vec::new();
        if items.len() > 1 {
            parts.extend([items[..half].to_vec(), items[half..].to_vec()]);
        }
        if items.len() <= 12 {
            parts.extend((0..items.len()).map(|index| [&items[..index], &items[index + 1..]].concat()));
        }
        parts
    }
    match step {
        Step::Batch(writes, durability) => {
            let mut found: Vec<Step> = parts(writes).into_iter().map(|part| Step::Batch(part, *durability)).collect();
            for (index, write) in writes.iter().enumerate().take(12) {
                found.extend(simpler_write(write).into_iter().map(|simpler| {
                    let mut writes = writes.clone();
                    writes[index] = simpler;
                    Step::Batch(writes, *durability)
                }));
            }
            found
        }
        Step::Transaction(writes, durability) => {
            parts(writes).into_iter().map(|part| Step::Batch(part, *durability)).collect()
        }
        Step::Abandon(writes) => parts(writes).into_iter().map(Step::Abandon).collect(),
        Step::Contend(writes) => parts(writes).into_iter().map(Step::Contend).collect(),
        Step::Begin(slot, writes) => parts(writes).into_iter().map(|part| Step::Begin(*slot, part)).collect(),
        Step::Single(write, durability) => {
            simpler_write(write).into_iter().map(|simpler| Step::Single(simpler, *durability)).collect()
        }
        Step::Typed(write, durability) => vec![Step::Single(write.clone(), *durability)],
        Step::Ask(write, expected, durability) => {
            let simpler = simpler_write(write).into_iter();
            let mut found: Vec<Step> = simpler.map(|simpler| Step::Ask(simpler, *expected, *durability)).collect();
            found.push(Step::Single(write.clone(), *durability));
            found
        }
        Step::ReopenWith(_) | Step::Keep(_) => vec![Step::Reopen],
        Step::Ingest(keyspace, pairs) => {
            let some = parts(pairs).into_iter().filter(|part| !part.is_empty());
            some.map(|part| Step::Ingest(*keyspace, part)).collect()
        }
        Step::RefusedIngest(keyspace, pairs, why) => {
            let some = parts(pairs).into_iter().filter(|part| !part.is_empty());
            some.map(|part| Step::RefusedIngest(*keyspace, part, *why)).collect()
        }
        _ => Vec::new(),
    }
}
