//! Files that are backed up, and what is expected of a target.

use super::store::{Plan, Planned};
use crate::create::create;
use crate::log::LogReader;
use crate::moving::LocalFile;
use crate::origin::About;
use crate::record::{BackupRecord, Record, decode};
use crate::restore::restore;
use crate::store::Store;
use crate::verify::verify;
use crate::{Cancel, Error, Prune, PruneReport, Result, Transfers, layout, prune};
use futures_util::{FutureExt, TryStreamExt};
use object_store::memory::InMemory;
use object_store::path::Path as ObjectPath;
use object_store::{ObjectStore, ObjectStoreExt};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::time::Instant;

/// The contents of the files of a database, by name.
pub type Contents = BTreeMap<String, Vec<u8>>;

/// A database of a few files, of which all but two stay from one backup to the next.
pub fn contents(version: u64) -> Contents {
    let table = |number: u64| (format!("{number:06}.table"), format!("table {number} ").repeat(9).into_bytes());
    let mut files: Contents = (version..version + 3).map(table).collect();
    files.insert("CURRENT".into(), format!("MANIFEST-{version:06}").into_bytes());
    files.insert("000001.wal".into(), Vec::new());
    files
}

/// A temporary directory with sources, and a runtime in which everything is done.
pub struct World {
    pub place: TempDir,
    pub runtime: tokio::runtime::Runtime,
}

impl World {
    pub fn new() -> World {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        World { place: tempfile::tempdir().unwrap(), runtime }
    }

    /// One whose clock stands still, and goes on to the next time that is waited for once nothing
    /// else can be done.
    pub fn with_own_clock() -> World {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        World { place: tempfile::tempdir().unwrap(), runtime }
    }

    /// The time by the clock of the runtime.
    pub fn now(&self) -> Instant {
        self.runtime.block_on(async { Instant::now() })
    }

    /// Lets it go on.
    pub async fn pass(time: Duration) {
        tokio::time::advance(time).await;
    }

    /// The files of a version, on disk.
    pub fn files(&self, version: u64) -> Vec<LocalFile> {
        let directory = self.place.path().join(format!("source-{version}"));
        fs::create_dir_all(&directory).unwrap();
        let write = |(name, bytes): (String, Vec<u8>)| {
            let path = directory.join(&name);
            fs::write(&path, &bytes).unwrap();
            LocalFile { name, path, size: bytes.len() as u64 }
        };
        contents(version).into_iter().map(write).collect()
    }

    /// Runs `work` on a store.
    pub fn on<T>(&self, store: &dyn ObjectStore, transfers: &Transfers, work: impl AsyncFnOnce(&Store<'_>) -> T) -> T {
        let prefix = ObjectPath::from("some/where");
        let store = Store::new(store, &prefix, transfers);
        self.runtime.block_on(work(&store))
    }

    pub fn create(&self, store: &dyn ObjectStore, version: u64, transfers: &Transfers) -> Result<u64> {
        let files = self.files(version);
        let about = about(version);
        self.on(store, transfers, async |store| create(store, files, &about).await.map(|created| created.number))
    }

    pub fn prune(&self, store: &dyn ObjectStore, policy: &Prune, transfers: &Transfers) -> Result<PruneReport> {
        self.on(store, transfers, async |store| prune::prune(store, policy).await)
    }

    pub fn restore(
        &self,
        store: &dyn ObjectStore,
        number: Option<u64>,
        directory: &Path,
    ) -> Result<(u64, BackupRecord)> {
        self.on(store, &quick(), async |store| restore(store, number, u64::MAX, directory).await)
    }

    /// The backups that exist by number, with the version that each is of.
    pub fn existing(&self, store: &dyn ObjectStore) -> BTreeMap<u64, u64> {
        let (_, found) = self.on(store, &quick(), async |store| LogReader::new(store).read_all().await).unwrap();
        found.into_iter().map(|(number, backup)| (number, backup.unwrap().sequence)).collect()
    }

    /// Checks every byte of every backup, and that it is what the backup was made of.
    pub fn check_whole(&self, store: &dyn ObjectStore) {
        let report = self.on(store, &quick(), async |store| verify(store, None).await).unwrap();
        assert_eq!(report.damage, []);
        let (_, found) = self.on(store, &quick(), async |store| LogReader::new(store).read_all().await).unwrap();
        for (number, backup) in found {
            let backup = backup.unwrap();
            let files = backup.files.iter().map(|file| (file.name.clone(), (file.size, file.sha256.clone())));
            let made_of = contents(backup.sequence).into_iter();
            let made_of =
                made_of.map(|(name, bytes)| (name, (bytes.len() as u64, layout::hex(&Sha256::digest(&bytes)))));
            assert_eq!(files.collect::<BTreeMap<_, _>>(), made_of.collect::<BTreeMap<_, _>>(), "backup {number}");
        }
    }

    /// Prunes without mercy, and checks that nothing is left but what the backups need.
    pub fn check_clean(&self, store: &Arc<InMemory>) {
        let policy = Prune::default().grace(Duration::ZERO);
        self.prune(&**store, &policy, &quick()).unwrap();
        let existing = self.existing(&**store);
        let state = State::of(store);
        assert_eq!(state.objects, state.named(), "objects that no backup needs, or that are missing");
        assert_eq!(state.uploads, BTreeSet::new());
        assert_eq!(existing.len(), state.existing().len());
        assert!(state.records.len() <= existing.len() + 1, "records that nobody needs");
    }

    pub fn new_directory(&self) -> PathBuf {
        let names = (0..).map(|number| self.place.path().join(format!("restored-{number}")));
        names.into_iter().find(|path| !path.exists()).unwrap()
    }
}

pub fn about(version: u64) -> About {
    About {
        time_ms: version,
        sequence: version,
        keyspaces: vec!["default".into()],
        directory: "/data".into(),
        // Versions come in any order here.
        newest_before: 0,
        any_database: false,
    }
}

/// A target with two backups, of versions 1 and 2.
pub fn two_backups(world: &World) -> Arc<InMemory> {
    let inner = Arc::new(InMemory::new());
    for version in [1, 2] {
        assert_eq!(world.create(&*inner, version, &quick()).unwrap(), version);
    }
    inner
}

/// No retries, and parts of a few bytes.
pub fn quick() -> Transfers {
    Transfers::default().retries(0, Duration::ZERO).part_bytes(40).parallel(3)
}

/// The files of a directory.
pub fn read(directory: &Path) -> Contents {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    // The lock's file stays where a directory was worked in.
    let entries = entries.filter(|entry| entry.file_name() != crate::layout::LOCK);
    entries.map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())).collect()
}

