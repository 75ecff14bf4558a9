//! Creating and opening keyspaces.

use crate::base::expiry::Ttl;
use crate::base::key_order::KeyOrder;
use crate::compaction_filter::CompactionFilter;
use crate::db::background::rotate::rotate;
use crate::db::background::{commit_version_edit, run};
use crate::db::lifecycle::guarded_callbacks;
use crate::db::state::inner::{Inner, KeyspaceInner, KeyspaceWriter};
use crate::db::state::memory;
use crate::db::state::read_state::ReadState;
use crate::db::state::write_throttle::WriteThrottle;
use crate::error::{Error, Result};
use crate::merge_operator::chain::LONG_CHAIN;
use crate::merge_operator::{MergeOperator, UINT64_ADD, built_in, contained, is_impostor};
use crate::options::{CompactionStyle, KeyspaceOptions};
use crate::version::edit::{Change, KeyspaceRecord, MAX_KEYSPACE_ID, MAX_KEYSPACES};
use std::sync::Arc;

/// The longest name, in bytes.
const MAX_NAME_BYTES: usize = 255;
/// The longest name of an operator, in bytes: that of `stringappend` spells its delimiter.
const MAX_OPERATOR_NAME_BYTES: usize = 1024;

/// Opens the keyspace, creating it if it is missing.
pub fn open_or_create(inner: &Inner, name: &str, options: KeyspaceOptions) -> Result<Arc<KeyspaceInner>> {
    inner.refuse_in_callback()?;
    check_style(&options)?;
    let guard = |operator| Named::new(operator, inner);
    let operator = options.merge_operator.clone().map(guard).transpose()?;
    let order = options.comparator.clone().map(|given| inner.options.comparators.order_for(given)).transpose()?;
    let filter = |filter| guarded_callbacks::filter(inner.number, filter);
    let options = KeyspaceOptions { compaction_filter: options.compaction_filter.map(filter), ..options };
    if let Some(found) = find(inner, name) {
        let found = check(inner, found, options.ttl, operator, order)?;
        return set_compaction(inner, found, options.compaction_style, options.compaction_filter);
    }
    check_name(name)?;
    inner.error_state.check()?;
    let changes = inner.keyspace_changes.lock();
    inner.error_state.check()?;
    if let Some(found) = find(inner, name) {
        drop(changes);
        let found = check(inner, found, options.ttl, operator, order)?;
        return set_compaction(inner, found, options.compaction_style, options.compaction_filter);
    }
    let created = create(inner, name, operator, order.unwrap_or_default(), &options)?;
    if let Some(filter) = options.compaction_filter {
        created.compaction.set_filter(guarded_callbacks::filter_of(&created.order, filter));
    }
    Ok(created)
}

/// Refuses what is no name of a keyspace.
pub(super) fn check_name(name: &str) -> Result<()> {
    if name.is_empty() || name.len() > MAX_NAME_BYTES || name.chars().any(char::is_control) {
        let what = format!("keyspace name {name:?}: use 1 to {MAX_NAME_BYTES} bytes without control characters");
        return Err(Error::invalid(what));
    }
    Ok(())
}

fn check_style(options: &KeyspaceOptions) -> Result<()> {
    match options.compaction_style {
        Some(CompactionStyle::Fifo { max_bytes: 0 }) => {
            Err(Error::invalid("CompactionStyle::Fifo with max_bytes 0 would keep nothing; use at least 1"))
        }
        _ => Ok(()),
    }
}

/// Takes over how an existing keyspace is to be compacted from now on.
fn set_compaction(
    inner: &Inner,
    keyspace: Arc<KeyspaceInner>,
    style: Option<CompactionStyle>,
    filter: Option<Arc<dyn CompactionFilter>>,
) -> Result<Arc<KeyspaceInner>> {
    if let Some(filter) = filter {
        keyspace.compaction.set_filter(guarded_callbacks::filter_of(&keyspace.order, filter));
    }
    if let Some(style) = style.filter(|style| *style != keyspace.compaction.style()) {
        // Not in the middle of a job.
        let _jobs = inner.jobs.lock();
        let _changes = inner.keyspace_changes.lock();
        keyspace.check_exists()?;
        // A read-only handle compacts nothing.
        if inner.log.is_some() {
            // A manifest of its own: nothing else would tell that the last edit was lost, and an
            // earlier style may drop tables.
            commit_version_edit::renew_manifest(inner, &[Change::style(keyspace.id, style)])?;
            keyspace.compaction.set_style(style);
        }
        inner.wake();
    }
    Ok(keyspace)
}

