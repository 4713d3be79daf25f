//! A random schema, table and job.

use pais_core::definition::{Job, JobDefinition, JobError};
use pais_core::schema::Schema;
use pais_core::table::{Column, Form, NULL_CODE, ReleasedColumn, ReleasedTable};
use serde_json::{Value, json};

use crate::dice::Dice;
use crate::files::draw_format;
use pais_io::FileFormat;

/// Spellings of a few numbers.
const NUMBERS: [&str; 16] = [
    "1", "1.0", "1e0", "2", "2.00", "20e-1", "3", "3.5", "3.50", "7", "07", "-1", "-1.0", "9", "8",
    "1e17",
];

/// Spellings of a few days.
const DAYS: [&str; 8] = [
    "1987-09-03",
    "03.09.1987",
    "3.9.1987",
    " 04.09.1987",
    "1987-09-05 00:00",
    "29.02.1988",
    "1931-12-24",
    "2001-01-01",
];

/// Spellings of a few moments.
const MOMENTS: [&str; 8] = [
    "1987-09-03T10:15:00",
    "1987-09-03 10:15",
    "1987-09-03T12:15:00+02:00",
    "1987-09-03T10:15:00.5",
    "1987-09-03T10:15:00.500Z",
    "1987-09-04",
    "2001-01-01T00:00:01",
    "1931-12-24T23:59",
];

/// Spellings of a few words: with spaces around, in two Unicode forms, and some that look alike.
const WORDS: [&str; 17] = [
    "a",
    " a",
    "a ",
    "b",
    "B",
    "c,d",
    "caf\u{e9}",
    "cafe\u{301}",
    "x\"y",
    "two\nlines",
    "=1+1",
    "d",
    "e",
    "f\r",
    "a\u{200b}",
    "\u{ff41}",
    "b\u{ad}",
];

/// Leaves of the taxonomy, some with spaces around.
const LEAVES: [&str; 7] = ["p", "q", " q", "r", "s", "s ", "t"];

/// Sets of words, at the separator `|`.
const SETS: [&str; 9] = ["", "u", "u|v", "v|u", " u |w", "w", "u|v|w", "x", "NA"];

/// Sets of leaves of the taxonomy.
const LEAF_SETS: [&str; 7] = ["", "p", "p|q", "q|r|s", " s |t", "t", "NA"];

/// A random case.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) schema: Schema,
    pub(crate) raw: ReleasedTable,
    pub(crate) format: FileFormat,
    pub(crate) job: Result<Job, JobError>,
    /// The step to release, modulo the number of steps.
    pub(crate) step: u32,
}

/// What a column contains.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Content {
    Words,
    Leaves,
    Numbers,
    NumbersInDomain,
    NumbersInRanges,
    Days,
    DaysInDomain,
    Moments,
    Words2Sets,
    Leaves2Sets,
}

impl Content {
    fn cells(self) -> &'static [&'static str] {
        match self {
            Self::Words => &WORDS,
            Self::Leaves => &LEAVES,
            Self::Numbers => &NUMBERS,
            Self::NumbersInDomain | Self::NumbersInRanges => &NUMBERS[..15],
            Self::Days | Self::DaysInDomain => &DAYS,
            Self::Moments => &MOMENTS,
            Self::Words2Sets => &SETS,
            Self::Leaves2Sets => &LEAF_SETS,
        }
    }

    fn is_numeric(self) -> bool {
        let numeric = [Self::Numbers, Self::NumbersInDomain, Self::NumbersInRanges];
        numeric.contains(&self)
    }

    fn is_set(self) -> bool {
        matches!(self, Self::Words2Sets | Self::Leaves2Sets)
    }

    fn definition(self, dice: &mut Dice) -> Value {
        let tree = json!({"label": "any", "children": [
            {"label": "pq", "children": [{"label": "p"}, {"label": "q "}]},
            {"label": "rs", "children": [{"label": "r"}, {"label": "s"}]}, {"label": "t"}]});
        let ranges = json!({"label": "[-5,20]", "children": [
            {"label": "[-5,3)", "children": [{"label": "[-5,2)"}, {"label": "[2,3)"}]},
            {"label": "[3,20]"}]});
        match self {
            Self::Words => json!({}),
            Self::Leaves => json!({ "taxonomy": tree }),
            Self::Numbers if dice.chance(1, 3) => json!({"kind": "numeric", "round_range": true}),
            Self::Numbers => dice.pick(&[
                json!({"kind": "numeric"}),
                json!({"kind": "numeric", "round": 2}),
                json!({"kind": "numeric", "round": 0.3}),
                json!({"kind": "numeric", "round": 4, "round_range": true}),
            ]),
            Self::NumbersInDomain => dice.pick(&[
                json!({"kind": "numeric", "domain": [-10, 20]}),
                json!({"kind": "numeric", "domain": [-10, 20], "round": 5}),
                json!({"kind": "numeric", "domain": [-1.5, 9.5], "round": 3}),
            ]),
            Self::NumbersInRanges => json!({"kind": "numeric", "taxonomy": ranges}),
            Self::Days if dice.chance(1, 3) => {
                json!({"kind": "date", "format": "%d.%m.%Y", "round_range": true})
            }
            Self::Days => json!({"kind": "date", "format": "%d.%m.%Y"}),
            Self::DaysInDomain => json!({"kind": "date", "format": "%d.%m.%Y",
                "domain": ["1900-01-01", "2020-12-31"]}),
            Self::Moments => json!({"kind": "datetime"}),
            Self::Words2Sets => json!({"kind": "set"}),
            Self::Leaves2Sets => json!({"kind": "set", "taxonomy": tree}),
        }
    }

    fn form(self) -> Form {
        match self {
            Self::Words | Self::Leaves => Form::Text,
            Self::Days | Self::DaysInDomain | Self::Moments => Form::Text,
            Self::Numbers | Self::NumbersInDomain | Self::NumbersInRanges => Form::Number,
            Self::Words2Sets | Self::Leaves2Sets => Form::Set { separator: '|' },
        }
    }
}

