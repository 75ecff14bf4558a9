//! Random operations, wholly determined by a seed.

mod content;
mod feed;
mod operation;

use crate::cast::{self, Features, Role};
use crate::model::{Change, LONGEST_KEY, Life, ORDERS, Operator, Order, Span, Ttl, Write};
use crate::random::Random;
use crate::state::Durability;
pub use feed::{FeedOperation, Start};
pub use operation::{Expected, Move, Operation, SLOTS, Source, Tick, TransactionStep};
use std::ops::Bound;

/// How often what is done.
#[derive(Clone, Copy, Debug)]
struct Shares {
    write_percent: usize,
    maintenance_permille: usize,
    /// Of the writes.
    range_percent: usize,
    tick_permille: usize,
    transaction_permille: usize,
    drop_permille: usize,
    settings_permille: usize,
    load_permille: usize,
    feed_permille: usize,
}

impl Shares {
    /// Those of a run. `ticks`: something expires. `pick`: which of those that there are.
    fn choose(features: Features, ticks: bool, pick: &mut dyn FnMut(&[usize]) -> usize) -> Shares {
        let mut of = |is_on: bool, shares: &[usize]| if is_on { pick(shares) } else { 0 };
        Shares {
            write_percent: of(true, &[15, 40, 60, 85]),
            maintenance_permille: of(true, &[1, 3, 10, 30]),
            range_percent: of(features.ranges, &[0, 2, 5]),
            tick_permille: of(ticks, &[5, 20, 60]),
            transaction_permille: of(features.transactions, &[0, 5, 40]),
            drop_permille: of(features.drops, &[0, 4, 15]),
            settings_permille: of(features.settings, &[0, 3, 12]),
            load_permille: of(features.loads, &[0, 2, 6]),
            feed_permille: of(features.changes, &[0, 10, 60]),
        }
    }

    /// Those of a search, in which the rarest feature is not rare.
    fn of_search(features: Features) -> Shares {
        let of = |is_on: bool, share: usize| if is_on { share } else { 0 };
        Shares {
            write_percent: 80,
            maintenance_permille: 0,
            range_percent: of(features.ranges, 20),
            tick_permille: 0,
            transaction_permille: of(features.transactions, 150),
            drop_permille: of(features.drops, 150),
            settings_permille: of(features.settings, 150),
            load_permille: of(features.loads, 150),
            feed_permille: of(features.changes, 250),
        }
    }
}

/// Makes the operations of one run.
pub struct Generator {
    random: Random,
    features: Features,
    /// The keyspaces as the run begins.
    cast: Vec<Role>,
    /// The same as the operations so far leave them.
    present: Vec<Role>,
    keys: Vec<Vec<u8>>,
    /// The same in each of the orders.
    ordered: [Vec<Vec<u8>>; ORDERS.len()],
    shares: Shares,
}

impl Generator {
    /// The run of that seed.
    pub fn new(seed: u64, features: Features) -> Generator {
        Generator::choosing(Random::new(seed), features)
    }

    /// The run that this stream chooses.
    pub fn choosing(mut random: Random, features: Features) -> Generator {
        let cast = cast::choose(&mut random, features);
        let keys = content::key_pool(&mut random);
        let ordered = ORDERS.map(|order| {
            let mut ordered = keys.clone();
            ordered.sort_by(|a, b| order.compare(a, b));
            ordered
        });
        let shares = Shares::choose(features, ticks(&cast), &mut |shares| shares[random.below(shares.len())]);
        Generator { random, features, present: cast.clone(), cast, keys, ordered, shares }
    }

    /// The keyspaces of the run, as it begins.
    pub fn cast(&self) -> &[Role] {
        &self.cast
    }

    /// That many operations, the last of them a comparison of everything.
    pub fn operations(&mut self, count: usize) -> Vec<Operation> {
        self.collect(count, Generator::operation)
    }

    /// The same; half of those that are free to be anything are ones that are `wanted`, if such are
    /// found by trying. The others stay as they come, so that there is something to want it on.
    pub fn operations_mostly(&mut self, count: usize, wanted: &dyn Fn(&Operation) -> bool) -> Vec<Operation> {
        let mut is_found = true;
        self.collect(count, |generator| {
            if is_found && generator.random.percent(50) {
                let found = generator.search(wanted);
                // Keyspaces without the feature will go on without it.
                is_found = found.is_some();
                if let Some(operation) = found {
                    return operation;
                }
            }
            generator.operation()
        })
    }

