#![allow(clippy::unwrap_used)]

use super::*;
use std::collections::BTreeSet;

fn path(name: &str) -> &Path {
    Path::new(name)
}

fn put(env: &MemEnv, name: &str, bytes: &[u8], sync: bool) {
    let mut file = env.create(path(name)).unwrap();
    file.append(bytes).unwrap();
    if sync {
        file.sync().unwrap();
    }
}

fn bytes(env: &MemEnv, name: &str) -> Option<String> {
    env.file_bytes(path(name)).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

fn lost(env: &MemEnv, name: &str) -> Option<String> {
    bytes(&env.crash(&CrashMode::LoseAll, 0), name)
}

/// Two files, durable with their names.
fn settled() -> MemEnv {
    let env = MemEnv::new();
    env.create_dir_all(path("/db")).unwrap();
    put(&env, "/db/a", b"aaaa", true);
    put(&env, "/db/b", b"bbbb", true);
    env.sync_dir(path("/db")).unwrap();
    env.sync_dir(path("/")).unwrap();
    env
}

#[test]
fn files_behave_as_the_contract_says() {
    let env = settled();
    let file = env.open(path("/db/./x/../a")).unwrap();
    assert_eq!(file.len(), 4);
    assert!(file.mapping().is_none());
    let mut buffer = [0; 2];
    file.read_at(2, &mut buffer).unwrap();
    assert_eq!(&buffer, b"aa");
    match file.read_at(3, &mut buffer) {
        Err(Error::Corruption { path, offset: 3, .. }) => assert_eq!(path, Path::new("/db/./x/../a")),
        other => panic!("{other:?}"),
    }
    assert!(file.read_at(u64::MAX, &mut buffer).is_err());
    env.remove(path("/db/a")).unwrap();
    file.read_at(0, &mut buffer).unwrap();
    assert_eq!(env.list(path("/db")).unwrap(), ["b"]);
    assert_eq!(env.list(path("/")).unwrap(), [""; 0]);
    assert!(env.exists(path("/db")).unwrap() && env.exists(path("/")).unwrap() && env.exists(path("")).unwrap());
    assert!(!env.exists(path("/db/a")).unwrap() && !env.exists(path("/no/where")).unwrap());
    for missing in [env.remove(path("/db/a")), env.rename(path("/db/a"), path("/db/c")), env.sync_dir(path("/no"))] {
        assert!(matches!(missing, Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound));
    }
    assert!(env.create(path("/no/file")).is_err() && env.create(path("/db")).is_err() && env.list(path("x")).is_err());
    assert!(env.open(path("/")).is_err() && env.create_dir_all(path("/db/b/c")).is_err());
    env.hard_link(path("/db/b"), path("/db/c")).unwrap();
    assert!(env.hard_link(path("/db/b"), path("/db/c")).is_err());
    env.rename(path("/db/b"), path("/db/c")).unwrap();
    assert_eq!(env.files(), [path("/db/b"), path("/db/c")], "as POSIX has it for two links of one file");
}

#[test]
fn syncing_a_file_does_not_sync_its_name_nor_the_other_way() {
    let env = MemEnv::new();
    put(&env, "synced", b"1", true);
    assert_eq!(lost(&env, "synced"), None);
    put(&env, "unsynced", b"2", false);
    env.sync_dir(path("")).unwrap();
    assert_eq!(lost(&env, "synced").as_deref(), Some("1"));
    assert_eq!(lost(&env, "unsynced").as_deref(), Some(""));
    assert_eq!(bytes(&env, "unsynced").as_deref(), Some("2"));
}

#[test]
fn a_new_directory_is_durable_after_a_sync_of_its_parent() {
    let env = MemEnv::new();
    env.create_dir_all(path("/x/db")).unwrap();
    put(&env, "/x/db/f", b"1", true);
    env.sync_dir(path("/x/db")).unwrap();
    env.sync_dir(path("/x")).unwrap();
    assert!(env.crash(&CrashMode::LoseAll, 0).files().is_empty());
    assert!(!env.crash(&CrashMode::LoseAll, 0).exists(path("/x/db")).unwrap());
    env.sync_dir(path("/")).unwrap();
    assert_eq!(lost(&env, "/x/db/f").as_deref(), Some("1"));
}

#[test]
fn the_fixed_modes_keep_what_they_say() {
    let env = settled();
    let mut file = env.create(path("/db/new")).unwrap();
    file.append(b"12").unwrap();
    file.sync().unwrap();
    file.append(b"34").unwrap();
    drop(file);
    put(&env, "/db/a", b"AAA", false);
    env.remove(path("/db/b")).unwrap();
    let image = |mode: CrashMode| {
        let after = env.crash(&mode, 0);
        ["/db/a", "/db/b", "/db/new"].map(|name| bytes(&after, name))
    };
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(image(CrashMode::LoseAll), [text("aaaa"), text("bbbb"), None]);
    assert_eq!(image(CrashMode::KeepAll), [text("AAA"), None, text("1234")]);
    assert_eq!(image(CrashMode::OnlyMetadata), [text("\0\0\0"), None, text("12\0\0")]);
    assert_eq!(image(CrashMode::OnlyData), [text("AAA"), text("bbbb"), None]);
    // An image is all durable, independent, and the original goes on.
    let after = env.crash(&CrashMode::KeepAll, 0);
    assert_eq!(bytes(&after.crash(&CrashMode::LoseAll, 0), "/db/new").as_deref(), Some("1234"));
    put(&after, "/db/new", b"changed", true);
    assert_eq!(bytes(&env, "/db/new").as_deref(), Some("1234"));
    assert_eq!(after.mutations(), 3);
}

#[test]
fn a_rename_is_one_step_and_may_lose_to_a_later_unlink() {
    let env = settled();
    put(&env, "/db/tmp", b"new", true);
    env.rename(path("/db/tmp"), path("/db/a")).unwrap();
    env.remove(path("/db/b")).unwrap();
    assert_eq!(lost(&env, "/db/a").as_deref(), Some("aaaa"));
    let mut seen = BTreeSet::new();
    for seed in 0..500 {
        let after = env.crash(&CrashMode::Random, seed);
        let state = ["/db/a", "/db/b", "/db/tmp"].map(|name| bytes(&after, name).unwrap_or_default());
        assert!(state[0] == "aaaa" || state[0] == "new" && state[2].is_empty(), "{state:?}");
        seen.insert(state);
    }
    let expect = |a: &str, b: &str, tmp: &str| assert!(seen.contains(&[a.into(), b.into(), tmp.into()]), "{seen:?}");
    expect("aaaa", "bbbb", "");
    expect("aaaa", "bbbb", "new");
    expect("new", "bbbb", "");
    expect("new", "", "");
    expect("aaaa", "", "");
    expect("aaaa", "", "new");
}

#[test]
fn a_renamed_file_whose_data_was_not_synced_may_be_empty() {
    let env = settled();
    put(&env, "/db/tmp", b"new", false);
    env.rename(path("/db/tmp"), path("/db/a")).unwrap();
    let seen: BTreeSet<_> = (0..300).map(|seed| bytes(&env.crash(&CrashMode::Random, seed), "/db/a")).collect();
    for state in ["aaaa", "", "new", "\0\0\0", "ne"] {
        assert!(seen.contains(&Some(state.to_owned())), "{state:?} not in {seen:?}");
    }
    assert!(!seen.contains(&None));
}

#[test]
fn random_images_repeat_with_the_seed_and_leave_durable_bytes_alone() {
    let env = MemEnv::new();
    let log = env.open_log(path("log"), Some(64 << 10), true).unwrap();
    env.sync_dir(path("")).unwrap();
    let length_after_a_crash = || env.crash(&CrashMode::LoseAll, 0).file_bytes(path("log")).map(|bytes| bytes.len());
    assert_eq!(length_after_a_crash(), Some(0), "a length is durable after a sync only");
    log.sync().unwrap();
    assert_eq!(length_after_a_crash(), Some(64 << 10));
    log.write(0, &[1; 10_000]).unwrap();
    log.sync().unwrap();
    // Starts in the middle of a sector of durable bytes.
    for i in 0..30 {
        log.store(10_000 + i * 700, &[2; 700]).unwrap();
    }
    let end = 10_000 + 30 * 700;
    let (mut zeroed, mut garbage, mut holes, mut kinds) = (0, 0, 0, BTreeSet::new());
    for seed in 0..400 {
        let image = env.crash(&CrashMode::Random, seed).file_bytes(path("log")).unwrap();
        assert_eq!(image, env.crash(&CrashMode::Random, seed).file_bytes(path("log")).unwrap());
        assert_eq!(image.len(), 64 << 10);
        assert!(image[..10_000].iter().all(|&byte| byte == 1) && image[end..].iter().all(|&byte| byte == 0));
        let pending = &image[10_000..end];
        garbage += u32::from(pending.iter().any(|&byte| byte != 0 && byte != 2));
        zeroed += u32::from(pending.iter().all(|&byte| byte == 0));
        // Something later survived what came before.
        let first_zero = pending.iter().position(|&byte| byte == 0).unwrap_or(pending.len());
        holes += u32::from(pending[first_zero..].contains(&2));
        kinds.insert(image);
    }
    assert!(zeroed > 10 && garbage > 10 && holes > 100 && kinds.len() > 200);
}

#[test]
fn a_sector_that_is_overwritten_is_old_new_or_damaged_only_where_written() {
    let env = MemEnv::new();
    env.set_file_bytes(path("log"), vec![7; 4096]);
    let log = env.open_log(path("log"), None, false).unwrap();
    log.write(100, &[8; 50]).unwrap();
    log.write(120, &[9; 50]).unwrap();
    let mut seen = BTreeSet::new();
    for seed in 0..300 {
        let image = env.crash(&CrashMode::Random, seed).file_bytes(path("log")).unwrap();
        assert!(image[..100].iter().chain(&image[170..]).all(|&byte| byte == 7));
        seen.insert((image[100], image[130], image[169]));
    }
    assert!(
        seen.contains(&(7, 7, 7))
            && seen.contains(&(8, 8, 7))
            && seen.contains(&(8, 9, 9))
            && seen.contains(&(0, 0, 0))
    );
    assert!(!seen.contains(&(7, 9, 9)), "the page cache cannot write the second without the first");
}

#[test]
fn appends_tear_at_any_byte() {
    let env = MemEnv::new();
    let mut file = env.create(path("f")).unwrap();
    file.append(&[1; 40]).unwrap();
    file.sync().unwrap();
    env.sync_dir(path("")).unwrap();
    file.append(&[2; 60]).unwrap();
    let mut lengths = BTreeSet::new();
    for seed in 0..2000 {
        let image = env.crash(&CrashMode::Random, seed).file_bytes(path("f")).unwrap();
        assert!(image[..40] == [1; 40]);
        lengths.insert(image.len());
    }
    assert_eq!(lengths, (40..=100).collect());
}

#[test]
fn a_power_loss_stops_every_call_from_its_index_on() {
    let script = |env: &MemEnv| -> Result<()> {
        env.create_dir_all(path("/d"))?;
        let _lock = env.lock(path("/d/LOCK"))?;
        let mut file = env.create(path("/d/tmp"))?;
        file.append(b"1")?;
        file.sync()?;
        env.rename(path("/d/tmp"), path("/d/f"))?;
        env.hard_link(path("/d/f"), path("/d/g"))?;
        env.sync_dir(path("/d"))?;
        env.remove(path("/d/g"))?;
        let log = env.open_log(path("/d/log"), Some(8192), true)?;
        log.store(0, b"1")?;
        log.write(1, b"2")?;
        log.sync()?;
        env.open(path("/d/f"))?.read_at(0, &mut [0])
    };
    let env = MemEnv::new();
    script(&env).unwrap();
    assert_eq!(env.mutations(), 13);
    for count in 0..13 {
        let env = MemEnv::new();
        env.crash_after(count);
        let error = script(&env).unwrap_err();
        assert!(error.to_string().contains("simulated power loss"), "{error}");
        assert!(env.is_dead());
        assert_eq!(env.mutations(), count);
        let before = env.files();
        assert!(env.list(path("/")).is_err() && env.exists(path("/")).is_err() && env.open(path("/d/f")).is_err());
        assert!(env.create(path("/new")).is_err() && env.open_log(path("/d/log"), None, false).is_err());
        assert_eq!(env.files(), before);
        // Whatever is left, the script runs on it.
        for mode in CrashMode::FIXED.into_iter().chain([CrashMode::Random; 4]) {
            let after = env.crash(&mode, count);
            if after.exists(path("/d/g")).unwrap() {
                after.remove(path("/d/g")).unwrap();
            }
            script(&after).unwrap();
        }
    }
}

#[test]
fn handles_of_a_dead_environment_do_nothing() {
    let env = settled();
    let read = env.open(path("/db/a")).unwrap();
    let log = env.open_log(path("/db/b"), None, false).unwrap();
    let mut write = env.create(path("/db/c")).unwrap();
    env.crash_after(env.mutations());
    read.read_at(0, &mut [0]).unwrap();
    assert!(log.write(0, b"x").is_err());
    assert!(read.read_at(0, &mut [0]).is_err() && log.read_at(0, &mut [0]).is_err());
    assert!(log.sync().is_err() && write.append(b"x").is_err() && write.sync().is_err());
    assert_eq!(bytes(&env, "/db/b").as_deref(), Some("bbbb"));
}

#[test]
fn a_failed_sync_drops_pending_data_and_the_next_one_succeeds() {
    let env = settled();
    let mut file = env.create(path("/db/f")).unwrap();
    env.sync_dir(path("/db")).unwrap();
    file.append(b"one").unwrap();
    env.fail_sync(1, SyncFailure::DropPending);
    file.sync().unwrap();
    file.append(b"two").unwrap();
    assert!(file.sync().is_err());
    assert_eq!(bytes(&env, "/db/f").as_deref(), Some("onetwo"), "the page cache still has it");
    assert_eq!(lost(&env, "/db/f").as_deref(), Some("one"));
    file.append(b"three").unwrap();
    file.sync().unwrap();
    assert_eq!(lost(&env, "/db/f").as_deref(), Some("one\0\0\0three"));
    assert_eq!(bytes(&env.crash(&CrashMode::KeepAll, 0), "/db/f").as_deref(), Some("one\0\0\0three"));

    file.append(b"four").unwrap();
    env.fail_sync(0, SyncFailure::KeepPending);
    assert!(file.sync().is_err());
    assert_eq!(lost(&env, "/db/f").as_deref(), Some("one\0\0\0threefour"));
}

#[test]
fn a_killed_process_leaves_everything_but_its_locks() {
    let env = settled();
    let lock = env.lock(path("/db/LOCK")).unwrap();
    match env.lock(path("/db/LOCK")) {
        Err(Error::Locked { holder, .. }) => assert_eq!(holder, Some(std::process::id())),
        other => panic!("{other:?}"),
    }
    assert_eq!(bytes(&env, "/db/LOCK"), Some(format!("{}\n", std::process::id())));
    let mut file = env.create(path("/db/f")).unwrap();
    file.append(b"one").unwrap();
    file.sync().unwrap();
    file.append(b"two").unwrap();
    env.hard_link(path("/db/f"), path("/db/g")).unwrap();
    let next = env.kill();
    assert_eq!(bytes(&next, "/db/f").as_deref(), Some("onetwo"));
    assert_eq!(lost(&next, "/db/f"), None, "still pending");
    next.lock(path("/db/LOCK")).unwrap();
    // Two names are still one file, and the two environments are apart.
    next.sync_dir(path("/db")).unwrap();
    next.open_log(path("/db/g"), None, false).unwrap().write(0, b"ONE").unwrap();
    assert_eq!(bytes(&next, "/db/f").as_deref(), Some("ONEtwo"));
    assert_eq!(lost(&next, "/db/f").as_deref(), Some("one"));
    assert_eq!(bytes(&env, "/db/f").as_deref(), Some("onetwo"));
    assert_eq!(bytes(&env.kill_losing_buffers(), "/db/f").as_deref(), Some("one"));
    assert!(env.lock(path("/db/LOCK")).is_err());
    drop(lock);
    env.lock(path("/db/LOCK")).unwrap();
}

#[test]
fn a_full_disk_takes_what_fits() {
    let env = settled();
    env.set_capacity(Some(20));
    let mut file = env.create(path("/db/f")).unwrap();
    file.append(b"0123456789").unwrap();
    assert!(file.append(b"abcd").unwrap_err().is_disk_full());
    assert_eq!(bytes(&env, "/db/f").as_deref(), Some("0123456789ab"));
    assert!(env.create(path("/db/g")).unwrap_err().is_disk_full());
    assert!(env.open_log(path("/db/log"), Some(5), false).unwrap_err().is_disk_full());
    env.remove(path("/db/a")).unwrap();
    assert!(env.open_log(path("/db/log"), Some(5), false).unwrap_err().is_disk_full());
    assert!(!env.exists(path("/db/log")).unwrap());
    env.open_log(path("/db/log"), Some(4), false).unwrap();
    env.set_capacity(None);
    put(&env, "/db/g", &[0; 100], true);
}

#[test]
fn a_log_has_a_fixed_length() {
    let env = MemEnv::new();
    assert!(env.open_log(path("log"), None, true).is_err());
    let log = env.open_log(path("log"), Some(5000), true).unwrap();
    assert_eq!(log.len(), 5000);
    log.store(4095, b"xyz").unwrap();
    let mut buffer = [0; 5];
    log.read_at(4094, &mut buffer).unwrap();
    assert_eq!(&buffer, b"\0xyz\0");
    for offset in [4998, 5000, u64::MAX] {
        assert!(matches!(log.store(offset, b"xyz"), Err(Error::InvalidArgument { .. })));
        assert!(matches!(log.write(offset, b"xyz"), Err(Error::InvalidArgument { .. })));
        assert!(matches!(log.read_at(offset, &mut buffer), Err(Error::Corruption { .. })));
    }
    // A new log of that name leaves the old file to its other links.
    env.hard_link(path("log"), path("kept")).unwrap();
    env.open_log(path("log"), Some(8), false).unwrap();
    assert_eq!(env.file_bytes(path("kept")).unwrap().len(), 5000);
    assert_eq!(env.file_bytes(path("log")).unwrap(), [0; 8]);
}

#[test]
fn files_can_be_put_in_place_durably() {
    let env = MemEnv::new();
    env.set_file_bytes(path("/deep/er/f"), b"1".to_vec());
    let file = env.open(path("/deep/er/f")).unwrap();
    env.set_file_bytes(path("/deep/er/f"), b"2".to_vec());
    let mut buffer = [0];
    file.read_at(0, &mut buffer).unwrap();
    assert_eq!(&buffer, b"2");
    assert_eq!(lost(&env, "/deep/er/f").as_deref(), Some("2"));
    assert_eq!(env.mutations(), 0);
    env.set_file_bytes(path("/deep/er"), b"a directory".to_vec());
    assert_eq!(env.files(), [path("/deep/er/f")]);
}

#[test]
fn content_agrees_with_a_vector() {
    let mut content = Content::default();
    let mut model: Vec<u8> = Vec::new();
    let mut copies = Vec::new();
    let mut number = 1u32;
    for step in 0..2000 {
        number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let offset = (number >> 8) as usize % 20_000;
        let len = (number >> 3) as usize % 9000;
        if number.is_multiple_of(4) {
            content.resize(offset);
            model.resize(offset, 0);
        } else {
            model.resize(model.len().max(offset + len), 0);
            model[offset..offset + len].fill(step as u8);
            content.write(offset, &vec![step as u8; len]);
        }
        assert_eq!(content.to_vec(), model);
        if step % 500 == 0 {
            copies.push((content.clone(), model.clone()));
        }
    }
    assert!(copies.iter().all(|(content, model)| content.to_vec() == *model));
}

#[test]
fn a_ranged_sync_makes_those_bytes_durable_and_no_others() {
    let env = MemEnv::new();
    let log = env.open_log(path("log"), Some(64), true).unwrap();
    env.sync_dir(path("")).unwrap();
    log.write(0, &[1; 8]).unwrap();
    log.sync_range(0, 4).unwrap();
    assert_eq!(env.crash(&CrashMode::LoseAll, 0).file_bytes(path("log")), Some(vec![1; 4]), "no length, no page");
    log.sync().unwrap();
    log.write(8, &[2; 16]).unwrap();
    log.write(20, &[3; 8]).unwrap();
    log.write(40, &[4; 8]).unwrap();
    log.sync_range(12, 24).unwrap();
    let image = |mode| env.crash(&mode, 0).file_bytes(path("log")).unwrap();
    let expected = |before: u8, at_twelve: u8, behind: u8, far: u8| {
        let parts = [(1, 8), (before, 4), (at_twelve, 8), (3, 4), (behind, 4), (0, 12), (far, 8), (0, 16)];
        parts.into_iter().flat_map(|(byte, count)| std::iter::repeat_n(byte, count)).collect::<Vec<u8>>()
    };
    assert_eq!(image(CrashMode::LoseAll), expected(0, 2, 0, 0));
    assert_eq!(image(CrashMode::KeepAll), expected(2, 2, 3, 4));
    // Those left out come with a later sync, also of another range.
    log.sync_range(24, u64::MAX).unwrap();
    assert_eq!(image(CrashMode::LoseAll), expected(0, 2, 3, 4));
    for seed in 0..100 {
        let image = env.crash(&CrashMode::Random, seed).file_bytes(path("log")).unwrap();
        assert_eq!(image[12..], expected(0, 2, 3, 4)[12..], "seed {seed}");
    }
    env.fail_sync(0, SyncFailure::DropPending);
    assert!(log.sync_range(8, 12).is_err());
    log.sync().unwrap();
    assert_eq!(image(CrashMode::LoseAll), expected(0, 2, 3, 4));
}

#[test]
fn a_dying_store_has_put_some_of_its_words() {
    let mut seen = BTreeSet::new();
    for seed in 0..200 {
        let env = MemEnv::new();
        env.crash_inside(1, seed);
        let log = env.open_log(path("log"), Some(4096), true).unwrap();
        assert!(log.store(0, &[1; 32]).is_err() && env.is_dead());
        let words: Vec<u8> = env.kill().file_bytes(path("log")).unwrap()[..32].chunks(8).map(|word| word[0]).collect();
        seen.insert(words);
    }
    assert!(
        [[0, 0, 0, 0], [1, 1, 0, 0], [0, 1, 0, 1], [1, 1, 1, 1]].iter().all(|words| seen.contains(&words[..])),
        "{seen:?}"
    );
}

/// Seen: where the call that died was no store, a later one of the dead process changed the file.
#[test]
fn behind_a_death_in_another_call_no_store_has_put_anything() {
    for seed in 0..50 {
        let env = MemEnv::new();
        env.crash_inside(1, seed);
        let log = env.open_log(path("log"), Some(4096), true).unwrap();
        assert!(log.sync().is_err() && env.is_dead());
        assert!(log.store(0, &[1; 32]).is_err());
        assert_eq!(env.kill().file_bytes(path("log")).unwrap(), vec![0; 4096], "seed {seed}");
    }
}

#[test]
fn a_failed_sync_may_have_written_some_pages() {
    let mut seen = BTreeSet::new();
    for seed in 0..50 {
        let env = settled();
        let log = env.open_log(path("/db/log"), Some(3 * 4096), false).unwrap();
        log.sync().unwrap();
        env.sync_dir(path("/db")).unwrap();
        log.write(0, &[1; 3 * 4096]).unwrap();
        env.fail_sync(0, SyncFailure::KeepSome(seed));
        assert!(log.sync().is_err());
        log.sync().unwrap();
        let image = env.crash(&CrashMode::KeepAll, 0).file_bytes(path("/db/log")).unwrap();
        seen.insert(image.chunks(4096).map(|page| page[0]).collect::<Vec<u8>>());
        assert!(env.file_bytes(path("/db/log")).unwrap().iter().all(|&byte| byte == 1), "the page cache has all of it");
    }
    assert_eq!(seen.len(), 8, "every choice of the three pages");
}

#[test]
fn a_failed_sync_of_a_directory_may_drop_names_for_good() {
    let env = settled();
    put(&env, "/db/new", b"1", true);
    env.fail_sync_dir(0, SyncFailure::DropPending);
    assert!(env.sync_dir(path("/db")).is_err());
    assert!(env.exists(path("/db/new")).unwrap(), "the running system still shows it");
    env.sync_dir(path("/db")).unwrap();
    assert_eq!(bytes(&env.crash(&CrashMode::KeepAll, 0), "/db/new"), None);
}

#[test]
fn a_growing_file_is_never_made_over_another() {
    let env = settled();
    assert!(env.create_growing(path("/db/a")).is_err());
    assert_eq!(bytes(&env, "/db/a").as_deref(), Some("aaaa"));
}

#[test]
fn damage_shows_on_the_disk_in_the_cache_and_in_mappings() {
    let env = settled();
    env.map_files();
    let file = env.open(path("/db/a")).unwrap();
    let before = file.mapping().unwrap();
    assert!(env.flip_bit(path("/db/a"), 1, 0));
    env.misdirect(path("/db/a"), 3, b"zz");
    assert_eq!((before, file.mapping().unwrap()), (&b"aaaa"[..], &b"a`az"[..]));
    assert_eq!((bytes(&env, "/db/a").as_deref(), lost(&env, "/db/a").as_deref()), (Some("a`az"), Some("a`az")));
}

#[test]
fn torn_neighbours_are_those_of_what_was_written() {
    let env = MemEnv::new();
    env.set_file_bytes(path("log"), vec![7; 3 * 4096]);
    env.open_log(path("log"), None, false).unwrap().write(4096 + 600, &[8; 8]).unwrap();
    for (unit, range) in [(512, 4096 + 512..4096 + 1024), (4096, 4096..8192)] {
        let mut torn = 0;
        for seed in 0..50 {
            let image = env.crash(&CrashMode::TornNeighbours(unit), seed).file_bytes(path("log")).unwrap();
            assert!((0..image.len()).all(|at| range.contains(&at) || image[at] == 7));
            torn += u32::from(image[range.start] != 7);
        }
        assert!(torn > 10);
    }
}

/// A log whose three sectors were written at different times, and its bytes by sector.
fn remembering_log() -> (MemEnv, Arc<dyn crate::env::LogFile>) {
    let env = MemEnv::new();
    env.remember_sectors();
    let log = env.open_log(path("log"), Some(3 * 512), true).unwrap();
    env.sync_dir(path("")).unwrap();
    log.write(0, &[1; 3 * 512]).unwrap();
    log.sync().unwrap();
    log.write(100, &[2; 10]).unwrap();
    log.write(110, &[3; 10]).unwrap();
    log.sync_range(0, 512).unwrap();
    (env, log)
}

#[test]
fn a_lost_write_leaves_what_the_sector_held_before_it() {
    let (env, _log) = remembering_log();
    let lost = |offset: u64, unit: u64| {
        let env = env.kill();
        let changed = env.lose_write(path("log"), offset, unit);
        (changed, env.crash(&CrashMode::LoseAll, 0).file_bytes(path("log")).unwrap())
    };
    assert_eq!(lost(100, 512), (true, vec![1; 3 * 512]), "both writes of one sync");
    let (changed, second) = lost(512, 512);
    assert!(changed && second[512..1024] == [0; 512] && second[1024..] == [1; 512] && second[100] == 2);
    assert_eq!(lost(600, 4096), (true, vec![1; 3 * 512]), "the page was last written with its first sector");
    assert!(!MemEnv::new().lose_write(path("log"), 0, 512));
    env.set_file_bytes(path("unknown"), vec![1; 512]);
    assert!(!env.lose_write(path("unknown"), 0, 512));
}

#[test]
fn a_lost_write_that_was_pending_leaves_the_durable_bytes() {
    let (env, log) = remembering_log();
    log.write(512, &[4; 512]).unwrap();
    let killed = env.kill();
    assert!(killed.lose_write(path("log"), 512, 512));
    let expected = env.crash(&CrashMode::LoseAll, 0).file_bytes(path("log"));
    assert_eq!(killed.file_bytes(path("log")), expected);
    assert_eq!(killed.crash(&CrashMode::KeepAll, 0).file_bytes(path("log")), expected, "and no later write brings it");
    // A power loss that the write survives leaves it as the last one.
    let after = env.crash(&CrashMode::KeepAll, 0);
    assert!(after.file_bytes(path("log")).unwrap()[512..1024] == [4; 512]);
    assert!(after.lose_write(path("log"), 512, 512));
    assert_eq!(after.file_bytes(path("log")), expected);
}
