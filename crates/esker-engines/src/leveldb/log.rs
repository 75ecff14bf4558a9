//! What LevelDB writes into the LOG beside its files, the only place where it counts flushes and
//! compactions to the byte. The file begins anew at every open.
//!
//! ```text
//! line = time " " thread " " event
//! event = "Level-0 table #" file ": " bytes " bytes " status                         a flush, whatever level the file went to
//!       | "Compacted " count "@" level " + " count "@" level " files => " bytes " bytes"
//!       | others
//! ```

use crate::Counters;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// Flushes and compactions since the database of this directory was opened; nothing if the file
/// cannot be read.
pub fn counters(directory: &Path) -> Counters {
    let Ok(file) = std::fs::File::open(directory.join("LOG")) else { return Counters::default() };
    let mut counters = Counters { flushes: Some(0), compactions: Some(0), ..Counters::default() };
    for line in BufReader::new(file).split(b'\n').map_while(std::io::Result::ok) {
        add(&mut counters, &String::from_utf8_lossy(&line));
    }
    counters
}

fn add(counters: &mut Counters, line: &str) {
    if let Some((_, event)) = line.split_once(" Level-0 table #") {
        // The other line about this table says that it was started.
        if let Some(bytes) = event.split_once(": ").and_then(|(_, rest)| leading_bytes(rest)) {
            counters.flushes = counters.flushes.map(|count| count + 1);
            counters.flush_bytes += bytes;
        }
    } else if let Some((_, event)) = line.split_once(" Compacted ")
        && let Some(bytes) = event.split_once(" files => ").and_then(|(_, rest)| leading_bytes(rest))
    {
        counters.compactions = counters.compactions.map(|count| count + 1);
        counters.compaction_bytes += bytes;
    }
}

/// The number of `123 bytes`.
fn leading_bytes(text: &str) -> Option<u64> {
    text.split_once(" bytes")?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flushes_and_compactions_are_counted() {
        let log = "2026/01/01-00:00:00.000000 139 Recovering log #3\n\
                   2026/01/01-00:00:00.000001 139 Level-0 table #5: started\n\
                   2026/01/01-00:00:00.000002 139 Level-0 table #5: 2000 bytes OK\n\
                   2026/01/01-00:00:00.000003 139 Compacting 4@0 + 3@1 files\n\
                   2026/01/01-00:00:00.000004 139 Generated table #9@0: 10 keys, 700 bytes\n\
                   2026/01/01-00:00:00.000005 139 Compacted 4@0 + 3@1 files => 1400 bytes\n\
                   2026/01/01-00:00:00.000006 139 Moved #7 to level-2 99 bytes OK: files[ 0 1 1 ]\n\
                   2026/01/01-00:00:00.000007 139 Level-0 table #11: 3000 bytes OK\n Level-0 table #12: xx bytes\n";
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(counters(directory.path()), Counters::default());
        std::fs::write(directory.path().join("LOG"), [log.as_bytes(), b"\xff"].concat()).unwrap();
        let counted = counters(directory.path());
        assert_eq!((counted.flushes, counted.flush_bytes), (Some(2), 5000));
        assert_eq!((counted.compactions, counted.compaction_bytes), (Some(1), 1400));
        assert_eq!(counted.comparisons, None);
    }
}