impl Case {
    /// Draws a case.
    pub(crate) fn draw(dice: &mut Dice) -> Self {
        let rows = 4 + dice.below(14);
        let with_sets = dice.chance(1, 4);
        let mut columns = Vec::new();
        for _ in 0..1 + dice.below(3) {
            columns.push(("quasi_identifier", quasi_identifier(dice, with_sets)));
        }
        for _ in 0..dice.below(3) {
            let content = dice.pick(&[
                Content::Words,
                Content::Leaves,
                Content::Numbers,
                Content::Days,
            ]);
            columns.push(("sensitive", content));
        }
        if dice.chance(1, 3) {
            columns.push(("class", dice.pick(&[Content::Words, Content::Numbers])));
        }
        if dice.chance(1, 2) {
            let content = [
                Content::Words,
                Content::Numbers,
                Content::Words2Sets,
                Content::Leaves,
                Content::Moments,
            ];
            columns.push(("insensitive", dice.pick(&content)));
        }
        let format = draw_format(dice);
        let mut definitions = Vec::new();
        let mut raw = Vec::new();
        for (index, (role, content)) in columns.iter().enumerate() {
            let name = format!("c{index}");
            let mut definition = content.definition(dice);
            if *role != "quasi_identifier" {
                let fields = definition.as_object_mut().unwrap();
                fields.remove("domain");
                fields.remove("round_range");
            }
            definition["name"] = json!(name);
            definition["role"] = json!(role);
            let missing = dice.pick(&[
                None,
                None,
                Some(vec!["NA"]),
                Some(vec!["", "NA", "-1"]),
                Some(vec![]),
            ]);
            if let Some(missing) = &missing {
                definition["missing"] = json!(missing);
            }
            definitions.push(definition);
            let words = missing.unwrap_or_else(|| vec![""]);
            raw.push(column(dice, &name, *content, &words, rows, format));
        }
        let definition = json!({"name": "t", "columns": definitions});
        let schema = Schema::inline(&serde_json::from_value(definition.clone()).unwrap())
            .unwrap_or_else(|error| panic!("{error} {:?} {definition}", error.faults));
        let raw = ReleasedTable {
            name: "data".into(),
            rows,
            columns: raw,
        };
        let job = job(dice, &columns);
        let definition: JobDefinition =
            serde_json::from_value(job.clone()).unwrap_or_else(|error| panic!("{error} {job}"));
        Self {
            schema,
            raw,
            format,
            job: definition.parse(),
            step: dice.below(8) as u32,
        }
    }
}

fn quasi_identifier(dice: &mut Dice, with_sets: bool) -> Content {
    if with_sets && dice.chance(1, 2) {
        return dice.pick(&[Content::Words2Sets, Content::Leaves2Sets]);
    }
    dice.pick(&[
        Content::Words,
        Content::Leaves,
        Content::Numbers,
        Content::NumbersInDomain,
        Content::NumbersInRanges,
        Content::Days,
        Content::DaysInDomain,
        Content::Moments,
    ])
}

