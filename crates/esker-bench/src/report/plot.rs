//! Line plots as SVG text. The result holds no text but the axes' own, so it may stand in a page
//! unescaped.

use super::engine_style::{AXIS, GRID, Style};
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Width and height of a plot in SVG units; the page scales it.
pub const SIZE: (u32, u32) = (440, 290);

/// One axis, in the units of the data.
#[derive(Clone)]
pub struct Axis {
    /// What the axis shows.
    pub title: String,
    /// Where it begins; above 0 if it is logarithmic.
    low: f64,
    /// Where it ends, above `low`.
    high: f64,
    logarithmic: bool,
    /// Where lines and labels stand.
    ticks: Vec<(f64, String)>,
}

/// One engine's line.
pub struct Curve {
    /// How it is drawn.
    pub style: Style,
    /// Its points, from left to right.
    pub points: Vec<(f64, f64)>,
    /// The points that carry a marker.
    pub marked: Vec<(f64, f64)>,
}

impl Axis {
    /// An axis from 0 to at least `high`.
    pub fn linear(title: &str, high: f64, label: impl Fn(f64) -> String) -> Axis {
        let high = if high.is_finite() && high > 0.0 { high } else { 1.0 };
        let step = step_near(high / 5.0);
        let count = (high / step - 1e-9).ceil().max(1.0);
        let ticks = (0..=count as u32).map(|index| index as f64 * step).map(|value| (value, label(value))).collect();
        Axis { title: title.to_string(), low: 0.0, high: count * step, logarithmic: false, ticks }
    }

    /// A logarithmic axis that holds `low` and `high` and begins and ends at 1, 2 or 5 times a
    /// power of ten.
    pub fn logarithmic(title: &str, low: f64, high: f64, label: impl Fn(f64) -> String) -> Axis {
        let low = if low.is_finite() && low > 0.0 { low } else { 1.0 };
        let high = if high.is_finite() && high > low * 1.01 { high } else { low * 10.0 };
        let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
        let marks: Vec<f64> = (first..=last).flat_map(|power| [1.0, 2.0, 5.0].map(|m| m * 10f64.powi(power))).collect();
        let low = marks.iter().copied().rfind(|mark| *mark <= low * 1.0001).unwrap_or(low);
        let high = marks.iter().copied().find(|mark| *mark >= high * 0.9999).unwrap_or(high);
        let dense = high / low <= 120.0;
        // A power of ten is its own leading digit; rounding leaves a small remainder.
        let is_power = |mark: f64| (mark.log10() - mark.log10().round()).abs() < 1e-6;
        let shown = marks.into_iter().filter(|mark| (low..=high).contains(mark) && (dense || is_power(*mark)));
        let ticks = shown.map(|mark| (mark, label(mark))).collect();
        Axis { title: title.to_string(), low, high, logarithmic: true, ticks }
    }

    /// A logarithmic axis with lines and labels at the given values only.
    pub fn logarithmic_at(title: &str, low: f64, high: f64, ticks: Vec<(f64, String)>) -> Axis {
        Axis { title: title.to_string(), low, high, logarithmic: true, ticks }
    }

    /// A value's position along the axis: 0 at its beginning, 1 at its end. Values outside lie at
    /// the nearer end.
    fn position(&self, value: f64) -> f64 {
        let scale = |value: f64| if self.logarithmic { value.log10() } else { value };
        let inside = if value.is_nan() { self.low } else { value.clamp(self.low, self.high) };
        (scale(inside) - scale(self.low)) / (scale(self.high) - scale(self.low))
    }
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        limit.0 + (self.position(*value) * (limit.1 - limit.0) as f64).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _hint: Hint) -> Vec<f64> {
        self.ticks.iter().map(|(value, _)| *value).collect()
    }

    fn range(&self) -> std::ops::Range<f64> {
        self.low..self.high
    }
}

impl ValueFormatter<f64> for Axis {
    fn format(value: &f64) -> String {
        value.to_string()
    }

