//! The examples that a tree learns from, those of each node next to each other.

use std::ops::Range;

use super::examples::{AttributeCodes, Examples, PlaceBlock, Test};

/// An example that a tree learns from.
#[derive(Clone, Copy, Default)]
pub(super) struct LearntExample {
    /// Its number among all examples.
    pub(super) number: u32,
    pub(super) class: u32,
    pub(super) weight: u32,
}

/// The examples of some weight, ascending in each node. Their narrow codes are moved with them, so that a node reads
/// all it counts in one piece.
pub(super) struct LearntExamples<'a> {
    examples: &'a Examples,
    learnt: Vec<LearntExample>,
    /// As in [`Examples::places`].
    places: Vec<PlaceBlock>,
    /// The branch of each example of the node that is divided.
    branch_of: Vec<u32>,
    /// For each branch, where its next example goes.
    ends: Vec<usize>,
    /// What is divided, until it is copied back.
    divided: Vec<LearntExample>,
    divided_places: Vec<PlaceBlock>,
}

/// The examples of a node.
#[derive(Clone, Copy)]
pub(super) struct NodeExamples<'a> {
    pub(super) learnt: &'a [LearntExample],
    places: &'a [PlaceBlock],
    blocks: usize,
}

/// The examples of a branch that has some.
pub(super) struct Part {
    pub(super) branch: u32,
    pub(super) examples: Range<usize>,
}

impl NodeExamples<'_> {
    /// Writes the weight of each class.
    pub(super) fn weigh(self, totals: &mut [u64]) {
        totals.fill(0);
        if let [first, second] = totals {
            // Sums that do not wait for each other in memory.
            for example in self.learnt {
                *first += u64::from(example.weight);
                *second += u64::from(example.weight * example.class);
            }
            *first -= *second;
            return;
        }
        for example in self.learnt {
            totals[example.class as usize] += u64::from(example.weight);
        }
    }

    /// Weight and places of each example.
    pub(super) fn weighted_places(&self) -> impl Iterator<Item = (u32, &[u16])> {
        let places = self.places.chunks_exact(self.blocks);
        let places = places.map(|blocks| blocks.as_flattened());
        self.learnt.iter().map(|it| it.weight).zip(places)
    }
}

impl<'a> LearntExamples<'a> {
    pub(super) fn new(examples: &'a Examples, weights: &[u32]) -> Self {
        let numbered = (0u32..).zip(weights).zip(&examples.classes);
        let weighted = numbered.filter(|((_, weight), _)| **weight > 0);
        let learnt = weighted.map(|((number, &weight), &class)| LearntExample {
            number,
            class,
            weight,
        });
        let learnt: Vec<LearntExample> = learnt.collect();
        let mut places = Vec::with_capacity(learnt.len() * examples.blocks());
        for example in &learnt {
            places.extend_from_slice(examples.places(example.number));
        }
        Self {
            examples,
            branch_of: Vec::new(),
            ends: Vec::new(),
            divided: vec![LearntExample::default(); learnt.len()],
            divided_places: vec![PlaceBlock::default(); places.len()],
            learnt,
            places,
        }
    }

    /// Number of examples.
    pub(super) fn len(&self) -> usize {
        self.learnt.len()
    }

    /// Those of a node.
    pub(super) fn of(&self, node: Range<usize>) -> NodeExamples<'_> {
        let blocks = self.examples.blocks();
        NodeExamples {
            places: &self.places[node.start * blocks..node.end * blocks],
            learnt: &self.learnt[node],
            blocks,
        }
    }

    /// Divides the examples of a node by a test. Branches ascend.
    pub(super) fn divide(&mut self, node: Range<usize>, test: Test) -> Vec<Part> {
        let examples = self.examples;
        let blocks = examples.blocks();
        let places = node.start * blocks..node.end * blocks;
        let (learnt, places) = (&mut self.learnt[node.clone()], &mut self.places[places]);
        let attribute = &examples.attributes[test.position];
        let missing = attribute.domain.missing_code();
        self.branch_of.clear();
        match &attribute.codes {
            AttributeCodes::Narrow(number) => {
                let places = places.chunks_exact(blocks);
                let codes = places.map(|it| examples.code_at(it.as_flattened()[*number]));
                self.branch_of
                    .extend(codes.map(|code| test.branch(code, missing)));
            }
            AttributeCodes::Wide(codes) => {
                let codes = learnt.iter().map(|it| codes[it.number as usize]);
                self.branch_of
                    .extend(codes.map(|code| test.branch(code, missing)));
            }
        }
        self.ends.clear();
        for &branch in &self.branch_of {
            let branch = branch as usize;
            if branch >= self.ends.len() {
                self.ends.resize(branch + 1, 0);
            }
            self.ends[branch] += 1;
        }
        let mut parts = Vec::new();
        let mut start = 0;
        for (branch, next) in (0..).zip(&mut self.ends) {
            let size = std::mem::replace(next, start);
            if size > 0 {
                let examples = node.start + start..node.start + start + size;
                parts.push(Part { branch, examples });
                start += size;
            }
        }
        let moved = self.branch_of.iter().zip(&*learnt);
        for ((&branch, &example), of_example) in moved.zip(places.chunks_exact(blocks)) {
            let next = &mut self.ends[branch as usize];
            let to = std::mem::replace(next, *next + 1);
            self.divided[to] = example;
            for (to, block) in self.divided_places[to * blocks..]
                .iter_mut()
                .zip(of_example)
            {
                *to = *block;
            }
        }
        learnt.copy_from_slice(&self.divided[..node.len()]);
        places.copy_from_slice(&self.divided_places[..places.len()]);
        parts
    }
}
