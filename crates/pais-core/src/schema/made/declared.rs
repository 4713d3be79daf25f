//! Checks of the declaration of a made hierarchy.

use std::borrow::Cow;
use std::collections::HashSet;

use crate::canonical_text::canonical_text;
use crate::definition::{
    CalendarLevel, ColumnDefinition, ColumnKind, GeneratedHierarchy, TaxonomyReference,
};
use crate::rejection::Fault;
use crate::taxonomy::{MISSING_LABEL, Tree, TreeLimits};

use super::trees::{MOST_LEVELS, ordered, unfit_ages};

/// Default number of children of a node of an ordered hierarchy.
const DEFAULT_FANOUT: u32 = 2;

/// The hierarchy that is made for a column: the generated one, or that of its declared order.
fn declared(column: &ColumnDefinition) -> Option<GeneratedHierarchy> {
    match (&column.taxonomy, &column.order) {
        (Some(TaxonomyReference::Generated(hierarchy)), _) => Some(hierarchy.clone()),
        (None, Some(order)) => Some(GeneratedHierarchy::Ordered {
            order: Some(order.clone()),
            fanout: None,
            balance: false,
        }),
        _ => None,
    }
}

/// The hierarchy that is made from the values of a table, checked; `None` for a column that has
/// none, or an ordered one that is not drawn from frequencies.
pub(in crate::schema) fn check(
    column: &ColumnDefinition,
    at: &dyn Fn(&str) -> String,
    faults: &mut Vec<Fault>,
) -> Option<GeneratedHierarchy> {
    let order_without_effect = column.order.is_some()
        && !matches!(declared(column), Some(GeneratedHierarchy::Ordered { .. }));
    if order_without_effect {
        let detail = "`order` has no effect: the column has another taxonomy";
        faults.push(Fault::at(at("order"), detail).fix("leave `order` or `taxonomy` out"));
    }
    let mut hierarchy = declared(column)?;
    let field = match column.taxonomy {
        Some(_) => "taxonomy",
        None => "order",
    };
    let of_kind = unfit_kind(column.kind, &hierarchy).map(|detail| Fault::at(at(field), detail));
    let refused = of_kind.or_else(|| {
        let (option, detail) = unfit_option(&hierarchy)?;
        Some(Fault::at(at(&format!("taxonomy/{option}")), detail))
    });
    if let Some(fault) = refused {
        faults.push(fault);
        return None;
    }
    if let GeneratedHierarchy::Ordered { order, balance, .. } = &mut hierarchy {
        *order = Some(ordered_labels(column, order.take()));
        if !*balance {
            return None;
        }
    }
    Some(hierarchy)
}

/// The labels of an ordered column, in canonical form.
fn ordered_labels(column: &ColumnDefinition, order: Option<Vec<String>>) -> Vec<String> {
    let labels = order.or_else(|| column.order.clone()).unwrap_or_default();
    let canonical = labels.iter().map(|label| canonical_text(label));
    canonical.map(Cow::into_owned).collect()
}

/// Number of children of a node of an ordered hierarchy.
pub(super) fn fanout_of(fanout: Option<u32>) -> usize {
    fanout.unwrap_or(DEFAULT_FANOUT) as usize
}

fn unfit_kind(kind: ColumnKind, hierarchy: &GeneratedHierarchy) -> Option<&'static str> {
    let (fits, detail) = match hierarchy {
        GeneratedHierarchy::Prefix { .. }
        | GeneratedHierarchy::MaskRight
        | GeneratedHierarchy::MaskLeft => (
            matches!(kind, ColumnKind::Categorical | ColumnKind::Set),
            "only a categorical column or a set has prefixes and masks",
        ),
        GeneratedHierarchy::Ordered { .. } | GeneratedHierarchy::Rare { .. } => (
            kind == ColumnKind::Categorical,
            "only a categorical column has ordered labels or rare values",
        ),
        GeneratedHierarchy::Ranges { .. } => (
            kind == ColumnKind::Numeric,
            "ranges with widths are of a numeric column; a column of dates takes `calendar`, or \
             ranges without options",
        ),
        GeneratedHierarchy::Calendar { .. } | GeneratedHierarchy::Age { .. } => (
            kind.is_of_dates(),
            "only a column of dates has periods of the calendar or ages",
        ),
    };
    (!fits).then_some(detail)
}

