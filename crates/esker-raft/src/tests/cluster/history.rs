//! What clients have seen of one object, and whether there is an order of it.

use super::objects::{Found, Object, Use};
use std::collections::HashSet;

/// How many steps a check may take. A history of some tens of uses takes some hundreds.
const MOST_STEPS: usize = 200_000;

/// A use, between the events of its history with which it began and ended.
#[derive(Clone, Debug)]
struct Interval {
    what: Use,
    begun: usize,
    /// Nothing where the client gave up: it may have been done, may be done later, or never.
    ended: Option<(usize, Found)>,
}

/// The uses of one object.
#[derive(Clone, Debug)]
pub struct History {
    object: Object,
    uses: Vec<Interval>,
    events: usize,
}

/// What the uses of an object come to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Overlap {
    pub uses: u64,
    pub ended: u64,
    /// Those that ended, and that began while another one was under way that ended too: what one
    /// that never ends is within says little of an order.
    pub within_another: u64,
}

impl History {
    /// Of an object that nobody has used.
    pub fn new(object: Object) -> History {
        History { object, uses: Vec::new(), events: 0 }
    }

    pub fn uses(&self) -> usize {
        self.uses.len()
    }

    /// Writes down that a use begins. Its number.
    pub fn begin(&mut self, what: Use) -> usize {
        self.events += 1;
        self.uses.push(Interval { what, begun: self.events, ended: None });
        self.uses.len() - 1
    }

    /// Writes down what a use has found.
    pub fn end(&mut self, number: usize, found: Found) {
        self.events += 1;
        self.uses[number].ended = Some((self.events, found));
    }

    /// How much the uses overlap.
    pub fn overlap(&self) -> Overlap {
        let ended = |interval: &Interval| interval.ended.as_ref().map(|(ended, _)| (interval.begun, *ended));
        let all: Vec<(usize, usize)> = self.uses.iter().filter_map(ended).collect();
        let is_within = |begun: usize| all.iter().any(|(other, ended)| *other < begun && begun < *ended);
        let within = all.iter().filter(|(begun, _)| is_within(*begun)).count();
        Overlap { uses: self.uses.len() as u64, ended: all.len() as u64, within_another: within as u64 }
    }

    /// Looks for an order of all uses in which each finds what it found, and which keeps every use
    /// behind those that had ended before it began. How many steps that took, or what is wrong.
    ///
    /// The uses that are done and the state of the object decide what may follow, so that no pair
    /// of these is tried twice: without that, the steps are as many as there are orders of uses
    /// that overlap.
    pub fn check(&self) -> Result<usize, String> {
        assert!(self.uses.len() <= 64, "a bit for each use");
        let bit = |number: usize| 1u64 << number;
        let to_do = (0..self.uses.len()).filter(|number| self.uses[*number].ended.is_some());
        let to_do: u64 = to_do.map(bit).sum();
        let (mut seen, mut open, mut steps) = (HashSet::new(), vec![(0, self.object.clone())], 0);
        while let Some((done, object)) = open.pop() {
            if done & to_do == to_do {
                return Ok(steps);
            }
            steps += 1;
            if steps > MOST_STEPS {
                return Err(format!("not decided in {MOST_STEPS} steps: {self:?}"));
            }
            let left = || (0..self.uses.len()).filter(|number| done & bit(*number) == 0);
            let ends = left().filter_map(|number| self.uses[number].ended.as_ref().map(|(ended, _)| *ended));
            let first_end = ends.min().unwrap_or(usize::MAX);
            for number in left().filter(|number| self.uses[*number].begun < first_end) {
                let mut next = object.clone();
                if next.follows(&self.uses[number]) && seen.insert((done | bit(number), next.clone())) {
                    open.push((done | bit(number), next));
                }
            }
        }
        Err(format!("not linearizable: {self:?}"))
    }
}

