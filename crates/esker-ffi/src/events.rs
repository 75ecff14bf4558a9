//! Events of a database as a name and a text, for listeners in other languages.

use esker::{CompactionCompleted, EventListener, FlushCompleted, IngestCompleted, TableCreated};
use std::path::Path;
use std::time::Duration;

/// A listener that passes the name of each event to a function, with what there is to say about it.
///
/// ```
/// use esker_ffi::events::NamedEvents;
/// use std::sync::Arc;
/// let listener = NamedEvents(|name: &str, text: String| println!("{name}: {text}"));
/// let options = esker::Options::default().event_listener(Arc::new(listener));
/// ```
pub struct NamedEvents<F>(pub F);

impl<F: Fn(&str, String) + Send + Sync> EventListener for NamedEvents<F> {
    fn flush_completed(&self, event: &FlushCompleted) {
        self.0("flush completed", format!("{}: {} tables, {} bytes", event.keyspace, event.tables, event.bytes));
    }

    fn compaction_completed(&self, event: &CompactionCompleted) {
        let (input, output) = (event.input_bytes, event.output_bytes);
        self.0("compaction completed", format!("{}: {input} bytes became {output}", event.keyspace));
    }

    fn ingest_completed(&self, event: &IngestCompleted) {
        self.0("ingest completed", format!("{}: {} pairs", event.keyspace, event.entries));
    }

    fn table_created(&self, event: &TableCreated) {
        self.0("table created", event.path.display().to_string());
    }

    fn table_removed(&self, path: &Path) {
        self.0("table removed", path.display().to_string());
    }

    fn stall_began(&self, keyspace: &str, reason: &str) {
        self.0("stall began", format!("{keyspace}: {reason}"));
    }

    fn stall_ended(&self, keyspace: &str, waited: Duration) {
        self.0("stall ended", format!("{keyspace}: {} us", waited.as_micros()));
    }

    fn background_error(&self, error: &str) {
        self.0("background error", error.to_owned());
    }

    fn recovered(&self) {
        self.0("recovered", String::new());
    }

    fn became_read_only(&self, reason: &str) {
        self.0("became read-only", reason.to_owned());
    }

    fn missed(&self, events: u64) {
        self.0("missed", events.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn events_have_names() {
        let told = Mutex::new(Vec::new());
        let listener = NamedEvents(|name: &str, text: String| told.lock().unwrap().push(format!("{name}: {text}")));
        listener.table_removed(Path::new("db/7.table"));
        listener.stall_began("default", "too many runs");
        listener.stall_ended("default", Duration::from_micros(7));
        listener.background_error("no space");
        listener.recovered();
        listener.became_read_only("the log failed");
        listener.missed(3);
        let expected = [
            "table removed: db/7.table",
            "stall began: default: too many runs",
            "stall ended: default: 7 us",
            "background error: no space",
            "recovered: ",
            "became read-only: the log failed",
            "missed: 3",
        ];
        assert_eq!(told.into_inner().unwrap(), expected);
    }
}
