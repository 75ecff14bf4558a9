//! What a recorder of the facade is given.
#![allow(clippy::unwrap_used)]

use esker::env::mem::MemEnv;
use esker::{Db, METRICS, MetricKind, Options, WriteOptions};
use esker_metrics::Publisher;
use metrics::{Counter, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

#[derive(Default)]
struct Samples(Mutex<Vec<f64>>);

impl HistogramFn for Samples {
    fn record(&self, value: f64) {
        self.0.lock().unwrap().push(value);
    }
}

/// Keeps everything.
#[derive(Default)]
struct Kept {
    described: Mutex<BTreeMap<String, (&'static str, Option<Unit>)>>,
    counters: Mutex<BTreeMap<String, Arc<AtomicU64>>>,
    gauges: Mutex<BTreeMap<String, Arc<AtomicU64>>>,
    histograms: Mutex<BTreeMap<String, Arc<Samples>>>,
}

fn name(key: &Key) -> String {
    let labels = key.labels().map(|label| format!("{{{}={}}}", label.key(), label.value()));
    format!("{}{}", key.name(), labels.collect::<String>())
}

impl Kept {
    fn describe(&self, kind: &'static str, key: &KeyName, unit: Option<Unit>) {
        self.described.lock().unwrap().insert(key.as_str().to_owned(), (kind, unit));
    }

    fn counter(&self, name: &str) -> u64 {
        self.counters.lock().unwrap().get(name).unwrap_or_else(|| panic!("no {name}")).load(Relaxed)
    }

    fn gauge(&self, name: &str) -> f64 {
        f64::from_bits(self.gauges.lock().unwrap().get(name).unwrap_or_else(|| panic!("no {name}")).load(Relaxed))
    }

    fn samples(&self, name: &str) -> Vec<f64> {
        self.histograms.lock().unwrap().get(name).map(|kept| kept.0.lock().unwrap().clone()).unwrap_or_default()
    }
}

impl Recorder for Kept {
    fn describe_counter(&self, key: KeyName, unit: Option<Unit>, _: SharedString) {
        self.describe("counter", &key, unit);
    }

    fn describe_gauge(&self, key: KeyName, unit: Option<Unit>, _: SharedString) {
        self.describe("gauge", &key, unit);
    }

    fn describe_histogram(&self, key: KeyName, unit: Option<Unit>, _: SharedString) {
        self.describe("histogram", &key, unit);
    }

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(Arc::clone(self.counters.lock().unwrap().entry(name(key)).or_default()))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(Arc::clone(self.gauges.lock().unwrap().entry(name(key)).or_default()))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(Arc::clone(self.histograms.lock().unwrap().entry(name(key)).or_default()))
    }
}

#[test]
fn every_metric_arrives_with_its_value_and_no_call_is_counted_twice() {
    let options = Options::default().env(Arc::new(MemEnv::new())).background_threads(0).latency_histograms(true);
    let db = Db::open("/db", options).unwrap();
    let names = db.keyspace("names", Default::default()).unwrap();
    let kept = Kept::default();
    metrics::with_local_recorder(&kept, || {
        let mut publisher = Publisher::new(db.clone());
        for round in 1..=3 {
            names.put_with("ada", "1815", &WriteOptions::new().sync(true)).unwrap();
            db.flush().unwrap();
            publisher.publish();
            assert_eq!(kept.counter("esker_flush_total"), round);
            assert_eq!(kept.counter("esker_sequence_last_total"), round);
            assert_eq!(kept.samples("esker_flush_latency_seconds").len() as u64, round);
            assert!(kept.samples("esker_sync_latency_seconds").iter().all(|seconds| (0.0..1000.0).contains(seconds)));
        }
    });
    assert_eq!(kept.gauge("esker_keyspace_runs{keyspace=names}"), db.stats().keyspaces[0].runs.len() as f64);
    assert_eq!(kept.gauge("esker_stall_seconds_total"), 0.0);
    assert_eq!(kept.gauge("esker_health_writable"), 1.0);
    let described = kept.described.lock().unwrap();
    assert_eq!(described.len(), METRICS.len());
    for metric in METRICS {
        let (kind, unit) = described[&metric.prometheus_name()];
        assert_eq!(kind == "histogram", metric.kind == MetricKind::Histogram);
        assert!(unit.is_some());
    }
}
