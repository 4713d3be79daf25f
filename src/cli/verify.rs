//! `pais verify`: a finished table, whoever made it, against a privacy model.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use pais::problem::{Code, Problem};
use pais_anonymize::pre_generalization;
use pais_core::definition::json::escape;
use pais_core::definition::{ColumnRole, JobDefinition, ModelKind};
use pais_core::model::{Diversity, GroupModel, KmAnonymity, Lkc, PrivacyModel};
use pais_core::read::reimport;
use pais_core::schema::Schema;
use pais_core::table::{EncodedTable, ReleasedTable};
use pais_core::taxonomy::MinimumLevels;
use pais_verify::{
    self, Assignment, ColumnValue, LkcRequirement, Original, OriginalQuasiIdentifier, OriginalSet,
    SensitiveSet, Verification, VerifyError, WorstGroup,
};

use super::anatomized::Anatomized;
use super::directory::Directory;
use super::documents::{self, in_file};
use super::failure::Failure;
use super::table_file::TableFile;

/// Arguments of `pais verify`.
#[derive(Debug, Args)]
pub struct Verify {
    /// The dataset: the body of `POST /v1/datasets`, with inline taxonomies.
    #[arg(long, value_name = "S.json")]
    schema: PathBuf,
    /// The job: the body of `POST /v1/jobs` without `dataset_id`.
    #[arg(long, value_name = "J.json")]
    job: PathBuf,
    /// The finished table, by its ending: .csv, .ndjson (also .gz, .zst) or .parquet; or the
    /// directory of an anatomized release.
    #[arg(value_name = "RELEASE")]
    release: PathBuf,
    /// The raw table: truthfulness and lost records are checked too. An anatomized release
    /// cannot be checked without.
    #[arg(long, value_name = "INPUT")]
    raw: Option<PathBuf>,
}

impl Verify {
    /// Checks, and prints what was found to standard output; exit status 0 where all holds,
    /// 1 where something does not.
    ///
    /// # Errors
    /// For what cannot be read.
    pub fn run(&self) -> Result<ExitCode, Failure> {
        self.check().map_err(Failure::unreadable)
    }

    fn check(&self) -> Result<ExitCode, Failure> {
        if self.release.is_dir() {
            return self.check_directory();
        }
        let release = TableFile::of(&self.release)?;
        let raw = self.raw.as_deref().map(TableFile::of).transpose()?;
        let schema = documents::schema(&self.schema)?;
        let job = documents::job(&self.job)?;
        let in_job = |problem| in_file(&self.job, problem);
        let model = model(&schema, &job).map_err(in_job)?;
        let limit = job.suppression_limit().map_err(in_job)?;
        let table = release.read_finished(&schema)?;
        let quasi_identifiers = named(&schema, ColumnRole::QuasiIdentifier);
        let failed = |error: VerifyError| misfit(&self.release, error.to_string());
        let never = || false;
        let mut report = Report::default();
        match model {
            PrivacyModel::Lkc(model) => {
                let requirement = requirement(&schema, &model, quasi_identifiers.len());
                report.lkc(&requirement);
                let found = privacy::verify_lkc(&table, &quasi_identifiers, &requirement);
                report.privacy(&found.map_err(failed)?);
            }
            PrivacyModel::KmAnonymity(model) => {
                report.km(model);
                let found =
                    privacy::verify_km_until_stopped(&table, &quasi_identifiers, model, &never);
                report.privacy(&found.map_err(failed)?);
            }
            PrivacyModel::Groups(model) => {
                let sensitive = named(&schema, ColumnRole::Sensitive);
                let found =
                    privacy::verify_groups(&table, &quasi_identifiers, &sensitive, &model, &never);
                report.groups(&model, &found.map_err(failed)?);
            }
        }
        if let Some(raw) = raw {
            let raw = EncodedTable::new(&schema, raw.read(&schema)?);
            let rows = raw.rows as u64;
            let minimum_levels = pre_generalization::minimum_levels(&job, &raw).map_err(in_job)?;
            let assignment = assigned(&schema, &table, &raw, &minimum_levels)
                .map_err(|error| misfit(&self.release, error.to_string()))?;
            report.raw(&assignment, rows, limit.floor_of(rows));
        }
        Ok(report.print())
    }

