//! Column statistics that a dataset's holder may see without seeing a row.

use hashbrown::HashSet;
use serde::{Deserialize, Serialize};

use crate::definition::{ColumnKind, ColumnRole};
use crate::taxonomy::interval::number;

use crate::schema::{Schema, SchemaColumn};
use crate::table::{Column, Table};

/// One stored column in numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ColumnProfile {
    /// As declared.
    pub name: String,
    /// As declared.
    pub role: ColumnRole,
    /// As declared.
    pub kind: ColumnKind,
    /// Number of distinct values, missing not among them: numbers of a numeric column, however
    /// they are written; of a set the items.
    pub distinct: u64,
    /// Number of rows in which nothing or a word for missing stands.
    pub missing: u64,
    /// Smallest number of a numeric column; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// Greatest number of a numeric column; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
    /// Sizes of a set's cells; absent where all are missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set_sizes: Option<SetSizes>,
}

/// Numbers of distinct items in the cells of a set, missing ones left out.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SetSizes {
    /// Of the smallest.
    pub min: u64,
    /// Of the largest.
    pub max: u64,
    /// On average.
    pub mean: f64,
}

/// The statistics of the stored columns of a table, in the declared order.
///
/// One pass over the codes of each column; text is read once per distinct value.
pub fn profile(schema: &Schema, table: &Table) -> Vec<ColumnProfile> {
    let columns = schema.stored().zip(&table.columns);
    columns
        .map(|(spec, column)| profile_column(spec, column))
        .collect()
}

fn profile_column(spec: &SchemaColumn, column: &Column) -> ColumnProfile {
    let mut rows = vec![0u64; column.dictionary.len()];
    let mut missing = 0;
    for &code in &column.codes {
        match rows.get_mut(code as usize) {
            Some(rows) => *rows += 1,
            None => missing += 1,
        }
    }
    let mut profile = ColumnProfile {
        name: spec.name.to_string(),
        role: spec.role,
        kind: spec.kind,
        distinct: 0,
        missing,
        min: None,
        max: None,
        set_sizes: None,
    };
    let mut present: Vec<(&str, u64)> = Vec::new();
    for (text, &rows) in column.dictionary.iter().zip(&rows) {
        if spec.is_missing(text) {
            profile.missing += rows;
        } else if rows > 0 {
            present.push((text, rows));
        }
    }
    match spec.kind {
        ColumnKind::Categorical => profile.distinct = present.len() as u64,
        ColumnKind::Numeric => {
            let mut numbers: Vec<f64> = present
                .iter()
                .filter_map(|(text, _)| number(text))
                .collect();
            numbers.sort_by(f64::total_cmp);
            numbers.dedup();
            profile.distinct = numbers.len() as u64;
            profile.min = numbers.first().copied();
            profile.max = numbers.last().copied();
        }
        ColumnKind::Set => {
            let mut items = HashSet::new();
            let (mut least, mut most, mut sum, mut cells) = (u64::MAX, 0, 0, 0);
            for (text, rows) in present {
                let set: HashSet<&str> = crate::schema::items(text, spec.separator).collect();
                let size = set.len() as u64;
                (least, most) = (least.min(size), most.max(size));
                (sum, cells) = (sum + size * rows, cells + rows);
                items.extend(set);
            }
            profile.distinct = items.len() as u64;
            profile.set_sizes = (cells > 0).then(|| SetSizes {
                min: least,
                max: most,
                mean: sum as f64 / cells as f64,
            });
        }
    }
    profile
}

#[cfg(test)]
mod tests {
    use super::{SetSizes, profile};
    use crate::read::csv;
    use crate::schema::Schema;

    #[test]
    fn profiles_contain_statistics_and_no_values() {
        let definition = serde_json::json!({"name": "t", "columns": [
            {"name": "name", "role": "identifier"},
            {"name": "job", "role": "quasi_identifier", "missing": ["", "NA"]},
            {"name": "age", "role": "quasi_identifier", "kind": "numeric"},
            {"name": "drugs", "role": "quasi_identifier", "kind": "set"},
        ]});
        let schema = Schema::inline(&serde_json::from_value(definition).unwrap()).unwrap();
        let file =
            "name,job,age,drugs\nJane,Mover,34,a|b|a\nJoe,NA,34.0,a\nJim,,,\nJo,Mover,-1,b\n";
        let found = profile(&schema, &csv::read_table(&schema, file.as_bytes()).unwrap());
        assert_eq!(found.len(), 3);
        assert_eq!((found[0].distinct, found[0].missing), (1, 2));
        assert_eq!((found[1].distinct, found[1].missing), (2, 1));
        assert_eq!((found[1].min, found[1].max), (Some(-1.0), Some(34.0)));
        assert_eq!((found[2].distinct, found[2].missing), (2, 1));
        let mean = 4.0 / 3.0;
        let sizes = SetSizes {
            min: 1,
            max: 2,
            mean,
        };
        assert_eq!(found[2].set_sizes, Some(sizes));
        let json = serde_json::to_string(&found).unwrap();
        assert!(!json.contains("Mover") && !json.contains("\"a\""), "{json}");
    }
}
