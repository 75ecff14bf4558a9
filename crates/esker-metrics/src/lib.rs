//! The metrics of an Esker database for the [`metrics`] facade, and so for each of its exporters.
//!
//! [`Publisher::publish`] hands the values of the moment to the recorder that the program has
//! installed. The program calls it as often as it wants new values, as each second in a thread of
//! its own, or before it answers a scrape.
//!
//! Names, units and descriptions are those of [`esker::METRICS`], the names in the form of
//! Prometheus ([`esker::Metric::prometheus_name`]), with the label `keyspace` where each keyspace
//! has one. Counters of the facade are whole numbers: times that only grow, in seconds, are gauges
//! here. A histogram gets, for each call that was measured since the last time, the end of the
//! range that its duration is in, in seconds.

use esker::{Db, LatencyHistogram, METRICS, Metric, MetricKind, MetricUnit, Recorder};
use metrics::{SharedString, Unit};
use std::collections::HashMap;
use std::time::Duration;

/// Hands the metrics of one database to the facade.
///
/// ```
/// # let options = esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new()));
/// let db = esker::Db::open("data", options)?;
/// let mut publisher = esker_metrics::Publisher::new(db.clone());
/// publisher.publish(); // and again, each second
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug)]
pub struct Publisher {
    db: Db,
    /// Of each histogram, how many calls of each range were handed over.
    seen: HashMap<&'static str, HashMap<Duration, u64>>,
}

impl Publisher {
    /// For this database, which it keeps open. Describes all metrics to the recorder that is
    /// installed at the moment.
    ///
    /// ```
    /// # let options = esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new()));
    /// let publisher = esker_metrics::Publisher::new(esker::Db::open("data", options)?);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn new(db: Db) -> Publisher {
        for metric in METRICS {
            describe(metric);
        }
        Publisher { db, seen: HashMap::new() }
    }

    /// Hands over the values of this moment. Costs what [`Db::record`] costs, and what the recorder
    /// does with about sixty values.
    ///
    /// ```
    /// # let options = esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new()));
    /// esker_metrics::Publisher::new(esker::Db::open("data", options)?).publish();
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn publish(&mut self) {
        let Publisher { db, seen } = self;
        db.record(&mut Facade { seen });
    }
}

/// Whether the metric is a counter of the facade.
fn is_counter(metric: &Metric) -> bool {
    metric.kind == MetricKind::Counter && metric.unit != MetricUnit::Microseconds
}

fn describe(metric: &'static Metric) {
    let unit = match metric.unit {
        MetricUnit::Bytes => Unit::Bytes,
        MetricUnit::Microseconds | MetricUnit::Seconds => Unit::Seconds,
        _ => Unit::Count,
    };
    let (name, description) = (metric.prometheus_name(), metric.description);
    match metric.kind {
        MetricKind::Histogram => metrics::describe_histogram!(name, unit, description),
        _ if is_counter(metric) => metrics::describe_counter!(name, unit, description),
        _ => metrics::describe_gauge!(name, unit, description),
    }
}

struct Facade<'a> {
    seen: &'a mut HashMap<&'static str, HashMap<Duration, u64>>,
}

fn labels(keyspace: Option<&str>) -> Vec<(&'static str, SharedString)> {
    keyspace.map(|keyspace| ("keyspace", SharedString::from(keyspace.to_owned()))).into_iter().collect()
}

impl Recorder for Facade<'_> {
    fn counter(&mut self, metric: &'static Metric, keyspace: Option<&str>, value: u64) {
        if is_counter(metric) {
            metrics::counter!(metric.prometheus_name(), &labels(keyspace)).absolute(value);
        } else {
            metrics::gauge!(metric.prometheus_name(), &labels(keyspace)).set(value as f64 / 1e6);
        }
    }

    fn gauge(&mut self, metric: &'static Metric, keyspace: Option<&str>, value: u64) {
        metrics::gauge!(metric.prometheus_name(), &labels(keyspace)).set(value as f64);
    }

    fn histogram(&mut self, metric: &'static Metric, latencies: &LatencyHistogram) {
        let histogram = metrics::histogram!(metric.prometheus_name());
        let seen = self.seen.entry(metric.name).or_default();
        for (end, count) in latencies.buckets() {
            let before = seen.insert(end, count).unwrap_or(0);
            let new = usize::try_from(count.saturating_sub(before)).unwrap_or(usize::MAX);
            if new > 0 {
                histogram.record_many(end.as_secs_f64(), new);
            }
        }
    }
}
