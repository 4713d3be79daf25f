//! Exponential-L (Machanavajjhala et al. 2006, as the 2008 paper compares with it): each sensitive
//! column has at least *L* values among the records of a group that agree in all other sensitive
//! columns.

use std::collections::{HashMap, HashSet};

use pais_core::definition::ColumnRole;
use pais_core::schema::Schema;
use pais_core::table::Table;

/// Whether a partition under Exponential-L is one group, the whole table.
///
/// If both halves of a group meet the condition, so does the group: records that agree in the other
/// columns have at least *L* values in one of the halves already. So a table that does not meet it
/// is never split.
pub(crate) fn is_one_group(schema: &Schema, table: &Table, l: usize) -> bool {
    let roles = schema.stored().map(|column| column.role());
    let columns = roles.zip(&table.columns);
    let sensitive: Vec<&[u32]> = columns
        .filter(|(role, _)| *role == ColumnRole::Sensitive)
        .map(|(_, column)| column.codes.as_slice())
        .collect();
    (0..sensitive.len()).any(|asked| {
        let mut values: HashMap<Vec<u32>, HashSet<u32>> = HashMap::new();
        for row in 0..table.rows {
            let others = sensitive.iter().enumerate();
            let others = others.filter(|(column, _)| *column != asked);
            let key = others.map(|(_, codes)| codes[row]).collect();
            values.entry(key).or_default().insert(sensitive[asked][row]);
        }
        values.values().any(|values| values.len() < l)
    })
}

#[cfg(test)]
mod tests {
    use pais_core::definition::DatasetDefinition;
    use pais_core::schema::Schema;
    use pais_io::read::csv;
    use serde_json::json;

    use super::is_one_group;

    fn is_one(rows: &str, l: usize) -> bool {
        let definition: DatasetDefinition =
            serde_json::from_value(json!({"name": "a", "columns": [
                {"name": "age", "role": "quasi_identifier", "kind": "numeric"},
                {"name": "disease", "role": "sensitive"},
                {"name": "treatment", "role": "sensitive"},
            ]}))
            .unwrap();
        let schema = Schema::inline(&definition).unwrap();
        let text = format!("age,disease,treatment\n{rows}");
        let table = csv::read_table(&schema, text.as_bytes()).unwrap();
        is_one_group(&schema, &table, l)
    }

    #[test]
    fn every_combination_of_the_other_columns_needs_l_values() {
        let all = "1,a,x\n2,a,y\n3,b,x\n4,b,y\n";
        assert!(!is_one(all, 2));
        assert!(is_one(all, 3));
        assert!(is_one("1,a,x\n2,a,y\n3,b,x\n", 2), "only b has y once");
    }
}
