//! Making a backup.
//!
//! 1. Hash the files.
//! 2. Put the intent, under a new identity.
//! 3. Read the log, and refuse another database than that of its backups (`origin.rs`). List the
//!    intents, list the objects; find for each file an object to rely on.
//! 4. If files lack one, upload them and go on at 3.
//! 5. Commit the record under the number after those that 3 has read. If another create or prune
//!    has that number, go on at 3.
//! 6. Remove the intent.
//!
//! An object is relied on if the listing has it with the length of the file, and
//!
//! * a backup that exists names it, or
//! * its upload has an intent, and the newest prune does not condemn that upload. So a create
//!   resumes where an interrupted one ended, and beside another one copies nothing twice that it
//!   sees.
//!
//! Why no prune deletes what a backup names: `prune.rs`.

use crate::error::{Error, Result};
use crate::layout;
use crate::log::{LogReader, ReadBackup};
use crate::moving::{self, LocalFile};
use crate::origin::{self, About};
use crate::record::{BackupRecord, FileRecord, Record};
use crate::store::{Meter, Store};
use crate::transfers::Phase;
use futures_util::future::{Either, select};
use futures_util::{StreamExt, TryStreamExt, stream};
use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

/// The interval at which a create shows that it is alive.
const ALIVE_INTERVAL: Duration = Duration::from_secs(300);
/// How often a create begins anew after a prune has condemned its upload.
const ATTEMPTS: usize = 5;

/// How often a create copies what has gone since it looked last.
const MAX_COPIES: usize = 20;

/// The number of the newest record, or 0.
pub async fn newest(store: &Store<'_>) -> Result<u64> {
    let listed = store.list(layout::LOG).await?;
    Ok(listed.iter().filter_map(|listed| layout::record_number(&listed.file_name)).max().unwrap_or(0))
}

/// What was made.
pub struct Created {
    /// Its number.
    pub number: u64,
    /// Its record.
    pub record: BackupRecord,
    /// How many files were copied, and their bytes.
    pub copied: (u64, u64),
}

/// Makes a backup of these files, which nothing changes meanwhile.
pub async fn create(store: &Store<'_>, mut files: Vec<LocalFile>, about: &About) -> Result<Created> {
    refuse_overwriting(store).await?;
    files.sort_by(|one, other| one.name.cmp(&other.name));
    let hashes = hashes(store, &files).await?;
    let mut copied = (0, 0);
    for _ in 0..ATTEMPTS {
        let upload = begin(store).await?;
        let outcome = {
            let work = pin!(finish(store, &files, &hashes, (&upload, about), &mut copied));
            match select(work, pin!(show_life(store, &upload))).await {
                Either::Left((outcome, _)) => outcome,
                Either::Right((never, _)) => match never {},
            }
        };
        if matches!(outcome, Ok(Some(_)) | Err(Error::AnotherDatabase { .. })) {
            // If that fails, the next prune does it.
            let _ = store.delete(&layout::intent(&upload)).await;
            let _ = store.delete(&layout::alive(&upload)).await;
        }
        if let Some((number, record)) = outcome? {
            return Ok(Created { number, record, copied });
        }
    }
    Err(Error::Contended)
}

async fn hashes(store: &Store<'_>, files: &[LocalFile]) -> Result<Vec<String>> {
    let total = files.iter().map(|file| file.size).sum();
    let meter = Arc::new(Meter::new(Phase::Hashing, total, store.transfers));
    let hashing = stream::iter(files).map(|file| moving::hash(file, &meter)).buffered(store.transfers.parallel);
    store.unless_cancelled(hashing.try_collect()).await?
}

/// Refuses a store that takes the condition that there be no object, and overwrites all the same:
/// two creates would take each other's number. The object that shows it is never deleted.
async fn refuse_overwriting(store: &Store<'_>) -> Result<()> {
    if store.put_new(layout::MARK, b"").await? && store.put_new(layout::MARK, b"").await? {
        let what = "the store overwrites objects that are to be put only if there is none; use another one";
        return Err(Error::invalid(what));
    }
    Ok(())
}

/// Puts the intent of a new upload, and returns its identity.
async fn begin(store: &Store<'_>) -> Result<String> {
    loop {
        let upload = layout::new_upload();
        let text = format!("an upload of process {}\n", std::process::id());
        if store.put_new(&layout::intent(&upload), text.as_bytes()).await? {
            return Ok(upload);
        }
    }
}

