//! What readers of changes are to be told: the commits of a model, in their order.

use super::operator::Operator;
use super::order::Order;
use super::write::{Ttl, Write};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a key holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    /// A value, and until when.
    Value(Arc<[u8]>, u64),
    /// Operands that cannot be combined, and until when.
    Fails(u64),
}

impl Kept {
    /// Whether it is there at that time.
    pub fn is_live(&self, now: u64) -> bool {
        let (Kept::Value(_, expiry) | Kept::Fails(expiry)) = self;
        now < *expiry
    }
}

/// What a keyspace holds behind an event.
#[derive(Clone, Debug)]
pub enum After {
    /// These keys; the others hold what they held.
    Keys(Vec<(Arc<[u8]>, Option<Kept>)>),
    /// These keys and no others.
    Whole(BTreeMap<Arc<[u8]>, Kept>),
}

/// What is told.
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    /// Nothing: it is in no log, or changes nothing.
    Nothing,
    /// Nothing of these writes, which are in no log.
    Unlogged(Vec<Write>),
    /// A batch with an operation for each of these writes, in this order, where nothing expires.
    Batch(Vec<Write>),
    /// A batch that may come to the same with fewer operations.
    Transaction(Vec<Write>),
    /// A load of pairs that are not listed.
    Load,
    /// That the keyspace was dropped.
    Drop,
    /// That it has another name or other settings, and the name that it had before.
    Alter(Arc<str>),
}

impl Told {
    /// Whether readers of changes are told of it.
    pub fn is_told(&self) -> bool {
        !matches!(self, Told::Nothing | Told::Unlogged(_))
    }
}

/// A keyspace at one place in the order of writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Face {
    /// A number that no other keyspace has.
    pub life: usize,
    /// Its name.
    pub name: Arc<str>,
    /// Its merge operator.
    pub operator: Operator,
    /// Whether its entries expire.
    pub ttl: Ttl,
    /// The order of its keys.
    pub order: Order,
}

/// One event of the journal.
#[derive(Clone, Debug)]
pub struct Event {
    /// What is told of it.
    pub told: Told,
    /// The keyspaces that it concerns, by their index.
    pub faces: BTreeMap<usize, Face>,
    /// What they hold then.
    pub after: BTreeMap<usize, After>,
    /// The time of it.
    pub now: u64,
    /// The names of all keyspaces behind it, and the numbers of their lives.
    present: Vec<(Arc<str>, usize)>,
}

/// The events so far.
#[derive(Clone, Debug, Default)]
pub struct Journal {
    /// In order.
    pub events: Vec<Event>,
    first: Vec<(Arc<str>, usize)>,
    /// The present names of the keyspaces, and the number of the life of each.
    present: Vec<(Arc<str>, usize)>,
    lives: usize,
}

impl Journal {
    /// Of keyspaces with these names.
    pub fn new(names: &[&str]) -> Journal {
        let present: Vec<_> = names.iter().enumerate().map(|(life, name)| (Arc::from(*name), life)).collect();
        Journal { events: Vec::new(), first: present.clone(), present, lives: names.len() }
    }

    /// The present name of a keyspace.
    pub fn name(&self, keyspace: usize) -> Arc<str> {
        Arc::clone(&self.present[keyspace].0)
    }

    /// Gives it another name.
    pub fn set_name(&mut self, keyspace: usize, name: &str) {
        self.present[keyspace].0 = name.into();
    }

    /// It ends, and another one of that name may begin.
    pub fn begin_life(&mut self, keyspace: usize, name: &str) {
        self.present[keyspace] = (name.into(), self.lives);
        self.lives += 1;
        if let Some(last) = self.events.last_mut() {
            last.present.clone_from(&self.present);
        }
    }

    /// Notes an event.
    pub fn push(&mut self, told: Told, faces: BTreeMap<usize, Face>, after: BTreeMap<usize, After>, now: u64) {
        self.events.push(Event { told, faces, after, now, present: self.present.clone() });
    }

    /// Only the first so many events have happened.
    pub fn truncate(&mut self, events: usize) {
        self.events.truncate(events);
        self.present.clone_from(self.events.last().map_or(&self.first, |last| &last.present));
    }

    /// Behind the last event that is a change of a name or of settings.
    pub fn behind_alterations(&self) -> usize {
        self.events.iter().rposition(|event| matches!(event.told, Told::Alter(_))).map_or(0, |index| index + 1)
    }

    /// A keyspace behind the last change of its name or settings among the first so many events;
    /// none if there is none since its life began.
    pub fn last_altered(&self, events: usize, keyspace: usize) -> Option<&Face> {
        let own =
            self.events[..events].iter().rev().filter_map(|event| Some((&event.told, event.faces.get(&keyspace)?)));
        let mut last = own.filter(|(told, _)| matches!(told, Told::Alter(_) | Told::Drop));
        last.next().filter(|(told, _)| **told != Told::Drop).map(|(_, face)| face)
    }

    /// The keyspace with these settings.
    pub fn face(&self, keyspace: usize, (operator, ttl): (Operator, Ttl), order: Order) -> Face {
        let (name, life) = self.present[keyspace].clone();
        Face { life, name, operator, ttl, order }
    }

    /// Says what is told of the last event, where that is not what its writes say.
    pub fn retell(&mut self, told: impl FnOnce(Told) -> Told) {
        if let Some(last) = self.events.last_mut() {
            last.told = told(std::mem::replace(&mut last.told, Told::Nothing));
        }
    }

    /// The events from one on that readers are told of.
    pub fn told_from(&self, first: usize, end: usize) -> Vec<usize> {
        (first..end).filter(|&event| self.events[event].told.is_told()).collect()
    }
}
