//! Whether a column that is released unchanged tells the values that generalization hides.

use std::cmp::Reverse;

use super::{Column, Domain, EncodedTable, QuasiIdentifier, UnchangedColumn, ValueCodes};
use crate::cancellation::{Cancellation, Stopped};
use crate::definition::ColumnRole;
use crate::parallel;
use crate::schema::Schema;
use crate::warning::{Warning, WarningCode};

/// Maximum number of rows that are sampled.
const MOST_ROWS: usize = 100_000;

/// Maximum product of sampled rows and pairs of columns.
const MOST_WORK: usize = 10_000_000;

/// Maximum number of pairs of values that have a counter each.
const MOST_COUNTERS: usize = 1 << 16;

/// Fewer rows agree by chance.
const LEAST_ROWS: usize = 20;

/// The columns that are released unchanged, insensitive or the class, and tell the value of one of these
/// quasi-identifiers: Goodman and Kruskal's *λ* of the quasi-identifier given the column is at least 0.9.
///
/// *λ* is the share of wrong guesses of the more probable value that knowing the column saves. Two names of one
/// thing, such as a town and its postal code, reach 0.9; columns that are only correlated do not. With values
/// that two rows have each, equal by chance, *λ* is about 0.5. Missing cells are left out, and so are values of
/// the column that one person has: they must be at most half of all. A person counts once for each pair of
/// values.
///
/// Pairs are counted on every *n*-th row, at most 100,000 rows and 10 million rows times pairs: 0.8 s of processor time
/// where columns have many values, some nanoseconds for each row and pair where they have few; 20 bytes for each sampled
/// row and thread, and 4 for each sampled cell of a quasi-identifier. It is not for distinct rows, nor for rows that an executor counts: each pair
/// of columns would be a statement.
///
/// # Errors
/// [`Stopped`].
pub fn unchanged_tells_hidden<'a>(
    schema: &Schema,
    table: &EncodedTable,
    quasi_identifiers: impl IntoIterator<Item = &'a QuasiIdentifier>,
    cancellation: &Cancellation,
) -> Result<Option<Warning>, Stopped> {
    let columns = UnchangedColumn::pairs(schema, table);
    let is_known = |role: ColumnRole| matches!(role, ColumnRole::Insensitive | ColumnRole::Class);
    let columns: Vec<_> = columns.filter(|(spec, _)| is_known(spec.role)).collect();
    let hidden: Vec<&QuasiIdentifier> = quasi_identifiers.into_iter().collect();
    let pairs = (columns.len() * hidden.len()).max(1);
    let most = MOST_ROWS.min(MOST_WORK / pairs).max(1);
    let step = table.rows.div_ceil(most).max(1);
    let rows: Vec<u32> = (0..table.rows as u32).step_by(step).collect();
    let persons = table.subjects.as_ref().map(|it| it.select(&rows));
    let persons = persons.as_deref();
    let hidden: Vec<(&str, Sampled)> = hidden
        .into_iter()
        .map(|it| (&*it.name, Sampled::of_hidden(it, &rows)))
        .collect();
    let of_column = parallel::map(columns, |(spec, column)| {
        let cells = rows.iter().map(|&row| column.codes[row as usize]);
        let sample = Column::of_cells(&column.dictionary, cells);
        let values = ValueCodes::new(spec, &sample);
        let known = Sampled {
            codes: values.codes.to_vec(),
            count: values.count,
            missing: values.missing,
        };
        let mut pairs = Vec::new();
        for (name, hidden) in &hidden {
            cancellation.check()?;
            let share = determined_share(&known, hidden, persons);
            pairs.extend(share.map(|share| DeterminedPair {
                known: spec.name(),
                hidden: name,
                share,
            }));
        }
        Ok(pairs)
    });
    let pairs: Vec<Vec<_>> = of_column.into_iter().collect::<Result<_, _>>()?;
    let unit = if table.subjects.is_some() {
        "persons"
    } else {
        "rows"
    };
    Ok(warning(pairs.concat(), unit))
}

/// A pair of an unchanged column and a quasi-identifier whose value it determines.
#[derive(Clone, Copy)]
struct DeterminedPair<'a> {
    known: &'a str,
    hidden: &'a str,
    /// The share of rows, or persons, for which it does.
    share: f64,
}

