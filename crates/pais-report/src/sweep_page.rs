//! The combinations of a sweep as a page: loss against risk, and which combination is the best.

use maud::{Markup, html};

use crate::chart::{Axis, Chart, Series};
use crate::page::document;
use crate::words::percent;

/// What is known of a sweep.
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
    /// Its table; `None` where no table meets it.
    pub table: Option<SweepTable>,
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
    /// The chance to pick the right record in the smallest group.
    fn risk(self) -> f64 {
        1.0 / self.smallest.max(1) as f64
    }

    /// Whether another table is at least as good in both, and better in one.
    fn is_beaten_by(self, other: Self) -> bool {
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
    /// Of those that no other beats, the one nearest to no loss and no risk.
    Best,
    /// No other has both less loss and less risk.
    Unbeaten,
    /// Another is better.
    Beaten,
    /// No table meets it.
    Failed,
}

impl SweepPage {
    /// The page as an HTML document.
    pub fn render(&self) -> String {
        let ranks = self.ranks();
        let best = ranks.iter().position(|rank| *rank == Rank::Best);
        let best = best.map(|at| &self.combinations[at]);
        let title = match &self.dataset {
            Some(dataset) => format!("Combinations compared: {dataset}"),
            None => "Combinations compared".to_owned(),
        };
        let content = html! {
            header { h1 { (title) } p { "Job " code { (self.job) } } }
            section {
                @match best.and_then(|best| Some((&best.name, best.table?))) {
                    Some((name, table)) => p {
                        "Best: " strong { (name) } ", which loses " (percent(table.loss))
                        " of the detail; the chance to pick the right record is at most "
                        (percent(table.risk())) "."
                    },
                    None => p { "No combination has a table yet." },
                }
                p {
                    "A combination is beaten where another loses no more and has no greater risk. Of those that none beats, "
                    "the best is the one nearest to no loss and no risk; which loss and which risk are acceptable is yours to decide. "
                    "Any combination with a table can be released."
                }
                @if best.is_some() { (self.chart(&ranks).figure()) }
                (self.table(&ranks))
            }
        };
        document(&title, &content)
    }

    fn ranks(&self) -> Vec<Rank> {
        let tables = || self.combinations.iter().filter_map(|one| one.table);
        let rank = |one: &SweepPoint| match one.table {
            None => Rank::Failed,
            Some(table) if tables().any(|other| table.is_beaten_by(other)) => Rank::Beaten,
            Some(_) => Rank::Unbeaten,
        };
        let mut ranks: Vec<Rank> = self.combinations.iter().map(rank).collect();
        let unbeaten = ranks.iter().zip(&self.combinations).enumerate();
        let unbeaten = unbeaten.filter(|(_, (rank, _))| **rank == Rank::Unbeaten);
        let distances = unbeaten.filter_map(|(at, (_, one))| Some((at, one.table?.distance())));
        let best = distances.min_by(|one, other| one.1.total_cmp(&other.1));
        if let Some((at, _)) = best {
            ranks[at] = Rank::Best;
        }
        ranks
    }

    /// Loss over risk: a line through what none beats, and the others as points.
    fn chart(&self, ranks: &[Rank]) -> Chart {
        let of = |wanted: &'static [Rank]| {
            let pairs = self.combinations.iter().zip(ranks);
            let pairs = pairs.filter(move |(_, rank)| wanted.contains(rank));
            pairs.filter_map(|(one, _)| Some((one.table?.risk(), one.table?.loss)))
        };
        let mut frontier: Vec<(f64, f64)> = of(&[Rank::Best, Rank::Unbeaten]).collect();
        frontier.sort_by(|one, other| one.0.total_cmp(&other.0));
        let best = of(&[Rank::Best]).next().map(|point| point.0);
        // Points without a number keep the others apart.
        let beaten = of(&[Rank::Beaten]).flat_map(|point| [point, (point.0, f64::NAN)]);
        let beaten: Vec<(f64, f64)> = beaten.collect();
        let mut series = vec![Series {
            name: "not beaten; the circle marks the best".to_owned(),
            colour: 0,
            dashes: 0,
            points: frontier,
        }];
        if !beaten.is_empty() {
            series.push(Series {
                name: "beaten by another".to_owned(),
                colour: 1,
                dashes: 0,
                points: beaten,
            });
        }
        Chart {
            title: "Detail lost against risk; nearer to the lower left corner is better".to_owned(),
            x: Axis::linear("chance to pick the right record", true),
            y: Axis::linear("detail lost (NCP)", true),
            series,
            marked: best,
        }
    }

    fn table(&self, ranks: &[Rank]) -> Markup {
        html! {
            div.scroll {
                table {
                    thead {
                        tr {
                            th scope="col" { "Combination" }
                            th.n scope="col" { "Detail lost" }
                            th.n scope="col" { "Risk" }
                            th.n scope="col" { "Smallest group" }
                            th.n scope="col" { "DR" }
                            th.n scope="col" { "Left out" }
                            th scope="col" { "Compared" }
                        }
                    }
                    tbody {
                        @for (one, rank) in self.combinations.iter().zip(ranks) {
                            tr class=[(*rank == Rank::Best).then_some("released")] {
                                th scope="row" { (one.name) }
                                @match one.table {
                                    Some(table) => {
                                        td.n { (percent(table.loss)) }
                                        td.n { (percent(table.risk())) }
                                        td.n { (table.smallest) }
                                        td.n { (percent(table.dr)) }
                                        td.n { (table.suppressed) }
                                    }
                                    None => td colspan="5" { "no table meets it" },
                                }
                                td {
                                    @match rank {
                                        Rank::Best => strong { "best" },
                                        Rank::Unbeaten => "not beaten",
                                        Rank::Beaten => "beaten",
                                        Rank::Failed => "",
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Rank, SweepPage, SweepPoint, SweepTable};

    fn point(name: &str, loss: f64, smallest: u64) -> SweepPoint {
        let table = SweepTable {
            loss,
            dr: 0.1,
            smallest,
            suppressed: 0,
        };
        SweepPoint {
            name: name.to_owned(),
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
                    table: None,
                },
            ],
        }
    }

    /// Distances: 0.51 for fine, 0.22 for middle, 0.90 for coarse; worse has more loss than middle at one risk.
    #[test]
    fn the_best_is_nearest_to_no_loss_and_no_risk_of_those_that_none_beats() {
        use Rank::{Beaten, Best, Failed, Unbeaten};
        assert_eq!(page().ranks(), [Unbeaten, Best, Beaten, Unbeaten, Failed]);
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
