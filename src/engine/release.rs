//! The released table: labels for codes, rows in random order, and the verifier's gate.

use std::borrow::Cow;
use std::collections::BTreeMap;

use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{SeedableRng, TryRng};
use rayon::prelude::*;
use sha2::{Digest, Sha256};

use crate::domain::{Code, JobDefinition, KmAnonymity, Lkc, Problem};
use crate::privacy::{self, LkcRequirement, Original, Verification};
use crate::table::codes::{Codes, RowCodes, with_codes};
use crate::table::{
    Column, Domain, EncodedTable, Form, NULL_CODE, QuasiIdentifier, ReleasedColumn, ReleasedTable,
    Schema,
};

use crate::taxonomy::Interval;

use super::items::DisclosedSet;
use super::pais::Cut;
use super::pre_generalization::Applied;
use super::run::{Prepared, StepRecord};
use super::{Observer, Phase};

/// The raw rows of a release in the order in which it has them: all that no step up to `step`
/// suppressed, shuffled.
///
/// The order tells nothing, and nothing of another release's: see [`shuffled`].
///
/// # Errors
/// When the system gives no random bytes: any fixed order would tell.
pub fn source_rows(
    rows: usize,
    steps: &[StepRecord],
    step: u32,
    job: &JobDefinition,
) -> Result<Vec<u32>, Problem> {
    let mut kept = vec![true; rows];
    for record in steps.iter().filter(|record| record.item.step <= step) {
        for &row in &record.suppressed {
            kept[row as usize] = false;
        }
    }
    let order = (0..rows as u32).filter(|&row| kept[row as usize]).collect();
    shuffled(order, job, step)
}

/// Rows in an order that tells nothing. A seed is mixed with the step and with what was asked
/// for, so that releases of one step under two privacy models, or of two steps, are in unrelated
/// orders even where their seeds are equal: nobody can put them together row by row.
///
/// # Errors
/// When the system gives no random bytes: any fixed order would tell.
pub fn shuffled(mut order: Vec<u32>, job: &JobDefinition, step: u32) -> Result<Vec<u32>, Problem> {
    let mut material = [0u8; 32];
    match job.seed {
        Some(seed) => {
            // Which rows are read and who asks is not what was asked for: the command line and
            // the service give the same bytes.
            let asked = JobDefinition {
                dataset_id: None,
                submissions: None,
                release: None,
                ..job.clone()
            };
            let asked = serde_json::to_vec(&asked)
                .map_err(|_| Problem::new(Code::Internal, "a job could not be written as JSON"))?;
            let digest = Sha256::new()
                .chain_update(b"pais: order of released rows")
                .chain_update(seed.to_le_bytes())
                .chain_update(step.to_le_bytes())
                .chain_update(asked);
            material.copy_from_slice(&digest.finalize());
        }
        None => rand::rngs::SysRng
            .try_fill_bytes(&mut material)
            .map_err(|_| {
                Problem::new(
                    Code::Internal,
                    "the system has no random bytes to order the rows by",
                )
            })?,
    }
    order.shuffle(&mut StdRng::from_seed(material));
    Ok(order)
}

/// The cuts and their labels, by column, as the release tells them: without what only a
/// suppressed row had.
///
/// A label of a column without a taxonomy is a raw value or made from raw values. Where rows are
/// left out, labels that no released row has are not told, and an outermost interval ends where
/// the released numbers do. Columns with a taxonomy or a domain tell only what was declared.
pub fn told_cuts(
    schema: &Schema,
    table: &EncodedTable,
    mut cuts: Vec<Cut>,
    rows: &[u32],
) -> (Vec<Cut>, BTreeMap<String, Vec<String>>) {
    let all = rows.len() == table.rows;
    let mut told = BTreeMap::new();
    for (column, cut) in table.quasi_identifiers.iter().zip(&mut cuts) {
        let declared = schema
            .stored()
            .nth(column.position)
            .is_some_and(|spec| spec.tree.is_some() || spec.domain.is_some());
        let mut stands = vec![all || declared; cut.labels.len()];
        if !all && !declared {
            narrow(column, cut, rows);
            for &row in rows {
                stands[cut.label_of[column.codes[row as usize] as usize] as usize] = true;
            }
        }
        let labels = cut.labels.iter().zip(stands).filter(|(_, stands)| *stands);
        let labels = labels.map(|(label, _)| label.clone()).collect();
        told.insert(column.name.to_string(), labels);
    }
    (cuts, told)
}