/// An operator with its name, which is read once and outside any lock: it is the user's code.
pub(super) struct Named {
    operator: Arc<dyn MergeOperator>,
    pub(super) name: String,
}

impl Named {
    pub(super) fn new(operator: Arc<dyn MergeOperator>, inner: &Inner) -> Result<Named> {
        let name = contained::name(&*operator)
            .map_err(|why| Error::invalid(format!("the merge operator does not tell its name: {why}")))?;
        if is_impostor(&*operator, &name) {
            let what = format!("the merge operator {name:?} has the name of a built-in one; give it another name");
            return Err(Error::invalid(what));
        }
        Ok(Named { operator: guarded_callbacks::operator(inner.number, operator, &name), name })
    }

    /// The operator for keys in this order.
    pub(super) fn for_keys(&self, order: &KeyOrder) -> Arc<dyn MergeOperator> {
        guarded_callbacks::operator_of(order, Arc::clone(&self.operator), &self.name)
    }

    /// Refuses a name that a manifest cannot have.
    pub(super) fn check(&self) -> Result<()> {
        let name = &self.name;
        if name.is_empty() || name.len() > MAX_OPERATOR_NAME_BYTES || name.chars().any(char::is_control) {
            return Err(Error::invalid(format!(
                "operator name {name:?}: use 1 to {MAX_OPERATOR_NAME_BYTES} bytes without control characters"
            )));
        }
        Ok(())
    }
}

fn create(
    inner: &Inner,
    name: &str,
    operator: Option<Named>,
    order: KeyOrder,
    options: &KeyspaceOptions,
) -> Result<Arc<KeyspaceInner>> {
    let ttl = options.ttl.unwrap_or_default().to_stored()?;
    let style = options.compaction_style.unwrap_or_default();
    let manifest = inner.manifest.lock();
    let Some(current) = &*manifest else { return Err(Error::ReadOnly { why: "it was opened read-only".into() }) };
    let id = current.state().next_keyspace.max(1);
    if current.state().keyspaces.len() as u64 + 1 >= MAX_KEYSPACES {
        return Err(Error::invalid(format!("a database has at most {} keyspaces", MAX_KEYSPACES - 1)));
    }
    if id >= MAX_KEYSPACE_ID {
        let most = MAX_KEYSPACE_ID - 1;
        return Err(Error::invalid(format!(
            "at most {most} keyspaces are created in the life of a database, dropped ones included; copy it to a new one"
        )));
    }
    operator.iter().try_for_each(Named::check)?;
    let (operator, operator_name) = operator.map(|named| (named.for_keys(&order), named.name)).unzip();
    let change = Change::Keyspace {
        id,
        name: name.to_owned(),
        comparator: order.name().to_owned(),
        operator: operator_name.clone(),
        ttl,
    };
    drop(manifest);
    commit_version_edit::try_renew_manifest(inner, &[change, Change::style(id, style)])?;

    let (active, memtable) = memory::new_memtable(&order, &inner.options, 0, 0, &inner.memory);
    let read_state = ReadState::of_memtable(active);
    let keyspace =
        Arc::new(KeyspaceInner::new(id, name.to_owned(), order, operator_name, ttl, operator.clone(), read_state));
    keyspace.compaction.set_style(style);
    add(inner, &keyspace, memtable, operator);
    memory::rebalance(inner);
    Ok(keyspace)
}

