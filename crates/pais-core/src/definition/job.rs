//! Jobs: which privacy model, which utility, which output.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_with::{As, DefaultOnNull, skip_serializing_none};

use super::whole::Whole;
use super::{ColumnRole, DatasetId, JobRelease, OneOrMany, PrivacyDefinition, SubmissionId, json};
use crate::model::{Decimal, Diversity, GroupModel, MissingSensitive, PrivacyModel};
use crate::rejection::Rejection;

/// Default time limit of a thorough search, in seconds.
const DEFAULT_SEARCH_SECONDS: i64 = 30;

/// Maximum number of seconds that a job may give a thorough search.
const MOST_SEARCH_SECONDS: u64 = 3600;

/// Maximum number of characters of the reason for a column that is a key.
const MOST_REASON_CHARACTERS: usize = 2_000;

/// The executor that is the program itself.
const LOCAL_EXECUTOR: &str = "local";

/// The body of `POST /v1/jobs`; on the command line the same without `dataset_id`.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct JobDefinition {
    /// Which dataset.
    #[cfg_attr(feature = "openapi", schema(value_type = DatasetId, required = true))]
    pub dataset_id: Option<DatasetId>,
    /// Which privacy model.
    pub privacy: PrivacyDefinition,
    /// What the analyst needs.
    pub utility: Option<UtilityDefinition>,
    /// Largest fraction of rows that may be suppressed; default 0.
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 1))]
    pub suppression_limit: Option<f64>,
    /// What rows may be suppressed for; default `size`.
    pub suppression_for: Option<SuppressionFor>,
    /// How missing sensitive cells count; default `excluded`.
    pub missing_sensitive: Option<MissingSensitive>,
    /// One cut for the whole table, or groups; a list tries both.
    #[cfg_attr(feature = "openapi", schema(schema_with = super::openapi::recodings))]
    pub recoding: Option<OneOrMany<Recoding>>,
    /// What the released table contains.
    pub output: Option<Output>,
    /// The analyst's wishes, applied first: column to level and exceptions.
    pub pre_generalization: Option<BTreeMap<String, PreGeneralization>>,
    /// Column to its role in this job, instead of the declared one; neither of the two may be
    /// `identifier` or `subject`.
    pub roles: Option<BTreeMap<String, ColumnRole>>,
    /// Submissions to include; all when omitted.
    #[cfg_attr(feature = "openapi", schema(min_items = 1))]
    pub submissions: Option<Vec<SubmissionId>>,
    /// Whether to release the last step when the run ends well, and where files of it are written.
    pub release: Option<JobRelease>,
    /// The executor that counts the rows; `local`, the default, is the service itself. Other executors have names
    /// that the service's operator gave them. They take `lkc` and its special cases with global recoding, for
    /// tables that do not fit the memory, and write releases to a location.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 100))]
    pub executor: Option<String>,
    /// Makes the order of released rows repeatable; random when omitted.
    #[serde(default, deserialize_with = "super::whole::option")]
    #[cfg_attr(feature = "openapi", schema(maximum = 9007199254740991u64))]
    pub seed: Option<u64>,
    /// Column to the reason why it is released unchanged although it has nearly as many values as
    /// rows. Without it such a column refuses the job with `unchanged_key`.
    pub acknowledge_unchanged: Option<BTreeMap<String, String>>,
}

impl JobDefinition {
    /// The job with its parameters in range. The fields that refer to resources of a service are not
    /// part of it.
    ///
    /// # Errors
    /// [`JobErrorKind::Shape`] for a list where one value is needed, a missing parameter and a parameter of
    /// another model; [`JobErrorKind::OutOfRange`] and [`JobErrorKind::InvalidValue`] for a value out
    /// of range; [`JobErrorKind::Unfit`] for parameters that exclude each other.
    pub fn parse(&self) -> Result<Job, JobError> {
        self.check_executor()?;
        let utility = self.utility.clone().unwrap_or_default();
        let recoding = one("/recoding", &self.recoding)?;
        let objective = one("/utility/objective", &utility.objective)?;
        let missing_sensitive = self.missing_sensitive.unwrap_or_default();
        let model = self.privacy.parse(missing_sensitive)?;
        self.check_confidence_options(&model)?;
        Ok(Job {
            model,
            recoding,
            output: self.output,
            objective,
            split: utility.split,
            thorough: utility.thorough()?,
            weights: utility.weights,
            raw_figures: utility.raw_figures.unwrap_or(true),
            suppression_limit: self.suppression_limit()?,
            suppression_for: self.suppression_for,
            pre_generalization: self.pre_generalization.clone(),
            roles: self.roles.clone().unwrap_or_default(),
            seed: self.seed,
            written: self.seed.and_then(|_| self.parameters()),
            acknowledged: self.acknowledged()?,
            continued_cut: None,
        })
    }