/// The warning about these pairs.
fn warning(mut pairs: Vec<DeterminedPair<'_>>, unit: &str) -> Option<Warning> {
    // Whole percent are enough for the order; ties go to the columns declared first.
    pairs.sort_by_key(|pair| Reverse((pair.share * 100.0) as u32));
    let &DeterminedPair {
        known,
        hidden,
        share,
    } = pairs.first()?;
    let mut detail = format!(
        "`{known}` is released unchanged and tells the value of `{hidden}` for {} % of the {unit}, so \
         generalizing `{hidden}` hides it only from readers who do not know which values go together; \
         make `{known}` a quasi-identifier, or leave it out (role `identifier`)",
        (share * 100.0) as u32
    );
    if pairs.len() > 1 {
        detail += &format!("; {} pairs of columns are like this", pairs.len());
    }
    let columns = pairs.iter().map(|pair| pair.known);
    let columns = columns.chain(pairs.iter().map(|pair| pair.hidden));
    let mut named = Vec::new();
    for column in columns {
        if !named.contains(&column) {
            named.push(column);
        }
    }
    Some(Warning::new(WarningCode::UnchangedTellsHidden, detail).of_columns(named))
}

/// The values of a column in the sampled rows.
struct Sampled {
    codes: Vec<u32>,
    /// Exclusive upper bound of the codes.
    count: usize,
    missing: Option<u32>,
}

impl Sampled {
    fn of_hidden(column: &QuasiIdentifier, rows: &[u32]) -> Self {
        let codes = column.codes.of_rows(rows);
        Self {
            count: codes
                .iter()
                .max()
                .map_or(0, |&greatest| greatest as usize + 1),
            codes,
            missing: match &column.domain {
                Domain::Taxonomy(tree) => tree.missing_leaf(),
                Domain::Numeric {
                    values, missing, ..
                } => missing.then_some(values.len() as u32),
            },
        }
    }
}

/// The share of the counted rows, or persons, whose hidden value is the most frequent one for the known value;
/// `None` if the known values do not tell the hidden ones.
fn determined_share(known: &Sampled, hidden: &Sampled, persons: Option<&[u32]>) -> Option<f64> {
    let mut counts = PairCounts {
        of_hidden: vec![0; hidden.count],
        ..PairCounts::default()
    };
    match persons {
        None if known.count * hidden.count <= MOST_COUNTERS => counts.count_rows(known, hidden),
        _ => counts.count_persons(known, hidden, persons),
    }
    counts.share()
}

/// Counts of the rows, or persons, by their known and hidden values.
#[derive(Debug, Default, PartialEq)]
struct PairCounts {
    /// Those with both values.
    present: usize,
    /// Those with a known value that several of them have.
    counted: usize,
    /// Of these, those with the most frequent hidden value for the known one.
    determined: usize,
    /// Of these, those with each hidden value.
    of_hidden: Vec<usize>,
}

impl PairCounts {
    /// Counts rows, with a counter for each pair of values.
    fn count_rows(&mut self, known: &Sampled, hidden: &Sampled) {
        let mut pairs = vec![0usize; known.count * hidden.count];
        for (&of_known, &of_hidden) in known.codes.iter().zip(&hidden.codes) {
            pairs[of_known as usize * hidden.count + of_hidden as usize] += 1;
        }
        for (of_known, counts) in (0u32..).zip(pairs.chunks_mut(hidden.count.max(1))) {
            if Some(of_known) == known.missing {
                continue;
            }
            if let Some(missing) = hidden.missing
                && let Some(count) = counts.get_mut(missing as usize)
            {
                *count = 0;
            }
            let rows: usize = counts.iter().sum();
            self.present += rows;
            if rows > 1 {
                self.add(counts.iter().copied().enumerate());
            }
        }
    }

