//! One round of disclosure in one class (2014 paper, Sections 5.1 to 5.3).

use super::class::Class;

/// No rank: the item is no candidate, the row discloses nothing.
const NONE: u32 = u32::MAX;

/// Rows between two looks at whether to stop.
pub(super) const STRIDE: usize = 1 << 12;

/// Whether the run is to stop.
pub type Stop<'a> = &'a (dyn Fn() -> bool + Sync);

/// Memory that a thread uses again for every class.
pub struct Scratch {
    /// *f_c(α)* by item, 0 between classes.
    frequency: Vec<u32>,
    /// *rank_c(α)* by item, [`NONE`] between classes.
    rank: Vec<u32>,
}

impl Scratch {
    /// For columns of so many items.
    pub fn new(items: usize) -> Self {
        Self {
            frequency: vec![0; items],
            rank: vec![NONE; items],
        }
    }
}

/// A class in which a round of disclosure has begun.
pub struct Attempt {
    class: Class,
    /// Which of its sets.
    set: usize,
    /// Items held by at least k rows, by rank: the most frequent first, ties by name.
    ranked: Vec<Ranked>,
}

struct Ranked {
    item: u32,
    /// *f_c(α)*.
    frequency: u32,
    /// Whether a cancellation removed it from *Cand(c)*.
    removed: bool,
}

/// What each row discloses: the rank of an item, or [`NONE`].
struct Choice {
    of_place: Vec<u32>,
    /// Ranks of the pivots, *P(c)*, ascending.
    pivots: Vec<u32>,
    /// *f\*_c(α\*)* by rank.
    first_of: Vec<u32>,
    /// Rows that disclose nothing.
    rest: usize,
}

/// How a round ends for a class.
pub enum Outcome {
    /// Nothing is disclosed; the class is finished with this column.
    Kept(Class),
    /// It discloses; these are its parts, by rank of what they disclose, the rest last.
    Disclosed(Vec<Class>),
    /// It can disclose if the rest, which is smaller than k, goes to the trash bin.
    Short(Box<Short>),
}

/// A round that waits for room in the trash bin.
pub struct Short {
    attempt: Attempt,
    choice: Choice,
}

impl Short {
    /// Rows that must be suppressed.
    pub fn rest(&self) -> usize {
        self.choice.rest
    }

    /// The parts without the rest, and the rows of the rest, ascending.
    pub fn suppress(self) -> (Vec<Class>, Vec<u32>) {
        let Self { attempt, choice } = self;
        let rows = attempt.class.rows.iter().zip(&choice.of_place);
        let rest = rows
            .filter(|(_, rank)| **rank == NONE)
            .map(|(&row, _)| row)
            .collect();
        (attempt.parts(&choice, false), rest)
    }

    /// Goes on without the bin.
    pub fn cancel(self, k: usize, room: usize, scratch: &mut Scratch, stop: Stop) -> Outcome {
        let Self {
            mut attempt,
            choice,
        } = self;
        attempt.cancel(&choice, k);
        attempt.go_on(k, room, scratch, stop)
    }
}

/// Begins a round in a class; `room` is how many rows the trash bin takes at most. A run that is
/// stopped may leave the class as it is.
pub fn disclose(
    mut class: Class,
    set: usize,
    (k, room): (usize, usize),
    scratch: &mut Scratch,
    stop: Stop,
) -> Outcome {
    let open = &mut class.sets[set];
    let mut found: Vec<u32> = Vec::new();
    for (at, &item) in open.items.iter().enumerate() {
        if at % STRIDE == 0 && stop() {
            break;
        }
        let frequency = &mut scratch.frequency[item as usize];
        if *frequency == 0 {
            found.push(item);
        }
        *frequency += 1;
    }
    // A part of the class holds no item more often, so what is rare here is so for good.
    open.retain(|item| scratch.frequency[item as usize] as usize >= k);
    let mut ranked: Vec<Ranked> = found
        .iter()
        .map(|&item| Ranked {
            item,
            frequency: std::mem::take(&mut scratch.frequency[item as usize]),
            removed: false,
        })
        .filter(|ranked| ranked.frequency as usize >= k)
        .collect();
    ranked.sort_unstable_by_key(|ranked| (std::cmp::Reverse(ranked.frequency), ranked.item));
    let attempt = Attempt { class, set, ranked };
    attempt.go_on(k, room, scratch, stop)
}

