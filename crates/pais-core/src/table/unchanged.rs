//! Risk of the columns that are released unchanged: how many rows they single out, together and one by one.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::{Classes, Column, Divider, Division, PersonSet, Persons, ReleasedTable, ValueCodes};
use crate::cancellation::{Cancellation, Stopped};
use crate::parallel;
use crate::schema::{Schema, SchemaColumn};

/// Number of columns that are most telling together.
const TELLING: usize = 3;

/// Maximum number of rows on which these columns are chosen; their risk is counted on all rows.
const ROWS_TO_CHOOSE: usize = 100_000;

/// The risk that EMA Policy 0070 (EMA/90915/2016, chapter 3) and Health Canada's guidance on the public release of
/// clinical information accept for attackers who look for anybody. It is also the share of rows singled out by
/// unchanged columns above which a release that holds has the second verdict: somebody who knows these columns of
/// all patients finds at least this share of them.
pub const ACCEPTED_RISK: f64 = 0.09;

/// What the columns that are released unchanged (insensitive, sensitive, class) say of the rows, or of the persons
/// of a table with a subject column: a person is singled out by values that only rows of this person have. All missing
/// cells of a column are one value. Shares are from 0 to 1, and 0 in a table without rows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct UnchangedRisk {
    /// Their names, in the declared order. In the quasi-identifier table of an anatomized release
    /// there are no sensitive ones.
    pub columns: Vec<String>,
    /// Share of the rows with values of all of them together that no other row has, or of the persons with such
    /// values that nobody else has.
    pub singled_out_share: f64,
    /// Share of the rows with a value that no other row has, or of the persons with one that nobody else has, by
    /// column.
    pub by_column: BTreeMap<String, f64>,
    /// The three that single out most rows, or all where there are no more.
    pub most_telling: TellingColumns,
}

/// Up to three unchanged columns that single out the most rows: first the column that singles out the most by itself,
/// then each column that adds the most. They are chosen on at most 100,000 rows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TellingColumns {
    /// Their names, the most telling first.
    pub columns: Vec<String>,
    /// Share of the rows whose combined values in these columns no other row has, or of such persons.
    pub singled_out_share: f64,
}

/// The verdict on a release.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It meets its privacy model.
    #[default]
    Holds,
    /// It meets its privacy model, and what is released unchanged singles out more than 9 % of its
    /// rows, which the model does not cover.
    HoldsButSinglesOut,
    /// It does not meet its privacy model.
    DoesNotHold,
}

impl Verdict {
    /// The verdict on a release that meets its model or not.
    pub fn of(holds: bool, unchanged: &UnchangedRisk) -> Self {
        if !holds {
            Self::DoesNotHold
        } else if unchanged.singled_out_share > ACCEPTED_RISK {
            Self::HoldsButSinglesOut
        } else {
            Self::Holds
        }
    }
}

impl UnchangedRisk {
    /// Bytes that [`Self::measure`] needs at most for this many rows, plus 16 for each distinct value: a code
    /// of each cell, and the classes before and after a division with what divides them. Rows that are grouped
    /// by several columns with a hash table take no more.
    pub fn bytes_needed(schema: &Schema, rows: u64) -> u64 {
        /// Classes twice, each with its rows and ends and with spare capacity; the cells and the values that
        /// divide them; the person of a row, and a bit for each who is alone.
        const ROW_BYTES: u64 = 2 * 16 + 16 + 8 + 4 + 4;
        let unchanged = schema.stored().filter(|spec| spec.is_unchanged());
        rows.saturating_mul(ROW_BYTES + 4 * unchanged.count() as u64)
    }

