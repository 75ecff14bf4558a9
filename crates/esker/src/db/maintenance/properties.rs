//! Statistics and health as pairs of a name and a text, so that an exporter needs no code for each
//! figure.
//!
//! Names do not change once they are here. Those of a keyspace are `esker.keyspace.`, its name, a
//! dot and a word without dots. The figures are those of the table of metrics.

use crate::base::latency::LatencyHistogram;
use crate::db::maintenance::metrics::{self, Metric, Recorder};
use crate::db::maintenance::stats::Stats;
use crate::db::state::error_state::Health;
use crate::db::state::latencies::Timed;

/// Every property, the most useful first.
pub fn properties(
    stats: &Stats,
    health: &Health,
    latencies: impl Fn(Timed) -> Option<LatencyHistogram>,
) -> Vec<(String, String)> {
    let mut all = Properties(Vec::new());
    all.add("health.writable", health.writable.to_string());
    all.add("health.problem", health.problem.clone().unwrap_or_default());
    all.add("health.stall_reason", health.stall_reason.clone().unwrap_or_default());
    metrics::record(stats, health, latencies, &mut all);
    for keyspace in &stats.keyspaces {
        let operator = keyspace.merge_operator.clone().unwrap_or_default();
        all.add(&format!("keyspace.{}.merge_operator", keyspace.name), operator);
        all.add(&format!("keyspace.{}.comparator", keyspace.name), keyspace.comparator.clone());
    }
    all.0
}

struct Properties(Vec<(String, String)>);

impl Properties {
    fn add(&mut self, name: &str, value: String) {
        self.0.push((format!("esker.{name}"), value));
    }

    fn add_number(&mut self, metric: &Metric, keyspace: Option<&str>, value: u64) {
        match (keyspace, metric.name.strip_prefix("keyspace.")) {
            (Some(keyspace), Some(name)) => self.add(&format!("keyspace.{keyspace}.{name}"), value.to_string()),
            // In words already.
            _ if metric.name == "health.writable" => {}
            _ => self.add(metric.name, value.to_string()),
        }
    }
}

impl Recorder for Properties {
    fn counter(&mut self, metric: &'static Metric, keyspace: Option<&str>, value: u64) {
        self.add_number(metric, keyspace, value);
    }

    fn gauge(&mut self, metric: &'static Metric, keyspace: Option<&str>, value: u64) {
        self.add_number(metric, keyspace, value);
    }

    fn histogram(&mut self, metric: &'static Metric, latencies: &LatencyHistogram) {
        self.add(&format!("{}.count", metric.name), latencies.count().to_string());
        for (name, part) in [("p50", 0.5), ("p99", 0.99), ("p999", 0.999), ("max", 1.0)] {
            let nanos = latencies.quantile(part).as_nanos();
            self.add(&format!("{}.{name}_nanos", metric.name), nanos.to_string());
        }
    }
}
