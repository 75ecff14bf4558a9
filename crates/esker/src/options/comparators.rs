//! The comparators that a program supplies at open.

use crate::base::callback::{Database, contained};
use crate::base::comparator::{Comparator, ReverseBytewise};
use crate::base::key_order::KeyOrder;
use crate::error::{Error, Result};
use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The longest name, in bytes.
const MAX_NAME_BYTES: usize = 255;

/// The comparators for keyspaces that exist.
#[derive(Clone, Default)]
pub struct Comparators {
    given: Vec<Arc<dyn Comparator>>,
    /// Of those, by name, once a database that calls them is known.
    orders: BTreeMap<String, KeyOrder>,
    /// Whose callbacks they are.
    database: Option<Database>,
}

impl Comparators {
    /// Adds one.
    pub(super) fn add(&mut self, comparator: Arc<dyn Comparator>) {
        self.given.push(comparator);
    }

    /// Reads their names, and refuses what cannot be one, and two of one name.
    pub(super) fn check(&self) -> Result<()> {
        let mut names = BTreeSet::new();
        for comparator in &self.given {
            let order = order_of(Arc::clone(comparator), Database::NONE)?;
            if !names.insert(order.name().to_owned()) {
                return Err(Error::invalid(format!("two comparators are named {:?}", order.name())));
            }
        }
        Ok(())
    }

    /// Makes them callbacks of a database. Their names were checked.
    pub fn called_by(&mut self, database: Database) {
        self.database = Some(database);
        let orders = self.given.iter().filter_map(|comparator| order_of(Arc::clone(comparator), database).ok());
        self.orders = orders.map(|order| (order.name().to_owned(), order)).collect();
    }

    /// The order of that name, if it is built in or was supplied.
    pub fn find(&self, name: &str) -> Option<KeyOrder> {
        if let Some(order) = KeyOrder::built_in(name) {
            return Some(order);
        }
        if self.database.is_some() {
            return self.orders.get(name).cloned();
        }
        let mut orders = self.given.iter().filter_map(|given| order_of(Arc::clone(given), Database::NONE).ok());
        orders.find(|order| order.name() == name)
    }

    /// The order of a comparator that the program supplies for a keyspace.
    ///
    /// # Errors
    /// `InvalidArgument` for a name that cannot be one.
    pub fn order_for(&self, comparator: Arc<dyn Comparator>) -> Result<KeyOrder> {
        let order = order_of(comparator, self.database.unwrap_or(Database::NONE))?;
        Ok(self.find(order.name()).unwrap_or(order))
    }
}

/// The order of `comparator`. Its name is the user's code: it is read with no lock held.
fn order_of(comparator: Arc<dyn Comparator>, database: Database) -> Result<KeyOrder> {
    let name = contained(|| comparator.name().to_owned());
    let Some(name) = name else { return Err(Error::invalid("the comparator does not tell its name: it panicked")) };
    if let Some(order) = KeyOrder::built_in(&name) {
        let comparator: &dyn Any = &*comparator;
        if !comparator.is::<ReverseBytewise>() {
            let what = format!("the comparator {name:?} has the name of a built-in one; give it another name");
            return Err(Error::invalid(what));
        }
        return Ok(order);
    }
    if name.is_empty() || name.len() > MAX_NAME_BYTES || name.chars().any(char::is_control) {
        let what = format!("comparator name {name:?}: use 1 to {MAX_NAME_BYTES} bytes without control characters");
        return Err(Error::invalid(what));
    }
    Ok(KeyOrder::custom(name, comparator, database))
}
