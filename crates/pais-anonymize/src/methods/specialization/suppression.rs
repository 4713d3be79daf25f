//! What a specialization would cost in suppressed rows.
//!
//! A group that falls short of *K* or exceeds *C* is made to vanish by suppressing all its rows.
//! That takes rows from other groups too, which may then fall short in their turn: so rounds
//! follow until one finds nothing more. Each round suppresses at least one part of a partition
//! for good, so there is an end, and what then stands has no violating qid at all. The whole is
//! given up as soon as it exceeds the budget.

use rustc_hash::FxHashMap;

use crate::Observer;

use super::attribute::ConceptId;
use super::partitions::{PartitionId, Partitions};
use super::requirement::Requirement;
use super::weights::Weights;

/// The rows to suppress with a specialization.
#[derive(Clone, Debug, Default)]
pub struct Suppression {
    /// Parts of the partitions that are refined: partition, and number of the child.
    pub parts: Vec<(PartitionId, u32)>,
    /// Partitions that are not refined.
    pub partitions: Vec<PartitionId>,
    /// Rows of all of them.
    pub rows: u64,
}

/// Sensitive values of partitions, each with how many rows have it; counted when first asked
/// for.
#[derive(Default)]
pub struct Holdings {
    counted: FxHashMap<PartitionId, Box<[(u32, u32)]>>,
}

impl Holdings {
    /// Forgets what was counted of partitions that change.
    pub fn forget(&mut self, partitions: &[PartitionId]) {
        for partition in partitions {
            self.counted.remove(partition);
        }
    }

    fn of(
        &mut self,
        partition: PartitionId,
        partitions: &Partitions,
        requirement: &Requirement<'_>,
    ) -> &[(u32, u32)] {
        self.counted.entry(partition).or_insert_with(|| {
            let mut values = Vec::new();
            for row in partitions.rows(partition) {
                requirement.sensitive_of(row as usize, |value| values.push(value as u32));
            }
            values.sort_unstable();
            let runs = values.chunk_by(|a, b| a == b);
            runs.map(|run| (run[0], run.len() as u32)).collect()
        })
    }
}

/// What a trial weighs: the table as it would stand after the specialization.
struct Part {
    partition: PartitionId,
    /// The number of the child, of a refined partition.
    child: Option<u32>,
    /// Its value on the candidate's attribute.
    concept: ConceptId,
    size: u64,
    holding: Vec<(u32, u32)>,
    meets: bool,
    gone: bool,
}

/// A candidate under trial.
pub struct Trial<'a> {
    /// The table as it stands.
    pub partitions: &'a Partitions,
    /// What must hold.
    pub requirement: &'a Requirement<'a>,
    /// The attributes below their topmost value, the candidate's own left out.
    pub others: &'a [usize],
    /// The candidate's attribute and concept.
    pub candidate: (usize, ConceptId),
    /// The first id that its children would have.
    pub first_child: ConceptId,
    /// Rows that may be suppressed.
    pub budget: u64,
    /// Rows that are left.
    pub left: u64,
    /// Asked at every attribute; a trial that is stopped finds nothing.
    pub observer: &'a dyn Observer,
}

