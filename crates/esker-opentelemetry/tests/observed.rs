//! What a meter provider collects.
#![allow(clippy::unwrap_used)]

use esker::env::mem::MemEnv;
use esker::{Db, Options};
use opentelemetry::metrics::MeterProvider;
use opentelemetry_sdk::metrics::data::{AggregatedMetrics, MetricData};
use opentelemetry_sdk::metrics::{InMemoryMetricExporter, PeriodicReader, SdkMeterProvider};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Every point of the last collection: its name with its attributes, and its value.
fn collected(provider: &SdkMeterProvider, exporter: &InMemoryMetricExporter) -> BTreeMap<String, f64> {
    exporter.reset();
    provider.force_flush().unwrap();
    let mut points = BTreeMap::new();
    for resource in exporter.get_finished_metrics().unwrap() {
        for metric in resource.scope_metrics().flat_map(|scope| scope.metrics()) {
            let mut add = |attributes: Vec<String>, value: f64| {
                points.insert(format!("{}{}", metric.name(), attributes.concat()), value);
            };
            macro_rules! points {
                ($data:expr) => {
                    match $data {
                        MetricData::Gauge(gauge) => gauge.data_points().for_each(|point| {
                            add(
                                point.attributes().map(|a| format!("{{{}={}}}", a.key, a.value)).collect(),
                                point.value() as f64,
                            );
                        }),
                        MetricData::Sum(sum) => sum.data_points().for_each(|point| {
                            add(
                                point.attributes().map(|a| format!("{{{}={}}}", a.key, a.value)).collect(),
                                point.value() as f64,
                            );
                        }),
                        _ => panic!("{}", metric.name()),
                    }
                };
            }
            match metric.data() {
                AggregatedMetrics::F64(data) => points!(data),
                AggregatedMetrics::U64(data) => points!(data),
                AggregatedMetrics::I64(_) => panic!("{}", metric.name()),
            }
        }
    }
    points
}

#[test]
fn every_collection_sees_the_values_of_its_moment_until_the_registration_ends() {
    let options = Options::default().env(Arc::new(MemEnv::new())).background_threads(0).latency_histograms(true);
    let db = Db::open("/db", options.clone()).unwrap();
    let names = db.keyspace("names", Default::default()).unwrap();
    let exporter = InMemoryMetricExporter::default();
    let reader = PeriodicReader::builder(exporter.clone()).build();
    let provider = SdkMeterProvider::builder().with_reader(reader).build();
    let registration = esker_opentelemetry::register(&provider.meter("storage"), db.clone());
    for round in 1..=3 {
        names.put("ada", "1815").unwrap();
        db.flush().unwrap();
        // Values are kept for the length of one collection.
        std::thread::sleep(std::time::Duration::from_millis(30));
        let points = collected(&provider, &exporter);
        assert_eq!(points["esker_flush"], f64::from(round), "{points:?}");
        assert_eq!(points["esker_sequence_last"], f64::from(round));
        assert_eq!(points["esker_keyspace_memtable_entries{keyspace=names}"], 0.0);
        assert_eq!(points["esker_flush_latency_calls"], f64::from(round));
        assert!(points["esker_flush_latency_seconds{quantile=0.99}"] > 0.0);
        assert_eq!(points["esker_stall_seconds"], 0.0);
    }
    drop((registration, names, db));
    // The provider does not keep it open.
    Db::open("/db", options).unwrap();
}
