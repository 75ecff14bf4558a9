//! How far an import is, kept in the database in the same write as the pairs: each batch is there
//! with its marker or not at all.

use crate::failure::Failure;
use crate::text::Form;
use esker::{Batch, Db, Keyspace};
use serde_json::{Value, json};

/// The keyspace of markers: the key is the name of the keyspace that is imported into. It is there
/// while an import is not complete.
const MARKERS: &str = "import progress";

/// Refuses the keyspace of markers itself.
pub fn refuse_markers(keyspace: &str) -> Result<(), Failure> {
    match keyspace {
        MARKERS => Err(Failure::Usage(format!(
            "keyspace {MARKERS:?} says how far imports are; import into another one, named with --keyspace"
        ))),
        _ => Ok(()),
    }
}

/// The marker of one import.
pub struct Marker {
    markers: Keyspace,
    name: String,
    source: String,
    /// How many pairs are written.
    pub pairs: u64,
    /// The last key that is written.
    pub last: Option<Vec<u8>>,
}

impl Marker {
    /// That of an earlier run of the same import, or a new one for an empty keyspace.
    pub fn find(db: &Db, keyspace: &Keyspace, source: String) -> Result<Marker, Failure> {
        let name = keyspace.name().to_string();
        let is_there = db.keyspaces().iter().any(|name| name == MARKERS);
        let kept = if is_there { db.existing_keyspace(MARKERS)?.get(&name)? } else { None };
        if kept.is_none() && keyspace.first()?.is_some() {
            let what = format!("keyspace {name:?} holds something already");
            return Err(Failure::Operation(format!("{what}; import into another one, named with --keyspace")));
        }
        let markers = db.keyspace(MARKERS, Default::default())?;
        let mut marker = Marker { markers, name, source, pairs: 0, last: None };
        if let Some(kept) = kept {
            marker.read(&kept)?;
        }
        Ok(marker)
    }

    fn read(&mut self, kept: &[u8]) -> Result<(), Failure> {
        let unreadable = || {
            let what = format!("what keyspace {MARKERS:?} holds of an import into {:?} cannot be read", self.name);
            Failure::Operation(format!("{what}; import into another keyspace"))
        };
        let kept: Value = serde_json::from_slice(kept).map_err(|_| unreadable())?;
        let text = |part: &str| kept[part].as_str().ok_or_else(unreadable);
        let source = text("source")?;
        if source != self.source {
            let what = format!("keyspace {:?} holds the beginning of an import from {source}", self.name);
            return Err(Failure::Operation(format!("{what}; go on with that one, or import into another keyspace")));
        }
        self.pairs = kept["pairs"].as_u64().ok_or_else(unreadable)?;
        self.last = Some(Form::Hex.decode(text("last")?.as_bytes()).map_err(|_| unreadable())?);
        Ok(())
    }

    /// Adds the marker to the batch that brings it up to `last`.
    pub fn put(&self, batch: &mut Batch) -> Result<(), Failure> {
        let last = Form::Hex.encode(self.last.as_deref().unwrap_or_default());
        let kept = json!({ "source": self.source, "pairs": self.pairs, "last": last });
        Ok(batch.put(&self.markers, &self.name, kept.to_string())?)
    }

    /// Removes it: the import is complete and verified. The keyspace goes with the last one.
    pub fn forget(&self, db: &Db) -> Result<(), Failure> {
        self.markers.delete(&self.name)?;
        if self.markers.first()?.is_none() {
            db.drop_keyspace(MARKERS)?;
        }
        Ok(())
    }
}
