//! `esker scan`: prints keys and values in order.

use crate::arguments::{DatabaseArguments, KeyArguments, ValueType};
use crate::expiry;
use crate::failure::Failure;
use crate::open;
use crate::output::Output;
use crate::record::{self, Shown};
use crate::settings::BYTEWISE;
use crate::text::Form;
use esker::{Iter, Keyspace, Slice, Snapshot};
use std::ffi::OsString;
use std::ops::Bound;

const EXAMPLES: &str = "\
Examples:
  esker scan --db data --prefix user: --limit 10
  esker scan --db data --from a --to b --reverse --keys-only
  esker scan --db data --keyspace hits --as u64 --json
  esker scan --db data --keyspace sessions --show-ttl
  esker scan --db data --count

Text lines are KEY<TAB>VALUE, with --json one object a line. All bounds given must hold.";

/// Start and end of a range of keys.
type KeyRange = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// Print keys and values in key order; opens read-only
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Scan {
    #[command(flatten)]
    database: DatabaseArguments,
    #[command(flatten)]
    key_arguments: KeyArguments,
    /// Only keys that begin so
    #[arg(long, value_name = "KEY", allow_negative_numbers = true)]
    prefix: Option<OsString>,
    /// The first key (inclusive)
    #[arg(long, value_name = "KEY", allow_negative_numbers = true)]
    from: Option<OsString>,
    /// The end (exclusive)
    #[arg(long, value_name = "KEY", allow_negative_numbers = true)]
    to: Option<OsString>,
    /// From the last key to the first
    #[arg(long)]
    reverse: bool,
    /// Stop after so many keys
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    limit: Option<u64>,
    /// Leave out the values
    #[arg(long)]
    keys_only: bool,
    /// Print only how many keys there are
    #[arg(long, conflicts_with_all = ["keys_only", "value_type", "show_ttl"])]
    count: bool,
    /// Show how long each value lives, behind another tab: the time that is left, or never
    #[arg(long)]
    show_ttl: bool,
    /// Show values as numbers
    #[arg(long = "as", value_name = "TYPE", conflicts_with = "keys_only")]
    value_type: Option<ValueType>,
}

impl Scan {
    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        let wanted = self.wanted()?;
        let db = open::read_only(&self.database.db)?;
        let keyspace = db.existing_keyspace(&self.key_arguments.keyspace)?;
        let mut output = Output::standard();
        let mut count = 0;
        // Values and expiries of one moment.
        let snapshot = db.snapshot();
        let entries = match keyspace.comparator() {
            BYTEWISE => wanted.bounds()?.map(|bounds| snapshot.range(&keyspace, bounds)),
            _ => Some(wanted.in_its_order(&snapshot, &keyspace)?),
        };
        if let Some(entries) = entries {
            let seen = (&snapshot, &keyspace);
            let without_value = |key: esker::Result<Slice>| key.map(|key| (key, Slice::copy(b"")));
            count = match (self.reverse, self.keys_only || self.count) {
                (true, false) => self.print(entries.rev(), seen, &mut output)?,
                (false, false) => self.print(entries, seen, &mut output)?,
                (true, true) => self.print(entries.keys().rev().map(without_value), seen, &mut output)?,
                (false, true) => self.print(entries.keys().map(without_value), seen, &mut output)?,
            };
        }
        if self.count {
            output.line(&if self.database.json { format!(r#"{{"count":{count}}}"#) } else { count.to_string() })?;
        }
        output.finish()
    }

    /// Prints, or only counts, at most as many entries as requested.
    fn print<I>(&self, entries: I, seen: (&Snapshot, &Keyspace), output: &mut Output) -> Result<u64, Failure>
    where
        I: Iterator<Item = esker::Result<(Slice, Slice)>>,
    {
        let form = self.key_arguments.form();
        let limit = self.limit.unwrap_or(u64::MAX);
        let mut count = 0;
        let mut line = String::new();
        // The limit is tested before an entry is fetched: an error behind it does not concern us.
        let mut entries = entries;
        while count < limit {
            let Some(entry) = entries.next() else { break };
            let (key, value) = entry?;
            count += 1;
            if !self.count {
                line.clear();
                self.write_line(&mut line, key.as_ref(), value.as_ref(), form)?;
                if self.show_ttl
                    && let Some(expiry) = seen.0.expires_at(seen.1, &key)?
                {
                    expiry::append(&mut line, expiry, self.database.json);
                }
                output.line(&line)?;
            }
        }
        Ok(count)
    }

    fn write_line(&self, line: &mut String, key: &[u8], value: &[u8], form: Form) -> Result<(), Failure> {
        let value = match (self.keys_only, self.value_type) {
            (true, _) => None,
            (false, Some(number)) => Some(Shown::Number(number.number_of(key, value)?)),
            (false, None) => Some(Shown::Bytes(value)),
        };
        if self.database.json {
            record::write_json(line, None, key, value, form);
        } else {
            record::write_tsv(line, key, value, form);
        }
        Ok(())
    }

    fn wanted(&self) -> Result<Wanted, Failure> {
        let decode = |what, text: &Option<OsString>| -> Result<Option<Vec<u8>>, Failure> {
            text.as_ref().map(|text| self.key_arguments.decode(what, text)).transpose()
        };
        let prefix = decode("prefix", &self.prefix)?;
        Ok(Wanted { prefix, from: decode("--from", &self.from)?, to: decode("--to", &self.to)? })
    }
}

/// What keys are to be scanned.
struct Wanted {
    prefix: Option<Vec<u8>>,
    from: Option<Vec<u8>>,
    to: Option<Vec<u8>>,
}

impl Wanted {
    /// The keys for which prefix, start and end all hold; None if there can be none.
    fn bounds(self) -> Result<Option<KeyRange>, Failure> {
        let Wanted { prefix, from, to } = self;
        if let (Some(from), Some(to)) = (&from, &to)
            && from > to
        {
            return Err(Failure::Usage("--from is above --to; exchange them (--reverse only turns the order)".into()));
        }
        let start = prefix.clone().max(from).unwrap_or_default();
        let end = match (prefix.as_deref().and_then(after_prefix), to) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        match end {
            Some(end) if start >= end => Ok(None),
            Some(end) => Ok(Some((Bound::Included(start), Bound::Excluded(end)))),
            None => Ok(Some((Bound::Included(start), Bound::Unbounded))),
        }
    }

    /// The keys of a keyspace with an order of its own, which start and end are in.
    fn in_its_order(self, snapshot: &Snapshot, keyspace: &Keyspace) -> Result<Iter, Failure> {
        match self {
            Wanted { prefix: Some(prefix), from: None, to: None } => Ok(snapshot.prefix(keyspace, prefix)),
            Wanted { prefix: Some(_), .. } => Err(Failure::Usage(format!(
                "in the order {:?} of the keyspace, a prefix goes without --from and --to",
                keyspace.comparator()
            ))),
            Wanted { prefix: None, from, to } => {
                let start = from.map_or(Bound::Unbounded, Bound::Included);
                Ok(snapshot.range(keyspace, (start, to.map_or(Bound::Unbounded, Bound::Excluded))))
            }
        }
    }
}

/// The smallest key above all keys with that prefix; None if there is none.
fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&byte| byte != 0xff)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::after_prefix;

    #[test]
    fn the_end_of_a_prefix() {
        assert_eq!(after_prefix(b"ab"), Some(b"ac".to_vec()));
        assert_eq!(after_prefix(b"a\xff\xff"), Some(b"b".to_vec()));
        assert_eq!(after_prefix(b"\xff\xff"), None);
        assert_eq!(after_prefix(b""), None);
    }
}
