//! The bytes of files: hashed, uploaded, downloaded. All that is read is hashed, and compared with
//! what was read or written before.

use crate::error::{Error, Result};
use crate::layout;
use crate::record::FileRecord;
use crate::store::{Meter, Store, failed};
use bytes::Bytes;
use futures_util::StreamExt;
use object_store::path::Path as ObjectPath;
use object_store::{GetOptions, GetResultPayload, MultipartUpload, ObjectStoreExt, PutOptions, PutPayload};
use sha2::{Digest, Sha256};
use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Local files are read in pieces of this size.
const PIECE_BYTES: u64 = 1 << 20;
/// What takes no longer than this is done in the thread of the runtime; other threads do the rest.
const INLINE_BYTES: u64 = 128 << 10;
/// S3 takes 10,000 parts.
const MAX_PARTS: u64 = 9000;

/// A file to be backed up.
#[derive(Clone, Debug)]
pub struct LocalFile {
    /// Its name in the database directory.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
    /// Its length.
    pub size: u64,
}

/// A local file that is read once, from its beginning, and what was read of it.
struct Reading {
    file: File,
    path: PathBuf,
    hasher: Sha256,
}

impl Reading {
    fn open(path: &Path) -> Result<Reading> {
        let file = File::open(path).map_err(|error| Error::io("open", path, error))?;
        Ok(Reading { file, path: path.to_path_buf(), hasher: Sha256::new() })
    }

    fn next(&mut self, bytes: u64) -> Result<Vec<u8>> {
        let mut piece = vec![0; bytes as usize];
        self.file.read_exact(&mut piece).map_err(|error| Error::io("read", &self.path, error))?;
        self.hasher.update(&piece);
        Ok(piece)
    }

    fn hash(self) -> String {
        layout::hex(&self.hasher.finalize())
    }
}

/// Runs what reads or writes so many bytes where it holds nobody up.
async fn off_thread<T: Send + 'static>(bytes: u64, work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    if bytes <= INLINE_BYTES {
        return work();
    }
    match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => outcome,
        // Only a panic, or the end of the runtime, ends it otherwise.
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(Error::Cancelled),
        },
    }
}

/// The hash of a local file.
pub async fn hash(file: &LocalFile, meter: &Arc<Meter>) -> Result<String> {
    let (path, size, meter) = (file.path.clone(), file.size, Arc::clone(meter));
    off_thread(size, move || {
        let mut reading = Reading::open(&path)?;
        let mut left = size;
        while left > 0 {
            if meter.is_cancelled() {
                return Err(Error::Cancelled);
            }
            let bytes = left.min(PIECE_BYTES);
            reading.next(bytes)?;
            left -= bytes;
            meter.add(bytes);
        }
        Ok(reading.hash())
    })
    .await
}

/// Copies a local file with this hash to the object of this name. The object is there whole, or not
/// at all.
pub async fn upload(store: &Store<'_>, file: &LocalFile, hash: &str, name: &str, meter: &Meter) -> Result<()> {
    let path = store.path(name);
    let part = (store.transfers.part_bytes as u64).max(file.size.div_ceil(MAX_PARTS));
    store
        .retry(|| async {
            let counted = Cell::new(0);
            let outcome = match file.size <= part {
                true => upload_whole(store, file, hash, &path, (meter, &counted)).await,
                false => upload_parts(store, file, hash, (&path, part), (meter, &counted)).await,
            };
            outcome.inspect_err(|_| meter.take_back(counted.get()))
        })
        .await
}

fn check(file: &LocalFile, hash: &str, found: &str) -> Result<()> {
    if hash == found {
        return Ok(());
    }
    Err(Error::damaged(file.path.display(), "it was read twice, with different bytes"))
}

async fn upload_whole(
    store: &Store<'_>,
    file: &LocalFile,
    hash: &str,
    path: &ObjectPath,
    (meter, counted): (&Meter, &Cell<u64>),
) -> Result<()> {
    let (local, size) = (file.path.clone(), file.size);
    let (found, bytes) = off_thread(size, move || {
        let mut reading = Reading::open(&local)?;
        let bytes = reading.next(size)?;
        Ok((reading.hash(), bytes))
    })
    .await?;
    check(file, hash, &found)?;
    store.pace(bytes.len()).await?;
    let put = store.inner().put_opts(path, PutPayload::from(bytes), PutOptions::default()).await;
    put.map_err(|source| failed("write", path, source))?;
    meter.add(size);
    counted.set(size);
    Ok(())
}

async fn upload_parts(
    store: &Store<'_>,
    file: &LocalFile,
    hash: &str,
    (path, part): (&ObjectPath, u64),
    counting: (&Meter, &Cell<u64>),
) -> Result<()> {
    let multipart = store.inner().put_multipart(path).await;
    let mut multipart = multipart.map_err(|source| failed("write", path, source))?;
    let outcome = put_parts(store, file, hash, (path, part), &mut *multipart, counting).await;
    if outcome.is_err() {
        // What a store keeps of parts nobody sees; its own rules remove that.
        let _ = multipart.abort().await;
    }
    outcome
}

