//! All metrics in the text format of Prometheus.

use crate::base::latency::LatencyHistogram;
use crate::db::maintenance::metrics::{Metric, MetricKind, MetricUnit, Recorder};
use std::fmt;
use std::fmt::Write;
use std::time::Duration;

/// The bounds of the buckets of a histogram: powers of two of nanoseconds from a quarter of a
/// microsecond to a minute, where the counts are exact.
const BOUNDS: std::ops::RangeInclusive<u32> = 8..=36;

/// Takes all metrics, and prints them in the text format of Prometheus, version 0.0.4: what a
/// program answers to a scrape, or leaves in a file for `esker stats --watch --from`.
///
/// ```
/// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
/// let mut text = esker::PrometheusText::new();
/// db.record(&mut text);
/// assert!(text.to_string().contains("\n# TYPE esker_cache_hits_total counter\nesker_cache_hits_total 0\n"));
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct PrometheusText {
    text: String,
    /// The metric that the text ends with.
    last: Option<&'static str>,
}

impl PrometheusText {
    /// Without metrics.
    ///
    /// ```
    /// assert!(esker::PrometheusText::new().to_string().is_empty());
    /// ```
    pub fn new() -> PrometheusText {
        PrometheusText::default()
    }

    /// Begins a metric, unless it has begun, and returns its name.
    fn begin(&mut self, metric: &'static Metric) -> String {
        let name = metric.prometheus_name();
        if self.last.replace(metric.name) != Some(metric.name) {
            let kind = match metric.kind {
                MetricKind::Counter => "counter",
                MetricKind::Gauge => "gauge",
                MetricKind::Histogram => "histogram",
            };
            self.line(format_args!("# HELP {name} {}", metric.description.replace('\\', "\\\\")));
            self.line(format_args!("# TYPE {name} {kind}"));
        }
        name
    }

    fn line(&mut self, line: fmt::Arguments<'_>) {
        // Text takes everything.
        let _ = self.text.write_fmt(line);
        self.text.push('\n');
    }

    fn value(&mut self, metric: &'static Metric, keyspace: Option<&str>, value: u64) {
        let name = self.begin(metric);
        let label = keyspace.map_or_else(String::new, |keyspace| format!("{{keyspace=\"{}\"}}", escape(keyspace)));
        match metric.unit {
            MetricUnit::Microseconds => self.line(format_args!("{name}{label} {}", value as f64 / 1e6)),
            _ => self.line(format_args!("{name}{label} {value}")),
        }
    }
}

/// A label's value: backslash, quote and newline are special.
fn escape(label: &str) -> String {
    label.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

impl Recorder for PrometheusText {
    fn counter(&mut self, metric: &'static Metric, keyspace: Option<&str>, value: u64) {
        self.value(metric, keyspace, value);
    }

    fn gauge(&mut self, metric: &'static Metric, keyspace: Option<&str>, value: u64) {
        self.value(metric, keyspace, value);
    }

    fn histogram(&mut self, metric: &'static Metric, latencies: &LatencyHistogram) {
        let name = self.begin(metric);
        for bound in BOUNDS {
            let bound = Duration::from_nanos(1 << bound);
            let below = latencies.count_below(bound);
            self.line(format_args!("{name}_bucket{{le=\"{}\"}} {below}", bound.as_secs_f64()));
        }
        self.line(format_args!("{name}_bucket{{le=\"+Inf\"}} {}", latencies.count()));
        self.line(format_args!("{name}_sum {}", latencies.sum().as_secs_f64()));
        self.line(format_args!("{name}_count {}", latencies.count()));
    }
}

impl fmt::Display for PrometheusText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::latency::AtomicHistogram;
    use crate::db::maintenance::metrics::metric;

    #[test]
    fn metrics_have_their_comments_once_and_labels_are_escaped() {
        let mut text = PrometheusText::new();
        for (keyspace, runs) in [("a", 1), ("b\"\\\n", 2)] {
            text.gauge(metric("keyspace.runs").unwrap(), Some(keyspace), runs);
        }
        text.counter(metric("delay.micros").unwrap(), None, 1_500_000);
        let expected = "# HELP esker_keyspace_runs Sorted runs of tables.\n\
            # TYPE esker_keyspace_runs gauge\n\
            esker_keyspace_runs{keyspace=\"a\"} 1\n\
            esker_keyspace_runs{keyspace=\"b\\\"\\\\\\n\"} 2\n\
            # HELP esker_delay_seconds_total Time of those sleeps.\n\
            # TYPE esker_delay_seconds_total counter\n\
            esker_delay_seconds_total 1.5\n";
        assert_eq!(text.to_string(), expected);
    }

    #[test]
    fn the_buckets_of_a_histogram_are_cumulative_and_end_with_all() {
        let histogram = AtomicHistogram::default();
        for time in [Duration::ZERO, Duration::from_micros(1), Duration::from_secs(200)] {
            histogram.add(time);
        }
        let mut latencies = LatencyHistogram::default();
        histogram.add_to(&mut latencies);
        let mut text = PrometheusText::new();
        text.histogram(metric("get.latency").unwrap(), &latencies);
        let text = text.to_string();
        for line in [
            "esker_get_latency_seconds_bucket{le=\"0.000000256\"} 1",
            "esker_get_latency_seconds_bucket{le=\"0.000001024\"} 2",
            "esker_get_latency_seconds_bucket{le=\"68.719476736\"} 2",
            "esker_get_latency_seconds_bucket{le=\"+Inf\"} 3",
            "esker_get_latency_seconds_sum 200.000001",
            "esker_get_latency_seconds_count 3",
        ] {
            assert!(text.contains(&format!("\n{line}\n")), "{line}: {text}");
        }
    }
}
