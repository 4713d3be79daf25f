//! The groups of the current table that lose a part.

use super::TrialTable;

impl TrialTable<'_> {
    /// Checks the groups of the current table that lose a part. Those that become small are
    /// suppressed, or with `confidence` all that lost a part must be bounded by *C*.
    pub(super) fn visit_index(&mut self, confidence: bool) -> Option<()> {
        if self.suppressed.is_empty() {
            return Some(());
        }
        self.index_shares();
        for block in 0..self.shared.index.blocks() {
            self.load(block)?;
            self.apply();
            while let Some((subset, group)) = self.shared.queue.pop() {
                self.shared.queued[group as usize] = false;
                let elements = self.elements(subset as usize, group);
                if !self.has_enough(&elements) {
                    self.remove(&elements)?;
                    self.apply();
                }
                if self.trial.observer.must_stop() {
                    return None;
                }
            }
            if confidence {
                self.check_touched()?;
            }
        }
        Some(())
    }

    /// Lists the shares of each part.
    fn index_shares(&mut self) {
        if !self.share_ends.is_empty() {
            return;
        }
        let mut starts = vec![0u32; self.shared.live.len() + 1];
        for share in &self.shares {
            starts[share.part as usize + 1] += 1;
        }
        for part in 1..starts.len() {
            starts[part] += starts[part - 1];
        }
        self.shares_by_part = vec![0; self.shares.len()];
        for (number, share) in (0..).zip(&self.shares) {
            let at = &mut starts[share.part as usize];
            self.shares_by_part[*at as usize] = number;
            *at += 1;
        }
        self.share_ends = starts;
    }

    fn load(&mut self, block: usize) -> Option<()> {
        let shared = &mut *self.shared;
        if shared.index.is_loaded(block) {
            return Some(());
        }
        // What groups lost refers to the groups of the former block.
        shared.reset();
        let space = (&shared.live, &mut shared.grouping);
        shared.index.load(block, space, self.trial.observer)?;
        shared.lost.clear();
        shared.lost.resize(shared.index.rows.len(), 0);
        shared.queued.clear();
        shared.queued.resize(shared.index.rows.len(), false);
        self.applied = 0;
        Some(())
    }

    /// Takes the rows that were suppressed since the last call from their groups.
    fn apply(&mut self) {
        let shared = &mut *self.shared;
        let parts = shared.live.len();
        let requirement = self.trial.requirement;
        for &element in &self.suppressed[self.applied..] {
            let element = element as usize;
            let (part, size, refined) = match element.checked_sub(parts) {
                None => (element, shared.live.sizes[element], false),
                Some(share) => {
                    let share = &self.shares[share];
                    (share.part as usize, share.size, true)
                }
            };
            for subset in 0..shared.index.subset_count() {
                // The group is divided among the children, which are checked by themselves.
                let own = self.own.filter(|_| refined);
                if own.is_some_and(|own| shared.index.subset(subset).contains(&own)) {
                    continue;
                }
                let group = shared.index.groups(subset, &shared.live)[part];
                let lost = &mut shared.lost[group as usize];
                if *lost == 0 {
                    shared.touched.push(group);
                }
                *lost += size;
                let left = u64::from(shared.index.rows[group as usize] - *lost);
                let queued = &mut shared.queued[group as usize];
                if left > 0 && !requirement.surely_meets_k(left) && !*queued {
                    *queued = true;
                    shared.queue.push((subset as u32, group));
                }
            }
        }
        self.applied = self.suppressed.len();
    }

    /// What is left of a group of the index.
    fn elements(&self, subset: usize, group: u32) -> Vec<u32> {
        let (live, index) = (&self.shared.live, &self.shared.index);
        let example = index.example[group as usize] as usize;
        let link = |&position: &usize| {
            let concept = live.columns[position].concepts[example];
            self.trial
                .partitions
                .link(live.below_top[position], concept)
        };
        let links = index.subset(subset).iter().map(link);
        let shortest = links.min_by_key(|link| link.len()).unwrap_or_default();
        let group_of = index.groups(subset, live);
        let mut elements = Vec::new();
        for &partition in shortest {
            if self.trial.partitions.size(partition) > 0 {
                let part = live.part_of[partition as usize];
                if group_of[part as usize] == group {
                    self.push_elements(part, |element| elements.push(element));
                }
            }
        }
        elements
    }

    /// Calls `found` with what is left of a part.
    fn push_elements(&self, part: u32, mut found: impl FnMut(u32)) {
        let end = self.share_ends[part as usize] as usize;
        let start = (part as usize).checked_sub(1);
        let start = start.map_or(0, |before| self.share_ends[before] as usize);
        let parts = self.shared.live.len() as u32;
        if start == end && !self.is_suppressed[part as usize] {
            found(part);
        }
        for share in &self.shares_by_part[start..end] {
            if !self.is_suppressed[(parts + share) as usize] {
                found(parts + share);
            }
        }
    }

    /// Whether each group of the block at hand that lost rows is bounded by *C*.
    fn check_touched(&mut self) -> Option<()> {
        let index = &self.shared.index;
        let mut is_touched = vec![false; index.subset_count()];
        for &group in &self.shared.touched {
            is_touched[index.starts.partition_point(|&start| start <= group) - 1] = true;
        }
        let mut pairs = Vec::new();
        let touched = is_touched
            .iter()
            .enumerate()
            .filter(|(_, touched)| **touched);
        for subset in touched.map(|(subset, _)| subset) {
            if self.trial.observer.must_stop() {
                return None;
            }
            let (start, end) = (
                self.shared.index.starts[subset],
                self.shared.index.starts[subset + 1],
            );
            let groups = self.shared.index.groups(subset, &self.shared.live);
            pairs.clear();
            for (part, &group) in (0..).zip(groups) {
                if self.shared.lost[group as usize] > 0 {
                    self.push_elements(part, |element| pairs.push((group - start, element)));
                }
            }
            let mut by_group = std::mem::take(&mut self.shared.by_group);
            by_group.fill((end - start) as usize, pairs.iter().copied());
            let bounded = by_group.lists().all(|elements| self.is_bounded(elements));
            self.shared.by_group = by_group;
            if !bounded {
                return None;
            }
        }
        Some(())
    }
}
