//! The risk that a sensitive value is inferred by an adversary of the privacy model.

use std::collections::BTreeMap;

use pais_core::definition::ColumnRole;
use pais_core::model::{Diversity, GroupModel, Lkc, PrivacyModel};
use pais_core::table::{GROUP_COLUMN, ReleasedTable, UnchangedColumn};
use pais_verify::{
    ModelColumns, RawSensitive, VerifyError, by_groups, join_sensitive, verify_model,
};
use serde::{Deserialize, Serialize};

use crate::release::{CountedRelease, MeasuredRelease, ReleaseRecoding};

/// How well an adversary of the privacy model infers a sensitive value of a patient.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AttributeRisk {
    /// The greatest share of one sensitive value among the records that fit what the adversary
    /// knows: `greatest_confidence` of the verification, from 0 to 1. Of an anatomized release
    /// among the records of a group.
    pub highest: f64,
    /// The sensitive column of the value; the first of those with an equal share.
    pub column: String,
}

/// The attribute risk of a release; `None` without sensitive columns.
///
/// The verifier has found the share. Finding its column takes one more verification for each time that the
/// columns can be halved.
///
/// # Errors
/// [`VerifyError`] for a table that is malformed, and [`VerifyError::Stopped`].
pub(crate) fn attribute_risk(
    release: &MeasuredRelease,
) -> Result<Option<AttributeRisk>, VerifyError> {
    let sensitive = release.schema.names(ColumnRole::Sensitive);
    let highest = release.finding.greatest_confidence();
    let joined = match release.recoding {
        ReleaseRecoding::Anatomized if sensitive.len() > 1 => Some(joined(release)?),
        _ => None,
    };
    let table = joined.as_ref().unwrap_or(release.table);
    let greatest = |columns: &[Box<str>]| greatest_share(release, table, columns);
    let column = first_with(&sensitive, highest, greatest)?;
    Ok(column.map(|column| AttributeRisk {
        highest,
        column: column.to_owned(),
    }))
}

/// As [`attribute_risk`].
///
/// # Errors
/// As [`attribute_risk`].
pub(super) fn attribute_risk_of_counted(
    release: &CountedRelease,
) -> Result<Option<AttributeRisk>, VerifyError> {
    let names = release.schema.names(ColumnRole::QuasiIdentifier);
    let sensitive = release.schema.names(ColumnRole::Sensitive);
    let highest = release.finding.greatest_confidence();
    let greatest = |columns: &[Box<str>]| {
        let model = with_values_of(release.model, columns);
        let distinct = release.distinct;
        let columns = ModelColumns {
            quasi_identifiers: &names,
            sensitive: columns,
        };
        let found = distinct.verify_model(columns, &model, release.cancellation)?;
        Ok(found.greatest_confidence)
    };
    let column = first_with(&sensitive, highest, greatest)?;
    Ok(column.map(|column| AttributeRisk {
        highest,
        column: column.to_owned(),
    }))
}

/// The model with the sensitive values that it lists of these columns.
fn with_values_of(model: &Lkc, sensitive: &[Box<str>]) -> Lkc {
    let mut model = model.clone();
    if let Some(listed) = &mut model.sensitive_values {
        listed.retain(|name, _| sensitive.iter().any(|column| **column == **name));
    }
    // All values of columns that list none.
    model.sensitive_values = model.sensitive_values.filter(|listed| !listed.is_empty());
    model
}

/// The first column with the share `highest`, the greatest of all columns; `greatest` finds the greatest share
/// of some columns. `None` without columns. Columns are halved, so one of *n* takes log2 *n* searches.
fn first_with(
    columns: &[Box<str>],
    highest: f64,
    greatest: impl Fn(&[Box<str>]) -> Result<f64, VerifyError>,
) -> Result<Option<&str>, VerifyError> {
    let mut left = columns;
    while left.len() > 1 {
        let (first, second) = left.split_at(left.len() / 2);
        left = if greatest(first)? >= highest {
            first
        } else {
            second
        };
    }
    Ok(left.first().map(AsRef::as_ref))
}

/// The quasi-identifier table of an anatomized release with the sensitive values of its rows.
fn joined(release: &MeasuredRelease) -> Result<ReleasedTable, VerifyError> {
    let columns = UnchangedColumn::pairs(release.schema, release.raw);
    let sensitive = columns.filter(|(spec, _)| spec.role() == ColumnRole::Sensitive);
    let sensitive = sensitive.map(|(spec, column)| RawSensitive { spec, column });
    let sensitive: Vec<_> = sensitive.collect();
    let joined = join_sensitive(release.table, &sensitive, release.rows);
    // The gate has joined them before.
    joined.map_err(|_| VerifyError::UnknownSource)
}

/// The greatest share of one value of these sensitive columns.
fn greatest_share(
    release: &MeasuredRelease,
    table: &ReleasedTable,
    sensitive: &[Box<str>],
) -> Result<f64, VerifyError> {
    let names = match release.recoding {
        ReleaseRecoding::Anatomized => vec![GROUP_COLUMN.into()],
        ReleaseRecoding::Global | ReleaseRecoding::Local => {
            release.schema.names(ColumnRole::QuasiIdentifier)
        }
    };
    let model = match release.model {
        PrivacyModel::Lkc(model) => with_values_of(model, sensitive).into(),
        PrivacyModel::KmAnonymity(model) => (*model).into(),
        PrivacyModel::Groups(model) => PrivacyModel::Groups(GroupModel {
            diversity: Diversity::None,
            min_range: BTreeMap::new(),
            ..model.clone()
        }),
    };
    let model = match release.recoding {
        ReleaseRecoding::Global => model,
        ReleaseRecoding::Local | ReleaseRecoding::Anatomized => by_groups(&model),
    };
    let stop = release.cancellation;
    let columns = ModelColumns {
        quasi_identifiers: &names,
        sensitive,
    };
    let (found, _) = verify_model(table.into(), columns, &model, stop)?;
    Ok(found.greatest_confidence())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::first_with;

    #[test]
    fn the_first_column_with_the_share_is_found_in_few_searches() {
        let columns: Vec<Box<str>> = (0..20).map(|at| format!("s{at}").into()).collect();
        for first in 0..20 {
            let share = |name: &str| {
                let at: usize = name[1..].parse().unwrap();
                // A later column has the same share.
                if at == first || at == 19 { 0.75 } else { 0.5 }
            };
            let searches = Cell::new(0);
            let greatest = |some: &[Box<str>]| {
                searches.set(searches.get() + 1);
                Ok(some.iter().map(|name| share(name)).fold(0.0, f64::max))
            };
            let found = first_with(&columns, 0.75, greatest).unwrap();
            assert_eq!(found, Some(&*format!("s{first}")));
            assert!(searches.get() <= 5, "{}", searches.get());
        }
        let none = |_: &[Box<str>]| Ok(1.0);
        assert_eq!(first_with(&columns[..1], 1.0, none).unwrap(), Some("s0"));
        assert_eq!(first_with(&[], 1.0, none).unwrap(), None);
    }
}
