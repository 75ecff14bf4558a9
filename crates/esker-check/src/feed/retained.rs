//! For how long changes were kept from one open of a database to the next, and which of them may be
//! gone for that.

use crate::Checked;
use crate::model::Journal;
use esker::{ChangeRetention, Explanation};
use std::time::Duration;

/// How many bytes of log at least are kept for readers of changes in each option set that keeps
/// some.
pub const LEAST_KEPT_BYTES: u64 = 4 << 10;
/// What stands for all of them.
pub const ALL_BYTES: u64 = 1 << 40;

/// For how long they are kept in the option set that says it so.
pub const KEPT_TIME: Duration = Duration::from_millis(1234);

/// For how long an open may keep changes.
pub const RETENTIONS: [ChangeRetention; 5] = [
    ChangeRetention::Bytes(ALL_BYTES),
    ChangeRetention::Bytes(LEAST_KEPT_BYTES),
    ChangeRetention::Bytes(0),
    ChangeRetention::Time(KEPT_TIME),
    ChangeRetention::AsBefore,
];

/// Which of these the options of a database say; none if it is to keep no changes.
pub fn retention_in(options: &Explanation) -> Option<ChangeRetention> {
    let option = options.options.iter().find(|option| option.name == "keep_changes")?;
    RETENTIONS.into_iter().find(|retention| retention.to_string() == option.value)
}

/// What the clock of a database has shown, in order, each time behind so many events of a journal.
#[derive(Clone, Debug, Default)]
pub struct ClockReadings {
    all: Vec<(usize, u64)>,
}

impl ClockReadings {
    /// Notes what it shows from now on.
    pub fn note(&mut self, events: usize, now: u64) {
        self.all.push((events, now));
    }

    /// The same of a journal of which only the first so many events have happened.
    pub fn up_to(&self, events: usize) -> ClockReadings {
        ClockReadings { all: self.all.iter().map(|&(behind, now)| (behind.min(events), now)).collect() }
    }

    /// How much time has passed since an event of that time at most, as far as the clock tells.
    ///
    /// The age of a change counts from when its segment of the log was ended, or found by an open,
    /// at any time behind it, up to when it is given up, at any later time. Where the clock went
    /// back in between, neither the time of the event nor the latest time says how long that was:
    /// no longer than the greatest rise of the clock.
    pub fn most_passed(&self, event: usize, then: u64) -> u64 {
        let (mut lowest, mut most) = (then, 0);
        for &(_, now) in self.all.iter().filter(|(events, _)| *events > event) {
            most = most.max(now.saturating_sub(lowest));
            lowest = lowest.min(now);
        }
        most
    }
}

/// Whether a database keeps changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keeps {
    No,
    Yes,
    /// An open that is to end or to begin it was tried, and may have been cut short before that.
    Either,
}

/// For how long changes were kept, by the opens of a database. Events are numbered as in the
/// journal.
#[derive(Clone, Debug)]
pub struct Retained {
    keeps: Keeps,
    /// Nobody is told of an event before this one: changes were not kept then, or were given up
    /// since by an open that keeps none.
    begun: usize,
    /// Events before this one may be gone, however long changes are kept: an open that keeps none
    /// may have got that far.
    certain: usize,
    /// For how long, by each open since changes were kept, and before which event the next one
    /// began: later ones were never kept so.
    retentions: Vec<(ChangeRetention, usize)>,
}

impl Default for Retained {
    /// Of what is no database yet.
    fn default() -> Retained {
        Retained { keeps: Keeps::No, begun: 0, certain: 0, retentions: Vec::new() }
    }
}

impl Retained {
    /// Notes that an open begins, behind so many events. It may be cut short, and everything that
    /// it does may have happened or not.
    pub fn begin_open(&mut self, retention: Option<ChangeRetention>, events: usize) {
        match (retention, self.keeps) {
            (None, Keeps::No) => {}
            // "An open without the option gives up what is kept".
            (None, _) => (self.keeps, self.certain) = (Keeps::Either, events),
            // "Where none are kept, none are".
            (Some(ChangeRetention::AsBefore), Keeps::No) => {}
            (Some(retention), Keeps::No) => {
                *self = Retained {
                    keeps: Keeps::Either,
                    begun: events,
                    certain: events,
                    retentions: vec![(retention, usize::MAX)],
                };
            }
            (Some(retention), keeps) => {
                // "The next one with it begins anew".
                if keeps == Keeps::Either && retention != ChangeRetention::AsBefore {
                    self.certain = events;
                }
                // Cut short, this one may have changed nothing: `end_open` ends those before.
                self.retentions.push((retention, usize::MAX));
            }
        }
    }

