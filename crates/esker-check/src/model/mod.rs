//! The reference: a database as a list of versions per key, written from the meaning of the
//! operations and from nothing else.
//!
//! Every change gets the next sequence number; a commit's changes are visible together because
//! readers only ever hold the number of a commit's last change. A version holds what the key's
//! value is from then on: merges are worked out when they are committed, in the order of the
//! commits, and never again.

mod journal;
mod operator;
mod order;
#[cfg(test)]
mod tests;
mod write;

pub use journal::{After, Event, Face, Journal, Kept, Told};
use operator::longer;
pub use operator::{FAILING, MergeFails, Operator, PANICKING};
pub use order::{LONGEST_KEY, ORDERS, Order};
use std::collections::BTreeMap;
use std::sync::Arc;
pub use write::{Change, Life, Span, Ttl, Write};

/// The expiry of what never expires.
pub const NEVER: u64 = u64::MAX;

/// Bytes that many answers share.
pub type Bytes = Arc<[u8]>;

/// What a read of one key must yield.
pub type Answer = Result<Option<Bytes>, MergeFails>;

/// A visible key and its value, or the failure that reading it must yield.
pub type Entry = (Bytes, Result<Bytes, MergeFails>);

/// What a reader sees: the commits up to a sequence, as of its own reading of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At {
    /// Changes up to this one.
    pub sequence: u64,
    /// Milliseconds since the Unix epoch.
    pub now: u64,
}

#[derive(Clone, Debug)]
enum Stored {
    Absent,
    Value(Bytes),
    /// Operands that cannot be combined, and what an operator without a defect makes of them.
    Fails(Bytes),
}

#[derive(Clone, Debug)]
struct Version {
    sequence: u64,
    /// It has a value before this time only.
    expiry: u64,
    stored: Stored,
    /// Whether a merge took part since the last put or delete.
    merged: bool,
    /// Whether compaction has taken it.
    is_taken: bool,
}

impl Version {
    fn is_live(&self, now: u64) -> bool {
        !matches!(self.stored, Stored::Absent) && !self.is_taken && now < self.expiry
    }
}

/// What a key holds by its newest version, seen or not.
#[derive(Clone, Debug)]
pub struct Holding {
    /// The key.
    pub key: Bytes,
    /// Its value; where operands cannot be combined, what an operator without a defect makes of
    /// them.
    pub value: Bytes,
    /// Whether they cannot.
    pub fails: bool,
    /// Until when.
    pub expiry: u64,
    /// Whether a reader that begins now sees it: it has not expired, and compaction has not taken
    /// it.
    pub is_seen: bool,
}

#[derive(Clone, Debug)]
struct ModelKeyspace {
    operator: Operator,
    ttl: Ttl,
    order: Order,
    versions: BTreeMap<Bytes, Vec<Version>>,
    /// If it was dropped: the index it had, and the place of the drop in the order of changes.
    dropped: Option<(usize, u64)>,
}

impl ModelKeyspace {
    fn new(operator: Operator, ttl: Ttl) -> ModelKeyspace {
        ModelKeyspace { operator, ttl, order: Order::Bytewise, versions: BTreeMap::new(), dropped: None }
    }

    /// The newest version as of a sequence: it alone decides.
    fn visible(versions: &[Version], at: At) -> Option<&Version> {
        let count = match versions.last() {
            Some(newest) if newest.sequence <= at.sequence => versions.len(),
            _ => versions.partition_point(|version| version.sequence <= at.sequence),
        };
        versions[..count].last().filter(|version| version.is_live(at.now))
    }

    fn find(&self, key: &[u8], at: At) -> Option<&Version> {
        ModelKeyspace::visible(self.versions.get(key)?, at)
    }

    fn expiry(&self, life: Life, now: u64) -> u64 {
        match (life.settled(now), self.ttl) {
            (Life::For(milliseconds), _) | (Life::Usual, Ttl::On(Some(milliseconds))) => {
                now.saturating_add(milliseconds)
            }
            (Life::Until(time), _) => time,
            _ => NEVER,
        }
    }

    fn push(&mut self, key: &[u8], version: Version) {
        match self.versions.get_mut(key) {
            Some(versions) => versions.push(version),
            None => _ = self.versions.insert(key.into(), vec![version]),
        }
    }

