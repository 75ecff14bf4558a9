//! The names and settings that the keyspaces of a script may have.

use super::script::{NAMES, first_settings};
use crate::Checked;
use crate::model::{Operator, Ttl};
use crate::operators::supply;
use crate::state::{lives, other_name};
use esker::{Db, Error};

/// The name and the settings of a keyspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Whether it has its other name.
    pub is_renamed: bool,
    /// Its merge operator.
    pub operator: Operator,
    /// Whether its entries expire.
    pub ttl: Ttl,
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
    Setting { is_renamed: false, operator, ttl }
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
    let (operator, ttl) = (handle.merge_operator(), handle.ttl());
    let is_it = |setting: &&Setting| {
        let name = supply(setting.operator).map(|operator| operator.name().to_owned());
        setting.is_renamed == is_renamed && name == operator && lives(setting.ttl) == ttl
    };
    // Of two that look the same, the later.
    possible.settings.iter().rev().find(is_it).copied().map(Some).ok_or_else(|| {
        format!("keyspace {} has the operator {operator:?} and {ttl:?}; expected {possible:?}", handle.name())
    })
}
