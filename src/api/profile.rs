//! `/v1/datasets/{id}/profile`: what a holder can learn about the rows without seeing any.

use std::collections::BTreeMap;

use axum::Json;
use pais_core::definition::DatasetId;
use pais_core::table::SubjectCounts;
use pais_core::table::profile::{self, ColumnProfile};
use pais_core::warning::Warning;
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use crate::db::audit::{self, Action, NewEvent};
use crate::db::submissions::{self, Which};
use crate::problem::{Code, Problem};

use super::datasets::load;
use super::error::ApiError;
use super::extract::{Path, Staff};
use super::raw_rows::{RawRows, despite_deletions, on_rows};
use super::state::CallerApp;

/// A dataset in numbers.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct ProfileDocument {
    /// The dataset.
    pub dataset_id: DatasetId,
    /// Number of its current rows: without those of replaced submissions.
    pub rows: u64,
    /// The stored columns in the declared order; identifiers are not stored.
    pub columns: Vec<ColumnProfile>,
    /// Number of persons in them; absent without a column of the role `subject`, as are
    /// the two fields that follow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subjects: Option<u64>,
    /// Rows of the person with the most rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows_per_subject_max: Option<u64>,
    /// Number of persons with rows in more than one submission.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared_subjects: Option<u64>,
    /// By identifier column, the number of rows whose identifier occurred before in the same
    /// submission, a lower bound where there are millions of identifiers. Absent with a column of
    /// the role `subject`, and where none were counted: identifiers of Parquet files are not read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identifier_repeats: Option<BTreeMap<String, u64>>,
    /// What the holder should know about the rows.
    pub warnings: Vec<Warning>,
}

/// Profile a dataset: each column in numbers.
///
/// How many distinct and missing values there are, the range of numbers, the sizes of sets, how many
/// persons there are; never a row, and never a value of another kind.
#[utoipa::path(
    get, path = "/v1/datasets/{id}/profile", tag = "datasets",
    params(("id" = DatasetId, Path, description = "Its id")),
    responses(
        (status = 200, description = "The profile", body = ProfileDocument),
        (status = 422, description = "`limit_exceeded`: its rows need more memory than there is"),
    ),
)]
pub(super) async fn show(
    Staff(app): Staff,
    Path(id): Path<DatasetId>,
) -> Result<Json<ProfileDocument>, ApiError> {
    let profile = despite_deletions(&app, id, move |app| profile_of(app, id));
    Ok(Json(profile.await?))
}

async fn profile_of(app: CallerApp, id: DatasetId) -> Result<ProfileDocument, ApiError> {
    let dataset = load(&app, id).await?;
    // Persons are counted by submission, so the submissions are settled before the rows are read.
    let submissions = match dataset.schema.subject() {
        Some(_) => Some(submissions::rows_by_submission(&app.db, id, Which::Current).await?),
        None => None,
    };
    let ids = submissions.as_ref().map(|submissions| {
        let ids = submissions.iter().map(|submission| submission.id);
        ids.collect::<Vec<_>>()
    });
    let which = ids.as_deref().map_or(Which::Current, Which::Listed);
    let rows = RawRows {
        which,
        size: submissions::size(&app.db, id, which).await?,
        plans: &[],
        extra_bytes: 0,
    };
    let profile = on_rows(&app, dataset, rows, |schema, table, cancellation| {
        let columns = profile::profile_until(schema, &table, cancellation);
        let subjects = schema.subject().zip(submissions);
        let subjects = subjects.map(|(column, submissions)| {
            let rows = submissions.into_iter().map(|submission| submission.rows);
            SubjectCounts::new(&table.columns[column], rows)
        });
        let stopped = || Problem::new(Code::Cancelled, "the profile was stopped");
        Ok((table.rows as u64, columns.ok_or_else(stopped)?, subjects))
    });
    let (rows, columns, subjects) = profile.await?;
    let event = NewEvent::by(app.caller, Action::ProfileRead, id.0, json!({}));
    audit::record_alone(&app.db, event).await?;
    Ok(ProfileDocument {
        dataset_id: id,
        rows,
        columns,
        subjects: subjects.map(|counts| counts.subjects),
        rows_per_subject_max: subjects.map(|counts| counts.rows_per_subject_max),
        shared_subjects: subjects.map(|counts| counts.shared_subjects),
        identifier_repeats: submissions::identifier_repeats(&app.db, id).await?,
        warnings: submissions::row_warnings(&mut *app.db.connection().await?, id, Which::Current)
            .await?,
    })
}
