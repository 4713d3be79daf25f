//! Which jobs can be repeated as editions that fit each other.

use pais_anonymize::JobPlan;
use pais_core::definition::{
    ColumnKind, ColumnRole, JobDefinition, JobRelease, Output, Sweep, first_list,
};
use pais_core::model::PrivacyModel;
use pais_core::schema::Schema;

use crate::problem::{Code, Problem};

/// Name of the column with the number of the edition, in all editions as one table.
pub(crate) const EDITION_COLUMN: &str = "edition";

/// Checks the job of a publication beyond what any job has to meet.
///
/// # Errors
/// `invalid_job` with a pointer into the job, and those of a job.
pub(crate) fn check(job: &JobDefinition, sweep: &Sweep, schema: &Schema) -> Result<(), Problem> {
    let unfit = |pointer: &str, detail: &str| Err(Problem::at(Code::InvalidJob, pointer, detail));
    if job.dataset_id.is_some() {
        let detail = "the publication names the dataset; leave `dataset_id` out of its job";
        return unfit("/dataset_id", detail);
    }
    if job.submissions.is_some() {
        let detail = "an edition takes the rows that no edition has; leave `submissions` out";
        return unfit("/submissions", detail);
    }
    if !matches!(job.release, None | Some(JobRelease::Wanted(true))) {
        let detail = "each edition is a release that the service serves; leave `release` out";
        return unfit("/release", detail);
    }
    if sweep.is_sweep {
        let detail = "an edition has one table; give single values, not lists";
        return unfit(&first_list(job).unwrap_or_default(), detail);
    }
    let parsed = job.parse()?;
    let plan = JobPlan::new(schema, &parsed)?;
    let schema = schema.with_roles(&parsed.roles)?;
    if plan.output() == Output::Anatomized {
        let detail = "editions of anatomized tables do not fit each other; set `output` to \
                      `generalized`";
        return unfit("/output", detail);
    }
    if matches!(parsed.model, PrivacyModel::KmAnonymity(_)) {
        let detail = "`k_m_anonymity` hides items row by row, so that its editions do not fit each \
                      other; choose `lkc`, `alpha_k`, `confidence_bounding`, `k_anonymity` or a model \
                      of groups";
        return unfit("/privacy/model", detail);
    }
    let mut columns = schema.stored();
    let set = columns.find(|column| {
        column.kind() == ColumnKind::Set && column.role() == ColumnRole::QuasiIdentifier
    });
    if let Some(set) = set {
        let detail = format!(
            "the column `{}` is a set of items, which are hidden row by row, so that editions do not \
             fit each other; give it another role in `roles`, such as `sensitive`",
            set.name()
        );
        return unfit("/roles", &detail);
    }
    if schema
        .stored()
        .any(|column| column.name() == EDITION_COLUMN)
    {
        let detail = "all editions as one table have a column `edition`, which is a column of the \
                      dataset; declare it under another name";
        return unfit("", detail);
    }
    Ok(())
}
