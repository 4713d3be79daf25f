//! `pais verify`: a finished table, whoever made it, against a privacy model.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use pais::domain::json::escape;
use pais::domain::{Code, ColumnRole, JobDefinition, KmAnonymity, Lkc, PrivacyModel, Problem};
use pais::engine::pre_generalization;
use pais::privacy::{
    self, Assignment, ColumnValue, LkcRequirement, Original, OriginalQuasiIdentifier, OriginalSet,
    SensitiveSet, Verification, WorstGroup,
};
use pais::table::{EncodedTable, ReleasedTable, Schema, finished};
use pais::taxonomy::Floors;

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
    /// The finished table, by its ending: .csv, .ndjson (also .gz, .zst) or .parquet.
    #[arg(value_name = "RELEASE")]
    release: PathBuf,
    /// The raw table: truthfulness and lost records are checked too.
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
            return Err(Failure::Usage(format!(
                "{}: this version checks tables in a file, no anatomized directory",
                self.release.display()
            )));
        }
        let release = TableFile::of(&self.release)?;
        let raw = self.raw.as_deref().map(TableFile::of).transpose()?;
        let schema = documents::schema(&self.schema)?;
        let job = documents::job(&self.job)?;
        let in_job = |problem| in_file(&self.job, problem);
        let model = Model::of(&schema, &job).map_err(in_job)?;
        let limit = job.suppression_limit().map_err(in_job)?;
        let table = release.read_finished(&schema)?;
        let quasi_identifiers = named(&schema, ColumnRole::QuasiIdentifier);
        let mut report = Report::default();
        let found = match model {
            Model::Lkc(model) => {
                let requirement = requirement(&schema, &model, quasi_identifiers.len());
                report.lkc(&requirement);
                privacy::verify_lkc(&table, &quasi_identifiers, &requirement)
            }
            Model::Km(model) => {
                report.km(model);
                privacy::verify_km_unless(&table, &quasi_identifiers, model, &|| false)
            }
        };
        let found = found.map_err(|error| misfit(&self.release, error.to_string()))?;
        report.privacy(&found);
        if let Some(raw) = raw {
            let raw = EncodedTable::new(&schema, raw.read(&schema)?);
            let rows = raw.rows as u64;
            let floors = pre_generalization::floors(&job, &raw).map_err(in_job)?;
            let assignment = assigned(&schema, &table, &raw, &floors)
                .map_err(|error| misfit(&self.release, error.to_string()))?;
            report.raw(&assignment, rows, limit.floor_of(rows));
        }
        print!("{}", report.text);
        Ok(if report.fails {
            ExitCode::from(1)
        } else {
            ExitCode::SUCCESS
        })
    }
}

fn misfit(path: &Path, detail: String) -> Failure {
    in_file(path, Problem::new(Code::InvalidHeader, detail)).into()
}

fn named(schema: &Schema, role: ColumnRole) -> Vec<Box<str>> {
    let columns = schema.stored().filter(|column| column.role == role);
    columns.map(|column| column.name.clone()).collect()
}

/// The models that are checked.
enum Model {
    Lkc(Lkc),
    Km(KmAnonymity),
}

impl Model {
    /// The job's model, which must speak of the schema's columns.
    fn of(schema: &Schema, job: &JobDefinition) -> Result<Self, Problem> {
        match job.privacy.parse()? {
            PrivacyModel::Lkc(model) => {
                check_sensitive(schema, &model)?;
                Ok(Self::Lkc(model))
            }
            PrivacyModel::KmAnonymity(model) => Ok(Self::Km(model)),
            PrivacyModel::LDiversity { .. } => Err(Problem::at(
                Code::InvalidJob,
                "/privacy/model",
                "this version checks `lkc`, `k_anonymity`, `confidence_bounding`, `alpha_k` and \
                 `k_m_anonymity`",
            )),
        }
    }
}

fn check_sensitive(schema: &Schema, model: &Lkc) -> Result<(), Problem> {
    let sensitive = named(schema, ColumnRole::Sensitive);
    let listed = model.sensitive_values.iter().flatten();
    for (column, _) in listed {
        if !sensitive.iter().any(|name| **name == **column) {
            let pointer = format!("/privacy/sensitive_values/{}", escape(column));
            let detail = "the dataset has no column of this name and the role `sensitive`";
            return Err(Problem::at(Code::InvalidJob, pointer, detail));
        }
    }
    Ok(())
}

/// What the model asks for, its values written as the table's are.
fn requirement(schema: &Schema, model: &Lkc, quasi_identifiers: usize) -> LkcRequirement {
    let sensitive = named(schema, ColumnRole::Sensitive);
    let mut requirement = LkcRequirement::of(model, quasi_identifiers, &sensitive);
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
    floors: &BTreeMap<Box<str>, Floors>,
) -> Result<Assignment, privacy::TruthError> {
    let floors = |name: &str| floors.get(name);
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
                floors: floors(&column.name),
            })
            .collect(),
        sets: raw
            .sets
            .iter()
            .map(|column| OriginalSet {
                column,
                floors: floors(&column.name),
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
struct Report {
    text: String,
    fails: bool,
}

impl Report {
    fn line(&mut self, name: &str, value: impl std::fmt::Display) {
        // Writing to a string does not fail.
        let _ = writeln!(self.text, "{name:<20} {value}");
    }

    fn verdict(&mut self, name: &str, holds: bool, detail: impl std::fmt::Display) {
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

    fn raw(&mut self, found: &Assignment, rows: u64, limit: u64) {
        let detail = match found.made_up {
            0 => "each row stands for a raw row of its own".to_owned(),
            1 => "1 row stands for no raw row of its own".to_owned(),
            made_up => format!("{made_up} rows stand for no raw row of their own"),
        };
        self.verdict("truthful", found.made_up == 0, detail);
        let detail = format!(
            "{} of {rows} raw rows are left out, at most {limit} may be",
            found.lost
        );
        self.verdict("no records lost", found.lost <= limit, detail);
        let recoding = if found.one_cut {
            "global: each column is one cut"
        } else {
            "local: labels of a column overlap"
        };
        self.line("recoding", recoding);
    }
}

fn row(group: &WorstGroup) -> String {
    let value = |value: &ColumnValue| {
        let text = value.value.as_deref().unwrap_or("(nothing)");
        format!("{} = {text}", value.column)
    };
    let known: Vec<String> = group.quasi_identifiers.iter().map(value).collect();
    let known = match known.is_empty() {
        true => "(none needed)".to_owned(),
        false => known.join(", "),
    };
    let inferred = group.sensitive.as_ref().map(value);
    let inferred = inferred.map_or(String::new(), |text| format!("  =>  {text}"));
    let (size, confidence) = (group.size, percent(group.confidence));
    format!("{size:>8} {confidence:>10}  {known}{inferred}")
}

/// A number of things, such as `1 violation`.
fn counted(number: u64, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {thing}{plural}")
}

fn percent(share: f64) -> String {
    let hundredths = (share * 10_000.0).round() / 100.0;
    format!("{hundredths} %")
}