impl Attempt {
    /// Chooses and cancels until something can be disclosed, or nothing is left to.
    fn go_on(mut self, k: usize, room: usize, scratch: &mut Scratch, stop: Stop) -> Outcome {
        loop {
            if stop() {
                return Outcome::Kept(self.class);
            }
            let Some(choice) = self.choose(k, scratch, stop) else {
                return match self.alone(k) {
                    Some(choice) => Outcome::Disclosed(self.parts(&choice, true)),
                    None => {
                        self.class.sets[self.set].finished = true;
                        Outcome::Kept(self.class)
                    }
                };
            };
            if choice.rest == 0 || choice.rest >= k {
                return Outcome::Disclosed(self.parts(&choice, true));
            }
            if choice.rest <= room {
                return Outcome::Short(Box::new(Short {
                    attempt: self,
                    choice,
                }));
            }
            self.cancel(&choice, k);
        }
    }

    /// Candidate selection (Section 5.2): the highest ranked item of each row, those chosen by
    /// k rows as pivots, and for each row its highest ranked pivot. `None` when no item is left
    /// in the ranking: the most frequent one left is chosen by all its rows, so there is a
    /// pivot as long as there is an item.
    fn choose(&self, k: usize, scratch: &mut Scratch, stop: Stop) -> Option<Choice> {
        if self.ranked.iter().all(|ranked| ranked.removed) {
            return None;
        }
        for (rank, ranked) in self.ranked.iter().enumerate() {
            scratch.rank[ranked.item as usize] = if ranked.removed { NONE } else { rank as u32 };
        }
        let set = &self.class.sets[self.set];
        let mut of_place = vec![NONE; self.class.len()];
        let mut first_of = vec![0u32; self.ranked.len()];
        for (place, best) in of_place.iter_mut().enumerate() {
            if place % STRIDE == 0 && stop() {
                break;
            }
            let ranks = set
                .of(place)
                .iter()
                .map(|&item| scratch.rank[item as usize]);
            *best = ranks.min().unwrap_or(NONE);
            if let Some(first_of) = first_of.get_mut(*best as usize) {
                *first_of += 1;
            }
        }
        let is_pivot = |rank: u32| {
            let chosen = first_of.get(rank as usize);
            chosen.is_some_and(|&chosen| chosen as usize >= k)
        };
        let mut rest = 0;
        for (place, best) in of_place.iter_mut().enumerate() {
            if is_pivot(*best) {
                continue;
            }
            if *best != NONE {
                let ranks = set
                    .of(place)
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
        Some(Choice {
            pivots: pivots.collect(),
            of_place,
            first_of,
            rest,
        })
    }

    /// Removes from the ranking what led to a violation (Section 5.3): items that too few rows
    /// are left beside, or, where there is none such, the lowest ranked pivot.
    fn cancel(&mut self, choice: &Choice, k: usize) {
        let rows = self.class.len();
        let mut any = false;
        for (ranked, &first) in self.ranked.iter_mut().zip(&choice.first_of) {
            if !ranked.removed && first as usize + k >= rows {
                ranked.removed = true;
                any = true;
            }
        }
        if let Some(&lowest) = choice.pivots.last().filter(|_| !any) {
            self.ranked[lowest as usize].removed = true;
        }
    }

    /// The highest ranked item that can be disclosed alone, once none can be with others: all
    /// rows hold it, or so many do not that they are a class.
    fn alone(&self, k: usize) -> Option<Choice> {
        let rows = self.class.len();
        let fits = |ranked: &Ranked| {
            let rest = rows - ranked.frequency as usize;
            rest == 0 || rest >= k
        };
        let rank = self.ranked.iter().position(fits)?;
        let (item, rank) = (self.ranked[rank].item, rank as u32);
        let set = &self.class.sets[self.set];
        let of_place = (0..rows).map(|place| match set.of(place).binary_search(&item) {
            Ok(_) => rank,
            Err(_) => NONE,
        });
        Some(Choice {
            of_place: of_place.collect(),
            pivots: vec![rank],
            first_of: Vec::new(),
            rest: rows - self.ranked[rank as usize].frequency as usize,
        })
    }

    /// The class divided by what its rows disclose; with the rest, if wanted, as the last part.
    fn parts(self, choice: &Choice, with_rest: bool) -> Vec<Class> {
        let Self {
            mut class,
            set,
            ranked,
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
        let rest = if with_rest && choice.rest > 0 {
            choice.pivots.len()
        } else {
            usize::MAX
        };
        let parts = choice.pivots.len() + usize::from(rest != usize::MAX);
        let mut divided = class.divided(parts, |place| {
            let rank = choice.of_place[place] as usize;
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
