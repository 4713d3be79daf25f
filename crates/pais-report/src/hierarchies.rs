//! The hierarchies of the columns, with the labels that were released.

use maud::{Markup, html};
use serde_json::Value;

use crate::input::ReportPage;
use crate::words::{counted, items, plain};

/// Most labels that are listed of one column.
const MOST_LABELS: usize = 60;

/// Deepest level that is drawn.
const DEEPEST: usize = 12;

/// The section on the released labels; empty without a cut and without trees.
pub(crate) fn hierarchies(page: &ReportPage) -> Markup {
    let drawn: Vec<Markup> = columns(page)
        .into_iter()
        .filter_map(|name| column(page, &name))
        .collect();
    html! {
        @if !drawn.is_empty() {
            section #labels {
                h2 { "How far each attribute was generalized" }
                p { "Bold labels are in the released table. What is below them was not released." }
                div.columns { @for one in drawn { (one) } }
            }
        }
    }
}

fn columns(page: &ReportPage) -> Vec<String> {
    let named = page.columns().iter();
    let named = named.filter(|column| column["role"] == "quasi_identifier");
    let named: Vec<String> = named.map(|column| plain(&column["name"])).collect();
    if named.is_empty() {
        page.cut
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, _)| name.clone())
            .collect()
    } else {
        named
    }
}

fn column(page: &ReportPage, name: &str) -> Option<Markup> {
    let labels = page.cut[name].as_array();
    let tree = page
        .columns()
        .iter()
        .find(|column| column["name"] == name)
        .map_or(&Value::Null, |column| &column["taxonomy"]);
    let content = if tree.is_object() {
        let released: Option<Vec<&str>> =
            labels.map(|it| it.iter().filter_map(Value::as_str).collect());
        let mut left = MOST_LABELS;
        html! {
            div.screen[labels.is_some()] {
                ul.tree { (node(tree, released.as_deref(), 0, &mut left)) }
                @if left == 0 { p.note { "The hierarchy is larger; the first labels are shown." } }
            }
            // A tree takes many lines of paper.
            @if let Some(labels) = labels { div.paper aria-hidden="true" { (listed(labels)) } }
        }
    } else {
        listed(labels?)
    };
    let number = labels.map(|labels| counted(labels.len() as u64, "label", "labels"));
    Some(html! {
        details open[labels.is_some_and(|labels| labels.len() <= 12)] {
            summary { (name) @if let Some(number) = number { span.count { (number) } } }
            (content)
        }
    })
}

fn listed(labels: &[Value]) -> Markup {
    html! {
        p.labels {
            @for label in labels.iter().take(MOST_LABELS) { strong.label { (plain(label)) } " " }
            @if labels.len() > MOST_LABELS { "and " (counted((labels.len() - MOST_LABELS) as u64, "more label", "more labels")) }
        }
    }
}

fn node(tree: &Value, released: Option<&[&str]>, depth: usize, left: &mut usize) -> Markup {
    if *left == 0 {
        return html! {};
    }
    *left -= 1;
    let label = plain(&tree["label"]);
    let children = items(&tree["children"]);
    let is_released = match released {
        Some(labels) => labels.contains(&label.as_str()),
        None => children.is_empty(),
    };
    html! {
        li {
            @if is_released { strong.label { (label) } } @else { (label) }
            @if !is_released && !children.is_empty() && depth < DEEPEST {
                ul { @for child in children { (node(child, released, depth + 1, left)) } }
            }
        }
    }
}
