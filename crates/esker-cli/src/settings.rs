//! The settings that a keyspace is created with, as dumps carry them.

use crate::duration;
use crate::failure::Failure;
use esker::merge::built_in;
use esker::{CompactionStyle, Comparator, Db, Keyspace, KeyspaceOptions, ReverseBytewise, Ttl};
use std::time::Duration;

/// The order of keyspaces without a comparator.
pub const BYTEWISE: &str = "bytewise";

/// What is known of the settings of a keyspace; what is `None` is left to the engine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The stored name of the merge operator.
    pub merge_operator: Option<String>,
    /// The stored name of the comparator.
    pub comparator: Option<String>,
    /// Whether entries expire.
    pub ttl: Option<Ttl>,
    /// How tables are compacted.
    pub compaction_style: Option<CompactionStyle>,
}

impl Settings {
    /// The settings that an existing keyspace was created with, as far as they are not the usual.
    pub fn of(keyspace: &Keyspace) -> Settings {
        Settings {
            merge_operator: keyspace.merge_operator(),
            comparator: Some(keyspace.comparator().to_owned()).filter(|name| name != BYTEWISE),
            ttl: Some(keyspace.ttl()).filter(|ttl| *ttl != Ttl::default()),
            compaction_style: Some(keyspace.compaction_style()).filter(|style| *style != CompactionStyle::default()),
        }
    }

    /// These, and those of `other` where these say nothing.
    pub fn or(self, other: Settings) -> Settings {
        Settings {
            merge_operator: self.merge_operator.or(other.merge_operator),
            comparator: self.comparator.or(other.comparator),
            ttl: self.ttl.or(other.ttl),
            compaction_style: self.compaction_style.or(other.compaction_style),
        }
    }

    /// Opens the keyspace, or creates it with these settings.
    ///
    /// `ttl_if_new`: whether a keyspace that is created now gets times to live, if the settings do
    /// not say; one that exists keeps what it has.
    pub fn open(&self, db: &Db, name: &str, ttl_if_new: bool) -> Result<Keyspace, Failure> {
        let mut options = KeyspaceOptions::default();
        if let Some(operator) = &self.merge_operator {
            let Some(operator) = built_in(operator) else {
                return Err(Failure::Operation(format!(
                    "merge operator {operator:?} is not built in; only programs that bring it can create such a keyspace"
                )));
            };
            options = options.shared_merge_operator(operator);
        }
        match self.comparator.as_deref() {
            None | Some(BYTEWISE) => {}
            Some(name) if name == ReverseBytewise.name() => options = options.comparator(ReverseBytewise),
            Some(name) => {
                return Err(Failure::Operation(format!(
                    "comparator {name:?} is not built in; only programs that bring it can create such a keyspace"
                )));
            }
        }
        let existing = db.existing_keyspace(name).ok();
        if let Some(keyspace) = &existing {
            self.require_of(keyspace)?;
        }
        let is_new = existing.is_none();
        let new_ttl = || (ttl_if_new && is_new).then_some(Ttl::Enabled { default: None });
        if let Some(ttl) = self.ttl.or_else(new_ttl) {
            options = options.ttl(ttl);
        }
        // The one setting that the engine changes where it is given later: a load is not to.
        if let Some(style) = self.compaction_style.filter(|_| is_new) {
            options = options.compaction_style(style);
        }
        Ok(db.keyspace(name, options)?)
    }

    /// Refuses a keyspace that has other settings.
    fn require_of(&self, keyspace: &Keyspace) -> Result<(), Failure> {
        let other = |what: &str, has: &str, wanted: &str, remedy: &str| {
            let name = keyspace.name();
            Err(Failure::Operation(format!("keyspace {name:?} has {what} {has}, not {wanted}; {remedy}")))
        };
        let (operator, comparator) = (keyspace.merge_operator(), keyspace.comparator());
        match self.merge_operator.as_deref() {
            Some(wanted) if operator.as_deref() != Some(wanted) => {
                let has = operator.unwrap_or_else(|| "none".into());
                let remedy = "leave --merge-operator out, or change it with `esker keyspaces set --merge-operator`";
                return other("the merge operator", &has, wanted, remedy);
            }
            _ => {}
        }
        match self.comparator.as_deref() {
            Some(wanted) if comparator != wanted => {
                return other("the comparator", comparator, wanted, "it never changes: name another keyspace");
            }
            _ => {}
        }
        let shown = |ttl: Ttl| match ttl {
            Ttl::Disabled => "off".into(),
            Ttl::Enabled { default: None } => "on, without default".into(),
            Ttl::Enabled { default: Some(default) } => duration::text(default),
        };
        match self.ttl {
            // The engine counts in milliseconds.
            Some(wanted) if ttl_text(wanted) != ttl_text(keyspace.ttl()) => other(
                "the time to live",
                &shown(keyspace.ttl()),
                &shown(wanted),
                "change it with `esker keyspaces set --default-ttl`, or name another keyspace",
            ),
            _ => Ok(()),
        }
    }
}

