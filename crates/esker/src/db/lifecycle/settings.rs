//! Settings of a keyspace that exists.
//!
//! The manifest has the new setting before anything is written under it, so that a recovery knows
//! what it replays. Then, under the writer lock, the keyspace has it, and no thread that has not
//! seen that changes values in place any more. What was prepared before, a batch for example, has
//! no expiry and no operands, which is right under the new setting too: therefore entries of a
//! keyspace with a merge operator cannot be made to expire, whose operands would need what they
//! are combined with.

use crate::base::expiry::Ttl;
use crate::db::background::commit_version_edit;
use crate::db::lifecycle::keyspaces::{self, Named};
use crate::db::state::inner::{Inner, KeyspaceInner};
use crate::error::{Error, Result};
use crate::merge_operator::{MergeOperator, UINT64_ADD};
use crate::version::edit::KeyspaceRecord;
use std::sync::Arc;

/// See [`crate::Keyspace::set_ttl`].
pub fn set_ttl(inner: &Inner, keyspace: &KeyspaceInner, ttl: Ttl) -> Result<()> {
    inner.refuse_in_callback()?;
    let stored = ttl.to_stored()?;
    // Jobs go by the setting from their beginning to their end.
    let _jobs = inner.jobs.lock();
    let _changes = inner.keyspace_changes.lock();
    keyspace.check_exists()?;
    let before = keyspace.ttl();
    if before == Ttl::from_stored(stored) {
        return Ok(());
    }
    if !ttl.is_enabled() {
        return Err(Error::invalid(format!(
            "entries of keyspace {:?} may have an expiry already; use Ttl::Enabled without a default instead",
            keyspace.name
        )));
    }
    if let Some(operator) = keyspace.operator_name().filter(|_| !before.is_enabled()) {
        return Err(Error::invalid(format!(
            "keyspace {:?} has merge operator {operator:?}, and its operands were written without an expiry; copy it \
             into one that is created with a time to live",
            keyspace.name
        )));
    }
    commit_version_edit::alter_keyspace(inner, keyspace.id, |record| record.ttl = stored)?;
    apply_ttl(inner, keyspace, stored);
    Ok(())
}

fn apply_ttl(inner: &Inner, keyspace: &KeyspaceInner, stored: u64) {
    let mut writer = inner.lock_writer();
    writer.entries_may_expire = true;
    keyspace.set_ttl(stored);
    inner.thread_gate.wait_for_all();
}

/// See [`crate::Keyspace::set_merge_operator`].
pub fn set_merge_operator(inner: &Inner, keyspace: &KeyspaceInner, operator: Arc<dyn MergeOperator>) -> Result<()> {
    inner.refuse_in_callback()?;
    let named = Named::new(operator, inner)?;
    named.check()?;
    let _jobs = inner.jobs.lock();
    let _changes = inner.keyspace_changes.lock();
    keyspace.check_exists()?;
    let operator = named.for_keys(&keyspace.order);
    match keyspace.operator_name() {
        Some(name) if name == named.name && keyspace.operator().is_some() => return Ok(()),
        Some(name) if name == named.name => return keyspaces::attach(inner, keyspace, operator),
        Some(name) => {
            return Err(Error::invalid(format!(
                "keyspace {:?} has merge operator {name:?}, whose operands {:?} may not understand; copy it into one \
                 that is created with the other",
                keyspace.name, named.name
            )));
        }
        None => {}
    }
    commit_version_edit::alter_keyspace(inner, keyspace.id, |record| record.operator = Some(named.name.clone()))?;
    apply_operator(inner, keyspace, &named.name, Some(operator));
    Ok(())
}

fn apply_operator(inner: &Inner, keyspace: &KeyspaceInner, name: &str, operator: Option<Arc<dyn MergeOperator>>) {
    let mut writer = inner.lock_writer();
    // The operator first: who sees the name checks operands by it.
    if let Some(operator) = &operator {
        keyspace.attach(Arc::clone(operator));
    }
    keyspace.set_operator_name(name);
    if let Some(Some(target)) = writer.keyspaces.get_mut(keyspace.id as usize) {
        target.operator = operator;
        target.adds_uint64 = name == UINT64_ADD;
    }
    inner.thread_gate.wait_for_all();
}

/// Takes over what the writer that is followed has changed from `before`.
pub fn take_over(inner: &Inner, keyspace: &KeyspaceInner, before: &KeyspaceRecord, now: &KeyspaceRecord) {
    if before.ttl != now.ttl {
        apply_ttl(inner, keyspace, now.ttl);
    }
    if let Some(name) = now.operator.as_deref().filter(|_| before.operator.is_none()) {
        apply_operator(inner, keyspace, name, keyspaces::stored_operator(now));
    }
}
