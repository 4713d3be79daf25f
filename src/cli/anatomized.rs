//! Checks of groups: what `pais verify` finds of them, and an anatomized release held against the
//! raw table.

use std::fmt::Write as _;

use pais_core::definition::{ColumnKind, ColumnRole};
use pais_core::model::{Diversity, GroupModel};
use pais_core::read::reimport;
use pais_core::schema::{Schema, SchemaColumn};
use pais_core::table::{
    COUNT_COLUMN, Column, Form, GROUP_COLUMN, ReleasedColumn, ReleasedTable, Table,
};
use pais_verify::{self, AnatomyAssignment, GroupVerification, VerifyError};

use super::directory::Directory;
use super::failure::Failure;
use super::verify::{Report, counted, known, named, percent};

/// The tables of an anatomized release.
pub struct Anatomized {
    qit: ReleasedTable,
    /// In the order of the schema's sensitive columns.
    counted: Vec<ReleasedTable>,
}

/// What an anatomized release turns out to be.
pub struct FoundAnatomy {
    assignment: AnatomyAssignment,
    /// `None` where it is not known which raw row is in which group.
    verification: Option<GroupVerification>,
}

impl Anatomized {
    /// Reads a directory.
    ///
    /// # Errors
    /// For tables that are not there, or do not fit the schema.
    pub fn read(schema: &Schema, directory: &Directory) -> Result<Self, Failure> {
        let file = directory.file("qit")?;
        let names = file.names()?;
        let stands = |column: &&SchemaColumn| match column.role {
            ColumnRole::Identifier | ColumnRole::Sensitive => false,
            ColumnRole::Insensitive => names.iter().any(|name| **name == *column.name),
            ColumnRole::QuasiIdentifier | ColumnRole::Class => true,
        };
        let mut columns: Vec<_> = schema.columns.iter().filter(stands).cloned().collect();
        columns.push(whole(GROUP_COLUMN));
        let read_by = Schema { columns };
        let qit = released("qit", &read_by, file.read(&read_by)?);
        let sensitive = schema
            .stored()
            .filter(|column| column.role == ColumnRole::Sensitive);
        let counted = sensitive.map(|column| {
            let name = format!("st_{}", column.name);
            let read_by = Schema {
                columns: vec![whole(GROUP_COLUMN), column.clone(), whole(COUNT_COLUMN)],
            };
            let table = directory.file(&name)?.read(&read_by)?;
            Ok(released(&name, &read_by, table))
        });
        Ok(Self {
            qit,
            counted: counted.collect::<Result<_, Failure>>()?,
        })
    }

    /// Finds which raw row is in which group, and decides the model.
    ///
    /// # Errors
    /// What is wrong with tables that cannot be held against the raw one.
    pub fn hold_against(
        &self,
        schema: &Schema,
        raw: &Table,
        model: &GroupModel,
    ) -> Result<FoundAnatomy, String> {
        let columns: Vec<(&SchemaColumn, Column)> = schema
            .stored()
            .zip(&raw.columns)
            .map(|(spec, column)| (spec, finished::rewritten(spec, column.clone())))
            .collect();
        let stands = |name: &str| self.qit.columns.iter().any(|column| *column.name == *name);
        let is_sensitive = |spec: &SchemaColumn| spec.role == ColumnRole::Sensitive;
        let exact: Vec<(&str, &Column)> = columns
            .iter()
            .filter(|(spec, _)| !is_sensitive(spec) && stands(&spec.name))
            .map(|(spec, column)| (&*spec.name, column))
            .collect();
        let sensitive: Vec<_> = columns
            .iter()
            .filter(|(spec, _)| is_sensitive(spec))
            .collect();
        let counted: Vec<_> = self
            .counted
            .iter()
            .zip(&sensitive)
            .map(|(table, (spec, column))| (table, &*spec.name, column))
            .collect();
        let assignment = privacy::assign_anatomy(&self.qit, &exact, &counted, raw.rows)
            .map_err(|error| error.to_string())?;
        let mut verification = None;
        if let Some(source_rows) = &assignment.source_rows {
            let cells: Vec<_> = sensitive
                .iter()
                .map(|(spec, column)| (spec.name.clone(), spec.missing.clone(), column))
                .collect();
            let joined = privacy::join_sensitive(&self.qit, &cells, source_rows);
            let joined = joined.map_err(|error| error.to_string())?;
            let by = [GROUP_COLUMN.into()];
            let names = named(schema, ColumnRole::Sensitive);
            let found = privacy::verify_groups(&joined, &by, &names, model, &|| false);
            verification = Some(found.map_err(|error: VerifyError| error.to_string())?);
        }
        Ok(FoundAnatomy {
            assignment,
            verification,
        })
    }
}

