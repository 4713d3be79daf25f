//! Releases as their recipient sees them, the source of their rows, and the meet of their columns: for each
//! row, the labels of all releases that have it.

use pais_core::model::PrivacyModel;
use pais_core::table::{Column, Form, GROUP_COLUMN, ReleasedColumn, ReleasedTable};

use crate::classes::refine;
use crate::source_rows::NOWHERE;
use crate::verification::VerifyError;

/// A release that is decided together with others.
#[derive(Clone, Copy, Debug)]
pub struct ComposedRelease<'a> {
    /// The table `data`, or `qit` of an anatomized release.
    pub table: &'a ReleasedTable,
    /// The raw row of each released row.
    pub source_rows: &'a [u32],
    /// The quasi-identifiers of its job.
    pub quasi_identifiers: &'a [Box<str>],
    /// The sensitive columns of its job.
    pub sensitive: &'a [Box<str>],
    /// The model that it was made under.
    pub model: &'a PrivacyModel,
    /// How its labels relate.
    pub recoded: Recoded,
}

/// How the labels of a release relate to raw values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recoded {
    /// No two labels of a column cover the same value: global recoding.
    OneCut,
    /// Labels of a column overlap: local recoding, or sets whose items are hidden row by row.
    Overlapping,
    /// Exact quasi-identifiers, and sensitive values by group.
    Anatomized,
}

/// What a release says about the cells of a column.
pub(super) enum Published {
    /// Their raw values.
    Raw,
    /// Their labels.
    Labels,
    /// Nothing by row: only how often each value occurs in a group.
    ByGroup,
}

/// A release with the released row of each raw row.
pub(super) struct PlacedRelease<'a> {
    /// Its position among the releases that were given.
    pub(super) position: usize,
    pub(super) release: &'a ComposedRelease<'a>,
    /// The released row of each raw row, or `NOWHERE`.
    pub(super) row_of: Vec<u32>,
}

/// Finds the released row of each of `rows` raw rows.
///
/// # Errors
/// [`VerifyError::UnknownSource`] if a released row comes from no raw row, or two from the same.
pub(super) fn place<'a>(
    position: usize,
    release: &'a ComposedRelease<'a>,
    rows: usize,
) -> Result<PlacedRelease<'a>, VerifyError> {
    let mut row_of = vec![NOWHERE; rows];
    if release.source_rows.len() != release.table.rows {
        return Err(VerifyError::UnknownSource);
    }
    for (released, &raw) in (0u32..).zip(release.source_rows) {
        match row_of.get_mut(raw as usize) {
            Some(place) if *place == NOWHERE => *place = released,
            _ => return Err(VerifyError::UnknownSource),
        }
    }
    Ok(PlacedRelease {
        position,
        release,
        row_of,
    })
}

impl<'a> PlacedRelease<'a> {
    /// Whether it has a raw row.
    pub(super) fn has(&self, raw: usize) -> bool {
        self.row_of[raw] != NOWHERE
    }

    /// What it says about a column; `None` if it does not have it.
    pub(super) fn published(&self, name: &str) -> Option<Published> {
        let release = self.release;
        let is_listed = |names: &[Box<str>]| names.iter().any(|listed| **listed == *name);
        let is_anatomized = release.recoded == Recoded::Anatomized;
        if is_anatomized && is_listed(release.sensitive) {
            return Some(Published::ByGroup);
        }
        self.column(name)?;
        if is_listed(release.quasi_identifiers) && !is_anatomized {
            Some(Published::Labels)
        } else {
            Some(Published::Raw)
        }
    }

    /// A column of its table.
    pub(super) fn column(&self, name: &str) -> Option<&'a ReleasedColumn> {
        self.release.table.column(name)
    }

    /// The columns that say by which labels a row is known: those of its quasi-identifiers, or the
    /// group of an anatomized release.
    ///
    /// # Errors
    /// [`VerifyError::NoSuchColumn`] if its table lacks one.
    pub(super) fn labelled(&self) -> Result<Vec<&'a ReleasedColumn>, VerifyError> {
        let find = |name: &str| {
            let missing = || VerifyError::NoSuchColumn {
                column: name.into(),
            };
            self.column(name).ok_or_else(missing)
        };
        match self.release.recoded {
            Recoded::Anatomized => Ok(vec![find(GROUP_COLUMN)?]),
            Recoded::OneCut | Recoded::Overlapping => {
                let names = self.release.quasi_identifiers.iter();
                names.map(|name| find(name)).collect()
            }
        }
    }
}

/// The codes of rows in several columns together: rows have equal codes if they agree in all.
pub(super) struct Meet {
    codes: Vec<u32>,
    count: usize,
}

impl Meet {
    /// Rows about which nothing is known.
    pub(super) fn unknown(rows: usize) -> Self {
        Self {
            codes: vec![0; rows],
            count: 1,
        }
    }

    /// Adds what a column says about the rows; `released` has the row of the column for each, or
    /// `NOWHERE`, which is a value too. One pass.
    pub(super) fn and(&mut self, column: &ReleasedColumn, released: impl Iterator<Item = u32>) {
        let null = column.column.dictionary.len() as u32;
        let cells = released.map(|row| match row {
            NOWHERE => null + 1,
            row => column.column.codes[row as usize].min(null),
        });
        self.count = refine(&mut self.codes, self.count, cells, null as usize + 2);
    }

    /// The code of each row.
    pub(super) fn codes(&self) -> &[u32] {
        &self.codes
    }

    /// The meet as a column of labels, which are numbers.
    pub(super) fn into_column(self, name: &str) -> ReleasedColumn {
        ReleasedColumn {
            name: name.into(),
            form: Form::Generalized,
            column: Column {
                dictionary: (0..self.count)
                    .map(|code| code.to_string().into())
                    .collect(),
                codes: self.codes,
            },
            missing: Vec::new(),
        }
    }
}
