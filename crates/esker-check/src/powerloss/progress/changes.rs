//! What readers of changes must be told with some number of commits.

use super::{Progress, Recovered};
use crate::Checked;
use crate::feed::{self, FeedReader, LostChanges, retention_in};
use crate::model::Journal;
use crate::powerloss::script::NAMES;
use crate::powerloss::standing::{Found, Setting, name_of};
use crate::state::State;
use esker::{Changes, Db, Explanation};

impl Progress {
    /// Notes that an open begins with these options.
    pub fn note_opening(&mut self, options: &Explanation) {
        let events = self.all_events();
        self.kept = retention_in(options);
        self.retained.begin_open(self.kept, events);
    }

    /// Notes that it has succeeded.
    pub fn note_kept(&mut self, options: &Explanation) {
        let events = self.all_events();
        self.retained.end_open(retention_in(options), events);
    }

    /// How many events the journal has.
    fn all_events(&self) -> usize {
        self.model.journal().map_or(0, |journal| journal.events.len())
    }

    /// What a recovered database may lack for readers of changes.
    fn lost_changes(&self) -> LostChanges {
        if self.relied_on_a_failed_sync { LostChanges::Any } else { LostChanges::Newest }
    }

    /// The commits, and the events, of which a recovered database may consist: the contents decide,
    /// and what readers of changes are told, and the names and settings.
    pub fn find_all(&self, db: &Db, state: &State, least: usize) -> Checked<Recovered> {
        let found = self.standing.check(db)?;
        let count = self.find(state, least)?;
        let told = self.told(db, self.lost_changes())?;
        let Some(told) = told.map_err(|error| format!("a reader of changes fails: {error}"))? else {
            return Ok(Recovered { count, events: *self.events(count).end(), found });
        };
        let journal = self.model.journal().ok_or("there is no journal")?;
        let is_exact = !self.holds_unlogged();
        let with_losses = if is_exact { Vec::new() } else { self.right_where_unlogged_are_lost(state, least) };
        let holds =
            |count: usize| self.agrees(count, state) || with_losses.get(count).is_some_and(|is_right| *is_right);
        let mut last = String::new();
        for count in (least..self.states.len()).rev().filter(|&count| holds(count)) {
            let events = self.events(count).rev().filter(|&events| events >= self.altered);
            // Of changes that are given up nobody is told: the settings say what happened.
            for events in events.filter(|&events| has_led_to(journal, events, &found)) {
                match told.check(journal, events) {
                    Ok(_) => {
                        return Ok(Recovered {
                            count: if is_exact { count } else { self.find(state, least)? },
                            events,
                            found,
                        });
                    }
                    Err(what) if last.is_empty() => last = what,
                    Err(_) => {}
                }
            }
        }
        Err(format!(
            "readers of changes are told of {} batches, which are those of no number of commits from {least} to {}; of {count} \
             commits: {last}",
            told.count(),
            self.attempted()
        ))
    }

    /// So many commits, with the names and settings that everything has led to.
    pub fn supposed(&self, count: usize) -> Recovered {
        let found = (0..NAMES.len()).map(|keyspace| Some(self.standing.present(keyspace))).collect();
        Recovered { count, events: *self.events(count).end(), found }
    }

    /// What a database tells that may have lost so much. Results as for [`feed::told`].
    fn told(&self, db: &Db, lost: LostChanges) -> Checked<esker::Result<Option<feed::All>>> {
        if self.feed_is_known { feed::told(db, (&self.retained, &self.clock), lost) } else { Ok(Ok(None)) }
    }

    /// How many events there may be with so many commits.
    fn events(&self, count: usize) -> std::ops::RangeInclusive<usize> {
        self.ends[count]..=self.ends.get(count + 1).map_or(self.all_events(), |next| next - 1)
    }

    /// A reader of changes that has been told of all of them, by a database in which nothing was
    /// lost; none where none are kept.
    pub fn check_feed(&self, db: &Db) -> Checked<esker::Result<Option<FeedReader>>> {
        let told = match self.told(db, LostChanges::None)? {
            Ok(Some(told)) => told,
            Ok(None) => return Ok(Ok(None)),
            Err(error) => return Ok(Err(error)),
        };
        let journal = self.model.journal().ok_or("there is no journal")?;
        told.check(journal, journal.events.len()).map(|reader| Ok(Some(reader)))
    }

    /// Lets a reader go on that has been told of everything up to some event.
    pub fn read_on(&self, reader: &mut FeedReader, changes: &mut Changes) -> Checked<esker::Result<()>> {
        let journal = self.model.journal().ok_or("there is no journal")?;
        feed::read_on(reader, journal, changes)
    }
}

