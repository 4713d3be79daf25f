//! Charts of series over one axis: lines over numbers, bars over names. A chart is a figure of a
//! page, or a picture of its own.

use maud::{Markup, PreEscaped, html};

use super::axis::{Axis, Range};

/// Points of one colour, joined in their order, or the bars of one colour.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// The number of its colour, of which there are eight, and of its marks.
    pub colour: usize,
    /// The number of its dashes, below [`DASHES`]; 0 is a solid line.
    pub dashes: usize,
    /// Its points. One without a finite number interrupts the line.
    pub points: Vec<(f64, f64)>,
}

impl Series {
    /// Whether it has several points, of which no two are joined.
    fn is_scattered(&self) -> bool {
        let is_point = |point: &(f64, f64)| point.1.is_finite();
        self.points.iter().filter(|point| is_point(point)).count() > 1
            && !self
                .points
                .windows(2)
                .any(|pair| is_point(&pair[0]) && is_point(&pair[1]))
    }
}

/// A chart of lines, or of bars where the horizontal axis has names.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// What it shows, as a sentence; also its text alternative.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis, which begins at 0 where it is linear.
    pub y: Axis,
    /// The series that are compared.
    pub series: Vec<Series>,
    /// A point that is marked, by its horizontal number.
    pub marked: Option<f64>,
}

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 68.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 16.0;
const BOTTOM: f64 = 52.0;
const COLOURS: usize = 8;

/// Kinds of dashes.
pub const DASHES: usize = 3;

/// Height of a line of the legend of a picture.
const LEGEND_LINE: f64 = 20.0;

/// Maximum number of points of a series that get a mark of their own.
const MOST_MARKS: usize = 40;

/// The share of the place of a name that its bars take.
const BARS_SHARE: f64 = 0.8;

struct Place {
    x: Range,
    y: Range,
}

impl Place {
    fn x(&self, number: f64) -> f64 {
        LEFT + self.x.place(number) * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, number: f64) -> f64 {
        HEIGHT - BOTTOM - self.y.place(number) * (HEIGHT - TOP - BOTTOM)
    }
}

impl Chart {
    /// The chart inside a page, whose styles it takes.
    pub fn figure(&self) -> Markup {
        html! {
            figure.chart {
                figcaption { (self.title) }
                (self.svg(false))
                @if self.series.len() > 1 {
                    ul.legend {
                        @for series in &self.series {
                            li class=(class(series)) { span.key aria-hidden="true" {} (series.name) }
                        }
                    }
                }
            }
        }
    }

    /// The chart as an SVG document of its own, with styles for light and dark. Series also differ by marks and
    /// dashes, and earlier lines are wider, so that equal lines stay visible.
    pub fn document(&self) -> String {
        self.svg(true).into_string() + "\n"
    }

    fn svg(&self, is_document: bool) -> Markup {
        let points = || self.series.iter().flat_map(|series| series.points.iter());
        let xs: Vec<f64> = points().map(|point| point.0).collect();
        let ys: Vec<f64> = points().map(|point| point.1).collect();
        let has_names = !self.x.names.is_empty();
        let place = Place {
            x: if has_names {
                Range::of_names(self.x.names.len())
            } else {
                Range::of(self.x.scale, &xs, false)
            },
            y: Range::of(self.y.scale, &ys, true),
        };
        let legend = if is_document {
            LEGEND_LINE * self.series.len() as f64
        } else {
            0.0
        };
        let view = format!("0 0 {WIDTH} {}", HEIGHT + legend);
        html! {
            svg xmlns=[is_document.then_some("http://www.w3.org/2000/svg")] viewBox=(view) role="img" aria-label=(self.alternative()) class="line" {
                @if is_document { style { (PreEscaped(DOCUMENT_STYLE)) } rect class="paper" width="100%" height="100%" {} }
                (self.axes(&place))
                @for (number, series) in self.series.iter().enumerate() {
                    g class=(class(series)) {
                        @if has_names { (self.bars(number, &place)) } @else { (line(series, &place, is_document)) }
                    }
                }
                @if let Some((x, y)) = self.marked_point() {
                    circle class="marked" cx=(short(place.x(x))) cy=(short(place.y(y))) r="7" {}
                }
                @if is_document { (self.legend()) }
            }
        }
    }

