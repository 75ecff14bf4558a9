//! A control group of this process alone, with a limit of memory: of version 2, or of the older
//! version where memory is still governed by that.

use crate::Checked;
use std::fs;
use std::path::{Path, PathBuf};

/// The group, and the one that the process was in.
#[derive(Debug)]
pub(super) struct Group {
    path: PathBuf,
    before: PathBuf,
}

/// The group that this process is in, and how its limits are called there.
struct Parent {
    path: PathBuf,
    limit: &'static str,
    /// No swapping; set if it is there, as not every kernel accounts for it.
    no_swapping: (&'static str, &'static str),
}

fn parent() -> Option<Parent> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    mounts.lines().find_map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        let (&mount, &kind, &options) = (words.get(1)?, words.get(2)?, words.get(3)?);
        match kind {
            "cgroup2" => version_2(mount, &groups),
            "cgroup" if options.split(',').any(|option| option == "memory") => version_1(mount, &groups),
            _ => None,
        }
    })
}

fn version_2(mount: &str, groups: &str) -> Option<Parent> {
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let path = Path::new(mount).join(own);
    let controllers = fs::read_to_string(path.join("cgroup.controllers")).ok()?;
    let no_swapping = ("memory.swap.max", "0");
    controllers.split_whitespace().any(|name| name == "memory").then_some(Parent {
        path,
        limit: "memory.max",
        no_swapping,
    })
}

fn version_1(mount: &str, groups: &str) -> Option<Parent> {
    let own = groups.lines().find_map(|line| line.split_once(":memory:/").map(|(_, own)| own))?;
    // In a container the path is that of the host; what is mounted is the own group.
    let path = Some(Path::new(mount).join(own)).filter(|path| path.exists()).unwrap_or_else(|| mount.into());
    Some(Parent { path, limit: "memory.limit_in_bytes", no_swapping: ("memory.swappiness", "0") })
}

impl Group {
    /// Moves this process into a new group that may take so many bytes. The inner error says why
    /// that is not possible here.
    pub(super) fn enter(bytes: u64) -> Checked<Result<Group, String>> {
        let Some(Parent { path: before, limit, no_swapping: (swap, none) }) = parent() else {
            return Ok(Err("no control group with a controller of memory".to_string()));
        };
        let path = before.join(format!("esker-check-{}", std::process::id()));
        if let Err(error) = fs::create_dir(&path) {
            return Ok(Err(format!("{}: {error}", path.display())));
        }
        let group = Group { path, before };
        let set = |name: &str, value: &str| fs::write(group.path.join(name), value);
        let entered = set(limit, &bytes.to_string())
            .and_then(|()| if group.path.join(swap).exists() { set(swap, none) } else { Ok(()) })
            .and_then(|()| set("cgroup.procs", &std::process::id().to_string()));
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
