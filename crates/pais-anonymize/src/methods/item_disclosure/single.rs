//! Disclosure of one item at a time: of all set-valued columns, the item that loses least.
//!
//! A round of the paper discloses the most frequent items of one column together. Here a class is
//! divided in two by one item, of whichever column, and each part goes on by itself. It is slower,
//! and often hides less in a small class.

use super::class::EquivalenceClass;
use super::disclosure::StopCheck;
use super::search::DisclosureTask;

/// What an item counts in the choice of the next one.
#[derive(Clone, Copy)]
pub(super) struct ItemGains {
    /// Seed of the random factors; `None` where the gains are those of NCP.
    seed: Option<u64>,
    /// Greatest deviation of a factor from 1.
    spread: f64,
}

impl ItemGains {
    /// The decrease of NCP.
    pub(super) const EXACT: Self = Self {
        seed: None,
        spread: 0.0,
    };

    /// The decrease of NCP times random factors, which deviate from 1 by `spread` at most.
    pub(super) fn random(seed: u64, spread: f64) -> Self {
        Self {
            seed: Some(seed),
            spread,
        }
    }

    /// A factor from `1 - spread` to `1 + spread`, the same for an item in every class.
    fn factor(&self, set: usize, item: u32) -> f64 {
        let Some(seed) = self.seed else { return 1.0 };
        let mixed = mix(seed ^ mix((set as u64) << 32 | u64::from(item)));
        let unit = (mixed >> 11) as f64 / (1u64 << 53) as f64;
        1.0 + self.spread * (2.0 * unit - 1.0)
    }
}

/// A number that depends on every bit of another one (SplitMix64).
pub(super) fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// An item that may be the next one.
struct Candidate {
    set: usize,
    item: u32,
    /// The decrease of the loss.
    gain: f64,
}

/// Divides a class as long as an item can be disclosed. If `stop` returns true, classes that could
/// still be divided may be left as they are.
pub(super) fn disclose_singly(
    task: &DisclosureTask,
    class: EquivalenceClass,
    gains: ItemGains,
    stop: StopCheck,
) -> Vec<EquivalenceClass> {
    let vocabularies = task.vocabularies.iter();
    let mut counts: Vec<Vec<u32>> = vocabularies.map(|items| vec![0; items.len()]).collect();
    let (mut open, mut done) = (vec![class], Vec::new());
    while let Some(mut class) = open.pop() {
        if stop() {
            done.push(class);
            continue;
        }
        let candidates = candidates(task, &mut class, gains, &mut counts);
        match best(task, &class, candidates) {
            None => done.push(class),
            Some(chosen) => open.extend(divided(class, &chosen)),
        }
    }
    done
}

/// The items that a part of a class can disclose, as far as its numbers of rows show. Items that
/// too few rows have leave the class, because they stay rare in its parts.
fn candidates(
    task: &DisclosureTask,
    class: &mut EquivalenceClass,
    gains: ItemGains,
    counts: &mut [Vec<u32>],
) -> Vec<Candidate> {
    let (k, rows) = (task.anonymity.k, class.rows.len());
    let mut candidates = Vec::new();
    for (set, (hidden, counts)) in class.sets.iter_mut().zip(counts).enumerate() {
        let mut found = Vec::new();
        for &item in &hidden.items {
            let count = &mut counts[item as usize];
            if *count == 0 {
                found.push(item);
            }
            *count += 1;
        }
        hidden.retain(|item| counts[item as usize] as usize >= k);
        let weight = task.item_weight(set);
        for item in found {
            let count = std::mem::take(&mut counts[item as usize]) as usize;
            if count >= k && (count == rows || rows - count >= k) {
                let kept = count as f64 * (1.0 - task.vocabularies[set].ncp(item));
                let gain = weight * kept * gains.factor(set, item);
                candidates.push(Candidate { set, item, gain });
            }
        }
    }
    candidates
}

/// The candidate with the greatest gain whose parts have enough rows or persons; ties go to the
/// first column, then to the first item.
fn best(
    task: &DisclosureTask,
    class: &EquivalenceClass,
    mut candidates: Vec<Candidate>,
) -> Option<Candidate> {
    let order = |one: &Candidate, other: &Candidate| {
        let by_gain = other.gain.total_cmp(&one.gain);
        by_gain.then((one.set, one.item).cmp(&(other.set, other.item)))
    };
    if !task.anonymity.counts_persons() {
        return candidates.into_iter().min_by(order);
    }
    candidates.sort_unstable_by(order);
    candidates.into_iter().find(|candidate| {
        let holds = |index: &usize| {
            let items = class.sets[candidate.set].items_of(*index);
            items.binary_search(&candidate.item).is_ok()
        };
        let (with, without): (Vec<usize>, Vec<usize>) = (0..class.len()).partition(holds);
        let row = |&index: &usize| class.rows[index];
        let enough = |part: &[usize]| task.anonymity.has_enough(part.iter().map(row));
        enough(&with) && (without.is_empty() || enough(&without))
    })
}

/// The rows that have the item and disclose it, and the others where there are any.
fn divided(mut class: EquivalenceClass, chosen: &Candidate) -> Vec<EquivalenceClass> {
    let &Candidate { set, item, .. } = chosen;
    let whole = &class.sets[set];
    let holds = |index: usize| whole.items_of(index).binary_search(&item).is_ok();
    let all = (0..class.len()).all(holds);
    let mut parts = if all {
        Vec::new()
    } else {
        class.divide(2, |index| usize::from(!holds(index)))
    };
    let with = match parts.first_mut() {
        Some(with) => &mut with.sets[set],
        None => &mut class.sets[set],
    };
    with.retain(|other| other != item);
    with.disclosed.push(item);
    if all { vec![class] } else { parts }
}