    /// Removes and returns the name of an executor other than the program itself. The rest is a job that
    /// the program could run.
    pub fn take_executor(&mut self) -> Option<String> {
        self.executor.take().filter(|name| name != LOCAL_EXECUTOR)
    }

    /// Refuses an executor if the program itself runs the job.
    fn check_executor(&self) -> Result<(), JobError> {
        match self.executor.as_deref() {
            None | Some(LOCAL_EXECUTOR) => Ok(()),
            Some(_) => Err(JobError::at(
                JobErrorKind::InvalidValue,
                "/executor",
                "only jobs of `POST /v1/jobs` have an executor other than `local`, if the service has \
                 one; leave `executor` out",
            )),
        }
    }

    /// The reasons for columns that are keys.
    fn acknowledged(&self) -> Result<BTreeMap<String, String>, JobError> {
        let given = self.acknowledge_unchanged.iter().flatten();
        let checked = given.map(|(column, reason)| {
            let reason = reason.trim();
            if !reason.is_empty() && reason.chars().count() <= MOST_REASON_CHARACTERS {
                return Ok((column.clone(), reason.to_owned()));
            }
            let detail = format!(
                "say in 1 to {MOST_REASON_CHARACTERS} characters why the column is released although \
                 its values are those of single rows"
            );
            let pointer = format!("/acknowledge_unchanged/{}", json::escape(column));
            Err(JobError::at(JobErrorKind::InvalidValue, pointer, detail))
        });
        checked.collect()
    }

    /// The document as JSON, without `dataset_id`, `submissions`, `release` and `executor`.
    fn parameters(&self) -> Option<String> {
        let parameters = Self {
            dataset_id: None,
            submissions: None,
            release: None,
            executor: None,
            ..self.clone()
        };
        serde_json::to_string(&parameters).ok()
    }

    /// The largest fraction of rows that may be suppressed; 0 if it was not given.
    fn suppression_limit(&self) -> Result<Decimal, JobError> {
        Decimal::fraction(self.suppression_limit.unwrap_or(0.0)).ok_or_else(|| {
            JobError::at(
                JobErrorKind::InvalidValue,
                "/suppression_limit",
                "`suppression_limit` must be a fraction of the rows, from 0 to 1",
            )
        })
    }

    /// Refuses parameters of a confidence bound if the model has no such bound.
    fn check_confidence_options(&self, model: &PrivacyModel) -> Result<(), JobError> {
        if matches!(model, PrivacyModel::Lkc(model) if !model.is_k_anonymity()) {
            return Ok(());
        }
        let refused = |pointer, detail| Err(JobError::at(JobErrorKind::Unfit, pointer, detail));
        if self.suppression_for == Some(SuppressionFor::SizeAndConfidence) {
            return refused(
                "/suppression_for",
                "this model bounds no confidence, so rows are suppressed for size only; leave \
                 `suppression_for` out",
            );
        }
        if self.missing_sensitive == Some(MissingSensitive::Counted) {
            return refused(
                "/missing_sensitive",
                "this model bounds no confidence in which missing sensitive cells could be counted; \
                 leave `missing_sensitive` out",
            );
        }
        Ok(())
    }
}

/// The one value of a parameter that may be a list.
fn one<T: Copy>(pointer: &str, value: &Option<OneOrMany<T>>) -> Result<Option<T>, JobError> {
    match value {
        None => Ok(None),
        Some(OneOrMany::One(value)) => Ok(Some(*value)),
        Some(OneOrMany::Many(_)) => {
            let detail = "this is a list; give one value here";
            Err(JobError::at(JobErrorKind::Shape, pointer, detail))
        }
    }
}