    fn collect(&mut self, count: usize, mut next: impl FnMut(&mut Generator) -> Operation) -> Vec<Operation> {
        let mut operations = self.beginning();
        operations.truncate(count.saturating_sub(1));
        while operations.len() + 1 < count {
            operations.push(next(self));
        }
        operations.push(Operation::CompareAll);
        operations
    }

    /// The first of some hundred operations that is `wanted`.
    fn search(&mut self, wanted: &dyn Fn(&Operation) -> bool) -> Option<Operation> {
        const MOST: usize = 1000;
        let usual = std::mem::replace(&mut self.shares, Shares::of_search(self.features));
        let mut found = None;
        for _ in 0..MOST {
            let before = self.present.clone();
            let operation = self.operation();
            if wanted(&operation) {
                found = Some(operation);
                break;
            }
            // What is not made changes nothing.
            self.present = before;
        }
        self.shares = usual;
        found
    }

    fn operation(&mut self) -> Operation {
        if self.random.below(1000) < self.shares.maintenance_permille {
            return self.maintenance();
        }
        if self.random.below(1000) < self.shares.tick_permille {
            return Operation::Clock(self.tick());
        }
        if self.random.below(1000) < self.shares.transaction_permille {
            return self.transaction();
        }
        if self.random.below(1000) < self.shares.drop_permille {
            return self.drop_operation();
        }
        if self.random.below(1000) < self.shares.settings_permille {
            return self.settings_operation();
        }
        if self.random.below(1000) < self.shares.load_permille {
            return self.load();
        }
        if self.random.below(1000) < self.shares.feed_permille {
            return self.feed_operation();
        }
        if self.random.percent(self.shares.write_percent) {
            return self.write_operation();
        }
        self.read_operation()
    }

    /// Drops a keyspace, or makes use of one that was.
    fn drop_operation(&mut self) -> Operation {
        let keyspace = self.keyspace();
        match self.random.below(10) {
            0..=3 => {
                let role = &mut self.present[keyspace];
                if self.random.percent(40) && role.operator != Operator::Shelved {
                    (role.operator, role.ttl) = cast::other_settings(&mut self.random, self.features);
                }
                Operation::DropKeyspace(keyspace, role.operator, role.ttl)
            }
            4..=6 => {
                let (call, write) = (self.random.below(64), self.write());
                Operation::UseDropped(keyspace, call, write)
            }
            7..=8 => {
                let count = self.random.between(1, 4);
                Operation::BatchOnDropped(keyspace, (0..count).map(|_| self.sound_write()).collect())
            }
            _ => Operation::Clear(keyspace),
        }
    }

    /// Another name, operator or life for a keyspace.
    fn settings_operation(&mut self) -> Operation {
        // Those take any operand, so that what is written afterwards is refused by none of them.
        const OPERATORS: [Operator; 5] =
            [Operator::StringAppend, Operator::Max, Operator::Min, Operator::Put, Operator::Longest];
        let (keyspace, features) = (self.keyspace(), self.features);
        let any = OPERATORS[self.random.below(OPERATORS.len() - usize::from(!features.custom))];
        let (choice, alone) = (self.random.below(10), self.random.percent(70));
        let default = [None, Some(200), Some(300)][self.random.below(3)];
        let role = &mut self.present[keyspace];
        let is_sound = !matches!(role.operator, Operator::Fragile | Operator::Shelved);
        match choice {
            0..=3 if role.operator == Operator::None || OPERATORS.contains(&role.operator) => {
                role.operator = any;
                Operation::Alter(keyspace, any, role.ttl, alone)
            }
            4..=6 if is_sound && features.ttl => {
                role.ttl = Ttl::On(default);
                Operation::Alter(keyspace, role.operator, role.ttl, true)
            }
            _ => Operation::Rename(keyspace),
        }
    }

    fn maintenance(&mut self) -> Operation {
        if self.features.maintenance && self.random.percent(15) {
            let (keyspace, low, high) = (self.keyspace(), self.bound(), self.bound());
            return match self.random.below(5) {
                0..=1 => Operation::CompactRange(keyspace, low, high),
                2..=3 => Operation::ApproximateSize(keyspace, low, high),
                _ => Operation::ReadBeside,
            };
        }
        match self.random.below(44) {
            0..=15 => Operation::Flush,
            16..=20 => Operation::Compact,
            21..=25 => Operation::CompactKeyspace(self.keyspace()),
            26..=27 => Operation::WaitIdle,
            28..=29 => Operation::Verify,
            30 => Operation::Checkpoint,
            31..=33 => Operation::CompareAll,
            34..=37 => Operation::Reopen(self.random.percent(60)),
            38..=39 => Operation::DropAndReopen,
            _ => Operation::Kill,
        }
    }

