//! The combinations of a sweep as a page: loss against risk, and which combination is the best.

use maud::{Markup, html};

use crate::chart::{Axis, Chart, DASHES, Series};
use crate::page::document;
use crate::table::{Column, Row, table};
use crate::words::{percent, percent_at_most};

/// What is known about a sweep.
#[derive(Clone, Debug, Default)]
pub struct SweepPage {
    /// The id of the job.
    pub job: String,
    /// The name of its dataset; `None` where it was deleted.
    pub dataset: Option<String>,
    /// Its combinations, in the order of the lists.
    pub combinations: Vec<SweepPoint>,
}

/// One combination.
#[derive(Clone, Debug, PartialEq)]
pub struct SweepPoint {
    /// The combination in words, such as `L 2, K 5, C 20 %`.
    pub name: String,
    /// What it promises in addition to *K*.
    pub promise: SweepPromise,
    /// Its table; `None` where no table meets it.
    pub table: Option<SweepTable>,
}

/// What a combination promises in addition to *K*. Risks are compared only if the promises are: the risk from
/// an adversary who knows two attributes says nothing about one who knows three.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SweepPromise {
    /// *L*: attributes that somebody may know, or the diversity of groups; `None` for all attributes.
    pub l: Option<f64>,
    /// *C*; 1 without a bound.
    pub c: f64,
}

impl SweepPromise {
    /// Whether it is at least as strong as another one.
    fn covers(self, other: Self) -> bool {
        let l = |it: Self| it.l.unwrap_or(f64::INFINITY);
        l(self) >= l(other) && self.c <= other.c
    }

    fn words(self) -> String {
        match self.l {
            Some(l) => format!("L {l}, C {}", percent(self.c)),
            None => format!("C {}", percent(self.c)),
        }
    }
}

/// The table of a combination in figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SweepTable {
    /// Mean loss of detail (NCP), 0 to 1.
    pub loss: f64,
    /// Discernibility ratio, 0 to 1.
    pub dr: f64,
    /// Records of the smallest group that an adversary of the model can know.
    pub smallest: u64,
    /// Records left out.
    pub suppressed: u64,
}

impl SweepTable {
    /// The probability of picking the right record in the smallest group.
    fn risk(self) -> f64 {
        1.0 / self.smallest.max(1) as f64
    }

    /// Whether another table has no greater loss and risk, and one of them smaller.
    fn is_dominated_by(self, other: Self) -> bool {
        let no_worse = other.loss <= self.loss && other.risk() <= self.risk();
        no_worse && (other.loss < self.loss || other.risk() < self.risk())
    }

    /// The distance to a table that loses nothing and has no risk.
    fn distance(self) -> f64 {
        self.loss.hypot(self.risk())
    }
}

/// How a combination compares with the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rank {
    /// Among the combinations with its promise that none dominates, the one nearest to no loss and no risk.
    Best,
    /// No other that promises as much has no greater loss and risk, and one of them smaller.
    Undominated,
    /// Another has.
    Dominated,
    /// No table meets it.
    Failed,
}

/// The number of the colour of dominated combinations.
const DOMINATED_COLOUR: usize = 1;

/// The numbers of the colours of the lines.
const FRONTIER_COLOURS: [usize; 7] = [0, 2, 3, 4, 5, 6, 7];

impl SweepPage {
    /// The page as an HTML document.
    pub fn render(&self) -> String {
        let ranks = self.ranks();
        let title = match &self.dataset {
            Some(dataset) => format!("Combinations compared: {dataset}"),
            None => "Combinations compared".to_owned(),
        };
        let best: Vec<(&str, SweepTable)> = self
            .combinations
            .iter()
            .zip(&ranks)
            .filter(|(_, rank)| **rank == Rank::Best)
            .filter_map(|(one, _)| Some((one.name.as_str(), one.table?)))
            .collect();
        let content = html! {
            header { h1 { (title) } p { "Job " code { (self.job) } } }
            section {
                @if best.is_empty() { p { "No combination has a table yet." } }
                @for (name, table) in &best {
                    p {
                        "Best: " strong { (name) } ", which loses " (percent(table.loss))
                        " of the detail; the chance to pick the right one of those that fit is at most "
                        (percent_at_most(table.risk())) "."
                    }
                }
                @if best.len() > 1 {
                    p {
                        "There is a best one for each L and C: a chance holds for somebody who knows L attributes, so chances of \
                         different L are not comparable."
                    }
                }
                p {
                    "A combination is dominated if another with at least the same guarantee has no greater loss and risk, and one of them smaller. Among the "
                    "others, the best is the one nearest to zero loss and zero risk; which loss and which risk are acceptable is yours "
                    "to decide. Any combination with a table can be released."
                }
                @if !best.is_empty() { (self.chart(&ranks).figure()) }
                (self.table(&ranks))
            }
        };
        document(&title, &content)
    }

