//! `esker stats --watch`: the figures of a database again and again, with what has changed since
//! the last time as rates.

use crate::exposition::Figures;
use crate::failure::{Failure, one_line};
use crate::open;
use crate::output::{bytes_text, print_line};

use console::Term;
use esker::{Db, Options, PrometheusText};
use std::fmt::Write;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The file in the directory of a database in which the program that writes may leave its figures.
const WRITERS_FILE: &str = "esker.prom";
/// One that is older is what is left of a program that has ended.
const STALE: Duration = Duration::from_secs(60);

/// Where figures come from.
pub enum Source {
    /// A database in this directory, opened for reading each time, unless the program that writes
    /// leaves its figures there.
    Directory(PathBuf),
    /// A file that the program which has the database open writes again and again.
    File(PathBuf),
}

impl Source {
    /// The figures of this moment, and whether they are those of the program that writes; none if
    /// the writer changes the files faster than they can be read.
    fn figures(&self) -> Result<Option<(Figures, bool)>, Failure> {
        let directory = match self {
            Source::File(path) => return of_file(path).map(|figures| Some((figures, true))),
            Source::Directory(directory) => directory,
        };
        open::require_directory(directory)?;
        let left = directory.join(WRITERS_FILE);
        if is_fresh(&left) {
            return of_file(&left).map(|figures| Some((figures, true)));
        }
        let mut text = PrometheusText::new();
        match Db::open_read_only(directory, Options::default().create_if_missing(false)) {
            Ok(db) => db.record(&mut text),
            Err(error) if error.is_retryable() => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        let figures = Figures::parse(&text.to_string()).map_err(Failure::Operation)?;
        Ok(Some((figures, false)))
    }

    fn name(&self) -> String {
        match self {
            Source::Directory(path) | Source::File(path) => path.display().to_string(),
        }
    }
}

/// The figures that a program has left in a file.
fn of_file(path: &Path) -> Result<Figures, Failure> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::io(&format!("cannot read {}", path.display()), &error))?;
    Figures::parse(&text).map_err(|problem| {
        Failure::Operation(format!(
            "{}: {problem}; write it with esker::PrometheusText, and rename it when complete",
            path.display()
        ))
    })
}

/// Whether the file is there, and was written a short time ago.
fn is_fresh(path: &Path) -> bool {
    let written = std::fs::metadata(path).and_then(|metadata| metadata.modified());
    // A time in the future is that of another clock.
    written.is_ok_and(|written| written.elapsed().is_ok_and(|age| age <= STALE))
}

/// Shows figures every `interval`, `times` times, or until the command is ended.
pub fn watch(source: &Source, interval: Duration, times: Option<u64>) -> Result<(), Failure> {
    let terminal = std::io::stdout().is_terminal().then(Term::stdout);
    let mut last: Option<(Instant, Figures)> = None;
    for round in 1.. {
        let now = Instant::now();
        let Some((figures, knows_the_writer)) = source.figures()? else {
            print_line("the database changes too fast to be read; trying again")?;
            std::thread::sleep(interval);
            continue;
        };
        let seconds = last.as_ref().map(|(then, _)| now.duration_since(*then).as_secs_f64());
        let before = last.as_ref().map(|(_, figures)| figures);
        let view = View { source, knows_the_writer, figures: &figures, before, seconds: seconds.unwrap_or(1.0) };
        match &terminal {
            Some(terminal) => {
                let shown = terminal.clear_screen().and_then(|()| terminal.write_line(&view.screen(interval)));
                shown.map_err(|error| Failure::io("cannot write to the terminal", &error))?;
            }
            None => print_line(&view.line())?,
        }
        if times.is_some_and(|times| round >= times) {
            break;
        }
        last = Some((now, figures));
        std::thread::sleep(interval);
    }
    Ok(())
}

/// The figures of a moment, beside those of the one before.
struct View<'a> {
    source: &'a Source,
    /// The counters are those of the program that writes.
    knows_the_writer: bool,
    figures: &'a Figures,
    before: Option<&'a Figures>,
    seconds: f64,
}

