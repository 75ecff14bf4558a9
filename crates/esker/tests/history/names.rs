//! Names of keyspaces, and the file `CURRENT`, which is a name.

use crate::common::{keyspace, simulated, synced};
use esker::env::mem::MemEnv;
use esker::{Db, Error};
use std::path::Path;

/// Another engine took the empty name, and the keyspace was gone after the next open. What is
/// accepted is there again; what is not leaves nothing behind.
#[test]
fn a_name_that_is_accepted_is_there_after_an_open() {
    let env = MemEnv::new();
    let accepted: Vec<String> =
        ["k", " ", ".", "..", "a/b", "\\", "000001.table", "CURRENT", "\u{fe}\u{ff}", "\u{10ffff}"]
            .map(str::to_owned)
            .into_iter()
            .chain(["x".repeat(255), "\u{e9}".repeat(127) + "x"])
            .collect();
    let controls = (0..0x20).chain(0x7f..0xa0).map(|code| format!("a{}b", char::from_u32(code).unwrap()));
    let refused: Vec<String> =
        [String::new(), "x".repeat(256), "\u{e9}".repeat(128)].into_iter().chain(controls).collect();
    for round in 0..4u8 {
        let db = Db::open("/db", simulated(env.clone())).unwrap();
        for name in &refused {
            let result = db.keyspace(name, Default::default());
            assert!(matches!(result, Err(Error::InvalidArgument { .. })), "{name:?}: {result:?}");
            assert!(matches!(db.existing_keyspace(name), Err(Error::NotFound { .. })), "{name:?}");
        }
        for name in &accepted {
            let k = keyspace(&db, name);
            assert_eq!(
                k.get("round").unwrap().as_deref(),
                round.checked_sub(1).as_ref().map(std::slice::from_ref),
                "{name:?}"
            );
            k.put("round", [round]).unwrap();
        }
        let (mut found, mut expected) = (db.keyspaces(), accepted.clone());
        found.sort();
        expected.sort();
        assert_eq!(found, expected);
        match round {
            0 => db.close().unwrap(),
            1 => drop(db),
            _ => db.compact().unwrap(),
        }
    }
}

/// `CURRENT` is exactly its line. Anything else, a line without its end or the same line twice
/// included, is damage and not a database that is new; nothing is removed, and a repair finds
/// everything.
#[test]
fn a_pointer_that_is_not_exactly_its_line_is_damage() {
    let env = MemEnv::new();
    for number in 0..3u8 {
        let db = Db::open("/db", simulated(env.clone())).unwrap();
        let k = keyspace(&db, "k");
        k.put_with([number], "v", &synced()).unwrap();
        if number == 1 {
            db.flush().unwrap();
        }
    }
    let current = Path::new("/db/CURRENT");
    let line = String::from_utf8(env.file_bytes(current).unwrap()).unwrap();
    let bare = line.trim_end();
    let name = bare.split(' ').next().unwrap();
    let wrong = [
        String::new(),
        "\n".into(),
        bare.into(),
        format!("{line}{line}"),
        format!("{bare}\r\n"),
        format!("{line}\n"),
        format!(" {line}"),
        format!("{line}\0\0\0\0"),
        "\0".repeat(line.len()),
        format!("{name}\n"),
        format!("{name} 00000000\n"),
        line.to_uppercase(),
        line[..line.len() / 2].into(),
        format!("MANIFEST-999999{}\n", &bare[name.len()..]),
    ];
    for text in wrong {
        let damaged = env.kill();
        damaged.set_file_bytes(current, text.clone().into_bytes());
        let before: Vec<_> = damaged.files();
        for read_only in [true, false] {
            let options = simulated(damaged.clone());
            let result = if read_only { Db::open_read_only("/db", options) } else { Db::open("/db", options) };
            match result {
                Err(Error::Corruption { path, .. }) => assert_eq!(path, current, "{text:?}"),
                other => panic!("{text:?}: {other:?}"),
            }
        }
        let lost: Vec<_> = before.iter().filter(|path| !damaged.files().contains(path)).collect();
        assert!(lost.is_empty(), "{text:?}: {lost:?} are gone");
        Db::repair("/db", simulated(damaged.clone())).unwrap();
        let k = keyspace(&Db::open("/db", simulated(damaged)).unwrap(), "k");
        assert!((0..3u8).all(|number| k.get([number]).unwrap().is_some()), "{text:?}");
    }
}
