//! The table of metrics, and what is made from it.

use crate::common::*;
use esker::env::mem::MemEnv;
use esker::merge::UInt64Add;
use esker::{
    Db, KeyspaceOptions, LatencyHistogram, METRICS, Metric, MetricKind, PrometheusText, Recorder, WriteOptions,
};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// What a recorder was given, by name and keyspace.
#[derive(Default)]
struct Kept {
    numbers: BTreeMap<(&'static str, String), u64>,
    latencies: BTreeMap<&'static str, LatencyHistogram>,
}

impl Recorder for Kept {
    fn counter(&mut self, metric: &'static Metric, keyspace: Option<&str>, value: u64) {
        assert!(self.numbers.insert((metric.name, keyspace.unwrap_or_default().into()), value).is_none());
    }

    fn gauge(&mut self, metric: &'static Metric, keyspace: Option<&str>, value: u64) {
        self.counter(metric, keyspace, value);
    }

    fn histogram(&mut self, metric: &'static Metric, latencies: &LatencyHistogram) {
        assert!(self.latencies.insert(metric.name, latencies.clone()).is_none());
    }
}

fn kept(db: &Db) -> Kept {
    let mut kept = Kept::default();
    db.record(&mut kept);
    kept
}

/// Some of everything.
fn work(db: &Db) {
    let adding = db.keyspace("a.b \"c\" \\ d", KeyspaceOptions::default().merge_operator(UInt64Add)).unwrap();
    let plain = keyspace(db, "plain");
    for number in 0..2000u64 {
        plain.put(number.to_be_bytes(), [1; 100]).unwrap();
        adding.merge("k", number.to_le_bytes()).unwrap();
        plain.get(number.to_be_bytes()).unwrap();
        plain.delete(number.to_be_bytes()).unwrap();
        plain.put_if_absent("there", "1").unwrap();
        let mut batch = db.batch();
        batch.put(&plain, "k", "v").unwrap();
        batch.commit().unwrap();
    }
    plain.put_with("k", "v", &WriteOptions::new().sync(true)).unwrap();
    db.flush().unwrap();
    db.compact().unwrap();
}

#[test]
fn a_recorder_is_given_what_the_properties_say() {
    let db = Db::open(DIRECTORY, simulated(&MemEnv::new()).latency_histograms(true)).unwrap();
    work(&db);
    let kept = kept(&db);
    for ((name, keyspace), value) in &kept.numbers {
        if *name == "memory.unused_pool_bytes" {
            // That of the process, without a budget: other tests change it.
            continue;
        }
        let property = match name.strip_prefix("keyspace.").filter(|_| !keyspace.is_empty()) {
            Some(name) => format!("esker.keyspace.{keyspace}.{name}"),
            None => format!("esker.{name}"),
        };
        let expected = if *name == "health.writable" { "true".into() } else { value.to_string() };
        assert_eq!(db.property(&property), Some(expected), "{property}");
    }
    let names: BTreeSet<_> = kept.numbers.keys().map(|(name, _)| *name).chain(kept.latencies.keys().copied()).collect();
    assert_eq!(names, METRICS.iter().map(|metric| metric.name).collect());
    assert_eq!(db.property("esker.flush.latency.count"), db.property("esker.flush.count"));
    let p50: u64 = db.property("esker.flush.latency.p50_nanos").unwrap().parse().unwrap();
    let max: u64 = db.property("esker.flush.latency.max_nanos").unwrap().parse().unwrap();
    assert!(0 < p50 && p50 <= max);
}

#[test]
fn every_kind_of_call_is_measured_where_that_is_asked_for_and_none_elsewhere() {
    let db = Db::open(DIRECTORY, simulated(&MemEnv::new()).latency_histograms(true)).unwrap();
    work(&db);
    for (name, latencies) in kept(&db).latencies {
        let calls = match name {
            "sync.latency" | "flush.latency" => 1..=4,
            "compaction.latency" => 1..=100,
            // Some of 2000, one in 64.
            _ => 5..=150,
        };
        assert!(calls.contains(&latencies.count()), "{name}: {latencies:?}");
        assert!(!latencies.sum().is_zero() && latencies.quantile(0.5) <= latencies.quantile(1.0), "{name}");
    }
    let off = Db::open(DIRECTORY, simulated(&MemEnv::new())).unwrap();
    work(&off);
    assert!(kept(&off).latencies.is_empty());
    assert_eq!(off.property("esker.get.latency.count"), None);
}

/// A recorder is called with no lock held.
#[test]
fn a_recorder_may_use_the_database() {
    struct Uses(Db, u64);
    impl Recorder for Uses {
        fn counter(&mut self, _: &'static Metric, _: Option<&str>, _: u64) {
            self.1 += 1;
            keyspace(&self.0, "k").put("k", self.1.to_le_bytes()).unwrap();
            self.0.flush().unwrap();
        }
    }
    let db = open(&MemEnv::new());
    let mut uses = Uses(db.clone(), 0);
    db.record(&mut uses);
    assert!(uses.1 > 5);
}

/// The samples of a text in the format of Prometheus, by name and labels. Panics where the text is
/// none: a sample without a type before it, a metric in two places, a value that is no number.
fn samples(text: &str) -> BTreeMap<(String, String), f64> {
    let mut samples = BTreeMap::new();
    let (mut types, mut helped) = (BTreeMap::new(), BTreeSet::new());
    let mut current = String::new();
    assert!(text.ends_with('\n'));
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, description) = help.split_once(' ').unwrap();
            assert!(helped.insert(name.to_owned()) && !description.is_empty(), "{line}");
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').unwrap();
            assert!(helped.contains(name) && ["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert!(types.insert(name.to_owned(), kind.to_owned()).is_none(), "{line}");
            current = name.to_owned();
        } else {
            let (series, value) = line.rsplit_once(' ').unwrap();
            let (name, labels) = series.split_at(series.find('{').unwrap_or(series.len()));
            assert!(name.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{line}");
            let metric = match types[&current].as_str() {
                "histogram" => ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end)).unwrap(),
                _ => name,
            };
            assert_eq!(metric, current, "{line}");
            assert_eq!(types[&current] == "counter", name.ends_with("_total"), "{line}");
            assert!(labels.is_empty() || labels.starts_with('{') && labels.ends_with("\"}"), "{line}");
            let value: f64 = value.parse().unwrap();
            assert!(value.is_finite() && value >= 0.0, "{line}");
            assert!(samples.insert((name.to_owned(), labels.to_owned()), value).is_none(), "{line}");
        }
    }
    samples
}

