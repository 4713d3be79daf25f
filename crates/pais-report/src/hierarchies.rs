//! The hierarchies of the columns, with the labels that were released.

use maud::{Markup, html};
use serde_json::Value;

use crate::input::ReportPage;
use crate::words::{counted, items, plain};

/// Maximum number of labels that are listed of one column.
const MOST_LABELS: usize = 60;

/// Maximum number of labels of one column on paper.
const MOST_ON_PAPER: usize = 12;

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
                div.screen { @for one in drawn { (one) } }
                (on_paper(page))
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
            ul.tree { (node(tree, released.as_deref(), 0, &mut left)) }
            @if left == 0 { p.note { "The hierarchy is larger; the first labels are shown." } }
        }
    } else {
        let labels = labels?;
        html! { p.labels { (listed(labels, MOST_LABELS)) } }
    };
    let number = labels.map(|labels| counted(labels.len() as u64, "label", "labels"));
    Some(html! {
        details open[labels.is_some_and(|labels| labels.len() <= 12)] {
            summary { (name) @if let Some(number) = number { span.count { (number) } } }
            (content)
        }
    })
}

/// The first labels, and how many more there are.
fn listed(labels: &[Value], most: usize) -> Markup {
    html! {
        @for label in labels.iter().take(most) { strong.label { (plain(label)) } " " }
        @if labels.len() > most { "and " (counted((labels.len() - most) as u64, "more label", "more labels")) }
    }
}

/// The released labels in few lines: a tree takes too many of a sheet.
fn on_paper(page: &ReportPage) -> Markup {
    let names = columns(page).into_iter();
    let labels = names.filter_map(|name| {
        let labels = page.cut[&*name].as_array()?;
        Some((name, labels))
    });
    html! {
        div.paper.columns aria-hidden="true" {
            @for (name, labels) in labels { p { (name) ": " (listed(labels, MOST_ON_PAPER)) } }
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
