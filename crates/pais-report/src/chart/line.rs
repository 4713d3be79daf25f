//! Line charts: several series over one axis.

use maud::{Markup, html};

use super::axis::{Axis, Range, Scale, tick_text};

/// Points of one colour, joined in their order.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Its points. One without a finite number interrupts the line.
    pub points: Vec<(f64, f64)>,
}

/// A line chart.
#[derive(Clone, Debug, PartialEq)]
pub struct LineChart {
    /// What it shows, as a sentence; also its text alternative.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis, which begins at 0 where it is linear.
    pub y: Axis,
    /// The lines, at most eight of which have colours of their own.
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

/// Most points of a series that get a mark of their own.
const MOST_MARKS: usize = 40;

struct Place {
    x: Range,
    y: Range,
}

impl Place {
    fn point(&self, (x, y): (f64, f64)) -> (f64, f64) {
        (
            LEFT + self.x.place(x) * (WIDTH - LEFT - RIGHT),
            HEIGHT - BOTTOM - self.y.place(y) * (HEIGHT - TOP - BOTTOM),
        )
    }
}

impl LineChart {
    /// The chart inside a page, whose styles it takes.
    pub fn figure(&self) -> Markup {
        html! {
            figure.chart {
                figcaption { (self.title) }
                (self.svg(None))
                @if self.series.len() > 1 {
                    ul.legend {
                        @for (number, series) in self.series.iter().enumerate() {
                            li class=(colour(number)) { span.key aria-hidden="true" {} (series.name) }
                        }
                    }
                }
            }
        }
    }

    /// The chart as a document of its own, with styles for light and dark.
    pub fn document(&self) -> String {
        self.svg(Some(DOCUMENT_STYLE)).into_string()
    }

    fn svg(&self, style: Option<&str>) -> Markup {
        let points = || self.series.iter().flat_map(|series| series.points.iter());
        let xs: Vec<f64> = points().map(|point| point.0).collect();
        let ys: Vec<f64> = points().map(|point| point.1).collect();
        let place = Place {
            x: Range::of(self.x.scale, &xs, false),
            y: Range::of(self.y.scale, &ys, true),
        };
        let legend = if style.is_some() {
            20.0 * self.series.len() as f64
        } else {
            0.0
        };
        let view = format!("0 0 {WIDTH} {}", HEIGHT + legend);
        html! {
            svg xmlns=[style.map(|_| "http://www.w3.org/2000/svg")] viewBox=(view) role="img" aria-label=(self.alternative()) class="line" {
                @if let Some(style) = style { style { (maud::PreEscaped(style)) } rect class="paper" width="100%" height="100%" {} }
                (self.axes(&place))
                @for (number, series) in self.series.iter().enumerate() {
                    g class=(colour(number)) {
                        @for line in lines(series, &place) { polyline points=(line) {} }
                        @if series.points.len() <= MOST_MARKS {
                            @for point in series.points.iter().filter(|point| point.1.is_finite()) {
                                @let (x, y) = place.point(*point);
                                circle cx=(short(x)) cy=(short(y)) r="3.5" {}
                            }
                        }
                    }
                }
                @if let Some((x, y)) = self.marked_point(&place) {
                    circle class="marked" cx=(short(x)) cy=(short(y)) r="7" {}
                }
                @if style.is_some() {
                    @for (number, series) in self.series.iter().enumerate() {
                        @let y = HEIGHT + 20.0 * number as f64 + 6.0;
                        g class=(colour(number)) {
                            line class="sample" x1=(LEFT) x2=(LEFT + 28.0) y1=(y) y2=(y) {}
                            text x=(LEFT + 36.0) y=(y + 4.0) { (series.name) }
                        }
                    }
                }
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
                    @let y = HEIGHT - BOTTOM - place.y.place(tick) * (HEIGHT - TOP - BOTTOM);
                    line class="grid" x1=(left) x2=(right) y1=(short(y)) y2=(short(y)) {}
                    text class="end" x=(left - 8.0) y=(short(y + 4.0)) { (tick_text(tick, self.y.is_share)) }
                }
                @for &tick in &place.x.ticks {
                    @let x = LEFT + place.x.place(tick) * (WIDTH - LEFT - RIGHT);
                    line class="grid" x1=(short(x)) x2=(short(x)) y1=(bottom) y2=(bottom + 5.0) {}
                    text class="middle" x=(short(x)) y=(bottom + 20.0) { (tick_text(tick, self.x.is_share)) }
                }
                text class="middle title" x=((left + right) / 2.0) y=(HEIGHT - 8.0) { (self.x.title) }
                text class="middle title" transform=(middle) { (self.y.title) }
            }
        }
    }

    fn marked_point(&self, place: &Place) -> Option<(f64, f64)> {
        let x = self.marked?;
        let mut points = self.series.first()?.points.iter();
        let point = points.find(|point| point.0 == x && point.1.is_finite())?;
        Some(place.point(*point))
    }

    /// The chart in words: title, and the ends of each series.
    fn alternative(&self) -> String {
        let mut text = format!(
            "{} Horizontal: {}. Vertical: {}.",
            self.title, self.x.title, self.y.title
        );
        for series in &self.series {
            let finite = || series.points.iter().filter(|point| point.1.is_finite());
            if let (Some(first), Some(last)) = (finite().next(), finite().next_back()) {
                text += &format!(
                    " {}: from {} at {} to {} at {}.",
                    series.name,
                    tick_text(first.1, self.y.is_share),
                    tick_text(first.0, self.x.is_share),
                    tick_text(last.1, self.y.is_share),
                    tick_text(last.0, self.x.is_share)
                );
            }
        }
        text
    }
}

/// The lines of a series, which a point without a finite number interrupts.
fn lines(series: &Series, place: &Place) -> Vec<String> {
    let parts = series
        .points
        .split(|point| !point.1.is_finite() || !point.0.is_finite());
    let line = |points: &[(f64, f64)]| {
        let points = points.iter().map(|point| {
            let (x, y) = place.point(*point);
            format!("{},{}", short(x), short(y))
        });
        points.collect::<Vec<_>>().join(" ")
    };
    parts.filter(|points| points.len() > 1).map(line).collect()
}

fn colour(number: usize) -> String {
    format!("series s{}", number % COLOURS)
}

fn short(number: f64) -> String {
    format!("{number:.1}")
}

/// The styles of a chart that is a document of its own.
const DOCUMENT_STYLE: &str = include_str!("chart.css");

/// An axis with equal differences.
pub fn linear(title: &str, is_share: bool) -> Axis {
    Axis {
        title: title.to_owned(),
        scale: Scale::Linear,
        is_share,
    }
}

#[cfg(test)]
mod tests {
    use super::{LineChart, Series, linear};

    fn chart(points: Vec<(f64, f64)>) -> LineChart {
        LineChart {
            title: "Loss by step <b>.".to_owned(),
            x: linear("step", false),
            y: linear("detail lost", true),
            series: vec![Series {
                name: "loss".to_owned(),
                points,
            }],
            marked: Some(2.0),
        }
    }

    #[test]
    fn a_chart_has_a_line_marks_and_a_text_alternative() {
        let svg = chart(vec![(0.0, 1.0), (1.0, 0.5), (2.0, 0.25)]).document();
        assert_eq!(svg.matches("<polyline").count(), 1);
        assert_eq!(svg.matches("<circle").count(), 4);
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
    fn an_empty_chart_is_still_a_picture() {
        assert!(chart(Vec::new()).document().contains("</svg>"));
    }
}