    /// The risk of a table of these persons, given by its columns as they are released.
    ///
    /// One pass over the rows for each column; by all columns together, rows that are alone are not
    /// read again.
    ///
    /// # Errors
    /// [`Stopped`].
    pub fn measure<'a>(
        columns: impl IntoIterator<Item = (&'a SchemaColumn, &'a Column)>,
        persons: Persons<'_>,
        cancellation: &Cancellation,
    ) -> Result<Self, Stopped> {
        let unchanged = columns.into_iter().filter(|(spec, _)| spec.is_unchanged());
        let unchanged: Vec<_> = unchanged.collect();
        let coded = |&(spec, column)| {
            cancellation.check()?;
            Ok(ValueCodes::new(spec, column))
        };
        let coded = parallel::map(&unchanged, coded).into_iter();
        let coded: Vec<ValueCodes<'_>> = coded.collect::<Result<_, _>>()?;
        let pairs = unchanged.iter().zip(&coded);
        let pairs = pairs.map(|((spec, _), codes)| (*spec, codes));
        Self::of_codes(pairs, persons, cancellation)
    }

    /// The risk of a released table with the persons of its rows. Columns of the schema that it does not have are
    /// left out.
    ///
    /// # Errors
    /// [`Stopped`].
    pub fn of_released(
        schema: &Schema,
        table: &ReleasedTable,
        persons: Persons<'_>,
        cancellation: &Cancellation,
    ) -> Result<Self, Stopped> {
        let stored = schema.stored();
        let columns = stored.filter_map(|spec| Some((spec, &table.column(spec.name())?.column)));
        Self::measure(columns, persons, cancellation)
    }

    /// The risk of a table of which only distinct rows are known: each of them is in `columns` once if one row
    /// of the table has its values, and otherwise twice, so that values single out the same rows. `rows` is the
    /// number of rows of the table, and `sampled` are the rows of `columns` that have the values of
    /// [`TellingSample`].
    ///
    /// # Errors
    /// [`Stopped`].
    pub fn of_distinct<'a>(
        columns: impl IntoIterator<Item = (&'a SchemaColumn, &'a Column)>,
        rows: u64,
        sampled: &[u32],
        cancellation: &Cancellation,
    ) -> Result<Self, Stopped> {
        let unchanged = columns.into_iter().filter(|(spec, _)| spec.is_unchanged());
        let (specs, columns): (Vec<_>, Vec<_>) = unchanged.unzip();
        let pairs = specs.iter().zip(&columns);
        let coded: Vec<ValueCodes<'_>> = pairs
            .map(|(spec, column)| ValueCodes::new(spec, column))
            .collect();
        let of_sample: Vec<ValueCodes<'_>> =
            coded.iter().map(|values| values.select(sampled)).collect();
        let of_sample: Vec<&ValueCodes<'_>> = of_sample.iter().collect();
        let all = Persons::Rows(sampled.len());
        let telling = most_telling(&of_sample, 0..sampled.len() as u32, all, cancellation)?;
        let coded: Vec<&ValueCodes<'_>> = coded.iter().collect();
        let table = PersonsOfTable {
            persons: Persons::Rows(coded.first().map_or(0, |values| values.codes.len())),
            count: rows,
        };
        Self::of_telling(&specs, &coded, telling, table, cancellation)
    }

    /// [`Self::measure`] for columns whose values are coded.
    pub(crate) fn of_codes<'a>(
        columns: impl IntoIterator<Item = (&'a SchemaColumn, &'a ValueCodes<'a>)>,
        persons: Persons<'_>,
        cancellation: &Cancellation,
    ) -> Result<Self, Stopped> {
        let columns = columns.into_iter();
        let unchanged = columns.filter(|(spec, _)| spec.is_unchanged());
        let (specs, coded): (Vec<_>, Vec<_>) = unchanged.unzip();
        let rows = persons.rows();
        let sampled = (0..rows as u32).step_by(TellingSample::step_of(rows));
        let telling = most_telling(&coded, sampled, persons, cancellation)?;
        let table = PersonsOfTable {
            persons,
            count: persons.count(),
        };
        Self::of_telling(&specs, &coded, telling, table, cancellation)
    }

    /// Rounds all shares.
    pub fn round(&mut self, rounded: impl Fn(f64) -> f64) {
        let shares = self.by_column.values_mut();
        let more = [
            &mut self.singled_out_share,
            &mut self.most_telling.singled_out_share,
        ];
        shares
            .chain(more)
            .for_each(|share| *share = rounded(*share));
    }

    /// The risk of a table whose most telling columns are known.
    fn of_telling(
        specs: &[&SchemaColumn],
        coded: &[&ValueCodes<'_>],
        telling: Vec<usize>,
        PersonsOfTable { persons, count }: PersonsOfTable<'_>,
        cancellation: &Cancellation,
    ) -> Result<Self, Stopped> {
        let share = |alone: u64| match count {
            0 => 0.0,
            count => alone as f64 / count as f64,
        };
        let name = |index: usize| specs[index].name.to_string();
        let alone_by =
            |values: &&ValueCodes<'_>| singled_out(&[*values], &[0], persons, cancellation);
        let by_column = parallel::map(coded, alone_by).into_iter();
        let by_column: Vec<u64> = by_column.collect::<Result<_, _>>()?;
        // Columns with many values divide most.
        let mut order: Vec<usize> = (0..coded.len()).collect();
        order.sort_by_key(|&index| Reverse(coded[index].count));
        let together = singled_out(coded, &order, persons, cancellation)?;
        let by_three = if telling.len() == order.len() {
            together
        } else {
            singled_out(coded, &telling, persons, cancellation)?
        };
        let by_name = by_column.iter().enumerate();
        Ok(Self {
            columns: (0..coded.len()).map(name).collect(),
            singled_out_share: share(together),
            by_column: by_name
                .map(|(index, &alone)| (name(index), share(alone)))
                .collect(),
            most_telling: TellingColumns {
                columns: telling.into_iter().map(name).collect(),
                singled_out_share: share(by_three),
            },
        })
    }
}