    fn change(&mut self, write: &Write, sequence: u64, now: u64) {
        let (stored, expiry, merged) = match &write.change {
            Change::Put(value) => (Stored::Value(value.as_slice().into()), self.expiry(write.life, now), false),
            Change::Delete => (Stored::Absent, NEVER, false),
            Change::Merge(operand) => {
                let (stored, expiry) = self.merged(write, operand, now);
                (stored, expiry, true)
            }
            Change::Expire => {
                let newest = self.versions.get(write.key.as_slice()).and_then(|versions| versions.last());
                let Some(Version { stored, merged, .. }) = newest.filter(|newest| newest.is_live(now)) else { return };
                let expiry = if write.life == Life::Usual { NEVER } else { self.expiry(write.life, now) };
                (stored.clone(), expiry, *merged)
            }
            Change::DeleteRange(..) | Change::DeletePrefix(_) => {
                return self.delete_span(&write.touched(), sequence);
            }
        };
        self.push(&write.key, Version { sequence, expiry, stored, merged, is_taken: false });
    }

    /// Onto a live key: with its expiry, unless the merge brings its own. Otherwise from nothing.
    fn merged(&self, write: &Write, operand: &[u8], now: u64) -> (Stored, u64) {
        let newest = self.versions.get(write.key.as_slice()).and_then(|versions| versions.last());
        let live = newest.filter(|version| version.is_live(now));
        let (existing, has_failed) = match live.map(|version| &version.stored) {
            Some(Stored::Value(value)) => (Some(&value[..]), false),
            Some(Stored::Fails(value)) => (Some(&value[..]), true),
            Some(Stored::Absent) | None => (None, false),
        };
        let stored = match self.operator.combine(existing, operand) {
            Ok(Some(value)) if !has_failed => Stored::Value(value.into()),
            Ok(None) if !has_failed => Stored::Absent,
            // What could not be combined once never can be, until it is overwritten.
            _ => Stored::Fails(longer(existing, operand).into()),
        };
        let expiry = match (write.life, live) {
            (Life::Usual, Some(version)) => version.expiry,
            (life, _) => self.expiry(life, now),
        };
        (stored, expiry)
    }

    fn delete_span(&mut self, span: &Span, sequence: u64) {
        let order = self.order;
        if order != Order::Bytewise {
            for (_, versions) in self.versions.iter_mut().filter(|(key, _)| order.contains(span, key)) {
                delete(versions, sequence);
            }
            return;
        }
        if span.first().is_none() {
            return;
        }
        for (key, versions) in self.versions.range_mut::<[u8], _>(span.upwards()) {
            if span.is_past(key) {
                break;
            }
            if span.contains(key) {
                delete(versions, sequence);
            }
        }
    }
}

/// Deletes a key, unless nothing of it is there.
fn delete(versions: &mut Vec<Version>, sequence: u64) {
    let gone = versions.last().is_none_or(|version| matches!(version.stored, Stored::Absent) && !version.merged);
    if !gone {
        let stored = Stored::Absent;
        versions.push(Version { sequence, expiry: NEVER, stored, merged: false, is_taken: false });
    }
}

/// A database with its history.
#[derive(Clone, Debug)]
pub struct Model {
    /// Those that there are, and behind them those that were dropped.
    keyspaces: Vec<ModelKeyspace>,
    /// How many there are.
    living: usize,
    sequence: u64,
    now: u64,
    /// Copies of a model share it until one of them goes on.
    journal: Option<Arc<Journal>>,
}

impl Model {
    /// An empty database with a keyspace per operator, none of which lets entries expire.
    pub fn new(operators: &[Operator]) -> Model {
        let keyspaces: Vec<_> = operators.iter().map(|&operator| (operator, Ttl::Off)).collect();
        Model::with_ttl(&keyspaces)
    }

    /// An empty database with these keyspaces.
    pub fn with_ttl(keyspaces: &[(Operator, Ttl)]) -> Model {
        let living = keyspaces.len();
        let keyspaces = keyspaces.iter().map(|&(operator, ttl)| ModelKeyspace::new(operator, ttl)).collect();
        Model { keyspaces, living, sequence: 0, now: 0, journal: None }
    }

