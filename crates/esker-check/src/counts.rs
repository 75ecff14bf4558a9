//! How many operations of a campaign were about which feature: a long campaign may hardly touch
//! one.

use crate::cast::Role;
use crate::generator::{FeedOperation, Operation, TransactionStep};
use crate::model::{Change, Life, Order, Write};
use std::fmt;
use std::ops::AddAssign;

/// What an operation can be about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Feature {
    /// Conditional and returning writes.
    Conditional,
    /// Expiries changed without the value.
    ExpiryChanged,
    /// Entries with an expiry of their own.
    OwnExpiry,
    /// Merges.
    Merge,
    /// Deletes of ranges.
    Range,
    /// Transactions.
    Transaction,
    /// Keyspaces that are dropped, and uses of those.
    Drop,
    /// Other names and settings of keyspaces.
    Settings,
    /// Sorted pairs past the log.
    Load,
    /// Readers of changes, and followers.
    Changes,
    /// Followers alone.
    Follower,
    /// Counts, first and last keys, and whether one is there.
    CountOrEnd,
    /// Keyspaces in another order than that of bytes.
    Order,
}

/// All of them, with their names in the report.
const FEATURES: [(Feature, &str); 13] = [
    (Feature::Conditional, "conditional or returning"),
    (Feature::ExpiryChanged, "changes of an expiry"),
    (Feature::OwnExpiry, "with an expiry of their own"),
    (Feature::Merge, "with merges"),
    (Feature::Range, "with deletes of ranges"),
    (Feature::Transaction, "transactions"),
    (Feature::Drop, "on dropped keyspaces"),
    (Feature::Settings, "other names and settings"),
    (Feature::Load, "loads"),
    (Feature::Changes, "on changes"),
    (Feature::Follower, "of followers"),
    (Feature::CountOrEnd, "counts and ends"),
    (Feature::Order, "in another order of keys"),
];

/// Operations by feature. One that is about several counts for each of them, once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FeatureCounts([u64; FEATURES.len()]);

impl FeatureCounts {
    /// Those of one run with these keyspaces.
    pub fn of(operations: &[Operation], cast: &[Role]) -> FeatureCounts {
        let mut counts = FeatureCounts::default();
        for operation in operations {
            for (count, (feature, _)) in counts.0.iter_mut().zip(FEATURES) {
                *count += u64::from(is_about(operation, feature, cast));
            }
        }
        counts
    }

    /// How many were about the feature that the fewest were about.
    pub fn least(&self) -> u64 {
        self.0.into_iter().min().unwrap_or(0)
    }
}

impl AddAssign for FeatureCounts {
    fn add_assign(&mut self, more: FeatureCounts) {
        self.0.iter_mut().zip(more.0).for_each(|(count, more)| *count += more);
    }
}

