//! The report of a release: utility and risk, as the schema `Report` of `openapi/openapi.json`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use pais_core::cancellation::Cancellation;
use pais_core::definition::{ColumnRole, PreGeneralization};
use pais_core::parallel;
use pais_core::schema::{Schema, SchemaColumn};
use pais_core::table::{GROUP_COLUMN, ReleasedTable, Subjects, Verdict};
use pais_verify::{CountedTable, PrivacyFinding, SubjectGroups, VerifyError, group_sizes};

use super::adversary_risk::add_adversaries_of_counted;
use super::attribute_risk::attribute_risk_of_counted;
use super::ncp::{self, CellCounts};
use super::{ColumnDistribution, GroupMetrics, ItemCounts, QueryError, Risk};
use crate::classification::ClassificationError;
use crate::guidelines::Guidelines;
use crate::release::{CountedRelease, MeasuredRelease, ReleaseRecoding};

/// The report of a release. An empty table has no group: its measures are 0, except those of
/// lost information, which also cover suppressed rows.
///
/// What is computed from raw rows is for the holder; [`super::for_recipient`] removes it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Report {
    /// The release at a glance.
    #[serde(default)]
    pub verdict: Verdict,
    /// What the table is still worth.
    pub utility: Utility,
    /// What risk remains.
    pub risk: Risk,
    /// Number of rows in the released table.
    pub rows: u64,
    /// Number of persons whose rows are in the released table; only where the dataset has a subject
    /// column. The smallest groups and the risk then count persons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subjects: Option<u64>,
    /// Number of raw rows that were left out of it.
    pub suppressed_rows: u64,
    /// What the job asked to be generalized before anything else, without values that no released
    /// label covers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pre_generalization: Option<BTreeMap<String, PreGeneralization>>,
    /// Column to the reason why it was released unchanged although it is nearly a key of the rows.
    /// For the holder alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acknowledged_unchanged: Option<BTreeMap<String, String>>,
    /// Answers to the questions of guidelines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guidelines: Option<Guidelines>,
    /// The values of each generalized column, raw and released. For the holder alone, with two
    /// significant digits; rare values are pooled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distributions: Option<Vec<ColumnDistribution>>,
}

/// What a released table is still worth.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Utility {
    /// Groups of equal generalized records over all quasi-identifiers.
    #[serde(flatten)]
    pub groups: GroupMetrics,
    /// Records of the smallest group that an adversary of the privacy model can know, as verified:
    /// under LKC-privacy with at most *L* known values. `smallest_group` is over all
    /// quasi-identifiers.
    pub smallest_known_group: u64,
    /// *NCP*, mean of `ncp_by_column`, from 0 to 1, lower is better; 0 without
    /// quasi-identifiers.
    pub ncp: f64,
    /// Mean NCP of the released values of each quasi-identifier, suppressed rows counting 1;
    /// measured in the declared domain, or in the range that the release shows.
    pub ncp_by_column: BTreeMap<String, f64>,
    /// *1 - NCP* (2014 paper, Section 6), from 0 to 1, higher is better.
    pub information_remain: f64,
    /// *1 - NCP* of each quasi-identifier.
    pub information_remain_by_column: BTreeMap<String, f64>,
    /// Mean NCP over the items of all raw rows of each set-valued quasi-identifier, hidden and
    /// suppressed items counting 1 (2014 paper, Section 6). For the holder alone, with two
    /// significant digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item_loss_by_column: Option<BTreeMap<String, f64>>,
    /// Number of items of each set-valued quasi-identifier, raw and released, and of cells without
    /// any. For the holder alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items_by_column: Option<BTreeMap<String, ItemCounts>>,
    /// How far random counting queries over the items of set-valued quasi-identifiers are off. For the
    /// holder alone, with two significant digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item_query_error: Option<QueryError>,
    /// Greatest confidence in a sensitive value for an adversary of the privacy model, as
    /// verified.
    pub greatest_confidence: f64,
    /// Number of released rows that `classification_error`, `query_error`, `item_query_error`,
    /// `entropy_loss_by_column` and `association_survival` (those that the report has) were measured on,
    /// if the release has more rows: a random sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampled_rows: Option<u64>,
    /// How far random counting queries are off, where there is a quasi-identifier that is not a set.
    /// For the holder alone, with two significant digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query_error: Option<QueryError>,
    /// Non-uniform entropy loss of each quasi-identifier that is not a set, from 0 to 1, lower is
    /// better. In a numeric column with a taxonomy a leaf range is one value. For the holder alone, with
    /// two significant digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entropy_loss_by_column: Option<BTreeMap<String, f64>>,
    /// How much of the frequencies of raw values can be estimated from the released labels of each
    /// quasi-identifier that is not a set: 1 - total variation distance, from 0 to 1, higher is
    /// better. For the holder alone, with two significant digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frequency_survival_by_column: Option<BTreeMap<String, f64>>,
    /// 1 - mean absolute difference of Cramér's V between raw and released columns, over pairs of
    /// columns; from 0 to 1, higher is better. For the holder alone, with two significant digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub association_survival: Option<f64>,
    /// Errors of a classifier that learns the class column; where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classification_error: Option<ClassificationError>,
}