/// A store in memory, and one around it that goes wrong as planned.
pub fn planned(inner: &Arc<InMemory>, plan: Plan) -> (Planned, Cancel) {
    let cancel = Cancel::default();
    (Planned::new(Arc::clone(inner), plan, &cancel), cancel)
}

/// Everything in a store at one moment.
pub struct State {
    pub records: BTreeMap<u64, Record>,
    pub objects: BTreeSet<String>,
    pub uploads: BTreeSet<String>,
}

/// The calls of a store in memory return at once.
fn now<T>(future: impl Future<Output = T>) -> T {
    future.now_or_never().expect("it returns at once")
}

impl State {
    pub fn of(store: &InMemory) -> State {
        let mut state = State { records: BTreeMap::new(), objects: BTreeSet::new(), uploads: BTreeSet::new() };
        let listed: Vec<_> = now(store.list(None).try_collect()).unwrap();
        for meta in listed {
            let name = meta.location.as_ref().strip_prefix("some/where/").expect("below the prefix").to_owned();
            if name == layout::MARK {
                continue;
            }
            let (directory, file) = name.split_once('/').unwrap();
            match directory {
                layout::LOG => {
                    let number = layout::record_number(file).unwrap();
                    let bytes = now(async { store.get(&meta.location).await.unwrap().bytes().await.unwrap() });
                    state.records.insert(number, decode(number, &bytes).unwrap());
                }
                layout::OBJECTS => _ = state.objects.insert(name),
                _ => _ = state.uploads.insert(name),
            }
        }
        state
    }

    /// The backups that exist.
    pub fn existing(&self) -> Vec<&BackupRecord> {
        let mut kept: Option<(u64, &[u64])> = None;
        for (number, record) in &self.records {
            if let Record::Prune(prune) = record {
                kept = Some((*number, &prune.kept));
            }
        }
        let exists = |number: &u64| kept.is_none_or(|(prune, kept)| *number > prune || kept.contains(number));
        let backups = self.records.iter().filter(|(number, _)| exists(number));
        backups
            .filter_map(|(_, record)| if let Record::Backup(backup) = record { Some(backup) } else { None })
            .collect()
    }

    /// The objects that they name.
    pub fn named(&self) -> BTreeSet<String> {
        self.existing().iter().flat_map(|backup| &backup.files).map(|file| file.object()).collect()
    }
}

/// Whether an error is one that is expected of a store that goes wrong as planned.
pub fn is_planned(error: &Error) -> bool {
    matches!(error, Error::Store { .. } | Error::Cancelled)
}