/// A raw column: cells of few values, so that groups are large, and some missing.
fn column(
    dice: &mut Dice,
    name: &str,
    content: Content,
    missing: &[&str],
    rows: usize,
    format: FileFormat,
) -> ReleasedColumn {
    let values: Vec<&str> = (0..1 + dice.below(5))
        .map(|_| dice.pick(content.cells()))
        .collect();
    let some_missing = dice.chance(1, 2);
    let mut column = Column::default();
    for _ in 0..rows {
        let cell = match some_missing && dice.chance(1, 5) {
            false => Some(dice.pick(&values)),
            true if format == FileFormat::CSV || dice.chance(1, 2) => missing.first().copied(),
            true => None,
        };
        let code = cell.map_or(NULL_CODE, |cell| {
            let known = column.dictionary.iter().position(|text| **text == *cell);
            known.unwrap_or_else(|| {
                column.dictionary.push(cell.into());
                column.dictionary.len() - 1
            }) as u32
        });
        column.codes.push(code);
    }
    // Words for missing are written as null in formats that have types, or as they are.
    let as_null = dice.chance(1, 2);
    let words = missing.iter().filter(|_| as_null);
    ReleasedColumn {
        name: name.into(),
        form: content.form(),
        column,
        missing: words.map(|&word| word.into()).collect(),
    }
}

fn job(dice: &mut Dice, columns: &[(&str, Content)]) -> Value {
    let sensitive: Vec<(String, Content)> = columns
        .iter()
        .enumerate()
        .filter(|(_, (role, _))| *role == "sensitive")
        .map(|(index, (_, content))| (format!("c{index}"), *content))
        .collect();
    let has_set = columns
        .iter()
        .any(|(role, content)| *role == "quasi_identifier" && content.is_set());
    let k = 1 + dice.below(4);
    let c = dice.pick(&[0.4, 0.5, 0.7, 0.9, 1.0]);
    let mut privacy = match dice.below(if has_set { 4 } else { 12 }) {
        0 => json!({"model": "k_anonymity", "k": k + 1}),
        1 if has_set => json!({"model": "k_m_anonymity", "k": k + 1, "m": 1 + dice.below(2)}),
        2 if has_set => json!({"model": "k_anonymity", "k": 2}),
        1 => json!({"model": "confidence_bounding", "c": c}),
        2 => json!({"model": "alpha_k", "alpha": c, "k": k}),
        3 | 4 => json!({"model": "lkc", "l": 1 + dice.below(3), "k": k, "c": c}),
        5 => json!({"model": "lkc", "l": 1 + dice.below(2), "k": k + 1, "c": c}),
        6..=8 => json!({"model": "l_diversity", "k": k, "l": 2 + dice.below(2)}),
        9 => json!({"model": "distinct_l_diversity", "k": k, "l": 2}),
        10 => json!({"model": "entropy_l_diversity", "k": k, "l": 1.5}),
        _ => json!({"model": "t_closeness", "k": k, "t": 0.4}),
    };
    let numeric = sensitive.iter().find(|(_, content)| content.is_numeric());
    if let Some((name, _)) = numeric
        && privacy["model"].as_str().unwrap().ends_with("l_diversity")
        && dice.chance(1, 3)
    {
        privacy["min_range"] = json!({ name.as_str(): dice.pick(&[0.5, 2.0, 6.0]) });
    }
    let bounds = ["lkc", "alpha_k", "confidence_bounding"];
    let is_bounded = bounds.contains(&privacy["model"].as_str().unwrap());
    if is_bounded && dice.chance(1, 2) {
        let mut listed = serde_json::Map::new();
        for (name, content) in &sensitive {
            listed.insert(name.clone(), json!([dice.pick(content.cells())]));
        }
        if !listed.is_empty() {
            privacy["sensitive_values"] = json!(listed);
        }
    }
    let mut job = json!({ "privacy": privacy });
    if dice.chance(1, 2) {
        job["suppression_limit"] = json!(dice.pick(&[0.1, 0.3, 0.5]));
        if is_bounded && dice.chance(1, 2) {
            job["suppression_for"] = json!("size_and_confidence");
        }
    }
    if is_bounded && dice.chance(1, 2) {
        job["missing_sensitive"] = json!(dice.pick(&["excluded", "counted"]));
    }
    if job["privacy"]["model"] == "k_anonymity" && !has_set && dice.chance(1, 2) {
        job["recoding"] = json!("local");
    }
    if is_bounded && dice.chance(1, 3) {
        let objective = dice.pick(&["discernibility", "ncp"]);
        let split = dice.pick(&["fixed", "best_valid"]);
        job["utility"] = json!({"objective": objective, "split": split});
    }
    if !is_bounded && job["privacy"]["model"] != "l_diversity" && dice.chance(1, 2) {
        let tree = columns.iter().position(|(role, content)| {
            *role == "quasi_identifier" && matches!(content, Content::Leaves | Content::Leaves2Sets)
        });
        if let Some(index) = tree {
            job["pre_generalization"] = json!({ format!("c{index}"): {"level": 1} });
        }
    }
    if dice.chance(1, 2) {
        job["seed"] = json!(dice.below(5));
    }
    job
}