/// Makes a keyspace known to readers and to the writer.
pub fn add(
    inner: &Inner,
    keyspace: &Arc<KeyspaceInner>,
    memtable: crate::memtable::MemtableWriter,
    operator: Option<Arc<dyn MergeOperator>>,
) {
    let mut writer = inner.writer.lock();
    writer.entries_may_expire |= keyspace.ttl().is_enabled();
    let at = keyspace.id as usize;
    if writer.keyspaces.len() <= at {
        writer.keyspaces.resize_with(at + 1, || None);
    }
    let adds_uint64 = keyspace.has_operator_named(UINT64_ADD);
    let throttle = WriteThrottle::unlimited(inner.options.write_buffer_bytes);
    writer.keyspaces[at] =
        Some(Box::new(KeyspaceWriter { keyspace: Arc::clone(keyspace), memtable, operator, adds_uint64, throttle }));
    drop(writer);
    inner.keyspaces.write().insert(keyspace.name().to_string(), Arc::clone(keyspace));
}

/// The keyspace of that name.
pub fn find(inner: &Inner, name: &str) -> Option<Arc<KeyspaceInner>> {
    inner.keyspaces.read().get(name).cloned()
}

/// The operator of a stored keyspace, if it is built in.
pub fn stored_operator(record: &KeyspaceRecord) -> Option<Arc<dyn MergeOperator>> {
    built_in(record.operator.as_deref()?)
}

/// Whether a keyspace that exists may be opened with these options; supplies the operator if it was
/// missing.
fn check(
    inner: &Inner,
    keyspace: Arc<KeyspaceInner>,
    ttl: Option<Ttl>,
    operator: Option<Named>,
    order: Option<KeyOrder>,
) -> Result<Arc<KeyspaceInner>> {
    if let Some(order) = order.filter(|order| *order != keyspace.order) {
        return Err(Error::invalid(format!(
            "keyspace {:?} was created with comparator {:?}, it was opened with {:?}; open it with the first",
            keyspace.name(),
            keyspace.order.name(),
            order.name()
        )));
    }
    if let Some(ttl) = ttl
        && ttl.to_stored()? != keyspace.ttl().to_stored()?
    {
        return Err(Error::invalid(format!(
            "keyspace {:?} was created with ttl {:?}, it was opened with {ttl:?}; open it with the first, or \
             change it with Keyspace::set_ttl",
            keyspace.name(),
            keyspace.ttl()
        )));
    }
    let Some(named) = operator else { return Ok(keyspace) };
    check_operator(&keyspace, &named.name)?;
    if keyspace.operator().is_none() && attach(inner, &keyspace, &named)? {
        // The operator is supplied, whatever becomes of the work that is due now.
        let _ = run::work_was_added(inner);
    }
    Ok(keyspace)
}

/// Refuses an operator of another name than the keyspace has.
fn check_operator(keyspace: &KeyspaceInner, name: &str) -> Result<()> {
    if keyspace.has_operator_named(name) {
        return Ok(());
    }
    let stored = keyspace.operator_name();
    let stored = stored.as_deref().unwrap_or("none");
    Err(Error::invalid(format!(
        "keyspace {:?} was created with merge operator {stored:?}, it was opened with {name:?}; open it with the first, \
         or change it with Keyspace::set_merge_operator",
        keyspace.name(),
    )))
}