    /// Gives a keyspace, which is empty, another order.
    pub fn set_order(&mut self, keyspace: usize, order: Order) {
        self.keyspaces[keyspace].order = order;
    }

    /// The order of a keyspace.
    pub fn order(&self, keyspace: usize) -> Order {
        self.keyspaces[keyspace].order
    }

    /// How many keyspaces there are.
    pub fn keyspace_count(&self) -> usize {
        self.living
    }

    /// Drops a keyspace, as one change with a place of its own, and creates an empty one in its
    /// place, in the same order. The index of the dropped one from now on: what comes before the
    /// drop is seen there.
    pub fn drop_keyspace(&mut self, keyspace: usize, (operator, ttl): (Operator, Ttl)) -> usize {
        self.sequence += 1;
        let order = self.keyspaces[keyspace].order;
        let next = ModelKeyspace { order, ..ModelKeyspace::new(operator, ttl) };
        let mut old = std::mem::replace(&mut self.keyspaces[keyspace], next);
        old.dropped = Some((keyspace, self.sequence));
        self.keyspaces.push(old);
        if let Some(mut shared) = self.journal.take() {
            let journal = Arc::make_mut(&mut shared);
            self.note(journal, Told::Drop, &[(keyspace, After::Whole(BTreeMap::new()))]);
            let name = journal.name(keyspace);
            journal.begin_life(keyspace, &name);
            self.journal = Some(shared);
        }
        self.keyspaces.len() - 1
    }

    /// Where a reader at that sequence finds the keyspace that had this index then.
    pub fn incarnation(&self, keyspace: usize, sequence: u64) -> usize {
        let dropped = self.keyspaces.iter().enumerate().skip(self.living);
        let later = dropped.filter_map(|(index, other)| {
            let (was, at) = other.dropped?;
            (was == keyspace && at > sequence).then_some((at, index))
        });
        later.min().map_or(keyspace, |(_, index)| index)
    }

    /// The index of the keyspace that was dropped last of those that had this one.
    pub fn last_dropped(&self, keyspace: usize) -> Option<usize> {
        let had = |other: &ModelKeyspace| other.dropped.is_some_and(|(was, _)| was == keyspace);
        (self.living..self.keyspaces.len()).rev().find(|&index| had(&self.keyspaces[index]))
    }

    /// How many keyspaces were dropped and are not forgotten.
    pub fn dropped_count(&self) -> usize {
        self.keyspaces.len() - self.living
    }

    /// Forgets the keyspaces that were dropped: nobody has a handle of them.
    pub fn forget_dropped(&mut self) {
        self.keyspaces.truncate(self.living);
    }

    /// Other settings for a keyspace that has no past.
    pub fn set_settings(&mut self, keyspace: usize, (operator, ttl): (Operator, Ttl)) {
        (self.keyspaces[keyspace].operator, self.keyspaces[keyspace].ttl) = (operator, ttl);
    }

    /// Other settings for a keyspace: for what is written from now on.
    pub fn alter(&mut self, keyspace: usize, settings: (Operator, Ttl)) {
        self.set_settings(keyspace, settings);
        if let Some(mut shared) = self.journal.take() {
            let journal = Arc::make_mut(&mut shared);
            self.note(journal, Told::Alter(journal.name(keyspace)), &[(keyspace, After::Keys(Vec::new()))]);
            self.journal = Some(shared);
        }
    }

    /// Another name for a keyspace.
    pub fn rename(&mut self, keyspace: usize, name: &str) {
        if let Some(mut shared) = self.journal.take() {
            let journal = Arc::make_mut(&mut shared);
            let told = Told::Alter(journal.name(keyspace));
            journal.set_name(keyspace, name);
            self.note(journal, told, &[(keyspace, After::Keys(Vec::new()))]);
            self.journal = Some(shared);
        }
    }

    /// Keeps a journal from now on, of keyspaces with these names.
    pub fn keep_journal(&mut self, journal: Journal) {
        self.journal = Some(Arc::new(journal));
    }

    /// The journal, if one is kept.
    pub fn journal(&self) -> Option<&Journal> {
        self.journal.as_deref()
    }

