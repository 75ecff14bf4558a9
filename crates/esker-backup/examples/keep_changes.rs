//! Has a database keep its changes from now on, which a restore can go on with, and prints the
//! number of its last write.
//!
//!     cargo run --package esker-backup --example keep_changes DIRECTORY

use esker::{ChangeRetention, Db, Options};
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let directory = std::env::args_os().nth(1).ok_or("usage: keep_changes DIRECTORY")?;
    // Once set, it holds for those too that open the database with `ChangeRetention::AsBefore`, as
    // the command does.
    let db = Db::open(directory, Options::default().keep_changes(ChangeRetention::Bytes(1 << 30)))?;
    println!("{}", db.snapshot().sequence());
    db.close()?;
    Ok(())
}
