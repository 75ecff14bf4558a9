//! All rows in one table, Esker's ratios to its peers, and what they come to.

use super::row::anchor;
use crate::report::blocks::{Block, Column, Field, Line, Look, Table};
use crate::report::engine_style::{OURS, display_name};
use crate::report::groups::{Group, Groups, Mean, Peer, REFERENCE_PEER, Ratio};
use crate::report::measured::Measured;
use crate::report::number;
use crate::report::words::counted;

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
    let (median, ratios) = (
        if groups.repetitions > 1 { "Median microseconds" } else { "Microseconds" },
        if peers.is_empty() {
            ""
        } else {
            " The ratios say how many times as fast as the peer Esker is: below 1, with a hollow triangle, it is slower."
        },
    );
    let engines = groups.engines.iter();
    let mut columns: Vec<Column> =
        engines.map(|engine| Column { ours: *engine == OURS, ..Column::number(display_name(engine)) }).collect();
    let ratio_columns = peers.iter().enumerate();
    columns.extend(ratio_columns.map(|(index, (_, name))| Column { pinned: index == 0, ..Column::number(*name) }));
    Table {
        caption: format!(
            "{median} of wall time per operation; lower is better. Bold with a dot marks the best of a row.{ratios}"
        ),
        head: "Row".into(),
        columns,
        lines: groups.groups.iter().enumerate().map(|(index, group)| line(groups, &peers, index, group)).collect(),
        foot: if peers.is_empty() { Vec::new() } else { vec![foot(groups, &peers)] },
    }
}

fn line(groups: &Groups, peers: &[(Peer<'static>, &str)], index: usize, group: &Group) -> Line {
    let best = group.fastest(|_| true).map(|(cell, _)| cell.key.engine.as_str());
    let mut cells: Vec<Field> =
        groups.engines.iter().map(|engine| cell(group, group.cell(engine), best == Some(*engine))).collect();
    for (peer, _) in peers {
        let ratio = group.ratio(OURS, *peer);
        let field = ratio.map_or_else(Field::absent, |Ratio { value, mark, .. }| ratio_field(value, mark));
        let note = match (peer, ratio) {
            (Peer::Best, Some(ratio)) => display_name(ratio.peer).to_string(),
            _ => String::new(),
        };
        cells.push(Field { note, ..field });
    }
    Line { link: Some(anchor(index)), ..Line::new(groups.label(group), cells) }
}

fn cell(group: &Group, cell: Option<&Measured>, best: bool) -> Field {
    let micros = cell.and_then(|cell| Some((cell, cell.micros()?)));
    match (micros, cell.and_then(|cell| cell.skipped)) {
        (Some((cell, micros)), _) => {
            let look = if best { Look::Best } else { Look::Plain };
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
