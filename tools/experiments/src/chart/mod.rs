//! Charts of figures as standalone SVG: lines over numbers, bars over names. Colours follow the
//! reader's light or dark theme; series differ by marker and dashes too, and lines that are drawn
//! first are wider, so that equal series can all be seen.

mod scale;
mod text;

use std::fmt::Write as _;

use self::scale::Scale;
use self::text::{escaped, width};
use crate::measured::{MeasuredFigure, shown};
use crate::plan::Figure;

const WIDTH: f64 = 760.0;
const LEFT: f64 = 94.0;
const RIGHT: f64 = 20.0;
/// Height of the plot.
const PLOT: f64 = 320.0;
/// Height of the axis labels below the plot.
const BELOW: f64 = 56.0;
/// The first line of the legend, and the height of its lines.
const LEGEND: f64 = 52.0;
const LEGEND_LINE: f64 = 20.0;
/// Length of a legend's sample, with the space behind it.
const SAMPLE: f64 = 34.0;

const COLOURS: usize = 6;
const DASHES: [&str; 3] = ["", "7 4", "2 4"];

/// Colours on light and on dark ground, of about equal lightness each.
const STYLE: &str = "\
svg{--ground:#fff;--ink:#1f2328;--soft:#59636e;--grid:#d8dee4;--c0:#0b63c4;--c1:#c2410c;\
--c2:#14803c;--c3:#8b3fc7;--c4:#a8780a;--c5:#59636e}
@media (prefers-color-scheme:dark){svg{--ground:#0d1117;--ink:#e6edf3;--soft:#9198a1;\
--grid:#30363d;--c0:#58a6ff;--c1:#ff8a5c;--c2:#4ac26b;--c3:#c897ff;--c4:#e3b341;--c5:#9198a1}}
text{font:13px system-ui,-apple-system,'Segoe UI',sans-serif;fill:var(--ink)}
.title{font-size:16px;font-weight:600}.tick{fill:var(--soft)}.end{text-anchor:end}
.middle{text-anchor:middle}.grid{stroke:var(--grid)}.axis{stroke:var(--soft)}
.line{fill:none;stroke-width:2}.line.l0{stroke-width:4.5}.line.l1{stroke-width:3}.mark{stroke:var(--ground)}
";

/// The chart of a measured figure.
pub(crate) fn svg(figure: &Figure, measured: &MeasuredFigure) -> String {
    let measured = &drawn(figure, measured);
    let (legend, lines) = legend(figure);
    let top = LEGEND + lines as f64 * LEGEND_LINE + 8.0;
    let height = top + PLOT + BELOW;
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         width=\"{WIDTH}\" height=\"{height}\" role=\"img\" aria-labelledby=\"title text\">\n\
         <title id=\"title\">{}</title>\n<desc id=\"text\">{}</desc>\n<style>\n{STYLE}{}</style>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"var(--ground)\"/>\n\
         <text class=\"title\" x=\"20\" y=\"30\">{}</text>\n{legend}",
        escaped(figure.title),
        escaped(&description(figure, measured)),
        series_styles(),
        escaped(figure.title),
    );
    let frame = Frame { top };
    if figure.x.names.is_empty() {
        lines_of(figure, measured, frame, &mut out)
    } else {
        bars_of(figure, measured, frame, &mut out)
    }
    out.push_str("</svg>\n");
    out
}

/// The series that are drawn.
fn drawn(figure: &Figure, measured: &MeasuredFigure) -> MeasuredFigure {
    let both = figure.series.iter().zip(&measured.series);
    let drawn = both.filter(|(series, _)| series.style.is_some());
    MeasuredFigure {
        series: drawn.map(|(_, measured)| measured.clone()).collect(),
    }
}

/// Where the plot is.
#[derive(Clone, Copy)]
struct Frame {
    top: f64,
}

impl Frame {
    fn bottom(self) -> f64 {
        self.top + PLOT
    }

    fn right(self) -> f64 {
        WIDTH - RIGHT
    }

    /// From the position on a scale, 0 to 1, to a place in the picture.
    fn x(self, position: f64) -> f64 {
        LEFT + position * (self.right() - LEFT)
    }

    fn y(self, position: f64) -> f64 {
        self.bottom() - position * PLOT
    }
}

fn series_styles() -> String {
    let mut out = String::new();
    for colour in 0..COLOURS {
        let _ = writeln!(
            out,
            ".l{colour}{{stroke:var(--c{colour})}}.f{colour}{{fill:var(--c{colour})}}"
        );
    }
    for (index, dashes) in DASHES.iter().enumerate().skip(1) {
        let _ = writeln!(out, ".d{index}{{stroke-dasharray:{dashes}}}");
    }
    // Bars of a second kind are outlines.
    out.push_str(".b1{fill-opacity:.25;stroke-width:1.5}.b2{fill-opacity:.6}\n");
    out
}

/// The legend, and its number of lines.
fn legend(figure: &Figure) -> (String, usize) {
    let mut out = String::new();
    let (mut x, mut line) = (20.0, 0);
    for series in figure.drawn() {
        let (colour, dashes) = series.style.unwrap_or_default();
        let needed = SAMPLE + width(&series.name) + 18.0;
        if x + needed > WIDTH && x > 20.0 {
            (x, line) = (20.0, line + 1);
        }
        let y = LEGEND + f64::from(line) * LEGEND_LINE;
        if figure.x.names.is_empty() {
            let _ = writeln!(
                out,
                "<path class=\"line l{colour} d{dashes}\" d=\"M{x} {y}h26\"/>{}",
                mark(x + 13.0, y, colour)
            );
        } else {
            let _ = writeln!(
                out,
                "<rect class=\"f{colour} l{colour} b{dashes}\" x=\"{x}\" y=\"{}\" width=\"26\" \
                 height=\"12\"/>",
                y - 6.0
            );
        }
        let _ = writeln!(
            out,
            "<text x=\"{}\" y=\"{}\">{}</text>",
            x + SAMPLE,
            y + 4.5,
            escaped(&series.name)
        );
        x += needed;
    }
    (out, line as usize + 1)
}

/// The marker of a colour: a circle, a square, a diamond, a triangle, a turned triangle or a bar.
fn mark(x: f64, y: f64, colour: usize) -> String {
    let shape = match colour {
        0 => format!("M{} {y}a6.5 6.5 0 1 0 13 0a6.5 6.5 0 1 0 -13 0z", x - 6.5),
        1 => format!("M{} {}h9v9h-9z", x - 4.5, y - 4.5),
        2 => format!("M{x} {}l5 5l-5 5l-5 -5z", y - 5.0),
        3 => format!("M{x} {}l5.5 9h-11z", y - 5.5),
        4 => format!("M{x} {}l5.5 -9h-11z", y + 5.5),
        _ => format!("M{} {}h6v4h-6z", x - 3.0, y - 2.0),
    };
    format!("<path class=\"mark f{colour}\" d=\"{shape}\"/>")
}

/// Horizontal lines with their labels, and the labels of both axes.
fn axes(figure: &Figure, y: &Scale, frame: Frame, out: &mut String) {
    let (bottom, right) = (frame.bottom(), frame.right());
    for tick in y.ticks() {
        let at = frame.y(y.position(tick));
        let _ = writeln!(
            out,
            "<path class=\"grid\" d=\"M{LEFT} {at:.1}H{right}\"/>\
             <text class=\"tick end\" x=\"{}\" y=\"{:.1}\">{}</text>",
            LEFT - 8.0,
            at + 4.5,
            y.label(tick)
        );
    }
    let _ = writeln!(
        out,
        "<path class=\"axis\" d=\"M{LEFT} {bottom}H{right}\"/>\n\
         <text class=\"middle\" x=\"{}\" y=\"{}\">{}</text>\n\
         <text class=\"middle\" transform=\"translate(20 {}) rotate(-90)\">{}</text>",
        frame.x(0.5),
        bottom + 44.0,
        escaped(figure.x.label),
        frame.y(0.5),
        escaped(figure.y.label),
    );
}

fn lines_of(figure: &Figure, measured: &MeasuredFigure, frame: Frame, out: &mut String) {
    let places = measured.series.iter().flat_map(|series| &series.points);
    let places: Vec<f64> = places.map(|point| point.x).collect();
    let values = measured.series.iter().flat_map(|series| series.values());
    let x = Scale::tight(&places, figure.x.logarithmic);
    let y = Scale::new(values, figure.y.logarithmic);
    axes(figure, &y, frame, out);
    for tick in x.places(&places) {
        let _ = writeln!(
            out,
            "<text class=\"tick middle\" x=\"{:.1}\" y=\"{}\">{}</text>",
            frame.x(x.position(tick)),
            frame.bottom() + 20.0,
            x.label(tick)
        );
    }
    for (series, drawn) in measured.series.iter().zip(figure.drawn()) {
        let (colour, dashes) = drawn.style.unwrap_or_default();
        let at = |point: &crate::measured::MeasuredPoint| {
            let value = point.y?;
            Some((frame.x(x.position(point.x)), frame.y(y.position(value))))
        };
        let mut path = String::new();
        let mut is_begun = false;
        for point in &series.points {
            let place = at(point);
            if let Some((x, y)) = place {
                let _ = write!(path, "{}{x:.1} {y:.1}", if is_begun { 'L' } else { 'M' });
            }
            is_begun = place.is_some();
        }
        let _ = writeln!(
            out,
            "<path class=\"line l{colour} d{dashes}\" d=\"{path}\"/>"
        );
        for (x, y) in series.points.iter().filter_map(at) {
            out.push_str(&mark(x, y, colour));
        }
        out.push('\n');
    }
}

fn bars_of(figure: &Figure, measured: &MeasuredFigure, frame: Frame, out: &mut String) {
    let values = measured.series.iter().flat_map(|series| series.values());
    let y = Scale::new(values.chain([0.0]), false);
    axes(figure, &y, frame, out);
    let names = figure.x.names;
    let group = 1.0 / names.len().max(1) as f64;
    let bar = (frame.right() - LEFT) * group * 0.8 / measured.series.len().max(1) as f64;
    for (place, name) in names.iter().enumerate() {
        let _ = writeln!(
            out,
            "<text class=\"tick middle\" x=\"{:.1}\" y=\"{}\">{}</text>",
            frame.x((place as f64 + 0.5) * group),
            frame.bottom() + 20.0,
            escaped(name)
        );
    }
    for (index, (series, drawn)) in measured.series.iter().zip(figure.drawn()).enumerate() {
        let (colour, dashes) = drawn.style.unwrap_or_default();
        for point in &series.points {
            let Some(value) = point.y else { continue };
            let left = frame.x((point.x + 0.1) * group) + index as f64 * bar;
            let top = frame.y(y.position(value));
            let _ = writeln!(
                out,
                "<rect class=\"f{colour} l{colour} b{dashes}\" x=\"{left:.1}\" y=\"{top:.1}\" \
                 width=\"{:.1}\" height=\"{:.1}\"/>",
                bar - 3.0,
                frame.bottom() - top
            );
        }
    }
}

/// What the chart shows, for those who do not see it.
fn description(figure: &Figure, measured: &MeasuredFigure) -> String {
    let mut out = format!("{} over {}.", figure.y.label, figure.x.label);
    for series in &measured.series {
        let _ = write!(out, " {}:", series.name);
        for (index, point) in series.points.iter().enumerate() {
            let place = match figure.x.names.get(point.x as usize) {
                Some(name) => (*name).to_owned(),
                None => shown(point.x),
            };
            let value = point.y.map_or_else(|| "none".to_owned(), shown);
            let comma = if index == 0 { "" } else { ";" };
            let _ = write!(out, "{comma} {value} at {place}");
        }
        out.push('.');
    }
    out
}
