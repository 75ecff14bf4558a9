//! The steps by which large values are collected.

use super::{Maker, counts};
use crate::model::{Change, Write};
use crate::powerloss::script::{Step, is_fading};
use std::collections::BTreeSet;

/// So many scripts in a hundred have such steps.
const COLLECTING_PERCENT: usize = 40;

/// How many large values there are then at most.
const LARGE_VALUES: usize = 6;

impl Maker {
    /// Writes large values, overwrites or deletes all but one, and compacts, so that the one that
    /// lives is copied and its file goes. By chance such steps seldom come together.
    pub(super) fn collecting_steps(&mut self) -> Option<Vec<Step>> {
        if !self.random.percent(COLLECTING_PERCENT) {
            return None;
        }
        let cast = self.cast.iter().copied();
        let suitable: Vec<usize> = cast.filter(|&keyspace| !is_fading(keyspace) && !counts(keyspace)).collect();
        let keyspace = *suitable.get(self.random.below(suitable.len()))?;
        let keys: BTreeSet<Vec<u8>> = (0..LARGE_VALUES).map(|_| self.key()).collect();
        let mut large = Vec::new();
        for key in &keys {
            let length = self.random.between(600, 1500);
            large.push(Write::new(keyspace, key.clone(), Change::Put(self.filled(length))));
        }
        let living = self.random.below(keys.len());
        let mut dead = Vec::new();
        for (_, key) in keys.into_iter().enumerate().filter(|(place, _)| *place != living) {
            let change = if self.random.percent(50) { Change::Delete } else { Change::Put(self.random.bytes(3)) };
            dead.push(Write::new(keyspace, key, change));
        }
        let durabilities = [self.durability(&large), self.durability(&dead)];
        let mut steps = vec![Step::Batch(large, durabilities[0])];
        steps.extend(self.random.percent(50).then_some(Step::Flush));
        steps.extend([Step::Batch(dead, durabilities[1]), Step::Compact]);
        Some(steps)
    }

    /// The same, as steps that are put between others.
    pub(super) fn collections(&mut self) -> Vec<Vec<Step>> {
        self.collecting_steps().into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::powerloss::generated::COLLECTING;
    use crate::powerloss::generated::tests::limits_of;
    use crate::powerloss::progress::Progress;
    use crate::powerloss::session::{Ground, Session};
    use crate::powerloss::{blob_files, option_variants};
    use crate::random::Random;
    use esker::env::mem::MemEnv;
    use esker::{Compression, Options};

    /// What came of the collecting steps of a script on a database without anything else: whether
    /// the last of them made a blob file go, and whether it copied large values.
    fn collected(seed: u64, options: &Options) -> Option<(bool, bool)> {
        let mut maker = Maker::of(seed, limits_of(seed));
        maker.random = Random::derived(seed, &[COLLECTING]);
        let mut steps = maker.collecting_steps()?;
        assert_eq!(steps.pop(), Some(Step::Compact), "seed {seed}");
        let env = MemEnv::new();
        let mut progress = Progress::default();
        let mut session = Session::open(&Ground::new(options, env.clone()), &mut progress).unwrap();
        let mut perform = |session: &mut Session, step: &Step| {
            let performed = session.perform(step, &mut progress);
            performed.unwrap_or_else(|error| panic!("seed {seed}, {step:?}: {error}"));
        };
        steps.iter().for_each(|step| perform(&mut session, step));
        let before = (blob_files(&env), session.db().stats().blob_written_bytes);
        perform(&mut session, &Step::Compact);
        perform(&mut session, &Step::Compare);
        let after = (blob_files(&env), session.db().stats().blob_written_bytes);
        session.close().unwrap();
        Some((!before.0.is_subset(&after.0), after.1 > before.1))
    }

    /// Values that are not compressed are copied for no other reason than that most of their file
    /// is garbage. If most values lived, or were not large ones, this would fail.
    #[test]
    fn collecting_steps_make_blob_files_go_and_copy_what_lives() {
        let variants = option_variants();
        let (_, options) = variants.iter().find(|(name, _)| *name == "large-values").unwrap();
        let options = options.clone().compression(Compression::None).upper_compression(Compression::None);
        let all: Vec<(bool, bool)> = (0..150).filter_map(|seed| collected(seed, &options)).collect();
        let gone = all.iter().filter(|(is_gone, _)| *is_gone).count();
        let copied = all.iter().filter(|(_, is_copied)| *is_copied).count();
        println!("{} scripts, in {gone} files went, in {copied} values were copied", all.len());
        assert!(all.len() >= 30, "{}", all.len());
        assert!(gone * 4 >= all.len() * 3 && copied * 3 >= all.len(), "{gone} and {copied} of {}", all.len());
    }
}