/// What a table that a search found is worth, and how small its groups are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TableFigures {
    /// Specializations performed; `None` for a method without steps.
    pub steps: Option<u32>,
    /// Equivalence classes.
    pub groups: u64,
    /// Records of the smallest group of equal quasi-identifiers, or persons where the dataset has a
    /// subject column.
    pub smallest_group: u64,
    /// The same of the smallest group that an adversary of the model can know, which *K* bounds;
    /// `None` where it is not known.
    pub smallest_known_group: Option<u64>,
    /// Discernibility ratio, from 0 to 1.
    pub dr: f64,
    /// Mean NCP, from 0 to 1.
    pub ncp: f64,
    /// Rows suppressed.
    pub suppressed_rows: u64,
}

impl Report {
    /// The sizes of the groups, the loss of each quasi-identifier and the risk; nothing else yet. `sizes`
    /// are those of [`MeasuredRelease::classes`], and `frequencies` those of the columns of the table.
    ///
    /// # Errors
    /// [`VerifyError`] for a table that lacks a quasi-identifier or is malformed, and
    /// [`VerifyError::Stopped`].
    pub(crate) fn new(
        release: &MeasuredRelease,
        sizes: &[u32],
        frequencies: &[Vec<u64>],
    ) -> Result<Self, VerifyError> {
        let (table, schema) = (release.table, release.schema);
        let suppressed_rows = release.suppressed_rows();
        let is_anatomized = release.recoding == ReleaseRecoding::Anatomized;
        let (mut groups, ncp_by_column) = if is_anatomized {
            // Exact values lose nothing.
            let exact = schema
                .with_role(ColumnRole::QuasiIdentifier)
                .map(|spec| (spec.name().to_owned(), 0.0));
            let groups = group_sizes(table, &[GROUP_COLUMN], release.cancellation)?;
            (GroupMetrics::from_sizes(&groups), exact.collect())
        } else {
            let rows = table.rows as u64;
            let means = ncp_by_column(table, schema, frequencies, rows, suppressed_rows)?;
            (GroupMetrics::from_sizes(sizes), means)
        };
        let risk = match release.persons {
            None => Risk::from_sizes(sizes),
            Some(persons) if is_anatomized => exact_risk(release, persons)?,
            Some(persons) => Risk::of_subjects(persons),
        };
        if let Some(persons) = release.persons {
            let smallest = persons.sizes.iter().copied().min();
            groups.smallest_group = smallest.map_or(0, u64::from);
        }
        Ok(Self {
            utility: Utility::of(groups, ncp_by_column, release.finding),
            risk,
            rows: table.rows as u64,
            subjects: release.persons.map(|persons| persons.subjects),
            suppressed_rows,
            ..Self::default()
        })
    }

    /// The report of a release whose rows are not in memory. What needs them is left out: measures of
    /// utility that read row by row, distributions, and guidelines.
    ///
    /// # Errors
    /// [`VerifyError`] for distinct rows that lack a quasi-identifier or are malformed, and
    /// [`VerifyError::Stopped`].
    pub fn of_counted(release: &CountedRelease) -> Result<Self, VerifyError> {
        let (distinct, schema) = (release.distinct, release.schema);
        let names = schema.names(ColumnRole::QuasiIdentifier);
        let sizes = distinct.group_sizes(&names, release.cancellation)?;
        let mut risk = Risk {
            unchanged: release.unchanged.clone(),
            insensitive_singled_out: release.singled_out.to_vec(),
            attribute: attribute_risk_of_counted(release)?,
            ..Risk::from_sizes(&sizes)
        };
        add_adversaries_of_counted(&mut risk, release)?;
        let rows = distinct.rows.iter().map(|&rows| u64::from(rows)).sum();
        let frequencies = distinct.code_counts();
        let groups = GroupMetrics::from_sizes(&sizes);
        let means = ncp_by_column(&distinct.table, schema, &frequencies, rows, 0)?;
        Ok(Self {
            verdict: Verdict::of(release.finding.holds(), release.unchanged),
            utility: Utility::of(groups, means, release.finding),
            risk,
            rows,
            ..Self::default()
        })
    }
}