    /// Counts persons, or rows without `persons`, by sorting them.
    fn count_persons(&mut self, known: &Sampled, hidden: &Sampled, persons: Option<&[u32]>) {
        let cells = known.codes.iter().zip(&hidden.codes).enumerate();
        let person = |row: usize| persons.map_or(row as u32, |persons| persons[row]);
        let cells = cells.map(|(row, (&known, &hidden))| (known, hidden, person(row)));
        let is_present = |cell: &(u32, u32, u32)| {
            Some(cell.0) != known.missing && Some(cell.1) != hidden.missing
        };
        let mut cells: Vec<(u32, u32, u32)> = cells.filter(is_present).collect();
        cells.sort_unstable();
        cells.dedup();
        self.present = cells.len();
        for alike in cells.chunk_by(|one, next| one.0 == next.0) {
            if alike.iter().any(|cell| cell.2 != alike[0].2) {
                let pairs = alike.chunk_by(|one, next| one.1 == next.1);
                self.add(pairs.map(|pair| (pair[0].1 as usize, pair.len())));
            }
        }
    }

    /// Adds the hidden values of a known value that several have, each with its number.
    fn add(&mut self, pairs: impl Iterator<Item = (usize, usize)>) {
        let mut most = 0;
        for (hidden, count) in pairs {
            self.of_hidden[hidden] += count;
            self.counted += count;
            most = most.max(count);
        }
        self.determined += most;
    }