/// A column of whole numbers that the anatomy adds.
fn whole(name: &str) -> SchemaColumn {
    SchemaColumn {
        name: name.into(),
        role: ColumnRole::Insensitive,
        kind: ColumnKind::Categorical,
        tree: None,
        ranges: None,
        domain: None,
        separator: pais_core::schema::DEFAULT_SEPARATOR,
        missing: Vec::new(),
    }
}

/// A table read by a schema, as the verifier takes it.
fn released(name: &str, read_by: &Schema, table: Table) -> ReleasedTable {
    let columns = read_by.columns.iter().zip(table.columns);
    let columns = columns.map(|(spec, column)| ReleasedColumn {
        name: spec.name.clone(),
        form: Form::untouched(spec),
        column: finished::rewritten(spec, column),
        missing: spec.missing.clone(),
    });
    ReleasedTable {
        name: name.into(),
        rows: table.rows,
        columns: columns.collect(),
    }
}

/// The model in words.
fn model_words(model: &GroupModel) -> String {
    let k = model.k;
    match &model.diversity {
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
    }
}

impl Report {
    /// What was found of groups.
    pub(super) fn groups(&mut self, model: &GroupModel, found: &GroupVerification) {
        self.line("model", model_words(model));
        let violations = counted(found.violations, "violation");
        let detail = format!("{violations} in {}", counted(found.groups, "group"));
        self.verdict("holds", found.holds, detail);
        self.line("rows", found.rows);
        self.line("groups", found.groups);
        self.line("smallest group", found.smallest_group);
        if let Some(diversity) = found.diversity {
            self.line("least diversity", diversity);
        }
        self.line("greatest confidence", percent(found.greatest_confidence));
        if found.worst.is_empty() {
            return;
        }
        // Writing to a string does not fail.
        let _ = writeln!(
            self.text,
            "\nworst groups\n{:>8} {:>10}  known values",
            "rows", "diversity"
        );
        for group in &found.worst {
            let diversity = group.diversity.map_or("-".to_owned(), |it| it.to_string());
            let known = known(&group.quasi_identifiers);
            let _ = writeln!(self.text, "{:>8} {diversity:>10}  {known}", group.size);
        }
        self.text.push('\n');
    }

    /// What was found of an anatomized release of so many raw rows, of which `limit` may be left
    /// out.
    pub(super) fn anatomy(
        &mut self,
        model: &GroupModel,
        found: &FoundAnatomy,
        rows: u64,
        limit: u64,
    ) {
        let detail = "they count the records of each group";
        if let Some(verification) = &found.verification {
            self.groups(model, verification);
            self.verdict("sensitive tables", true, detail);
        } else {
            self.line("model", model_words(model));
            let detail = "it is not known which records are in which group";
            self.verdict("holds", false, detail);
            if found.assignment.made_up == 0 {
                let detail = "they do not count the records of the groups";
                self.verdict("sensitive tables", false, detail);
            }
        }
        let AnatomyAssignment { made_up, lost, .. } = found.assignment;
        self.rows(made_up, lost, (rows, limit));
    }
}
