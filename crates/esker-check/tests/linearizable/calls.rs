//! What calls on a key may answer: the order that is looked for, the causes of conflicts, and how
//! calls are drawn.

use esker_check::random::Random;
use esker_check::settings::Settings;
use stateright::semantics::{ConsistencyTester, LinearizabilityTester, SequentialSpec};
use std::collections::HashSet;
use std::fmt::Write as _;

/// A write that says nothing of what was there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    Put(u64),
    Delete,
    Merge(u64),
}

impl Write {
    /// What the key has then.
    pub fn apply(self, value: Option<u64>) -> Option<u64> {
        match self {
            Write::Put(new) => Some(new),
            Write::Delete => None,
            Write::Merge(operand) => Some(value.unwrap_or(0).wrapping_add(operand)),
        }
    }
}

/// What a call does with one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    Get,
    Write(Write),
    MergeAndGet(u64),
    PutIfAbsent(u64),
    CompareAndSwap {
        expected: Option<u64>,
        new: Option<u64>,
    },
    Take,
    /// Reads, writes and reads again in a transaction.
    Transaction(Option<Write>),
}

/// What a call says of one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Done,
    Value(Option<u64>),
    Committed {
        before: Option<u64>,
        after: Option<u64>,
    },
    /// Nothing was written; what the transaction read was there when it began.
    Conflict {
        before: Option<u64>,
        after: Option<u64>,
    },
    /// The same of a transaction that has read nothing.
    Refused,
}

/// The value of one key, when one call comes after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Register(Option<u64>);

impl SequentialSpec for Register {
    type Op = Call;
    type Ret = Answer;

    fn invoke(&mut self, call: &Call) -> Answer {
        let before = self.0;
        match *call {
            Call::Get => Answer::Value(before),
            Call::Write(write) => {
                self.0 = write.apply(before);
                Answer::Done
            }
            Call::MergeAndGet(operand) => {
                self.0 = Write::Merge(operand).apply(before);
                Answer::Value(self.0)
            }
            Call::PutIfAbsent(value) => {
                self.0 = before.or(Some(value));
                Answer::Value(before)
            }
            Call::CompareAndSwap { expected, new } if expected == before => {
                self.0 = new;
                Answer::Done
            }
            Call::CompareAndSwap { .. } => Answer::Value(before),
            Call::Take => {
                self.0 = None;
                Answer::Value(before)
            }
            Call::Transaction(write) => {
                self.0 = write.map_or(before, |write| write.apply(before));
                Answer::Committed { before, after: self.0 }
            }
        }
    }

    fn is_valid_step(&mut self, call: &Call, answer: &Answer) -> bool {
        match (call, answer) {
            (Call::Transaction(write), Answer::Conflict { before, after }) => {
                let own = write.map_or(self.0, |write| write.apply(self.0));
                (*before, *after) == (self.0, own)
            }
            (_, Answer::Refused) => true,
            _ => self.invoke(call) == *answer,
        }
    }
}

/// A call on one key, between the numbers with which it began and returned.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    pub thread: usize,
    pub key: usize,
    pub call: Call,
    pub answer: Answer,
    pub begun: u64,
    pub ended: u64,
}

impl Event {
    /// Whether it has written to the key.
    fn has_written(&self) -> bool {
        match (self.call, self.answer) {
            (_, Answer::Conflict { .. } | Answer::Refused) => false,
            (Call::Get | Call::Transaction(None), _) => false,
            (Call::PutIfAbsent(_), Answer::Value(found)) => found.is_none(),
            (Call::Take, Answer::Value(found)) => found.is_some(),
            (Call::CompareAndSwap { .. }, answer) => answer == Answer::Done,
            _ => true,
        }
    }

    fn overlaps(&self, other: &Event) -> bool {
        self.begun < other.ended && other.begun < self.ended
    }
}

