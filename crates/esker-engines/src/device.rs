//! No engine: a file to which every put appends, with an fdatasync if it is to be synced. It shows
//! what the device itself takes for what a log asks of it, the yardstick for synced writes.

use super::settings::{Settings, make_directory};
use super::{
    Capabilities, Durability, Engine, EngineError, EngineKind, EngineOptions, Iteration, MemorySplit, Opened, Result,
    Session, WriteMode,
};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

/// Its name.
pub const NAME: &str = "device";

/// Its registry row.
pub const KIND: EngineKind = EngineKind {
    name: NAME,
    title: NAME,
    capabilities: Capabilities { concurrent_writers: true, ..Capabilities::NONE },
    memory: MemorySplit::cache_only("none"),
    open,
    probe: |_| Ok("a file that is appended to".into()),
};

fn failed(error: std::io::Error) -> EngineError {
    EngineError(format!("{NAME}: {error}"))
}

fn only_puts() -> EngineError {
    EngineError(format!("{NAME}: it is no engine and knows nothing but puts"))
}

fn open(directory: &Path, options: &EngineOptions, _: Option<&Path>) -> Result<Opened> {
    make_directory(NAME, directory)?;
    let file = OpenOptions::new().append(true).create(true).open(directory.join("log")).map_err(failed)?;
    let (durability, how) = match options.sync {
        true => (Durability::Device, "append, then fdatasync"),
        false => (Durability::OperatingSystem, "append"),
    };
    let settings = Settings::new(durability, how, "none".into(), "none");
    Ok(Opened::new(Device { file }, settings.describe(&KIND, "write and fdatasync".into())))
}

struct Device {
    file: File,
}

impl Engine for Device {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(Appender { file: &self.file, record: Vec::new() }))
    }
}

struct Appender<'e> {
    file: &'e File,
    record: Vec<u8>,
}

impl Session for Appender<'_> {
    fn put(&mut self, key: &[u8], value: &[u8], mode: WriteMode) -> Result<()> {
        self.record.clear();
        self.record.extend_from_slice(key);
        self.record.extend_from_slice(value);
        let mut file = self.file;
        file.write_all(&self.record).map_err(failed)?;
        if mode.sync { file.sync_data().map_err(failed) } else { Ok(()) }
    }

    fn delete(&mut self, _: &[u8], _: WriteMode) -> Result<()> {
        Err(only_puts())
    }

    fn merge(&mut self, _: &[u8], _: &[u8], _: WriteMode) -> Result<()> {
        Err(only_puts())
    }

    fn get(&mut self, _: &[u8], _: &mut Vec<u8>) -> Result<bool> {
        Err(only_puts())
    }

    fn iterate(&mut self) -> Result<Box<dyn Iteration + '_>> {
        Err(only_puts())
    }
}
