//! The report of a release: utility and risk, as the schema `Report` of `openapi/openapi.json`.

use std::collections::BTreeMap;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use pais_core::definition::PreGeneralization;
use pais_core::table::{Domain, ReleasedTable};
use pais_verify::{VerifyError, group_sizes};

use super::{ColumnNcp, GroupMetrics, QueryError, RawSets, Risk, sets};

/// The report of a release. An empty table has no group: its measures are 0, but for those of
/// information lost, which tell of suppressed rows too.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Report {
    /// What the table is still worth.
    pub utility: Utility,
    /// What risk remains.
    pub risk: Risk,
    /// Number of rows in the released table.
    pub rows: u64,
    /// Number of raw rows that were left out of it.
    pub suppressed_rows: u64,
    /// What the job asked to be generalized before anything else, as it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pre_generalization: Option<BTreeMap<String, PreGeneralization>>,
}

/// What a released table is still worth.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Utility {
    /// Groups of equal generalized records over all quasi-identifiers.
    #[serde(flatten)]
    pub groups: GroupMetrics,
    /// *NCP*, mean of `ncp_by_column`, from 0 to 1, lower is better; 0 without
    /// quasi-identifiers.
    pub ncp: f64,
    /// Mean NCP of the values of each quasi-identifier over the raw rows, suppressed rows
    /// counting 1.
    pub ncp_by_column: BTreeMap<String, f64>,
    /// *1 - NCP* (2014 paper, Section 6), from 0 to 1, higher is better.
    pub information_remain: f64,
    /// *1 - NCP* of each quasi-identifier.
    pub information_remain_by_column: BTreeMap<String, f64>,
    /// Greatest confidence in a sensitive value for an adversary who knows at most L values, as
    /// verified; 0 when none is bounded. With local recoding, the greatest share of a group's
    /// records that hold one sensitive value.
    pub greatest_confidence: f64,
    /// How far random counting queries are off; with local recoding, where there is a sensitive
    /// value to ask for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query_error: Option<QueryError>,
}

/// The measures that a report is built from.
#[derive(Clone, Debug, Default)]
pub(crate) struct Measures<'a> {
    /// Number of rows of each group.
    pub sizes: &'a [u32],
    /// Mean NCP of each quasi-identifier.
    pub ncp_by_column: BTreeMap<String, f64>,
    /// Number of released rows.
    pub rows: u64,
    /// Number of suppressed rows.
    pub suppressed_rows: u64,
    /// The greatest confidence in a sensitive value, as verified.
    pub greatest_confidence: f64,
    /// The error of random counting queries, where it was measured.
    pub query_error: Option<QueryError>,
}

impl Report {
    /// Builds the report from the measures of a release.
    pub(crate) fn new(measures: Measures) -> Self {
        let Measures {
            sizes,
            ncp_by_column,
            rows,
            suppressed_rows,
            greatest_confidence,
            query_error,
        } = measures;
        let columns = ncp_by_column.len();
        let ncp = if columns == 0 {
            0.0
        } else {
            ncp_by_column.values().sum::<f64>() / columns as f64
        };
        let remain = |(name, ncp): (&String, &f64)| (name.clone(), 1.0 - ncp);
        Self {
            utility: Utility {
                groups: GroupMetrics::from_sizes(sizes),
                ncp,
                information_remain: 1.0 - ncp,
                information_remain_by_column: ncp_by_column.iter().map(remain).collect(),
                ncp_by_column,
                greatest_confidence,
                query_error,
            },
            risk: Risk::from_sizes(sizes),
            rows,
            suppressed_rows,
            pre_generalization: None,
        }
    }
}

/// Measures a released table and returns its report. `quasi_identifiers` are its generalized
/// columns with the domains that their labels generalize. A numeric column with a taxonomy of
/// ranges has that taxonomy as its domain.
///
/// # Errors
/// [`VerifyError`] for a table that lacks one of the columns or is malformed.
pub(crate) fn report(
    table: &ReleasedTable,
    quasi_identifiers: &[(Box<str>, &Domain)],
    suppressed_rows: u64,
    greatest_confidence: f64,
) -> Result<Report, VerifyError> {
    report_with_sets(
        table,
        quasi_identifiers,
        &[],
        suppressed_rows,
        greatest_confidence,
    )
}