/// Whether these names and settings are those that so many events have led to, as far as they have
/// changed any.
fn has_led_to(journal: &Journal, events: usize, found: &Found) -> bool {
    let is_so = |(keyspace, found): (usize, &Option<Setting>)| {
        let (Some(face), Some(found)) = (journal.last_altered(events, keyspace), found) else { return true };
        *face.name == name_of(keyspace, found.is_renamed) && found.looks_like(face.operator, face.ttl)
    };
    found.iter().enumerate().all(is_so)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feed::RETENTIONS;
    use crate::model::{Change, Write};
    use crate::powerloss::script::Step;
    use crate::powerloss::session::{Ground, Session, run};
    use crate::powerloss::standing::first_setting;
    use crate::powerloss::{option_variants, put};
    use crate::state::Durability;
    use esker::env::mem::MemEnv;
    use esker::{ChangeRetention, Error};

    /// If an open that keeps changes were not noted, or what was before it were to be told, this
    /// would fail.
    #[test]
    fn readers_are_told_what_was_written_since_changes_are_kept() {
        let (_, options) = option_variants().swap_remove(0);
        let write = |number: usize| Step::Single(put("key", &number.to_string()), Durability::Async);
        for first in RETENTIONS {
            for second in RETENTIONS {
                let keep = |retention: ChangeRetention| [Step::Keep(Some(retention)), Step::Compare];
                let mut steps = vec![Step::Rename(0), write(1)];
                steps.extend(keep(first).into_iter().chain([write(2), Step::Rename(0), Step::Compare, write(3)]));
                steps.extend(keep(second).into_iter().chain([write(4), Step::Flush, Step::DropAndReopen]));
                steps.extend([Step::ReadBeside, Step::Keep(None), write(5), Step::Compare]);
                steps.extend(keep(first).into_iter().chain([write(6), Step::Compare]));
                run(&steps, &Ground::new(&options, MemEnv::new()), &mut Progress::default(), &mut |_| {})
                    .unwrap_or_else(|error| panic!("{first}, then {second}: {error}"));
            }
        }
    }

    /// If a change that was tried were taken for one that has happened wherever nobody is told of
    /// either, or one that has happened were not, this would fail.
    #[test]
    fn settings_tell_whether_a_change_of_which_nobody_is_told_has_happened() {
        let (_, options) = option_variants().swap_remove(0);
        let mut progress = Progress::default();
        let ground = Ground::new(&options, MemEnv::new());
        let keep = Step::Keep(Some(ChangeRetention::Bytes(0)));
        let steps = [keep.clone(), Step::Single(put("key", "1"), Durability::Sync), Step::Flush, keep];
        run(&steps, &ground, &mut progress, &mut |_| {}).unwrap();
        let ground = ground.keeping(Some(ChangeRetention::Bytes(0)));
        let session = Session::open(&ground, &mut progress).unwrap();
        assert!(matches!(session.db().changes(1), Err(Error::Gone { .. })), "nobody is told of anything");
        let state = progress.newest().clone();
        let before = progress.all_events();
        let next = Setting { is_renamed: true, ..first_setting(0) };
        progress.attempt_alteration(0, next);
        let events = |progress: &Progress| progress.find_all(session.db(), &state, 1).unwrap().events;
        assert_eq!((events(&progress), progress.all_events()), (before, before + 1));
        session.db().existing_keyspace(NAMES[0]).unwrap().rename(&name_of(0, true)).unwrap();
        assert_eq!(events(&progress), before + 1);
    }

    /// If any number of commits were possible where writes without log may be lost, and nobody is
    /// told of changes, this would fail.
    #[test]
    fn contents_tell_whether_a_write_of_which_nobody_is_told_has_happened() {
        let (_, options) = option_variants().swap_remove(0);
        let mut progress = Progress::default();
        let ground = Ground::new(&options, MemEnv::new()).keeping(Some(ChangeRetention::Bytes(0)));
        let keep = Step::Keep(Some(ChangeRetention::Bytes(0)));
        run(&[Step::Single(put("key", "1"), Durability::Sync), Step::Flush, keep], &ground, &mut progress, &mut |_| {})
            .unwrap();
        let session = Session::open(&ground, &mut progress).unwrap();
        assert!(matches!(session.db().changes(1), Err(Error::Gone { .. })), "nobody is told of anything");
        let (before, state) = (progress.all_events(), progress.newest().clone());
        progress.attempt(&[put("unlogged", "2")], Durability::Unlogged);
        progress.attempt(&[put("key", "3")], Durability::Async);
        let events = |state: &State| progress.find_all(session.db(), state, 1).unwrap().events;
        assert_eq!(events(&state), before + 1, "without the last one, and perhaps without the one in no log");
        let mut newer = state.clone();
        let newest = progress.newest();
        let key = newest.keys().find(|(_, key)| key == b"key").unwrap();
        newer.insert(key.clone(), newest[key].clone());
        assert_eq!(events(&newer), before + 2, "without the one in no log");
    }

    /// If the clock were not followed, or one that went back made everything old enough, this would
    /// fail.
    #[test]
    fn a_clock_that_goes_back_says_how_much_time_has_passed_since_an_event_at_most() {
        let mut progress = Progress::default();
        let put = |progress: &mut Progress| {
            progress.attempt(&[Write::new(0, "k", Change::Put(Vec::new()))], Durability::Async);
        };
        let passed = |progress: &Progress, event: usize| {
            let journal = progress.model.journal().unwrap();
            progress.clock.most_passed(event, journal.events[event].now)
        };
        progress.tick(10);
        put(&mut progress);
        progress.tick(1000);
        assert_eq!(passed(&progress, 0), 1000);
        progress.turn_back(1500);
        put(&mut progress);
        assert_eq!((passed(&progress, 0), passed(&progress, 1)), (1000, 0));
        progress.tick(1200);
        assert_eq!((passed(&progress, 0), passed(&progress, 1)), (1200, 1200));
        let state = progress.newest().clone();
        let mut recovered = progress.recovered(&progress.supposed(1), state, true);
        put(&mut recovered);
        let last = recovered.model.journal().unwrap().events.len() - 1;
        assert_eq!((passed(&recovered, 0), passed(&recovered, last)), (1200, 0), "of lost events nothing is left");
        recovered.tick(1);
        assert_eq!(passed(&recovered, last), 1);
    }
}
