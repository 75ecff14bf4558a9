//! Records of kept runs put together by what they measure: all repetitions of one row of one cell.

use crate::report::measured::{Key, Measured, row_name, short_load};
use crate::sweep::fairness::{Violation, violations};
use crate::sweep::grid::StudyRun;
use std::collections::BTreeMap;

/// What broke a rule in each run. Whole sequences of keys are gone through for it.
pub fn broken_rules(runs: &[StudyRun]) -> Vec<Vec<Violation>> {
    runs.iter().map(|run| violations(&run.finished)).collect()
}

/// Everything that was measured, in the order in which it first was. `broken`: what broke a rule in
/// each run, or nothing where that is not to be shown.
pub fn measure<'a>(runs: &'a [StudyRun], broken: &[Vec<Violation>]) -> Vec<Measured<'a>> {
    let mut positions: BTreeMap<Key, usize> = BTreeMap::new();
    let mut all: Vec<Measured> = Vec::new();
    for (index, run) in runs.iter().enumerate() {
        let broken = broken.get(index).map_or(&[][..], Vec::as_slice);
        for finished in &run.finished {
            let mut before = None;
            for record in &finished.records {
                let cell = &finished.cell;
                let row = row_name(record);
                let key = Key {
                    study: run.study.clone(),
                    experiment: cell.experiment.clone(),
                    engine: cell.engine.clone(),
                    variant: cell.variant.clone(),
                    variables: cell.variables.clone(),
                    row: row.to_string(),
                };
                let position = *positions.entry(key).or_insert_with_key(|key| {
                    all.push(Measured { key: key.clone(), ..Measured::default() });
                    all.len() - 1
                });
                all[position].add(record, short_load(&mut before, record));
                all[position].broke_rule |= broken.iter().any(|violation| violation.concerns(cell, row));
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Record;

    #[test]
    fn repetitions_come_together() {
        let record = |rate: f64| Record { row: "fillseq".into(), ops_per_sec: rate, ..Record::default() };
        let mut finished = crate::report::study::load::cell_of_records("", "esker", vec![record(10.0)]);
        let mut again = finished.clone();
        again.cell.repetition = 2;
        again.records = vec![record(30.0)];
        finished.records.push(Record { row: "x".into(), skipped: Some("no x".into()), ..Record::default() });
        let runs = [StudyRun { study: "s".into(), finished: vec![finished, again], ..StudyRun::default() }];
        let all = measure(&runs, &broken_rules(&runs));
        assert_eq!(all.len(), 2);
        assert_eq!((all[0].rate(), all[0].rates()), (Some(20.0), Some((10.0, 30.0))));
        assert_eq!(all[0].spread_text(), "~100 %");
        assert_eq!((all[1].rate(), all[1].messages().as_str()), (None, "skipped: no x"));
    }
}
