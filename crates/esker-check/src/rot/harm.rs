//! Ways in which stored files are damaged.

use crate::random::Random;
use esker::env::mem::MemEnv;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Damage to a file.
#[derive(Clone, Debug)]
pub struct Harm {
    pub path: PathBuf,
    pub at: u64,
    pub how: How,
}

#[derive(Clone, Debug)]
pub enum How {
    /// One bit is inverted.
    Flip(u8),
    /// A sector of that length reads as zeroes.
    Zero(u64),
    /// A sector of that length holds what it held before its last write, which was lost.
    Stale(u64),
    /// A sector of that length was written here instead of to that place of this file or another:
    /// here is what belongs there, and there is what was there before.
    Misdirected(PathBuf, u64, u64),
    /// The file ends there.
    Cut,
    /// The file is as it was after that step.
    Older(usize),
}

/// Bytes that a harm has changed.
#[derive(Clone, Debug)]
pub struct Damage {
    pub path: PathBuf,
    pub range: Range<u64>,
    /// One bit of them, and no whole sector.
    pub is_flip: bool,
    /// They are right ones of an earlier time.
    pub is_old: bool,
}

impl Damage {
    /// Whether an older manifest may be in force now, which says what was right before.
    pub fn may_bring_back_a_manifest(&self) -> bool {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        self.is_old && (name == "CURRENT" || name.starts_with("MANIFEST-"))
    }
}

const SECTORS: [u64; 2] = [512, 4096];

impl Harm {
    /// Every file is as likely as every other, because the small ones matter most. `steps`: how
    /// many earlier states of files there are; cut or put back are only those of databases that are
    /// closed.
    pub fn any(files: &[(PathBuf, u64)], steps: usize, is_open: bool, random: &mut Random) -> Harm {
        let mut place = || {
            let (path, bytes) = &files[random.below(files.len())];
            (path.clone(), random.below(*bytes as usize) as u64)
        };
        let ((path, at), (other, from)) = (place(), place());
        let sector = SECTORS[random.below(2)];
        let begin = |at: u64| at / sector * sector;
        match random.below(20) {
            0 => Harm { path, at: begin(at), how: How::Zero(sector) },
            1..=2 => Harm { path, at: begin(at), how: How::Stale(sector) },
            3..=4 => Harm { path, at: begin(at), how: How::Misdirected(other, begin(from), sector) },
            5 if !is_open => Harm { path, at, how: How::Cut },
            6 if !is_open && steps > 0 => Harm { path, at: 0, how: How::Older(random.below(steps)) },
            _ => Harm { path, at, how: How::Flip(random.below(8) as u8) },
        }
    }

    /// Every one of a file: bits, sectors, and, while closed, lengths and earlier states.
    pub fn all(path: &Path, bytes: u64, steps: usize, is_open: bool) -> Vec<Harm> {
        let harm = |at: u64, how: How| Harm { path: path.to_path_buf(), at, how };
        let mut all: Vec<Harm> = (0..bytes * 8).map(|bit| harm(bit / 8, How::Flip((bit % 8) as u8))).collect();
        for sector in SECTORS {
            for at in (0..bytes).step_by(sector as usize) {
                all.extend([How::Zero(sector), How::Stale(sector)].map(|how| harm(at, how)));
            }
        }
        if !is_open {
            all.extend((0..bytes).map(|at| harm(at, How::Cut)));
            all.extend((0..steps).map(|step| harm(0, How::Older(step))));
        }
        all
    }

    /// Another one while open, to one of these files: a flip for a flip, so that what comes of it
    /// is counted as what it is.
    pub fn elsewhere(&self, files: &[(PathBuf, u64)], random: &mut Random) -> Harm {
        loop {
            let other = Harm::any(files, 0, true, random);
            if other.is_flip() == self.is_flip() {
                return other;
            }
        }
    }

    pub fn is_flip(&self) -> bool {
        matches!(self.how, How::Flip(_))
    }

    /// Damages the files; what has changed. `older` are the files after each step.
    pub fn apply(&self, env: &MemEnv, older: &[MemEnv]) -> Vec<Damage> {
        let before = |path: &Path| env.file_bytes(path).unwrap_or_default();
        let (own, mut harmed) = (before(&self.path), vec![self.path.clone()]);
        let mut others = Vec::new();
        match &self.how {
            How::Flip(bit) => _ = env.flip_bit(&self.path, self.at, *bit),
            How::Zero(bytes) => env.misdirect(&self.path, self.at, &vec![0; *bytes as usize]),
            How::Stale(bytes) => _ = env.lose_write(&self.path, self.at, *bytes),
            How::Misdirected(from, at, bytes) => {
                let source = before(from);
                let sector: Vec<u8> = source.iter().copied().skip(*at as usize).take(*bytes as usize).collect();
                env.lose_write(from, *at, *bytes);
                env.misdirect(&self.path, self.at, &sector);
                if *from != self.path {
                    harmed.push(from.clone());
                    others.push(source);
                }
            }
            How::Cut => env.set_file_bytes(&self.path, own[..own.len().min(self.at as usize)].to_vec()),
            How::Older(step) => {
                if let Some(bytes) = older.get(*step).and_then(|older| older.file_bytes(&self.path)) {
                    env.set_file_bytes(&self.path, bytes);
                }
            }
        }
        let is_old = matches!(self.how, How::Older(_));
        let changed = harmed.into_iter().zip([own].into_iter().chain(others)).filter_map(|(path, old)| {
            let range = difference(&old, &env.file_bytes(&path).unwrap_or_default())?;
            Some(Damage { path, range, is_flip: self.is_flip(), is_old })
        });
        changed.collect()
    }
}

/// From the first byte that differs to behind the last one; without end where the lengths differ.
fn difference(old: &[u8], new: &[u8]) -> Option<Range<u64>> {
    let same = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    if old.len() != new.len() {
        return Some(same as u64..u64::MAX);
    }
    let last = old.iter().zip(new).rposition(|(old, new)| old != new)?;
    Some(same as u64..last as u64 + 1)
}
