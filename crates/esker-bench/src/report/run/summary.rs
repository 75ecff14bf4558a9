//! All rows in one table, Esker's ratios to its peers, and what they come to.

use super::row::anchor;
use crate::report::blocks::{Block, Column, Field, Line, Look, Table, TableOf};
use crate::report::engine_style::{OURS, display_name};
use crate::report::groups::{Group, Groups, Mean, Peer, REFERENCE_PEER};
use crate::report::measured::Measured;
use crate::text::number;
use crate::text::words::counted;

/// The blocks of the section.
pub fn blocks(groups: &Groups) -> Vec<Block> {
    let mut blocks = vec![verdict(groups), Block::Table(table(groups))];
    blocks.extend(groups.notes(|group| groups.label(group)).into_iter().map(Block::Quiet));
    let cells = groups.groups.iter().flat_map(|group| group.cells.iter().map(move |cell| (group, cell)));
    let said = |(group, cell): (&Group, &Measured)| {
        Some(format!("{}, {}: {}", groups.label(group), display_name(&cell.key.engine), cell.skipped?))
    };
    let skipped: Vec<String> = cells.filter_map(said).collect();
    if !skipped.is_empty() {
        let line = format!("Skipped: {}, with the reasons", counted(skipped.len() as u32, "cell"));
        blocks.push(Block::Folded(line, vec![Block::List(skipped)]));
    }
    blocks
}

/// What the summary comes to, in one sentence.
fn verdict(groups: &Groups) -> Block {
    let ratios = groups.ratios(OURS, Peer::Best);
    let Some(mean) = groups.mean_ratio(OURS, Peer::Best) else {
        return Block::Quiet("No row has figures of both Esker and a comparable peer, so no ratios are given.".into());
    };
    let ahead = ratios.iter().filter(|ratio| **ratio >= 1.0).count();
    let reference = groups.mean_ratio(OURS, Peer::Named(REFERENCE_PEER)).map_or_else(String::new, |mean| {
        let (ratio, rows) = (number::ratio(mean.value), counted(mean.rows as u32, "row"));
        format!(" and {ratio} that of {} ({rows})", display_name(REFERENCE_PEER))
    });
    Block::Text(format!(
        "Esker is at least as fast as the best peer in {ahead} of {} compared rows; the geometric mean of its speed is {} that of the best \
         peer{reference}.",
        ratios.len(),
        number::ratio(mean.value)
    ))
}

/// The peers that there are columns of ratios to, with their headings.
fn peers(groups: &Groups) -> Vec<(Peer<'static>, &'static str)> {
    let all = [(Peer::Best, "Ratio to best peer"), (Peer::Named(REFERENCE_PEER), "Ratio to RocksDB")];
    let shown = match (groups.has_ratios(), groups.engines.contains(&REFERENCE_PEER)) {
        (false, _) => 0,
        (true, false) => 1,
        (true, true) => 2,
    };
    all.into_iter().take(shown).collect()
}

fn table(groups: &Groups) -> Table {
    let peers = peers(groups);
    let median = if groups.repetitions > 1 { "Median microseconds" } else { "Microseconds" };
    let ratios = if peers.is_empty() {
        ""
    } else {
        " The ratios say how many times as fast as the peer Esker is: below 1, with a hollow triangle, it is slower."
    };
    let caption = format!(
        "{median} of wall time per operation; lower is better. Bold with a dot marks the best of a row.{ratios}"
    );
    let mut table = TableOf::new(caption, "Row", &groups.groups, |group| Line::head(groups.label(group)));
    for engine in &groups.engines {
        let column = Column { ours: *engine == OURS, ..Column::number(display_name(engine)) };
        table = table.column(column, |group| cell(group, engine));
    }
    for (index, (peer, name)) in peers.iter().enumerate() {
        let column = Column { pinned: index == 0, ..Column::number(*name) };
        table = table.column(column, |group| {
            group.ratio(OURS, *peer).map_or_else(Field::absent, |ratio| {
                let note = if matches!(peer, Peer::Best) { display_name(ratio.peer) } else { "" };
                Field { note: note.into(), ..ratio_field(ratio.value, ratio.mark) }
            })
        });
    }
    let mut table = table.done();
    for (index, line) in table.lines.iter_mut().enumerate() {
        line.link = Some(anchor(index));
    }
    table.foot.extend((!peers.is_empty()).then(|| foot(groups, &peers)));
    table
}

fn cell(group: &Group, engine: &str) -> Field {
    let Some(cell) = group.cell(engine) else { return Field::absent() };
    let is_best = group.fastest(|_| true).is_some_and(|(best, _)| best.key.engine == engine);
    match (cell.micros(), cell.skipped) {
        (Some(micros), _) => {
            let look = if is_best { Look::Best } else { Look::Plain };
            Field::looking(look, number::figure(micros) + &group.marks(cell))
        }
        (None, Some(_)) => Field::looking(Look::Quiet, "skipped"),
        (None, None) => Field::absent(),
    }
}

fn ratio_field(ratio: f64, mark: &str) -> Field {
    Field::looking(if ratio < 1.0 { Look::Behind } else { Look::Plain }, number::ratio(ratio) + mark)
}

/// The last line: Esker's speed relative to every engine over all rows.
fn foot(groups: &Groups, peers: &[(Peer<'static>, &str)]) -> Line {
    let field = |mean: Option<Mean>| {
        mean.map_or_else(Field::absent, |Mean { value, rows }| Field {
            note: counted(rows as u32, "row"),
            ..ratio_field(value, "")
        })
    };
    let of_engine = |engine: &&str| match *engine {
        OURS => "1".into(),
        peer => field(groups.mean_ratio(OURS, Peer::Named(peer))),
    };
    let means = groups.engines.iter().map(of_engine);
    let ratios = peers.iter().map(|(peer, _)| field(groups.mean_ratio(OURS, *peer)));
    Line::new("Esker\u{2019}s speed relative to each, geometric mean", means.chain(ratios).collect())
}