/// The persons whose rows are counted, and how many persons their table has.
#[derive(Clone, Copy)]
struct PersonsOfTable<'a> {
    persons: Persons<'a>,
    count: u64,
}

/// Maximum number of combinations of values that are counted with one counter each.
const FEW_COMBINATIONS: usize = 1 << 16;

/// Rows whose combinations are counted at a time.
const PART: usize = 1 << 14;

/// Number of persons with values of the chosen columns together that nobody else has.
fn singled_out(
    columns: &[&ValueCodes<'_>],
    chosen: &[usize],
    persons: Persons<'_>,
    cancellation: &Cancellation,
) -> Result<u64, Stopped> {
    let Some(&first) = chosen.first() else {
        return Ok(0);
    };
    let rows = columns[first].codes.len();
    let is_each = matches!(persons, Persons::Rows(_));
    if is_each && chosen.len() == 1 {
        let rows = columns[first].rows_by_code().into_iter();
        return Ok(rows.filter(|&rows| rows == 1).count() as u64);
    }
    let counts = chosen.iter().map(|&index| columns[index].count);
    let combinations = counts.fold(1usize, usize::saturating_mul);
    if is_each && combinations <= FEW_COMBINATIONS {
        // Rows of each combination, up to two, in parts that stay in the processor's caches.
        let mut counts = vec![0u8; combinations];
        let mut combined = vec![0u32; PART.min(rows)];
        for start in (0..rows).step_by(PART) {
            cancellation.check()?;
            let end = rows.min(start + PART);
            let combined = &mut combined[..end - start];
            combined.fill(0);
            for &index in chosen {
                let column = columns[index];
                let codes = combined.iter_mut().zip(&column.codes[start..end]);
                codes.for_each(|(sum, code)| *sum = *sum * column.count as u32 + code);
            }
            for &mut combination in combined {
                let count = &mut counts[combination as usize];
                *count = (*count + 1).min(2);
            }
        }
        return Ok(counts.iter().filter(|&&rows| rows == 1).count() as u64);
    }
    let mut alone = PersonSet::new(persons.codes());
    let mut classes = Classes::of(0..rows as u32);
    let mut divided = Classes::default();
    let mut divider = Divider::default();
    for &index in chosen {
        cancellation.check()?;
        let by = Division::by_cells(columns[index], persons);
        divider.divide(&classes, by, &mut alone, Some(&mut divided));
        std::mem::swap(&mut classes, &mut divided);
    }
    Ok(alone.len())
}

/// The sample of rows by which the most telling columns are chosen while their table is read: every row, and
/// from 100,000 rows on every second, fourth, eighth and so on, beginning with the first. What is kept of a row
/// is up to the caller.
#[derive(Clone, Debug)]
pub struct TellingSample<T> {
    kept: Vec<T>,
    /// One of this many rows is kept.
    step: usize,
    rows: usize,
}

impl<T> Default for TellingSample<T> {
    fn default() -> Self {
        Self {
            kept: Vec::new(),
            step: 1,
            rows: 0,
        }
    }
}

impl<T> TellingSample<T> {
    /// Receives the next row.
    pub fn add(&mut self, row: T) {
        if self.rows.is_multiple_of(self.step) {
            if self.kept.len() == ROWS_TO_CHOOSE {
                let mut is_even = false;
                self.kept.retain(|_| {
                    is_even = !is_even;
                    is_even
                });
                self.step *= 2;
            }
            if self.rows.is_multiple_of(self.step) {
                self.kept.push(row);
            }
        }
        self.rows += 1;
    }

    /// What was kept of its rows, in their order.
    pub fn kept(&self) -> &[T] {
        &self.kept
    }
}

impl TellingSample<u32> {
    /// One of how many rows is in the sample of a table with this many rows.
    fn step_of(rows: usize) -> usize {
        rows.div_ceil(ROWS_TO_CHOOSE).next_power_of_two()
    }
}

/// The columns that single out most persons of a sample of the rows, chosen one after the other; ties go to
/// the one that makes more classes, then to the one declared first.
fn most_telling(
    columns: &[&ValueCodes<'_>],
    sampled: impl IntoIterator<Item = u32>,
    persons: Persons<'_>,
    cancellation: &Cancellation,
) -> Result<Vec<usize>, Stopped> {
    let mut alone = PersonSet::new(persons.codes());
    let mut classes = Classes::of(sampled);
    let mut chosen: Vec<usize> = Vec::new();
    while chosen.len() < TELLING.min(columns.len()) {
        let others = (0..columns.len()).into_par_iter();
        let others = others.filter(|index| !chosen.contains(index));
        let divider = || (Divider::default(), PersonSet::new(persons.codes()));
        let found = others.map_init(divider, |(divider, with), index| {
            cancellation.check()?;
            with.copy(&alone);
            let by = Division::by_cells(columns[index], persons);
            let parts = divider.divide(&classes, by, with, None);
            Ok((with.len(), parts, Reverse(index)))
        });
        let found: Vec<_> = found.collect::<Result<_, Stopped>>()?;
        let Some((_, _, Reverse(best))) = found.into_iter().max() else {
            break;
        };
        let mut divided = Classes::default();
        let by = Division::by_cells(columns[best], persons);
        Divider::default().divide(&classes, by, &mut alone, Some(&mut divided));
        classes = divided;
        chosen.push(best);
    }
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use proptest::prelude::*;
    use serde_json::json;

    use super::{TellingSample, UnchangedRisk, Verdict};
    use crate::cancellation::Cancellation;
    use crate::schema::Schema;
    use crate::table::{Column, NULL_CODE, Persons};

    const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

    fn schema() -> Schema {
        let columns = [
            "insensitive",
            "sensitive",
            "class",
            "insensitive",
            "quasi_identifier",
        ];
        let columns = NAMES.iter().zip(columns);
        let columns: Vec<_> = columns
            .map(|(name, role)| json!({"name": name, "role": role, "missing": ["", "NA"]}))
            .collect();
        let definition = json!({"name": "t", "columns": columns});
        Schema::inline(&serde_json::from_value(definition).unwrap()).unwrap()
    }

    /// A column with some values that no row has.
    fn column(codes: Vec<u32>, unused: u32) -> Column {
        let used = ["NA", "x", "y", "z", ""].map(Into::into).into_iter();
        let unused = (0..unused).map(|value| value.to_string().into());
        Column {
            dictionary: used.chain(unused).collect(),
            codes,
        }
    }

    /// The persons with values of these columns that nobody else has; 0, 4 and null are missing.
    fn alone(rows: &[[u32; 5]], person: &[u32], columns: &[usize]) -> usize {
        let values = |row: &[u32; 5]| -> Vec<u32> {
            let value = |&column: &usize| match row[column] {
                0 | 4 | NULL_CODE => 0,
                value => value,
            };
            columns.iter().map(value).collect()
        };
        let mut found: HashMap<Vec<u32>, HashSet<u32>> = HashMap::new();
        for (row, person) in rows.iter().zip(person) {
            found.entry(values(row)).or_default().insert(*person);
        }
        let alone = found.into_values().filter(|persons| persons.len() == 1);
        alone.flatten().collect::<HashSet<u32>>().len()
    }

    proptest! {
        #[test]
        fn shares_are_those_of_brute_force(
            rows in prop::collection::vec(
                prop::array::uniform5(prop_oneof![0u32..5, Just(NULL_CODE)]), 0..30),
            // With many values rows are divided, and not counted by combinations.
            unused in prop_oneof![Just(0), Just(20), Just(60)],
            named in prop::option::of(prop::collection::vec(0..9u32, 30)),
        ) {
            let each: Vec<u32> = (0..30).collect();
            let person = &named.as_ref().unwrap_or(&each)[..rows.len()];
            let persons = match named {
                Some(_) => Persons::Named(person, 9),
                None => Persons::Rows(rows.len()),
            };
            let schema = schema();
            let columns: Vec<Column> = (0..5)
                .map(|index| column(rows.iter().map(|row| row[index]).collect(), unused))
                .collect();
            let pairs = schema.stored().zip(&columns);
            let found = UnchangedRisk::measure(pairs, persons, &Cancellation::new()).unwrap();
            let everybody: HashSet<u32> = person.iter().copied().collect();
            let share = |columns: &[usize]| match everybody.len() {
                0 => 0.0,
                all => alone(&rows, person, columns) as f64 / all as f64,
            };
            prop_assert_eq!(&found.columns, &NAMES[..4]);
            prop_assert_eq!(found.singled_out_share, share(&[0, 1, 2, 3]));
            for (index, name) in NAMES[..4].iter().enumerate() {
                prop_assert_eq!(found.by_column[*name], share(&[index]));
            }
            let telling: Vec<usize> = found.most_telling.columns.iter()
                .map(|name| NAMES.iter().position(|other| other == name).unwrap())
                .collect();
            prop_assert_eq!(telling.len(), 3);
            prop_assert_eq!(found.most_telling.singled_out_share, share(&telling));
            // The first is the best alone, and no other is better as the last.
            let is_first = (0..4).all(|other| share(&[telling[0]]) >= share(&[other]));
            let mut others = (0..4).filter(|other| !telling[..2].contains(other));
            let is_last = others
                .all(|other| share(&telling) >= share(&[telling[0], telling[1], other]));
            prop_assert!(is_first && is_last);
        }
    }

    #[test]
    fn a_sample_that_is_kept_while_rows_are_read_has_the_rows_of_its_step() {
        for rows in [0, 1, 99_999, 100_000, 100_001, 200_000, 200_001, 500_000] {
            let mut sample = TellingSample::default();
            (0..rows as u32).for_each(|row| sample.add(row));
            let step = TellingSample::step_of(rows);
            let expected: Vec<u32> = (0..rows as u32).step_by(step).collect();
            assert_eq!(sample.kept(), expected, "{rows}");
        }
    }

    #[test]
    fn a_table_without_unchanged_columns_singles_out_nobody() {
        let schema = schema();
        let age = column(vec![1, 2, 3], 0);
        let only = schema.stored().skip(4).map(|spec| (spec, &age));
        let found = UnchangedRisk::measure(only, Persons::Rows(3), &Cancellation::new()).unwrap();
        assert_eq!(found, UnchangedRisk::default());
        assert_eq!(Verdict::of(true, &found), Verdict::Holds);
        assert_eq!(Verdict::of(false, &found), Verdict::DoesNotHold);
    }

    #[test]
    fn a_release_that_singles_out_more_than_nine_percent_has_the_second_verdict() {
        let with = |singled_out_share| UnchangedRisk {
            singled_out_share,
            ..UnchangedRisk::default()
        };
        assert_eq!(Verdict::of(true, &with(0.09)), Verdict::Holds);
        assert_eq!(Verdict::of(true, &with(0.1)), Verdict::HoldsButSinglesOut);
        assert_eq!(Verdict::of(false, &with(0.1)), Verdict::DoesNotHold);
    }
}
