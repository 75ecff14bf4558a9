//! No engine: a file to which every put appends, with an fdatasync if it is to be synced. It shows what the device itself takes for what a log
//! asks of it, the yardstick for synced writes.

use super::{
    Capabilities, Durability, Engine, EngineError, EngineKind, EngineOptions, Iteration, Operation, Result, Session,
    WriteMode,
};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

/// Its name.
pub const NAME: &str = "device";

/// Its registry row.
pub fn kind() -> EngineKind {
    EngineKind { name: NAME, open, probe: |_| Ok("a file that is appended to".into()) }
}

fn failed(error: std::io::Error) -> EngineError {
    EngineError(format!("{NAME}: {error}"))
}

fn only_puts() -> EngineError {
    EngineError(format!("{NAME}: it is no engine and knows nothing but puts"))
}

fn open(directory: &Path, options: &EngineOptions, _: Option<&Path>) -> Result<Box<dyn Engine>> {
    super::settings::make_directory(NAME, directory)?;
    let file = OpenOptions::new().append(true).create(true).open(directory.join("log")).map_err(failed)?;
    Ok(Box::new(Device { file, sync: options.sync }))
}

struct Device {
    file: File,
    sync: bool,
}

impl Engine for Device {
    fn name(&self) -> &'static str {
        NAME
    }

    fn version(&self) -> String {
        "write and fdatasync".into()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            merge: false,
            batch: false,
            reverse: false,
            disable_wal: false,
            compact: false,
            compression: false,
            concurrent_writers: true,
            ttl: false,
        }
    }

    fn effective_settings(&self) -> Vec<(String, String)> {
        let (durability, how) = match self.sync {
            true => (Durability::Device, "append, then fdatasync"),
            false => (Durability::OperatingSystem, "append"),
        };
        let settings = super::settings::Settings::new(durability, how, "none".into(), "none");
        settings.list()
    }

    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(Appender { file: &self.file, record: Vec::new() }))
    }

    fn compact_all(&self) -> Result<()> {
        Ok(())
    }

    fn wait_idle(&self) -> Result<()> {
        Ok(())
    }

    fn property(&self, _: &str) -> Option<String> {
        None
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
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

    fn write(&mut self, batch: &[Operation<'_>], mode: WriteMode) -> Result<()> {
        for operation in batch {
            match *operation {
                Operation::Put(key, value) => self.put(key, value, mode)?,
                Operation::Delete(_) | Operation::Merge(..) => return Err(only_puts()),
            }
        }
        Ok(())
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