/// A job with its parameters in range: a privacy model, and how its table is searched.
///
/// ```
/// use pais_core::definition::{Job, Objective};
/// use pais_core::model::Lkc;
///
/// let job = Job {
///     objective: Some(Objective::Ncp),
///     seed: Some(7),
///     ..Job::new(Lkc::new(4, 20, 0.2)?.sensitive("Surgery", ["Transgender"]))
/// };
/// assert_eq!(job.recoding, None);
/// # Ok::<(), pais_core::model::ParameterError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Job {
    /// Which privacy model.
    pub model: PrivacyModel,
    /// One cut for the whole table, or groups; `None` leaves it to the model.
    pub recoding: Option<Recoding>,
    /// What the released table contains; `None` leaves it to the model.
    pub output: Option<Output>,
    /// The criterion for choosing a specialization; `None` leaves it to the method.
    pub objective: Option<Objective>,
    /// How numeric intervals are split.
    pub split: Option<SplitRule>,
    /// The time limit of a thorough search; `None` where the search is greedy.
    pub thorough: Option<Duration>,
    /// Quasi-identifier to its weight in the choice by NCP, greater than 0; 1 where omitted.
    pub weights: Option<BTreeMap<String, f64>>,
    /// Whether the report has figures that are computed from raw rows.
    pub raw_figures: bool,
    /// Largest fraction of rows that may be suppressed.
    pub suppression_limit: Decimal,
    /// What rows may be suppressed for; `None` is [`SuppressionFor::Size`].
    pub suppression_for: Option<SuppressionFor>,
    /// Column to level and exceptions, applied before anything else.
    pub pre_generalization: Option<BTreeMap<String, PreGeneralization>>,
    /// Column to its role in this job, in place of the declared one.
    pub roles: BTreeMap<String, ColumnRole>,
    /// Makes the order of released rows reproducible; random when `None`.
    pub seed: Option<u64>,
    /// The document of a job with a seed; the order of rows depends on it too. `None` for a job that a program
    /// builds.
    #[serde(skip)]
    pub written: Option<String>,
    /// Column to the reason why it is released unchanged although it is a key of the rows.
    pub acknowledged: BTreeMap<String, String>,
    /// The cut that the release continues; `None` for a job that continues none. A program sets it; no
    /// document has it.
    #[serde(skip)]
    pub continued_cut: Option<ContinuedCut>,
}

/// A cut of earlier releases that a release continues.
#[derive(Clone, Debug, PartialEq)]
pub struct ContinuedCut {
    /// Column to the labels.
    pub labels: BTreeMap<String, Vec<String>>,
    /// Whether the search continues below these labels once it has reached them. Otherwise no label of the
    /// release is below them. Either way, an interval that overlaps one of them contains it or is contained in
    /// it.
    pub goes_below: bool,
}

impl Job {
    /// A job that suppresses no row, under the defaults of the model.
    pub fn new(model: impl Into<PrivacyModel>) -> Self {
        Self {
            model: model.into(),
            recoding: None,
            output: None,
            objective: None,
            split: None,
            thorough: None,
            weights: None,
            raw_figures: true,
            suppression_limit: Decimal::ZERO,
            suppression_for: None,
            pre_generalization: None,
            roles: BTreeMap::new(),
            seed: None,
            written: None,
            acknowledged: BTreeMap::new(),
            continued_cut: None,
        }
    }

    /// What the released tables contain.
    pub fn output(&self) -> Output {
        let is_minimum_cover = matches!(
            &self.model,
            PrivacyModel::Groups(GroupModel {
                diversity: Diversity::MinimumCover { .. },
                ..
            })
        );
        let is_global = self.recoding == Some(Recoding::Global);
        self.output.unwrap_or(if is_minimum_cover && !is_global {
            Output::Anatomized
        } else {
            Output::Generalized
        })
    }

