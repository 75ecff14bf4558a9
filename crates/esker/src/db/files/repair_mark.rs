//! The mark of a repair that is not complete. It holds the first number that the repair gives to a
//! file of its own:
//!
//! ```text
//! REPAIR := number " " checksum of the number in hexadecimal "\n"
//! ```
//! The mark is durable before the repair makes its first file, and goes when `CURRENT` names the
//! repair's manifest durably, or when what the repair has made is gone. Until then a file with a
//! number from there on is a copy of others in the directory, perhaps half of one, or a log segment
//! that hides what is wrong with those before it, and must not be relied on.

use crate::base::checksum::checksum;
use crate::env::Env;
use crate::error::{Error, Result};
use crate::version::file_name::{CURRENT, REPAIR};
use crate::version::manifest::current_number;
use std::path::Path;

fn line(first: u64) -> String {
    let number = first.to_string();
    format!("{number} {:08x}\n", checksum(0, 0, number.as_bytes()))
}

/// Marks the directory as under repair, durably.
pub fn set(env: &dyn Env, directory: &Path, first: u64) -> Result<()> {
    let mut file = env.create(&directory.join(REPAIR))?;
    file.append(line(first).as_bytes())?;
    file.sync()?;
    env.sync_dir(directory)
}

/// The first number that the repair gives to a file. None where the mark, which exists, is torn:
/// the repair has made no file yet, or what it has made is gone, or durably in force.
pub fn first_number(env: &dyn Env, directory: &Path) -> Result<Option<u64>> {
    let file = env.open(&directory.join(REPAIR))?;
    // A number and a checksum are shorter.
    let mut bytes = vec![0; file.len().min(64) as usize];
    match file.read_at(0, &mut bytes) {
        // Emptied since.
        Err(Error::Corruption { .. }) => return Ok(None),
        read => read?,
    }
    let text = String::from_utf8(bytes).unwrap_or_default();
    let first = text.split(' ').next().and_then(|number| number.parse().ok());
    Ok(first.filter(|&first| text == line(first)))
}

/// The first number of the files that an unfinished repair has made, as long as there are such.
/// None where the manifest in force is one of them: the repair is done.
pub fn first_of_unfinished(env: &dyn Env, directory: &Path) -> Result<Option<u64>> {
    let Some(first) = first_number_if_marked(env, directory)? else { return Ok(None) };
    let current = if env.exists(&directory.join(CURRENT))? { current_number(env, directory)? } else { None };
    Ok(Some(first).filter(|&first| is_unfinished(first, current)))
}

/// As [`first_of_unfinished`], where `CURRENT` was read before.
pub fn first_of_unfinished_at(env: &dyn Env, directory: &Path, current: Option<u64>) -> Result<Option<u64>> {
    Ok(first_number_if_marked(env, directory)?.filter(|&first| is_unfinished(first, current)))
}

fn is_unfinished(first: u64, current: Option<u64>) -> bool {
    current.is_none_or(|current| current < first)
}

fn first_number_if_marked(env: &dyn Env, directory: &Path) -> Result<Option<u64>> {
    if !env.exists(&directory.join(REPAIR))? {
        return Ok(None);
    }
    match first_number(env, directory) {
        // Taken off since.
        Err(error) if error.is_missing_file() => Ok(None),
        other => other,
    }
}
