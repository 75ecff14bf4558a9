//! How each engine is named and drawn. An engine keeps its colour, its dashes and its marker on the
//! whole page, so that no plot depends on colour alone.

use crate::text::words;
use esker_engines::{ENGINES, registry};

/// Colours of the light page and of the dark page; each has a contrast of at least 4.5 to its
/// background.
const COLOURS: [(&str, &str); 8] = [
    ("#B03A0E", "#FF9A62"),
    ("#1F55C4", "#8FB8FF"),
    ("#0B7048", "#6ADBA6"),
    ("#7A33C9", "#CBADFF"),
    ("#8A5A00", "#F0C75A"),
    ("#0B6B85", "#6DD6EE"),
    ("#B5175F", "#FF9CC8"),
    ("#4D5560", "#C4CBD4"),
];

/// Dash patterns in SVG units; the first one is a solid line.
const DASHES: [&str; 8] = ["none", "7 3", "2 2", "10 3 2 3", "5 5", "12 4", "4 2 1 2", "1 3"];

/// The colour of grid lines: light page, dark page.
pub const GRID: (&str, &str) = ("#DDD9D0", "#3A3D42");
/// The colour of axes and their text: light page, dark page.
pub const AXIS: (&str, &str) = ("#55524C", "#B9BCC2");

/// A shape drawn at chosen points of a line, as points around its centre.
pub type Marker = &'static [(i32, i32)];

const MARKERS: [Marker; 8] = [
    &[(-2, -4), (2, -4), (4, -2), (4, 2), (2, 4), (-2, 4), (-4, 2), (-4, -2)],
    &[(-4, -4), (4, -4), (4, 4), (-4, 4)],
    &[(0, -5), (5, 4), (-5, 4)],
    &[(0, -6), (5, 0), (0, 6), (-5, 0)],
    &[(0, 5), (5, -4), (-5, -4)],
    &[(-1, -5), (1, -5), (1, -1), (5, -1), (5, 1), (1, 1), (1, 5), (-1, 5), (-1, 1), (-5, 1), (-5, -1), (-1, -1)],
    &[(5, 0), (-4, 5), (-4, -5)],
    &[(-5, 0), (4, 5), (4, -5)],
];

/// The engine that the report is about.
pub const OURS: &str = "esker";

/// Where an engine stands in every table and chart: the known ones in their fixed order, others
/// after them.
pub fn rank(engine: &str) -> usize {
    ENGINES.iter().position(|known| *known == engine).unwrap_or(ENGINES.len())
}

/// The engine's name as its authors write it; an unknown one as it is.
pub fn display_name(engine: &str) -> &str {
    registry::row(engine).map_or(engine, |kind| kind.title)
}

/// Engines in a sentence: `A, B and C`.
pub fn listed(engines: &[&str]) -> String {
    words::listed(&engines.iter().map(|engine| display_name(engine)).collect::<Vec<_>>())
}

/// Colour, dashes and marker of one engine.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    /// Its index among the styles.
    index: usize,
    /// The marker, which differs from that of every other engine with the same colour.
    pub marker: Marker,
    /// Width of its lines.
    pub width: u32,
}

impl Style {
    /// The style of `engine`; `others` are the engines of the run that are not known, in their
    /// order.
    pub fn of(engine: &str, others: &[&str]) -> Style {
        let known = rank(engine);
        let position = known + others.iter().position(|other| *other == engine).unwrap_or(0);
        let shift = position / COLOURS.len();
        Style {
            index: position % COLOURS.len(),
            marker: MARKERS[(position + shift) % MARKERS.len()],
            width: if engine == OURS { 3 } else { 2 },
        }
    }

    /// The colour on the light page.
    pub fn colour(&self) -> &'static str {
        COLOURS[self.index].0
    }

    /// The dashes of its lines, as `stroke-dasharray`.
    #[cfg(test)]
    fn dashes(&self) -> &'static str {
        DASHES[self.index]
    }
}

/// Style rules for the plots. The drawing library writes the colours of the light page as
/// attributes; these rules, which outrank attributes, add the dashes and exchange the colours on a
/// dark page.
pub fn plot_rules() -> String {
    let mut rules = String::new();
    for ((light, _), dashes) in COLOURS.iter().zip(DASHES) {
        rules.push_str(&format!(".plot polyline[stroke=\"{light}\"]{{stroke-dasharray:{dashes}}}\n"));
    }
    rules.push_str("@media screen and (prefers-color-scheme:dark){\n");
    for (light, dark) in COLOURS.iter().chain([&GRID, &AXIS]) {
        rules.push_str(&format!(".plot [stroke=\"{light}\"]{{stroke:{dark}}}\n"));
        rules.push_str(&format!(".plot [fill=\"{light}\"]{{fill:{dark}}}\n"));
    }
    rules.push_str("}\n");
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_engines_all_look_different() {
        for (index, engine) in ENGINES.iter().enumerate() {
            for other in &ENGINES[index + 1..] {
                let (one, two) = (Style::of(engine, &[]), Style::of(other, &[]));
                assert_ne!(one.colour(), two.colour());
                assert_ne!(one.marker, two.marker);
                assert_ne!(one.dashes(), two.dashes());
            }
        }
    }

    #[test]
    fn unknown_engines_differ_from_the_known_one_of_their_colour() {
        let first = Style::of("other", &["other", "another"]);
        let known = Style::of(ENGINES[0], &[]);
        assert_eq!(first.colour(), known.colour());
        assert_ne!(first.marker, known.marker);
        assert_eq!(display_name("other"), "other");
    }

    /// Relative luminance of `#RRGGBB`, as WCAG 2 defines it.
    fn luminance(colour: &str) -> f64 {
        let channel = |at: usize| {
            let value = u8::from_str_radix(&colour[at..at + 2], 16).unwrap() as f64 / 255.0;
            if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
    }

    fn contrast(one: &str, two: &str) -> f64 {
        let (high, low) = (luminance(one).max(luminance(two)), luminance(one).min(luminance(two)));
        (high + 0.05) / (low + 0.05)
    }

    #[test]
    fn colours_contrast_with_both_pages() {
        for (light, dark) in COLOURS.iter().chain([&AXIS]) {
            assert!(contrast(light, "#FBFAF7") >= 4.5, "{light} on the light page");
            assert!(contrast(dark, "#17191C") >= 4.5, "{dark} on the dark page");
        }
    }
}
