//! Small taxonomies. Their leaves are drawn by fixed frequencies, independent of the patient.

use serde_json::{Value, json};

use super::draw::Draw;

/// A taxonomy of two groups of leaves, with the frequency of each leaf.
pub(crate) struct WeightedTaxonomy {
    root: &'static str,
    groups: [(&'static str, &'static [(&'static str, f64)]); 2],
}

impl WeightedTaxonomy {
    /// The taxonomy as JSON.
    pub(crate) fn tree(&self) -> Value {
        let groups = self.groups.map(|(label, leaves)| {
            let children = leaves.iter().map(|(leaf, _)| json!({ "label": leaf }));
            json!({ "label": label, "children": children.collect::<Vec<_>>() })
        });
        json!({ "label": self.root, "children": groups })
    }

    /// Draws a leaf by its frequency.
    pub(crate) fn draw(&self, draw: &mut Draw) -> &'static str {
        let leaves = || self.groups.iter().flat_map(|(_, leaves)| leaves.iter());
        let weights: Vec<f64> = leaves().map(|(_, weight)| *weight).collect();
        let drawn = leaves().nth(draw.weighted(&weights));
        drawn.map_or("", |(leaf, _)| *leaf)
    }
}

/// The insurance that pays.
pub(crate) const INSURANCE: WeightedTaxonomy = WeightedTaxonomy {
    root: "Any insurance",
    groups: [
        ("Public", &[("statutory", 36.0), ("state", 22.0)]),
        ("Not public", &[("private", 30.0), ("none", 12.0)]),
    ],
};

/// The language a patient speaks at home.
pub(crate) const LANGUAGE: WeightedTaxonomy = WeightedTaxonomy {
    root: "Any language",
    groups: [
        ("National", &[("first", 38.0), ("second", 20.0)]),
        ("Foreign", &[("third", 24.0), ("other", 18.0)]),
    ],
};

/// Religion.
pub(crate) const RELIGION: WeightedTaxonomy = WeightedTaxonomy {
    root: "Any belief",
    groups: [
        ("A or B", &[("A", 32.0), ("B", 22.0)]),
        ("Others", &[("C", 12.0), ("D", 8.0), ("none", 26.0)]),
    ],
};

/// How a patient came to the hospital.
pub(crate) const REFERRAL: WeightedTaxonomy = WeightedTaxonomy {
    root: "Any way",
    groups: [
        ("Planned", &[("doctor", 38.0), ("hospital", 12.0)]),
        ("Unplanned", &[("ambulance", 30.0), ("self", 20.0)]),
    ],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_leaf_is_drawn_and_is_in_the_tree() {
        for choice in [INSURANCE, LANGUAGE, RELIGION, REFERRAL] {
            let tree = choice.tree().to_string();
            let mut draw = Draw::of(3, 1);
            let mut drawn = std::collections::BTreeSet::new();
            for _ in 0..1000 {
                drawn.insert(choice.draw(&mut draw));
            }
            let leaves: usize = choice.groups.iter().map(|(_, leaves)| leaves.len()).sum();
            assert_eq!(drawn.len(), leaves, "{tree}");
            for leaf in drawn {
                assert!(
                    tree.contains(&format!("{{\"label\":\"{leaf}\"}}")),
                    "{leaf}"
                );
            }
        }
    }
}
