//! Page views by page and hour, kept for two days: typed counters in a keyspace with a time to
//! live, and the totals of pages beside them, without a byte of encoding in the program.
//!
//! Run it with `cargo run --example page_views`, or with a directory as its argument to keep the
//! database: a second run then goes on counting.

use esker::{Counters, Db, KeyspaceOptions, Options, Ttl, TypedKeyspace};
use std::error::Error;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const HOUR: Duration = Duration::from_secs(60 * 60);
const KEPT: Duration = Duration::from_secs(48 * 60 * 60);

struct PageViews {
    db: Db,
    /// By page and the beginning of the hour: the views in that hour.
    hourly: Counters<(String, SystemTime)>,
    /// By page: the views of all time.
    total: Counters<String>,
    /// By page: its title.
    titles: TypedKeyspace<String, String>,
}

/// The beginning of the hour that a time is in.
fn hour_of(time: SystemTime) -> SystemTime {
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    UNIX_EPOCH + Duration::from_secs(seconds - seconds % HOUR.as_secs())
}

impl PageViews {
    fn open(directory: &Path) -> esker::Result<PageViews> {
        let db = Db::open(directory, Options::default())?;
        // Two days after its first view an hour is gone: from every read at once, and from the disk
        // with the compactions that come.
        let expiring = KeyspaceOptions::default().ttl(Ttl::Enabled { default: Some(KEPT) });
        Ok(PageViews {
            hourly: Counters::open(&db, "hourly views", expiring)?,
            total: Counters::open(&db, "views", KeyspaceOptions::default())?,
            titles: TypedKeyspace::open(&db, "titles", KeyspaceOptions::default())?,
            db,
        })
    }

    /// Counts one visit. Reads nothing; both numbers change, or neither does.
    fn view(&self, page: &str, at: SystemTime) -> esker::Result<()> {
        let mut batch = self.db.batch();
        self.hourly.in_batch(&mut batch).add((page, hour_of(at)), 1)?;
        self.total.in_batch(&mut batch).add(page, 1)?;
        batch.commit()
    }

    /// The views of a page in the hours from one to before another, by hour.
    fn between(&self, page: &str, from: SystemTime, to: SystemTime) -> esker::Result<Vec<(SystemTime, u64)>> {
        let hours = self.hourly.range((page, hour_of(from))..(page, hour_of(to)));
        hours.map(|count| count.map(|((_, hour), views)| (hour, views))).collect()
    }

    /// The pages with the most views of all time.
    fn most_viewed(&self, pages: usize) -> esker::Result<Vec<(String, u64)>> {
        let mut counted = self.total.iter().collect::<esker::Result<Vec<_>>>()?;
        counted.sort_by_key(|(_, views)| std::cmp::Reverse(*views));
        counted.truncate(pages);
        Ok(counted)
    }
}

/// Counts views in the database in `directory`.
pub fn run(directory: &Path) -> Result<(), Box<dyn Error>> {
    let views = PageViews::open(directory)?;
    let (index, about) = (views.total.get("/")?, views.total.get("/about")?);
    let now = SystemTime::now();
    let this_hour = hour_of(now);
    let in_this_hour = views.hourly.get(("/", this_hour))?;

    for _ in 0..1000 {
        views.view("/", now)?;
    }
    for _ in 0..10 {
        views.view("/", now - HOUR)?;
        views.view("/about", now)?;
    }
    views.titles.put("/", "Home")?;
    views.titles.put("/about", "About us")?;

    assert_eq!(views.total.get("/")?, index + 1010);
    assert_eq!(views.total.get("/about")?, about + 10);
    assert_eq!(views.total.get("/nothing")?, 0);
    let last = views.between("/", now - HOUR, now + HOUR)?;
    assert_eq!(last.last(), Some(&(this_hour, in_this_hour + 1000)));
    assert_eq!(last.len(), 2);
    // The hours of a page are next to each other, also where a page has the beginning of another
    // one's name.
    assert!(views.hourly.prefix(("/",)).all(|count| count.is_ok_and(|((page, _), _)| page == "/")));

    for (page, count) in views.most_viewed(2)? {
        let title = views.titles.get(&page)?.ok_or("each page has a title")?;
        println!("{title:<10} {count}");
    }
    Ok(())
}

#[allow(dead_code)]
fn main() -> Result<(), Box<dyn Error>> {
    if let Some(directory) = std::env::args_os().nth(1) {
        return run(Path::new(&directory));
    }
    let directory = std::env::temp_dir().join(format!("esker-example-page-views-{}", std::process::id()));
    let result = run(&directory);
    std::fs::remove_dir_all(&directory)?;
    result
}