    fn format_ext(&self, value: &f64) -> String {
        let tick = self.ticks.iter().find(|(at, _)| at == value);
        tick.map_or_else(|| value.to_string(), |(_, label)| label.clone())
    }
}

/// The step of 1, 2 or 5 times a power of ten at or above `target`.
fn step_near(target: f64) -> f64 {
    let power = 10f64.powf(target.log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * power).find(|step| *step >= target * 0.9999).unwrap_or(10.0 * power)
}

/// The drawing, without the `svg` element around it. The first curve is drawn last, on top of the
/// others. None if the library refuses to draw.
pub fn draw(x: &Axis, y: &Axis, curves: &[Curve]) -> Option<String> {
    let mut svg = String::new();
    draw_into(&mut svg, x, y, curves).ok()?;
    let start = svg.find("<svg").and_then(|at| Some(at + svg[at..].find('>')? + 1))?;
    let end = svg.rfind("</svg>")?;
    Some(svg[start..end].replace('\n', ""))
}

type DrawResult = Result<(), Box<dyn std::error::Error>>;

fn draw_into(svg: &mut String, x: &Axis, y: &Axis, curves: &[Curve]) -> DrawResult {
    let area = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    let (axis, grid) = (colour(AXIS.0), colour(GRID.0));
    let mut chart = ChartBuilder::on(&area)
        .margin(6)
        .margin_top(10)
        .margin_right(36)
        .x_label_area_size(44)
        .y_label_area_size(70)
        .build_cartesian_2d(x.clone(), y.clone())?;
    let text = ("sans-serif", 12).into_font().color(&axis);
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(grid)
        .axis_style(axis)
        .label_style(text.clone())
        .axis_desc_style(text.pos(Pos::new(HPos::Center, VPos::Top)))
        .x_labels(x.ticks.len())
        .y_labels(y.ticks.len())
        .x_desc(&x.title)
        .y_desc(&y.title)
        .draw()?;
    for curve in curves.iter().rev() {
        let stroke = colour(curve.style.colour()).stroke_width(curve.style.width);
        chart.draw_series(LineSeries::new(curve.points.iter().copied(), stroke))?;
        let fill = colour(curve.style.colour()).filled();
        let marker = |at| EmptyElement::at(at) + Polygon::new(curve.style.marker.to_vec(), fill);
        chart.draw_series(curve.marked.iter().copied().map(marker))?;
    }
    area.present()?;
    Ok(())
}

/// `#RRGGBB` as a colour; black if it is none.
fn colour(hex: &str) -> RGBColor {
    let channel = |at: usize| hex.get(at..at + 2).and_then(|text| u8::from_str_radix(text, 16).ok()).unwrap_or(0);
    RGBColor(channel(1), channel(3), channel(5))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|(_, label)| label.as_str()).collect()
    }

    #[test]
    fn linear_axes_end_at_a_round_value() {
        let axis = Axis::linear("", 93.0, |value| value.to_string());
        assert_eq!((axis.low, axis.high), (0.0, 100.0));
        assert_eq!(labels(&axis), ["0", "20", "40", "60", "80", "100"]);
        assert_eq!(Axis::linear("", f64::NAN, |value| value.to_string()).high, 1.0);
    }

    #[test]
    fn logarithmic_axes_hold_their_data() {
        let axis = Axis::logarithmic("", 3.0, 70_000.0, |value| format!("{value:.0}"));
        assert_eq!((axis.low, axis.high), (2.0, 100_000.0));
        assert_eq!(labels(&axis), ["10", "100", "1000", "10000", "100000"]);
        let axis = Axis::logarithmic("", 1.5, 9.0, |value| format!("{value:.0}"));
        assert_eq!(labels(&axis), ["1", "2", "5", "10"]);
        let axis = Axis::logarithmic("", 0.0, f64::INFINITY, |value| format!("{value:.0}"));
        assert!(axis.low > 0.0 && axis.high > axis.low);
    }
}
