//! Tables encoded for an engine: quasi-identifiers as codes in the order of their domains.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use hashbrown::HashMap;

use crate::definition::{ColumnKind, ColumnRole};
use crate::look_alike::visible_text;
use crate::parallel;
use crate::taxonomy::{Interval, MISSING_LABEL, Multiples, Scale, Tree};

use crate::schema::{Schema, SchemaColumn};
use crate::table::codes::Codes;
use crate::table::{Column, NULL_CODE, SetColumn, Subjects, Table};

/// What the codes of a quasi-identifier mean.
#[derive(Clone, Debug)]
pub enum Domain {
    /// Codes are leaf numbers. The tree has the leaf `?` if cells are missing.
    Taxonomy(Arc<Tree>),
    /// Codes are ranks in `values`, which are numbers or dates as numbers. The code `values.len()` means a missing cell.
    Numeric {
        /// Distinct values, ascending.
        values: Vec<f64>,
        /// Lower bound of the outermost interval.
        lo: f64,
        /// Upper bound of the outermost interval.
        hi: f64,
        /// Whether any cell is missing.
        missing: bool,
        /// The scale of the values.
        scale: Scale,
        /// The multiples at which intervals end, except for the ends of a declared domain.
        round: Option<Multiples>,
        /// The ends of the intervals of a cut that is continued; none without one.
        ends: Option<ContinuedEnds>,
    },
}

/// Where the intervals of a cut that is continued end.
#[derive(Clone, Debug)]
pub struct ContinuedEnds {
    /// The ends between the outermost ones, ascending.
    pub ends: Arc<[f64]>,
    /// Whether an interval without any of them inside is split elsewhere.
    pub goes_below: bool,
}

impl ContinuedEnds {
    /// The largest end that is at most `number` and greater than `before`.
    pub fn between(&self, before: Option<f64>, number: f64) -> Option<f64> {
        let end = self.ends.partition_point(|end| *end <= number);
        let end = *self.ends.get(end.checked_sub(1)?)?;
        before.is_none_or(|before| before < end).then_some(end)
    }

    /// The smallest end that is greater than a number.
    pub fn after(&self, number: f64) -> Option<f64> {
        let end = self.ends.partition_point(|end| *end <= number);
        self.ends.get(end).copied()
    }
}

impl Domain {
    /// Number of distinct codes, including that of missing cells.
    pub fn code_count(&self) -> usize {
        match self {
            Self::Taxonomy(tree) => tree.leaf_count(),
            Self::Numeric {
                values, missing, ..
            } => values.len() + usize::from(*missing),
        }
    }

    /// Where an interval is split before the number of a code: at that number; with rounding, at the largest
    /// multiple that is at most it and below the outermost end; with a continued cut, at the largest end of
    /// that cut that is at most it, if there is one or the cut has no finer labels. `None` if no such multiple
    /// or end lies between it and the previous number.
    pub fn split_point(&self, code: u32) -> Option<f64> {
        let Self::Numeric {
            values,
            hi,
            round,
            ends,
            ..
        } = self
        else {
            return None;
        };
        let at = *values.get(code as usize)?;
        let before = (code as usize).checked_sub(1).map(|code| values[code]);
        if let Some(continued) = ends {
            let end = continued.between(before, at);
            if end.is_some() || !continued.goes_below {
                return end;
            }
        }
        let Some(round) = round else {
            return Some(at);
        };
        let end = match round.floor(at)? {
            end if end < *hi => end,
            // The upper part would be one point.
            _ => round.below(*hi)?,
        };
        before.is_none_or(|before| before < end).then_some(end)
    }

    /// Whether an interval with these codes of numbers is above a continued cut that a search goes below:
    /// an end of that cut is inside.
    pub fn is_above_continued(&self, codes: Range<u32>) -> bool {
        let Self::Numeric {
            values,
            ends: Some(continued),
            ..
        } = self
        else {
            return false;
        };
        let number = |code: u32| values.get(code as usize).copied();
        let last = codes.end.checked_sub(1).and_then(number);
        let has_end = |last| continued.between(number(codes.start), last).is_some();
        continued.goes_below && last.is_some_and(has_end)
    }
}

/// A quasi-identifier, *D_i* of the KDD'09 paper.
#[derive(Clone, Debug)]
pub struct QuasiIdentifier {
    /// The name, as in the header.
    pub name: Box<str>,
    /// Position among the stored columns of the schema.
    pub position: usize,
    /// What the codes mean.
    pub domain: Domain,
    /// One code per row.
    pub codes: Codes<'static>,
}

/// A sensitive column, *Sens* of the KDD'09 paper.
#[derive(Clone, Debug)]
pub struct SensitiveColumn {
    /// The name, as in the header.
    pub name: Box<str>,
    /// Position among the stored columns of the schema.
    pub position: usize,
    /// Distinct texts, indexed by code.
    pub values: Vec<Box<str>>,
    /// One code per row; [`crate::table::NULL_CODE`] for missing. Texts that look alike
    /// ([`crate::look_alike::visible_text`]) are one value, and have the code of the first of them.
    pub codes: Vec<u32>,
}