impl Trial<'_> {
    /// The rows to suppress with the specialization; `None` when they are more than the budget.
    pub fn cost(&self, weights: &Weights, holdings: &mut Holdings) -> Option<Suppression> {
        let mut state = State {
            trial: self,
            parts: self.refined(weights),
            lost: 0,
            totals: Vec::new(),
        };
        state.totals.resize(self.requirement.sensitive_values, 0);
        let mut start = 0;
        for items in weights.children() {
            let group: Vec<u32> = (start..start + items.len() as u32).collect();
            start += items.len() as u32;
            let depth = self.others.len().min(self.requirement.l - 1);
            state.visit(&group, self.others, depth, false)?;
        }
        state.parts.extend(self.untouched(holdings));
        let mut all = self.others.to_vec();
        all.push(self.candidate.0);
        let depth = all.len().min(self.requirement.l);
        loop {
            let before = state.lost;
            let group: Vec<u32> = (0..state.parts.len() as u32).collect();
            state.visit(&group, &all, depth, true)?;
            if state.lost == before {
                break;
            }
        }
        if self.left - state.lost < self.requirement.k.get() {
            return None;
        }
        let gone = || state.parts.iter().filter(|part| part.gone);
        Some(Suppression {
            parts: gone()
                .filter_map(|part| Some((part.partition, part.child?)))
                .collect(),
            partitions: gone()
                .filter(|part| part.child.is_none())
                .map(|part| part.partition)
                .collect(),
            rows: state.lost,
        })
    }

    fn refined(&self, weights: &Weights) -> Vec<Part> {
        let children = weights.children().iter().enumerate();
        let parts = children.flat_map(|(child, items)| {
            items.iter().map(move |item| Part {
                partition: item.partition,
                child: Some(child as u32),
                concept: self.first_child + child as ConceptId,
                size: u64::from(item.size),
                holding: weights.holding(item).to_vec(),
                meets: item.meets,
                gone: false,
            })
        });
        parts.collect()
    }

    fn untouched(&self, holdings: &mut Holdings) -> Vec<Part> {
        let (attribute, concept) = self.candidate;
        let stays =
            |partition: &PartitionId| self.partitions.concept(*partition, attribute) != concept;
        let part = |partition: PartitionId| {
            let size = u64::from(self.partitions.size(partition));
            let holding = holdings
                .of(partition, self.partitions, self.requirement)
                .to_vec();
            let greatest = holding.iter().map(|&(_, count)| count).max().unwrap_or(0);
            Part {
                partition,
                child: None,
                concept: self.partitions.concept(partition, attribute),
                size,
                holding,
                meets: self.requirement.allows(size, u64::from(greatest)),
                gone: false,
            }
        };
        self.partitions.all().filter(stays).map(part).collect()
    }
}

struct State<'a> {
    trial: &'a Trial<'a>,
    parts: Vec<Part>,
    lost: u64,
    totals: Vec<u64>,
}

impl State<'_> {
    /// Suppresses every violating group of the full size among `group`; `None` when the budget
    /// is exceeded. With `changed` only groups that have lost a part are looked at, since the
    /// others stood before.
    fn visit(
        &mut self,
        group: &[u32],
        attributes: &[usize],
        depth: usize,
        changed: bool,
    ) -> Option<()> {
        let short = group.iter().any(|&part| {
            let part = &self.parts[part as usize];
            !part.gone && !part.meets
        });
        let touched = !changed || group.iter().any(|&part| self.parts[part as usize].gone);
        if !short || !touched {
            return Some(());
        }
        if depth == 0 {
            if self.allows(group) {
                return Some(());
            }
            for &part in group {
                let part = &mut self.parts[part as usize];
                if !part.gone {
                    part.gone = true;
                    self.lost += part.size;
                }
            }
            return (self.lost <= self.trial.budget).then_some(());
        }
        for (position, &attribute) in attributes[..=attributes.len() - depth].iter().enumerate() {
            if self.trial.observer.must_stop() {
                return None;
            }
            let mut sorted: Vec<(ConceptId, u32)> = group
                .iter()
                .map(|&part| (self.concept(part, attribute), part))
                .collect();
            sorted.sort_unstable();
            for run in sorted.chunk_by(|(a, _), (b, _)| a == b) {
                let run: Vec<u32> = run.iter().map(|&(_, part)| part).collect();
                self.visit(&run, &attributes[position + 1..], depth - 1, changed)?;
            }
        }
        Some(())
    }

    fn concept(&self, part: u32, attribute: usize) -> ConceptId {
        let part = &self.parts[part as usize];
        if attribute == self.trial.candidate.0 {
            return part.concept;
        }
        self.trial.partitions.concept(part.partition, attribute)
    }

    fn allows(&mut self, group: &[u32]) -> bool {
        let parts = &self.parts;
        let standing = || {
            group
                .iter()
                .map(|&part| &parts[part as usize])
                .filter(|part| !part.gone)
        };
        let size: u64 = standing().map(|part| part.size).sum();
        if size == 0 {
            return true;
        }
        let mut greatest = 0;
        for &(value, count) in standing().flat_map(|part| &part.holding) {
            let total = &mut self.totals[value as usize];
            *total += u64::from(count);
            greatest = greatest.max(*total);
        }
        for &(value, _) in standing().flat_map(|part| &part.holding) {
            self.totals[value as usize] = 0;
        }
        self.trial.requirement.allows(size, greatest)
    }
}
