//! The columns of a definition, checked one by one, with their taxonomies.

use std::sync::Arc;

use crate::definition::{
    ColumnDefinition, ColumnKind, ColumnRole, DatasetDefinition, TaxonomyId, TaxonomyReference,
};
use crate::rejection::Fault;
use crate::taxonomy::{Interval, MOST_LABEL_BYTES, Tree, TreeLimits};

use super::{DEFAULT_SEPARATOR, SchemaColumn, SchemaError, SchemaErrorKind, checks, dates, made};

/// A column of a definition, whose faults are added to those of the others.
pub(super) struct DeclaredColumn<'a> {
    definition: &'a DatasetDefinition,
    column: &'a ColumnDefinition,
    index: usize,
    faults: &'a mut Vec<Fault>,
}

impl<'a> DeclaredColumn<'a> {
    pub(super) fn new(
        definition: &'a DatasetDefinition,
        index: usize,
        faults: &'a mut Vec<Fault>,
    ) -> Self {
        Self {
            definition,
            column: &definition.columns[index],
            index,
            faults,
        }
    }

    /// Checks the column and resolves its taxonomy.
    ///
    /// # Errors
    /// For an unknown taxonomy and for an invalid inline tree.
    pub(super) fn resolve(
        &mut self,
        limits: TreeLimits,
        taxonomy: &mut dyn FnMut(TaxonomyId) -> Option<Arc<Tree>>,
    ) -> Result<SchemaColumn, SchemaError> {
        self.check_name();
        let column = self.column;
        let (tree, made) = if dates::asks_for_grown_intervals(column) {
            (None, None)
        } else {
            let tree = self.tree(limits, taxonomy)?;
            (tree, self.with_place(made::check))
        };
        let ranges = self.ranges(tree.as_deref());
        let format = self.with_place(dates::format);
        let domain = self.domain();
        let separator = self.separator();
        let missing = self.words_for_missing();
        self.check_round_range();
        let round = checks::rounding(column).unwrap_or_else(|(detail, fix)| {
            self.faults
                .push(Fault::at(self.at("round"), detail).fix(fix));
            None
        });
        let mut resolved = SchemaColumn {
            name: column.name.as_str().into(),
            role: column.role,
            kind: column.kind,
            tree,
            searched: None,
            ranges,
            domain,
            separator,
            round_range: column.round_range,
            round,
            from: checks::set_columns(column),
            format,
            made,
            is_verbatim: false,
            missing: Vec::new(),
        };
        resolved.missing = resolved.words_for_missing(missing);
        Ok(resolved)
    }

    /// The pointer to a field of the column.
    fn at(&self, field: &str) -> String {
        format!("/columns/{}/{field}", self.index)
    }

    fn fault(&mut self, field: &str, detail: impl Into<String>) {
        self.faults.push(Fault::at(self.at(field), detail));
    }

    /// The result of a check that names the fields of the column by their pointers.
    fn with_place<T>(
        &mut self,
        check: impl FnOnce(&ColumnDefinition, &dyn Fn(&str) -> String, &mut Vec<Fault>) -> T,
    ) -> T {
        let index = self.index;
        let at = |field: &str| format!("/columns/{index}/{field}");
        check(self.column, &at, self.faults)
    }

    fn check_name(&mut self) {
        if checks::is_no_name(&self.column.name) {
            self.fault("name", checks::NO_NAME);
        }
        let before = &self.definition.columns[..self.index];
        if before.iter().any(|other| other.name == self.column.name) {
            self.fault("name", "another column already has this name");
        }
    }

    fn tree(
        &mut self,
        limits: TreeLimits,
        taxonomy: &mut dyn FnMut(TaxonomyId) -> Option<Arc<Tree>>,
    ) -> Result<Option<Arc<Tree>>, SchemaError> {
        Ok(match &self.column.taxonomy {
            None | Some(TaxonomyReference::Generated(_)) => {
                let ordered = self.with_place(|column, at, faults| {
                    made::ordered_tree(column, limits, at, faults)
                });
                ordered.map(Arc::new)
            }
            Some(TaxonomyReference::Id(id)) => Some(taxonomy(*id).ok_or_else(|| {
                let detail = "there is no taxonomy with this id";
                SchemaError::at(
                    SchemaErrorKind::UnknownTaxonomy,
                    self.at("taxonomy"),
                    detail,
                )
            })?),
            Some(TaxonomyReference::Inline(root)) => {
                let tree = Tree::new(root, limits).map_err(|error| {
                    let pointer = self.at("taxonomy") + &error.pointer();
                    SchemaError::at(SchemaErrorKind::Taxonomy, pointer, error.to_string())
                })?;
                Some(Arc::new(tree))
            }
        })
    }

