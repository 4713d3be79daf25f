//! A plain reading of the 2014 paper for comparison: Algorithm 1 and Sections 5.1 to 5.3 word for
//! word, over rows and sets of items, without any of the engine's classes and rounds.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::search::DisclosureTask;

/// What *choose_dimension* compares, of which the paper says only "uses NCP".
#[derive(Clone, Copy, Debug)]
pub(super) enum Reading {
    /// The decrease of NCP by the next step, where a round discloses an item in every row that hides
    /// one.
    NextStep,
    /// As `NextStep`, but only rows count that hide an item of *Cand(c)*.
    NextStepOfCandidates,
    /// The NCP of the column as it is.
    Current,
}

#[derive(Clone)]
struct Class {
    rows: Vec<usize>,
    disclosed: Vec<BTreeSet<u32>>,
    finished: Vec<bool>,
}

struct Reference<'a> {
    task: &'a DisclosureTask<'a>,
    k: usize,
    /// By set-valued column and row.
    items: Vec<Vec<BTreeSet<u32>>>,
    classes: Vec<Class>,
    levels: Vec<u32>,
    open: Vec<bool>,
}

/// The sum of the mean NCP of all columns at the end; a hidden item counts 1.
pub(super) fn loss(task: &DisclosureTask, reading: Reading) -> f64 {
    let rows = task.table.rows;
    let items_of = |row: usize, set: usize| {
        let mut items = Vec::new();
        task.vocabularies[set].push_row(row, &mut items);
        items.into_iter().collect::<BTreeSet<u32>>()
    };
    let sets = task.vocabularies.len();
    let mut state = Reference {
        k: task.anonymity.k,
        items: (0..sets)
            .map(|set| (0..rows).map(|row| items_of(row, set)).collect())
            .collect(),
        classes: vec![Class {
            rows: (0..rows).collect(),
            disclosed: vec![BTreeSet::new(); sets],
            finished: vec![false; sets],
        }],
        levels: vec![0; task.hierarchies.len()],
        open: vec![true; task.hierarchies.len()],
        task,
    };
    while let Some(column) = state.choose(reading) {
        match column.checked_sub(state.levels.len()) {
            None => state.descend(column),
            Some(set) => state.disclose(set),
        }
    }
    let relational: f64 = (0..state.levels.len())
        .map(|at| state.ncp(at, state.levels[at]))
        .sum();
    relational + (0..sets).map(|set| state.hidden(set)).sum::<f64>()
}