/// Puts the sign of life again and again. That it fails only matters if a prune takes the upload
/// for one that was cut short; then the upload begins anew.
async fn show_life(store: &Store<'_>, upload: &str) -> std::convert::Infallible {
    loop {
        sleep(ALIVE_INTERVAL).await;
        let _ = store.put(&layout::alive(upload), b"").await;
    }
}

/// Steps 3 to 5. `None` if a prune has condemned the upload.
async fn finish(
    store: &Store<'_>,
    files: &[LocalFile],
    hashes: &[String],
    (upload, about): (&str, &About),
    copied: &mut (u64, u64),
) -> Result<Option<(u64, BackupRecord)>> {
    let reader = LogReader::new(store);
    // A store that does not list what was put would be copied to for ever.
    let mut copies = 0;
    loop {
        let (log, backups) = reader.read_all().await?;
        origin::refuse_another_database(about, files, hashes, &backups)?;
        // After the log: an intent that is there now was there when the newest prune was made, or
        // is younger than that prune.
        let mut uploads = intents(store).await?;
        uploads.retain(|upload| !log.condemned.contains(upload));
        if !uploads.contains(upload) {
            return Ok(None);
        }
        let reliable = Reliable::new(store, &backups, uploads).await?;
        let mut missing = BTreeMap::new();
        let mut named = Vec::new();
        for (file, hash) in files.iter().zip(hashes) {
            match reliable.upload_of(hash, file.size) {
                Some(upload) => {
                    named.push(FileRecord { name: file.name.clone(), size: file.size, sha256: hash.clone(), upload })
                }
                None => _ = missing.insert(hash, file),
            }
        }
        if !missing.is_empty() {
            copies += 1;
            if copies > MAX_COPIES {
                return Err(Error::Contended);
            }
            copy(store, &missing, upload).await?;
            copied.0 += missing.len() as u64;
            copied.1 += missing.values().map(|file| file.size).sum::<u64>();
            continue;
        }
        let record = BackupRecord {
            upload: upload.into(),
            time_ms: about.time_ms,
            esker: env!("CARGO_PKG_VERSION").into(),
            sequence: about.sequence,
            keyspaces: about.keyspaces.clone(),
            directory: Some(about.directory.clone()),
            files: named,
        };
        if reader.commit(log.next, &Record::Backup(record.clone())).await? {
            return Ok(Some((log.next, record)));
        }
    }
}

/// The uploads that have an intent.
async fn intents(store: &Store<'_>) -> Result<BTreeSet<String>> {
    let listed = store.list(layout::UPLOADS).await?;
    let intents = listed.iter().filter_map(|listed| layout::upload_of(&listed.file_name));
    Ok(intents.filter(|(_, is_intent)| *is_intent).map(|(upload, _)| upload.to_owned()).collect())
}

/// The objects that a new backup may name.
struct Reliable(BTreeMap<(String, u64), String>);

impl Reliable {
    async fn new(
        store: &Store<'_>,
        backups: &BTreeMap<u64, ReadBackup>,
        uploads: BTreeSet<String>,
    ) -> Result<Reliable> {
        let files = backups.values().flatten().flat_map(|backup| &backup.files);
        let named: BTreeSet<(&str, &str)> = files.map(|file| (&*file.sha256, &*file.upload)).collect();
        let mut reliable = BTreeMap::new();
        for listed in store.list(layout::OBJECTS).await? {
            let Some((hash, upload)) = layout::object_parts(&listed.file_name) else { continue };
            let is_named = named.contains(&(hash, upload));
            if is_named {
                reliable.insert((hash.to_owned(), listed.size), upload.to_owned());
            } else if uploads.contains(upload) {
                reliable.entry((hash.to_owned(), listed.size)).or_insert_with(|| upload.to_owned());
            }
        }
        Ok(Reliable(reliable))
    }

    /// The upload of an object with these bytes.
    fn upload_of(&self, hash: &str, size: u64) -> Option<String> {
        self.0.get(&(hash.to_owned(), size)).cloned()
    }
}

/// Uploads the files, by hash.
async fn copy(store: &Store<'_>, missing: &BTreeMap<&String, &LocalFile>, upload: &str) -> Result<()> {
    let meter = Meter::new(Phase::Uploading, missing.values().map(|file| file.size).sum(), store.transfers);
    let meter = &meter;
    let copies = stream::iter(missing).map(async |(hash, file)| {
        let name = layout::object(hash, upload);
        moving::upload(store, file, hash, &name, meter).await
    });
    copies.buffer_unordered(store.transfers.parallel).try_collect().await
}