/// The option with which no hierarchy can be made, and what it must be; `None` if it can.
fn unfit_option(hierarchy: &GeneratedHierarchy) -> Option<(&'static str, &'static str)> {
    match hierarchy {
        GeneratedHierarchy::Prefix {
            lengths: Some(lengths),
        } => {
            let is_descending = lengths.windows(2).all(|pair| pair[0] > pair[1]);
            let fits = is_descending
                && (1..=MOST_LEVELS).contains(&lengths.len())
                && lengths.iter().all(|&length| length > 0);
            let detail = "`lengths` must be 1 to 64 numbers above 0, each less than the one before";
            (!fits).then_some(("lengths", detail))
        }
        GeneratedHierarchy::Ranges {
            start,
            widths,
            balance,
        } => {
            let is_number = |number: &f64| number.abs() <= 1e300;
            let widths = widths.as_deref().unwrap_or(&[1.0]);
            if *balance && widths.len() > 1 {
                let detail = "with `balance`, `widths` is one number: the ends of intervals are its multiples";
                return Some(("widths", detail));
            }
            if !start.as_ref().is_none_or(is_number) {
                return Some(("start", "`start` must be a number from -1e300 to 1e300"));
            }
            let is_multiple = |pair: &[f64]| {
                let times = pair[1] / pair[0];
                times > 1.0 && (times - times.round()).abs() < 1e-9
            };
            let fits = (1..=MOST_LEVELS).contains(&widths.len())
                && widths.iter().all(|width| *width > 0.0 && is_number(width))
                && widths.windows(2).all(is_multiple);
            let detail =
                "`widths` must be 1 to 64 numbers above 0, each a multiple of the one before";
            (!fits).then_some(("widths", detail))
        }
        GeneratedHierarchy::Calendar {
            levels: Some(levels),
        } => {
            let is_week = levels.contains(&CalendarLevel::Week);
            let is_longer = |level: &CalendarLevel| *level > CalendarLevel::Week;
            let is_ascending = levels.windows(2).all(|pair| pair[0] < pair[1]);
            if levels.is_empty() || !is_ascending {
                let detail = "`levels` must be periods, each longer than the one before";
                return Some(("levels", detail));
            }
            let detail =
                "weeks do not fit into months and years; leave `week` out, or all longer periods";
            (is_week && levels.iter().any(is_longer)).then_some(("levels", detail))
        }
        GeneratedHierarchy::Age { at, widths } => unfit_ages(at, widths.as_deref()),
        GeneratedHierarchy::Rare { below: Some(below) } => {
            (*below < 2).then_some(("below", "`below` must be at least 2 rows"))
        }
        _ => None,
    }
}

/// The tree of a column whose labels have a declared order; `None` for other columns.
pub(in crate::schema) fn ordered_tree(
    column: &ColumnDefinition,
    limits: TreeLimits,
    at: &dyn Fn(&str) -> String,
    faults: &mut Vec<Fault>,
) -> Option<Tree> {
    let Some(GeneratedHierarchy::Ordered { order, fanout, .. }) = declared(column) else {
        return None;
    };
    if column.kind != ColumnKind::Categorical {
        // Reported with the other checks.
        return None;
    }
    let pointer = match (&order, &column.taxonomy, &column.order) {
        (Some(_), Some(_), _) => at("taxonomy/order"),
        (None, Some(_), None) => at("taxonomy"),
        _ => at("order"),
    };
    let labels = ordered_labels(column, order);
    let distinct: HashSet<&String> = labels.iter().collect();
    let is_usable = |label: &String| !label.is_empty() && label != MISSING_LABEL;
    if labels.len() < 2 || distinct.len() < labels.len() || !labels.iter().all(is_usable) {
        let detail = "`order` must be at least 2 labels, all different, not empty and not `?`";
        faults.push(Fault::at(pointer, detail));
        return None;
    }
    let fanout = fanout_of(fanout);
    if fanout < 2 {
        faults.push(Fault::at(
            at("taxonomy/fanout"),
            "`fanout` must be at least 2",
        ));
        return None;
    }
    match Tree::new(&ordered(&labels, fanout), limits) {
        Ok(tree) => Some(tree),
        Err(error) => {
            faults.push(Fault::at(pointer, error.to_string()));
            None
        }
    }
}
