//! The text that `pais verify` prints.

use std::fmt::Write as _;
use std::io::Write as _;

use pais_core::definition::{ColumnRole, ModelKind};
use pais_core::model::{Diversity, GroupModel, KmAnonymity, Lkc, MissingSensitive, PrivacyModel};
use pais_core::schema::Schema;
use pais_core::table::Verdict;
use pais_verify::{
    ColumnValue, FoundRecoding, FoundSubjects, GroupVerification, PrivacyFinding, RawFinding,
    ReleaseVerification, Undecided, UndecidedReason, Verification, WorstGroup,
};

use super::output::{self, Failure, counted};

/// Prints what was found on standard output, and the warnings on standard error.
///
/// # Errors
/// If standard output cannot be written.
pub(crate) fn print(
    found: &ReleaseVerification,
    asked: ModelKind,
    schema: &Schema,
) -> Result<(), Failure> {
    let quasi_identifiers = schema.stored_with(ColumnRole::QuasiIdentifier).len();
    let has_sensitive = !schema.stored_with(ColumnRole::Sensitive).is_empty();
    let mut printout = Printout::new(found, has_sensitive);
    let model = model_words(&found.model, asked, quasi_identifiers);
    printout.line("model", model);
    match &found.privacy {
        Some(PrivacyFinding::Subsets(subsets)) => {
            let known = known_words(&found.model, quasi_identifiers);
            printout.subsets(subsets, &known);
        }
        Some(PrivacyFinding::Groups(groups)) => printout.groups(groups, is_anatomized(found)),
        None => {
            let detail = "it is not known which records are in which group";
            printout.verdict("holds", false, detail);
        }
    }
    if let Some(raw) = &found.raw {
        printout.raw(raw);
    }
    printout.unchanged(found, schema.subject().is_some());
    output::print(|out| out.write_all(printout.text.as_bytes()))?;
    for warning in &found.warnings {
        output::note(format_args!("warning: {}", warning.detail));
    }
    Ok(())
}

fn is_anatomized(found: &ReleaseVerification) -> bool {
    let recoding = found.raw.as_ref().map(|raw| raw.recoding);
    matches!(recoding, Some(FoundRecoding::Anatomized { .. }))
}

/// Lines of names and values.
struct Printout {
    text: String,
    /// What the size of a group is a number of.
    unit: &'static str,
    /// The persons, where these are counted.
    subjects: Option<FoundSubjects>,
    undecided: Option<Undecided>,
    has_sensitive: bool,
}

impl Printout {
    fn new(found: &ReleaseVerification, has_sensitive: bool) -> Self {
        Self {
            text: String::new(),
            unit: match found.subjects {
                Some(_) => "persons",
                None => "rows",
            },
            subjects: found.subjects,
            undecided: found.undecided,
            has_sensitive,
        }
    }

    fn line(&mut self, name: &str, value: impl std::fmt::Display) {
        // Writing to a string does not fail.
        let _ = writeln!(self.text, "{name:<20} {value}");
    }

    fn verdict(&mut self, name: &str, holds: bool, detail: impl std::fmt::Display) {
        let verdict = if holds { "yes" } else { "NO" };
        self.line(name, format_args!("{verdict:<4} {detail}"));
    }

    /// Whether the model holds, as far as the release shows, and what it does not show.
    fn model_holds(&mut self, holds: bool, detail: impl std::fmt::Display) {
        let Some(undecided) = self.undecided else {
            self.verdict("holds", holds, detail);
            return;
        };
        if holds {
            self.verdict("holds in rows", true, detail)
        } else {
            self.verdict("holds", false, detail)
        }
        self.line("not decided", undecided);
        if undecided.reason == UndecidedReason::NoRaw {
            self.note("Only the raw table shows it: the holder gives it with --raw.");
        }
    }

    fn rows(&mut self, rows: u64) {
        self.line("rows", rows);
        if let Some(subjects) = self.subjects {
            self.line("persons", subjects.count);
            if !subjects.are_known {
                self.note("Released rows fit raw rows of several persons: these are of one possible assignment.");
            }
        }
    }

    /// A sentence about the line before.
    fn note(&mut self, sentence: impl std::fmt::Display) {
        // Writing to a string does not fail.
        let _ = writeln!(self.text, "{:<20} {sentence}", "");
    }