    /// Notes that it has succeeded.
    pub fn end_open(&mut self, retention: Option<ChangeRetention>, events: usize) {
        match retention {
            None => *self = Retained { begun: events, certain: events, ..Retained::default() },
            Some(retention) => {
                // "Where none are kept, none are".
                if retention != ChangeRetention::AsBefore {
                    self.keeps = Keeps::Yes;
                }
                let before = self.retentions.len().saturating_sub(1);
                self.retentions[..before].iter_mut().for_each(|(_, end)| *end = events.min(*end));
            }
        }
    }

    /// The same of a journal of which only the first so many events have happened.
    pub fn up_to(&self, events: usize) -> Retained {
        // None of the events that come in the place of the others is kept as before they were.
        let ended = |end: usize| if end == usize::MAX { end } else { end.min(events) };
        let retentions = self.retentions.iter().map(|&(retention, end)| (retention, ended(end))).collect();
        Retained { begun: self.begun.min(events), certain: self.certain.min(events), retentions, ..self.clone() }
    }

    /// Whether a database that keeps changes, or none, as it says, may do so.
    pub fn check_whether(&self, are_kept: bool) -> Checked<()> {
        match (self.keeps, are_kept) {
            (Keeps::Yes, false) => Err(format!("no changes are kept: {self:?}")),
            (Keeps::No, true) => Err(format!("changes are kept: {self:?}")),
            _ => Ok(()),
        }
    }

    /// The first event of which anybody may be told.
    pub fn begun(&self) -> usize {
        self.begun
    }

    /// Whether an open that may have been cut short may have given up more.
    pub fn may_have_begun_anew(&self) -> bool {
        self.certain > self.begun
    }

    /// Whether any changes may have been given up, where so many bytes of them are left, if that is
    /// known.
    pub fn may_give_up(&self, left: Option<u64>) -> bool {
        let may_go = |retention: &ChangeRetention| match retention {
            ChangeRetention::Bytes(bytes) => is_enough(*bytes, left),
            ChangeRetention::Time(_) => true,
            _ => false,
        };
        self.certain > 0 || self.retentions.iter().any(|(retention, _)| may_go(retention))
    }

    /// Whether these events may be gone: "at least the changes in the last so many bytes", "at
    /// least the changes of this last period". `left`: as above.
    pub fn check_gone(
        &self,
        gone: &[usize],
        (journal, clock): (&Journal, &ClockReadings),
        left: Option<u64>,
    ) -> Checked<()> {
        let Some(&last) = gone.last().filter(|&&last| last >= self.certain) else { return Ok(()) };
        let then = journal.events[last].now;
        let passed = clock.most_passed(last, then);
        let may_go = |retention: &ChangeRetention| match retention {
            ChangeRetention::Bytes(bytes) => is_enough(*bytes, left),
            ChangeRetention::Time(time) => u128::from(passed) >= time.as_millis(),
            _ => false,
        };
        if self.retentions.iter().any(|(retention, end)| last < *end && may_go(retention)) {
            return Ok(());
        }
        Err(format!(
            "a change of {then}, event {last}, was given up, {passed} ms later at most, with {left:?} bytes left: \
             {self:?}"
        ))
    }
}