    fn axes(&self, place: &Place) -> Markup {
        let (left, right) = (LEFT, WIDTH - RIGHT);
        let (top, bottom) = (TOP, HEIGHT - BOTTOM);
        let middle = format!("translate(16 {}) rotate(-90)", (top + bottom) / 2.0);
        html! {
            g class="axes" {
                @for &tick in &place.y.ticks {
                    @let y = place.y(tick);
                    line class="grid" x1=(left) x2=(right) y1=(short(y)) y2=(short(y)) {}
                    text class="end" x=(left - 8.0) y=(short(y + 4.0)) { (self.y.text(tick)) }
                }
                @for &tick in &place.x.ticks {
                    @let x = place.x(tick);
                    line class="grid" x1=(short(x)) x2=(short(x)) y1=(bottom) y2=(bottom + 5.0) {}
                    text class="middle" x=(short(x)) y=(bottom + 20.0) { (self.x.text(tick)) }
                }
                text class="middle title" x=((left + right) / 2.0) y=(HEIGHT - 8.0) { (self.x.title) }
                text class="middle title" transform=(middle) { (self.y.title) }
            }
        }
    }

    /// The bars of a series, next to those of the others.
    fn bars(&self, number: usize, place: &Place) -> Markup {
        let bar = BARS_SHARE / self.series.len() as f64;
        let width = place.x(bar) - place.x(0.0);
        let series = &self.series[number];
        html! {
            @for &(x, y) in series.points.iter().filter(|point| point.1.is_finite()) {
                @let (left, top) = (place.x(x - BARS_SHARE / 2.0 + number as f64 * bar), place.y(y));
                rect class="bar" x=(short(left)) y=(short(top)) width=(short(width - 3.0)) height=(short(HEIGHT - BOTTOM - top)) {}
            }
        }
    }

    /// The legend of a picture, one line per series.
    fn legend(&self) -> Markup {
        html! {
            @for (number, series) in self.series.iter().enumerate() {
                @let y = HEIGHT + LEGEND_LINE * number as f64 + 6.0;
                g class=(class(series)) {
                    @if self.x.names.is_empty() {
                        line class="sample" x1=(LEFT) x2=(LEFT + 28.0) y1=(y) y2=(y) {}
                        (mark(LEFT + 14.0, y, series.colour))
                    } @else {
                        rect class="bar" x=(LEFT) y=(y - 6.0) width="28" height="12" {}
                    }
                    text x=(LEFT + 36.0) y=(y + 4.0) { (series.name) }
                }
            }
        }
    }

    fn marked_point(&self) -> Option<(f64, f64)> {
        let x = self.marked?;
        let mut points = self.series.first()?.points.iter();
        points
            .find(|point| point.0 == x && point.1.is_finite())
            .copied()
    }

    /// The chart in words: title, the ends of each series, and where it has no value.
    fn alternative(&self) -> String {
        let mut text = format!(
            "{} Horizontal: {}. Vertical: {}.",
            self.title, self.x.title, self.y.title
        );
        for series in &self.series {
            let (finite, others): (Vec<&(f64, f64)>, Vec<_>) =
                series.points.iter().partition(|point| point.1.is_finite());
            if series.is_scattered() {
                text += &format!(" {}: {} points.", series.name, finite.len());
                continue;
            }
            if let (Some(first), Some(last)) = (finite.first(), finite.last()) {
                text += &format!(
                    " {}: from {} at {} to {} at {}.",
                    series.name,
                    self.y.text(first.1),
                    self.x.text(first.0),
                    self.y.text(last.1),
                    self.x.text(last.0)
                );
            }
            for point in others {
                text += &format!(" {}: none at {}.", series.name, self.x.text(point.0));
            }
        }
        text
    }
}

