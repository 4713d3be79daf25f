//! Hierarchies written as rows.

use pais_core::definition::TaxonomyNode;

/// The rows of a tree, `leaf;level1;...;top`, one per leaf, as [`super::parse`] reads them. All rows
/// have the same length: a leaf nearer to the top is repeated at the start of its row.
///
/// # Errors
/// Never; a writer to memory does not fail.
pub fn write(root: &TaxonomyNode) -> Result<String, csv::Error> {
    let mut writer = csv::WriterBuilder::new()
        .delimiter(b';')
        .from_writer(Vec::new());
    let depth = depth(root);
    let mut path = Vec::with_capacity(depth);
    write_below(root, &mut path, depth, &mut writer)?;
    let bytes = writer.into_inner().map_err(|error| error.into_error())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Number of levels of a tree.
fn depth(node: &TaxonomyNode) -> usize {
    1 + node.children.iter().map(depth).max().unwrap_or(0)
}

fn write_below<'t>(
    node: &'t TaxonomyNode,
    above: &mut Vec<&'t str>,
    depth: usize,
    writer: &mut csv::Writer<Vec<u8>>,
) -> Result<(), csv::Error> {
    if node.children.is_empty() {
        let repeated = std::iter::repeat_n(node.label.as_str(), depth - above.len());
        return writer.write_record(repeated.chain(above.iter().rev().copied()));
    }
    above.push(&node.label);
    for child in &node.children {
        write_below(child, above, depth, writer)?;
    }
    above.pop();
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::{TreeLimits, parse};
    use super::write;
    use pais_core::definition::TaxonomyNode;

    #[test]
    fn rows_read_back_as_the_same_tree() {
        let leaves = |labels: &[&str]| -> Vec<Value> {
            labels
                .iter()
                .map(|label| json!({ "label": label }))
                .collect()
        };
        let root = json!({"label": "*", "children": [
            {"label": "[0,10]", "children": leaves(&["a;b", "say \"x\"", "two\nlines"])},
            {"label": "alone"},
            {"label": "chain", "children": [{"label": "link", "children": leaves(&["end"])}]}]});
        let root: TaxonomyNode = serde_json::from_value(root).unwrap();
        let rows = write(&root).unwrap();
        assert!(rows.contains("alone;alone;alone;*\n"), "{rows}");
        assert_eq!(parse(rows.as_bytes(), TreeLimits::default()).unwrap(), root);
    }
}
