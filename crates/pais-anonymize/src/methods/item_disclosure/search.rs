//! Algorithm 1 over relational and set-valued attributes together.

use rayon::prelude::*;
use thiserror::Error;

use pais_core::model::{Fraction, MinimumAnonymity};
use crate::observer::{Observer, Phase};
use pais_core::table::EncodedTable;
use pais_core::taxonomy::Floors;

use super::class::Class;
use super::hierarchy::Hierarchy;
use super::outcome::Outcome;
use super::round::Round;
use super::vocabulary::Vocabulary;

/// Gains closer than this are a tie, and ties go to the first column.
pub(super) const TIE: f64 = 1e-12;

/// What a run is led by.
#[derive(Clone, Debug)]
pub struct Settings {
    /// *k*.
    pub k: MinimumAnonymity,
    /// Largest fraction of rows that the trash bin takes.
    pub suppression_limit: Fraction,
    /// Weight of each quasi-identifier in the choice by NCP, those of one value a cell first,
    /// then the sets, both as in the table.
    pub weights: Vec<f64>,
}

/// Why a search ended without an anonymous table.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SearchError {
    /// The whole table is smaller than *k*.
    #[error("the table has {rows} rows, fewer than the {k} that `k` asks for")]
    FewerRowsThanK {
        /// Rows of the table.
        rows: u64,
        /// *k*.
        k: u64,
    },
    /// More items than places in a column are numbered for.
    #[error("a set-valued column has more than 4,294,967,295 items")]
    TooManyItems,
    /// The observer said stop.
    #[error("the run was cancelled")]
    Cancelled,
}

/// A column of *QI\**, by its number among those of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dimension {
    Relational(usize),
    Set(usize),
}

/// Runs Algorithm 1. `floors` gives the pre-generalization of a column by its name.
///
/// # Errors
/// For fewer rows than *k*, and on cancellation.
pub fn search<'a>(
    table: &'a EncodedTable,
    floors: impl Fn(&str) -> Option<&'a Floors>,
    settings: &Settings,
    observer: &dyn Observer,
) -> Result<Outcome, SearchError> {
    let k = settings.k.get();
    let rows = table.rows as u64;
    if rows < k {
        return Err(SearchError::FewerRowsThanK { rows, k });
    }
    let hierarchies = table.quasi_identifiers.iter();
    let vocabularies = table.sets.iter();
    let vocabularies: Vec<_> = vocabularies
        .map(|column| Vocabulary::new(column, floors(&column.name)))
        .collect();
    let whole = Class::whole(table.rows, &vocabularies).ok_or(SearchError::TooManyItems)?;
    let mut run = Run {
        hierarchies: hierarchies
            .map(|column| Hierarchy::new(column, floors(&column.name)))
            .collect(),
        raw_items: vocabularies.iter().map(Vocabulary::raw_items).collect(),
        candidates: hidden_items(&whole),
        left: vec![true; table.quasi_identifiers.len()],
        vocabularies,
        classes: vec![whole],
        suppressed: 0,
        budget: settings.suppression_limit.floor_of(rows) as usize,
        // No more than there are rows, which are counted by the machine's words.
        k: k as usize,
        rows: rows as f64,
        table,
        settings,
        observer,
    };
    while let Some(dimension) = run.choose() {
        match dimension {
            Dimension::Relational(column) => run.descend(column),
            Dimension::Set(set) => run.disclose(set),
        }
        if observer.must_stop() {
            return Err(SearchError::Cancelled);
        }
        observer.progress(Phase::Searching, run.done());
    }
    let cuts = run.hierarchies.iter().map(Hierarchy::cut).collect();
    Ok(Outcome::new(table, cuts, &run.vocabularies, &run.classes))
}

/// Items that may still be disclosed, in all columns of a class.
fn hidden_items(class: &Class) -> u64 {
    let open = class.sets.iter().filter(|set| !set.finished);
    open.map(|set| set.items.len() as u64).sum()
}

struct Run<'a> {
    table: &'a EncodedTable,
    settings: &'a Settings,
    observer: &'a dyn Observer,
    hierarchies: Vec<Hierarchy<'a>>,
    vocabularies: Vec<Vocabulary<'a>>,
    classes: Vec<Class>,
    /// Which relational columns are in *QI\** still.
    left: Vec<bool>,
    /// Items of each set-valued column before any is generalized.
    raw_items: Vec<u64>,
    /// Items that could be disclosed at first.
    candidates: u64,
    suppressed: usize,
    budget: usize,
    k: usize,
    rows: f64,
}