/// Whether what is left is as much as is to be kept.
fn is_enough(bytes: u64, left: Option<u64>) -> bool {
    bytes < ALL_BYTES && left.is_none_or(|left| left >= bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Change, Model, Operator, Write};
    use esker::Options;

    const ALL: Option<ChangeRetention> = Some(ChangeRetention::Bytes(ALL_BYTES));
    const LEAST: Option<ChangeRetention> = Some(ChangeRetention::Bytes(LEAST_KEPT_BYTES));
    const AS_BEFORE: Option<ChangeRetention> = Some(ChangeRetention::AsBefore);

    /// What is known behind these opens, each behind so many events; the last one is cut short if
    /// that is said.
    fn behind(opens: &[(Option<ChangeRetention>, usize)], last_is_cut: bool) -> Retained {
        let mut kept = Retained::default();
        for (number, &(retention, events)) in opens.iter().enumerate() {
            kept.begin_open(retention, events);
            if !last_is_cut || number + 1 < opens.len() {
                kept.end_open(retention, events);
            }
        }
        kept
    }

    /// Whether the first so many of ten events, a second apart, may be gone.
    fn may_be_gone(kept: &Retained, count: usize, left: Option<u64>) -> bool {
        let mut model = Model::new(&[Operator::None]);
        model.keep_journal(Journal::new(&["a"]));
        let mut clock = ClockReadings::default();
        for event in 0..10 {
            model.set_now(event as u64 * 1000);
            clock.note(event, event as u64 * 1000);
            model.commit(&[Write::new(0, "key", Change::Put(Vec::new()))]);
        }
        let gone: Vec<usize> = (0..count).collect();
        kept.check_gone(&gone, (model.journal().unwrap(), &clock), left).is_ok()
    }

    #[test]
    fn a_retention_is_read_in_the_options() {
        for retention in RETENTIONS {
            assert_eq!(retention_in(&Options::default().keep_changes(retention).explain()), Some(retention));
        }
        assert_eq!(retention_in(&Options::default().explain()), None);
    }

    #[test]
    fn what_an_open_without_a_retention_gives_up_nobody_is_told() {
        let kept = behind(&[(ALL, 0), (None, 3), (ALL, 5)], false);
        assert_eq!((kept.begun(), kept.may_have_begun_anew()), (5, false));
        assert!(may_be_gone(&kept, 5, None) && !may_be_gone(&kept, 6, None));
        let none = behind(&[(ALL, 0), (None, 3)], false);
        assert!(none.check_whether(true).is_err() && none.check_whether(false).is_ok());
        assert!(kept.check_whether(true).is_ok() && kept.check_whether(false).is_err());
    }

    #[test]
    fn an_open_that_was_cut_short_may_have_given_changes_up_and_may_not() {
        let kept = behind(&[(ALL, 0), (None, 3)], true);
        assert!(kept.check_whether(true).is_ok() && kept.check_whether(false).is_ok());
        let kept = behind(&[(ALL, 0), (LEAST, 3)], true);
        assert!(kept.check_whether(false).is_err(), "that gives up none at all");
        let mut kept = behind(&[(ALL, 0), (None, 3)], true);
        kept.begin_open(ALL, 4);
        kept.end_open(ALL, 4);
        assert_eq!((kept.begun(), kept.may_have_begun_anew()), (0, true));
        assert!(may_be_gone(&kept, 4, None) && !may_be_gone(&kept, 5, None));
        let fewer = kept.up_to(2);
        assert!(may_be_gone(&fewer, 2, None) && !may_be_gone(&fewer, 3, None), "later events are other ones now");
    }

    #[test]
    fn as_before_changes_nothing() {
        let kept = behind(&[(AS_BEFORE, 0)], false);
        assert!(kept.check_whether(true).is_err());
        let kept = behind(&[(ALL, 0), (AS_BEFORE, 3)], false);
        assert!(kept.check_whether(false).is_err() && !may_be_gone(&kept, 1, None) && !kept.may_give_up(None));
    }

    #[test]
    fn only_what_some_open_allowed_is_given_up() {
        let all = behind(&[(ALL, 0)], false);
        assert!(!all.may_give_up(None) && !may_be_gone(&all, 1, None));
        let least = behind(&[(ALL, 0), (LEAST, 3), (ALL, 4)], false);
        assert!(may_be_gone(&least, 4, Some(LEAST_KEPT_BYTES)) && may_be_gone(&least, 4, None));
        assert!(!may_be_gone(&least, 5, None), "what was written since is kept");
        let fewer = least.up_to(2);
        assert!(may_be_gone(&fewer, 2, None) && !may_be_gone(&fewer, 3, None), "later events are other ones now");
        let least = behind(&[(ALL, 0), (LEAST, 3), (AS_BEFORE, 4)], false);
        assert!(may_be_gone(&least, 4, None) && !may_be_gone(&least, 5, None), "what is kept stays");
        let least = behind(&[(ALL, 0), (LEAST, 3), (ALL, 4)], true);
        assert!(may_be_gone(&least, 9, None), "the last open may have changed nothing");
        let least = behind(&[(ALL, 0), (LEAST, 3), (ALL, 4)], false);
        assert!(!may_be_gone(&least, 1, Some(LEAST_KEPT_BYTES - 1)) && !least.may_give_up(Some(0)));
        let time = behind(&[(Some(ChangeRetention::Time(KEPT_TIME)), 0)], false);
        // The last reading is nine seconds behind the first event.
        assert!(may_be_gone(&time, 8, Some(0)) && !may_be_gone(&time, 9, Some(u64::MAX)));
    }
}