    fn confidence(&mut self, greatest: f64, reading: MissingSensitive) {
        if !self.has_sensitive {
            self.line("greatest confidence", "none: no column is sensitive");
            return;
        }
        let (among, word, effect) = match reading {
            MissingSensitive::Excluded => (
                "those rows of a group that have a value in its column",
                "excluded",
                "A missing sensitive cell lowers no confidence.",
            ),
            MissingSensitive::Counted => (
                "all rows of a group",
                "counted",
                "A row with a missing sensitive cell lowers the confidence in the values of others.",
            ),
        };
        self.line("greatest confidence", percent(greatest));
        self.note(format_args!(
            "The greatest share of one sensitive value among {among}; of a column whose values the job lists, of \
             these alone."
        ));
        self.line("missing sensitive", word);
        self.note(effect);
    }

    fn subsets(&mut self, found: &Verification, known: &str) {
        let detail = format_args!(
            "{} in {}",
            counted(found.violations, "violation"),
            counted(found.subsets, "subset")
        );
        let unit = self.unit;
        self.model_holds(found.holds, detail);
        self.rows(found.rows);
        self.line("groups", found.groups);
        self.line("smallest group", found.smallest_group);
        self.note(format_args!("The fewest {unit} that share {known}."));
        self.line("smallest class", found.smallest_equivalence_class);
        self.note(format_args!(
            "The fewest {unit} that share the values of all quasi-identifiers."
        ));
        self.confidence(found.greatest_confidence, found.missing_sensitive);
        if let Some(bounded) = found.greatest_bounded_confidence {
            self.line("bounded confidence", percent(bounded));
            self.note("The greatest confidence in a value that the model bounds.");
        }
        let has_sensitive = self.has_sensitive;
        let rows = found.worst.iter();
        let rows = rows.map(|group| subset_row(group, has_sensitive));
        self.worst("confidence", rows);
    }

    fn groups(&mut self, found: &GroupVerification, is_anatomized: bool) {
        let violations = counted(found.violations, "violation");
        let detail = format!("{violations} in {}", counted(found.groups, "group"));
        self.model_holds(found.holds, detail);
        self.rows(found.rows);
        self.line("groups", found.groups);
        self.line("smallest group", found.smallest_group);
        let unit = self.unit;
        self.note(format_args!("The fewest {unit} of a group."));
        if is_anatomized {
            self.note("Quasi-identifiers are exact: who knows them may find one row of the group.");
        } else {
            self.line("smallest class", found.smallest_equivalence_class);
            self.note("The same: a group of this model is known by all quasi-identifiers.");
        }
        if let Some(diversity) = found.diversity {
            self.line("least diversity", diversity);
        }
        for (column, range) in &found.smallest_range {
            let range = range.map_or("none".to_owned(), |range| range.to_string());
            self.line("smallest range", format_args!("{range} ({column})"));
        }
        self.confidence(found.greatest_confidence, found.missing_sensitive);
        let rows = found.worst.iter().map(|group| {
            let diversity = group.diversity.map_or("-".to_owned(), |it| it.to_string());
            let known = known(&group.quasi_identifiers);
            format!("{:>8} {diversity:>10}  {known}", group.size)
        });
        self.worst("diversity", rows);
    }

    /// The worst groups, under a head that names their measure.
    fn worst(&mut self, measure: &str, rows: impl ExactSizeIterator<Item = String>) {
        if rows.len() == 0 {
            return;
        }
        // Writing to a string does not fail.
        let _ = writeln!(
            self.text,
            "\nworst groups\n{:>8} {measure:>10}  known values",
            self.unit
        );
        for row in rows {
            let _ = writeln!(self.text, "{row}");
        }
        self.text.push('\n');
    }

    /// What the columns that are released unchanged single out, of which the model says nothing.
    fn unchanged(&mut self, found: &ReleaseVerification, has_subject: bool) {
        let unchanged = &found.unchanged;
        if unchanged.columns.is_empty() {
            return;
        }
        let share = percent(unchanged.singled_out_share);
        let columns = counted(unchanged.columns.len() as u64, "column");
        let unit = self.unit;
        let detail = format_args!("{share} of the {unit} are singled out by {columns}");
        self.line("unchanged", detail);
        if has_subject && self.subjects.is_none() {
            self.note("Rows are counted, because it is not known which are of one person.");
        }
        if Verdict::of(!found.fails(), unchanged) == Verdict::HoldsButSinglesOut {
            self.note("The model assumes that nobody knows these columns.");
        }
    }

