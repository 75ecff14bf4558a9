//! The keyspaces that take part in a random run, and the parts of the engine that it may use.

use crate::Checked;
use crate::model::{Operator, Order, Ttl};
use crate::orders::{in_order, order_of};
use crate::random::Random;
use crate::state::keyspace_options;
use esker::{CompactionStyle, KeyspaceOptions};

/// Parts of the engine that a run can leave out, each by the name that `--without` takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features {
    /// `ttl`: keyspaces whose entries expire, and steps of the clock.
    pub ttl: bool,
    /// `ranges`: deleting ranges.
    pub ranges: bool,
    /// `operators`: int64add, bytesxor, bitor.
    pub operators: bool,
    /// `custom`: operators that are not built in, failing ones and missing ones among them.
    pub custom: bool,
    /// `maintenance`: compacting and sizing ranges, and reading beside the writer.
    pub maintenance: bool,
    /// `transactions`.
    pub transactions: bool,
    /// `orders`: keyspaces with an order of their own.
    pub orders: bool,
    /// `drops`: dropping keyspaces and creating them again.
    pub drops: bool,
    /// `loads`: pairs that are loaded past the log.
    pub loads: bool,
    /// `changes`: changes are kept in some runs, and read, by followers too; watches.
    pub changes: bool,
    /// `settings`: other names, operators and lives for keyspaces in use.
    pub settings: bool,
    /// `clock-back`: steps of the clock back. Off by default.
    pub clock_back: bool,
}

impl Features {
    /// Everything but steps of the clock back.
    pub const ALL: Features = Features {
        ttl: true,
        ranges: true,
        operators: true,
        custom: true,
        maintenance: true,
        transactions: true,
        orders: true,
        drops: true,
        loads: true,
        changes: true,
        settings: true,
        clock_back: false,
    };

    /// Sets those named, separated by commas.
    pub fn set(&mut self, names: &str, on: bool) -> Checked<()> {
        for name in names.split(',').filter(|name| !name.is_empty()) {
            let feature = match name {
                "ttl" => &mut self.ttl,
                "ranges" => &mut self.ranges,
                "operators" => &mut self.operators,
                "custom" => &mut self.custom,
                "maintenance" => &mut self.maintenance,
                "transactions" => &mut self.transactions,
                "orders" => &mut self.orders,
                "drops" => &mut self.drops,
                "loads" => &mut self.loads,
                "changes" => &mut self.changes,
                "settings" => &mut self.settings,
                "clock-back" => &mut self.clock_back,
                _ => return Err(format!("there is no feature {name:?}")),
            };
            *feature = on;
        }
        Ok(())
    }

    /// The options of the command line that set the same.
    pub fn arguments(&self) -> String {
        let named = [
            ("ttl", self.ttl),
            ("ranges", self.ranges),
            ("operators", self.operators),
            ("custom", self.custom),
            ("maintenance", self.maintenance),
            ("transactions", self.transactions),
            ("orders", self.orders),
            ("drops", self.drops),
            ("loads", self.loads),
            ("changes", self.changes),
            ("settings", self.settings),
        ];
        let missing: Vec<&str> = named.iter().filter(|(_, on)| !on).map(|(name, _)| *name).collect();
        let mut text = String::new();
        if !missing.is_empty() {
            text.push_str(&format!(" --without {}", missing.join(",")));
        }
        if self.clock_back {
            text.push_str(" --with clock-back");
        }
        text
    }
}

/// A keyspace of a run.
#[derive(Clone, Copy, Debug)]
pub struct Role {
    /// Its first name.
    pub name: &'static str,
    /// Its merge operator.
    pub operator: Operator,
    /// Whether its entries expire.
    pub ttl: Ttl,
    /// Which compaction style it begins with.
    pub style: usize,
    /// Whether the style is another one after every opening.
    pub restyled: bool,
    /// Whether it has its other name.
    pub renamed: bool,
}

impl Role {
    /// The options at the opening of that number.
    pub fn options(&self, opening: usize) -> KeyspaceOptions {
        let number = if self.restyled { self.style + opening } else { self.style };
        let style = match number % 3 {
            0 => CompactionStyle::LazyLeveling,
            1 => CompactionStyle::Leveled,
            _ => CompactionStyle::Tiered,
        };
        in_order(keyspace_options(self.operator, self.ttl), self.order()).compaction_style(style)
    }

    /// The name that it has now.
    pub fn present_name(&self) -> String {
        if self.renamed { format!("{}, renamed", self.name) } else { self.name.to_owned() }
    }

    /// The order of its keys, which its first name says.
    pub fn order(&self) -> Order {
        order_of(self.name)
    }
}

/// Every keyspace that may take part.
const ROLES: [(&str, Operator, Ttl); 22] = [
    ("plain", Operator::None, Ttl::Off),
    ("counters", Operator::UInt64Add, Ttl::Off),
    ("log", Operator::StringAppend, Ttl::Off),
    ("greatest", Operator::Max, Ttl::Off),
    ("least", Operator::Min, Ttl::Off),
    ("last", Operator::Put, Ttl::Off),
    ("signed", Operator::Int64Add, Ttl::Off),
    ("xor", Operator::BytesXor, Ttl::Off),
    ("or", Operator::BitOr, Ttl::Off),
    ("longest", Operator::Longest, Ttl::Off),
    ("fragile", Operator::Fragile, Ttl::Off),
    ("shelved", Operator::Shelved, Ttl::Off),
    ("sessions", Operator::None, Ttl::On(None)),
    ("cache", Operator::None, Ttl::On(Some(300))),
    ("rates", Operator::UInt64Add, Ttl::On(None)),
    ("trail", Operator::StringAppend, Ttl::On(Some(200))),
    ("brittle", Operator::Fragile, Ttl::On(None)),
    ("latest", Operator::None, Ttl::Off),
    ("falling", Operator::UInt64Add, Ttl::Off),
    ("recent", Operator::StringAppend, Ttl::On(Some(300))),
    ("words", Operator::None, Ttl::Off),
    ("lengths", Operator::Longest, Ttl::On(None)),
];

/// How many keyspaces a run has at the most.
const LARGEST_CAST: usize = 6;

/// Some of the keyspaces that these features allow. A role plays the same part in every run it is
/// in.
pub fn choose(random: &mut Random, features: Features) -> Vec<Role> {
    let mut roles: Vec<_> = allowed(features).collect();
    random.shuffle(&mut roles);
    roles.truncate(random.between(2, LARGEST_CAST));
    let restyled = random.percent(25);
    let role = |(name, operator, ttl)| Role { name, operator, ttl, style: random.below(3), restyled, renamed: false };
    roles.into_iter().map(role).collect()
}

/// The keyspaces that these features allow.
fn allowed(features: Features) -> impl Iterator<Item = (&'static str, Operator, Ttl)> {
    ROLES.into_iter().filter(move |&(name, operator, ttl)| {
        let operator = match operator {
            Operator::Int64Add | Operator::BytesXor | Operator::BitOr => features.operators,
            Operator::Longest | Operator::Fragile | Operator::Shelved => features.custom,
            _ => true,
        };
        operator && (features.ttl || ttl == Ttl::Off) && (features.orders || order_of(name) == Order::Bytewise)
    })
}

/// An operator and lives for a keyspace that is created again under its name.
pub fn other_settings(random: &mut Random, features: Features) -> (Operator, Ttl) {
    // The one operator that is not always supplied belongs to one name.
    let all: Vec<_> = allowed(features).filter(|(_, operator, _)| *operator != Operator::Shelved).collect();
    let (_, operator, ttl) = all[random.below(all.len())];
    (operator, ttl)
}