    /// The leaves of the tree of a numeric column as ranges. Those of a column of dates are checked.
    fn ranges(&mut self, tree: Option<&Tree>) -> Option<Arc<[Interval]>> {
        let tree = tree?;
        let kind = self.column.kind;
        if kind.is_of_dates() {
            self.with_place(|_, at, faults| dates::check_leaves(kind, tree, at, faults));
        }
        if kind != ColumnKind::Numeric {
            return None;
        }
        match tree.ranges() {
            Ok(leaves) => Some(leaves.into()),
            Err(detail) => {
                let fault = Fault::at(self.at("taxonomy"), detail);
                let fix = "declare the column categorical, or give ranges as labels";
                self.faults.push(fault.fix(fix));
                None
            }
        }
    }

    fn domain(&mut self) -> Option<(f64, f64)> {
        let (lo, hi) = self.with_place(dates::domain)?;
        if self.column.kind.scale().is_none() {
            let detail = "only a column of numbers or dates has a domain";
            let fix = "add \"kind\": \"numeric\", or leave `domain` out";
            self.faults
                .push(Fault::at(self.at("domain"), detail).fix(fix));
        } else if has_own_taxonomy(self.column) {
            let detail = "the column's taxonomy defines its domain; leave `domain` out";
            self.fault("domain", detail);
        }
        if !(lo.abs() <= 1e300 && hi.abs() <= 1e300 && lo <= hi) {
            let detail = "a domain must be [min, max] with min <= max, both from -1e300 to 1e300";
            self.fault("domain", detail);
        }
        Some((lo, hi))
    }

    fn separator(&mut self) -> char {
        let column = self.column;
        let separator = column.separator.as_deref().map(single_char);
        if let Some(separator) = separator {
            if column.kind != ColumnKind::Set {
                self.fault("separator", "only a set has a separator");
            }
            if separator.is_none() {
                self.fault("separator", "a separator must be one character");
            }
        }
        let is_exact = matches!(column.role, ColumnRole::Class | ColumnRole::Sensitive);
        if column.kind == ColumnKind::Set && is_exact {
            let detail =
                "a set can be a quasi-identifier or insensitive, not sensitive or the class";
            self.fault("role", detail);
        }
        separator.flatten().unwrap_or(DEFAULT_SEPARATOR)
    }

    fn words_for_missing(&mut self) -> &'a [String] {
        let own = self.column.missing.as_deref();
        let fault = own.and_then(|words| unwritable(words, &self.at("missing")));
        self.faults.extend(fault);
        own.or(self.definition.missing.as_deref()).unwrap_or(EMPTY)
    }

    fn check_round_range(&mut self) {
        let unfit = unfit_round_range(self.column).filter(|_| self.column.round_range);
        if let Some(detail) = unfit {
            let fault = Fault::at(self.at("round_range"), detail);
            self.faults.push(fault.fix("leave `round_range` out"));
        }
    }
}

/// What means missing if nothing is declared: the empty cell.
const EMPTY: &[String] = &[String::new()];

/// The fault of a word for missing that is too long, or cannot be read back from every format.
pub(super) fn unwritable(words: &[String], pointer: &str) -> Option<Fault> {
    let is_unwritable = |word: &String| {
        word.len() > MOST_LABEL_BYTES || word.ends_with('\r') || word.contains('\0')
    };
    let word = words.iter().position(is_unwritable)?;
    let detail = "a word for missing has at most 1,024 bytes, does not end in a carriage return \
                  and has no NUL";
    Some(Fault::at(format!("{pointer}/{word}"), detail))
}

/// Why the range of a column cannot be widened; `None` if it can.
fn unfit_round_range(column: &ColumnDefinition) -> Option<&'static str> {
    if column.kind.scale().is_none() {
        return Some("only a column of numbers or dates has a range that can be widened");
    }
    if column.domain.is_some() {
        return Some("the column's `domain` is its range, which is not widened");
    }
    has_own_taxonomy(column)
        .then_some("the column's taxonomy defines its range, which is not widened")
}

/// Whether the column's tree has an outermost range of its own.
fn has_own_taxonomy(column: &ColumnDefinition) -> bool {
    column.taxonomy.is_some() && !dates::asks_for_grown_intervals(column)
}

fn single_char(text: &str) -> Option<char> {
    let mut chars = text.chars();
    chars.next().filter(|_| chars.next().is_none())
}
