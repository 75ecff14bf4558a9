//! The metrics of an Esker database as observable instruments of OpenTelemetry.
//!
//! [`register`] makes an instrument for each metric of [`esker::METRICS`]. Each time the program's
//! meter provider collects, they ask the database for its values, once for all of them.
//!
//! An instrument has the name that the metric has in Prometheus
//! ([`esker::Metric::prometheus_name`]), without `_total`, which the exporter for Prometheus adds
//! again; the metrics of keyspaces have the attribute `keyspace`. OpenTelemetry has no histograms
//! that are observed: of the latencies there is a gauge with the attribute `quantile`, and a
//! counter of the calls that were measured, `..._calls`.

use esker::{Db, LatencyHistogram, METRICS, Metric, MetricKind, MetricUnit, Recorder};
use opentelemetry::KeyValue;
use opentelemetry::metrics::Meter;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Values are read again after so long: one collection takes less, and no two follow so fast.
const FRESH: Duration = Duration::from_millis(20);

/// The quantiles of latencies.
const QUANTILES: [f64; 4] = [0.5, 0.9, 0.99, 0.999];

/// The instruments of one database. They end with this: a meter provider keeps instruments for as
/// long as it lives, and would keep the database open.
///
/// ```
/// # let options = esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new()));
/// let db = esker::Db::open("data", options)?;
/// let meter = opentelemetry::global::meter("storage");
/// let registration = esker_opentelemetry::register(&meter, db.clone());
/// // Until the database is no longer to be observed:
/// drop(registration);
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "the instruments yield nothing once this is dropped"]
pub struct Registration(Arc<Source>);

impl Drop for Registration {
    fn drop(&mut self) {
        let ended = std::mem::take(&mut *self.0.lock());
        // Not under the lock: this may be the last handle, and close the database.
        drop(ended);
    }
}

/// Makes an instrument for each metric. The database stays open until the registration is dropped.
///
/// ```
/// # let options = esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new()));
/// # let db = esker::Db::open("data", options)?;
/// let meter = opentelemetry::global::meter("storage");
/// let _registration = esker_opentelemetry::register(&meter, db.clone());
/// # Ok::<(), esker::Error>(())
/// ```
pub fn register(meter: &Meter, db: Db) -> Registration {
    let source = Arc::new(Source(Mutex::new(State { db: Some(db), ..State::default() })));
    for metric in METRICS {
        match (metric.kind, metric.unit) {
            (MetricKind::Histogram, _) => observe_latency(meter, metric, &source),
            (_, MetricUnit::Microseconds) => observe_time(meter, metric, &source),
            _ => observe_number(meter, metric, &source),
        }
    }
    Registration(source)
}

fn name(metric: &Metric) -> String {
    let name = metric.prometheus_name();
    name.strip_suffix("_total").unwrap_or(&name).to_owned()
}

fn attributes(keyspace: Option<&String>) -> Vec<KeyValue> {
    keyspace.map(|keyspace| KeyValue::new("keyspace", keyspace.clone())).into_iter().collect()
}

fn observe_number(meter: &Meter, metric: &'static Metric, source: &Arc<Source>) {
    let unit = if metric.unit == MetricUnit::Bytes { "By" } else { "1" };
    let source = Arc::clone(source);
    if metric.kind == MetricKind::Counter {
        let instrument = meter.u64_observable_counter(name(metric)).with_unit(unit);
        let _ = instrument
            .with_description(metric.description)
            .with_callback(move |observer| {
                source.each(metric, |keyspace, value| observer.observe(value, &attributes(keyspace)));
            })
            .build();
    } else {
        let instrument = meter.u64_observable_gauge(name(metric)).with_unit(unit);
        let _ = instrument
            .with_description(metric.description)
            .with_callback(move |observer| {
                source.each(metric, |keyspace, value| observer.observe(value, &attributes(keyspace)));
            })
            .build();
    }
}

fn observe_time(meter: &Meter, metric: &'static Metric, source: &Arc<Source>) {
    let source = Arc::clone(source);
    let instrument = meter.f64_observable_counter(name(metric)).with_unit("s");
    let _ = instrument
        .with_description(metric.description)
        .with_callback(move |observer| {
            source.each(metric, |keyspace, micros| observer.observe(micros as f64 / 1e6, &attributes(keyspace)));
        })
        .build();
}

fn observe_latency(meter: &Meter, metric: &'static Metric, source: &Arc<Source>) {
    let of_quantiles = Arc::clone(source);
    let instrument = meter.f64_observable_gauge(name(metric)).with_unit("s");
    let _ = instrument
        .with_description(metric.description)
        .with_callback(move |observer| {
            of_quantiles.latencies(metric, |latencies| {
                for quantile in QUANTILES {
                    let seconds = latencies.quantile(quantile).as_secs_f64();
                    observer.observe(seconds, &[KeyValue::new("quantile", quantile.to_string())]);
                }
            });
        })
        .build();
    let of_calls = Arc::clone(source);
    let instrument = meter.u64_observable_counter(format!("{}_calls", name(metric).trim_end_matches("_seconds")));
    let _ = instrument
        .with_unit("1")
        .with_description("Calls measured.")
        .with_callback(move |observer| {
            of_calls.latencies(metric, |latencies| observer.observe(latencies.count(), &[]));
        })
        .build();
}

/// The values of a moment, and where the next ones come from.
#[derive(Debug, Default)]
struct State {
    db: Option<Db>,
    taken: Option<Instant>,
    numbers: HashMap<&'static str, Vec<(Option<String>, u64)>>,
    latencies: HashMap<&'static str, LatencyHistogram>,
}

#[derive(Debug)]
struct Source(Mutex<State>);

impl Source {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        // What is in it is whole at any time.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// With values that are not older than a collection takes.
    fn fresh(&self) -> std::sync::MutexGuard<'_, State> {
        let mut state = self.lock();
        if let Some(db) = state.db.clone()
            && state.taken.is_none_or(|taken| taken.elapsed() > FRESH)
        {
            state.numbers.clear();
            db.record(&mut *state);
            state.taken = Some(Instant::now());
        }
        state
    }

    fn each(&self, metric: &Metric, mut visit: impl FnMut(Option<&String>, u64)) {
        for (keyspace, value) in self.fresh().numbers.get(metric.name).into_iter().flatten() {
            visit(keyspace.as_ref(), *value);
        }
    }

    fn latencies(&self, metric: &Metric, visit: impl FnOnce(&LatencyHistogram)) {
        if let Some(latencies) = self.fresh().latencies.get(metric.name) {
            visit(latencies);
        }
    }
}

impl Recorder for State {
    fn counter(&mut self, metric: &'static Metric, keyspace: Option<&str>, value: u64) {
        self.numbers.entry(metric.name).or_default().push((keyspace.map(str::to_owned), value));
    }

    fn gauge(&mut self, metric: &'static Metric, keyspace: Option<&str>, value: u64) {
        self.counter(metric, keyspace, value);
    }

    fn histogram(&mut self, metric: &'static Metric, latencies: &LatencyHistogram) {
        self.latencies.insert(metric.name, latencies.clone());
    }
}
