//! Columns that are one set in a file: `DX1` to `DX20`.

use std::collections::BTreeMap;

use pais_core::definition::ColumnKind;
use pais_core::name_meaning::NameMeaning;

use super::items::SEPARATORS;
use super::observed::{FileColumn, Observed};
use super::role::{CodeSystem, icd};

/// Minimum number of columns of a set: of codes by their name, and of others.
const LEAST_OF_CODES: usize = 2;
const LEAST_COLUMNS: usize = 3;

/// Minimum number of distinct values of the column that has most.
const LEAST_VALUES: u64 = 20;

/// The share of a column's values that one of the others has too, at least on average.
const LEAST_SHARED: f64 = 0.25;

/// Maximum number of characters of a code in a set.
const MOST_LENGTH: usize = 40;

/// Columns of one set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Family {
    /// What their names have in common.
    pub(super) name: String,
    /// Their positions in the file, in the order of their numbers.
    pub(super) columns: Vec<usize>,
    /// A character that no cell has, which is not the default one; `None` for the default one.
    pub(super) separator: Option<char>,
    /// The system of codes that its columns have.
    pub(super) system: Option<CodeSystem>,
}

/// A column whose name ends with a number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct NumberedColumn {
    number: u32,
    /// Its position in the file.
    position: usize,
}

/// The families of a file. `is_label` says whether the cells of a column are labels and it can be one column of
/// a set.
pub(super) fn find(columns: &[FileColumn], is_label: impl Fn(usize) -> bool) -> Vec<Family> {
    let mut by_stem: BTreeMap<String, Vec<NumberedColumn>> = BTreeMap::new();
    for (position, column) in columns.iter().enumerate() {
        if let Some((stem, number)) = numbered(&column.name) {
            let members = by_stem.entry(stem.to_lowercase()).or_default();
            members.push(NumberedColumn { number, position });
        }
    }
    let mut families: Vec<Family> = by_stem
        .into_values()
        .filter_map(|members| family(columns, members, &is_label))
        .collect();
    families.sort_by_key(|family| family.columns.first().copied());
    families
}

/// The name of a column without the number at its end, and the number.
fn numbered(name: &str) -> Option<(&str, u32)> {
    let stem = name.trim_end_matches(|it: char| it.is_ascii_digit());
    let number = name[stem.len()..].parse().ok()?;
    let stem = stem.trim_end_matches([' ', '_', '-', '.']);
    stem.chars()
        .any(char::is_alphabetic)
        .then_some((stem, number))
}

fn family(
    columns: &[FileColumn],
    mut members: Vec<NumberedColumn>,
    is_label: &impl Fn(usize) -> bool,
) -> Option<Family> {
    members.sort_unstable();
    let is_counted = members
        .windows(2)
        .all(|pair| pair[1].number == pair[0].number + 1);
    let positions: Vec<usize> = members.iter().map(|it| it.position).collect();
    let name = numbered(&columns[*positions.first()?].name)?.0;
    let meaning = NameMeaning::of(name);
    let is_of_codes = meaning.is_diagnosis || meaning.is_procedure;
    let least = if is_of_codes {
        LEAST_OF_CODES
    } else {
        LEAST_COLUMNS
    };
    let of = |position: &usize| &columns[*position].observed;
    let filled: Vec<usize> = positions
        .iter()
        .copied()
        .filter(|it| of(it).rows > 0)
        .collect();
    let most = filled.iter().map(|it| of(it).distinct).max()?;
    let are_labels = filled.iter().all(|&position| is_label(position));
    if !is_counted
        || positions.len() < least
        || filled.len() < 2
        || most < LEAST_VALUES
        || !are_labels
    {
        return None;
    }
    let shared = filled.iter().map(|&one| {
        let others = filled.iter().filter(move |&&other| other != one);
        let others = others.map(|other| &of(other).sketch);
        of(&one).sketch.share_in(others)
    });
    if shared.sum::<f64>() < LEAST_SHARED * filled.len() as f64 {
        return None;
    }
    let is_free = |separator: &char| {
        let mut values = filled.iter().flat_map(|it| of(it).sketch.values());
        !values.any(|value| value.contains(*separator))
    };
    let separator = SEPARATORS.into_iter().find(is_free)?;
    let is_taken = |name: &str| columns.iter().any(|column| column.name == name);
    let name = if is_taken(name) {
        format!("{name}_set")
    } else {
        name.to_owned()
    };
    if is_taken(&name) {
        return None;
    }
    let systems = filled.iter().map(|it| icd(of(it), meaning));
    // Columns with few rows do not show the system.
    let system = systems.flatten().next();
    Some(Family {
        name,
        columns: positions,
        separator: (separator != pais_core::schema::DEFAULT_SEPARATOR).then_some(separator),
        system,
    })
}

/// Whether a column can be one of a set by its kind.
pub(super) fn is_label(kind: ColumnKind, column: &Observed, name: NameMeaning) -> bool {
    let is_short = column.longest <= MOST_LENGTH;
    kind == ColumnKind::Categorical
        && is_short
        && !name.is_direct
        && !column.is_most(column.codes.uuid)
}

#[cfg(test)]
mod tests {
    use super::numbered;

    #[test]
    fn names_of_numbered_columns_have_a_stem() {
        for (name, stem, number) in [
            ("DX1", "DX", 1),
            ("diag_10", "diag", 10),
            ("ICD9_DGNS_CD_3", "ICD9_DGNS_CD", 3),
            ("Payment Typology 2", "Payment Typology", 2),
        ] {
            assert_eq!(numbered(name), Some((stem, number)));
        }
        for name in ["DX", "12", "_3", "1st", "x99999999999"] {
            assert_eq!(numbered(name), None, "{name}");
        }
    }
}
