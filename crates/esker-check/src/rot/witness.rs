//! Asking a database for everything that it holds, and which states its answers leave possible.

use super::changes::Told;
use super::harm::Damage;
use crate::Checked;
use crate::model::NEVER;
use crate::orders::order_of;
use crate::powerloss::script::NAMES;
use crate::state::{Held, Place, State, find_keyspace, shown};
use esker::{ChangeBatch, Db, Error};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

/// A pair of a load: where it goes, and its value.
pub type Pair = (Place, Vec<u8>);

/// What a database may hold, and how many batches readers of changes are told then.
pub struct Candidate<'a> {
    state: Cow<'a, State>,
    told: RangeInclusive<usize>,
    /// The keyspace that was loaded behind those batches.
    loaded: Option<usize>,
}

impl<'a> Candidate<'a> {
    /// That state, with so many batches.
    pub fn new(state: &'a State, told: RangeInclusive<usize>) -> Candidate<'a> {
        Candidate { state: Cow::Borrowed(state), told, loaded: None }
    }
}

/// The states that agree with all answers so far.
pub struct Witness<'a> {
    candidates: Vec<Candidate<'a>>,
    /// All batches that the undamaged database tells, if it keeps its changes.
    all: Option<&'a [ChangeBatch]>,
    pub errors: u64,
    /// The first of them that a check of the files has to know of.
    pub damage: Option<Error>,
    /// Whether the manifest in force may be of a time before a keyspace had its operator.
    may_lack_operators: bool,
}