    /// The same to be changed.
    pub fn journal_mut(&mut self) -> Option<&mut Journal> {
        self.journal.as_mut().map(Arc::make_mut)
    }

    /// Says what readers of changes are told of the last commit, where that is not its writes.
    pub fn retell(&mut self, told: impl FnOnce(Told) -> Told) {
        if let Some(journal) = self.journal_mut() {
            journal.retell(told);
        }
    }

    /// Notes an event that concerns these keyspaces.
    fn note(&self, journal: &mut Journal, told: Told, after: &[(usize, After)]) {
        let face = |index: usize| journal.face(index, self.settings(index), self.order(index));
        let faces = after.iter().map(|(index, _)| (*index, face(*index))).collect();
        journal.push(told, faces, after.iter().cloned().collect(), self.now);
    }

    fn kept(version: &Version) -> Option<Kept> {
        match &version.stored {
            Stored::Absent => None,
            Stored::Value(value) => Some(Kept::Value(Arc::clone(value), version.expiry)),
            Stored::Fails(_) => Some(Kept::Fails(version.expiry)),
        }
    }

    /// Everything that a keyspace holds, expired or not: a clock that steps back finds it alive
    /// again. Also what compaction has taken, as readers of changes are told nothing of that.
    fn contents(&self, keyspace: usize) -> After {
        let all = self.keyspaces[keyspace].versions.iter();
        let kept = |(key, versions): (&Bytes, &Vec<Version>)| Some((Arc::clone(key), Model::kept(versions.last()?)?));
        After::Whole(all.filter_map(kept).collect())
    }

    /// What the keyspaces of these writes hold now.
    fn after(&self, writes: &[Write]) -> Vec<(usize, After)> {
        let mut indexes: Vec<usize> = writes.iter().map(|write| write.keyspace).collect();
        indexes.sort_unstable();
        indexes.dedup();
        let of = |index: usize| {
            let own = || writes.iter().filter(|write| write.keyspace == index);
            if own().any(|write| write.change.is_range()) {
                return (index, self.contents(index));
            }
            let keys = own().map(|write| {
                let newest = self.keyspaces[index].versions.get(write.key.as_slice()).and_then(|all| all.last());
                (Bytes::from(write.key.as_slice()), newest.and_then(Model::kept))
            });
            (index, After::Keys(keys.collect()))
        };
        indexes.into_iter().map(of).collect()
    }

    /// Notes that everything is as it is, however it came to be.
    pub fn note_contents(&mut self) {
        if let Some(mut shared) = self.journal.take() {
            let journal = Arc::make_mut(&mut shared);
            let all: Vec<_> = (0..self.living).map(|index| (index, self.contents(index))).collect();
            self.note(journal, Told::Nothing, &all);
            self.journal = Some(shared);
        }
    }

    /// Whether the write comes to an operation at all: a range that can hold a key, a change of the
    /// expiry of what has a value.
    pub fn is_told(&self, write: &Write) -> bool {
        match &write.change {
            Change::Expire => self.keyspaces[write.keyspace].find(&write.key, self.present()).is_some(),
            Change::DeleteRange(..) | Change::DeletePrefix(_) => {
                self.order(write.keyspace).meets(&write.touched(), &write.touched())
            }
            _ => true,
        }
    }

    /// Whether the operator has failed on a key of the keyspace that nothing has overwritten for
    /// every reader.
    pub fn has_failed(&self, keyspace: usize) -> bool {
        let mut versions = self.keyspaces[keyspace].versions.values().flatten();
        versions.any(|version| matches!(version.stored, Stored::Fails(_)))
    }

    /// What each key of a keyspace holds, in the order of their bytes.
    pub fn holdings(&self, keyspace: usize) -> Vec<Holding> {
        let all = self.keyspaces[keyspace].versions.iter();
        let holding = |(key, versions): (&Bytes, &Vec<Version>)| {
            let version = versions.last()?;
            let (value, fails) = match &version.stored {
                Stored::Absent => return None,
                Stored::Value(value) => (Arc::clone(value), false),
                Stored::Fails(value) => (Arc::clone(value), true),
            };
            let (key, is_seen) = (Arc::clone(key), version.is_live(self.now));
            Some(Holding { key, value, fails, expiry: version.expiry, is_seen })
        };
        all.filter_map(holding).collect()
    }

