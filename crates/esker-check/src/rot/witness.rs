//! Asking a database for everything that it holds, and which states its answers leave possible.

use crate::Checked;
use crate::orders::order_of;
use crate::powerloss::script::NAMES;
use crate::state::{Place, State, shown};
use esker::{Db, Error};
use std::collections::BTreeSet;

/// The states that agree with all answers so far.
pub struct Witness<'a> {
    pub candidates: Vec<&'a State>,
    pub errors: u64,
}

impl Witness<'_> {
    /// Asks for everything: scans in both directions, and gets of what is or was there.
    pub fn question(&mut self, db: &Db, places: &BTreeSet<Place>) -> Checked<()> {
        for (index, name) in NAMES.iter().enumerate() {
            let keyspace = match db.existing_keyspace(name) {
                Ok(keyspace) => Some(keyspace),
                Err(Error::NotFound { .. }) => None,
                Err(_) => {
                    self.errors += 1;
                    continue;
                }
            };
            for reversed in [false, true] {
                let mut found: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
                let mut whole = true;
                let entries: Box<dyn Iterator<Item = _>> = match (&keyspace, reversed) {
                    (None, _) => Box::new(std::iter::empty()),
                    (Some(keyspace), false) => Box::new(keyspace.iter()),
                    (Some(keyspace), true) => Box::new(keyspace.iter().rev()),
                };
                for entry in entries {
                    match entry {
                        Ok((key, value)) => found.push((key.to_vec(), value.to_vec())),
                        Err(_) => {
                            self.errors += 1;
                            whole = false;
                            break;
                        }
                    }
                }
                let agrees = |state: &&State| {
                    let own = state.range((index, Vec::new())..(index + 1, Vec::new()));
                    let mut expected: Vec<_> = own.map(|((_, key), held)| (key, &held.value)).collect();
                    expected.sort_by(|a, b| order_of(name).compare(a.0, b.0));
                    let of_expected = |place: usize| if reversed { expected.len() - 1 - place } else { place };
                    found.len() <= expected.len()
                        && (!whole || found.len() == expected.len())
                        && found
                            .iter()
                            .enumerate()
                            .all(|(place, (key, value))| (key, value) == expected[of_expected(place)])
                };
                self.keep(agrees, || {
                    format!("a scan of {name} (reversed: {reversed}) yields {} entries", found.len())
                })?;
            }
            for place in places.range((index, Vec::new())..(index + 1, Vec::new())) {
                let value = match keyspace.as_ref().map(|keyspace| keyspace.get(&place.1)).transpose() {
                    Ok(value) => value.flatten(),
                    Err(_) => {
                        self.errors += 1;
                        continue;
                    }
                };
                let agrees = |state: &&State| state.get(place).map(|held| &held.value[..]) == value.as_deref();
                self.keep(agrees, || {
                    format!("get {name}/{} yields {:?}", shown(&place.1), value.as_deref().map(shown))
                })?;
            }
        }
        Ok(())
    }

    fn keep(&mut self, agrees: impl Fn(&&State) -> bool, what: impl Fn() -> String) -> Checked<()> {
        self.candidates.retain(agrees);
        if self.candidates.is_empty() { Err(format!("no allowed state agrees: {}", what())) } else { Ok(()) }
    }
}