    /// What rows may be suppressed for.
    pub fn suppression_for(&self) -> SuppressionFor {
        self.suppression_for.unwrap_or_default()
    }
}

/// What the analyst needs.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct UtilityDefinition {
    /// What a specialization is chosen by; a list tries each.
    #[cfg_attr(feature = "openapi", schema(schema_with = super::openapi::objectives))]
    pub objective: Option<OneOrMany<Objective>>,
    /// How numeric intervals are split.
    pub split: Option<SplitRule>,
    /// How far the search goes; default `greedy`.
    pub search: Option<SearchRule>,
    /// Maximum number of seconds of a thorough search, from 1 to 3600; default 30.
    #[serde(default, deserialize_with = "super::whole::option")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 3600))]
    pub search_seconds: Option<i64>,
    /// Quasi-identifier to its weight in the choice by NCP, greater than 0; 1 where omitted.
    pub weights: Option<BTreeMap<String, f64>>,
    /// Whether the holder's report has figures that are computed from raw rows, such as
    /// `query_error`; default true.
    pub raw_figures: Option<bool>,
}

impl UtilityDefinition {
    /// The time limit of a thorough search; `None` where the search is greedy.
    fn thorough(&self) -> Result<Option<Duration>, JobError> {
        let at = |kind, detail: &str| JobError::at(kind, "/utility/search_seconds", detail);
        match (self.search.unwrap_or_default(), self.search_seconds) {
            (SearchRule::Greedy, None) => Ok(None),
            (SearchRule::Greedy, Some(_)) => Err(at(
                JobErrorKind::Unfit,
                "`search_seconds` limits a thorough search; leave it out, or set `search` to \
                 `thorough`",
            )),
            (SearchRule::Thorough, seconds) => {
                let seconds = u64::try_from(seconds.unwrap_or(DEFAULT_SEARCH_SECONDS)).ok();
                let seconds = seconds.filter(|seconds| (1..=MOST_SEARCH_SECONDS).contains(seconds));
                let limit = seconds.map(Duration::from_secs);
                let refused = || {
                    at(
                        JobErrorKind::InvalidValue,
                        "`search_seconds` must be a whole number from 1 to 3600",
                    )
                };
                limit.map(Some).ok_or_else(refused)
            }
        }
    }
}

/// What a specialization is chosen by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Objective {
    /// Greatest information gain on the class column (KDD'09, Eq. 1 and 2).
    Classification,
    /// Greatest reduction of the discernibility cost.
    Discernibility,
    /// Greatest sum of squared groups after the specialization (KDD'09, Eq. 4 as Example 3
    /// computes it).
    DiscernibilityEq4,
    /// Greatest decrease of the mean normalized certainty penalty.
    Ncp,
}

/// How a numeric interval without a taxonomy is split.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum SplitRule {
    /// At the best point alone; where that is invalid the interval is finished.
    #[default]
    Fixed,
    /// At the best point that is valid.
    BestValid,
}

/// How far a search goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum SearchRule {
    /// The best step at each point, as published.
    #[default]
    Greedy,
    /// Beyond the greedy path, for a limited time.
    Thorough,
}

/// One cut for the whole table, or groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Recoding {
    /// One cut for the whole table.
    Global,
    /// Groups of a k-d split.
    Local,
}

/// What rows may be suppressed for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum SuppressionFor {
    /// Only to remove groups of fewer than *K* rows.
    #[default]
    Size,
    /// To remove groups whose confidence is above *C* too. What is missing from the release was
    /// then sensitive, which the release says.
    SizeAndConfidence,
}

/// What the released table contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Output {
    /// Generalized quasi-identifiers.
    Generalized,
    /// Exact quasi-identifiers with a group, and a table of counts for each sensitive column.
    Anatomized,
}

/// One column's pre-generalization (*PGD* of the 2014 paper, Section 4.1).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct PreGeneralization {
    /// Level of every value not named below, leaves being level 0.
    #[serde(default, deserialize_with = "As::<DefaultOnNull<Whole>>::deserialize")]
    #[cfg_attr(feature = "openapi", schema(maximum = 4294967295u64))]
    pub level: u32,
    /// Level to the values that are generalized to it.
    #[serde(
        default,
        deserialize_with = "super::json::or_default",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub values: BTreeMap<String, Vec<String>>,
}