    /// Gives a key what it held in another database, whatever the settings say of lives.
    pub fn restore(&mut self, keyspace: usize, key: &[u8], (value, fails): (&[u8], bool), expiry: u64) {
        self.sequence += 1;
        let stored = if fails { Stored::Fails(value.into()) } else { Stored::Value(value.into()) };
        let version = Version { sequence: self.sequence, expiry, stored, merged: fails, is_taken: false };
        self.keyspaces[keyspace].push(key, version);
    }

    /// Notes whether compaction has taken what a key holds. Readers of changes are told nothing of
    /// that.
    pub fn note_taken(&mut self, keyspace: usize, key: &[u8], is_taken: bool) {
        let newest = self.keyspaces[keyspace].versions.get_mut(key).and_then(|versions| versions.last_mut());
        if let Some(version) = newest {
            version.is_taken = is_taken;
        }
    }

    /// The settings of a keyspace.
    pub fn settings(&self, keyspace: usize) -> (Operator, Ttl) {
        (self.keyspaces[keyspace].operator, self.keyspaces[keyspace].ttl)
    }

    /// The operator of a keyspace.
    pub fn operator(&self, keyspace: usize) -> Operator {
        self.keyspaces[keyspace].operator
    }

    /// Whether entries of a keyspace can expire.
    pub fn has_ttl(&self, keyspace: usize) -> bool {
        self.keyspaces[keyspace].ttl != Ttl::Off
    }

    /// The time from now on, in milliseconds since the Unix epoch.
    pub fn set_now(&mut self, now: u64) {
        self.now = now;
    }

    /// What a read made now sees.
    pub fn present(&self) -> At {
        At { sequence: self.sequence, now: self.now }
    }

    /// Whether the write is visibly wrong and must be refused before anything is written.
    pub fn refuses(&self, write: &Write) -> bool {
        let keyspace = &self.keyspaces[write.keyspace];
        if write.key.len() > keyspace.order.longest_key() || write.life == Life::For(0) {
            return true;
        }
        if (write.life != Life::Usual || write.change == Change::Expire) && keyspace.ttl == Ttl::Off {
            return true;
        }
        match &write.change {
            Change::Merge(operand) => keyspace.operator.refuses(operand),
            Change::DeletePrefix(_) => !keyspace.order.has_prefixes(),
            _ => false,
        }
    }

    /// Applies the writes in order as one unit, now, and yields what sees them all.
    pub fn commit(&mut self, writes: &[Write]) -> At {
        let mut told = Vec::new();
        for write in writes {
            if self.journal.is_some() && self.is_told(write) {
                told.push(write.clone());
            }
            self.sequence += 1;
            self.keyspaces[write.keyspace].change(write, self.sequence, self.now);
        }
        if let Some(mut shared) = self.journal.take() {
            let journal = Arc::make_mut(&mut shared);
            let told = if told.is_empty() { Told::Nothing } else { Told::Batch(told) };
            self.note(journal, told, &self.after(writes));
            self.journal = Some(shared);
        }
        self.present()
    }

    /// The value of a key.
    pub fn get(&self, keyspace: usize, key: &[u8], at: At) -> Answer {
        match self.keyspaces[keyspace].find(key, at).map(|version| &version.stored) {
            Some(Stored::Value(value)) => Ok(Some(value.clone())),
            Some(Stored::Fails(_)) => Err(MergeFails),
            Some(Stored::Absent) | None => Ok(None),
        }
    }

    /// When a key that is there expires: [`NEVER`], or milliseconds since the Unix epoch.
    pub fn expires_at(&self, keyspace: usize, key: &[u8], at: At) -> Option<u64> {
        self.keyspaces[keyspace].find(key, at).map(|version| version.expiry)
    }

    /// Whether a merge took part in what the key holds, or in its not being there, since the last
    /// put or delete.
    pub fn is_merged(&self, keyspace: usize, key: &[u8], at: At) -> bool {
        let versions = self.keyspaces[keyspace].versions.get(key);
        let visible = versions.and_then(|all| all.iter().rev().find(|version| version.sequence <= at.sequence));
        visible.is_some_and(|version| version.merged)
    }

