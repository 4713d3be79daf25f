//! One round of disclosure (2014 paper, Sections 5.1 to 5.3): the classes disclose in parallel, and
//! the trash bin is filled in their order.

use rayon::prelude::*;

use super::class::Anonymity;
use super::class::EquivalenceClass;

/// No rank: the item is not a candidate, or the row discloses nothing.
const NONE: u32 = u32::MAX;

/// Number of rows or items between two checks whether to stop.
pub(super) const STRIDE: usize = 1 << 12;

/// A function that returns whether the search must stop.
pub(super) type StopCheck<'a> = &'a (dyn Fn() -> bool + Sync);

/// Working memory of a thread, reused for every class.
pub(super) struct Scratch {
    /// *f_c(α)* by item, 0 between classes.
    frequency: Vec<u32>,
    /// *rank_c(α)* by item, [`NONE`] between classes.
    rank: Vec<u32>,
    /// By item, the last person that was counted, or [`NONE`]; empty where rows are counted.
    last_person: Vec<u32>,
}

impl Scratch {
    /// For columns with at most this many distinct items.
    pub(super) fn new(items: usize) -> Self {
        Self {
            frequency: vec![0; items],
            rank: vec![NONE; items],
            last_person: Vec::new(),
        }
    }
}

/// A class in which a round of disclosure has begun.
pub(super) struct DisclosureAttempt {
    class: EquivalenceClass,
    /// Number of persons, or of rows where these are counted.
    persons: usize,
    /// Index of the set-valued column.
    set: usize,
    /// Items held by at least k rows, by rank: the most frequent first, ties by name.
    ranked: Vec<RankedItem>,
}

struct RankedItem {
    item: u32,
    /// *f_c(α)*.
    frequency: u32,
    /// Whether a cancellation removed it from *Cand(c)*.
    removed: bool,
}

/// Where the rows go that disclose nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rest {
    /// Into a part of their own, the last one.
    LastPart,
    /// Into no part.
    LeftOut,
}

/// The pivots of a round and what each row discloses.
struct PivotChoice {
    /// By index in the class, the rank of the disclosed item, or [`NONE`].
    rank_of: Vec<u32>,
    /// Ranks of the pivots, *P(c)*, ascending.
    pivots: Vec<u32>,
    /// *f\*_c(α\*)* by rank: the number of rows whose highest ranked item this is.
    first_of: Vec<u32>,
    /// Number of rows that disclose nothing.
    rest: usize,
    /// Number of their persons.
    rest_persons: usize,
}

impl PivotChoice {
    /// Whether the rows that disclose nothing can be a class of their own.
    fn has_no_small_rest(&self, k: usize) -> bool {
        self.rest == 0 || self.rest_persons >= k
    }
}

/// How a round ends for a class.
pub(super) enum RoundOutcome {
    /// Nothing is disclosed; the class is finished with this column.
    Kept(EquivalenceClass),
    /// Items are disclosed. These are the parts of the class, ordered by the rank of the disclosed
    /// item; the rows that disclose nothing are the last part.
    Disclosed(Vec<EquivalenceClass>),
    /// Items can be disclosed if the rows that disclose nothing, fewer than k, are moved to the
    /// trash bin.
    NeedsTrashBin(Box<PendingRound>),
}

/// A round that depends on whether the trash bin can take the rows that disclose nothing.
pub(super) struct PendingRound {
    attempt: DisclosureAttempt,
    choice: PivotChoice,
}

impl PendingRound {
    /// Number of rows that must be suppressed.
    pub(super) fn rest(&self) -> usize {
        self.choice.rest
    }

    /// Uses the trash bin. Returns the parts that disclose items, and the suppressed row numbers,
    /// ascending.
    pub(super) fn suppress(self) -> (Vec<EquivalenceClass>, Vec<u32>) {
        let Self { attempt, choice } = self;
        let rows = attempt.class.rows.iter().zip(&choice.rank_of);
        let rest = rows
            .filter(|(_, rank)| **rank == NONE)
            .map(|(&row, _)| row)
            .collect();
        (attempt.parts(&choice, Rest::LeftOut), rest)
    }

    /// Continues without using the trash bin for these rows.
    pub(super) fn cancel(
        self,
        anonymity: Anonymity<'_>,
        capacity: usize,
        scratch: &mut Scratch,
        stop: StopCheck,
    ) -> RoundOutcome {
        let Self {
            mut attempt,
            choice,
        } = self;
        attempt.cancel(&choice, anonymity.k);
        attempt.run(anonymity, capacity, scratch, stop)
    }
}