impl Reference<'_> {
    /// The mean NCP of a relational column at a level.
    fn ncp(&self, column: usize, level: u32) -> f64 {
        self.task.hierarchies[column].loss_at(level) / self.task.table.rows as f64
    }

    /// The share of the items of a set-valued column that are hidden.
    fn hidden(&self, set: usize) -> f64 {
        let all: usize = self.items[set].iter().map(BTreeSet::len).sum();
        let disclosed = self.classes.iter();
        let disclosed: usize = disclosed
            .map(|class| class.rows.len() * class.disclosed[set].len())
            .sum();
        1.0 - disclosed as f64 / all as f64
    }

    /// Items of a row that its class hides.
    fn hidden_of<'b>(&'b self, class: &'b Class, set: usize, row: usize) -> Vec<u32> {
        let hidden = self.items[set][row].difference(&class.disclosed[set]);
        hidden.copied().collect()
    }

    fn frequencies(&self, class: &Class, set: usize) -> BTreeMap<u32, usize> {
        let mut found = BTreeMap::new();
        for &row in &class.rows {
            for item in self.hidden_of(class, set, row) {
                *found.entry(item).or_default() += 1;
            }
        }
        found
    }

    fn choose(&self, reading: Reading) -> Option<usize> {
        let mut best: Option<(f64, usize)> = None;
        let mut offer = |gain: f64, column: usize| {
            if best.is_none_or(|(most, _)| gain > most + 1e-12) {
                best = Some((gain, column));
            }
        };
        for column in 0..self.levels.len() {
            let level = self.levels[column];
            if self.open[column] && level < self.task.hierarchies[column].deepest() {
                let below = match reading {
                    Reading::Current => 0.0,
                    _ => self.ncp(column, level + 1),
                };
                offer(self.ncp(column, level) - below, column);
            }
        }
        for set in 0..self.items.len() {
            let mut rows = 0;
            for class in self.classes.iter().filter(|class| !class.finished[set]) {
                let frequencies = self.frequencies(class, set);
                let counts = |item: &u32| match reading {
                    Reading::NextStepOfCandidates => frequencies[item] >= self.k,
                    _ => true,
                };
                let may = |row: &&usize| self.hidden_of(class, set, **row).iter().any(counts);
                rows += class.rows.iter().filter(may).count();
            }
            let all: usize = self.items[set].iter().map(BTreeSet::len).sum();
            let gain = match reading {
                Reading::Current => self.hidden(set),
                _ => rows as f64 / all as f64,
            };
            if rows > 0 {
                offer(gain, self.levels.len() + set);
            }
        }
        best.map(|(_, column)| column)
    }

    fn descend(&mut self, column: usize) {
        let hierarchy = &self.task.hierarchies[column];
        let values = hierarchy.level(self.levels[column] + 1);
        let mut divided = Vec::new();
        for class in &self.classes {
            let mut parts: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
            for &row in &class.rows {
                let value = values[hierarchy.column().codes.at(row) as usize];
                parts.entry(value).or_default().push(row);
            }
            if parts.len() == 1 {
                divided.push(class.clone());
                continue;
            }
            divided.extend(parts.into_values().map(|rows| Class {
                rows,
                disclosed: class.disclosed.clone(),
                finished: vec![false; self.items.len()],
            }));
        }
        if divided.iter().any(|class| class.rows.len() < self.k) {
            self.open[column] = false;
            return;
        }
        self.classes = divided;
        self.levels[column] += 1;
    }

    fn disclose(&mut self, set: usize) {
        let mut after = Vec::new();
        for class in &self.classes {
            match self.round(class, set) {
                Some(parts) => after.extend(parts),
                None => {
                    let mut class = class.clone();
                    class.finished[set] = true;
                    after.push(class);
                }
            }
        }
        self.classes = after;
    }

    /// Sections 5.1 to 5.3; `None` where nothing can be disclosed.
    fn round(&self, class: &Class, set: usize) -> Option<Vec<Class>> {
        let mut ranking: Vec<(usize, u32)> = self
            .frequencies(class, set)
            .into_iter()
            .map(|(item, frequency)| (frequency, item))
            .filter(|(frequency, _)| *frequency >= self.k)
            .collect();
        ranking.sort_by_key(|&(frequency, item)| (Reverse(frequency), item));
        let mut ranking: Vec<u32> = ranking.into_iter().map(|(_, item)| item).collect();
        while !ranking.is_empty() {
            let highest = |row: usize, among: &[u32]| {
                let hidden = self.hidden_of(class, set, row);
                among.iter().copied().find(|item| hidden.contains(item))
            };
            let mut chosen: BTreeMap<u32, usize> = BTreeMap::new();
            for item in class.rows.iter().filter_map(|&row| highest(row, &ranking)) {
                *chosen.entry(item).or_default() += 1;
            }
            let count = |item: &u32| chosen.get(item).copied().unwrap_or(0);
            let pivots: Vec<u32> = ranking
                .iter()
                .copied()
                .filter(|item| count(item) >= self.k)
                .collect();
            let mut parts: BTreeMap<Option<u32>, Vec<usize>> = BTreeMap::new();
            for &row in &class.rows {
                parts.entry(highest(row, &pivots)).or_default().push(row);
            }
            if parts.get(&None).is_none_or(|rest| rest.len() >= self.k) {
                let divided = parts.into_iter().map(|(item, rows)| {
                    let mut disclosed = class.disclosed.clone();
                    disclosed[set].extend(item);
                    let finished = vec![false; self.items.len()];
                    Class {
                        rows,
                        disclosed,
                        finished,
                    }
                });
                return Some(divided.collect());
            }
            let before = ranking.len();
            ranking.retain(|item| count(item) + self.k < class.rows.len());
            if ranking.len() == before {
                ranking.retain(|item| pivots.last() != Some(item));
            }
        }
        None
    }
}
