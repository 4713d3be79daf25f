//! What is known of elements, and the check of several of them as one group.

use super::TrialTable;

impl TrialTable<'_> {
    /// Number of rows.
    pub(super) fn size(&self, element: u32) -> u64 {
        let parts = self.shared.live.len();
        let element = element as usize;
        u64::from(match element.checked_sub(parts) {
            None => self.shared.live.sizes[element],
            Some(share) => self.shares[share].size,
        })
    }

    /// Counts the parts among some elements that were not counted yet.
    fn count_parts(&mut self, elements: &[u32]) {
        let (partitions, requirement) = (self.trial.partitions, self.trial.requirement);
        for &element in elements {
            if let Some(&partition) = self.shared.live.partitions.get(element as usize) {
                self.count_cache.count(partition, partitions, requirement);
            }
        }
    }

    /// Whether some elements together have *K* persons.
    pub(super) fn has_enough(&mut self, elements: &[u32]) -> bool {
        let requirement = self.trial.requirement;
        let size = elements.iter().map(|&element| self.size(element)).sum();
        if !requirement.meets_k(size) || requirement.surely_meets_k(size) {
            return requirement.meets_k(size);
        }
        self.count_parts(elements);
        let live = &self.shared.live;
        let (shares, count_cache, subjects) = (&self.shares, &*self.count_cache, self.subjects);
        let list = |&element: &u32| -> &[u32] {
            match (element as usize).checked_sub(live.len()) {
                None => count_cache.subjects(live.partitions[element as usize]),
                Some(share) => subjects.map_or(&[], |subjects| {
                    let share = &shares[share];
                    subjects.child(share.child as usize).of_share(share.place)
                }),
            }
        };
        self.persons.has_enough(size, elements.iter().map(list))
    }

    /// Whether some elements together are bounded by *C*.
    pub(super) fn is_bounded(&mut self, elements: &[u32]) -> bool {
        self.count_parts(elements);
        let live = &self.shared.live;
        let mut size = 0;
        let mut values = Vec::new();
        let totals = &mut self.shared.totals;
        for &element in elements {
            let (rows, counts) = match (element as usize).checked_sub(live.len()) {
                None => {
                    let counts = self
                        .count_cache
                        .sensitive(live.partitions[element as usize]);
                    (live.sizes[element as usize], counts)
                }
                Some(share) => {
                    let share = &self.shares[share];
                    let of_child = &self.split_counts.children()[share.child as usize];
                    let counts = self
                        .split_counts
                        .sensitive_counts(&of_child[share.place as usize]);
                    (share.size, counts)
                }
            };
            size += u64::from(rows);
            for &(value, count) in counts {
                let total = &mut totals[value as usize];
                if *total == 0 {
                    values.push(value);
                }
                *total += u64::from(count);
            }
        }
        values.sort_unstable();
        let counts: Vec<(u32, u64)> = values
            .into_iter()
            .map(|value| (value, std::mem::take(&mut totals[value as usize])))
            .collect();
        let requirement = self.trial.requirement;
        requirement.allows_counts(size, counts.into_iter())
    }
}
