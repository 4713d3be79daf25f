//! Hierarchies in which each value has a path of labels, from the root to the value itself.

use std::collections::{BTreeMap, BTreeSet};

use crate::definition::TaxonomyNode;

/// Most levels of prefixes where the definition gives no lengths.
const MOST_LEVELS: usize = 10;

/// Characters that can stand for a hidden one, in this order of preference.
const MASKS: [char; 5] = ['*', '#', '\u{2022}', '\u{d7}', '\u{2588}'];

/// The end of a value from which characters are hidden.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Left,
    Right,
}

/// A node by the labels below it; a value has none.
#[derive(Default)]
struct Children(BTreeMap<String, Children>);

impl Children {
    fn add(&mut self, path: impl IntoIterator<Item = String>) {
        let mut at = self;
        for label in path {
            at = at.0.entry(label).or_default();
        }
    }

    fn node(self, label: String) -> TaxonomyNode {
        let children = self.0.into_iter();
        TaxonomyNode {
            label,
            children: children.map(|(label, below)| below.node(label)).collect(),
        }
    }
}

/// The tree over these values, each below the labels that `above` gives from below the root on. The
/// root is `*`, or as many of them as no value is.
pub(super) fn tree(values: &BTreeSet<String>, above: impl Fn(&str) -> Vec<String>) -> TaxonomyNode {
    let mut root = "*".to_owned();
    while values.contains(&root) {
        root.push('*');
    }
    let mut children = Children::default();
    for value in values {
        children.add(above(value).into_iter().chain([value.clone()]));
    }
    children.node(root)
}

fn longest(values: &BTreeSet<String>) -> usize {
    let lengths = values.iter().map(|value| value.chars().count());
    lengths.max().unwrap_or(0)
}

fn prefix(value: &str, length: usize) -> &str {
    let end = value.char_indices().nth(length).map(|(at, _)| at);
    &value[..end.unwrap_or(value.len())]
}

/// Prefixes of the values, of these lengths in characters or of each length: `123*` over `1234`. A
/// value has no prefix as long as itself. The mark at the end is one that no value ends with, so a
/// prefix is never taken for a value.
pub(super) fn prefixes(values: &BTreeSet<String>, lengths: Option<&[u32]>) -> TaxonomyNode {
    let mut mark = "*".to_owned();
    while values.iter().any(|value| value.ends_with(&mark)) {
        mark.push('*');
    }
    let mut lengths: Vec<usize> = match lengths {
        Some(lengths) => lengths.iter().map(|&length| length as usize).collect(),
        None => {
            let most = longest(values).saturating_sub(1);
            let step = most.div_ceil(MOST_LEVELS).max(1);
            (1..=most).step_by(step).collect()
        }
    };
    lengths.sort_unstable();
    tree(values, |value| {
        let own = value.chars().count();
        let shorter = lengths.iter().filter(|&&length| length < own);
        shorter
            .map(|&length| format!("{}{mark}", prefix(value, length)))
            .collect()
    })
}

/// One more character of the values is hidden on each level. Labels are as long as the longest
/// value, so labels of different levels differ.
///
/// # Errors
/// A sentence where the values have all characters that could stand for a hidden one.
pub(super) fn masks(values: &BTreeSet<String>, side: Side) -> Result<TaxonomyNode, String> {
    let is_free = |mask: &&char| !values.iter().any(|value| value.contains(**mask));
    let mask = MASKS.iter().find(is_free);
    let mask =
        mask.ok_or("has no character for hidden ones, since values have all of * # • × █")?;
    let width = longest(values);
    let hidden = |shown: usize| -> String { std::iter::repeat_n(*mask, width - shown).collect() };
    Ok(tree(values, |value| {
        let characters: Vec<char> = value.chars().collect();
        let masked = |shown: usize| match side {
            Side::Right => String::from_iter(&characters[..shown]) + &hidden(shown),
            Side::Left => {
                let shown_from = characters.len() - shown;
                hidden(shown) + &String::from_iter(&characters[shown_from..])
            }
        };
        (1..characters.len()).map(masked).collect()
    }))
}

/// The rare values under one node, beside the others.
pub(super) fn rare(values: &BTreeSet<String>, rare: &BTreeSet<String>) -> TaxonomyNode {
    let mut label = "(rare)".to_owned();
    while values.contains(&label) {
        label = format!("({label})");
    }
    let is_rare = |value: &str| rare.contains(value) && rare.len() < values.len();
    tree(values, |value| {
        Vec::from_iter(is_rare(value).then(|| label.clone()))
    })
}
