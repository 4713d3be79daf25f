//! k^m-anonymity of records: classes of at least k rows over the relational columns, and in
//! each class every set of at most m items held by none or by at least k of its rows.
//!
//! An adversary who knows all relational values of a patient and up to m items is left with at
//! least k rows. Disclosure divides no class here, so there is one disclosure for the classes as
//! they stand, and a relational column moves a level down where the table loses less for it.

use hashbrown::HashMap;
use rayon::prelude::*;

use pais_core::model::KmAnonymity;
use crate::observer::{Observer, Phase};
use pais_core::table::{EncodedTable, NULL_CODE};
use pais_core::taxonomy::Floors;

use super::class::Class;
use super::hierarchy::Hierarchy;
use super::outcome::{DisclosedSet, Outcome};
use super::search::{SearchError, Settings, TIE, divided};
use super::vocabulary::Vocabulary;

/// Runs the search. `floors` gives the pre-generalization of a column by its name. No row is
/// suppressed.
///
/// # Errors
/// For fewer rows than *k*, and on cancellation.
pub fn search_km<'a>(
    table: &'a EncodedTable,
    floors: impl Fn(&str) -> Option<&'a Floors>,
    (model, settings): (KmAnonymity, &Settings),
    observer: &dyn Observer,
) -> Result<Outcome, SearchError> {
    let (rows, k) = (table.rows as u64, model.k.get());
    if rows < k {
        return Err(SearchError::FewerRowsThanK { rows, k });
    }
    let sets = table.sets.iter();
    let vocabularies: Vec<_> = sets
        .map(|column| Vocabulary::new(column, floors(&column.name)))
        .collect();
    let columns = table.quasi_identifiers.iter();
    let mut hierarchies: Vec<_> = columns
        .map(|column| Hierarchy::new(column, floors(&column.name)))
        .collect();
    let run = Run {
        items: Items::of(&vocabularies, table.rows),
        vocabularies: &vocabularies,
        k: k as usize,
        m: model.m.get(),
        weights: &settings.weights,
        rows: rows as f64,
        observer,
    };
    let whole = Class::whole(table.rows, &vocabularies).ok_or(SearchError::TooManyItems)?;
    let mut state = run.disclose(vec![whole])?;
    let mut left = vec![true; hierarchies.len()];
    let mut relational = vec![0.0; hierarchies.len()];
    let mut steps = 0u32;
    loop {
        let mut best: Option<(f64, usize, State)> = None;
        for (at, hierarchy) in hierarchies.iter_mut().enumerate() {
            if !left[at] || hierarchy.is_exhausted() {
                continue;
            }
            let Some(classes) = divided(&state.classes, hierarchy, run.k) else {
                left[at] = false;
                continue;
            };
            let tried = run.disclose(classes)?;
            let gain = run.weights[at] * hierarchy.gain() / run.rows;
            let decrease = gain + tried.kept - state.kept;
            if decrease > best.as_ref().map_or(TIE, |(best, ..)| best + TIE) {
                best = Some((decrease, at, tried));
            }
        }
        let Some((gain, at, tried)) = best else {
            break;
        };
        relational[at] += gain;
        hierarchies[at].descend();
        state = tried;
        steps += 1;
        observer.progress(Phase::Searching, 1.0 - 1.0 / f64::from(steps + 1));
    }
    let cuts = hierarchies.iter().map(Hierarchy::cut).collect();
    Ok(run.outcome(table, cuts, &state))
}

/// The items of all columns, numbered across them.
struct Items {
    /// The first number of each column.
    offsets: Vec<u32>,
    /// By column, what an item that stands adds to the weighted sum of what is kept.
    worth: Vec<f64>,
}

impl Items {
    fn of(vocabularies: &[Vocabulary], rows: usize) -> Self {
        let mut offset = 0;
        let offsets = vocabularies.iter().map(|vocabulary| {
            offset += vocabulary.len() as u32;
            offset - vocabulary.len() as u32
        });
        let mut row_items = Vec::new();
        Self {
            offsets: offsets.collect(),
            worth: vocabularies
                .iter()
                .map(|vocabulary| {
                    let all: usize = (0..rows)
                        .map(|row| {
                            row_items.clear();
                            vocabulary.push_row(row, &mut row_items);
                            row_items.len()
                        })
                        .sum();
                    1.0 / all.max(1) as f64
                })
                .collect(),
        }
    }
}

struct Run<'a> {
    vocabularies: &'a [Vocabulary<'a>],
    items: Items,
    k: usize,
    m: u32,
    /// Relational columns first, then sets.
    weights: &'a [f64],
    rows: f64,
    observer: &'a dyn Observer,
}

/// Classes with what each discloses.
struct State {
    classes: Vec<Class>,
    /// By class, the items that stand, ascending.
    standing: Vec<Vec<u32>>,
    /// Weighted share of items that stand, generalized ones in part.
    kept: f64,
}

impl Run<'_> {
    fn disclose(&self, classes: Vec<Class>) -> Result<State, SearchError> {
        let stop = || self.observer.must_stop();
        let known = (self.k, self.m);
        let disclose = |class: &Class| {
            let standing = super::itemsets::standing(class, &self.items.offsets, known, &stop);
            let kept = (0..class.sets.len())
                .map(|set| self.kept(class, set, &standing))
                .collect();
            (standing, kept)
        };
        let found: Vec<(Vec<u32>, Vec<f64>)> = classes.par_iter().map(disclose).collect();
        if stop() {
            return Err(SearchError::Cancelled);
        }
        let relational = self.weights.len() - self.vocabularies.len();
        let worth = self.items.worth.iter().zip(&self.weights[relational..]);
        let kept = worth.enumerate().map(|(set, (worth, weight))| {
            let items: f64 = found.iter().map(|(_, kept)| kept[set]).sum();
            items * worth * weight
        });
        Ok(State {
            kept: kept.sum(),
            standing: found.into_iter().map(|(standing, _)| standing).collect(),
            classes,
        })
    }

    fn kept(&self, class: &Class, set: usize, standing: &[u32]) -> f64 {
        let offset = self.items.offsets[set];
        let items = class.sets[set].items.iter();
        let standing = items.filter(|&&item| standing.binary_search(&(offset + item)).is_ok());
        standing
            .map(|&item| 1.0 - self.vocabularies[set].ncp(item))
            .sum()
    }

    fn outcome(
        &self,
        table: &EncodedTable,
        cuts: Vec<crate::methods::specialization::Cut>,
        state: &State,
    ) -> Outcome {
        let sets = self
            .vocabularies
            .iter()
            .enumerate()
            .map(|(set, vocabulary)| {
                let mut known: HashMap<Vec<u32>, u32> = HashMap::new();
                let mut cells: Vec<Box<str>> = Vec::new();
                let mut codes = vec![NULL_CODE; table.rows];
                let offset = self.items.offsets[set];
                for (class, standing) in state.classes.iter().zip(&state.standing) {
                    for (place, &row) in class.rows.iter().enumerate() {
                        let items = class.sets[set].of(place).iter().copied();
                        let stands = |item: &u32| standing.binary_search(&(offset + item)).is_ok();
                        let items: Vec<u32> = items.filter(stands).collect();
                        let fresh = cells.len() as u32;
                        codes[row as usize] = *known.entry(items).or_insert_with_key(|items| {
                            cells.push(vocabulary.cell(items).into());
                            fresh
                        });
                    }
                }
                DisclosedSet { cells, codes }
            });
        Outcome {
            cuts,
            classes: state.classes.len(),
            sets: sets.collect(),
            released: vec![true; table.rows],
        }
    }
}