    fn share(self) -> Option<f64> {
        let Self {
            present,
            counted,
            determined,
            of_hidden,
        } = self;
        let guessed = of_hidden.into_iter().max().unwrap_or(0);
        let is_enough = counted >= LEAST_ROWS && 2 * counted >= present && guessed < counted;
        // λ is at least 0.9.
        let is_determined = 10 * (determined - guessed) >= 9 * (counted - guessed);
        (is_enough && is_determined).then(|| determined as f64 / counted as f64)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::{PairCounts, Sampled, unchanged_tells_hidden};
    use crate::cancellation::Cancellation;
    use crate::schema::Schema;
    use crate::table::{Column, EncodedTable, Table};
    use crate::warning::Warning;

    fn found(columns: &[(&str, &str)], rows: &[Vec<String>]) -> Option<Warning> {
        let declared: Vec<_> = columns
            .iter()
            .map(|(name, role)| json!({"name": name, "role": role}))
            .collect();
        let definition = json!({"name": "t", "columns": declared});
        let schema = Schema::inline(&serde_json::from_value(definition).unwrap()).unwrap();
        let column = |index: usize| {
            let mut column = Column::default();
            for row in rows {
                let known = column.dictionary.iter().position(|it| **it == *row[index]);
                let code = known.unwrap_or_else(|| {
                    column.dictionary.push(row[index].as_str().into());
                    column.dictionary.len() - 1
                });
                column.codes.push(code as u32);
            }
            column
        };
        let table = Table {
            rows: rows.len(),
            columns: (0..columns.len()).map(column).collect(),
        };
        let table = EncodedTable::new(&schema, table);
        let quasi_identifiers = &table.quasi_identifiers;
        unchanged_tells_hidden(&schema, &table, quasi_identifiers, &Cancellation::new()).unwrap()
    }

    /// Rows of ten postal codes and their towns; in every `wrong`-th row the town is that of another code.
    fn places(rows: usize, wrong: usize) -> Vec<Vec<String>> {
        let place = |row: usize| {
            let town = if row.is_multiple_of(wrong) {
                row / wrong + 1
            } else {
                row
            } % 10;
            vec![
                format!("p{}", row / 3),
                format!("80{:03}", row % 10),
                format!("town {town}"),
            ]
        };
        (0..rows).map(place).collect()
    }

    const COLUMNS: [(&str, &str); 3] = [
        ("person", "insensitive"),
        ("PLZ", "quasi_identifier"),
        ("Wohnort", "insensitive"),
    ];

    #[test]
    fn a_column_that_tells_a_quasi_identifier_is_named() {
        let warning = found(&COLUMNS, &places(1000, 21)).unwrap();
        assert_eq!(warning.columns, ["Wohnort", "PLZ"]);
        let begin =
            "`Wohnort` is released unchanged and tells the value of `PLZ` for 95 % of the rows";
        assert!(warning.detail.starts_with(begin), "{}", warning.detail);
        // One of five wrong guesses remains.
        assert_eq!(found(&COLUMNS, &places(1000, 4)), None);
        // Few rows agree by chance.
        assert_eq!(found(&COLUMNS, &places(18, 100)), None);
    }

    #[test]
    fn only_a_column_that_is_released_unchanged_tells_and_only_in_this_direction() {
        for (roles, expected) in [
            (["insensitive", "class"], false),
            (["quasi_identifier", "class"], true),
            (["quasi_identifier", "sensitive"], false),
            (["quasi_identifier", "quasi_identifier"], false),
        ] {
            let columns = [COLUMNS[0], ("PLZ", roles[0]), ("Wohnort", roles[1])];
            let found = found(&columns, &places(1000, 100));
            assert_eq!(found.is_some(), expected, "{roles:?}");
        }
        // The code tells the region, the region not the code.
        let rows: Vec<Vec<String>> = (0..400)
            .map(|row| vec![format!("{}", row % 40), format!("region {}", row % 4)])
            .collect();
        let region = [("PLZ", "quasi_identifier"), ("region", "insensitive")];
        assert_eq!(found(&region, &rows), None);
        let region = [("PLZ", "insensitive"), ("region", "quasi_identifier")];
        assert!(found(&region, &rows).is_some());
    }

    #[test]
    fn values_of_one_person_and_missing_cells_tell_nothing() {
        // Each number is in one row, or in the three rows of one person.
        let number = |row: usize, value: usize| {
            vec![
                format!("p{}", row / 3),
                format!("{value}"),
                format!("{}", row % 7),
            ]
        };
        let columns = |first| {
            [
                ("person", first),
                ("file", "insensitive"),
                ("age", "quasi_identifier"),
            ]
        };
        let rows: Vec<Vec<String>> = (0..300).map(|row| number(row, row)).collect();
        assert_eq!(found(&columns("insensitive"), &rows), None);
        let of_person = |row: usize| {
            let person = row / 3;
            vec![
                format!("p{person}"),
                format!("file {person}"),
                format!("{}", person % 7),
            ]
        };
        let rows: Vec<Vec<String>> = (0..300).map(of_person).collect();
        assert_eq!(found(&columns("subject"), &rows), None);
        assert!(found(&columns("insensitive"), &rows).is_some());

        let mut rows = places(1000, 100);
        rows.iter_mut().take(990).for_each(|row| row[2].clear());
        assert_eq!(found(&COLUMNS, &rows), None);
    }

    proptest! {
        #[test]
        fn counters_and_sorted_rows_count_the_same(
            rows in prop::collection::vec((0..4u32, 0..5u32), 0..40),
            known_missing in prop::option::of(0..4u32),
            hidden_missing in prop::option::of(0..5u32),
        ) {
            let (codes, hidden): (Vec<u32>, Vec<u32>) = rows.into_iter().unzip();
            let known = Sampled { codes, count: 4, missing: known_missing };
            let hidden = Sampled { codes: hidden, count: 5, missing: hidden_missing };
            let counted = |count: &dyn Fn(&mut PairCounts)| {
                let mut counts = PairCounts { of_hidden: vec![0; 5], ..PairCounts::default() };
                count(&mut counts);
                counts
            };
            let by_counters = counted(&|counts| counts.count_rows(&known, &hidden));
            let by_rows = counted(&|counts| counts.count_persons(&known, &hidden, None));
            prop_assert_eq!(by_counters, by_rows);
        }
    }

    #[test]
    fn a_request_to_stop_ends_the_count() {
        let definition = json!({"name": "t", "columns": [
            {"name": "a", "role": "quasi_identifier"}, {"name": "b", "role": "insensitive"}]});
        let schema = Schema::inline(&serde_json::from_value(definition).unwrap()).unwrap();
        let column = Column {
            dictionary: vec!["x".into()],
            codes: vec![0; 30],
        };
        let table = EncodedTable::new(
            &schema,
            Table {
                rows: 30,
                columns: vec![column.clone(), column],
            },
        );
        let cancellation = Cancellation::new();
        cancellation.cancel();
        let found =
            unchanged_tells_hidden(&schema, &table, &table.quasi_identifiers, &cancellation);
        assert!(found.is_err());
    }
}