impl<'a> Witness<'a> {
    /// One that has asked nothing, of a database that may hold one of these.
    pub fn new(candidates: Vec<Candidate<'a>>, all: Option<&'a [ChangeBatch]>) -> Witness<'a> {
        Witness { candidates, all, errors: 0, damage: None, may_lack_operators: false }
    }

    /// The same of a database that was damaged so.
    pub fn behind(self, damages: &[Damage]) -> Witness<'a> {
        Witness { may_lack_operators: damages.iter().any(Damage::may_bring_back_a_manifest), ..self }
    }

    /// Notes a load: each state has it, or, if it failed, may have it. Only values are compared, so
    /// that it does not matter when the pairs expire. One of nothing changes nothing.
    pub fn note_load(&mut self, load: &[Pair], has_failed: bool) {
        let with_load = |candidate: &Candidate<'a>| {
            let mut state = candidate.state.clone().into_owned();
            let held = |value: &Vec<u8>| Held::value(value.clone(), NEVER);
            state.extend(load.iter().map(|(place, value)| (place.clone(), held(value))));
            let loaded = load.first().map(|((keyspace, _), _)| *keyspace).or(candidate.loaded);
            Candidate { state: Cow::Owned(state), told: candidate.told.clone(), loaded }
        };
        let loaded: Vec<Candidate<'a>> = self.candidates.iter().map(with_load).collect();
        if has_failed { self.candidates.extend(loaded) } else { self.candidates = loaded }
    }

    /// Asks for everything: what is there, and the changes that led to it.
    pub fn question(&mut self, db: &Db, places: &BTreeSet<Place>) -> Checked<()> {
        self.question_contents(db, places)?;
        self.question_changes(db)
    }

    /// Asks for all changes, where the undamaged database keeps them. A check of the files reads
    /// the log only as far as recovery needs it, so that an error here is no damage that it has to
    /// know of.
    fn question_changes(&mut self, db: &Db) -> Checked<()> {
        let Some(all) = self.all else { return Ok(()) };
        let told = Told::by(db)?;
        self.errors += told.errors;
        let agrees = |candidate: &Candidate<'a>| {
            let mut counts = candidate.told.clone();
            counts.any(|count| told.agrees(&all[..count.min(all.len())], candidate.loaded))
        };
        self.retain(agrees, || format!("readers of changes are told {told}"))
    }

    /// Asks for what is there: scans in both directions, and gets of what is or was there. A copy
    /// has no more: it "keeps no changes from before".
    pub fn question_contents(&mut self, db: &Db, places: &BTreeSet<Place>) -> Checked<()> {
        for (index, name) in NAMES.iter().enumerate() {
            let keyspace = match find_keyspace(db, name) {
                Ok(keyspace) => Some(keyspace),
                Err(Error::NotFound { .. }) => None,
                Err(error) => {
                    self.note_error(error);
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
                        Err(error) => {
                            self.note_error(error);
                            whole = false;
                            break;
                        }
                    }
                }
                let agrees = |state: &State| {
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
                    Err(error) => {
                        self.note_error(error);
                        continue;
                    }
                };
                let agrees = |state: &State| state.get(place).map(|held| &held.value[..]) == value.as_deref();
                self.keep(agrees, || {
                    format!("get {name}/{} yields {:?}", shown(&place.1), value.as_deref().map(shown))
                })?;
            }
        }
        Ok(())
    }

    fn note_error(&mut self, error: Error) {
        self.errors += 1;
        // A check of the files knows nothing of operators.
        let is_explained = self.may_lack_operators && matches!(error, Error::MissingMergeOperator { .. });
        if self.damage.is_none() && !is_explained {
            self.damage = Some(error);
        }
    }

    fn keep(&mut self, agrees: impl Fn(&State) -> bool, what: impl Fn() -> String) -> Checked<()> {
        self.retain(|candidate| agrees(&candidate.state), what)
    }

    fn retain(&mut self, agrees: impl Fn(&Candidate<'a>) -> bool, what: impl Fn() -> String) -> Checked<()> {
        self.candidates.retain(agrees);
        if self.candidates.is_empty() { Err(format!("no allowed state agrees: {}", what())) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated::MEMORY_PATH;
    use std::path::Path;

    /// If it were excused in every case, nobody would look why an intact keyspace cannot be read.
    #[test]
    fn only_an_older_manifest_explains_that_an_operator_is_missing() {
        let damage = |name: &str, is_old: bool| {
            let (path, range) = (Path::new(MEMORY_PATH).join(name), 0..1);
            Damage { path, range, is_flip: false, is_old }
        };
        let is_explained = |damages: &[Damage]| {
            let mut witness = Witness::new(Vec::new(), None).behind(damages);
            witness.note_error(Error::MissingMergeOperator { keyspace: "b".into(), operator: "uint64add".into() });
            assert_eq!(witness.errors, 1);
            witness.damage.is_none()
        };
        assert!(is_explained(&[damage("CURRENT", true)]));
        assert!(is_explained(&[damage("000009.table", false), damage("MANIFEST-000012", true)]));
        assert!(!is_explained(&[]) && !is_explained(&[damage("CURRENT", false), damage("MANIFEST-000012", false)]));
        assert!(!is_explained(&[damage("000009.table", true)]) && !is_explained(&[damage("000003.wal", true)]));
        let mut witness = Witness::new(Vec::new(), None).behind(&[damage("CURRENT", true)]);
        witness.note_error(Error::NotFound { what: "a file".into() });
        assert!(witness.damage.is_some(), "of other errors an older manifest explains none");
    }

    #[test]
    fn what_a_load_gives_is_there_and_of_one_that_failed_may_be_there() {
        let (place, other): (Place, Place) = ((0, b"key".to_vec()), (0, b"other".to_vec()));
        let held = |value: &[u8]| Held::value(value.to_vec(), NEVER);
        let before = State::from([(place.clone(), held(b"old")), (other.clone(), held(b"same"))]);
        let after = State::from([(place.clone(), held(b"new")), (other, held(b"same"))]);
        let load = [(place, b"new".to_vec())];
        for has_failed in [false, true] {
            let mut witness = Witness::new(vec![Candidate::new(&before, 0..=0)], None);
            witness.note_load(&load, has_failed);
            let has = |state: &State| witness.candidates.iter().any(|candidate| *candidate.state == *state);
            assert!(has(&after));
            assert_eq!(has(&before), has_failed);
        }
    }
}