impl fmt::Display for FeatureCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "of these operations, each for all that it is about:")?;
        for (index, (count, (_, name))) in self.0.iter().zip(FEATURES).enumerate() {
            write!(f, "{} {count} {name}", if index == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

/// Whether the operation is about it, in a run with these keyspaces.
pub fn is_about(operation: &Operation, feature: Feature, cast: &[Role]) -> bool {
    let any_step = |is_one: fn(&TransactionStep) -> bool| match operation {
        Operation::Transaction(steps, _) => steps.iter().any(is_one),
        _ => false,
    };
    let any_write = |is_one: fn(&Write) -> bool| writes(operation).into_iter().any(is_one);
    match feature {
        Feature::Conditional => {
            matches!(operation, Operation::OnValue(..) | Operation::PopFirst(_))
                || any_step(|step| matches!(step, TransactionStep::PopFirst(_)))
        }
        Feature::ExpiryChanged => any_write(|write| write.change == Change::Expire),
        Feature::OwnExpiry => any_write(|write| write.life != Life::Usual && write.change != Change::Expire),
        Feature::Merge => any_write(|write| matches!(write.change, Change::Merge(_))),
        Feature::Range => matches!(operation, Operation::Clear(_)) || any_write(|write| write.change.is_range()),
        Feature::Transaction => matches!(operation, Operation::Transaction(..)),
        Feature::Drop => {
            matches!(operation, Operation::DropKeyspace(..) | Operation::UseDropped(..) | Operation::BatchOnDropped(..))
                || any_step(|step| matches!(step, TransactionStep::Drop(_)))
        }
        Feature::Settings => matches!(operation, Operation::Rename(_) | Operation::Alter(..)),
        Feature::Load => matches!(operation, Operation::Load(..)),
        Feature::Changes => matches!(operation, Operation::Feed(_)),
        Feature::Follower => matches!(
            operation,
            Operation::Feed(FeedOperation::Follow(_) | FeedOperation::FollowerReadOn(_) | FeedOperation::DropFollower)
        ),
        Feature::CountOrEnd => {
            matches!(operation, Operation::Count(..) | Operation::End(..) | Operation::Contains(..))
                || any_step(|step| {
                    matches!(
                        step,
                        TransactionStep::Count(..) | TransactionStep::End(..) | TransactionStep::Contains(..)
                    )
                })
        }
        Feature::Order => {
            let has_own = |keyspace: usize| cast.get(keyspace).is_some_and(|role| role.order() != Order::Bytewise);
            keyspaces(operation).into_iter().any(has_own)
        }
    }
}

/// What the operation writes, or tries to.
fn writes(operation: &Operation) -> Vec<&Write> {
    match operation {
        Operation::Write(write, _) | Operation::OnValue(write, ..) | Operation::UseDropped(_, _, write) => vec![write],
        Operation::Batch(writes, _) | Operation::BatchOnDropped(_, writes) => writes.iter().collect(),
        Operation::Transaction(steps, _) => {
            fn of_step(step: &TransactionStep) -> &[Write] {
                match step {
                    TransactionStep::Write(write) => std::slice::from_ref(write),
                    TransactionStep::Outside(writes) => writes,
                    _ => &[],
                }
            }
            steps.iter().flat_map(of_step).collect()
        }
        _ => Vec::new(),
    }
}

/// The keyspaces that it names.
fn keyspaces(operation: &Operation) -> Vec<usize> {
    match operation {
        Operation::PopFirst(keyspace)
        | Operation::Load(keyspace, _)
        | Operation::CompactKeyspace(keyspace)
        | Operation::CompactRange(keyspace, ..)
        | Operation::ApproximateSize(keyspace, ..)
        | Operation::DropKeyspace(keyspace, ..)
        | Operation::Clear(keyspace)
        | Operation::Rename(keyspace)
        | Operation::Alter(keyspace, ..)
        | Operation::Feed(FeedOperation::Watch(_, keyspace, _)) => vec![*keyspace],
        Operation::Get(source, _)
        | Operation::Contains(source, _)
        | Operation::End(source, _)
        | Operation::Count(source, _)
        | Operation::MultiGet(source, _)
        | Operation::ExpiresAt(source, _)
        | Operation::Scan(source, ..)
        | Operation::OpenCursor(_, source)
        | Operation::OpenIterator(_, source, _) => vec![source.keyspace],
        _ => {
            let steps: &[TransactionStep] = match operation {
                Operation::Transaction(steps, _) => steps,
                _ => &[],
            };
            let of_step = |step: &TransactionStep| match step {
                TransactionStep::Get(keyspace, _)
                | TransactionStep::Contains(keyspace, _)
                | TransactionStep::ExpiresAt(keyspace, _)
                | TransactionStep::Scan(keyspace, _)
                | TransactionStep::End(keyspace, _)
                | TransactionStep::Count(keyspace, _)
                | TransactionStep::PopFirst(keyspace)
                | TransactionStep::Drop(keyspace) => Some(*keyspace),
                TransactionStep::Write(_) | TransactionStep::Outside(_) | TransactionStep::Clock(_) => None,
            };
            let written = writes(operation).into_iter().map(|write| write.keyspace);
            steps.iter().filter_map(of_step).chain(written).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cast::{Features, choose};
    use crate::generator::{Expected, Generator};
    use crate::random::Random;
    use crate::state::Durability;

    #[test]
    fn an_operation_counts_once_for_each_feature_that_it_is_about() {
        let write = |change| Write::new(0, b"k", change);
        let operations = [
            Operation::Flush,
            Operation::OnValue(write(Change::Merge(vec![1])), Expected::Current, Durability::Async),
            Operation::Batch(vec![write(Change::Expire).living(Life::For(7)); 3], Durability::Async),
            Operation::Transaction(
                vec![
                    TransactionStep::PopFirst(0),
                    TransactionStep::Outside(vec![write(Change::DeletePrefix(Vec::new()))]),
                ],
                true,
            ),
            Operation::Feed(FeedOperation::DropFollower),
        ];
        let counts = FeatureCounts::of(&operations, &[]);
        let of = |feature| counts.0[FEATURES.iter().position(|(found, _)| *found == feature).expect("listed")];
        assert_eq!((of(Feature::Conditional), of(Feature::Merge), of(Feature::ExpiryChanged)), (2, 1, 1));
        assert_eq!((of(Feature::OwnExpiry), of(Feature::Range), of(Feature::Transaction)), (0, 1, 1));
        assert_eq!((of(Feature::Changes), of(Feature::Follower), of(Feature::Order)), (1, 1, 0));
        assert_eq!((of(Feature::Drop), of(Feature::CountOrEnd), counts.least()), (0, 0, 0));
        let mut twice = counts;
        twice += counts;
        assert_eq!(twice.0, counts.0.map(|count| 2 * count));
        assert!(counts.to_string().contains("2 conditional or returning, 1 changes of an expiry"), "{counts}");
    }

    #[test]
    fn an_operation_on_a_keyspace_in_another_order_counts_as_one() {
        let seed = (0..100).find(|&seed| {
            let roles = choose(&mut Random::new(seed), Features::ALL);
            roles.iter().any(|role| role.order() != Order::Bytewise)
        });
        let mut generator = Generator::new(seed.expect("one of a hundred casts"), Features::ALL);
        let operations = generator.operations(2000);
        let cast = generator.cast();
        let ordered = cast.iter().position(|role| role.order() != Order::Bytewise).expect("as it was chosen");
        let expected = operations.iter().filter(|operation| keyspaces(operation).contains(&ordered)).count() as u64;
        let of_order = FeatureCounts::of(&operations, cast).0[FEATURES.len() - 1];
        assert!(expected > 100 && of_order >= expected, "{of_order} of {expected}");
    }

    #[test]
    fn half_of_the_operations_are_about_what_they_are_to_be_about() {
        for (feature, name) in FEATURES {
            let made = |seed| {
                let mut generator = Generator::new(seed, Features::ALL);
                let cast = generator.cast().to_vec();
                let operations = generator.operations_mostly(500, &|operation| is_about(operation, feature, &cast));
                operations.iter().filter(|operation| is_about(operation, feature, &cast)).count()
            };
            // Some runs have no keyspace in another order, or none where anything expires.
            let most = (0..10).map(made).max().unwrap_or(0);
            assert!(most >= 200, "{name}: {most} of 500");
        }
    }
}
