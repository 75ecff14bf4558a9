//! A snapshot of which a part has arrived.

use crate::error::{Error, Result};
use crate::manifest::{SnapshotFile, SnapshotManifest, hash_of};
use crate::slots::{Slot, create_directory};
use crate::transfer::{Place, TransferReply};
use esker::env::{Env, WriteFile};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use twox_hash::XxHash3_128;

/// Receives a snapshot into a slot, one file after the other. A chunk is written as it arrives; no
/// file is in memory as a whole.
pub(crate) struct Incoming {
    env: Arc<dyn Env>,
    slot: Arc<Slot>,
    manifest: SnapshotManifest,
    identity: u128,
    /// Which files are there, whole and durable.
    complete: Vec<bool>,
    open: Option<OpenFile>,
    is_durable: bool,
}

/// The file that is being received.
struct OpenFile {
    number: usize,
    file: Box<dyn WriteFile>,
    hasher: XxHash3_128,
}

/// Makes the bytes of a file durable that somebody else wrote.
fn sync(env: &dyn Env, path: &Path) -> Result<()> {
    Ok(env.open_log(path, None, false)?.sync()?)
}

/// Whether the file is the one of the manifest.
fn is_whole(env: &dyn Env, path: &Path, file: &SnapshotFile) -> Result<bool> {
    Ok(env.open(path)?.len() == file.bytes && hash_of(env, path)? == file.hash)
}

impl Incoming {
    /// Begins to receive, or resumes with the files that the slot holds already. A file whose hash
    /// is that of the manifest is made durable; any other, and one that cannot be read, is removed.
    pub fn begin(env: Arc<dyn Env>, slot: Arc<Slot>, manifest: SnapshotManifest) -> Result<Incoming> {
        manifest.check()?;
        let mut complete = vec![false; manifest.files().len()];
        // The directory of an empty slot is missing after a copy by a tool that copies files alone.
        if !env.exists(slot.path())? {
            create_directory(&*env, slot.path())?;
        }
        for name in env.list(slot.path())? {
            let path = slot.path().join(&name);
            let number = manifest.files().iter().position(|file| file.name == name);
            let is_whole = match number.map(|number| &manifest.files()[number]) {
                // One that cannot be read is received again.
                Some(file) => is_whole(&*env, &path, file).unwrap_or(false),
                None => false,
            };
            match number {
                // A process that was killed may have written it and not synced it.
                Some(number) if is_whole && sync(&*env, &path).is_ok() => complete[number] = true,
                _ => env.remove(&path)?,
            }
        }
        let identity = manifest.identity()?;
        let mut incoming = Incoming { env, slot, manifest, identity, complete, open: None, is_durable: false };
        incoming.advance()?;
        Ok(incoming)
    }

    pub fn manifest(&self) -> &SnapshotManifest {
        &self.manifest
    }

    pub fn identity(&self) -> u128 {
        self.identity
    }

    pub fn slot(&self) -> &Arc<Slot> {
        &self.slot
    }

    /// Goes on where a failure of the device left it without an open file.
    pub fn go_on(&mut self) -> Result<()> {
        if self.open.is_none() && !self.is_durable { self.advance() } else { Ok(()) }
    }

    /// The first byte that it lacks.
    pub fn state(&self) -> TransferReply {
        match &self.open {
            Some(open) => {
                let file = u32::try_from(open.number).unwrap_or(u32::MAX);
                TransferReply::Wanted(Place { file, offset: open.file.len() })
            }
            None if self.is_complete() => TransferReply::Complete,
            // The device failed between two files. The sender begins anew, which goes on here.
            None => TransferReply::Unknown,
        }
    }

    fn file(&self, number: usize) -> (&SnapshotFile, PathBuf) {
        let file = &self.manifest.files()[number];
        (file, self.slot.path().join(&file.name))
    }

    /// Takes a piece, if it is the one that is wanted.
    pub fn take(&mut self, place: Place, bytes: &[u8]) -> Result<()> {
        if self.state() != TransferReply::Wanted(place) || bytes.is_empty() {
            return Ok(());
        }
        let Some(open) = &mut self.open else { return Ok(()) };
        let file = &self.manifest.files()[open.number];
        if bytes.len() as u64 > file.bytes - place.offset {
            return Err(Error::damaged(file.name.clone(), "more bytes came than the manifest says"));
        }
        let written = open.file.append(bytes);
        if written.is_err() {
            // How much of it arrived is unknown.
            self.open = None;
            self.advance()?;
            return Ok(written?);
        }
        open.hasher.write(bytes);
        if open.file.len() == file.bytes { self.end_file() } else { Ok(()) }
    }

    /// Checks the file that has its full length, makes it durable, and goes on to the next one.
    fn end_file(&mut self) -> Result<()> {
        let Some(mut open) = self.open.take() else { return Ok(()) };
        let (file, path) = self.file(open.number);
        let (name, found, hash) = (file.name.clone(), open.hasher.finish_128(), file.hash);
        let synced = open.file.sync();
        if synced.is_ok() && found == hash {
            self.complete[open.number] = true;
            return self.advance();
        }
        drop(open);
        self.env.remove(&path)?;
        self.advance()?;
        synced?;
        Err(Error::damaged(name, format!("it arrived with the hash {found:032x}, the manifest says {hash:032x}")))
    }

    /// Opens the next file that is not complete; without one, makes the names durable.
    fn advance(&mut self) -> Result<()> {
        while let Some(number) = self.complete.iter().position(|complete| !complete) {
            let (file, path) = self.file(number);
            let is_empty = file.bytes == 0;
            let mut created = self.env.create(&path)?;
            if !is_empty {
                self.open = Some(OpenFile { number, file: created, hasher: XxHash3_128::new() });
                return Ok(());
            }
            created.sync()?;
            self.complete[number] = true;
        }
        let synced = self.env.sync_dir(self.slot.path());
        if synced.is_err() {
            // A second sync of the directory may miss names that the failed one lost: all files are
            // received again.
            self.complete.fill(false);
        }
        synced?;
        self.is_durable = true;
        Ok(())
    }

    /// Whether everything has arrived and is durable.
    pub fn is_complete(&self) -> bool {
        self.open.is_none() && self.is_durable
    }
}