/// As [`report`], with the set-valued quasi-identifiers in addition to the others.
///
/// # Errors
/// As [`report`].
pub(crate) fn report_with_sets(
    table: &ReleasedTable,
    quasi_identifiers: &[(Box<str>, &Domain)],
    raw_sets: &[RawSets],
    suppressed_rows: u64,
    greatest_confidence: f64,
) -> Result<Report, VerifyError> {
    let relational = quasi_identifiers.iter().map(|(name, _)| &**name);
    let set_valued = raw_sets.iter().map(|raw| &*raw.column.name);
    let names: Vec<&str> = relational.chain(set_valued).collect();
    let sizes = group_sizes(table, &names)?;
    let mut means = ncp_by_column(table, quasi_identifiers, suppressed_rows)?;
    for &raw in raw_sets {
        let name = &raw.column.name;
        let column = table.columns.iter().find(|column| column.name == *name);
        let column = column.ok_or_else(|| VerifyError::NoSuchColumn {
            column: name.clone(),
        })?;
        means.insert(name.to_string(), sets::ncp(column, raw));
    }
    Ok(Report::new(Measures {
        sizes: &sizes,
        ncp_by_column: means,
        rows: table.rows as u64,
        suppressed_rows,
        greatest_confidence,
        query_error: None,
    }))
}

