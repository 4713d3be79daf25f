//! A round of disclosure over all classes: disclosure runs in parallel, and the trash bin is
//! filled in the order of the classes.

use rayon::prelude::*;

use super::anonymity::Anonymity;
use super::class::EquivalenceClass;
use super::disclosure::{PendingRound, RoundOutcome, Scratch, StopCheck, disclose};

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
                (self.anonymity, capacity),
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
