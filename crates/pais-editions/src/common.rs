//! The finest labels that cover those of several editions, so that one query fits all of them.

use std::collections::{BTreeMap, BTreeSet};

use pais_core::codebook::Codebook;
use pais_core::definition::TaxonomyNode;
use pais_core::table::{Form, ReleasedTable};
use pais_core::taxonomy::{Interval, MISSING_LABEL, SUPPRESSED_LABEL, Scale};

/// A released table with the codebook of its labels.
#[derive(Clone, Copy, Debug)]
pub struct EditionLabels<'a> {
    /// The table.
    pub table: &'a ReleasedTable,
    /// The codebook of its release.
    pub codebook: &'a Codebook,
}

/// By column, the common label in place of each released one.
pub type LabelMap = BTreeMap<Box<str>, BTreeMap<Box<str>, Box<str>>>;

/// The common labels of the generalized columns of several editions: the labels of the finest cut that is no
/// finer than any edition's. Overlapping intervals of numbers become the interval around them; of a label of a
/// tree and one above it, the higher one is kept.
pub fn common_labels(editions: &[EditionLabels<'_>]) -> LabelMap {
    let names = editions.iter().flat_map(|edition| {
        let columns = edition.table.columns.iter();
        columns.filter(|column| column.form == Form::Generalized)
    });
    let names: BTreeSet<&str> = names.map(|column| &*column.name).collect();
    let columns = names.into_iter();
    let columns = columns.map(|name| (name.into(), common_labels_of(name, editions)));
    columns.collect()
}

fn common_labels_of(name: &str, editions: &[EditionLabels<'_>]) -> BTreeMap<Box<str>, Box<str>> {
    let mut parents: BTreeMap<&str, &str> = BTreeMap::new();
    let mut roots: BTreeSet<&str> = BTreeSet::from([SUPPRESSED_LABEL]);
    let mut scale = None;
    for edition in editions {
        let columns = edition.codebook.columns.iter();
        for column in columns.filter(|column| column.name == *name) {
            scale = scale.or(column.kind.scale());
            if let Some(root) = &column.taxonomy {
                roots.insert(&root.label);
                add_parents(root, &mut parents);
            }
        }
    }
    let shown = editions
        .iter()
        .filter_map(|edition| Some(edition.table.column(name)?.shown_labels()));
    let shown: Vec<BTreeSet<&str>> = shown.collect();
    let labels: BTreeSet<&str> = shown.iter().flatten().copied().collect();
    if let Some(root) = roots.iter().find(|root| labels.contains(**root)) {
        let all = labels.iter().map(|&label| (label.into(), (*root).into()));
        return all.collect();
    }
    match scale.filter(|_| parents.is_empty()) {
        Some(scale) => common_intervals(&labels, scale),
        None => labels
            .iter()
            .map(|&label| {
                let path = std::iter::successors(Some(label), |label| parents.get(label).copied());
                let highest = path.filter(|label| labels.contains(label)).last();
                (label.into(), highest.unwrap_or(label).into())
            })
            .collect(),
    }
}

fn add_parents<'a>(node: &'a TaxonomyNode, parents: &mut BTreeMap<&'a str, &'a str>) {
    for child in &node.children {
        parents.insert(&child.label, &node.label);
        add_parents(child, parents);
    }
}

/// Merges intervals that overlap. If one of them is the outermost, it covers missing cells too.
fn common_intervals(labels: &BTreeSet<&str>, scale: Scale) -> BTreeMap<Box<str>, Box<str>> {
    let parsed = labels.iter();
    let parsed = parsed.filter_map(|&label| Some((Interval::parse_on(label, scale)?, label)));
    let mut intervals: Vec<(Interval, &str)> = parsed.collect();
    intervals.sort_by(|(one, _), (other, _)| {
        one.lo
            .total_cmp(&other.lo)
            .then(other.hi.total_cmp(&one.hi))
    });
    let mut merged: Vec<(Interval, Vec<&str>)> = Vec::new();
    for (interval, label) in intervals {
        match merged.last_mut() {
            Some((hull, labels)) if meets(hull, &interval) => {
                if interval.hi > hull.hi {
                    (hull.hi, hull.closed) = (interval.hi, interval.closed);
                } else if interval.hi == hull.hi {
                    hull.closed |= interval.closed;
                }
                labels.push(label);
            }
            _ => merged.push((interval, vec![label])),
        }
    }
    let mut common = BTreeMap::new();
    for (hull, labels) in &merged {
        let text: Box<str> = match labels.as_slice() {
            [label] => (*label).into(),
            _ => hull.on(scale).to_string().into(),
        };
        let all = labels.iter().map(|label| ((*label).into(), text.clone()));
        common.extend(all);
    }
    let outermost = match merged.as_slice() {
        [(hull, labels)] => {
            let mut own = labels.iter().filter_map(|it| Interval::parse_on(it, scale));
            let covers = |own: Interval| own.encloses(hull);
            own.any(covers).then(|| hull.on(scale).to_string())
        }
        _ => None,
    };
    for &label in labels {
        let missing = outermost.as_deref().filter(|_| label == MISSING_LABEL);
        let text = missing.unwrap_or(label);
        common.entry(label.into()).or_insert_with(|| text.into());
    }
    common
}

/// Whether an interval that begins no earlier has a number in common.
fn meets(one: &Interval, other: &Interval) -> bool {
    other.lo < one.hi || (other.lo == one.hi && one.closed)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use pais_core::codebook::{Codebook, CodebookColumn, CodebookDataset, CodebookOrganization};
    use pais_core::definition::{ColumnKind, ColumnRole, TaxonomyNode};
    use pais_core::table::{Column, Form, ReleasedColumn, ReleasedTable};

    use super::{EditionLabels, common_labels};

    fn edition(
        kind: ColumnKind,
        taxonomy: Option<TaxonomyNode>,
        labels: &[&str],
    ) -> (ReleasedTable, Codebook) {
        let column = Column {
            dictionary: labels.iter().map(|&label| label.into()).collect(),
            codes: (0..labels.len() as u32).collect(),
        };
        let table = ReleasedTable {
            name: "data".into(),
            rows: labels.len(),
            columns: vec![ReleasedColumn {
                name: "a".into(),
                form: Form::Generalized,
                column,
                missing: Vec::new(),
            }],
        };
        let codebook = Codebook {
            dataset: CodebookDataset {
                name: "d".to_owned(),
                description: None,
            },
            organization: CodebookOrganization {
                name: "o".to_owned(),
                display_name: None,
            },
            columns: vec![CodebookColumn {
                name: "a".to_owned(),
                role: ColumnRole::QuasiIdentifier,
                kind,
                from: None,
                taxonomy,
                domain: None,
                separator: None,
                format: None,
                round: None,
                missing: None,
            }],
        };
        (table, codebook)
    }

    fn common(editions: &[(ReleasedTable, Codebook)]) -> BTreeMap<String, String> {
        let editions: Vec<EditionLabels> = editions
            .iter()
            .map(|(table, codebook)| EditionLabels { table, codebook })
            .collect();
        let labels = common_labels(&editions).remove("a").unwrap();
        let pairs = labels.into_iter();
        pairs.map(|(from, to)| (from.into(), to.into())).collect()
    }

    fn pairs(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        let pairs = pairs.iter();
        pairs
            .map(|&(from, to)| (from.to_owned(), to.to_owned()))
            .collect()
    }

    #[test]
    fn intervals_that_overlap_become_one() {
        let numbers = |labels: &[&str]| edition(ColumnKind::Numeric, None, labels);
        let found = common(&[
            numbers(&["[0,20)", "[20,40)", "[40,99]", "?"]),
            numbers(&["[0,40)", "[40,99]"]),
        ]);
        let expected = [
            ("[0,20)", "[0,40)"),
            ("[20,40)", "[0,40)"),
            ("[0,40)", "[0,40)"),
            ("[40,99]", "[40,99]"),
            ("?", "?"),
        ];
        assert_eq!(found, pairs(&expected));
        // The outermost interval of the second covers missing cells.
        let found = common(&[numbers(&["[0,20)", "[20,99]", "?"]), numbers(&["[0,99]"])]);
        assert!(found.values().all(|label| label == "[0,99]"), "{found:?}");
    }

    #[test]
    fn of_labels_on_one_path_the_highest_stays() {
        let leaf = |label: &str| TaxonomyNode::from(label);
        let tree = |children: Vec<TaxonomyNode>| TaxonomyNode {
            label: "all".to_owned(),
            children,
        };
        let fine = tree(vec![
            TaxonomyNode {
                label: "x".to_owned(),
                children: vec![leaf("x1"), leaf("x2")],
            },
            leaf("y"),
        ]);
        let coarse = tree(vec![leaf("x"), leaf("y")]);
        let words = |tree, labels: &[&str]| edition(ColumnKind::Categorical, Some(tree), labels);
        let found = common(&[
            words(fine.clone(), &["x1", "x2", "y"]),
            words(coarse, &["x", "y"]),
        ]);
        assert_eq!(
            found,
            pairs(&[("x1", "x"), ("x2", "x"), ("x", "x"), ("y", "y")])
        );
        let found = common(&[words(fine, &["x1", "?"]), words(leaf("all"), &["all"])]);
        assert!(found.values().all(|label| label == "all"), "{found:?}");
    }
}