async fn put_parts(
    store: &Store<'_>,
    file: &LocalFile,
    hash: &str,
    (path, part): (&ObjectPath, u64),
    multipart: &mut dyn MultipartUpload,
    (meter, counted): (&Meter, &Cell<u64>),
) -> Result<()> {
    let mut reading = Reading::open(&file.path)?;
    let mut left = file.size;
    while left > 0 {
        let bytes = left.min(part);
        let piece;
        (reading, piece) = off_thread(bytes, move || {
            let piece = reading.next(bytes)?;
            Ok((reading, piece))
        })
        .await?;
        store.pace(piece.len()).await?;
        multipart.put_part(PutPayload::from(piece)).await.map_err(|source| failed("write", path, source))?;
        left -= bytes;
        meter.add(bytes);
        counted.set(counted.get() + bytes);
    }
    check(file, hash, &reading.hash())?;
    multipart.complete().await.map(|_| ()).map_err(|source| failed("write", path, source))
}

/// Reads the object of a file and checks it; writes it to the local file `to`, durably but for its
/// name, if there is one.
pub async fn download(store: &Store<'_>, file: &FileRecord, to: Option<&Path>, meter: &Meter) -> Result<()> {
    let path = store.path(&file.object());
    store
        .retry(|| async {
            let counted = Cell::new(0);
            let outcome = download_once(store, file, (&path, to), (meter, &counted)).await;
            outcome.inspect_err(|_| meter.take_back(counted.get()))
        })
        .await
}

/// What was read of an object, and where it goes.
struct Receiving {
    to: Option<(File, PathBuf)>,
    hasher: Sha256,
    bytes: u64,
}

impl Receiving {
    fn take(&mut self, piece: &[u8]) -> Result<()> {
        self.hasher.update(piece);
        self.bytes += piece.len() as u64;
        match &mut self.to {
            Some((file, path)) => file.write_all(piece).map_err(|error| Error::io("write", path, error)),
            None => Ok(()),
        }
    }
}

async fn download_once(
    store: &Store<'_>,
    file: &FileRecord,
    (path, to): (&ObjectPath, Option<&Path>),
    (meter, counted): (&Meter, &Cell<u64>),
) -> Result<()> {
    let created = to.map(|to| match File::create(to) {
        Ok(created) => Ok((created, to.to_path_buf())),
        Err(error) => Err(Error::io("create", to, error)),
    });
    let mut receiving = Receiving { to: created.transpose()?, hasher: Sha256::new(), bytes: 0 };
    let got = store.inner().get_opts(path, GetOptions::default()).await;
    let got = got.map_err(|source| match source {
        object_store::Error::NotFound { .. } => Error::damaged(path, "the object is missing"),
        source => failed("read", path, source),
    })?;
    if got.meta.size != file.size {
        let what = format!("it has {} bytes, and {} of {} were written", got.meta.size, file.size, file.name);
        return Err(Error::damaged(path, what));
    }
    let mut pieces = match got.payload {
        GetResultPayload::File(local, _) => Pieces::Local(local, file.size),
        GetResultPayload::Stream(stream) => Pieces::Stream(stream),
    };
    while let Some(piece) = pieces.next(path).await? {
        store.pace(piece.len()).await?;
        let bytes = piece.len() as u64;
        receiving = off_thread(bytes, move || receiving.take(&piece).map(|()| receiving)).await?;
        meter.add(bytes);
        counted.set(counted.get() + bytes);
    }
    let hash = layout::hex(&receiving.hasher.finalize());
    if receiving.bytes != file.size || hash != file.sha256 {
        return Err(Error::damaged(path, format!("its bytes are not those that were written of {}", file.name)));
    }
    match receiving.to {
        Some((written, to)) => {
            off_thread(u64::MAX, move || written.sync_all().map_err(|error| Error::io("sync", &to, error))).await
        }
        None => Ok(()),
    }
}

/// The bytes of an object as they come.
enum Pieces {
    /// A local file, and how many bytes are left.
    Local(File, u64),
    Stream(futures_util::stream::BoxStream<'static, object_store::Result<Bytes>>),
}

impl Pieces {
    async fn next(&mut self, path: &ObjectPath) -> Result<Option<Bytes>> {
        match self {
            Pieces::Stream(stream) => stream.next().await.transpose().map_err(|source| failed("read", path, source)),
            Pieces::Local(_, 0) => Ok(None),
            Pieces::Local(file, left) => {
                let bytes = PIECE_BYTES.min(*left);
                let mut piece = vec![0; bytes as usize];
                let read = file.read_exact(&mut piece);
                read.map_err(|error| match error.kind() {
                    io::ErrorKind::UnexpectedEof => Error::damaged(path, "it has become shorter"),
                    _ => Error::io("read", Path::new(path.as_ref()), error),
                })?;
                *left -= bytes;
                Ok(Some(piece.into()))
            }
        }
    }
}
