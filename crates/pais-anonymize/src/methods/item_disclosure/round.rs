//! A round over all classes: disclosure side by side, the trash bin in their order.

use rayon::prelude::*;

use super::class::Class;
use super::disclosure::{Outcome, Scratch, Short, Stop, disclose};

/// What every class of a round has in common.
pub struct Round<'a> {
    /// Which set-valued column.
    pub set: usize,
    /// Number of its items.
    pub items: usize,
    /// *k*.
    pub k: usize,
    /// Whether the run is to stop; the classes are of no use then.
    pub stop: Stop<'a>,
}

impl Round<'_> {
    /// Discloses in every class; the classes after it in the order of those before, and the
    /// rows that went to the trash bin, of which there are at most `room`.
    ///
    /// A class that needs the bin gets it, in class order, if there is room for its whole rest;
    /// the others go on without it, and may need it again for less.
    pub fn run(&self, classes: Vec<Class>, mut room: usize) -> (Vec<Class>, Vec<u32>) {
        let begin = |scratch: &mut Scratch, class: Class| match class.sets[self.set].open_rows() {
            0 => Outcome::Kept(class),
            _ => disclose(class, self.set, (self.k, room), scratch, self.stop),
        };
        let mut outcomes: Vec<Outcome> = classes
            .into_par_iter()
            .map_init(|| Scratch::new(self.items), begin)
            .collect();
        let mut suppressed = Vec::new();
        loop {
            let mut refused = Vec::new();
            for (index, outcome) in outcomes.iter_mut().enumerate() {
                let Outcome::Short(_) = outcome else { continue };
                let taken = std::mem::replace(outcome, Outcome::Disclosed(Vec::new()));
                let Outcome::Short(short) = taken else {
                    continue;
                };
                if short.rest() <= room {
                    room -= short.rest();
                    let (parts, rest) = short.suppress();
                    suppressed.extend(rest);
                    *outcome = Outcome::Disclosed(parts);
                } else {
                    refused.push((index, short));
                }
            }
            if refused.is_empty() {
                break;
            }
            let cancel = |scratch: &mut Scratch, (index, short): (usize, Box<Short>)| {
                (index, short.cancel(self.k, room, scratch, self.stop))
            };
            let again: Vec<(usize, Outcome)> = refused
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
                Outcome::Kept(class) => after.push(class),
                Outcome::Disclosed(parts) => after.extend(parts),
                // None is left by the loop above.
                Outcome::Short(_) => {}
            }
        }
        (after, suppressed)
    }
}