    fn ranks(&self) -> Vec<Rank> {
        let is_dominated = |one: &SweepPoint, table: SweepTable| {
            self.combinations.iter().any(|other| {
                let is_better = |other| table.is_dominated_by(other);
                other.promise.covers(one.promise) && other.table.is_some_and(is_better)
            })
        };
        let rank = |one: &SweepPoint| match one.table {
            None => Rank::Failed,
            Some(table) if is_dominated(one, table) => Rank::Dominated,
            Some(_) => Rank::Undominated,
        };
        let mut ranks: Vec<Rank> = self.combinations.iter().map(rank).collect();
        for promise in self.promises() {
            let undominated = ranks.iter().zip(&self.combinations).enumerate();
            let undominated = undominated
                .filter(|(_, (rank, one))| **rank == Rank::Undominated && one.promise == promise);
            let distances =
                undominated.filter_map(|(at, (_, one))| Some((at, one.table?.distance())));
            let best = distances.min_by(|one, other| one.1.total_cmp(&other.1));
            if let Some((at, _)) = best {
                ranks[at] = Rank::Best;
            }
        }
        ranks
    }

    /// The promises, each once, in the order of the combinations.
    fn promises(&self) -> Vec<SweepPromise> {
        let mut all: Vec<SweepPromise> = Vec::new();
        for one in &self.combinations {
            if !all.contains(&one.promise) {
                all.push(one.promise);
            }
        }
        all
    }