/// Whether there is an order of these calls on one key, which nobody has written before.
///
/// The calls that are done and the value decide what may follow, so that no pair of these is tried
/// twice, as in decision 39: the tester of `stateright` would not end where many calls overlap.
pub fn has_order(events: &[Event]) -> bool {
    assert!(events.len() < 64, "a bit for each call");
    let all = (1u64 << events.len()) - 1;
    let (mut seen, mut open) = (HashSet::new(), vec![(0u64, Register(None))]);
    while let Some((done, register)) = open.pop() {
        if done == all {
            return true;
        }
        let left: Vec<usize> = (0..events.len()).filter(|index| done & (1u64 << index) == 0).collect();
        let first_end = left.iter().map(|&index| events[index].ended).min().unwrap_or(u64::MAX);
        for &index in left.iter().filter(|index| events[**index].begun < first_end) {
            let Event { call, answer, .. } = &events[index];
            let mut next = (done | (1u64 << index), register);
            if next.1.is_valid_step(call, answer) && seen.insert(next) {
                open.push(next);
            }
        }
    }
    false
}

/// A conflict of a transaction, in the calls on all keys of a history, that no other thread is the
/// cause of: none has written to a key of the transaction while that was under way.
pub fn conflict_without_cause(events: &[Event]) -> Option<&Event> {
    let is_conflict = |event: &&Event| matches!(event.answer, Answer::Conflict { .. } | Answer::Refused);
    let is_cause = |conflict: &Event, other: &Event| {
        // The calls of a transaction on its keys begin with it.
        let is_of_transaction = |event: &&Event| (event.thread, event.begun) == (conflict.thread, conflict.begun);
        let is_on_key = events.iter().filter(is_of_transaction).any(|event| event.key == other.key);
        is_on_key && other.thread != conflict.thread && other.has_written() && other.overlaps(conflict)
    };
    events.iter().filter(is_conflict).find(|conflict| !events.iter().any(|other| is_cause(conflict, other)))
}

/// Values in hexadecimal: the bits of the operands below, the number of the put above.
pub fn describe(events: &[Event]) -> String {
    let mut sorted = events.to_vec();
    sorted.sort_by_key(|event| event.begun);
    let mut text = String::new();
    for Event { thread, key, call, answer, begun, ended } in sorted {
        // Writing to a string does not fail.
        let _ = writeln!(text, "  {begun:>4} to {ended:>4}, thread {thread}, key {key}: {call:x?} was {answer:x?}");
    }
    text
}

/// How many of the calls began while another one was under way: one after the other they say
/// little.
pub fn overlapping(events: &[Event]) -> usize {
    let is_within = |event: &&Event| events.iter().any(|other| other.begun < event.begun && event.begun < other.ended);
    events.iter().filter(is_within).count()
}

pub fn draw_write(random: &mut Random, number: usize, merges: bool) -> Write {
    match random.below(4) {
        0 => Write::Delete,
        1 | 2 if merges => Write::Merge(1 << number),
        _ => Write::Put((number as u64 + 1) << 32),
    }
}

/// A call on a key that was seen to have a value. The number is that of the call in its history.
pub fn draw_call(random: &mut Random, seen: Option<u64>, number: usize, merges: bool) -> Call {
    let value = (number as u64 + 1) << 32;
    match random.below(12) {
        0..=2 => Call::Get,
        3 | 4 => Call::Write(draw_write(random, number, merges)),
        5 | 6 if merges => Call::MergeAndGet(1 << number),
        5..=7 => Call::PutIfAbsent(value),
        8..=10 => {
            let expected = if random.percent(85) { seen } else { None };
            Call::CompareAndSwap { expected, new: random.percent(75).then_some(value) }
        }
        _ => Call::Take,
    }
}

/// Of a thread that makes one call.
fn event(thread: usize, (begun, ended): (u64, u64), call: Call, answer: Answer) -> Event {
    Event { thread, key: 0, call, answer, begun, ended }
}

