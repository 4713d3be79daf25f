//! The risk that a sensitive value is inferred by an adversary of the privacy model.

use std::collections::BTreeMap;

use pais_core::definition::ColumnRole;
use pais_core::model::{Diversity, GroupModel, Lkc, PrivacyModel};
use pais_core::table::{GROUP_COLUMN, ReleasedTable};
use pais_verify::{
    CountedTable, RawSensitive, VerifyError, join_sensitive, verify_groups, verify_km,
    verify_lkc_model, verify_local_lkc,
};
use serde::{Deserialize, Serialize};

use crate::release::{MeasuredRelease, ReleaseRecoding};

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
/// The verifier has found the share. Which column it is of takes a further look at each but the
/// last, until one has it.
///
/// # Errors
/// [`VerifyError`] for a table that is malformed, and [`VerifyError::Stopped`].
pub(crate) fn attribute_risk(
    release: &MeasuredRelease,
) -> Result<Option<AttributeRisk>, VerifyError> {
    let sensitive = release.schema.names(ColumnRole::Sensitive);
    let Some((last, others)) = sensitive.split_last() else {
        return Ok(None);
    };
    let highest = release.finding.greatest_confidence();
    let risk = |column: &str| {
        Some(AttributeRisk {
            highest,
            column: column.to_owned(),
        })
    };
    if others.is_empty() {
        return Ok(risk(last));
    }
    let joined = match release.recoding {
        ReleaseRecoding::Anatomized => Some(joined(release)?),
        ReleaseRecoding::Global | ReleaseRecoding::Local => None,
    };
    let table = joined.as_ref().unwrap_or(release.table);
    for column in others {
        if greatest_share(release, table, column)? >= highest {
            return Ok(risk(column));
        }
    }
    Ok(risk(last))
}

/// The quasi-identifier table of an anatomized release with the sensitive values of its rows.
fn joined(release: &MeasuredRelease) -> Result<ReleasedTable, VerifyError> {
    let stored: Vec<_> = release.schema.stored().collect();
    let columns = release.raw.untouched.iter();
    let sensitive = columns.filter_map(|(position, column)| {
        let &spec = stored.get(*position)?;
        (spec.role() == ColumnRole::Sensitive).then_some(RawSensitive { spec, column })
    });
    let sensitive: Vec<_> = sensitive.collect();
    let joined = join_sensitive(release.table, &sensitive, release.rows);
    // The gate has joined them before.
    joined.map_err(|_| VerifyError::UnknownSource)
}

/// The greatest share of one value of a sensitive column.
fn greatest_share(
    release: &MeasuredRelease,
    table: &ReleasedTable,
    column: &str,
) -> Result<f64, VerifyError> {
    let names = match release.recoding {
        ReleaseRecoding::Anatomized => vec![GROUP_COLUMN.into()],
        ReleaseRecoding::Global | ReleaseRecoding::Local => {
            release.schema.names(ColumnRole::QuasiIdentifier)
        }
    };
    let sensitive: [Box<str>; 1] = [column.into()];
    let cancellation = release.cancellation;
    Ok(match release.model {
        PrivacyModel::Lkc(model) => {
            let verify = match release.recoding {
                ReleaseRecoding::Global => verify_lkc_model,
                ReleaseRecoding::Local | ReleaseRecoding::Anatomized => verify_local_lkc,
            };
            let listed = model.sensitive_values.as_ref();
            let listed = listed.and_then(|listed| listed.get_key_value(column));
            let model = Lkc {
                sensitive_values: listed
                    .map(|(name, values)| BTreeMap::from([(name.clone(), values.clone())])),
                ..model.clone()
            };
            let counted = CountedTable::from(table);
            verify(counted, &names, &sensitive, &model, cancellation)?.greatest_confidence
        }
        PrivacyModel::KmAnonymity(model) => {
            verify_km(table, &names, &sensitive, *model, cancellation)?.greatest_confidence
        }
        PrivacyModel::Groups(model) => {
            let model = GroupModel {
                diversity: Diversity::None,
                min_range: BTreeMap::new(),
                ..model.clone()
            };
            verify_groups(table, &names, &sensitive, &model, cancellation)?.greatest_confidence
        }
    })
}