/// Mean NCP of each generalized column, from 0 to 1; suppressed rows count 1.
///
/// # Errors
/// [`VerifyError`] for a table that lacks one of the columns.
pub(crate) fn ncp_by_column(
    table: &ReleasedTable,
    quasi_identifiers: &[(Box<str>, &Domain)],
    suppressed_rows: u64,
) -> Result<BTreeMap<String, f64>, VerifyError> {
    let mean = |(name, domain): &(Box<str>, &Domain)| {
        let column = table.columns.iter().find(|column| column.name == *name);
        let column = column.ok_or_else(|| VerifyError::NoSuchColumn {
            column: name.clone(),
        })?;
        let ncp = ColumnNcp::new(column, domain).mean(suppressed_rows);
        Ok((name.to_string(), ncp))
    };
    let means: Vec<_> = quasi_identifiers.par_iter().map(mean).collect();
    means.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pais_core::cancellation::Cancellation;

    use super::{Report, report};
    use pais_core::model::Confidence;
    use pais_core::table::{Column, Domain, Form, ReleasedColumn, ReleasedTable};
    use pais_core::taxonomy::{Tree, TreeLimits};
    use pais_verify::{LkcRequirement, verify_lkc};

    /// Table 2 of the KDD'09 paper, over the trees of its Figure 2.
    fn table_2() -> (ReleasedTable, Vec<(Box<str>, Domain)>) {
        let tree = |json| {
            let limits = TreeLimits {
                leaves: 100,
                depth: 10,
            };
            let root = serde_json::from_str(json).unwrap();
            Domain::Taxonomy(Arc::new(Tree::new(&root, limits).unwrap()))
        };
        let job = tree(
            r#"{"label": "ANY", "children": [{"label": "Blue-collar", "children": [
                {"label": "Non-Technical", "children": [{"label": "Janitor"}, {"label": "Mover"}]},
                {"label": "Technical",
                 "children": [{"label": "Carpenter"}, {"label": "Technician"}]}]},
                {"label": "White-collar", "children": [{"label": "Professional",
                 "children": [{"label": "Doctor"}, {"label": "Lawyer"}]}]}]}"#,
        );
        let age = Domain::Numeric {
            values: vec![24.0, 63.0],
            lo: 1.0,
            hi: 99.0,
            missing: false,
        };
        let sex = Domain::Taxonomy(Arc::new(Tree::flat(["F", "M"])));
        let column = |name: &str, labels: [&str; 3], codes: [u32; 11]| ReleasedColumn {
            name: name.into(),
            form: Form::Generalized,
            column: Column {
                dictionary: labels.map(Into::into).to_vec(),
                codes: codes.to_vec(),
            },
            missing: Vec::new(),
        };
        let columns = vec![
            column(
                "Job",
                ["Non-Technical", "Professional", "Technical"],
                [0, 1, 0, 1, 0, 0, 1, 1, 1, 2, 2],
            ),
            column("Sex", ["F", "M", "*"], [1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0]),
            column(
                "Age",
                ["[1,30)", "[30,60)", "[60,99]"],
                [1, 1, 1, 0, 1, 1, 0, 1, 1, 2, 2],
            ),
        ];
        let table = ReleasedTable {
            name: "data".into(),
            rows: 11,
            columns,
        };
        (
            table,
            vec![
                ("Job".into(), job),
                ("Sex".into(), sex),
                ("Age".into(), age),
            ],
        )
    }

    fn report_of(table: &ReleasedTable, domains: &[(Box<str>, Domain)], lost: u64) -> Report {
        let names: Vec<Box<str>> = domains.iter().map(|(name, _)| name.clone()).collect();
        let c = Confidence::UNBOUNDED;
        let requirement = LkcRequirement {
            l: 2,
            k: 2,
            c,
            sensitive: Vec::new(),
        };
        let verification = verify_lkc(table, &names, &requirement, &Cancellation::new()).unwrap();
        let domains: Vec<_> = domains
            .iter()
            .map(|(name, of)| (name.clone(), of))
            .collect();
        report(table, &domains, lost, verification.greatest_confidence).unwrap()
    }

    #[test]
    fn table_2_has_the_measures_of_the_paper() {
        let (table, domains) = table_2();
        let Report {
            utility,
            risk,
            rows,
            suppressed_rows,
            ..
        } = report_of(&table, &domains, 0);
        assert_eq!(utility.groups.discernibility, 29);
        assert_eq!(utility.groups.dr, 29.0 / 121.0);
        assert_eq!(
            (utility.groups.groups, utility.groups.smallest_group),
            (5, 1)
        );
        assert_eq!(
            (risk.highest, risk.average, risk.records_at_highest),
            (1.0, 5.0 / 11.0, 1)
        );
        assert_eq!((rows, suppressed_rows), (11, 0));
        let by_column = &utility.ncp_by_column;
        assert!(
            (by_column["Job"] - 1.0 / 3.0).abs() < 1e-12,
            "two of six leaves each"
        );
        assert_eq!(by_column["Sex"], 0.0);
        let age = (2.0 * 29.0 + 7.0 * 30.0 + 2.0 * 39.0) / 11.0 / 98.0;
        assert!((by_column["Age"] - age).abs() < 1e-12);
        assert!((utility.ncp - (1.0 / 3.0 + age) / 3.0).abs() < 1e-12);
        assert_eq!(utility.information_remain, 1.0 - utility.ncp);
    }

    #[test]
    fn the_json_has_the_published_fields() {
        let (table, domains) = table_2();
        let json = serde_json::to_value(report_of(&table, &domains, 1)).unwrap();
        for pointer in [
            "/utility/dr",
            "/utility/discernibility",
            "/utility/ncp",
            "/utility/ncp_by_column/Job",
            "/utility/information_remain",
            "/utility/groups",
            "/utility/smallest_group",
            "/utility/average_group",
            "/utility/average_group_per_record",
            "/risk/highest",
            "/risk/average",
            "/risk/records_at_highest",
            "/suppressed_rows",
        ] {
            assert!(
                json.pointer(pointer).is_some_and(|value| value.is_number()),
                "{pointer}"
            );
        }
        let back: Report = serde_json::from_value(json).unwrap();
        assert_eq!(back, report_of(&table, &domains, 1));
    }

    #[test]
    fn an_empty_table_has_no_nan() {
        let (mut table, domains) = table_2();
        table.rows = 0;
        for column in &mut table.columns {
            column.column.codes.clear();
        }
        let found = report_of(&table, &domains, 11);
        assert_eq!(
            (found.utility.ncp, found.utility.information_remain),
            (1.0, 0.0)
        );
        assert_eq!((found.utility.groups.dr, found.risk.highest), (0.0, 0.0));
        let none = report_of(&table, &[], 0);
        assert_eq!(
            (none.utility.ncp, none.utility.information_remain),
            (0.0, 1.0)
        );
        let json = serde_json::to_string(&found).unwrap();
        assert!(!json.contains("null"), "{json}");
    }
}