/// Begins a round in a class. `capacity` is the number of rows that the trash bin can still take.
/// If `stop` returns true, the class may be left unchanged.
pub(super) fn disclose(
    mut class: EquivalenceClass,
    set: usize,
    anonymity: Anonymity<'_>,
    capacity: usize,
    scratch: &mut Scratch,
    stop: StopCheck,
) -> RoundOutcome {
    let k = anonymity.k;
    let found = count_items(&class, set, anonymity, scratch, stop);
    let class_set = &mut class.sets[set];
    // No part of the class holds an item more often, so items that are rare here stay rare.
    class_set.retain(|item| scratch.frequency[item as usize] as usize >= k);
    let mut ranked: Vec<RankedItem> = found
        .iter()
        .map(|&item| RankedItem {
            item,
            frequency: std::mem::take(&mut scratch.frequency[item as usize]),
            removed: false,
        })
        .filter(|ranked| ranked.frequency as usize >= k)
        .collect();
    ranked.sort_unstable_by_key(|ranked| (std::cmp::Reverse(ranked.frequency), ranked.item));
    let attempt = DisclosureAttempt {
        persons: anonymity.count(class.rows.iter().copied()),
        class,
        set,
        ranked,
    };
    attempt.run(anonymity, capacity, scratch, stop)
}

/// Counts the rows of a class, or its persons, by hidden item. Returns the items found.
fn count_items(
    class: &EquivalenceClass,
    set: usize,
    anonymity: Anonymity<'_>,
    scratch: &mut Scratch,
    stop: StopCheck,
) -> Vec<u32> {
    let mut found = Vec::new();
    if anonymity.counts_persons() {
        scratch.last_person.resize(scratch.rank.len(), NONE);
    }
    for (index, &row) in class.rows.iter().enumerate() {
        if index % STRIDE == 0 && stop() {
            break;
        }
        let person = anonymity.person(row);
        for &item in class.sets[set].items_of(index) {
            let frequency = &mut scratch.frequency[item as usize];
            if *frequency == 0 {
                found.push(item);
            }
            let last = scratch.last_person.get_mut(item as usize);
            let is_new = last.is_none_or(|last| std::mem::replace(last, person) != person);
            *frequency += u32::from(is_new);
        }
    }
    for &item in &found {
        if let Some(last) = scratch.last_person.get_mut(item as usize) {
            *last = NONE;
        }
    }
    found
}

impl DisclosureAttempt {
    /// Chooses pivots and cancels until an item can be disclosed or no candidate is left.
    fn run(
        mut self,
        anonymity: Anonymity<'_>,
        capacity: usize,
        scratch: &mut Scratch,
        stop: StopCheck,
    ) -> RoundOutcome {
        let k = anonymity.k;
        loop {
            if stop() {
                return RoundOutcome::Kept(self.class);
            }
            let Some(choice) = self.choose(anonymity, scratch, stop) else {
                return match self.choose_single(anonymity) {
                    Some(choice) => RoundOutcome::Disclosed(self.parts(&choice, Rest::LastPart)),
                    None => {
                        self.class.sets[self.set].finished = true;
                        RoundOutcome::Kept(self.class)
                    }
                };
            };
            if choice.has_no_small_rest(k) {
                return RoundOutcome::Disclosed(self.parts(&choice, Rest::LastPart));
            }
            if choice.rest <= capacity {
                return RoundOutcome::NeedsTrashBin(Box::new(PendingRound {
                    attempt: self,
                    choice,
                }));
            }
            self.cancel(&choice, k);
        }
    }