    fn tick(&mut self) -> Tick {
        match self.random.below(100) {
            0..=14 if self.features.clock_back => Tick::Back(self.random.between(1, 2000) as u64),
            15..=39 if self.features.clock_back => Tick::Ahead(self.random.between(1, 2000) as u64),
            0..=39 => Tick::Ahead(self.random.between(1, 10) as u64),
            40..=79 => Tick::ToExpiry(self.random.below(3) as i64 - 1),
            80..=97 => Tick::Ahead(self.random.between(10, 300) as u64),
            _ => Tick::Ahead(self.random.between(300, 1 << 40) as u64),
        }
    }

    fn write_operation(&mut self) -> Operation {
        let durability = match self.random.below(40) {
            0 => Durability::Sync,
            1 => Durability::Unlogged,
            _ => Durability::Async,
        };
        if self.random.percent(25) {
            let count = match self.random.below(12) {
                0 => 0,
                11 => self.random.between(10, 60),
                _ => self.random.between(1, 8),
            };
            return Operation::Batch((0..count).map(|_| self.write()).collect(), durability);
        }
        if self.random.percent(3) {
            return Operation::PopFirst(self.keyspace());
        }
        if self.random.percent(15) {
            let expected = match self.random.below(5) {
                0..=1 => Expected::Current,
                2..=3 => Expected::Absent,
                _ => Expected::Other,
            };
            return Operation::OnValue(self.write(), expected, durability);
        }
        let mut write = self.write();
        if self.random.below(500) == 0 && !write.change.is_range() {
            let beyond = self.random.below(2);
            write.key = vec![b'k'; LONGEST_KEY + beyond];
        }
        Operation::Write(write, durability)
    }

    /// What a run with changes begins with.
    fn beginning(&mut self) -> Vec<Operation> {
        if self.shares.feed_permille == 0 || self.random.percent(20) {
            return Vec::new();
        }
        vec![Operation::Feed(FeedOperation::Keep(feed::retention(&mut self.random))), Operation::Reopen(true)]
    }

    fn feed_operation(&mut self) -> Operation {
        let (slot, keyspace, key) = (self.random.below(SLOTS), self.keyspace(), self.key());
        Operation::Feed(feed::choose(&mut self.random, slot, keyspace, key))
    }

    /// A load of some pairs, seldom in a wrong order.
    fn load(&mut self) -> Operation {
        let (keyspace, count) = (self.keyspace(), self.random.between(1, 20));
        let Role { operator, .. } = self.present[keyspace];
        let order = self.present[keyspace].order();
        let mut pairs: Vec<_> = (0..count).map(|_| (self.key(), content::value(&mut self.random, operator))).collect();
        pairs.sort_by(|a, b| order.compare(&a.0, &b.0));
        pairs.dedup_by(|a, b| a.0 == b.0);
        if self.random.percent(3) {
            pairs.reverse();
        }
        Operation::Load(keyspace, pairs)
    }

    /// A write, seldom a wrong one.
    pub fn write(&mut self) -> Write {
        let keyspace = self.keyspace();
        if self.random.percent(self.shares.range_percent) {
            let order = self.present[keyspace].order();
            if self.random.percent(25) && order.has_prefixes() {
                return Write::new(keyspace, [], Change::DeletePrefix(self.narrow_prefix()));
            }
            let (low, high) = self.narrow(order);
            return Write::delete_range(keyspace, low, high);
        }
        let Role { operator, ttl, .. } = self.present[keyspace];
        let change = match self.random.below(100) {
            0..=39 => Change::Put(content::value(&mut self.random, operator)),
            40..=59 => Change::Delete,
            // Where nothing expires it must be refused.
            60..=64 if ttl != Ttl::Off || self.features.ttl && self.random.below(20) == 0 => Change::Expire,
            // Mergeless keyspaces see a merge now and then: it must be refused.
            _ if operator == Operator::None && !self.random.percent(2) => {
                Change::Put(content::value(&mut self.random, operator))
            }
            _ => Change::Merge(content::operand(&mut self.random, operator)),
        };
        // So must a life where nothing expires.
        let lives = change != Change::Delete && (ttl != Ttl::Off || self.features.ttl && self.random.below(300) == 0);
        let for_put = matches!(change, Change::Put(_) | Change::Expire);
        let life = if lives { content::life(&mut self.random, for_put) } else { Life::Usual };
        Write::new(keyspace, self.key(), change).living(life)
    }

