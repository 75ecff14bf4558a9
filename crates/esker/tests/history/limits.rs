//! The smallest and the longest keys and values.

use crate::common::{Scratch, keyspace};
use esker::{Db, Error, Options};

const LONGEST_KEY: usize = 1 << 20;

/// The empty key is a key, the empty value a value; both limits hold exactly, in memory, in the log
/// and in tables.
#[test]
fn keys_and_values_of_extreme_lengths_come_back() {
    let scratch = Scratch::new("limits");
    let options = || Options::default().write_buffer_bytes(1 << 20).wal_segment_bytes(1 << 20);
    let pairs = [
        (Vec::new(), vec![1; 5]),
        (vec![0], Vec::new()),
        (vec![255; LONGEST_KEY], vec![2; 10]),
        (b"long".to_vec(), vec![3; 10 << 20]),
    ];
    for closed in [true, false] {
        let db = Db::open(scratch.path(), options()).unwrap();
        let k = keyspace(&db, "k");
        for (key, value) in &pairs {
            k.put(key, value).unwrap();
        }
        let longer = vec![0; LONGEST_KEY + 1];
        assert!(matches!(k.put(&longer, "v"), Err(Error::InvalidArgument { .. })));
        assert!(matches!(db.batch().put(&k, &longer, "v"), Err(Error::InvalidArgument { .. })));
        let check = |k: &esker::Keyspace| {
            for (key, value) in &pairs {
                assert!(k.get(key).unwrap().as_deref() == Some(value), "key of {} bytes", key.len());
            }
            let lengths: Vec<(usize, usize)> = k.iter().map(|p| p.unwrap()).map(|(k, v)| (k.len(), v.len())).collect();
            assert_eq!(lengths, [(0, 5), (1, 0), (4, 10 << 20), (LONGEST_KEY, 10)]);
        };
        check(&k);
        drop(k);
        if closed {
            db.close().unwrap()
        } else {
            drop(db)
        }
        let db = Db::open(scratch.path(), options()).unwrap();
        check(&keyspace(&db, "k"));
        db.compact().unwrap();
        check(&keyspace(&db, "k"));
    }
}