    /// Candidate selection (Section 5.2). Each row chooses its highest ranked item; items chosen by
    /// at least k rows become pivots; each row then discloses its highest ranked pivot. `None` when
    /// no item is left in the ranking. While an item is left there is a pivot, because the most
    /// frequent one is chosen by all rows that hold it.
    fn choose(
        &self,
        anonymity: Anonymity<'_>,
        scratch: &mut Scratch,
        stop: StopCheck,
    ) -> Option<PivotChoice> {
        let k = anonymity.k;
        if self.ranked.iter().all(|ranked| ranked.removed) {
            return None;
        }
        for (rank, ranked) in self.ranked.iter().enumerate() {
            scratch.rank[ranked.item as usize] = if ranked.removed { NONE } else { rank as u32 };
        }
        let set = &self.class.sets[self.set];
        let mut rank_of = vec![NONE; self.class.len()];
        let mut first_of = vec![0u32; self.ranked.len()];
        let mut last_person = if anonymity.counts_persons() {
            vec![NONE; self.ranked.len()]
        } else {
            Vec::new()
        };
        for (index, best) in rank_of.iter_mut().enumerate() {
            if index % STRIDE == 0 && stop() {
                break;
            }
            let ranks = set
                .items_of(index)
                .iter()
                .map(|&item| scratch.rank[item as usize]);
            *best = ranks.min().unwrap_or(NONE);
            if let Some(first_of) = first_of.get_mut(*best as usize) {
                let person = anonymity.person(self.class.rows[index]);
                let last = last_person.get_mut(*best as usize);
                let is_new = last.is_none_or(|last| std::mem::replace(last, person) != person);
                *first_of += u32::from(is_new);
            }
        }
        let is_pivot = |rank: u32| {
            let chosen = first_of.get(rank as usize);
            chosen.is_some_and(|&chosen| chosen as usize >= k)
        };
        let mut rest = 0;
        for (index, best) in rank_of.iter_mut().enumerate() {
            if is_pivot(*best) {
                continue;
            }
            if *best != NONE {
                let ranks = set
                    .items_of(index)
                    .iter()
                    .map(|&item| scratch.rank[item as usize]);
                *best = ranks.filter(|&rank| is_pivot(rank)).min().unwrap_or(NONE);
            }
            rest += usize::from(*best == NONE);
        }
        for ranked in &self.ranked {
            scratch.rank[ranked.item as usize] = NONE;
        }
        let pivots = (0..self.ranked.len() as u32).filter(|&rank| is_pivot(rank));
        let rest_persons = if anonymity.counts_persons() {
            self.persons_of_rest(&rank_of, anonymity)
        } else {
            rest
        };
        Some(PivotChoice {
            rest_persons,
            pivots: pivots.collect(),
            rank_of,
            first_of,
            rest,
        })
    }

    /// Number of persons of the rows that disclose nothing.
    fn persons_of_rest(&self, rank_of: &[u32], anonymity: Anonymity<'_>) -> usize {
        let rows = self.class.rows.iter().zip(rank_of);
        let rest: Vec<u32> = rows
            .filter(|(_, rank)| **rank == NONE)
            .map(|(&row, _)| row)
            .collect();
        anonymity.count(rest.into_iter())
    }

    /// Cancellation (Section 5.3): removes from the ranking the items that led to a violation.
    /// These are the items whose choice leaves at most k other rows, or the lowest ranked pivot
    /// where there is no such item.
    fn cancel(&mut self, choice: &PivotChoice, k: usize) {
        let persons = self.persons;
        let mut any = false;
        for (ranked, &first) in self.ranked.iter_mut().zip(&choice.first_of) {
            if !ranked.removed && first as usize + k >= persons {
                ranked.removed = true;
                any = true;
            }
        }
        if let Some(&lowest) = choice.pivots.last().filter(|_| !any) {
            self.ranked[lowest as usize].removed = true;
        }
    }

    /// The highest ranked item that can be disclosed alone, for when no items can be disclosed
    /// together: all rows hold it, or at least k rows do not.
    fn choose_single(&self, anonymity: Anonymity<'_>) -> Option<PivotChoice> {
        let choices = (0..self.ranked.len() as u32).filter(|&rank| {
            // Persons who hold the item may have rows without it, so these are counted.
            let rest = self.persons - self.ranked[rank as usize].frequency as usize;
            anonymity.counts_persons() || rest == 0 || rest >= anonymity.k
        });
        let mut choices = choices.map(|rank| self.single(rank, anonymity));
        choices.find(|choice| choice.has_no_small_rest(anonymity.k))
    }

    /// The choice that discloses the item with this rank alone.
    fn single(&self, rank: u32, anonymity: Anonymity<'_>) -> PivotChoice {
        let item = self.ranked[rank as usize].item;
        let set = &self.class.sets[self.set];
        let rank_of =
            (0..self.class.len()).map(|index| match set.items_of(index).binary_search(&item) {
                Ok(_) => rank,
                Err(_) => NONE,
            });
        let rank_of: Vec<u32> = rank_of.collect();
        PivotChoice {
            rest: rank_of.iter().filter(|&&rank| rank == NONE).count(),
            rest_persons: self.persons_of_rest(&rank_of, anonymity),
            rank_of,
            pivots: vec![rank],
            first_of: Vec::new(),
        }
    }

