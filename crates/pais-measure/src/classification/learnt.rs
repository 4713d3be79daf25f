//! The examples that a tree learns from, those of each node beside each other.

use std::ops::Range;

use super::choice::Test;
use super::examples::{AttributeCodes, Domain, Examples, PlaceBlock};

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
        for example in self.learnt {
            totals[example.class as usize] += u64::from(example.weight);
        }
    }

    /// Weight and places of each example.
    pub(super) fn weighted_places(&self) -> impl Iterator<Item = (u32, &[u16])> {
        let places = self.places.chunks_exact(self.blocks.max(1));
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
        let places = learnt.iter().flat_map(|it| examples.places(it.number));
        let places: Vec<PlaceBlock> = places.copied().collect();
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
                let codes = places.chunks_exact(blocks).map(|places| {
                    let place = places.as_flattened()[*number];
                    examples.code_at(*number, place)
                });
                self.branch_of
                    .extend(codes.map(|code| test.branch(code, missing)));
            }
            AttributeCodes::Wide(codes) => {
                let codes = learnt.iter().map(|it| codes[it.number as usize]);
                self.branch_of
                    .extend(codes.map(|code| test.branch(code, missing)));
            }
        }
        let most = self.branch_of.iter().max().map_or(0, |&last| last as usize);
        self.ends.clear();
        self.ends.resize(most + 1, 0);
        for &branch in &self.branch_of {
            self.ends[branch as usize] += 1;
        }
        let mut parts = Vec::new();
        let mut start = 0;
        for (branch, end) in (0..).zip(&mut self.ends) {
            let count = std::mem::replace(end, start);
            if count > 0 {
                let examples = node.start + start..node.start + start + count;
                parts.push(Part { branch, examples });
                start += count;
            }
        }
        let moved = self.branch_of.iter().zip(&*learnt).zip(0..);
        for ((&branch, example), from) in moved {
            let to = &mut self.ends[branch as usize];
            self.divided[*to] = *example;
            for block in 0..blocks {
                self.divided_places[*to * blocks + block] = places[from * blocks + block];
            }
            *to += 1;
        }
        learnt.copy_from_slice(&self.divided[..node.len()]);
        places.copy_from_slice(&self.divided_places[..node.len() * blocks]);
        parts
    }
}

impl Domain {
    /// The code that means missing; none of a nominal attribute.
    pub(super) fn missing_code(&self) -> u32 {
        match self {
            Self::Ordered(values) => values.len() as u32,
            Self::Nominal(_) => u32::MAX,
        }
    }
}