/// A column, raw or released, with where it is in the schema.
#[derive(Clone, Debug)]
pub struct Positioned<C = Column> {
    /// Position among the stored columns of the schema.
    pub position: usize,
    /// The column.
    pub column: C,
}

/// The column to predict. Null and each word for missing are classes of their own.
#[derive(Clone, Debug)]
pub struct ClassColumn {
    /// Number of classes.
    pub classes: usize,
    /// One code per row.
    pub codes: Codes<'static>,
}

/// A table encoded for an engine.
#[derive(Clone, Debug)]
pub struct EncodedTable {
    /// Number of rows.
    pub rows: usize,
    /// The quasi-identifiers with one value per cell, in the declared order.
    pub quasi_identifiers: Vec<QuasiIdentifier>,
    /// The set-valued quasi-identifiers, in the declared order.
    pub sets: Vec<SetColumn>,
    /// The sensitive columns, in the declared order.
    pub sensitive: Vec<SensitiveColumn>,
    /// The class column.
    pub class: Option<ClassColumn>,
    /// The person of each row, if the schema has a subject column and any person has several rows.
    /// Otherwise each row is a person of its own.
    pub subjects: Option<Arc<Subjects>>,
    /// The columns that are released unchanged: sensitive, class, insensitive.
    pub untouched: Vec<Positioned>,
}

impl EncodedTable {
    /// Encodes a table whose cells were checked against `schema` when they were read. It is
    /// brought to canonical form first, with rounded numbers ([`Table::as_released`]).
    ///
    /// Reads the text of each distinct value once, and makes one pass over the codes of each
    /// column; quasi-identifiers side by side.
    pub fn new(schema: &Schema, table: Table) -> Self {
        let table = table.as_released(schema);
        let mut encoded = Self {
            rows: table.rows,
            quasi_identifiers: Vec::new(),
            sets: Vec::new(),
            sensitive: Vec::new(),
            class: None,
            subjects: None,
            untouched: Vec::new(),
        };
        let mut quasi_identifiers = Vec::new();
        for (position, (spec, column)) in schema.stored().zip(table.columns).enumerate() {
            match spec.role {
                ColumnRole::Identifier => {}
                ColumnRole::Subject => encoded.subjects = Subjects::new(column).map(Arc::new),
                ColumnRole::QuasiIdentifier if spec.kind == ColumnKind::Set => {
                    encoded.sets.push(SetColumn::new(spec, position, column));
                }
                ColumnRole::QuasiIdentifier => quasi_identifiers.push((spec, position, column)),
                ColumnRole::Sensitive => {
                    encoded.sensitive.push(sensitive(spec, position, &column));
                    encoded.untouched.push(Positioned { position, column });
                }
                ColumnRole::Class => {
                    encoded.class = Some(classes(&column));
                    encoded.untouched.push(Positioned { position, column });
                }
                ColumnRole::Insensitive => encoded.untouched.push(Positioned { position, column }),
            }
        }
        encoded.quasi_identifiers = parallel::map(quasi_identifiers, |(spec, position, column)| {
            quasi_identifier(spec, position, column)
        });
        encoded
    }
}

fn quasi_identifier(spec: &SchemaColumn, position: usize, column: Column) -> QuasiIdentifier {
    let null = column.codes.contains(&NULL_CODE);
    let is_missing = |text: &str| spec.is_generalized_as_missing(text);
    let missing = null || column.dictionary.iter().any(|text| is_missing(text));
    let (domain, missing_code, map) = if spec.has_grown_intervals() {
        grown(spec, &column.dictionary, missing)
    } else {
        categorical(spec, &column.dictionary, missing, is_missing)
    };
    let code = |&code: &u32| map.get(code as usize).copied().unwrap_or(missing_code);
    // From the codes themselves: a truncated code would be another value, also for the verifier.
    let greatest = map
        .iter()
        .copied()
        .chain(null.then_some(missing_code))
        .max();
    let count = greatest.map_or(0, |greatest| greatest as usize + 1);
    let codes = Codes::computed(column.codes.len(), count, &|rows, out| {
        out.extend(column.codes[rows].iter().map(code));
    });
    QuasiIdentifier {
        name: spec.name.clone(),
        position,
        domain,
        codes,
    }
}

/// The domain, the code of missing cells, and the new code of each old code.
type Recoded = (Domain, u32, Vec<u32>);

/// The numbers or dates of a column in their order.
pub(crate) struct RankedNumbers {
    /// Distinct ones, ascending.
    pub(crate) values: Vec<f64>,
    /// By code, the place among them; `None` for text that is missing or no number.
    pub(crate) rank: Vec<Option<u32>>,
}

