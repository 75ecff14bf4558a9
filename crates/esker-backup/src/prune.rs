//! Removing backups, and the objects that no backup names.
//!
//! 1. List the objects, then the intents, then read the log.
//! 2. Commit a record that says which backups are kept, and condemns the uploads that have ended:
//!    those of backups, those condemned before, and those without a sign of life for the grace
//!    period. If another create or prune has that number, go on at 1. From here on the others do
//!    not exist.
//! 3. Delete the listed objects that no kept backup names, unless their upload has an intent and is
//!    not condemned.
//! 4. Delete the intents of condemned uploads, and the records below the own one that are not kept.
//!
//! A prune that is cut short leaves work to the next one, and nothing else.
//!
//! # Why no backup that exists lacks an object
//!
//! Let a prune with number P delete the object X of upload U, and a backup with number B name X and
//! exist. Numbers are in one order, and what commits N has read the log up to N - 1.
//!
//! * B < P: the prune has read B. B exists, so P keeps it, and X is not deleted in step 3.
//! * B > P: B relied on X as one that a backup A names that existed when B was committed, or
//!   through the intent of U.
//!   * A > P: the same case again, with A for B; numbers only get smaller. A < P: A exists behind
//!     P, so P keeps it, and X is not deleted.
//!   * Through the intent. It is put once, before X, and never again. Step 3 had listed X, so the
//!     intent had been put when the intents were listed in step 1. If it was gone by then, it is
//!     gone when B looks. If it was there, P condemns U, or X would not be deleted. B has read the
//!     newest prune Q below B, and Q >= P. If Q = P, B sees that U is condemned. If Q > P, Q has
//!     read P and lists what P condemned and still has an intent; so either Q condemns U, or the
//!     intent was gone before Q, and is when B looks, which is after it read Q.
//!
//! The grace period decides which creates are disturbed, not whether a backup is whole: a create
//! whose upload was condemned though it goes on sees that before it commits, and copies again.

use crate::error::{Error, Result};
use crate::layout;
use crate::log::{Log, LogReader, ReadBackup};
use crate::record::{PruneRecord, Record};
use crate::store::Store;
use futures_util::{StreamExt, TryStreamExt, stream};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Which backups to remove. Without anything set none is, only what no backup needs.
///
/// ```
/// use std::time::Duration;
/// // Those that are older than 30 days, but never the newest seven.
/// let month = Duration::from_secs(30 * 86_400);
/// let policy = esker_backup::Prune::default().keep_last(7).older_than(month);
/// # let _ = policy;
/// ```
#[derive(Clone, Debug)]
pub struct Prune {
    keep_last: Option<usize>,
    older_than: Option<Duration>,
    backups: Vec<u64>,
    grace: Duration,
    dry_run: bool,
}

impl Default for Prune {
    fn default() -> Prune {
        let grace = Duration::from_secs(86_400);
        Prune { keep_last: None, older_than: None, backups: Vec::new(), grace, dry_run: false }
    }
}

impl Prune {
    /// Removes backups that are not among the newest so many. With
    /// [`older_than`](Prune::older_than), those that both say.
    ///
    /// ```
    /// let policy = esker_backup::Prune::default().keep_last(7);
    /// # let _ = policy;
    /// ```
    #[must_use]
    pub fn keep_last(mut self, backups: usize) -> Prune {
        self.keep_last = Some(backups);
        self
    }

    /// Removes backups that were made longer ago, by the clocks of their makers and of this call.
    ///
    /// ```
    /// use std::time::Duration;
    /// let policy = esker_backup::Prune::default().older_than(Duration::from_secs(30 * 86_400));
    /// # let _ = policy;
    /// ```
    #[must_use]
    pub fn older_than(mut self, age: Duration) -> Prune {
        self.older_than = Some(age);
        self
    }

    /// Removes this backup, whatever else is set.
    ///
    /// ```
    /// let policy = esker_backup::Prune::default().backup(3).backup(5);
    /// # let _ = policy;
    /// ```
    #[must_use]
    pub fn backup(mut self, number: u64) -> Prune {
        self.backups.push(number);
        self
    }