/// Ends the outermost intervals of a grown cut at the released numbers.
fn narrow(column: &QuasiIdentifier, cut: &mut Cut, rows: &[u32]) {
    let Domain::Numeric {
        values,
        lo,
        hi,
        missing,
    } = &column.domain
    else {
        return;
    };
    // The topmost interval stands for missing cells too, as no narrower one does.
    if *missing && cut.labels.len() == 1 {
        return;
    }
    let released = rows
        .iter()
        .filter_map(|&row| values.get(column.codes[row as usize] as usize));
    let (least, most) = released.fold(
        (f64::INFINITY, f64::NEG_INFINITY),
        |(least, most), &value| (least.min(value), most.max(value)),
    );
    if least > most {
        return;
    }
    for label in &mut cut.labels {
        let Some(mut interval) = Interval::parse(label) else {
            continue;
        };
        if interval.lo == *lo {
            interval.lo = least.min(interval.hi);
        }
        if interval.hi == *hi && interval.closed {
            interval.hi = most.max(interval.lo);
        }
        *label = interval.to_string();
    }
}

/// The table as it is released. One gather of each column in the order of `rows`; threads share
/// the columns.
pub fn table(
    schema: &Schema,
    table: &EncodedTable,
    cuts: &[Cut],
    sets: Vec<(usize, ReleasedColumn)>,
    rows: &[u32],
) -> ReleasedTable {
    let of_cut = |(column, cut): (&QuasiIdentifier, &Cut)| {
        let labels: Vec<Box<str>> = cut
            .labels
            .iter()
            .map(|label| label.as_str().into())
            .collect();
        let label = |&code: &u32| cut.label_of[code as usize];
        let stand = Codes::collected(column.codes.par_iter().map(label), labels.len());
        let released = ReleasedColumn {
            name: column.name.clone(),
            form: Form::Generalized,
            column: gathered(&labels, &stand, rows),
            missing: Vec::new(),
        };
        (column.position, released)
    };
    let untouched = |(position, column): &(usize, Column)| {
        let spec = schema.stored().nth(*position)?;
        let stand = Codes::of(&column.codes, column.dictionary.len());
        let released = ReleasedColumn {
            name: spec.name.clone(),
            form: Form::untouched(spec),
            column: gathered(&column.dictionary, &stand, rows),
            missing: spec.missing.clone(),
        };
        Some((*position, released))
    };
    let generalized = table.quasi_identifiers.par_iter().zip(cuts);
    let generalized = generalized.map(of_cut);
    let untouched = table.untouched.par_iter().filter_map(untouched);
    let mut columns = sets;
    columns.par_extend(generalized.chain(untouched));
    columns.sort_by_key(|(position, _)| *position);
    let columns = columns.into_iter().map(|(_, column)| column).collect();
    ReleasedTable {
        name: "data".into(),
        rows: rows.len(),
        columns,
    }
}

/// The disclosed sets as they are released, with their positions among the stored columns.
pub fn sets(
    table: &EncodedTable,
    disclosed: &[DisclosedSet],
    rows: &[u32],
) -> Vec<(usize, ReleasedColumn)> {
    let columns = table.sets.iter().zip(disclosed);
    let released = columns.map(|(column, disclosed)| {
        let cells = rows.iter().map(|&row| disclosed.codes[row as usize]);
        let released = ReleasedColumn {
            name: column.name.clone(),
            form: Form::Set {
                separator: column.separator,
            },
            column: standing(&disclosed.cells, cells),
            missing: Vec::new(),
        };
        (column.position, released)
    });
    released.collect()
}

/// The cells of some rows. They are fetched in random order, which is worth narrowed codes.
fn gathered(dictionary: &[Box<str>], codes: &Codes<'_>, rows: &[u32]) -> Column {
    with_codes!(codes, codes => {
        standing(dictionary, rows.iter().map(|&row| codes.at(row as usize)))
    })
}

/// Cells with a dictionary of just the values that stand in them: one that only a suppressed row
/// had must not be in the release, in no format.
pub fn standing(dictionary: &[Box<str>], cells: impl Iterator<Item = u32>) -> Column {
    let mut renamed = vec![NULL_CODE; dictionary.len()];
    let mut kept = Vec::new();
    let codes = cells
        .map(|code| {
            if code == NULL_CODE {
                return NULL_CODE;
            }
            let new = &mut renamed[code as usize];
            if *new == NULL_CODE {
                *new = kept.len() as u32;
                kept.push(dictionary[code as usize].clone());
            }
            *new
        })
        .collect();
    Column {
        dictionary: kept,
        codes,
    }
}