    fn check_directory(&self) -> Result<ExitCode, Failure> {
        let Some(raw) = &self.raw else {
            return Err(Failure::Usage(format!(
                "{}: an anatomized release is checked against the raw table; give it with --raw",
                self.release.display()
            )));
        };
        let raw = TableFile::of(raw)?;
        let schema = documents::schema(&self.schema)?;
        let job = documents::job(&self.job)?;
        let in_job = |problem| in_file(&self.job, problem);
        let model = model_of_groups(&schema, &job).map_err(in_job)?;
        let limit = job.suppression_limit().map_err(in_job)?;
        let raw = raw.read(&schema)?;
        let rows = raw.rows as u64;
        let tables = Anatomized::read(&schema, &Directory::of(&self.release)?)?;
        let found = tables
            .hold_against(&schema, &raw, &model)
            .map_err(|detail| misfit(&self.release, detail))?;
        let mut report = Report::default();
        report.anatomy(&model, &found, rows, limit.floor_of(rows));
        Ok(report.print())
    }
}

fn misfit(path: &Path, detail: String) -> Failure {
    in_file(path, Problem::new(Code::InvalidHeader, detail)).into()
}

pub(super) fn named(schema: &Schema, role: ColumnRole) -> Vec<Box<str>> {
    let columns = schema.stored().filter(|column| column.role == role);
    columns.map(|column| column.name.clone()).collect()
}

/// The job's model, which must speak of the schema's sensitive columns.
fn model(schema: &Schema, job: &JobDefinition) -> Result<PrivacyModel, Problem> {
    let model = job.privacy.parse()?;
    let sensitive = named(schema, ColumnRole::Sensitive);
    let (field, spoken_of): (_, Vec<&String>) = match &model {
        PrivacyModel::Lkc(model) => {
            let listed = model.sensitive_values.iter().flatten();
            (
                "sensitive_values",
                listed.map(|(column, _)| column).collect(),
            )
        }
        PrivacyModel::Groups(model) => match &model.diversity {
            Diversity::MinimumCover { column_limits, .. } => {
                ("column_limits", column_limits.keys().collect())
            }
            _ => ("", Vec::new()),
        },
        PrivacyModel::KmAnonymity(_) => ("", Vec::new()),
    };
    for column in spoken_of {
        if !sensitive.iter().any(|name| **name == **column) {
            let pointer = format!("/privacy/{field}/{}", escape(column));
            let detail = "the dataset has no column of this name and the role `sensitive`";
            return Err(Problem::at(Code::InvalidJob, pointer, detail));
        }
    }
    Ok(model)
}

/// The job's model as one of groups, which an anatomized release can meet.
fn model_of_groups(schema: &Schema, job: &JobDefinition) -> Result<GroupModel, Problem> {
    match model(schema, job)? {
        PrivacyModel::Groups(model) => Ok(model),
        PrivacyModel::Lkc(model) if job.privacy.model == ModelKind::KAnonymity => Ok(GroupModel {
            k: model.k,
            diversity: Diversity::None,
        }),
        PrivacyModel::Lkc(_) | PrivacyModel::KmAnonymity(_) => Err(Problem::at(
            Code::InvalidJob,
            "/privacy/model",
            "an anatomized release has groups and no cut: `k_anonymity` and the models of groups \
             can be checked on it",
        )),
    }
}

/// What the model asks for, its values written as the table's are.
fn requirement(schema: &Schema, model: &Lkc, quasi_identifiers: usize) -> LkcRequirement {
    let sensitive = named(schema, ColumnRole::Sensitive);
    let mut requirement = LkcRequirement::from_model(model, quasi_identifiers, &sensitive);
    for column in &mut requirement.sensitive {
        let spec = schema.stored().find(|spec| spec.name == column.column);
        if let (Some(spec), SensitiveSet::Listed(values)) = (spec, &mut column.values) {
            for value in values {
                if let Some(plain) = finished::plain(spec, value) {
                    *value = plain.into();
                }
            }
        }
    }
    requirement
}

/// Holds a finished table against the raw one. Columns that the table leaves out are passed over.
fn assigned(
    schema: &Schema,
    table: &ReleasedTable,
    raw: &EncodedTable,
    minimum_levels: &BTreeMap<Box<str>, MinimumLevels>,
) -> Result<Assignment, privacy::TruthError> {
    let minimum_levels = |name: &str| minimum_levels.get(name);
    let stored: Vec<_> = schema.stored().collect();
    let released = |name: &str| table.columns.iter().any(|column| *column.name == *name);
    let untouched: Vec<_> = raw
        .untouched
        .iter()
        .map(|(position, column)| (stored[*position], column))
        .filter(|(spec, _)| released(&spec.name))
        .map(|(spec, column)| (spec, finished::rewritten(spec, column.clone())))
        .collect();
    let original = Original {
        rows: raw.rows,
        quasi_identifiers: raw
            .quasi_identifiers
            .iter()
            .map(|column| OriginalQuasiIdentifier {
                name: &column.name,
                domain: &column.domain,
                codes: &column.codes,
                minimum_levels: minimum_levels(&column.name),
            })
            .collect(),
        sets: raw
            .sets
            .iter()
            .map(|column| OriginalSet {
                column,
                minimum_levels: minimum_levels(&column.name),
            })
            .collect(),
        untouched: untouched
            .iter()
            .map(|(spec, column)| (&*spec.name, column))
            .collect(),
    };
    privacy::assign(table, &original)
}

