//! Which child of a candidate a row goes to.

use super::attribute::{Attribute, Concept, Split};

/// The number of the child for each code of a candidate's attribute; 0 for codes that it has not.
#[derive(Default)]
pub struct Aim {
    child_of: Vec<u32>,
}

impl Aim {
    /// Aims at the children of a split.
    pub fn at(&mut self, attribute: &Attribute<'_>, split: &Split) {
        self.clear(attribute);
        for (number, child) in split.children.iter().enumerate() {
            self.child_of[child.codes.start as usize..child.codes.end as usize].fill(number as u32);
        }
    }

    /// Aims at the runs of numbers that `points`, codes in ascending order, cut an interval into,
    /// and at the missing cells, if it has any; how many children that makes.
    pub fn at_points(
        &mut self,
        attribute: &Attribute<'_>,
        interval: &Concept,
        points: &[u32],
    ) -> usize {
        self.clear(attribute);
        let numbers = attribute.numbers(interval);
        let mut child = 0;
        for code in numbers.clone() {
            child += usize::from(points.get(child) == Some(&code));
            self.child_of[code as usize] = child as u32;
        }
        let missing = numbers.end..interval.codes.end;
        let width = points.len() + 1;
        self.child_of[missing.start as usize..missing.end as usize].fill(width as u32);
        width + missing.len()
    }

    fn clear(&mut self, attribute: &Attribute<'_>) {
        self.child_of.clear();
        self.child_of.resize(attribute.histogram.len(), 0);
    }

    /// By code, the number of the child.
    pub fn child_of(&self) -> &[u32] {
        &self.child_of
    }
}