impl Utility {
    /// What follows from groups, labels and what was verified.
    fn of(
        groups: GroupMetrics,
        ncp_by_column: BTreeMap<String, f64>,
        finding: &PrivacyFinding,
    ) -> Self {
        let ncp = mean(&ncp_by_column);
        let remain = |(name, ncp): (&String, &f64)| (name.clone(), 1.0 - ncp);
        Self {
            groups,
            smallest_known_group: finding.smallest_group(),
            ncp,
            information_remain: 1.0 - ncp,
            information_remain_by_column: ncp_by_column.iter().map(remain).collect(),
            ncp_by_column,
            greatest_confidence: finding.greatest_confidence(),
            ..Self::default()
        }
    }
}

/// The risk of the persons of an anatomized release by their exact quasi-identifiers.
fn exact_risk(release: &MeasuredRelease, persons: &SubjectGroups) -> Result<Risk, VerifyError> {
    let names = release.schema.names(ColumnRole::QuasiIdentifier);
    let subjects = release.subjects();
    let counted = CountedTable {
        table: release.table,
        subjects: subjects.as_deref(),
    };
    let sizes = group_sizes(counted, &names, release.cancellation)?;
    Ok(Risk::of_subjects(&SubjectGroups {
        sizes,
        ..persons.clone()
    }))
}

/// Mean NCP of each quasi-identifier of a table with this many rows, beside some that were suppressed.
/// `frequencies` are those of its columns.
fn ncp_by_column(
    table: &ReleasedTable,
    schema: &Schema,
    frequencies: &[Vec<u64>],
    rows: u64,
    suppressed: u64,
) -> Result<BTreeMap<String, f64>, VerifyError> {
    let mean = |spec: &SchemaColumn| {
        let mut columns = table.columns.iter().zip(frequencies);
        let found = columns.find(|(column, _)| *column.name == *spec.name());
        let (column, by_code) = found.ok_or_else(|| VerifyError::NoSuchColumn {
            column: spec.name().into(),
        })?;
        let cells = CellCounts {
            by_code,
            rows,
            suppressed,
        };
        Ok((spec.name().to_owned(), ncp::of_column(column, spec, cells)))
    };
    let means = parallel::map(schema.with_role(ColumnRole::QuasiIdentifier), mean);
    means.into_iter().collect()
}

fn mean(by_column: &BTreeMap<String, f64>) -> f64 {
    by_column.values().sum::<f64>() / by_column.len().max(1) as f64
}

