//! The names and settings that the keyspaces of a script may have.

use super::script::{NAMES, SIFTED, first_settings, first_style};
use super::sieve::Sieve;
use crate::Checked;
use crate::model::{Operator, Ttl};
use crate::operators::supply;
use crate::orders::{in_order, order_of};
use crate::state::{keyspace_options, lives, other_name};
use esker::{CompactionStyle, Db, Error, KeyspaceOptions};

/// The name and the settings of a keyspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Whether it has its other name.
    pub is_renamed: bool,
    /// Its merge operator.
    pub operator: Operator,
    /// Whether its entries expire.
    pub ttl: Ttl,
    /// How it is compacted.
    pub style: CompactionStyle,
}

impl Setting {
    /// Whether a database with these cannot be told from one with this operator and expiry.
    pub fn looks_like(&self, operator: Operator, ttl: Ttl) -> bool {
        let name = |operator| supply(operator).map(|operator| operator.name().to_owned());
        name(self.operator) == name(operator) && lives(self.ttl) == lives(ttl)
    }
}

/// The options of a keyspace of scripts.
pub fn options_of(keyspace: usize, Setting { operator, ttl, style, .. }: Setting) -> KeyspaceOptions {
    let options = in_order(keyspace_options(operator, ttl), order_of(NAMES[keyspace])).compaction_style(style);
    if keyspace == SIFTED { options.compaction_filter(Sieve) } else { options }
}

/// What the next process may find of one keyspace.
#[derive(Clone, Debug)]
struct Possible {
    /// One of these.
    settings: Vec<Setting>,
    /// Or none.
    may_be_absent: bool,
}

/// What the next process may find of all of them.
#[derive(Clone, Debug)]
pub struct Standing {
    all: Vec<Possible>,
}

/// What there is of each keyspace.
pub type Found = Vec<Option<Setting>>;

/// The settings with which a keyspace is created.
pub fn first_setting(keyspace: usize) -> Setting {
    let (operator, ttl) = first_settings()[keyspace];
    Setting { is_renamed: false, operator, ttl, style: first_style(keyspace) }
}

/// The name of a keyspace.
pub fn name_of(keyspace: usize, is_renamed: bool) -> String {
    if is_renamed { other_name(NAMES[keyspace]) } else { NAMES[keyspace].to_owned() }
}

impl Default for Standing {
    fn default() -> Standing {
        let one = |keyspace| Possible { settings: vec![first_setting(keyspace)], may_be_absent: true };
        Standing { all: (0..NAMES.len()).map(one).collect() }
    }
}

impl Standing {
    /// What a keyspace has, or is to get.
    pub fn present(&self, keyspace: usize) -> Setting {
        // There is always one: the change that was tried last comes last.
        self.all[keyspace].settings[self.all[keyspace].settings.len() - 1]
    }

    /// It is there: "creates it durably".
    pub fn note_exists(&mut self, keyspace: usize) {
        self.all[keyspace].may_be_absent = false;
    }

    /// A change is tried: "leaves the one or the other".
    pub fn attempt(&mut self, keyspace: usize, next: Setting) {
        self.all[keyspace].settings.push(next);
    }

    /// The change that was tried has happened, and is durable, or it was refused.
    pub fn settle(&mut self, keyspace: usize, happened: bool) {
        let settings = &mut self.all[keyspace].settings;
        if happened {
            settings.drain(..settings.len() - 1);
        } else {
            settings.pop();
        }
    }

    /// A drop is tried.
    pub fn attempt_drop(&mut self, keyspace: usize) {
        self.all[keyspace].may_be_absent = true;
    }

    /// It was dropped; the next one begins as the first did.
    pub fn note_dropped(&mut self, keyspace: usize) {
        self.all[keyspace] = Possible { settings: vec![first_setting(keyspace)], may_be_absent: true };
    }

    /// Where there is no manifest, a keyspace of which nothing was written is forgotten.
    pub fn note_repaired(&mut self) {
        self.all.iter_mut().for_each(|one| one.may_be_absent = true);
    }

    /// What there is, if it may be that.
    pub fn check(&self, db: &Db) -> Checked<Found> {
        self.all.iter().enumerate().map(|(keyspace, possible)| check_one(db, keyspace, possible)).collect()
    }

    /// Goes on from what was found. Until everything in it is durable, a later loss may take a
    /// change back that was not acknowledged.
    pub fn recovered(&self, found: &Found, all_durable: bool) -> Standing {
        let mut next = self.clone();
        for (keyspace, (one, found)) in next.all.iter_mut().zip(found).enumerate() {
            let setting = found.unwrap_or(first_setting(keyspace));
            if all_durable {
                one.settings.clear();
                one.may_be_absent = found.is_none();
            }
            one.settings.retain(|other| *other != setting);
            one.settings.push(setting);
        }
        next
    }