impl RankedNumbers {
    pub(crate) fn of(spec: &SchemaColumn, dictionary: &[Box<str>]) -> Self {
        let scale = spec.scale();
        let number = |text: &str| scale.value(text).filter(|_| !spec.is_missing(text));
        let numbers: Vec<Option<f64>> = dictionary.iter().map(|text| number(text)).collect();
        let mut values: Vec<f64> = numbers.iter().copied().flatten().collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        let rank = |number: f64| values.partition_point(|other| *other < number) as u32;
        let rank = numbers.into_iter().map(|number| number.map(rank));
        Self {
            rank: rank.collect(),
            values,
        }
    }

    /// The ends of the outermost interval of a column with these numbers. `None` if there is none: without
    /// numbers, or if it would be a single number that also stands for `missing` cells.
    pub(crate) fn outermost(&self, spec: &SchemaColumn, missing: bool) -> Option<(f64, f64)> {
        let range = self.values.first().zip(self.values.last());
        let range = range.map(|(&lo, &hi)| (lo, hi));
        let (lo, hi) = match (spec.domain, range) {
            (Some(domain), _) => domain,
            (None, Some((lo, hi))) => {
                let (lo, hi) = if spec.round_range {
                    spec.scale().widened(lo, hi)
                } else {
                    (lo, hi)
                };
                let rounded = spec.round.map(|round| round.enclosing(lo, hi, None));
                rounded.unwrap_or((lo, hi))
            }
            (None, None) => return None,
        };
        (lo < hi || !missing).then_some((lo, hi))
    }
}

/// A column whose intervals are grown; with a flat tree if its numbers span no interval.
fn grown(spec: &SchemaColumn, dictionary: &[Box<str>], missing: bool) -> Recoded {
    let scale = spec.scale();
    let ranked = RankedNumbers::of(spec, dictionary);
    let outermost = ranked.outermost(spec, missing);
    let RankedNumbers { values, rank } = ranked;
    let missing_code = values.len() as u32;
    let map = rank.into_iter().map(|rank| rank.unwrap_or(missing_code));
    let map = map.collect();
    let domain = match outermost {
        Some((lo, hi)) => Domain::Numeric {
            values,
            lo,
            hi,
            missing,
            scale,
            round: spec.round,
            ends: None,
        },
        None => {
            let label = |&value| Interval::closed(value, value).on(scale).to_string();
            let labels: Vec<String> = values.iter().map(label).collect();
            let missing = missing.then_some(MISSING_LABEL);
            Domain::Taxonomy(Arc::new(Tree::flat(
                labels.iter().map(String::as_str).chain(missing),
            )))
        }
    };
    (domain, missing_code, map)
}

fn categorical(
    spec: &SchemaColumn,
    dictionary: &[Box<str>],
    missing: bool,
    is_missing: impl Fn(&str) -> bool,
) -> Recoded {
    let tree = match &spec.tree {
        Some(tree) if missing => Arc::new(tree.with_missing_leaf()),
        Some(tree) => Arc::clone(tree),
        None => {
            let present = dictionary
                .iter()
                .map(AsRef::as_ref)
                .filter(|text| !is_missing(text));
            let mut values: Vec<&str> = present.collect();
            values.sort_unstable();
            values.extend(missing.then_some(MISSING_LABEL));
            Arc::new(Tree::flat(values))
        }
    };
    // If no cell is missing, no row has this code.
    let missing_code = tree.missing_leaf().unwrap_or(0);
    let leaf = |text: &str| match &spec.tree {
        Some(_) => spec.leaf(text),
        None => tree.leaf_number(text),
    };
    let map = dictionary
        .iter()
        .map(|text| {
            if is_missing(text) {
                missing_code
            } else {
                leaf(text).unwrap_or(missing_code)
            }
        })
        .collect();
    (Domain::Taxonomy(tree), missing_code, map)
}

fn sensitive(spec: &SchemaColumn, position: usize, column: &Column) -> SensitiveColumn {
    let mut first_of: HashMap<Cow<'_, str>, u32> = HashMap::new();
    let mut values: Vec<u32> = Vec::with_capacity(column.dictionary.len());
    // In canonical form, different ASCII texts look different.
    let is_ascii = column.dictionary.iter().all(|text| text.is_ascii());
    for (code, text) in (0..).zip(&column.dictionary) {
        let visible = if is_ascii {
            Cow::Borrowed(&**text)
        } else {
            visible_text(text)
        };
        values.push(if spec.is_missing(text) || spec.is_missing(&visible) {
            NULL_CODE
        } else if is_ascii {
            code
        } else {
            *first_of.entry(visible).or_insert(code)
        });
    }
    let codes = column.codes.iter();
    let codes = codes.map(|&code| values.get(code as usize).copied().unwrap_or(NULL_CODE));
    let codes = codes.collect();
    SensitiveColumn {
        name: spec.name.clone(),
        position,
        values: column.dictionary.clone(),
        codes,
    }
}

fn classes(column: &Column) -> ClassColumn {
    let null = column.dictionary.len() as u32;
    let classes = column.dictionary.len() + 1;
    let codes = Codes::computed(column.codes.len(), classes, &|rows, out| {
        out.extend(column.codes[rows].iter().map(|&code| code.min(null)));
    });
    ClassColumn { classes, codes }
}
