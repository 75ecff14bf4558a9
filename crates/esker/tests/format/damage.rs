//! The decoder accounts for every byte: whichever is another one, it notices.

use crate::directory::{Database, Files, Left};
use crate::machine::{DIRECTORY, Machine};
use crate::random::{Random, seeds};
use crate::script::Script;
use esker::{Compression, Db, KeyspaceOptions, Ttl};
use std::time::Duration;

fn reads(files: &Files) -> bool {
    Database::read(files, Left::InOrder).is_ok()
}

/// Changes each of the files in those places and in its length, and sees it noticed.
fn damage(mut files: Files, random: &mut Random, places: &mut dyn FnMut(&[u8]) -> Vec<usize>) {
    let whole = Database::read(&files, Left::InOrder);
    assert!(whole.is_ok(), "as it was left: {:?}", whole.err());
    // The lock has the number of a process.
    let names: Vec<_> = files.keys().filter(|name| *name != "LOCK").cloned().collect();
    for ending in [".wal", ".table", ".blob"] {
        assert!(names.iter().any(|name| name.ends_with(ending)), "no {ending}: {names:?}");
    }
    for name in names {
        let bytes = files[&name].clone();
        for at in places(&bytes) {
            files.get_mut(&name).unwrap()[at] ^= 1 << random.below(8);
            assert!(!reads(&files), "byte {at} of {name}, {} bytes", bytes.len());
            files.get_mut(&name).unwrap()[at] = bytes[at];
        }
        files.insert(name.clone(), [&bytes[..], &[9]].concat());
        assert!(!reads(&files), "{name} with a byte more");
        files.insert(name.clone(), bytes[..bytes.len() - 1].to_vec());
        assert!(!reads(&files) || name == "RESERVE", "{name} without its last byte");
        files.insert(name.clone(), bytes);
        files.insert(format!("{name}.old"), Vec::new());
        assert!(!reads(&files), "another file beside {name}");
        files.remove(&format!("{name}.old"));
    }
}

#[test]
fn a_byte_that_is_another_one_is_noticed_wherever_it_is() {
    let compressions = [Compression::None, Compression::Lz4, Compression::Zstd];
    for (seed, compression) in (1..).zip(compressions.into_iter().filter(|one| one.is_available())) {
        let machine = Machine::new(seed);
        let options = machine.options().compression(compression).upper_compression(compression).min_blob_size(512);
        let db = Db::open(DIRECTORY, options.wal_segment_bytes(16 << 10)).unwrap();
        let keyspace = db.keyspace("k", KeyspaceOptions::default().ttl(Ttl::Enabled { default: None })).unwrap();
        for number in 0..20u8 {
            keyspace.put([number], [number; 9]).unwrap();
        }
        keyspace.put("large", vec![7; 600]).unwrap();
        keyspace.delete_range("a".."b").unwrap();
        keyspace.compact().unwrap();
        keyspace.put_with_ttl("short", "lived", Duration::from_secs(1)).unwrap();
        keyspace.delete("large").unwrap();
        keyspace.put("large", vec![8; 601]).unwrap();
        drop(keyspace);
        db.close().unwrap();
        // Of the zeroes at the end of a segment only some.
        let mut every = |bytes: &[u8]| {
            let used = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
            (0..used).chain((used..bytes.len()).step_by(301)).collect()
        };
        damage(machine.files(), &mut Random::new(seed), &mut every);
    }
}

#[test]
fn damage_is_noticed_in_random_databases() {
    for seed in seeds(3) {
        println!("ESKER_SEED={seed}");
        let machine = Machine::new(seed);
        let options = || machine.options().min_blob_size(512).wal_segment_bytes(512 << 10);
        let mut script = Script::new(seed, machine.clock.clone());
        let db = Db::open(DIRECTORY, options()).unwrap();
        script.run(&db, 100).unwrap();
        db.compact().unwrap();
        script.run(&db, 30).unwrap();
        db.existing_keyspace(&db.keyspaces()[0]).unwrap().ingest([("large", vec![1; 700])]).ok();
        db.close().unwrap();
        let mut random = Random::new(seed);
        let mut places = random.clone();
        let mut some = |bytes: &[u8]| (0..25).map(|_| places.below(bytes.len() as u64) as usize).collect();
        damage(machine.files(), &mut random, &mut some);
    }
}