/// Refuses a keyspace in which nothing expires, where something is to be written that does.
pub fn require_ttl(keyspace: &Keyspace) -> Result<(), Failure> {
    match keyspace.ttl() {
        Ttl::Enabled { .. } => Ok(()),
        Ttl::Disabled => Err(Failure::Operation(format!(
            "keyspace {:?} is without time to live; let its entries expire with `esker keyspaces set --default-ttl \
             none`, or name another keyspace",
            keyspace.name()
        ))),
    }
}

/// Refuses a keyspace without merge operator, where something is to be merged.
pub fn require_merge_operator(keyspace: &Keyspace) -> Result<(), Failure> {
    match keyspace.merge_operator() {
        Some(_) => Ok(()),
        None => Err(Failure::Operation(format!(
            "keyspace {:?} has no merge operator; give it one with `esker keyspaces set --merge-operator`",
            keyspace.name()
        ))),
    }
}

/// The setting as a dump has it: `on`, or the default in milliseconds.
pub fn ttl_text(ttl: Ttl) -> Option<String> {
    match ttl {
        Ttl::Disabled => None,
        Ttl::Enabled { default: None } => Some("on".into()),
        Ttl::Enabled { default: Some(default) } => Some(default.as_millis().to_string()),
    }
}

/// Reads what [`ttl_text`] writes.
pub fn parse_ttl(text: &str) -> Result<Ttl, String> {
    match (text, text.parse::<u64>()) {
        ("on", _) => Ok(Ttl::Enabled { default: None }),
        (_, Ok(millis)) if millis > 0 => Ok(Ttl::Enabled { default: Some(Duration::from_millis(millis)) }),
        _ => Err(format!("ttl {text:?} is neither \"on\" nor a number of milliseconds above 0")),
    }
}

/// The style as a dump has it.
pub fn style_text(style: CompactionStyle) -> String {
    match style {
        CompactionStyle::LazyLeveling => "lazy-leveling".into(),
        CompactionStyle::Leveled => "leveled".into(),
        CompactionStyle::Tiered => "tiered".into(),
        CompactionStyle::Fifo { max_bytes } => format!("fifo:{max_bytes}"),
        // One that this command does not know, which reads nothing of it either.
        other => format!("{other:?}"),
    }
}

/// Reads what [`style_text`] writes.
pub fn parse_style(text: &str) -> Result<CompactionStyle, String> {
    match (text, text.strip_prefix("fifo:").map(str::parse)) {
        ("lazy-leveling", _) => Ok(CompactionStyle::LazyLeveling),
        ("leveled", _) => Ok(CompactionStyle::Leveled),
        ("tiered", _) => Ok(CompactionStyle::Tiered),
        (_, Some(Ok(0))) => Err("a keyspace of at most 0 bytes keeps nothing; use fifo:1 or more".into()),
        (_, Some(Ok(max_bytes))) => Ok(CompactionStyle::Fifo { max_bytes }),
        _ => Err(format!("unknown compaction style {text:?}: lazy-leveling, leveled, tiered or fifo:BYTES")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_read_back_as_written() {
        for ttl in [Ttl::Enabled { default: None }, Ttl::Enabled { default: Some(Duration::from_millis(90_500)) }] {
            assert_eq!(ttl_text(ttl).map(|text| parse_ttl(&text)), Some(Ok(ttl)));
        }
        assert_eq!(ttl_text(Ttl::Disabled), None);
        use CompactionStyle::{Fifo, LazyLeveling, Leveled, Tiered};
        for style in [LazyLeveling, Leveled, Tiered, Fifo { max_bytes: 1 << 40 }] {
            assert_eq!(parse_style(&style_text(style)), Ok(style));
        }
        assert!(["", "0", "-1", "off", "1s"].into_iter().all(|text| parse_ttl(text).is_err()));
        assert!(["", "fifo", "fifo:", "fifo:-1", "level"].into_iter().all(|text| parse_style(text).is_err()));
    }
}
