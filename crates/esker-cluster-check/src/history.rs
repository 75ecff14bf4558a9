//! What clients have seen of one object, in the order in which it began and ended.

use crate::specification::{Found, GivenUp, Object, Use, begin_check};
use stateright::semantics::{ConsistencyTester, LinearizabilityTester};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

/// A use of an object in its history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Call(usize);

#[derive(Clone, Debug)]
enum Event {
    Begun {
        call: Call,
        client: usize,
        what: Use,
    },
    Ended {
        call: Call,
        found: Found,
    },
    /// The server says that it did nothing.
    Refused {
        call: Call,
    },
}

/// What the check of a history says.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// There is an order of its uses in which each finds what it found.
    Linearizable,
    /// There is none; the history.
    Violated(String),
    /// There are too many orders to try.
    Undecided,
}

/// The history of one object.
pub struct History {
    key: String,
    object: Object,
    events: Mutex<Vec<Event>>,
}

impl History {
    /// That of an object that nobody has used.
    pub fn new(key: String, object: Object) -> History {
        History { key, object, events: Mutex::new(Vec::new()) }
    }

    /// Where the object is.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The object as it was at the beginning.
    pub fn object(&self) -> &Object {
        &self.object
    }

    fn add(&self, event: Event) {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).push(event);
    }

    /// A client begins to use it.
    pub fn begin(&self, client: usize, what: Use) -> Call {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        let call = Call(events.len());
        events.push(Event::Begun { call, client, what });
        call
    }

    /// The use has found something.
    pub fn end(&self, call: Call, found: Found) {
        self.add(Event::Ended { call, found });
    }

    /// Nothing was done. A use that neither ends nor is refused may have been done, or be done yet.
    pub fn refuse(&self, call: Call) {
        self.add(Event::Refused { call });
    }

    /// How many uses have ended, and of how many nothing is known.
    pub fn counts(&self) -> (usize, usize) {
        let events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        let count = |is: fn(&Event) -> bool| events.iter().filter(|event| is(event)).count();
        let ended = count(|event| matches!(event, Event::Ended { .. }));
        let open = count(|event| matches!(event, Event::Begun { .. })) - ended;
        (ended, open - count(|event| matches!(event, Event::Refused { .. })))
    }

    /// How many uses that ended began while another one was under way that ended too: what one
    /// after the other does says nothing of an order.
    pub fn overlaps(&self) -> u64 {
        let events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        let ended: BTreeMap<Call, bool> = events.iter().filter_map(Event::end).collect();
        let (mut under_way, mut overlaps) = (0u64, 0);
        for event in events.iter() {
            match event {
                Event::Begun { call, .. } if ended.get(call) == Some(&true) => {
                    overlaps += u64::from(under_way > 0);
                    under_way += 1;
                }
                Event::Ended { .. } => under_way -= 1,
                Event::Begun { .. } | Event::Refused { .. } => {}
            }
        }
        overlaps
    }

    /// Looks for an order of all uses.
    pub fn check(&self) -> Verdict {
        let events = self.events.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let ended: BTreeMap<Call, bool> = events.iter().filter_map(Event::end).collect();
        let tester = catch_unwind(AssertUnwindSafe(|| {
            begin_check();
            let tester = replay(&self.object, &events, &ended)?;
            Ok::<bool, String>(tester.is_consistent())
        }));
        match tester {
            Ok(Ok(true)) => Verdict::Linearizable,
            Ok(Ok(false)) => Verdict::Violated(self.describe(&events)),
            Ok(Err(why)) => Verdict::Violated(format!("{why}\n{}", self.describe(&events))),
            Err(payload) if payload.is::<GivenUp>() => Verdict::Undecided,
            Err(payload) => std::panic::resume_unwind(payload),
        }
    }

    fn describe(&self, events: &[Event]) -> String {
        let mut text = format!("{}, which begins as {:?}\n", self.key, self.object);
        for event in events {
            // Writing to a string does not fail.
            let _ = match event {
                Event::Begun { call, client, what } => writeln!(text, "  {:>4} client {client}: {what:?}", call.0),
                Event::Ended { call, found } => writeln!(text, "  {:>4} found {found:?}", call.0),
                Event::Refused { call } => writeln!(text, "  {:>4} refused", call.0),
            };
        }
        text
    }
}

