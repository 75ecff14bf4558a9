//! Where the pages and pictures that tests make are kept, to be looked at.

#![allow(clippy::unwrap_used)]

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// The file of this name. Another run of these tests, which has the same names, waits until this
/// one has ended.
pub fn kept(name: &str) -> PathBuf {
    static ALONE: LazyLock<File> = LazyLock::new(|| {
        let file = File::create(directory().join("pages.lock")).unwrap();
        file.lock().unwrap();
        file
    });
    LazyLock::force(&ALONE);
    directory().join(name)
}

fn directory() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}
