//! A control group (version 2) of this process alone, with a limit of memory.

use crate::Checked;
use std::fs;
use std::path::{Path, PathBuf};

/// The group, and the one that the process was in.
#[derive(Debug)]
pub(super) struct Group {
    path: PathBuf,
    before: PathBuf,
}

/// The directory of the group that this process is in, if there is version 2 with a controller of memory.
fn own_group() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let mount = mounts
        .lines()
        .map(|line| line.split(' ').collect::<Vec<_>>())
        .find(|words| words.get(2) == Some(&"cgroup2"))?;
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let path = Path::new(mount.get(1)?).join(own);
    let controllers = fs::read_to_string(path.join("cgroup.controllers")).ok()?;
    controllers.split_whitespace().any(|name| name == "memory").then_some(path)
}

impl Group {
    /// Moves this process into a new group that may take so many bytes. The inner error says why that is not possible here.
    pub(super) fn enter(bytes: u64) -> Checked<Result<Group, String>> {
        let Some(before) = own_group() else {
            return Ok(Err("no control group of version 2 with a controller of memory".to_string()));
        };
        let path = before.join(format!("esker-check-{}", std::process::id()));
        if let Err(error) = fs::create_dir(&path) {
            return Ok(Err(format!("{}: {error}", path.display())));
        }
        let group = Group { path, before };
        let set = |name: &str, value: String| fs::write(group.path.join(name), value);
        let swap = group.path.join("memory.swap.max").exists();
        let entered = set("memory.max", bytes.to_string())
            .and_then(|()| if swap { set("memory.swap.max", "0".to_string()) } else { Ok(()) })
            .and_then(|()| set("cgroup.procs", std::process::id().to_string()));
        match entered {
            Ok(()) => Ok(Ok(group)),
            Err(error) => {
                let obstacle = format!("{}: {error}", group.path.display());
                fs::remove_dir(&group.path).map_err(|error| format!("{obstacle}; and it stays: {error}"))?;
                Ok(Err(obstacle))
            }
        }
    }

    /// Moves it back and removes the group.
    pub(super) fn leave(self) -> Checked<()> {
        let failed = |error: std::io::Error| format!("{} stays: {error}", self.path.display());
        fs::write(self.before.join("cgroup.procs"), std::process::id().to_string()).map_err(failed)?;
        fs::remove_dir(&self.path).map_err(failed)
    }
}
