//! Any byte of any object changes.

use super::world::{World, contents, quick, read};
use crate::verify::verify;
use crate::{Error, Prune};
use futures_util::TryStreamExt;
use object_store::memory::InMemory;
use object_store::{ObjectStore, ObjectStoreExt, PutPayload};
use std::sync::Arc;
use std::time::Duration;

/// A target with backups 2 (version 2) and 4 (version 3) behind a prune, 3.
fn target(world: &World) -> Arc<InMemory> {
    let inner = Arc::new(InMemory::new());
    for version in [1, 2] {
        world.create(&*inner, version, &quick()).unwrap();
    }
    world.prune(&*inner, &Prune::default().keep_last(1).grace(Duration::ZERO), &quick()).unwrap();
    world.create(&*inner, 3, &quick()).unwrap();
    assert_eq!(world.existing(&*inner).into_iter().collect::<Vec<_>>(), [(2, 2), (4, 3)]);
    inner
}

#[test]
fn any_changed_byte_is_reported_and_never_restored() {
    let world = World::new();
    let inner = target(&world);
    let objects: Vec<_> = world.runtime.block_on(inner.list(None).try_collect()).unwrap();
    let (mut changes, mut restores) = (0_u64, 0);
    for meta in objects {
        let bytes = world.runtime.block_on(async { inner.get(&meta.location).await.unwrap().bytes().await.unwrap() });
        for at in 0..=bytes.len() {
            // Behind the last byte: one byte is lost.
            let mut changed = bytes.to_vec();
            match changed.get_mut(at) {
                Some(byte) => *byte ^= 1 << (changes % 8),
                None => _ = changed.pop(),
            }
            if changed == bytes {
                continue;
            }
            changes += 1;
            world.runtime.block_on(inner.put(&meta.location, PutPayload::from(changed))).unwrap();
            let what = format!("{} at {at}", meta.location);
            let found = world.on(&*inner, &quick(), async |store| verify(store, None).await);
            match found {
                Ok(report) => assert!(!report.damage.is_empty(), "{what}: verify finds nothing"),
                Err(error) => {
                    assert!(matches!(error, Error::Damaged { .. } | Error::Unsupported { .. }), "{what}: {error}")
                }
            }
            // A restore takes a dozen syncs.
            if changes % 11 != 0 {
                continue;
            }
            restores += 1;
            let mut restored = 0;
            for (number, version) in [(2, 2), (4, 3)] {
                let directory = world.new_directory();
                match world.restore(&*inner, Some(number), &directory) {
                    // What is damaged is not of this backup.
                    Ok(_) => {
                        assert_eq!(read(&directory), contents(version), "{what}: backup {number}");
                        restored += 1;
                        std::fs::remove_dir_all(&directory).unwrap();
                    }
                    Err(error) => {
                        assert!(matches!(error, Error::Damaged { .. } | Error::Unsupported { .. }), "{what}: {error}");
                        assert!(!directory.join("CURRENT").exists(), "{what}");
                    }
                }
            }
            assert!(restored < 2 || meta.location.as_ref().ends_with("log/0000000003"), "{what}: all was restored");
            // Nothing is removed on the word of a damaged record.
            if let Err(error) = world.prune(&*inner, &Prune::default().dry_run(true), &quick()) {
                assert!(matches!(error, Error::Damaged { .. } | Error::Unsupported { .. }), "{what}: {error}");
            }
        }
        world.runtime.block_on(inner.put(&meta.location, bytes.into())).unwrap();
    }
    assert!(changes > 1000 && restores > 100, "only {changes} changes were tried, and {restores} restores");
    world.check_whole(&*inner);
}

#[test]
fn a_missing_object_is_reported_and_copied_again_by_the_next_backup() {
    let world = World::new();
    let inner = target(&world);
    let objects: Vec<_> = world.runtime.block_on(inner.list(None).try_collect()).unwrap();
    let is_content = |meta: &&object_store::ObjectMeta| meta.location.as_ref().contains("/objects/");
    for meta in objects.iter().filter(is_content) {
        let inner = target(&world);
        let names: Vec<_> = world.runtime.block_on(inner.list(None).try_collect()).unwrap();
        // Another target, where the same content has another upload.
        let hash = meta.location.filename().unwrap().split('-').next().unwrap();
        let place = names.iter().find(|name| name.location.as_ref().contains(hash)).unwrap();
        world.runtime.block_on(inner.delete(&place.location)).unwrap();
        let report = world.on(&*inner, &quick(), async |store| verify(store, None).await).unwrap();
        assert_eq!(report.damage.len(), 1);
        assert!(report.damage[0].what.contains("missing"));
        for version in [2, 3] {
            let number = world.create(&*inner, version, &quick()).unwrap();
            let report = world.on(&*inner, &quick(), async |store| verify(store, Some(number)).await).unwrap();
            assert_eq!(report.damage, []);
        }
    }
}

#[test]
fn a_backup_whose_record_is_damaged_or_gone_can_be_removed() {
    let world = World::new();
    for gone in [false, true] {
        let inner = target(&world);
        let record = object_store::path::Path::from("some/where/log/0000000002");
        match gone {
            false => _ = world.runtime.block_on(inner.put(&record, "rubbish".into())).unwrap(),
            true => world.runtime.block_on(inner.delete(&record)).unwrap(),
        }
        let report = world.on(&*inner, &quick(), async |store| verify(store, None).await).unwrap();
        assert_eq!(report.damage.iter().map(|damage| &*damage.backups).collect::<Vec<_>>(), [&[2]]);
        let newest = world.create(&*inner, 5, &quick()).unwrap();
        let refused = world.prune(&*inner, &Prune::default(), &quick());
        assert!(matches!(refused, Err(Error::Damaged { .. })), "{refused:?}");
        world.prune(&*inner, &Prune::default().backup(2), &quick()).unwrap();
        assert_eq!(world.existing(&*inner).into_iter().collect::<Vec<_>>(), [(4, 3), (newest, 5)]);
        world.check_whole(&*inner);
        world.check_clean(&inner);
    }
}

#[test]
fn a_listing_without_a_record_is_not_taken_for_the_log() {
    let world = World::new();
    let inner = target(&world);
    assert_eq!(world.create(&*inner, 5, &quick()).unwrap(), 5);
    let record = object_store::path::Path::from("some/where/log/0000000004");
    world.runtime.block_on(inner.delete(&record)).unwrap();
    // The missing one may be a prune: what exists is not known.
    let refused = world.create(&*inner, 6, &quick());
    assert!(matches!(refused, Err(Error::Damaged { .. })), "{refused:?}");
    let directory = world.new_directory();
    world.restore(&*inner, Some(5), &directory).unwrap();
    assert_eq!(read(&directory), contents(5));
}
