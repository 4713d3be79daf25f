//! Intervals of labels in a declared order.

use std::collections::HashSet;

use crate::definition::TaxonomyNode;

/// Between the first and the last label of an interval.
const TO: &str = "..";

/// A tree over labels in their order, in which a node has up to `fanout` children. An interval is
/// `low..medium`, the whole is `*`.
pub(super) fn intervals(labels: &[String], fanout: usize) -> TaxonomyNode {
    let leaves: HashSet<&str> = labels.iter().map(String::as_str).collect();
    // Each node with its first and last label.
    let mut level: Vec<(TaxonomyNode, &str, &str)> = labels
        .iter()
        .map(|label| {
            let children = Vec::new();
            let label = label.clone();
            (label, children)
        })
        .zip(labels)
        .map(|((label, children), of)| (TaxonomyNode { label, children }, of.as_str(), of.as_str()))
        .collect();
    while level.len() > fanout {
        let mut above = Vec::with_capacity(level.len().div_ceil(fanout));
        let mut nodes = level.into_iter().peekable();
        while nodes.peek().is_some() {
            let group: Vec<_> = nodes.by_ref().take(fanout).collect();
            let ends = group.first().zip(group.last());
            let Some((first, last)) = ends.map(|(one, other)| (one.1, other.2)) else {
                break;
            };
            if let [_] = group.as_slice() {
                above.extend(group);
                continue;
            }
            let mut label = format!("{first}{TO}{last}");
            while leaves.contains(label.as_str()) {
                label.push('.');
            }
            let children = group.into_iter().map(|(node, ..)| node).collect();
            above.push((TaxonomyNode { label, children }, first, last));
        }
        level = above;
    }
    let mut label = "*".to_owned();
    while leaves.contains(label.as_str()) {
        label.push('*');
    }
    TaxonomyNode {
        label,
        children: level.into_iter().map(|(node, ..)| node).collect(),
    }
}