/// The line of a series, which a point without a finite number interrupts, and its marks.
fn line(series: &Series, place: &Place, is_document: bool) -> Markup {
    let parts = series
        .points
        .split(|point| !point.1.is_finite() || !point.0.is_finite());
    let joined = |points: &[(f64, f64)]| {
        let points = points
            .iter()
            .map(|&(x, y)| format!("{},{}", short(place.x(x)), short(place.y(y))));
        points.collect::<Vec<_>>().join(" ")
    };
    html! {
        @for part in parts.filter(|points| points.len() > 1) { polyline points=(joined(part)) {} }
        @if series.points.len() <= MOST_MARKS || series.is_scattered() {
            @for &(x, y) in series.points.iter().filter(|point| point.1.is_finite()) {
                @let (x, y) = (place.x(x), place.y(y));
                @if is_document { (mark(x, y, series.colour)) } @else { circle cx=(short(x)) cy=(short(y)) r="3.5" {} }
            }
        }
    }
}

/// The mark of a colour: a circle, a square, a diamond, a triangle, a turned triangle or a bar.
fn mark(x: f64, y: f64, colour: usize) -> Markup {
    let shape = match colour {
        0 => "m-6.5 0a6.5 6.5 0 1 0 13 0a6.5 6.5 0 1 0 -13 0z",
        1 => "m-4.5 -4.5h9v9h-9z",
        2 => "m0 -5l5 5l-5 5l-5 -5z",
        3 => "m0 -5.5l5.5 9h-11z",
        4 => "m0 5.5l5.5 -9h-11z",
        _ => "m-3 -2h6v4h-6z",
    };
    html! { path class="mark" d=(format!("M{} {}{shape}", short(x), short(y))) {} }
}

fn class(series: &Series) -> String {
    let (colour, dashes) = (series.colour % COLOURS, series.dashes);
    match dashes {
        0 => format!("series s{colour}"),
        _ => format!("series s{colour} d{dashes}"),
    }
}

fn short(number: f64) -> String {
    format!("{number:.1}")
}

/// The styles of a chart that is a document of its own.
const DOCUMENT_STYLE: &str = include_str!("chart.css");

#[cfg(test)]
mod tests {
    use super::{Axis, Chart, Series};

    fn chart(points: Vec<(f64, f64)>) -> Chart {
        Chart {
            title: "Loss by step <b>.".to_owned(),
            x: Axis::linear("step", false),
            y: Axis::linear("detail lost", true),
            series: vec![Series {
                name: "loss".to_owned(),
                colour: 0,
                dashes: 0,
                points,
            }],
            marked: Some(2.0),
        }
    }

    #[test]
    fn a_chart_has_a_line_marks_and_a_text_alternative() {
        let svg = chart(vec![(0.0, 1.0), (1.0, 0.5), (2.0, 0.25)]).document();
        assert_eq!(svg.matches("<polyline").count(), 1);
        assert_eq!(svg.matches("class=\"mark").count(), 3 + 1 + 1);
        assert!(svg.contains("loss: from 100 % at 0 to 25 % at 2."), "{svg}");
        assert!(svg.contains("&lt;b&gt;") && !svg.contains("<b>"));
    }

    #[test]
    fn a_point_without_a_number_interrupts_the_line() {
        let points = vec![
            (0.0, 1.0),
            (1.0, 0.9),
            (2.0, f64::NAN),
            (3.0, 0.5),
            (4.0, 0.4),
        ];
        let svg = chart(points).document();
        assert_eq!(svg.matches("<polyline").count(), 2);
        assert!(!svg.contains("NaN"));
    }

    #[test]
    fn places_with_names_have_bars() {
        let mut chart = chart(vec![(0.0, 0.5), (1.0, 1.0)]);
        chart.x.names = vec!["few".to_owned(), "many".to_owned()];
        let svg = chart.document();
        // The legend has one too.
        assert_eq!(svg.matches("class=\"bar").count(), 3);
        assert!(svg.contains("from 50 % at few to 100 % at many"), "{svg}");
    }

    #[test]
    fn an_empty_chart_is_still_a_picture() {
        assert!(chart(Vec::new()).document().contains("</svg>"));
    }
}
