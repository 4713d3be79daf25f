//! The cuts of a group into two parts that both meet *C*.
//!
//! For each dimension the rows are ordered by code, and walked once: what is inside of a cut and
//! what is outside is counted by bounded value, so that each cut is decided in constant time. One
//! dimension of *n* rows costs O(*n*) with as many codes as rows or fewer.

use pais_core::table::codes::{CodeRange, Codes};

use super::confidence::{BoundedCells, Tally};
use super::loss::{Division, Loss, RangeCut};

/// A gain in the class column below this is rounding, in nats for each row.
const LEAST_INFORMATION: f64 = 1e-9;

/// How the split chooses where to divide a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SplitGuide {
    /// At medians, as in the paper: groups of few and equally many records.
    Median,
    /// Where the labels of the halves lose the least.
    Ncp,
    /// Where the halves differ most in the class column.
    Class,
}

/// The criteria for choosing cuts.
#[derive(Clone, Copy)]
pub(super) struct CutChoice<'a> {
    pub(super) guide: SplitGuide,
    /// The class of each row of the table.
    pub(super) class: Option<&'a Codes<'a>>,
    /// Minimum number of rows of a part.
    pub(super) least: usize,
}

/// The best cut in one dimension for which both parts have at least `least` rows and meet *C*.
/// `bounded` has the values of `rows` in their order. `None` where no cut is valid, or none
/// improves what guides the choice.
pub(super) fn best_cut(
    loss: &Loss,
    rows: &[u32],
    bounded: &BoundedCells,
    choice: CutChoice,
) -> Option<RangeCut> {
    let order = loss.by_code(rows);
    let whole = CodeRange::new(order.first()?.0, order.last()?.0);
    // Where the run of each code starts, and the end.
    let starts = (0..order.len()).filter(|&at| at == 0 || order[at - 1].0 != order[at].0);
    let starts: Vec<usize> = starts.chain([order.len()]).collect();
    let code = |place: usize| order[starts[place]].0;
    let mut sides = Sides::new(rows, bounded, choice);
    let mut entered = 0..0;
    let mut best: Option<RangeCut> = None;
    for division in loss.divisions(starts.len() - 1, code) {
        let Division {
            inside,
            codes,
            outside,
        } = division;
        if entered.start != inside.start {
            let left = &order[starts[entered.start]..starts[entered.end]];
            left.iter().for_each(|&(_, index)| sides.leave(index));
            entered = inside.start..inside.start;
        }
        let new = &order[starts[entered.end]..starts[inside.end]];
        new.iter().for_each(|&(_, index)| sides.enter(index));
        entered = inside.clone();
        let (within, without) = (sides.inside_rows, rows.len() - sides.inside_rows);
        if within.min(without) < choice.least {
            continue;
        }
        let score = match choice.guide {
            SplitGuide::Ncp => {
                let inside = CodeRange::new(code(inside.start), code(inside.end - 1));
                loss.cost(rows.len(), whole)
                    - loss.cost(within, inside)
                    - loss.cost(without, outside)
            }
            SplitGuide::Median => within.min(without) as f64,
            SplitGuide::Class => sides.information() - LEAST_INFORMATION * rows.len() as f64,
        };
        if score > best.map_or(0.0, |best| best.score) && sides.are_valid() {
            best = Some(RangeCut { score, codes });
        }
    }
    best
}

/// What is inside of a cut and what is outside.
struct Sides<'a> {
    rows: &'a [u32],
    bounded: &'a BoundedCells,
    inside: Tally,
    outside: Tally,
    inside_rows: usize,
    classes: Option<ClassSides<'a>>,
}

/// The classes of the rows of both sides. The entropy of *n* rows is *n* ln *n* less the sum of
/// *c* ln *c* over the rows *c* of each class, all divided by *n*.
struct ClassSides<'a> {
    class: &'a Codes<'a>,
    /// By class, the rows inside and outside.
    rows: Vec<(u32, u32)>,
    /// Sums of *c* ln *c* inside and outside.
    sums: (f64, f64),
    whole: f64,
}

impl<'a> Sides<'a> {
    fn new(rows: &'a [u32], bounded: &'a BoundedCells, choice: CutChoice<'a>) -> Self {
        let mut outside = bounded.empty_tally();
        (0..rows.len()).for_each(|index| outside.add(bounded.record(index)));
        let class = choice.class.filter(|_| choice.guide == SplitGuide::Class);
        let classes = class.map(|class| {
            let last = rows.iter().map(|&row| class.at(row as usize)).max();
            let mut of_class = vec![(0, 0); last.map_or(0, |last| last as usize + 1)];
            rows.iter()
                .for_each(|&row| of_class[class.at(row as usize) as usize].1 += 1);
            let sum: f64 = of_class.iter().map(|&(_, rows)| x_ln_x(rows)).sum();
            ClassSides {
                class,
                rows: of_class,
                sums: (0.0, sum),
                whole: sum,
            }
        });
        Self {
            rows,
            bounded,
            inside: bounded.empty_tally(),
            outside,
            inside_rows: 0,
            classes,
        }
    }

    /// Moves the row at `index` to the inside.
    #[inline]
    fn enter(&mut self, index: u32) {
        let cells = self.bounded.record(index as usize);
        self.inside.add(cells);
        self.outside.remove(cells);
        self.inside_rows += 1;
        if let Some(classes) = &mut self.classes {
            let class = classes.class.at(self.rows[index as usize] as usize);
            let (inside, outside) = &mut classes.rows[class as usize];
            classes.sums.0 += x_ln_x(*inside + 1) - x_ln_x(*inside);
            classes.sums.1 += x_ln_x(*outside - 1) - x_ln_x(*outside);
            (*inside, *outside) = (*inside + 1, *outside - 1);
        }
    }

    /// Moves the row at `index` back to the outside.
    #[inline]
    fn leave(&mut self, index: u32) {
        let cells = self.bounded.record(index as usize);
        self.inside.remove(cells);
        self.outside.add(cells);
        self.inside_rows -= 1;
        if let Some(classes) = &mut self.classes {
            let class = classes.class.at(self.rows[index as usize] as usize);
            let (inside, outside) = &mut classes.rows[class as usize];
            classes.sums.0 += x_ln_x(*inside - 1) - x_ln_x(*inside);
            classes.sums.1 += x_ln_x(*outside + 1) - x_ln_x(*outside);
            (*inside, *outside) = (*inside - 1, *outside + 1);
        }
    }

    fn are_valid(&self) -> bool {
        self.bounded.allows(&self.inside) && self.bounded.allows(&self.outside)
    }

    /// The information that the cut gives about the class, in nats times rows.
    fn information(&self) -> f64 {
        let Some(classes) = &self.classes else {
            return 0.0;
        };
        let inside = self.inside_rows as u32;
        let whole = self.rows.len() as u32;
        let entropy = |rows: u32, sum: f64| x_ln_x(rows) - sum;
        entropy(whole, classes.whole)
            - entropy(inside, classes.sums.0)
            - entropy(whole - inside, classes.sums.1)
    }
}

fn x_ln_x(rows: u32) -> f64 {
    match rows {
        0 => 0.0,
        rows => f64::from(rows) * f64::from(rows).ln(),
    }
}