/// Each pair is calls on one key with wrong answers, and the same calls with right ones.
#[test]
fn a_history_that_is_wrong_has_no_order() {
    let (first, second, last) = ((0, 2), (1, 3), (8, 9));
    let value = |value| Answer::Value(Some(value));
    let absent = Answer::Value(None);
    let put = event(2, (0, 1), Call::Write(Write::Put(7)), Answer::Done);
    let with_put = |events: &[Event]| -> Vec<Event> {
        let later = |event: &Event| Event { begun: event.begun + 2, ended: event.ended + 2, ..*event };
        [put].into_iter().chain(events.iter().map(later)).collect()
    };
    let two = |call: [Call; 2], answers: [Answer; 2]| -> Vec<Event> {
        vec![event(0, first, call[0], answers[0]), event(1, second, call[1], answers[1])]
    };
    let merges = [Call::MergeAndGet(1), Call::MergeAndGet(2)];
    let swap = |new| Call::CompareAndSwap { expected: Some(7), new };
    let swaps = [swap(Some(8)), swap(None)];
    let absents = [Call::PutIfAbsent(8), Call::PutIfAbsent(9)];
    let adds = [Call::Transaction(Some(Write::Merge(1))), Call::Transaction(Some(Write::Merge(2)))];
    let committed = |before, after| Answer::Committed { before, after };
    let conflict = Answer::Conflict { before: Some(7), after: Some(8) };
    let then_get = |mut events: Vec<Event>, answer: Answer| {
        events.push(event(2, last, Call::Get, answer));
        events
    };
    let pairs = [
        ("an addition is lost", two(merges, [value(1), value(2)]), two(merges, [value(1), value(3)])),
        ("both were absent", two(absents, [absent, absent]), two(absents, [value(9), absent])),
        (
            "both swaps were made",
            with_put(&two(swaps, [Answer::Done, Answer::Done])),
            with_put(&two(swaps, [Answer::Done, value(8)])),
        ),
        (
            "a value is taken twice",
            with_put(&two([Call::Take, Call::Take], [value(7), value(7)])),
            with_put(&two([Call::Take, Call::Take], [absent, value(7)])),
        ),
        (
            "a get misses what was acknowledged",
            with_put(&[event(0, first, Call::Get, absent)]),
            with_put(&[event(0, first, Call::Get, value(7))]),
        ),
        (
            "a value comes back",
            then_get(with_put(&[event(0, first, Call::Write(Write::Put(8)), Answer::Done)]), value(7)),
            with_put(&two([Call::Write(Write::Put(8)), Call::Get], [Answer::Done, value(7)])),
        ),
        (
            "an update of a transaction is lost",
            with_put(&two(adds, [committed(Some(7), Some(8)), committed(Some(7), Some(9))])),
            with_put(&two(adds, [committed(Some(9), Some(10)), committed(Some(7), Some(9))])),
        ),
        (
            "what was refused is there",
            then_get(with_put(&[event(0, (0, 1), adds[0], conflict)]), value(8)),
            then_get(with_put(&[event(0, (0, 1), adds[0], conflict)]), value(7)),
        ),
    ];
    for (what, wrong, right) in pairs {
        assert!(has_order(&right), "refused beside: {what}\n{}", describe(&right));
        assert!(!has_order(&wrong), "{what}\n{}", describe(&wrong));
    }
}

