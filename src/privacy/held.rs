//! Which sensitive values each record holds, and which of them is the most frequent among some
//! records.

use super::profiles::Tally;

/// Sensitive values up to which all counts are cleared, and not just those in use.
const FEW_VALUES: usize = 64;

/// The sensitive values of records, by record.
#[derive(Default)]
pub(super) struct Held {
    /// `values[starts[i]..starts[i + 1]]` are those of record `i`.
    starts: Vec<u32>,
    values: Vec<u32>,
    /// Records of each sensitive value, 0 between calls.
    counts: Vec<u32>,
}

impl Held {
    pub(super) fn new(sensitive_values: usize) -> Self {
        Self {
            starts: Vec::new(),
            values: Vec::new(),
            counts: vec![0; sensitive_values],
        }
    }

    /// Forgets all records.
    pub(super) fn clear(&mut self) {
        self.starts.clear();
        self.starts.push(0);
        self.values.clear();
    }

    /// Adds the records of a profile. Which of them holds what is not known any more and does
    /// not matter, for they are in the same groups: so the first hold whatever is held.
    pub(super) fn add(&mut self, records: u32, tallies: &[Tally]) {
        for record in 0..records {
            let holding = tallies.iter().filter(|tally| record < tally.records);
            self.values.extend(holding.map(|tally| tally.value));
            self.starts.push(self.values.len() as u32);
        }
    }

    /// The most frequent sensitive value of records; none where they hold none.
    pub(super) fn most(&mut self, records: impl Iterator<Item = u32> + Clone) -> Option<Tally> {
        let Self {
            starts,
            values,
            counts,
        } = self;
        let of = |record: u32| {
            let record = record as usize;
            &values[starts[record] as usize..starts[record + 1] as usize]
        };
        let mut most = Tally {
            value: 0,
            records: 0,
        };
        for &value in records.clone().flat_map(of) {
            let count = &mut counts[value as usize];
            *count += 1;
            // Counts only grow, so the greatest on the way is the greatest in the end.
            if *count > most.records {
                most = Tally {
                    value,
                    records: *count,
                };
            }
        }
        if counts.len() <= FEW_VALUES {
            counts.fill(0);
        } else {
            for &value in records.flat_map(of) {
                counts[value as usize] = 0;
            }
        }
        (most.records > 0).then_some(most)
    }
}