/// Supplies the operator of a keyspace that was opened without it. Whether there is work for the
/// background thread then.
///
/// # Errors
/// `InvalidArgument`, if it is not the keyspace's operator, or is not any more.
pub(super) fn attach(inner: &Inner, keyspace: &KeyspaceInner, named: &Named) -> Result<bool> {
    let operator = named.for_keys(&keyspace.order);
    let mut writer = inner.writer.lock();
    // Under the lock: another operator may have taken its place since the caller looked.
    check_operator(keyspace, &named.name)?;
    keyspace.replace_operator(Some(Arc::clone(&operator)));
    let may_write = writer.log.is_some();
    let Some(Some(target)) = writer.keyspaces.get_mut(keyspace.id as usize) else { return Ok(false) };
    target.operator = Some(operator);
    // Without the operator, operands were kept apart: the flush combines them.
    let rotates = may_write && target.memtable.longest_chain() >= LONG_CHAIN && inner.error_state.check().is_ok();
    if rotates {
        rotate(inner, &mut writer, keyspace.id, 0);
    }
    Ok(rotates)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::mem::MemEnv;
    use crate::merge_operator::MergeError;
    use crate::{Db, Options, merge};

    #[derive(Debug)]
    struct Custom;

    impl MergeOperator for Custom {
        fn name(&self) -> &str {
            "custom"
        }

        fn full_merge(
            &self,
            _: &[u8],
            _: Option<&[u8]>,
            _: &[&[u8]],
        ) -> std::result::Result<Option<Vec<u8>>, MergeError> {
            Ok(Some(b"custom".to_vec()))
        }

        fn partial_merge(&self, _: &[u8], _: &[u8], _: &[u8]) -> Option<Vec<u8>> {
            None
        }
    }

    /// The other one is set between the comparison of the names and the lock.
    #[test]
    fn an_operator_is_not_supplied_in_the_place_of_another() {
        let env = Arc::new(MemEnv::new());
        let open = || Db::open("/db", Options::default().env(env.clone())).unwrap();
        let db = open();
        db.keyspace("k", KeyspaceOptions::default().merge_operator(Custom)).unwrap();
        drop(db);
        let db = open();
        let k = db.keyspace("k", KeyspaceOptions::default()).unwrap();
        let late = Named::new(Arc::new(Custom), &db.shared.inner).unwrap();
        check_operator(&k.inner, &late.name).unwrap();
        k.set_merge_operator(merge::Max).unwrap();
        let refused = attach(&db.shared.inner, &k.inner, &late);
        assert!(matches!(&refused, Err(Error::InvalidArgument { .. })), "{refused:?}");
        k.put("a", 1u64.to_le_bytes()).unwrap();
        k.merge("a", 7u64.to_le_bytes()).unwrap();
        assert_eq!(k.get("a").unwrap().as_deref(), Some(&7u64.to_le_bytes()[..]));
    }

    fn refusal(db: &Db, name: &str) -> String {
        match db.keyspace(name, KeyspaceOptions::default()) {
            Err(error @ Error::InvalidArgument { .. }) => error.to_string(),
            other => panic!("{other:?}"),
        }
    }

    fn listed(number: u64) -> Change {
        let (name, comparator) = (format!("k{number}"), crate::base::comparator::BYTEWISE.to_owned());
        Change::Keyspace { id: number, name, comparator, operator: None, ttl: 0 }
    }

    /// All but one are in the manifest only, where they are counted.
    #[test]
    fn there_are_at_most_65535_keyspaces_at_a_time() {
        let db = Db::open("/db", Options::default().env(Arc::new(MemEnv::new()))).unwrap();
        let others: Vec<Change> = (1..65_535).map(listed).collect();
        commit_version_edit::try_renew_manifest(&db.shared.inner, &others).unwrap();
        db.keyspace("last", KeyspaceOptions::default()).unwrap().put("a", "1").unwrap();
        assert!(refusal(&db, "one more").contains("at most 65535 keyspaces"));
        assert_eq!(db.keyspaces(), ["last"]);
        db.drop_keyspace("last").unwrap();
        db.keyspace("in its place", KeyspaceOptions::default()).unwrap();
    }

    /// The numbers of dropped keyspaces are not given out again.
    #[test]
    fn at_most_1048575_keyspaces_are_created_in_the_life_of_a_database() {
        let env = Arc::new(MemEnv::new());
        let open = || Db::open("/db", Options::default().env(env.clone())).unwrap();
        let db = open();
        let first = db.keyspace("first", KeyspaceOptions::default()).unwrap();
        let given_out = Change::NextKeyspace(1_048_575);
        commit_version_edit::try_renew_manifest(&db.shared.inner, &[given_out]).unwrap();
        let last = db.keyspace("last", KeyspaceOptions::default()).unwrap();
        assert_eq!((first.id(), last.id()), (1, 1_048_575));
        last.put("a", "1").unwrap();
        db.drop_keyspace("last").unwrap();
        assert!(refusal(&db, "one more").contains("at most 1048575 keyspaces"));
        drop((first, last, db));
        let db = open();
        assert!(refusal(&db, "one more").contains("in the life of a database"));
        db.keyspace("first", KeyspaceOptions::default()).unwrap().put("a", "1").unwrap();
    }
}
