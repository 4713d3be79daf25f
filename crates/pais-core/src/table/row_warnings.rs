//! What a holder should know about the rows of a table under a privacy model.

use super::sensitive_values::{absent_values, undeclared_missing, variants};
use super::unchanged_column::{LEAST_ROWS, UnchangedColumn};
use super::{Persons, ValueCodes, pairs_that_single_out};
use crate::definition::{ColumnKind, ColumnRole};
use crate::model::PrivacyModel;
use crate::name_meaning::NameMeaning;
use crate::warning::{Warning, WarningCode};

/// The warnings about the rows of a table, given by its columns as they were declared: listed sensitive values
/// that are in no row or have variants in the rows, words for missing that are not declared, columns released unchanged
/// whose values single out rows or persons or whose names say that they identify persons, and the two insensitive columns that single out the most together if neither
/// does alone.
///
/// One pass over the codes of each column with listed values, another where these have variants, and one of each pair of
/// insensitive columns up to 50 million rows.
pub fn row_warnings<'a>(
    model: &PrivacyModel,
    columns: impl IntoIterator<Item = UnchangedColumn<'a>>,
) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut together = Vec::new();
    for unchanged in columns {
        let UnchangedColumn {
            spec,
            column,
            counts,
            ..
        } = unchanged;
        if !spec.is_unchanged() {
            continue;
        }
        if let PrivacyModel::Lkc(model) = model
            && spec.role == ColumnRole::Sensitive
        {
            warnings.extend(absent_values(model, spec, column));
            warnings.extend(variants(model, &unchanged));
        }
        if spec.role == ColumnRole::Sensitive {
            warnings.extend(undeclared_missing(&unchanged));
        }
        warnings.extend(counts.warning(&spec.name, spec.role));
        warnings.extend(name_warning(&unchanged));
        if spec.role == ColumnRole::Insensitive && counts.singled_out() == 0 && counts.distinct > 1
        {
            together.push(unchanged);
        }
    }
    warnings.extend(pair_warning(&together));
    warnings
}

/// The warning about a column whose name says that its values identify persons.
fn name_warning(unchanged: &UnchangedColumn<'_>) -> Option<Warning> {
    let UnchangedColumn { spec, counts, .. } = unchanged;
    let (name, role) = (&*spec.name, spec.role.as_str());
    let is_one_value = matches!(spec.kind(), ColumnKind::Categorical | ColumnKind::Numeric);
    let is_found = NameMeaning::of(name).identifies_persons(counts.rows, counts.distinct);
    let detail = format!(
        "by its name the {role} column `{name}` identifies persons, and it is released unchanged, also where its \
         values repeat; leave it out (role `identifier`), or declare it as `subject` if it is the key of the \
         persons that the rows are about"
    );
    let warning = Warning::new(WarningCode::UnchangedNamesPersons, detail).of_columns([name]);
    (is_one_value && is_found).then_some(warning)
}

/// The warning about the two columns that together single out the most rows, or persons. By itself, none of the
/// columns singles out one.
fn pair_warning(columns: &[UnchangedColumn<'_>]) -> Option<Warning> {
    let &UnchangedColumn { persons, rows, .. } = columns.first()?;
    if (rows as usize) < LEAST_ROWS || columns.len() < 2 {
        return None;
    }
    let values = columns.iter().map(|it| ValueCodes::new(it.spec, it.column));
    let values: Vec<ValueCodes<'_>> = values.collect();
    let values: Vec<&ValueCodes<'_>> = values.iter().collect();
    let pairs = pairs_that_single_out(&values, persons, rows);
    let most = pairs.first()?;
    let [one, other] = [most.first, most.second].map(|index| &columns[index].spec.name);
    let (found, unit) = match persons {
        Persons::Rows(_) => (
            format!(
                "in {} of {rows} rows no other row has the same values in both; a reader who knows them finds the row",
                most.persons
            ),
            "rows",
        ),
        Persons::Named(..) => (
            "some persons have values in both that nobody else has; a reader who knows them finds the person".to_owned(),
            "persons",
        ),
    };
    let mut detail = format!(
        "the insensitive columns `{one}` and `{other}` are released unchanged, and {found}; leave one of them out \
         (role `identifier`), or make it a quasi-identifier"
    );
    if pairs.len() > 1 {
        detail += &format!("; {} pairs of columns single out {unit}", pairs.len());
    }
    Some(Warning::new(WarningCode::SingledOutRows, detail).of_columns([&**one, &**other]))
}