    fn raw(&mut self, found: &RawFinding) {
        if let FoundRecoding::Anatomized { counts_match } = found.recoding
            && (counts_match || found.made_up == 0)
        {
            let detail = if counts_match {
                "they count the records of each group"
            } else {
                "they do not count the records of the groups"
            };
            self.verdict("sensitive tables", counts_match, detail);
        }
        let detail = match found.made_up {
            0 => "each row is the generalization of a raw row of its own".to_owned(),
            1 => "1 row is not the generalization of a raw row of its own".to_owned(),
            made_up => {
                format!("{made_up} rows are not the generalization of a raw row of their own")
            }
        };
        self.verdict("truthful", found.made_up == 0, detail);
        let (lost, rows, allowed) = (found.lost, found.rows, found.may_be_lost);
        let detail = format!("{lost} of {rows} raw rows are left out, at most {allowed} may be");
        self.verdict("no records lost", lost <= allowed, detail);
        match found.recoding {
            FoundRecoding::Global => self.line("recoding", "global: each column is one cut"),
            FoundRecoding::Local => self.line("recoding", "local: labels of a column overlap"),
            FoundRecoding::Anatomized { .. } => {}
        }
    }
}

/// The model as the job asks for it, with its parameters, in words.
fn model_words(model: &PrivacyModel, asked: ModelKind, quasi_identifiers: usize) -> String {
    match model {
        PrivacyModel::Lkc(model) => {
            let all = quasi_identifiers;
            let l = model.l.map_or(all, |l| all.min(l.get() as usize));
            let (k, c) = (model.k, percent(model.c.as_f64()));
            match asked {
                ModelKind::KAnonymity => format!("k-anonymity, K = {k}"),
                ModelKind::ConfidenceBounding => format!("confidence bounding, C = {c}"),
                ModelKind::AlphaK => format!("(alpha,k)-anonymity, alpha = {c}, K = {k}"),
                _ => format!("LKC-privacy, L = {l}, K = {k}, C = {c}"),
            }
        }
        PrivacyModel::KmAnonymity(KmAnonymity { k, m }) => {
            format!("k^m-anonymity, k = {k}, m = {m}")
        }
        PrivacyModel::Groups(model) => group_model_words(model),
    }
}

/// What an adversary knows of a row under the model.
fn known_words(model: &PrivacyModel, quasi_identifiers: usize) -> String {
    match model {
        PrivacyModel::Lkc(Lkc { l: Some(l), .. }) if (l.get() as usize) < quasi_identifiers => {
            let values = counted(u64::from(l.get()), "quasi-identifier");
            format!("the values of any {values}")
        }
        PrivacyModel::KmAnonymity(KmAnonymity { m, .. }) => {
            let items = counted(u64::from(m.get()), "item");
            format!("up to {items} and the values of all other quasi-identifiers")
        }
        PrivacyModel::Lkc(_) | PrivacyModel::Groups(_) => {
            "the values of all quasi-identifiers".to_owned()
        }
    }
}

fn group_model_words(model: &GroupModel) -> String {
    let k = model.k;
    let ranges = model.min_range.iter();
    let ranges: String = ranges
        .map(|(column, least)| format!(", {column} spans at least {least}"))
        .collect();
    let words = match &model.diversity {
        Diversity::None => format!("k-anonymity, K = {k}"),
        Diversity::Distinct { l } => format!("distinct l-diversity, K = {k}, l = {l}"),
        Diversity::Entropy { l } => format!("entropy l-diversity, K = {k}, l = {l}"),
        Diversity::Recursive { c, l } => {
            format!(
                "recursive (c,l)-diversity, K = {k}, c = {}, l = {l}",
                c.as_f64()
            )
        }
        Diversity::Closeness { t } => format!("t-closeness, K = {k}, t = {t}"),
        Diversity::MinimumCover { l, column_limits } => {
            let limits = column_limits.iter();
            let limits: String = limits
                .map(|(column, limit)| format!(", {column} at most {limit}"))
                .collect();
            format!("l-diversity over all sensitive columns, K = {k}, L = {l}{limits}")
        }
    };
    words + &ranges
}

fn value(value: &ColumnValue) -> String {
    let text = value.value.as_deref().unwrap_or("(nothing)");
    format!("{} = {text}", value.column)
}

/// The values that an adversary knows.
fn known(values: &[ColumnValue]) -> String {
    if values.is_empty() {
        "(none needed)".to_owned()
    } else {
        values.iter().map(value).collect::<Vec<_>>().join(", ")
    }
}

fn subset_row(group: &WorstGroup, has_sensitive: bool) -> String {
    let known = known(&group.quasi_identifiers);
    let inferred = group.sensitive.as_ref().map(value);
    let inferred = inferred.map_or(String::new(), |text| format!("  =>  {text}"));
    let confidence = if has_sensitive {
        percent(group.confidence)
    } else {
        "none".to_owned()
    };
    let size = group.size;
    format!("{size:>8} {confidence:>10}  {known}{inferred}")
}

pub(super) fn percent(share: f64) -> String {
    let hundredths = (share * 10_000.0).round() / 100.0;
    format!("{hundredths} %")
}