    /// An open has made everything durable that it has found.
    pub fn note_opened(&mut self) {
        self.all.iter_mut().for_each(|one| _ = one.settings.drain(..one.settings.len() - 1));
    }
}

fn check_one(db: &Db, keyspace: usize, possible: &Possible) -> Checked<Option<Setting>> {
    let names = [false, true].map(|is_renamed| name_of(keyspace, is_renamed));
    let mut found = Vec::new();
    for (name, is_renamed) in names.iter().zip([false, true]) {
        match db.existing_keyspace(name) {
            Ok(handle) => found.push((handle, is_renamed)),
            Err(Error::NotFound { .. }) => {}
            Err(error) => return Err(format!("keyspace {name}: {error}")),
        }
    }
    let (handle, is_renamed) = match found.pop() {
        None if possible.may_be_absent => return Ok(None),
        None => return Err(format!("there is neither of {names:?}; expected {possible:?}")),
        Some(_) if !found.is_empty() => return Err(format!("there are both of {names:?}; expected {possible:?}")),
        Some(one) => one,
    };
    let (operator, ttl, style) = (handle.merge_operator(), handle.ttl(), handle.compaction_style());
    let is_it = |setting: &&Setting| {
        let name = supply(setting.operator).map(|operator| operator.name().to_owned());
        setting.is_renamed == is_renamed && name == operator && lives(setting.ttl) == ttl && setting.style == style
    };
    // Of two that look the same, the later.
    possible.settings.iter().rev().find(is_it).copied().map(Some).ok_or_else(|| {
        let name = handle.name();
        format!("keyspace {name} has the operator {operator:?}, {ttl:?} and {style:?}; expected {possible:?}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Change, Write};
    use crate::powerloss::option_variants;
    use crate::powerloss::progress::Progress;
    use crate::powerloss::script::{Step, WINDOW};
    use crate::powerloss::session::{Ground, Session, run};
    use crate::state::Durability;
    use esker::env::mem::MemEnv;

    /// A style that is not stored, or another one than was set, fails here.
    #[test]
    fn a_style_is_the_one_that_was_set_last_also_for_the_next_process() {
        let (_, options) = option_variants().swap_remove(0);
        let (env, mut progress) = (MemEnv::new(), Progress::default());
        let ground = Ground::new(&options, env.clone());
        let mut session = Session::open(&ground, &mut progress).unwrap();
        for step in [Step::Create(WINDOW), Step::Create(0), Step::Style(0, CompactionStyle::Leveled)] {
            session.perform(&step, &mut progress).unwrap();
        }
        let next = Session::open(&Ground::new(&options, env.kill()), &mut progress.clone()).unwrap();
        for db in [session.db(), next.db()] {
            progress.standing.check(db).unwrap();
            let mut other = progress.standing.clone();
            other.attempt(0, Setting { style: CompactionStyle::Tiered, ..other.present(0) });
            assert!(other.check(db).is_ok(), "it may not have happened");
            other.settle(0, true);
            assert!(other.check(db).is_err());
        }
    }

    /// A repair that took names and settings from tables, which are of before the changes, although
    /// there is a manifest, fails here.
    #[test]
    fn names_and_settings_outlive_the_loss_of_the_file_that_names_the_manifest() {
        let (_, options) = option_variants().swap_remove(0);
        let ground = Ground::new(&options, MemEnv::new());
        let mut progress = Progress::default();
        let put = |keyspace: usize| {
            Step::Single(Write::new(keyspace, "key", Change::Put(b"value".to_vec())), Durability::Sync)
        };
        let steps = [
            put(0),
            put(2),
            put(WINDOW),
            put(SIFTED),
            Step::Flush,
            Step::Rename(0),
            Step::Ttl(0, Ttl::On(None)),
            Step::Operator(2, Operator::Max),
            Step::Rename(WINDOW),
            Step::Style(WINDOW, CompactionStyle::Leveled),
            Step::Rename(SIFTED),
            Step::Repair,
            Step::Compare,
            put(0),
            put(WINDOW),
            Step::Compare,
        ];
        run(&steps, &ground, &mut progress, &mut |_| {}).unwrap();
        let session = Session::open(&ground, &mut progress).unwrap();
        let found = progress.standing.check(session.db()).unwrap();
        let renamed = |keyspace: usize| Setting { is_renamed: true, ..first_setting(keyspace) };
        assert_eq!(found[0], Some(Setting { ttl: Ttl::On(None), ..renamed(0) }));
        assert_eq!(found[2], Some(Setting { operator: Operator::Max, ..first_setting(2) }));
        assert_eq!(found[WINDOW], Some(Setting { style: CompactionStyle::Leveled, ..renamed(WINDOW) }));
        assert_eq!(found[SIFTED], Some(renamed(SIFTED)));
    }
}