    /// How long a create may show no sign of life before its copies count as left behind: a day
    /// unless set otherwise; a create gives one every five minutes, by the clock of the store. With
    /// less, a create that goes on may have to copy again; it never makes a backup that lacks
    /// anything.
    ///
    /// ```
    /// // No create is under way: what one that was cut short has left can go at once.
    /// let policy = esker_backup::Prune::default().grace(std::time::Duration::ZERO);
    /// # let _ = policy;
    /// ```
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Prune {
        self.grace = grace;
        self
    }

    /// Only says what would be removed.
    ///
    /// ```
    /// # let target = esker_backup::Target::url("memory:///", [("", "")])?;
    /// let policy = esker_backup::Prune::default().keep_last(7).dry_run(true);
    /// println!("would remove {:?}", target.prune(&policy)?.backups);
    /// # Ok::<(), esker_backup::Error>(())
    /// ```
    #[must_use]
    pub fn dry_run(mut self, dry_run: bool) -> Prune {
        self.dry_run = dry_run;
        self
    }

    /// The numbers of the backups that go.
    fn removed(&self, backups: &BTreeMap<u64, ReadBackup>, now: SystemTime) -> Result<BTreeSet<u64>> {
        let mut removed = BTreeSet::new();
        for number in &self.backups {
            if !backups.contains_key(number) {
                return Err(Error::no_backup(format_args!("backup {number}")));
            }
            removed.insert(*number);
        }
        if self.keep_last.is_none() && self.older_than.is_none() {
            return Ok(removed);
        }
        let beyond = backups.keys().rev().skip(self.keep_last.unwrap_or(0));
        for number in beyond {
            let is_old = match (self.older_than, &backups[number]) {
                (None, _) => true,
                // Its time is not known.
                (Some(_), Err(_)) => false,
                (Some(age), Ok(backup)) => {
                    let made = UNIX_EPOCH + Duration::from_millis(backup.time_ms);
                    now.duration_since(made).is_ok_and(|passed| passed >= age)
                }
            };
            if is_old {
                removed.insert(*number);
            }
        }
        Ok(removed)
    }
}

/// What a prune has removed, or would remove.
///
/// ```
/// # let target = esker_backup::Target::url("memory:///", [("", "")])?;
/// let report = target.prune(&esker_backup::Prune::default().keep_last(7))?;
/// println!("removed {:?}, kept {:?}", report.backups, report.kept);
/// # Ok::<(), esker_backup::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PruneReport {
    /// The numbers of the backups.
    pub backups: Vec<u64>,
    /// The numbers of those that stay.
    pub kept: Vec<u64>,
    /// How many objects with the contents of files.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// What there was to decide about.
struct Survey {
    /// File names and sizes.
    objects: Vec<(String, u64)>,
    /// The uploads that have an intent.
    intents: BTreeSet<String>,
    /// Signs of life without an intent.
    signs: Vec<String>,
    /// When each upload showed life.
    alive: BTreeMap<String, SystemTime>,
}

/// Removes what `policy` says.
pub async fn prune(store: &Store<'_>, policy: &Prune) -> Result<PruneReport> {
    let reader = LogReader::new(store);
    loop {
        let survey = survey(store).await?;
        let (log, backups) = reader.read_all().await?;
        let now = SystemTime::now();
        let removed = policy.removed(&backups, now)?;
        let kept: Vec<u64> = backups.keys().copied().filter(|number| !removed.contains(number)).collect();
        for number in &kept {
            if let Err(what) = &backups[number] {
                let what = format!("{what}; what it names is not known, so remove it first, with its number");
                return Err(Error::damaged(layout::record(*number), what));
            }
        }
        let condemned = survey.condemned(&log, &backups, (policy.grace, now));
        let objects = survey.unnamed(&kept, &backups, &condemned);
        let report = PruneReport {
            backups: removed.iter().copied().collect(),
            kept: kept.clone(),
            objects: objects.len() as u64,
            bytes: objects.iter().map(|(_, size)| size).sum(),
        };
        let stale = log.numbers.iter().any(|number| Some(*number) != log.newest_prune && !kept.contains(number));
        let idle =
            removed.is_empty() && objects.is_empty() && condemned.is_empty() && survey.signs.is_empty() && !stale;
        if policy.dry_run || idle {
            return Ok(report);
        }
        let record = PruneRecord {
            upload: layout::new_upload(),
            time_ms: now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64),
            kept: kept.clone(),
            condemned: condemned.iter().cloned().collect(),
        };
        if reader.commit(log.next, &Record::Prune(record)).await? {
            let stale = log.numbers.into_iter().filter(|number| !kept.contains(number));
            delete(store, &survey, &objects, &condemned, stale).await?;
            return Ok(report);
        }
    }
}