impl Run<'_> {
    /// *choose_dimension*: the column whose next step promises the greatest decrease of NCP,
    /// each weighted, ties to the first as declared; `None` when nothing is left in *QI\**.
    ///
    /// A level of a relational column decreases its NCP by what the hierarchy says. Of a set a
    /// round discloses at most one item a row, so its promise is the share of its items that
    /// would be; where a class does not keep it, what it cannot disclose leaves the promise.
    fn choose(&mut self) -> Option<Dimension> {
        let mut promises = Vec::new();
        for (at, hierarchy) in self.hierarchies.iter_mut().enumerate() {
            if self.left[at] && !hierarchy.is_exhausted() {
                let gain = hierarchy.gain() / self.rows * self.settings.weights[at];
                let position = hierarchy.column().position;
                promises.push((position, gain, Dimension::Relational(at)));
            }
        }
        let sets = (0..self.vocabularies.len()).filter_map(|set| {
            let open = self.classes.iter().map(|class| class.sets[set].open_rows());
            let open: usize = open.sum();
            let weight = self.settings.weights[self.hierarchies.len() + set];
            let gain = open as f64 / self.raw_items[set] as f64 * weight;
            let position = self.table.sets[set].position;
            (open > 0).then_some((position, gain, Dimension::Set(set)))
        });
        promises.extend(sets);
        promises.sort_by_key(|(position, ..)| *position);
        let best = promises.iter().map(|(_, gain, _)| *gain).reduce(f64::max)?;
        let first = promises
            .into_iter()
            .find(|(_, gain, _)| *gain >= best - TIE);
        first.map(|(.., dimension)| dimension)
    }

    /// Moves a relational column a level down where every class falls into parts of at least k
    /// rows; otherwise the column leaves *QI\**.
    fn descend(&mut self, column: usize) {
        let hierarchy = &mut self.hierarchies[column];
        let (below, values) = (hierarchy.next_level(), hierarchy.value_count());
        let codes = &hierarchy.column().codes;
        let value = |row: u32| below[codes[row as usize] as usize];
        let k = self.k;
        let holds = self.classes.par_iter().all(|class| {
            let first = value(class.rows[0]);
            if class.rows.iter().all(|&row| value(row) == first) {
                return true;
            }
            class.len() >= 2 * k && parts(class, value, values).all_hold(k)
        });
        if !holds {
            self.left[column] = false;
            return;
        }
        hierarchy.descend();
        let classes = std::mem::take(&mut self.classes);
        let divided = classes.into_par_iter().flat_map_iter(|class| {
            let parts = parts(&class, value, values);
            if parts.sizes.len() == 1 {
                return vec![class];
            }
            class.divided(parts.sizes.len(), |place| parts.of_place[place] as usize)
        });
        self.classes = divided.collect();
    }

    /// A round of disclosure.
    fn disclose(&mut self, set: usize) {
        let stop = || self.observer.must_stop();
        let round = Round {
            set,
            items: self.vocabularies[set].len(),
            k: self.k,
            stop: &stop,
        };
        let classes = std::mem::take(&mut self.classes);
        let (classes, suppressed) = round.run(classes, self.budget - self.suppressed);
        self.classes = classes;
        self.suppressed += suppressed.len();
        for row in suppressed {
            for hierarchy in &mut self.hierarchies {
                hierarchy.forget(row);
            }
        }
    }

    /// The share of items that are disclosed, or known to stay hidden.
    fn done(&self) -> f64 {
        let open: u64 = self.classes.iter().map(hidden_items).sum();
        1.0 - open as f64 / self.candidates.max(1) as f64
    }
}

/// The classes as they would be with a column one level further down; `None` where one would be
/// smaller than k.
pub(super) fn divided(classes: &[Class], hierarchy: &Hierarchy, k: usize) -> Option<Vec<Class>> {
    let (below, values) = (hierarchy.next_level(), hierarchy.value_count());
    let codes = &hierarchy.column().codes;
    let value = |row: u32| below[codes[row as usize] as usize];
    let divide = |class: &Class| {
        let parts = parts(class, value, values);
        let place = |place: usize| parts.of_place[place] as usize;
        parts
            .all_hold(k)
            .then(|| class.divided(parts.sizes.len(), place))
    };
    let divided: Option<Vec<Vec<Class>>> = classes.par_iter().map(divide).collect();
    divided.map(|parts| parts.into_iter().flatten().collect())
}

/// The rows of a class by the value on which they would stand, numbered as they first stand.
struct Parts {
    of_place: Vec<u32>,
    sizes: Vec<u32>,
}

impl Parts {
    fn all_hold(&self, k: usize) -> bool {
        self.sizes.iter().all(|&size| size as usize >= k)
    }
}

fn parts(class: &Class, value: impl Fn(u32) -> u32, values: usize) -> Parts {
    // A table of all values costs no more than the rows while it is not the longer one.
    let dense = values <= 4 * class.len();
    let mut numbers = vec![u32::MAX; if dense { values } else { 0 }];
    let mut sparse = rustc_hash::FxHashMap::default();
    let mut parts = Parts {
        of_place: Vec::with_capacity(class.len()),
        sizes: Vec::new(),
    };
    for &row in &class.rows {
        let value = value(row);
        let fresh = parts.sizes.len() as u32;
        let number = if dense {
            &mut numbers[value as usize]
        } else {
            sparse.entry(value).or_insert(u32::MAX)
        };
        if *number == u32::MAX {
            *number = fresh;
            parts.sizes.push(0);
        }
        parts.sizes[*number as usize] += 1;
        parts.of_place.push(*number);
    }
    parts
}