    /// Loss over risk: for each promise a line through the undominated combinations, and the others as points.
    fn chart(&self, ranks: &[Rank]) -> Chart {
        let of = |wanted: &'static [Rank], promise: Option<SweepPromise>| {
            let pairs = self.combinations.iter().zip(ranks);
            let pairs = pairs.filter(move |(one, rank)| {
                wanted.contains(rank) && promise.is_none_or(|promise| one.promise == promise)
            });
            pairs.filter_map(|(one, _)| Some((one.table?.risk(), one.table?.loss)))
        };
        let promises = self.promises();
        let is_alone = promises.len() == 1;
        let mut series = Vec::new();
        for (number, promise) in promises.into_iter().enumerate() {
            let mut points: Vec<(f64, f64)> =
                of(&[Rank::Best, Rank::Undominated], Some(promise)).collect();
            points.sort_by(|one, other| one.0.total_cmp(&other.0));
            if points.is_empty() {
                continue;
            }
            let name = if is_alone {
                "not dominated; the circle marks the best".to_owned()
            } else {
                format!("not dominated, {}", promise.words())
            };
            series.push(Series {
                name,
                colour: FRONTIER_COLOURS[number % FRONTIER_COLOURS.len()],
                dashes: number / FRONTIER_COLOURS.len() % DASHES,
                points,
            });
        }
        // Points without a number keep the others apart.
        let dominated = of(&[Rank::Dominated], None).flat_map(|point| [point, (point.0, f64::NAN)]);
        let dominated: Vec<(f64, f64)> = dominated.collect();
        if !dominated.is_empty() {
            let dominated = Series {
                name: "dominated by another".to_owned(),
                colour: DOMINATED_COLOUR,
                dashes: 0,
                points: dominated,
            };
            // Drawn first, so that it hides no undominated point.
            series.insert(0, dominated);
        }
        let best = of(&[Rank::Best], None).next().filter(|_| is_alone);
        Chart {
            title: "Detail lost against risk; nearer to the lower left corner is better".to_owned(),
            x: Axis::linear("chance to pick the right one", true),
            y: Axis::linear("detail lost (NCP)", true),
            series,
            marked: best.map(|point| point.0),
        }
    }

    fn table(&self, ranks: &[Rank]) -> Markup {
        let columns = [
            Column::number("Detail lost"),
            Column::number("Risk"),
            Column::number("Smallest group"),
            Column::number("DR"),
            Column::number("Left out"),
            Column::text("Compared"),
        ];
        let rows = self.combinations.iter().zip(ranks).map(|(one, rank)| {
            let figures = match one.table {
                Some(table) => [
                    percent(table.loss),
                    percent_at_most(table.risk()),
                    table.smallest.to_string(),
                    percent(table.dr),
                    table.suppressed.to_string(),
                ],
                None => Default::default(),
            };
            let mut cells: Vec<Markup> = figures.iter().map(|text| html! { (text) }).collect();
            cells.push(match rank {
                Rank::Best => html! { strong { "best" } },
                Rank::Undominated => html! { "not dominated" },
                Rank::Dominated => html! { "dominated" },
                Rank::Failed => html! { "no table meets it" },
            });
            let mut row = Row::new(&one.name, cells);
            row.is_marked = *rank == Rank::Best;
            row
        });
        let rows: Vec<Row> = rows.collect();
        table("Combination", &columns, &rows)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{Rank, SweepPage, SweepPoint, SweepPromise, SweepTable};

    const PROMISE: SweepPromise = SweepPromise {
        l: Some(2.0),
        c: 0.5,
    };

    fn point(name: &str, loss: f64, smallest: u64) -> SweepPoint {
        let table = SweepTable {
            loss,
            dr: 0.1,
            smallest,
            suppressed: 0,
        };
        SweepPoint {
            name: name.to_owned(),
            promise: PROMISE,
            table: Some(table),
        }
    }

    fn page() -> SweepPage {
        SweepPage {
            job: "j".to_owned(),
            dataset: Some("<b>Stays</b>".to_owned()),
            combinations: vec![
                point("fine", 0.1, 2),
                point("middle", 0.2, 10),
                point("worse", 0.5, 10),
                point("coarse", 0.9, 100),
                SweepPoint {
                    name: "none".to_owned(),
                    promise: PROMISE,
                    table: None,
                },
            ],
        }
    }

    /// Distances: 0.51 for fine, 0.22 for middle, 0.90 for coarse; worse has more loss than middle at one risk.
    #[test]
    fn the_best_is_nearest_to_no_loss_and_no_risk_of_those_that_none_dominates() {
        use Rank::{Best, Dominated, Failed, Undominated};
        assert_eq!(
            page().ranks(),
            [Undominated, Best, Dominated, Undominated, Failed]
        );
        let html = page().render();
        assert!(html.contains("Best: <strong>middle</strong>"), "{html}");
        assert_eq!(
            html.matches("<polyline").count(),
            1,
            "the frontier alone is joined"
        );
        // Three of the frontier, one other, and the ring around the best.
        assert_eq!(html.matches("<circle").count(), 5);
        assert!(html.contains("no table meets it"));
        assert!(html.contains("&lt;b&gt;Stays") && !html.contains("<b>Stays"));
    }

    /// A weaker promise always loses less.
    #[test]
    fn a_weaker_promise_does_not_dominate_a_stronger_one() {
        use Rank::{Best, Dominated, Undominated};
        let mut page = page();
        page.combinations.pop();
        for (one, l) in page.combinations.iter_mut().zip([2.0, 2.0, 3.0, 3.0]) {
            one.promise.l = Some(l);
        }
        assert_eq!(page.ranks(), [Undominated, Best, Best, Undominated]);
        let html = page.render();
        assert!(html.contains("Best: <strong>middle</strong>"), "{html}");
        assert!(html.contains("Best: <strong>worse</strong>"), "{html}");
        assert!(html.contains("chances of different L are not comparable"));
        // A stronger promise dominates a weaker one.
        page.combinations[1].promise.l = None;
        assert_eq!(page.ranks(), [Best, Best, Dominated, Best]);
        page.combinations[1].promise.c = 0.6;
        assert_eq!(page.ranks(), [Best, Best, Best, Undominated]);
    }

    /// 21 lines have seven colours with three dashes each, and another colour than the dominated point.
    #[test]
    fn lines_differ_in_colour_or_dashes() {
        let mut page = page();
        let combinations = (0..21u8).map(|number| {
            let mut one = point("one", 0.1, 10);
            one.promise.c = 0.5 - f64::from(number) / 100.0;
            one.table = one.table.map(|table| SweepTable {
                loss: 0.1 + f64::from(number) / 100.0,
                ..table
            });
            one
        });
        page.combinations = combinations.collect();
        page.combinations.push(point("worse", 0.9, 10));
        let series = page.chart(&page.ranks()).series;
        let styles: BTreeSet<_> = series.iter().map(|it| (it.colour, it.dashes)).collect();
        assert_eq!((series.len(), styles.len()), (22, 22));
        let dominated = series.iter().filter(|it| it.colour == 1);
        assert_eq!(dominated.count(), 1);
    }

    #[test]
    fn a_sweep_without_a_table_has_a_page_too() {
        let mut page = page();
        for one in &mut page.combinations {
            one.table = None;
        }
        let html = page.render();
        assert!(html.contains("No combination has a table"), "{html}");
        assert!(!html.contains("<svg"));
    }
}