impl View<'_> {
    fn get(&self, name: &str) -> f64 {
        self.figures.get(name).unwrap_or(0.0)
    }

    /// How much a counter has grown in a second. One that is lower than before began anew.
    fn rate(&self, name: &str) -> f64 {
        let now = self.get(name);
        let before = self.before.and_then(|before| before.get(name)).unwrap_or(now);
        if now < before { now / self.seconds } else { (now - before) / self.seconds }
    }

    /// The part of the reads of blocks since the last time that found them in the cache.
    fn hit_rate(&self) -> Option<f64> {
        let (hits, misses) = (self.rate("esker_cache_hits_total"), self.rate("esker_cache_misses_total"));
        (hits + misses > 0.0).then(|| hits / (hits + misses))
    }

    fn levels(&self) -> impl Iterator<Item = (&str, f64)> {
        let name = "esker_keyspace_runs";
        self.figures.labels(name).map(move |keyspace| (keyspace, self.figures.of(keyspace, name).unwrap_or(0.0)))
    }

    /// All in one line, for what is no terminal.
    fn line(&self) -> String {
        let mut line = format!(
            "writes/s={:.0} table_bytes={:.0} memtable_bytes={:.0}",
            self.rate("esker_sequence_last_total"),
            self.get("esker_table_bytes"),
            self.get("esker_memtable_bytes")
        );
        if self.knows_the_writer {
            let hit_rate = self.hit_rate().map_or_else(|| "-".into(), |rate| format!("{rate:.4}"));
            let _ = write!(
                line,
                " log_bytes/s={:.0} flush_bytes/s={:.0} compaction_bytes/s={:.0} cache_hit_rate={hit_rate} \
                 delays/s={:.1} stalls/s={:.1} refused/s={:.1} stalled={:.0}",
                self.rate("esker_wal_bytes_total"),
                self.rate("esker_flush_bytes_total"),
                self.rate("esker_compaction_bytes_total"),
                self.rate("esker_delay_total"),
                self.rate("esker_stall_total"),
                self.rate("esker_stall_refused_writes_total"),
                self.get("esker_health_stalled")
            );
        } else {
            line.push_str(" cache_hit_rate=- stalls/s=- stalled=-");
        }
        for (keyspace, runs) in self.levels() {
            let _ = write!(line, " runs[{}]={runs:.0}", one_line(keyspace));
        }
        line
    }

    /// Everything, for a terminal.
    fn screen(&self, interval: Duration) -> String {
        let per_second = |name: &str| bytes_text(self.rate(name) as u64);
        let held = |name: &str| bytes_text(self.get(name) as u64);
        let mut lines = vec![
            format!("{}, every {} s; Ctrl-C ends it", self.source.name(), interval.as_secs_f64()),
            String::new(),
            format!("writes       {:>12.0} /s", self.rate("esker_sequence_last_total")),
        ];
        if self.knows_the_writer {
            lines.extend(self.work(&per_second));
        } else {
            lines.push("stalls                  - unknown: see --help".into());
            lines.push("block cache             - unknown: see --help".into());
        }
        lines.push(format!(
            "memory       memtables {}, block cache {}, indexes {}, filters {}",
            held("esker_memtable_bytes"),
            held("esker_cache_bytes"),
            held("esker_memory_index_bytes"),
            held("esker_memory_filter_bytes")
        ));
        lines.push(format!(
            "disk         {:.0} tables {}, {:.0} blob files {}",
            self.get("esker_table_files"),
            held("esker_table_bytes"),
            self.get("esker_blob_files"),
            held("esker_blob_bytes")
        ));
        lines.push(String::new());
        lines.extend(self.keyspaces());
        lines.join("\n")
    }

    /// What the writer does.
    fn work(&self, per_second: &dyn Fn(&str) -> String) -> Vec<String> {
        let percent = |seconds: f64| 100.0 * seconds;
        let stalled = if self.get("esker_health_stalled") > 0.0 { ", stalled now" } else { "" };
        // A file of `esker stats --prometheus` does not say.
        let is_writable = self.figures.get("esker_health_writable").is_none_or(|writable| writable > 0.0);
        let writable = if is_writable { "" } else { ", NOT WRITABLE" };
        let hit_rate = self.hit_rate().map_or_else(|| "no reads".into(), |rate| format!("{:.2} % hits", 100.0 * rate));
        let mut lines = vec![
            format!("log          {:>12} /s", per_second("esker_wal_bytes_total")),
            format!(
                "flushes      {:>12} /s, {:.1} a second",
                per_second("esker_flush_bytes_total"),
                self.rate("esker_flush_total")
            ),
            format!(
                "compactions  {:>12} /s written, {} /s read",
                per_second("esker_compaction_bytes_total"),
                per_second("esker_compaction_read_bytes_total")
            ),
            format!(
                "stalls       {:.1} /s, {:.0} % of the time of a thread; delays {:.1} /s, {:.0} %; refused {:.1} /s{stalled}{writable}",
                self.rate("esker_stall_total"),
                percent(self.rate("esker_stall_seconds_total")),
                self.rate("esker_delay_total"),
                percent(self.rate("esker_delay_seconds_total")),
                self.rate("esker_stall_refused_writes_total")
            ),
            format!("block cache  {hit_rate}"),
        ];
        for call in ["get", "put", "merge", "commit", "sync"] {
            let name = |part| format!("esker_{call}_latency_seconds_{part}");
            let calls = self.rate(&name("count"));
            if calls > 0.0 {
                let mean = 1e6 * self.rate(&name("sum")) / calls;
                lines.push(format!("{call:<12} {mean:>12.2} us on average"));
            }
        }
        lines
    }

    fn keyspaces(&self) -> Vec<String> {
        let mut lines = vec![format!(
            "{:<24} {:>5} {:>7} {:>14} {:>10} {:>12}",
            "keyspace", "runs", "tables", "entries", "size", "in memory"
        )];
        for (keyspace, runs) in self.levels() {
            let of = |name: &str| self.figures.of(keyspace, &format!("esker_keyspace_{name}")).unwrap_or(0.0);
            lines.push(format!(
                "{:<24} {runs:>5.0} {:>7.0} {:>14.0} {:>10} {:>12.0}",
                one_line(keyspace),
                of("tables"),
                of("entries"),
                bytes_text(of("bytes") as u64),
                of("memtable_entries")
            ));
        }
        lines
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn figures(values: &[(&str, f64)]) -> Figures {
        let lines: String = values.iter().map(|(name, value)| format!("{name} {value}\n")).collect();
        Figures::parse(&lines).unwrap()
    }

    #[test]
    fn rates_are_differences_and_a_counter_that_began_anew_counts_from_zero() {
        let source = Source::File(PathBuf::new());
        let before = figures(&[
            ("esker_cache_hits_total", 100.0),
            ("esker_cache_misses_total", 50.0),
            ("esker_flush_total", 9.0),
        ]);
        let now = figures(&[
            ("esker_cache_hits_total", 190.0),
            ("esker_cache_misses_total", 60.0),
            ("esker_flush_total", 4.0),
        ]);
        let view = View { source: &source, knows_the_writer: true, figures: &now, before: Some(&before), seconds: 2.0 };
        assert_eq!((view.rate("esker_cache_hits_total"), view.rate("esker_flush_total")), (45.0, 2.0));
        assert_eq!(view.hit_rate(), Some(0.9));
        let first = View { source: &source, knows_the_writer: true, figures: &now, before: None, seconds: 1.0 };
        assert_eq!((first.rate("esker_flush_total"), first.hit_rate()), (0.0, None));
    }

    /// Seen: "NOT WRITABLE", of a file of `esker stats --prometheus`, which cannot know.
    #[test]
    fn only_a_writer_that_says_so_is_not_writable() {
        let source = Source::File(PathBuf::new());
        let shown = |values: &[(&str, f64)]| {
            let figures = figures(values);
            let view = View { source: &source, knows_the_writer: true, figures: &figures, before: None, seconds: 1.0 };
            view.screen(Duration::from_secs(1)).contains("NOT WRITABLE")
        };
        assert!(shown(&[("esker_health_writable", 0.0)]));
        assert!(!shown(&[("esker_health_writable", 1.0)]) && !shown(&[("esker_flush_total", 1.0)]));
    }

    #[test]
    fn every_figure_that_is_shown_is_one_that_a_database_has() {
        let source = include_str!("watch.rs").split("#[cfg(test)]").next().unwrap();
        let known: Vec<String> = esker::METRICS.iter().map(esker::Metric::prometheus_name).collect();
        let mut seen = 0;
        for name in source.split('"').filter(|text| text.starts_with("esker_") && !text.contains(['{', '\n'])) {
            assert!(known.iter().any(|known| known == name), "{name}");
            seen += 1;
        }
        assert!(seen > 20, "{seen}");
    }
}