#[test]
fn a_conflict_that_no_other_thread_is_the_cause_of_is_noticed() {
    let conflict = Answer::Conflict { before: None, after: Some(1) };
    let of_transaction = event(0, (5, 9), Call::Transaction(Some(Write::Merge(1))), conflict);
    let read = event(0, (5, 9), Call::Transaction(None), Answer::Conflict { before: None, after: None });
    // It has two keys.
    let transaction = [of_transaction, Event { key: 1, ..read }];
    let beside = |other: Event| conflict_without_cause(&[transaction[0], transaction[1], other]).is_none();
    assert!(conflict_without_cause(&transaction).is_some(), "nobody else is there");
    let put = event(1, (4, 6), Call::Write(Write::Put(7)), Answer::Done);
    for cause in [put, Event { key: 1, ..put }, Event { begun: 8, ended: 10, ..put }] {
        assert!(beside(cause), "{cause:?}");
    }
    for other in [
        Event { thread: 0, ..put },
        Event { key: 2, ..put },
        Event { begun: 3, ended: 4, ..put },
        Event { begun: 10, ended: 11, ..put },
        Event { call: Call::Get, answer: Answer::Value(None), ..put },
        Event { call: Call::Take, answer: Answer::Value(None), ..put },
        Event { call: Call::PutIfAbsent(8), answer: Answer::Value(Some(7)), ..put },
        Event { call: Call::CompareAndSwap { expected: None, new: None }, answer: Answer::Value(Some(7)), ..put },
        Event { answer: Answer::Refused, ..put },
    ] {
        assert!(!beside(other), "{other:?}");
    }
    let refused = event(0, (5, 9), Call::Write(Write::Put(8)), Answer::Refused);
    assert!(conflict_without_cause(&[refused]).is_some() && conflict_without_cause(&[refused, put]).is_none());
}

/// A call that is under way, and its answer once it has one.
#[derive(Clone, Copy)]
struct UnderWay {
    begun: u64,
    call: Call,
    answer: Option<Answer>,
}

/// An answer of a call at some moment between its beginning and its end: one in eight tells of an
/// older value and leaves nothing.
fn answer_of(random: &mut Random, call: &Call, register: &mut Register, mut older: Register) -> Answer {
    match (call, random.below(8)) {
        (_, 0) => older.invoke(call),
        (Call::Transaction(write), 1 | 2) => {
            let before = register.0;
            Answer::Conflict { before, after: write.map_or(before, |write| write.apply(before)) }
        }
        _ => register.invoke(call),
    }
}

/// Ten calls of threads that overlap, as a history and as the tester of `stateright` is told.
fn made_up(random: &mut Random) -> (Vec<Event>, LinearizabilityTester<usize, Register>) {
    const MOST: usize = 10;
    const THREADS: usize = 3;
    let mut register = Register(None);
    let (mut older, mut tester) = (register, LinearizabilityTester::new(register));
    let (mut events, mut made) = (Vec::new(), 0);
    let mut under_way: [Option<UnderWay>; THREADS] = [None; THREADS];
    for now in 0.. {
        if made == MOST && under_way.iter().all(Option::is_none) {
            break;
        }
        let thread = random.below(THREADS);
        match under_way[thread].take() {
            None if made < MOST => {
                let call = match random.below(5) {
                    0 => Call::Transaction(random.percent(70).then(|| draw_write(random, made, true))),
                    _ => draw_call(random, register.0, made, true),
                };
                tester.on_invoke(thread, call).expect("the thread makes no other call");
                under_way[thread] = Some(UnderWay { begun: now, call, answer: None });
                made += 1;
            }
            None => {}
            Some(UnderWay { begun, call, answer: None }) => {
                let answer = Some(answer_of(random, &call, &mut register, older));
                under_way[thread] = Some(UnderWay { begun, call, answer });
            }
            Some(UnderWay { begun, call, answer: Some(answer) }) => {
                tester.on_return(thread, answer).expect("the thread has made a call");
                events.push(Event { thread, key: 0, call, answer, begun, ended: now });
            }
        }
        if random.percent(15) {
            older = register;
        }
    }
    (events, tester)
}

#[test]
fn the_check_says_what_that_of_stateright_says() {
    let seed = Settings::from_environment(31, 0).seed;
    println!("seed {seed}");
    let (mut right, mut wrong) = (0, 0);
    for number in 0..1_000 {
        let (events, tester) = made_up(&mut Random::derived(seed, &[number]));
        let is_right = has_order(&events);
        assert_eq!(is_right, tester.is_consistent(), "seed {seed}, history {number}\n{}", describe(&events));
        *(if is_right { &mut right } else { &mut wrong }) += 1;
    }
    assert!(right > 50 && wrong > 50, "{right} right, {wrong} wrong");
}