    /// The visible entries of a span in key order.
    pub fn scan(&self, keyspace: usize, span: &Span, at: At) -> Vec<Entry> {
        let order = self.keyspaces[keyspace].order;
        let mut entries = Vec::new();
        let mut take = |key: &Bytes, versions: &[Version]| match ModelKeyspace::visible(versions, at)
            .map(|version| &version.stored)
        {
            Some(Stored::Value(value)) => entries.push((key.clone(), Ok(value.clone()))),
            Some(Stored::Fails(_)) => entries.push((key.clone(), Err(MergeFails))),
            Some(Stored::Absent) | None => {}
        };
        if order != Order::Bytewise {
            let inside = self.keyspaces[keyspace].versions.iter().filter(|(key, _)| order.contains(span, key));
            inside.for_each(|(key, versions)| take(key, versions));
            entries.sort_by(|a, b| order.compare(&a.0, &b.0));
            return entries;
        }
        for (key, versions) in self.keyspaces[keyspace].versions.range::<[u8], _>(span.upwards()) {
            if span.is_past(key) {
                break;
            }
            if span.contains(key) {
                take(key, versions);
            }
        }
        entries
    }

    /// The first visible entry of a keyspace, or the last.
    pub fn end(&self, keyspace: usize, first: bool, at: At) -> Option<Entry> {
        let entries = self.scan(keyspace, &Span::All, at);
        if first { entries.into_iter().next() } else { entries.into_iter().next_back() }
    }

    /// How many visible entries a span has.
    pub fn count(&self, keyspace: usize, span: &Span, at: At) -> Result<u64, MergeFails> {
        self.scan(keyspace, span, at).into_iter().try_fold(0, |count, (_, value)| value.map(|_| count + 1))
    }

    /// Every key of a keyspace that the model still knows anything about, visible or not.
    pub fn known_keys(&self, keyspace: usize) -> Vec<Bytes> {
        self.keyspaces[keyspace].versions.keys().cloned().collect()
    }

    /// The next time at which something expires.
    pub fn next_expiry(&self) -> Option<u64> {
        let newest = self.keyspaces.iter().flat_map(|keyspace| keyspace.versions.values()).filter_map(|all| all.last());
        newest.map(|version| version.expiry).filter(|&expiry| expiry > self.now && expiry < NEVER).min()
    }

    /// Drops the versions that neither the present nor a reader at one of these sequences,
    /// ascending, can see.
    pub fn forget_unseen(&mut self, readers: &[u64]) {
        for keyspace in &mut self.keyspaces {
            keyspace.versions.retain(|_, versions| {
                if versions.len() > 1 {
                    let nexts: Vec<u64> = versions[1..].iter().map(|version| version.sequence).collect();
                    let mut index = 0;
                    versions.retain(|version| {
                        let next = nexts.get(index);
                        index += 1;
                        // The first reader that sees this version must not see the next one yet.
                        let reader = readers.get(readers.partition_point(|&reader| reader < version.sequence));
                        next.is_none_or(|next| reader.is_some_and(|reader| reader < next))
                    });
                }
                // Before its first version a key is absent anyway.
                let first =
                    versions.iter().position(|version| !matches!(version.stored, Stored::Absent) || version.merged);
                versions.drain(..first.unwrap_or(versions.len()));
                !versions.is_empty()
            });
        }
    }

    /// A database that holds what a reader sees, and nothing of how it came to be.
    pub fn copy_at(&self, at: At) -> Model {
        let mut copy =
            Model { keyspaces: Vec::new(), living: self.living, sequence: at.sequence, now: at.now, journal: None };
        for keyspace in &self.keyspaces {
            let visible = |(key, versions): (&Bytes, &Vec<Version>)| {
                let version = ModelKeyspace::visible(versions, at)?;
                Some((key.clone(), vec![version.clone()]))
            };
            let versions = keyspace.versions.iter().filter_map(visible).collect();
            let order = keyspace.order;
            copy.keyspaces.push(ModelKeyspace {
                versions,
                order,
                ..ModelKeyspace::new(keyspace.operator, keyspace.ttl)
            });
        }
        copy
    }
}