/// What a finished table is held against: a model, and the quasi-identifiers that it is over.
#[derive(Clone, Copy, Debug)]
pub enum Checked<'a> {
    /// LKC-privacy and its special cases, with the sensitive columns.
    Lkc(&'a Lkc, &'a [Box<str>], &'a [Box<str>]),
    /// k^m-anonymity.
    Km(&'a KmAnonymity, &'a [Box<str>]),
}

/// Passes a finished table through the verifier: it meets the model, is true to the raw rows,
/// and each column is one cut.
///
/// # Errors
/// `verification_failed` where it does not; nothing is released then.
pub fn verify(
    run: &Prepared,
    checked: Checked,
    table: &ReleasedTable,
    rows: &[u32],
    suppressed: u64,
    observer: &dyn Observer,
) -> Result<Verification, Problem> {
    let failed = |what: &str| {
        let detail =
            format!("the verifier did not accept the table, and nothing was released: {what}");
        Problem::new(Code::VerificationFailed, detail)
    };
    let stopped = || observer.must_stop();
    let found = match checked {
        Checked::Lkc(model, names, sensitive) => {
            let requirement = LkcRequirement::of(model, names.len(), sensitive);
            privacy::verify_lkc_unless(table, names, &requirement, &stopped)
        }
        Checked::Km(model, names) => privacy::verify_km_unless(table, names, *model, &stopped),
    };
    let verification = match found {
        Ok(verification) => verification,
        Err(privacy::VerifyError::Stopped) => {
            return Err(Problem::new(Code::Cancelled, "the job was cancelled"));
        }
        Err(error) => return Err(failed(&error.to_string())),
    };
    if !verification.holds {
        return Err(failed("it does not meet the privacy model"));
    }
    observer.progress(Phase::Verifying, 0.6);
    let names: Vec<&str> = run.schema().stored().map(|column| &*column.name).collect();
    let original = original(run.table(), run.pre_generalization(), &names)
        .ok_or_else(|| failed("a column has no name"))?;
    privacy::check_truthful(table, &original, rows, suppressed)
        .map_err(|error| failed(&error.to_string()))?;
    let columns = run.table().quasi_identifiers.par_iter();
    let is_cut = |column: &QuasiIdentifier| {
        let released = table
            .columns
            .iter()
            .find(|released| released.name == column.name);
        let released = released.ok_or_else(|| failed("a column is missing"))?;
        match cut_domain(run, column) {
            Some(domain) => privacy::check_single_cut(released, &domain)
                .map_err(|error| failed(&error.to_string())),
            None => Ok(()),
        }
    };
    let checked: Vec<_> = columns.map(is_cut).collect();
    checked.into_iter().collect::<Result<(), Problem>>()?;
    Ok(verification)
}

/// The raw table, with what the job lets stand for its values.
pub fn original<'a>(
    table: &'a EncodedTable,
    applied: &'a Applied,
    names: &'a [&str],
) -> Option<Original<'a>> {
    let mut original = Original::of(table, names)?;
    let columns = &table.quasi_identifiers;
    for (column, original) in columns.iter().zip(&mut original.quasi_identifiers) {
        let raw = applied.raw(column);
        original.domain = &raw.domain;
        original.codes = &raw.codes;
        original.floors = applied.floors(&raw.name);
    }
    for set in &mut original.sets {
        set.floors = applied.floors(&set.column.name);
    }
    Some(original)
}

/// The domain in which a column's labels are one cut: that of what stands for its values.
/// `None` where values that stand as the root leave no room for a cut beside.
fn cut_domain<'a>(run: &'a Prepared, column: &'a QuasiIdentifier) -> Option<Cow<'a, Domain>> {
    let floors = run.pre_generalization().floors(&column.name);
    match (floors, &run.pre_generalization().raw(column).domain) {
        (Some(floors), Domain::Taxonomy(tree)) => {
            let (pruned, _) = floors.pruned(tree)?;
            Some(Cow::Owned(Domain::Taxonomy(pruned.into())))
        }
        (_, domain) => Some(Cow::Borrowed(domain)),
    }
}