/// Lists the objects, and only then the intents: the argument above needs that order.
async fn survey(store: &Store<'_>) -> Result<Survey> {
    let objects = store.list(layout::OBJECTS).await?;
    let objects = objects.into_iter().map(|listed| (listed.file_name, listed.size)).collect();
    let (mut intents, mut seen, mut alive) = (BTreeSet::new(), BTreeSet::new(), BTreeMap::new());
    for listed in store.list(layout::UPLOADS).await? {
        let Some((upload, is_intent)) = layout::upload_of(&listed.file_name) else { continue };
        if is_intent {
            intents.insert(upload.to_owned());
        } else {
            seen.insert(upload.to_owned());
        }
        let latest = alive.entry(upload.to_owned()).or_insert(listed.written);
        *latest = listed.written.max(*latest);
    }
    let signs = seen.difference(&intents).cloned().collect();
    Ok(Survey { objects, intents, signs, alive })
}

impl Survey {
    /// The uploads on which nothing may rely from now on.
    fn condemned(
        &self,
        log: &Log,
        backups: &BTreeMap<u64, ReadBackup>,
        (grace, now): (Duration, SystemTime),
    ) -> BTreeSet<String> {
        let ended: BTreeSet<&str> = backups.values().flatten().map(|backup| &*backup.upload).collect();
        let is_condemned = |upload: &&String| {
            let is_silent = self.alive.get(*upload).is_none_or(|at| now.duration_since(*at).is_ok_and(|t| t >= grace));
            log.condemned.contains(*upload) || ended.contains(&***upload) || is_silent
        };
        self.intents.iter().filter(is_condemned).cloned().collect()
    }

    /// The objects that can go.
    fn unnamed(
        &self,
        kept: &[u64],
        backups: &BTreeMap<u64, ReadBackup>,
        condemned: &BTreeSet<String>,
    ) -> Vec<(String, u64)> {
        let kept = kept.iter().filter_map(|number| backups[number].as_ref().ok());
        let named: BTreeSet<String> = kept.flat_map(|backup| &backup.files).map(|file| file.object()).collect();
        let can_go = |(name, _): &&(String, u64)| {
            let Some((_, upload)) = layout::object_parts(name) else { return false };
            let is_protected = self.intents.contains(upload) && !condemned.contains(upload);
            !is_protected && !named.contains(&format!("{}/{name}", layout::OBJECTS))
        };
        self.objects.iter().filter(can_go).cloned().collect()
    }
}

/// Steps 3 and 4.
async fn delete(
    store: &Store<'_>,
    survey: &Survey,
    objects: &[(String, u64)],
    condemned: &BTreeSet<String>,
    records: impl Iterator<Item = u64>,
) -> Result<()> {
    let all = async |names: Vec<String>| -> Result<()> {
        let deletes = stream::iter(&names).map(|name| store.delete(name));
        deletes.buffer_unordered(store.transfers.parallel).try_collect().await
    };
    all(objects.iter().map(|(name, _)| format!("{}/{name}", layout::OBJECTS)).collect()).await?;
    // While an intent is there, later prunes condemn it again: it goes when its objects have gone.
    all(condemned.iter().map(|upload| layout::intent(upload)).collect()).await?;
    all(condemned.iter().chain(&survey.signs).map(|upload| layout::alive(upload)).collect()).await?;
    all(records.map(layout::record).collect()).await
}