/// What is printed, and whether anything in it fails.
#[derive(Default)]
pub(super) struct Report {
    pub(super) text: String,
    fails: bool,
}

impl Report {
    fn print(&self) -> ExitCode {
        print!("{}", self.text);
        if self.fails {
            ExitCode::from(1)
        } else {
            ExitCode::SUCCESS
        }
    }

    pub(super) fn line(&mut self, name: &str, value: impl std::fmt::Display) {
        // Writing to a string does not fail.
        let _ = writeln!(self.text, "{name:<20} {value}");
    }

    pub(super) fn verdict(&mut self, name: &str, holds: bool, detail: impl std::fmt::Display) {
        self.fails |= !holds;
        let verdict = if holds { "yes" } else { "NO" };
        self.line(name, format_args!("{verdict:<4} {detail}"));
    }

    fn lkc(&mut self, requirement: &LkcRequirement) {
        let LkcRequirement { l, k, c, .. } = requirement;
        let c = percent(c.as_f64());
        self.line(
            "model",
            format_args!("LKC-privacy, L = {l}, K = {k}, C = {c}"),
        );
    }

    fn km(&mut self, model: KmAnonymity) {
        let KmAnonymity { k, m } = model;
        self.line("model", format_args!("k^m-anonymity, k = {k}, m = {m}"));
    }

    fn privacy(&mut self, found: &Verification) {
        let detail = format_args!(
            "{} in {}",
            counted(found.violations, "violation"),
            counted(found.subsets, "subset")
        );
        self.verdict("holds", found.holds, detail);
        self.line("rows", found.rows);
        self.line("groups", found.groups);
        self.line("smallest group", found.smallest_group);
        self.line("greatest confidence", percent(found.greatest_confidence));
        if found.worst.is_empty() {
            return;
        }
        let _ = writeln!(
            self.text,
            "\nworst groups\n{:>8} {:>10}  known values",
            "rows", "confidence"
        );
        for group in &found.worst {
            let _ = writeln!(self.text, "{}", row(group));
        }
        self.text.push('\n');
    }

    /// Rows made up and rows left out.
    pub(super) fn rows(&mut self, made_up: u64, lost: u64, (rows, limit): (u64, u64)) {
        let detail = match made_up {
            0 => "each row stands for a raw row of its own".to_owned(),
            1 => "1 row stands for no raw row of its own".to_owned(),
            made_up => format!("{made_up} rows stand for no raw row of their own"),
        };
        self.verdict("truthful", made_up == 0, detail);
        let detail = format!("{lost} of {rows} raw rows are left out, at most {limit} may be");
        self.verdict("no records lost", lost <= limit, detail);
    }

    fn raw(&mut self, found: &Assignment, rows: u64, limit: u64) {
        self.rows(found.made_up, found.lost, (rows, limit));
        let recoding = if found.one_cut {
            "global: each column is one cut"
        } else {
            "local: labels of a column overlap"
        };
        self.line("recoding", recoding);
    }
}

fn value(value: &ColumnValue) -> String {
    let text = value.value.as_deref().unwrap_or("(nothing)");
    format!("{} = {text}", value.column)
}

/// The values that an adversary knows.
pub(super) fn known(values: &[ColumnValue]) -> String {
    match values.is_empty() {
        true => "(none needed)".to_owned(),
        false => values.iter().map(value).collect::<Vec<_>>().join(", "),
    }
}

fn row(group: &WorstGroup) -> String {
    let known = known(&group.quasi_identifiers);
    let inferred = group.sensitive.as_ref().map(value);
    let inferred = inferred.map_or(String::new(), |text| format!("  =>  {text}"));
    let (size, confidence) = (group.size, percent(group.confidence));
    format!("{size:>8} {confidence:>10}  {known}{inferred}")
}

/// A number of things, such as `1 violation`.
pub(super) fn counted(number: u64, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {thing}{plural}")
}

pub(super) fn percent(share: f64) -> String {
    let hundredths = (share * 10_000.0).round() / 100.0;
    format!("{hundredths} %")
}