/// The figures of a table of groups without suppressed rows, as its report would have them. With
/// `subjects`, the smallest group is that of the fewest persons.
///
/// # Errors
/// [`VerifyError`] for a table that lacks a quasi-identifier or is malformed, and
/// [`VerifyError::Stopped`].
pub fn group_figures(
    table: &ReleasedTable,
    subjects: Option<&Subjects>,
    schema: &Schema,
    cancellation: &Cancellation,
) -> Result<TableFigures, VerifyError> {
    let names = schema.names(ColumnRole::QuasiIdentifier);
    let groups = GroupMetrics::from_sizes(&group_sizes(table, &names, cancellation)?);
    let smallest = match subjects {
        None => groups.smallest_group,
        Some(subjects) => {
            let counted = CountedTable {
                table,
                subjects: Some(subjects.of_row()),
            };
            let persons = group_sizes(counted, &names, cancellation)?;
            persons.into_iter().min().map_or(0, u64::from)
        }
    };
    let frequencies = parallel::map(&table.columns, |it| it.column.row_counts());
    let rows = table.rows as u64;
    Ok(TableFigures {
        steps: None,
        groups: groups.groups,
        smallest_group: smallest,
        // Labels of groups overlap: however little is known, whole groups match.
        smallest_known_group: Some(smallest),
        dr: groups.dr,
        ncp: mean(&ncp_by_column(table, schema, &frequencies, rows, 0)?),
        suppressed_rows: 0,
    })
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use serde_json::{Value, json};

    use super::{MeasuredRelease, ReleaseRecoding, Report};
    use crate::classification::ClassificationError;
    use crate::frequencies::CodeFrequencies;
    use crate::test_data::schema;
    use crate::utility::{AttributeRisk, QueryError, for_recipient};
    use pais_core::cancellation::Cancellation;
    use pais_core::model::Lkc;
    use pais_core::schema::Schema;
    use pais_core::table::{Column, EncodedTable, Form, ReleasedColumn, ReleasedTable, Table};
    use pais_verify::PrivacyFinding;
    use pais_verify::{ModelColumns, QidConfidences, QidSizes, SubjectGroups, verify_model};

    /// Table 2 of the KDD'09 paper, over the trees of its Figure 2.
    fn table_2() -> (ReleasedTable, Value) {
        let declared = json!([
            {"name": "Job", "role": "quasi_identifier", "taxonomy":
                {"label": "ANY", "children": [{"label": "Blue-collar", "children": [
                {"label": "Non-Technical", "children": [{"label": "Janitor"}, {"label": "Mover"}]},
                {"label": "Technical",
                 "children": [{"label": "Carpenter"}, {"label": "Technician"}]}]},
                {"label": "White-collar", "children": [{"label": "Professional",
                 "children": [{"label": "Doctor"}, {"label": "Lawyer"}]}]}]}},
            {"name": "Sex", "role": "quasi_identifier"},
            {"name": "Age", "role": "quasi_identifier", "kind": "numeric", "domain": [1, 99]},
        ]);
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
        (table, declared)
    }

    fn report_of(table: &ReleasedTable, columns: &Value, lost: usize) -> Report {
        report_of_persons(table, columns, lost, None)
    }

    fn report_of_persons(
        table: &ReleasedTable,
        columns: &Value,
        lost: usize,
        persons: Option<&SubjectGroups>,
    ) -> Report {
        let schema = schema(columns.clone());
        let mut raw = EncodedTable::new(&schema, Table::default());
        raw.rows = table.rows + lost;
        let release = MeasuredRelease {
            schema: &schema,
            raw: &raw,
            quasi_identifiers: &[],
            sets: &[],
            exact: &[],
            table,
            rows: &vec![0; table.rows],
            model: &Lkc::k_anonymity(2).unwrap().into(),
            recoding: ReleaseRecoding::Global,
            finding: &verdict(table, &schema),
            classes: None,
            persons,
            cancellation: &Cancellation::new(),
        };
        let classes = release.classes().unwrap();
        let frequencies = CodeFrequencies::new(&release, &classes).released;
        Report::new(&release, classes.sizes(), &frequencies).unwrap()
    }

    fn verdict(table: &ReleasedTable, schema: &Schema) -> PrivacyFinding {
        let model = Lkc {
            l: NonZeroU32::new(2),
            ..Lkc::k_anonymity(2).unwrap()
        };
        let names = schema.names(pais_core::definition::ColumnRole::QuasiIdentifier);
        let columns = ModelColumns {
            quasi_identifiers: &names,
            sensitive: &[],
        };
        let none = Cancellation::new();
        let (found, _) = verify_model(table.into(), columns, &model.into(), &none).unwrap();
        found
    }

    #[test]
    fn table_2_has_the_measures_of_the_paper() {
        let (table, columns) = table_2();
        let Report {
            utility,
            risk,
            rows,
            suppressed_rows,
            ..
        } = report_of(&table, &columns, 0);
        assert_eq!(utility.groups.discernibility, 29);
        assert_eq!(utility.groups.dr, 29.0 / 121.0);
        assert_eq!(
            (utility.groups.groups, utility.groups.smallest_group),
            (5, 1)
        );
        // One offender is alone, but no two of its values are.
        assert_eq!(utility.smallest_known_group, 2);
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
        let (table, columns) = table_2();
        let json = serde_json::to_value(report_of(&table, &columns, 1)).unwrap();
        for pointer in [
            "/utility/dr",
            "/utility/discernibility",
            "/utility/ncp",
            "/utility/ncp_by_column/Job",
            "/utility/information_remain",
            "/utility/groups",
            "/utility/smallest_group",
            "/utility/smallest_known_group",
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
        assert_eq!(back, report_of(&table, &columns, 1));
    }

    /// Two groups, of two and of three persons.
    fn persons() -> SubjectGroups {
        SubjectGroups {
            subjects: 4,
            sizes: vec![2, 3],
            confidences: vec![1.0, 0.5],
        }
    }

    #[test]
    fn with_subjects_risk_and_smallest_group_are_those_of_persons() {
        let (table, columns) = table_2();
        let rows = report_of(&table, &columns, 0);
        let found = report_of_persons(&table, &columns, 0, Some(&persons()));
        assert_eq!((found.subjects, found.rows), (Some(4), 11));
        assert_eq!(found.utility.groups.smallest_group, 2);
        assert_eq!((found.risk.highest, found.risk.average), (0.5, 0.4));
        assert_eq!(found.risk.greatest_confidence_per_subject, Some(1.0));
        let metrics = |report: &Report| report.utility.groups.discernibility;
        assert_eq!(metrics(&found), metrics(&rows), "it counts rows");
        let json = for_recipient(serde_json::to_value(found).unwrap());
        assert_eq!(json["risk"]["greatest_confidence_per_subject"], json!(null));
        assert_eq!(json["risk"]["highest"], 0.5);
        let json = serde_json::to_value(rows).unwrap();
        assert_eq!(json.get("subjects"), None);
    }

    #[test]
    fn an_empty_table_has_no_nan() {
        let (mut table, columns) = table_2();
        table.rows = 0;
        for column in &mut table.columns {
            column.column.codes.clear();
        }
        let found = report_of(&table, &columns, 11);
        assert_eq!(
            (found.utility.ncp, found.utility.information_remain),
            (1.0, 0.0)
        );
        assert_eq!((found.utility.groups.dr, found.risk.highest), (0.0, 0.0));
        let none = report_of(&table, &json!([{"name": "x", "role": "insensitive"}]), 0);
        assert_eq!(
            (none.utility.ncp, none.utility.information_remain),
            (0.0, 1.0)
        );
        let json = serde_json::to_string(&found).unwrap();
        assert!(!json.contains("null"), "{json}");
    }

    /// A field that the documentation does not list may be one that recipients must not see.
    #[test]
    fn the_documentation_says_what_each_field_is_computed_from() {
        let (table, columns) = table_2();
        let mut report = Report {
            pre_generalization: Some([].into()),
            acknowledged_unchanged: Some([].into()),
            distributions: Some(Vec::new()),
            ..report_of_persons(&table, &columns, 0, Some(&persons()))
        };
        let utility = &mut report.utility;
        utility.query_error = Some(QueryError::default());
        utility.item_loss_by_column = Some([("x".to_owned(), 0.0)].into());
        utility.items_by_column = Some([].into());
        utility.item_query_error = Some(QueryError::default());
        utility.classification_error = Some(ClassificationError::default());
        utility.entropy_loss_by_column = Some([].into());
        utility.frequency_survival_by_column = Some([].into());
        utility.association_survival = Some(1.0);
        let risk = &mut report.risk;
        risk.by_length_exact = Some(true);
        risk.lengths_left_out = vec![6];
        let (from, to, qids) = (1, 1, 1);
        risk.qid_sizes = vec![QidSizes { from, to, qids }];
        let (from, to) = (0.9, 1.0);
        risk.qid_confidences = vec![QidConfidences { from, to, qids }];
        risk.insensitive_singled_out = vec!["x".to_owned()];
        risk.attribute = Some(AttributeRisk::default());
        let documentation = include_str!("../../../../docs/methods/report.md");
        let (_, section) = documentation
            .split_once("## What a report is computed from")
            .unwrap();
        let (section, _) = section.split_once("\n#").unwrap();
        let json = serde_json::to_value(report).unwrap();
        let nested = ["utility", "risk"].map(|name| json[name].as_object().unwrap());
        let top = json.as_object().unwrap();
        let top = top
            .keys()
            .filter(|name| !["utility", "risk"].contains(&name.as_str()));
        for field in nested
            .into_iter()
            .flat_map(|fields| fields.keys())
            .chain(top)
        {
            assert!(section.contains(&format!("`{field}`")), "{field}");
        }
    }
}