    /// Divides the class by the disclosed items.
    fn parts(self, choice: &PivotChoice, rest: Rest) -> Vec<EquivalenceClass> {
        let Self {
            mut class,
            set,
            ranked,
            ..
        } = self;
        let item_of = |rank: u32| ranked[rank as usize].item;
        if let (&[pivot], 0) = (&*choice.pivots, choice.rest) {
            let item = item_of(pivot);
            let whole = &mut class.sets[set];
            whole.retain(|other| other != item);
            whole.disclosed.push(item);
            return vec![class];
        }
        let mut part_of = vec![usize::MAX; ranked.len()];
        for (part, &pivot) in choice.pivots.iter().enumerate() {
            part_of[pivot as usize] = part;
        }
        let rest = if rest == Rest::LastPart && choice.rest > 0 {
            choice.pivots.len()
        } else {
            usize::MAX
        };
        let parts = choice.pivots.len() + usize::from(rest != usize::MAX);
        let mut divided = class.divide(parts, |index| {
            let rank = choice.rank_of[index] as usize;
            part_of.get(rank).copied().unwrap_or(rest)
        });
        for (part, &pivot) in divided.iter_mut().zip(&choice.pivots) {
            let item = item_of(pivot);
            let set = &mut part.sets[set];
            set.retain(|other| other != item);
            set.disclosed.push(item);
        }
        divided
    }
}

/// The parameters of a round, the same for every class.
pub(super) struct DisclosureRound<'a> {
    /// Index of the set-valued column.
    pub set: usize,
    /// Number of distinct items of the column.
    pub items: usize,
    /// What each class must have.
    pub anonymity: Anonymity<'a>,
    /// Whether the search must stop; the resulting classes must then be discarded.
    pub stop: StopCheck<'a>,
}

impl DisclosureRound<'_> {
    /// Discloses items in every class. Returns the resulting classes, in the order of the classes
    /// that they come from, and the rows moved to the trash bin, at most `capacity` of them.
    ///
    /// Classes that need the trash bin are served in class order: a class may use it if all of its
    /// remaining rows fit. The others continue without it, and may ask again with fewer rows.
    pub(super) fn run(
        &self,
        classes: Vec<EquivalenceClass>,
        mut capacity: usize,
    ) -> (Vec<EquivalenceClass>, Vec<u32>) {
        let begin = |scratch: &mut Scratch, class: EquivalenceClass| match class.sets[self.set]
            .rows_with_candidates()
        {
            0 => RoundOutcome::Kept(class),
            _ => disclose(
                class,
                self.set,
                self.anonymity,
                capacity,
                scratch,
                self.stop,
            ),
        };
        let mut outcomes: Vec<RoundOutcome> = classes
            .into_par_iter()
            .map_init(|| Scratch::new(self.items), begin)
            .collect();
        let mut suppressed = Vec::new();
        loop {
            let mut refused = Vec::new();
            for (index, outcome) in outcomes.iter_mut().enumerate() {
                let RoundOutcome::NeedsTrashBin(_) = outcome else {
                    continue;
                };
                let taken = std::mem::replace(outcome, RoundOutcome::Disclosed(Vec::new()));
                let RoundOutcome::NeedsTrashBin(pending) = taken else {
                    continue;
                };
                if pending.rest() <= capacity {
                    capacity -= pending.rest();
                    let (parts, rest) = pending.suppress();
                    suppressed.extend(rest);
                    *outcome = RoundOutcome::Disclosed(parts);
                } else {
                    refused.push((index, pending));
                }
            }
            if refused.is_empty() {
                break;
            }
            let cancel = |scratch: &mut Scratch, (index, pending): (usize, Box<PendingRound>)| {
                (
                    index,
                    pending.cancel(self.anonymity, capacity, scratch, self.stop),
                )
            };
            let again: Vec<(usize, RoundOutcome)> = refused
                .into_par_iter()
                .map_init(|| Scratch::new(self.items), cancel)
                .collect();
            for (index, outcome) in again {
                outcomes[index] = outcome;
            }
        }
        let mut after = Vec::with_capacity(outcomes.len());
        for outcome in outcomes {
            match outcome {
                RoundOutcome::Kept(class) => after.push(class),
                RoundOutcome::Disclosed(parts) => after.extend(parts),
                // The loop above leaves none of these.
                RoundOutcome::NeedsTrashBin(_) => {}
            }
        }
        (after, suppressed)
    }
}
