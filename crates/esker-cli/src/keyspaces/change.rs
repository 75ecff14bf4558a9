//! Keyspaces that are made, changed, renamed, emptied and dropped, by `esker keyspaces` and by the
//! shell in the same words.

use crate::arguments::{default_ttl, stored_operator_name};
use crate::failure::Failure;
use crate::settings::{BYTEWISE, Settings, parse_style};
use clap::{Args, Subcommand};
use esker::merge::built_in;
use esker::{CompactionStyle, Comparator, Db, KeyspaceOptions, ReverseBytewise, Ttl};
use serde_json::{Value, json};

/// What is done with a keyspace.
#[derive(Subcommand)]
pub enum Change {
    Create(Create),
    Set(Set),
    Rename(Rename),
    Clear(Clear),
    Drop(Drop),
}

/// The settings that a keyspace can be given at any time.
#[derive(Args)]
struct Changeable {
    /// The merge operator: uint64add, int64add, max, min, put, bytesxor, bitor, stringappend (joins
    /// with a comma) or stringappend:DELIMITER (escapes as in keys)
    #[arg(long, value_name = "NAME", value_parser = stored_operator_name)]
    merge_operator: Option<String>,
    /// Entries can expire, and a write that brings no time lives so long, as in 10m, 1h30m or 7d;
    /// with `none` only what is written with a time expires
    #[arg(long, value_name = "TIME|none", value_parser = default_ttl)]
    default_ttl: Option<Ttl>,
    /// How tables are compacted: lazy-leveling, leveled, tiered, or fifo:BYTES, which drops the
    /// oldest
    #[arg(long, value_name = "STYLE", value_parser = parse_style)]
    compaction_style: Option<CompactionStyle>,
}

/// Make a keyspace, and the database if it is missing
#[derive(Args)]
pub struct Create {
    #[command(flatten)]
    settings: Changeable,
    /// The order of keys, which never changes
    #[arg(long, value_name = "NAME", default_value = BYTEWISE, value_parser = [BYTEWISE, "reverse-bytewise"])]
    comparator: String,
    /// The new keyspace
    #[arg(value_name = "KEYSPACE")]
    name: String,
}

/// Change settings of a keyspace that exists; what is not named stays
///
/// Another merge operator, and times to live where there were none, take a compaction of the
/// keyspace if it holds operands. What was written before keeps its expiry, or has none. Entries
/// that can expire stay so: --default-ttl none ends only the default.
#[derive(Args)]
pub struct Set {
    #[command(flatten)]
    settings: Changeable,
    /// The keyspace
    #[arg(value_name = "KEYSPACE")]
    name: String,
}

/// Give a keyspace another name
#[derive(Args)]
pub struct Rename {
    /// The keyspace
    #[arg(value_name = "KEYSPACE")]
    name: String,
    /// Its new name, which no other one has
    #[arg(value_name = "NEW")]
    new: String,
}

/// Remove every key of a keyspace, which stays, with its settings
#[derive(Args)]
pub struct Clear {
    /// That this is meant: nothing brings the keys back
    #[arg(long)]
    yes: bool,
    /// The keyspace
    #[arg(value_name = "KEYSPACE")]
    name: String,
}

/// Remove a keyspace, with everything in it
#[derive(Args)]
pub struct Drop {
    /// That this is meant: nothing brings the keyspace back
    #[arg(long)]
    yes: bool,
    /// The keyspace
    #[arg(value_name = "KEYSPACE")]
    name: String,
}

impl Change {
    /// Whether it makes a database where there is none.
    pub fn creates(&self) -> bool {
        matches!(self, Change::Create(_))
    }

    /// Refuses what can be refused without a database.
    pub fn check(&self) -> Result<(), Failure> {
        let meant = |yes: bool, name: &str, what: &str| match yes {
            true => Ok(()),
            false => {
                Err(Failure::Usage(format!("{what} of keyspace {name:?} would be gone; give --yes if that is meant")))
            }
        };
        match self {
            Change::Clear(clear) => meant(clear.yes, &clear.name, "every key"),
            Change::Drop(drop) => meant(drop.yes, &drop.name, "all"),
            Change::Set(set) if set.settings.is_empty() => Err(Failure::Usage(
                "there is nothing to set; give --merge-operator, --default-ttl or --compaction-style".into(),
            )),
            _ => Ok(()),
        }
    }

    /// Does it, and returns what was done.
    pub fn apply(&self, db: &Db) -> Result<Value, Failure> {
        self.check()?;
        match self {
            Change::Create(create) => create.apply(db),
            Change::Set(set) => set.apply(db),
            Change::Rename(rename) => {
                db.existing_keyspace(&rename.name)?.rename(&rename.new).map_err(|error| match error {
                    esker::Error::AlreadyExists { .. } => exists(&rename.new, "choose another name"),
                    error => error.into(),
                })?;
                Ok(json!({ "renamed": rename.name, "to": rename.new }))
            }
            Change::Clear(clear) => {
                db.existing_keyspace(&clear.name)?.clear()?;
                Ok(json!({ "cleared": clear.name }))
            }
            Change::Drop(drop) => {
                db.drop_keyspace(&drop.name)?;
                Ok(json!({ "dropped": drop.name }))
            }
        }
    }
}

fn exists(name: &str, remedy: &str) -> Failure {
    Failure::Operation(format!("there is a keyspace {name:?} already; {remedy}"))
}

impl Changeable {
    fn is_empty(&self) -> bool {
        self.merge_operator.is_none() && self.default_ttl.is_none() && self.compaction_style.is_none()
    }
}

impl Create {
    fn apply(&self, db: &Db) -> Result<Value, Failure> {
        if db.keyspaces().contains(&self.name) {
            return Err(exists(&self.name, "change it with `keyspaces set`"));
        }
        let settings = Settings {
            merge_operator: self.settings.merge_operator.clone(),
            comparator: (self.comparator == ReverseBytewise.name()).then(|| self.comparator.clone()),
            ttl: self.settings.default_ttl,
            compaction_style: self.settings.compaction_style,
        };
        settings.open(db, &self.name, false)?;
        Ok(json!({ "created": self.name }))
    }
}

impl Set {
    fn apply(&self, db: &Db) -> Result<Value, Failure> {
        let keyspace = db.existing_keyspace(&self.name)?;
        if let Some(operator) = self.settings.merge_operator.as_deref().and_then(built_in) {
            keyspace.set_shared_merge_operator(operator)?;
        }
        if let Some(ttl) = self.settings.default_ttl {
            keyspace.set_ttl(ttl)?;
        }
        if let Some(style) = self.settings.compaction_style {
            db.keyspace(&self.name, KeyspaceOptions::default().compaction_style(style))?;
        }
        Ok(json!({ "changed": self.name }))
    }
}
