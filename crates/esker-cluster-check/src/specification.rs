//! What each object is when one client after the other uses it.

use stateright::semantics::SequentialSpec;
use std::cell::Cell;
use std::collections::BTreeSet;

/// The members that a set may have.
pub const MEMBERS: u8 = 6;

/// An object, with its state.
#[derive(Clone, Debug, PartialEq)]
pub enum Object {
    /// A string that is set.
    Register(Option<u64>),
    /// A string that is added to.
    Counter(u64),
    /// A set.
    Set(BTreeSet<u8>),
    /// A string that expires: its value, and before which time of the clients it may not.
    Lease(Option<(u64, u64)>),
}

/// A use of an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Use {
    /// Reads all of it.
    Read,
    /// Sets a register.
    Write(u64),
    /// Adds to a counter.
    Add(u64),
    /// Adds a member to a set.
    Insert(u8),
    /// Removes a member of a set.
    Remove(u8),
    /// Sets a lease that may not expire before a time of the clients.
    Grant { value: u64, ttl_ms: u64, not_before_ms: u64 },
}

/// What a use found.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    /// It was done.
    Done,
    /// A value.
    Value(Option<u64>),
    /// Whether the set was changed.
    Changed(bool),
    /// The members of a set.
    Members(BTreeSet<u8>),
    /// The value of a lease, read between these times of the clients.
    Lease { value: Option<u64>, begun_ms: u64, read_ms: u64 },
    /// A reply that there cannot be.
    Nonsense(String),
}

/// How much later a lease may be seen than it has to be. A grant whose client waits no more is done
/// within seconds or never, and a leader notices an expiry soon.
const MOST_LATE_MS: u64 = 30_000;

/// The steps after which a check gives up: histories are short, and one that is linearizable takes
/// some thousands.
const MOST_STEPS: u64 = 5_000_000;

thread_local! {
    static STEPS: Cell<u64> = const { Cell::new(0) };
}

/// What a check that gives up unwinds with.
pub struct GivenUp;

/// Begins to count the steps of a check in this thread.
pub fn begin_check() {
    STEPS.set(0);
}

fn count_step() {
    STEPS.set(STEPS.get() + 1);
    if STEPS.get() > MOST_STEPS {
        // The tester has no limit of its own. Not a panic: nothing is to be printed.
        std::panic::resume_unwind(Box::new(GivenUp));
    }
}

impl SequentialSpec for Object {
    type Op = Use;
    type Ret = Found;

    fn invoke(&mut self, what: &Use) -> Found {
        count_step();
        match (self, what) {
            (Object::Register(value), Use::Write(new)) => {
                *value = Some(*new);
                Found::Done
            }
            (Object::Register(value), _) => Found::Value(*value),
            (Object::Counter(sum), Use::Add(amount)) => {
                *sum += amount;
                Found::Value(Some(*sum))
            }
            // A counter that nobody has added to is not there.
            (Object::Counter(sum), _) => Found::Value((*sum > 0).then_some(*sum)),
            (Object::Set(members), Use::Insert(member)) => Found::Changed(members.insert(*member)),
            (Object::Set(members), Use::Remove(member)) => Found::Changed(members.remove(member)),
            (Object::Set(members), _) => Found::Members(members.clone()),
            (Object::Lease(lease), Use::Grant { value, not_before_ms, .. }) => {
                *lease = Some((*value, *not_before_ms));
                Found::Done
            }
            (Object::Lease(lease), _) => Found::Value(lease.map(|(value, _)| value)),
        }
    }

    /// A lease is gone from some moment on, which is not before it may be, and comes.
    fn is_valid_step(&mut self, what: &Use, found: &Found) -> bool {
        if let (Object::Lease(lease), Found::Lease { value, begun_ms, read_ms }) = (&mut *self, found) {
            count_step();
            return match (*lease, value) {
                (Some((here, not_before_ms)), Some(value)) => {
                    here == *value && *begun_ms <= not_before_ms.saturating_add(MOST_LATE_MS)
                }
                (Some((_, not_before_ms)), None) => {
                    *lease = None;
                    *read_ms >= not_before_ms
                }
                (None, value) => value.is_none(),
            };
        }
        self.invoke(what) == *found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRANT: Use = Use::Grant { value: 7, ttl_ms: 100, not_before_ms: 1_100 };

    fn found(value: Option<u64>, read_ms: u64) -> Found {
        Found::Lease { value, begun_ms: read_ms, read_ms }
    }

    fn valid(steps: &[(Use, Found)]) -> bool {
        begin_check();
        let mut lease = Object::Lease(None);
        steps.iter().all(|(what, found)| lease.is_valid_step(what, found))
    }

    #[test]
    fn a_lease_ends_when_it_may_and_does_not_come_back() {
        assert!(valid(&[(GRANT, Found::Done), (Use::Read, found(Some(7), 5_000)), (Use::Read, found(None, 5_000))]));
        assert!(!valid(&[(GRANT, Found::Done), (Use::Read, found(None, 1_099))]), "it ended too early");
        let back = [(GRANT, Found::Done), (Use::Read, found(None, 1_100)), (Use::Read, found(Some(7), 1_200))];
        assert!(!valid(&back), "it came back");
        assert!(!valid(&[(GRANT, Found::Done), (Use::Read, found(Some(8), 1_000))]), "another value");
        assert!(!valid(&[(GRANT, Found::Done), (Use::Read, found(Some(7), 31_101))]), "it does not end");
    }

    #[test]
    fn a_counter_that_was_not_added_to_is_absent() {
        begin_check();
        let mut counter = Object::Counter(0);
        assert!(counter.is_valid_step(&Use::Read, &Found::Value(None)));
        assert!(counter.is_valid_step(&Use::Add(3), &Found::Value(Some(3))));
        assert!(!counter.is_valid_step(&Use::Add(3), &Found::Value(Some(9))), "added twice");
    }
}