/// What is wrong with a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobErrorKind {
    /// A parameter is missing, of another model, or not of its type.
    Shape,
    /// A parameter of the privacy model is out of range.
    OutOfRange,
    /// Another value is out of range.
    InvalidValue,
    /// The job does not fit the columns of the dataset.
    Unfit,
    /// The work would exceed a limit.
    LimitExceeded,
    /// A column that is nearly a key of the rows would be released unchanged.
    UnchangedKey,
}

/// Why a job is refused, with a pointer into it.
pub type JobError = Rejection<JobErrorKind>;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::definition::{JobDefinition, JobErrorKind, json};

    fn limit(utility: &str) -> Result<Option<Duration>, JobErrorKind> {
        let body =
            format!(r#"{{"privacy": {{"model": "k_anonymity", "k": 2}}, "utility": {utility}}}"#);
        let job: JobDefinition = json::parse(body.as_bytes()).unwrap();
        job.parse().map(|job| job.thorough).map_err(|error| {
            assert_eq!(error.faults[0].pointer(), Some("/utility/search_seconds"));
            error.kind
        })
    }

    #[test]
    fn figures_of_raw_rows_are_reported_unless_a_job_leaves_them_out() {
        let wants = |utility: &str| {
            let body = format!(r#"{{"privacy": {{"model": "k_anonymity", "k": 2}}{utility}}}"#);
            let job: Option<JobDefinition> = json::parse(body.as_bytes()).ok();
            job.map(|job| job.parse().unwrap().raw_figures)
        };
        assert_eq!(wants(""), Some(true));
        assert_eq!(wants(r#", "utility": {}"#), Some(true));
        assert_eq!(wants(r#", "utility": {"raw_figures": true}"#), Some(true));
        assert_eq!(wants(r#", "utility": {"raw_figures": false}"#), Some(false));
        assert_eq!(wants(r#", "utility": {"raw_figures": "no"}"#), None);
        assert_eq!(wants(r#", "utility": {"raw_figures": 0}"#), None);
    }

    #[test]
    fn a_reason_for_a_key_is_trimmed_and_not_empty() {
        let reason = |reason: &str| {
            let body = format!(
                r#"{{"privacy": {{"model": "k_anonymity", "k": 2}},
                     "acknowledge_unchanged": {{"a/b": "{reason}"}}}}"#
            );
            let job: JobDefinition = json::parse(body.as_bytes()).unwrap();
            let acknowledged = job.parse().map(|job| job.acknowledged["a/b"].clone());
            acknowledged
                .map_err(|error| (error.kind, error.faults[0].pointer().unwrap().to_owned()))
        };
        assert_eq!(reason(" approved "), Ok("approved".to_owned()));
        let pointer = "/acknowledge_unchanged/a~1b".to_owned();
        for text in ["", "  ", &"x".repeat(2_001)] {
            assert_eq!(
                reason(text),
                Err((JobErrorKind::InvalidValue, pointer.clone()))
            );
        }
    }

    #[test]
    fn only_a_thorough_search_has_a_time_limit_of_one_second_to_an_hour() {
        let thorough = |seconds: &str| {
            limit(&format!(
                r#"{{"search": "thorough", "search_seconds": {seconds}}}"#
            ))
        };
        assert_eq!(limit("{}"), Ok(None));
        assert_eq!(limit(r#"{"search": "greedy"}"#), Ok(None));
        let default = Ok(Some(Duration::from_secs(30)));
        assert_eq!(limit(r#"{"search": "thorough"}"#), default);
        assert_eq!(thorough("1"), Ok(Some(Duration::from_secs(1))));
        assert_eq!(thorough("3600.0"), Ok(Some(Duration::from_secs(3600))));
        for seconds in ["0", "-1", "3601"] {
            assert_eq!(
                thorough(seconds),
                Err(JobErrorKind::InvalidValue),
                "{seconds}"
            );
        }
        assert_eq!(limit(r#"{"search_seconds": 5}"#), Err(JobErrorKind::Unfit));
    }
}
