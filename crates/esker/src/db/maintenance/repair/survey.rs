//! What is there, and what it says.

use crate::base::memory::MemoryPool;
use crate::db::files::repair_mark;
use crate::db::lifecycle::{directory, recovery};
use crate::error::{Error, Result};
use crate::options::Options;
use crate::table::BlockCache;
use crate::version::edit::ManifestState;
use crate::version::file_name::{CURRENT, manifest, manifest_number, table_number};
use crate::version::manifest::{HEADER_BYTES, InForce, current_number, read_current};
use crate::version::salvage::{self, Missing};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// The first damage that opening and verifying meet; none if both succeed.
pub fn first_damage(directory: &Path, options: &Options) -> Result<Option<Error>> {
    match check(directory, options) {
        Ok(()) => Ok(None),
        Err(error @ Error::Corruption { .. }) => Ok(Some(error)),
        Err(error) => Err(error),
    }
}

fn check(directory: &Path, options: &Options) -> Result<()> {
    let Some(InForce { state, .. }) = read_current(&*options.env, directory)? else {
        return directory::refuse_missing_current(options, directory);
    };
    let cache = Arc::new(BlockCache::new(options.block_cache_bytes));
    let blobs = directory::blob_store(directory, options);
    let memory = MemoryPool::of_the_process();
    let (recovering, _, _) = recovery::read_state(directory, options, &state, &cache, &memory, &blobs)?;
    for (_, table) in recovering.values().flat_map(|recovered| recovered.version.tables()) {
        table.verify(&mut |_| {})?;
    }
    Ok(())
}

/// What the directory holds.
#[derive(Debug, Default)]
pub struct Survey {
    /// What the best manifest says; nothing if there is none.
    pub state: ManifestState,
    /// All of it is, and `CURRENT` names it.
    pub is_whole: bool,
    /// What the state may be without, if `CURRENT` names that manifest or is missing; without a
    /// manifest, anything.
    pub missing: Option<Missing>,
    /// Places that are damaged: of each file the name, the offset, and what is wrong there.
    pub damaged: Vec<(String, u64, String)>,
    /// The numbers of the table files.
    pub tables: BTreeSet<u64>,
    /// The names of the manifests, and of the one that the state is from.
    pub manifests: Vec<String>,
    pub read_from: Option<String>,
}

/// Looks at the directory; not at what an unfinished repair has made.
pub fn survey(directory: &Path, options: &Options) -> Result<Survey> {
    let env = &*options.env;
    let names = env.list(directory)?;
    let current = if env.exists(&directory.join(CURRENT))? { current_number(env, directory)? } else { None };
    let unfinished = repair_mark::first_of_unfinished_at(env, directory, current)?;
    let is_relied_on = |number: &u64| unfinished.is_none_or(|first| *number < first);
    let mut numbers: Vec<u64> = names.iter().filter_map(|name| manifest_number(name)).filter(is_relied_on).collect();
    numbers.sort_unstable_by(|a, b| b.cmp(a));
    let mut survey = Survey {
        tables: names.iter().filter_map(|name| table_number(name)).filter(is_relied_on).collect(),
        manifests: numbers.iter().map(|&number| manifest(number)).collect(),
        ..Survey::default()
    };
    if current.is_none() {
        let what = if names.iter().any(|name| name == CURRENT) { "damaged" } else { "missing" };
        survey.damaged.push((CURRENT.into(), 0, format!("the file is {what}")));
    } else if let Some(number) = current.filter(|number| !numbers.contains(number)) {
        survey.damaged.push((manifest(number), 0, "the manifest in force is missing".into()));
    }
    // Any other than the current one is older, or newer and not yet current: both tell more than
    // none.
    let others = numbers.iter().copied().filter(|number| Some(*number) != current);
    for number in current.into_iter().chain(others) {
        let Some(found) = salvage::salvage(env, directory, number)? else {
            if numbers.contains(&number) {
                let offset = HEADER_BYTES as u64;
                survey.damaged.push((manifest(number), offset, "its first record does not verify".into()));
            }
            continue;
        };
        let what = |offset| if offset == 0 { "the header does not verify" } else { "an edit does not verify" };
        survey.damaged.extend(found.damaged.iter().map(|&offset| (manifest(number), offset, what(offset).into())));
        let is_in_force = current == Some(number) || current.is_none();
        survey.is_whole = found.damaged.is_empty() && is_in_force;
        survey.missing = is_in_force.then_some(found.missing);
        survey.state = found.state;
        survey.read_from = Some(manifest(number));
        break;
    }
    // A new manifest must not get the name of a missing one: it would be current before it is
    // written.
    survey.state.next_file = survey.state.next_file.max(current.map_or(1, |number| number + 1));
    Ok(survey)
}