impl Event {
    /// Whether a use ended with something found, if this ends it.
    fn end(&self) -> Option<(Call, bool)> {
        match self {
            Event::Begun { .. } => None,
            Event::Ended { call, .. } => Some((*call, true)),
            Event::Refused { call } => Some((*call, false)),
        }
    }
}

/// Gives a tester what happened. A use of which nothing is known has a thread of its own there, as
/// its client went on; a read of that kind says nothing, and what was refused did nothing.
fn replay(
    object: &Object,
    events: &[Event],
    ended: &BTreeMap<Call, bool>,
) -> Result<LinearizabilityTester<usize, Object>, String> {
    let mut tester = LinearizabilityTester::new(object.clone());
    let mut threads = BTreeMap::new();
    for event in events {
        match event {
            Event::Begun { call, client, what } => {
                let thread = match ended.get(call) {
                    Some(true) => *client,
                    None if *what != Use::Read => 1_000 + call.0,
                    _ => continue,
                };
                threads.insert(*call, thread);
                tester.on_invoke(thread, what.clone())?;
            }
            Event::Ended { call, found } => {
                let thread = threads.get(call).ok_or("what ends has not begun")?;
                tester.on_return(*thread, found.clone())?;
            }
            Event::Refused { .. } => {}
        }
    }
    Ok(tester)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counter() -> History {
        History::new("counter".into(), Object::Counter(0))
    }

    #[test]
    fn an_open_use_may_be_done_or_not() {
        for found in [Found::Value(Some(2)), Found::Value(Some(7))] {
            let history = counter();
            history.begin(1, Use::Add(5));
            let call = history.begin(1, Use::Add(2));
            history.end(call, found);
            assert_eq!(history.check(), Verdict::Linearizable);
            assert_eq!(history.counts(), (1, 1));
        }
    }

    #[test]
    fn uses_within_others_are_counted() {
        let history = counter();
        // One of which nothing is known, and one that is refused, are within no other one.
        history.begin(1, Use::Add(5));
        let refused = history.begin(2, Use::Add(5));
        let first = history.begin(3, Use::Add(1));
        history.refuse(refused);
        let second = history.begin(4, Use::Add(1));
        history.end(first, Found::Value(Some(1)));
        history.end(second, Found::Value(Some(2)));
        let third = history.begin(3, Use::Add(1));
        history.end(third, Found::Value(Some(3)));
        assert_eq!(history.overlaps(), 1);
    }

    #[test]
    fn what_was_refused_is_not_done() {
        let history = counter();
        let refused = history.begin(1, Use::Add(5));
        history.refuse(refused);
        let call = history.begin(1, Use::Add(2));
        history.end(call, Found::Value(Some(7)));
        assert!(matches!(history.check(), Verdict::Violated(_)));
    }

    #[test]
    fn what_was_acknowledged_is_not_lost_and_not_done_twice() {
        for found in [Found::Value(Some(2)), Found::Value(Some(12))] {
            let history = counter();
            let call = history.begin(1, Use::Add(5));
            history.end(call, Found::Value(Some(5)));
            let call = history.begin(2, Use::Add(2));
            history.end(call, found);
            assert!(matches!(history.check(), Verdict::Violated(_)));
        }
    }

    #[test]
    fn a_read_of_what_was_overwritten_is_noticed() {
        let history = History::new("register".into(), Object::Register(None));
        for value in 1..=2 {
            let call = history.begin(1, Use::Write(value));
            history.end(call, Found::Done);
        }
        let call = history.begin(2, Use::Read);
        history.end(call, Found::Value(Some(1)));
        assert!(matches!(history.check(), Verdict::Violated(_)));
    }
}