    /// Bounds that are mostly a few keys apart, so that a range delete leaves something.
    fn narrow(&mut self, order: Order) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
        if self.random.percent(10) {
            return (self.bound(), self.bound());
        }
        let first = self.random.below(self.keys.len());
        let second = (first + self.random.below(8)).min(self.keys.len() - 1);
        let ordered = &self.ordered[order as usize];
        let (low, high) = (ordered[first].clone(), ordered[second].clone());
        match self.random.below(4) {
            0 => (Bound::Included(low), Bound::Included(high)),
            1 => (Bound::Excluded(low), Bound::Included(high)),
            2 => (Bound::Excluded(low), Bound::Excluded(high)),
            _ => (Bound::Included(low), Bound::Excluded(high)),
        }
    }

    /// A prefix of mostly few keys, so that its delete leaves something.
    fn narrow_prefix(&mut self) -> Vec<u8> {
        let mut prefix = self.key();
        let shorter = if self.random.percent(10) { self.random.below(prefix.len() + 1) } else { self.random.below(2) };
        prefix.truncate(prefix.len().saturating_sub(shorter));
        prefix
    }

    fn read_operation(&mut self) -> Operation {
        let keyspace = self.keyspace();
        let slot = self.random.below(SLOTS);
        let snapshot = if self.random.percent(40) { Some(self.random.below(SLOTS)) } else { None };
        let source = Source { keyspace, snapshot };
        match self.random.below(100) {
            0..=25 => Operation::Get(source, self.key()),
            26..=29 => Operation::Contains(source, self.key()),
            30..=33 => Operation::End(source, self.random.percent(50)),
            34..=35 => Operation::Count(source, self.span(keyspace)),
            36..=42 => {
                let count = self.random.below(10);
                Operation::MultiGet(source, (0..count).map(|_| self.key()).collect())
            }
            43..=49 if self.present[keyspace].ttl != Ttl::Off => Operation::ExpiresAt(source, self.key()),
            43..=49 => Operation::Get(source, self.key()),
            50..=61 => Operation::Scan(source, self.span(keyspace), self.ends()),
            62..=67 => Operation::TakeSnapshot(slot),
            68..=70 => Operation::DropSnapshot(slot),
            71..=76 => Operation::OpenCursor(slot, source),
            77..=86 => Operation::MoveCursor(slot, self.moves()),
            87..=88 => Operation::DropCursor(slot),
            89..=92 => Operation::OpenIterator(slot, source, self.span(keyspace)),
            93..=98 => Operation::StepIterator(slot, self.ends()),
            _ => Operation::DropIterator(slot),
        }
    }

    /// A transaction over few keys, so that many conflict and many do not.
    fn transaction(&mut self) -> Operation {
        let count = self.random.between(0, 9);
        let outside_percent = [0, 10, 40][self.random.below(3)];
        let expires = ticks(&self.present);
        let mut steps = Vec::new();
        for _ in 0..count {
            if expires && self.random.percent(15) {
                steps.extend(self.expiry_steps());
                continue;
            }
            if self.random.percent(outside_percent) {
                let writes = self.random.between(1, 3);
                steps.push(TransactionStep::Outside((0..writes).map(|_| self.sound_write()).collect()));
                continue;
            }
            let keyspace = self.keyspace();
            if self.shares.drop_permille > 0 && self.random.percent(2) {
                steps.push(TransactionStep::Drop(keyspace));
                continue;
            }
            steps.push(match self.random.below(20) {
                0..=5 => TransactionStep::Get(keyspace, self.key()),
                6..=7 => TransactionStep::Contains(keyspace, self.key()),
                8 => TransactionStep::Scan(keyspace, self.span(keyspace)),
                9 => match self.random.below(4) {
                    0 => TransactionStep::Count(keyspace, self.span(keyspace)),
                    1 => TransactionStep::PopFirst(keyspace),
                    _ => TransactionStep::End(keyspace, self.random.percent(50)),
                },
                _ => TransactionStep::Write(self.sound_write()),
            });
        }
        let commit = self.random.percent(85);
        Operation::Transaction(steps, commit)
    }

    /// Steps about one key of a keyspace in which entries expire, most of them changes of the
    /// expiry: of what was there before, of large values, of operands, and of nothing.
    fn expiry_steps(&mut self) -> Vec<TransactionStep> {
        let expiring: Vec<usize> =
            (0..self.present.len()).filter(|&keyspace| self.present[keyspace].ttl != Ttl::Off).collect();
        let Some(&keyspace) = expiring.get(self.random.below(expiring.len())) else { return Vec::new() };
        let (key, count) = (self.key(), self.random.between(1, 5));
        (0..count).map(|_| self.expiry_step(keyspace, &key)).collect()
    }

    fn expiry_step(&mut self, keyspace: usize, key: &[u8]) -> TransactionStep {
        let Role { operator, .. } = self.present[keyspace];
        let change = match self.random.below(20) {
            0..=2 => return TransactionStep::Get(keyspace, key.to_vec()),
            3 => return TransactionStep::ExpiresAt(keyspace, key.to_vec()),
            4..=5 => return TransactionStep::Clock(self.tick_ahead()),
            6 => Change::Delete,
            7..=8 => Change::Put(content::large_value(&mut self.random, operator)),
            9..=11 if operator != Operator::None => Change::Merge(content::operand(&mut self.random, operator)),
            _ => Change::Expire,
        };
        let life = match &change {
            Change::Delete => Life::Usual,
            change => sound_life(content::life(&mut self.random, !matches!(change, Change::Merge(_)))),
        };
        let write = Write::new(keyspace, key, change).living(life);
        // Most of these transactions conflict.
        if self.random.percent(8) { TransactionStep::Outside(vec![write]) } else { TransactionStep::Write(write) }
    }

    /// A short step of the clock, or one to where something expires.
    fn tick_ahead(&mut self) -> Tick {
        if self.random.percent(50) {
            Tick::ToExpiry(self.random.below(3) as i64 - 1)
        } else {
            Tick::Ahead(self.random.between(1, 60) as u64)
        }
    }

    /// A write that is not refused.
    fn sound_write(&mut self) -> Write {
        loop {
            let write = self.write();
            let role = self.present[write.keyspace];
            let sound = match &write.change {
                Change::Merge(operand) => !role.operator.refuses(operand),
                Change::Expire => role.ttl != Ttl::Off,
                _ => true,
            };
            let life = if role.ttl == Ttl::Off { Life::Usual } else { sound_life(write.life) };
            if sound {
                return write.living(life);
            }
        }
    }

    fn ends(&mut self) -> Vec<bool> {
        let count = self.random.below(12);
        let front_percent = [0, 50, 100][self.random.below(3)];
        (0..count).map(|_| self.random.percent(front_percent)).collect()
    }

    fn moves(&mut self) -> Vec<Move> {
        let count = self.random.between(1, 15);
        (0..count)
            .map(|_| match self.random.below(20) {
                0 => Move::First,
                1 => Move::Last,
                2..=3 => Move::Seek(self.key()),
                4..=5 => Move::SeekForPrev(self.key()),
                6..=12 => Move::Next,
                _ => Move::Prev,
            })
            .collect()
    }

    /// Which keys of the keyspace to scan.
    pub fn span(&mut self, keyspace: usize) -> Span {
        match self.random.below(4) {
            0 => Span::All,
            1 => {
                let mut prefix = self.key();
                let shorter = self.random.below(prefix.len() + 1);
                prefix.truncate(shorter);
                if self.present[keyspace].order().has_prefixes() {
                    Span::Prefix(prefix)
                } else {
                    Span::Range(Bound::Included(prefix), Bound::Unbounded)
                }
            }
            _ => Span::Range(self.bound(), self.bound()),
        }
    }

    fn bound(&mut self) -> Bound<Vec<u8>> {
        match self.random.below(5) {
            0 => Bound::Unbounded,
            1..=2 => Bound::Included(self.key()),
            _ => Bound::Excluded(self.key()),
        }
    }

    /// One of the keyspaces.
    pub fn keyspace(&mut self) -> usize {
        self.random.below(self.present.len())
    }

    /// A key, mostly one of those in use.
    pub fn key(&mut self) -> Vec<u8> {
        // A key that was never written, now and then.
        if self.random.percent(3) {
            let length = self.random.below(6);
            return self.random.bytes(length);
        }
        // Squared, so that some keys are hit much more often than others.
        let (first, second) = (self.random.below(self.keys.len()), self.random.below(self.keys.len()));
        self.keys[first.min(second)].clone()
    }
}

/// The life, or the usual one where that is refused.
fn sound_life(life: Life) -> Life {
    if life == Life::For(0) { Life::Usual } else { life }
}

/// Whether entries of any of them expire.
fn ticks(cast: &[Role]) -> bool {
    cast.iter().any(|role| role.ttl != Ttl::Off)
}
