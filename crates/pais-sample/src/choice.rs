//! Small taxonomies whose leaves are drawn by fixed frequencies, whoever the patient is.

use serde_json::{Value, json};

use super::draw::Draw;

/// Two groups of words, each word with how frequent it is.
pub struct Choice {
    root: &'static str,
    groups: [(&'static str, &'static [(&'static str, f64)]); 2],
}

impl Choice {
    /// The taxonomy.
    pub fn tree(&self) -> Value {
        let groups = self.groups.map(|(label, words)| {
            let leaves = words.iter().map(|(word, _)| json!({ "label": word }));
            json!({ "label": label, "children": leaves.collect::<Vec<_>>() })
        });
        json!({ "label": self.root, "children": groups })
    }

    /// One of the words.
    pub fn draw(&self, draw: &mut Draw) -> &'static str {
        let words = || self.groups.iter().flat_map(|(_, words)| words.iter());
        let weights: Vec<f64> = words().map(|(_, weight)| *weight).collect();
        let drawn = words().nth(draw.weighted(&weights));
        drawn.map_or("", |(word, _)| *word)
    }
}

/// Who pays.
pub const INSURANCE: Choice = Choice {
    root: "Any insurance",
    groups: [
        ("Public", &[("statutory", 36.0), ("state", 22.0)]),
        ("Not public", &[("private", 30.0), ("none", 12.0)]),
    ],
};

/// The language a patient speaks at home.
pub const LANGUAGE: Choice = Choice {
    root: "Any language",
    groups: [
        ("National", &[("first", 38.0), ("second", 20.0)]),
        ("Foreign", &[("third", 24.0), ("other", 18.0)]),
    ],
};

/// Religion.
pub const RELIGION: Choice = Choice {
    root: "Any belief",
    groups: [
        ("A or B", &[("A", 32.0), ("B", 22.0)]),
        ("Others", &[("C", 12.0), ("D", 8.0), ("none", 26.0)]),
    ],
};

/// How a patient came.
pub const REFERRAL: Choice = Choice {
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
    fn every_word_is_drawn_and_stands_in_the_tree() {
        for choice in [INSURANCE, LANGUAGE, RELIGION, REFERRAL] {
            let tree = choice.tree().to_string();
            let mut draw = Draw::of(3, 1);
            let mut drawn = std::collections::BTreeSet::new();
            for _ in 0..1000 {
                drawn.insert(choice.draw(&mut draw));
            }
            let words: usize = choice.groups.iter().map(|(_, words)| words.len()).sum();
            assert_eq!(drawn.len(), words, "{tree}");
            for word in drawn {
                assert!(
                    tree.contains(&format!("{{\"label\":\"{word}\"}}")),
                    "{word}"
                );
            }
        }
    }
}