impl Object {
    /// Goes on with that use. Whether it may be the next one.
    fn follows(&mut self, interval: &Interval) -> bool {
        use stateright::semantics::SequentialSpec;
        match &interval.ended {
            Some((_, found)) => self.is_valid_step(&interval.what, found),
            None => {
                self.invoke(&interval.what);
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::world::random;
    use super::*;
    use rand::RngExt;
    use rand::rngs::StdRng;
    use stateright::semantics::{ConsistencyTester, LinearizabilityTester, SequentialSpec};
    use std::collections::BTreeSet;

    const CLIENTS: usize = 4;

    fn draw(object: &Object, random: &mut StdRng, value: u64) -> Use {
        match (object, random.random_range(0..5)) {
            (_, 0..2) => Use::Read,
            (Object::Register(_), _) => Use::Write(value),
            (Object::Sum(_), _) => Use::Add(value),
            (_, 2) => Use::Clear,
            (_, 3) => Use::Remove(random.random_range(0..2)),
            _ => Use::Insert(random.random_range(0..2)),
        }
    }

    /// Uses of clients that overlap, of which some find what an older state has, some find nothing
    /// since they never end, and the others what is there at some moment between begin and end.
    fn history(mut object: Object, random: &mut StdRng) -> (History, LinearizabilityTester<usize, Object>) {
        let (mut history, mut tester) = (History::new(object.clone()), LinearizabilityTester::new(object.clone()));
        let mut older = object.clone();
        let mut under_way: Vec<Option<(usize, Use, Option<Found>)>> = vec![None; CLIENTS];
        for turn in 0..40 {
            let client = random.random_range(0..CLIENTS);
            match under_way[client].take() {
                None if history.uses() < 11 => {
                    let what = draw(&object, random, turn + 1);
                    tester.on_invoke(client, what.clone()).unwrap();
                    under_way[client] = Some((history.begin(what.clone()), what, None));
                }
                Some((number, what, None)) => {
                    let found = if random.random_range(0..8) == 0 { older.invoke(&what) } else { object.invoke(&what) };
                    under_way[client] = Some((number, what, Some(found)));
                }
                Some((number, _, Some(found))) => {
                    history.end(number, found.clone());
                    tester.on_return(client, found).unwrap();
                }
                None => {}
            }
            if random.random_range(0..6) == 0 {
                older = object.clone();
            }
        }
        (history, tester)
    }

    #[test]
    fn a_check_says_what_that_of_stateright_says() {
        let (mut right, mut wrong) = (0, 0);
        for seed in 0..1_500 {
            let objects = [Object::Register(0), Object::Sum(0), Object::Set(BTreeSet::new())];
            let (history, tester) = history(objects[seed as usize % 3].clone(), &mut random(seed));
            let is_right = history.check().is_ok();
            assert_eq!(is_right, tester.is_consistent(), "seed {seed}: {history:?}");
            *(if is_right { &mut right } else { &mut wrong }) += 1;
        }
        assert!(right > 100 && wrong > 100, "{right} right, {wrong} wrong");
    }

    /// Writes of six clients at a time say nothing of their order, and the last read is wrong: all
    /// orders would be more than there is time for.
    #[test]
    fn a_check_of_many_writes_at_once_ends() {
        let mut history = History::new(Object::Register(0));
        for round in 0..8 {
            let all: Vec<usize> = (0..6).map(|client| history.begin(Use::Write(round * 6 + client + 1))).collect();
            for number in all {
                history.end(number, Found::Nothing);
            }
        }
        assert!(history.check().unwrap() < 1_000);
        let read = history.begin(Use::Read);
        history.end(read, Found::Number(1));
        let what = history.check().unwrap_err();
        assert!(what.starts_with("not linearizable"), "{what}");
    }

    #[test]
    fn what_never_ends_overlaps_nothing() {
        let mut history = History::new(Object::Register(0));
        let lost = history.begin(Use::Write(1));
        let (first, second) = (history.begin(Use::Read), history.begin(Use::Read));
        history.end(first, Found::Number(1));
        history.end(second, Found::Number(0));
        let third = history.begin(Use::Read);
        history.end(third, Found::Number(1));
        assert_eq!(history.overlap(), Overlap { uses: 4, ended: 3, within_another: 1 });
        assert!(history.check().is_ok(), "the write was done between the reads");
        history.end(lost, Found::Nothing);
        let fourth = history.begin(Use::Read);
        history.end(fourth, Found::Number(0));
        assert!(history.check().is_err(), "and is not undone");
    }
}