#[test]
fn the_prometheus_text_is_one_and_has_every_metric() {
    let db = Db::open(DIRECTORY, simulated(&MemEnv::new()).latency_histograms(true)).unwrap();
    work(&db);
    let mut text = PrometheusText::new();
    db.record(&mut text);
    let samples = samples(&text.to_string());
    let of = |name: &str, labels: &str| samples[&(name.to_owned(), labels.to_owned())];
    assert_eq!(of("esker_flush_total", ""), db.stats().flushes as f64);
    assert_eq!(of("esker_keyspace_memtable_entries", "{keyspace=\"a.b \\\"c\\\" \\\\ d\"}"), 0.0);
    for metric in METRICS {
        let name = metric.prometheus_name();
        if metric.kind != MetricKind::Histogram {
            assert!(samples.keys().any(|(sample, _)| *sample == name), "{name}");
            continue;
        }
        let mut buckets: Vec<(f64, f64)> = samples
            .iter()
            .filter(|((sample, _), _)| *sample == format!("{name}_bucket"))
            .map(|((_, labels), count)| {
                (labels.trim_matches(|c: char| !c.is_ascii_digit() && c != 'I' && c != 'f'), count)
            })
            .map(|(bound, count)| (bound.trim_start_matches("le=\"+").parse().unwrap_or(f64::INFINITY), *count))
            .collect();
        buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
        assert!(buckets.len() > 20 && buckets.windows(2).all(|pair| pair[0].1 <= pair[1].1), "{name}: {buckets:?}");
        assert_eq!(buckets.last().unwrap().1, of(&format!("{name}_count"), ""));
    }
}

fn document(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../doc").join(name);
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn the_page_of_metrics_has_the_table() {
    let mut table = "| Name | In Prometheus | Kind | Unit | Meaning |\n| --- | --- | --- | --- | --- |\n".to_owned();
    for metric in METRICS {
        let Metric { name, kind, unit, description, .. } = metric;
        let exported = metric.prometheus_name();
        table +=
            &format!("| `{name}` | `{exported}` | {kind:?} | {unit:?} | {description} |\n").replace("| One |", "| |");
    }
    let page = document("metrics.md");
    let found = page.split_once("## The table\n").unwrap().1;
    assert!(found.ends_with(&table), "doc/metrics.md should end with:\n\n{table}");
}

/// Every word of the dashboard that looks like a metric is one.
#[test]
fn every_metric_of_the_dashboard_is_in_the_table() {
    let known: BTreeMap<String, MetricKind> =
        METRICS.iter().map(|metric| (metric.prometheus_name(), metric.kind)).collect();
    let dashboard = document("grafana-dashboard.json");
    let words = dashboard.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let mut seen = BTreeSet::new();
    for word in words.filter(|word| word.starts_with("esker_")) {
        let histogram =
            word.strip_suffix("_bucket").is_some_and(|name| known.get(name) == Some(&MetricKind::Histogram));
        assert!(histogram || known.get(word).is_some_and(|kind| *kind != MetricKind::Histogram), "{word}");
        seen.insert(word);
    }
    assert!(seen.len() > 40, "{seen:?}");
}
