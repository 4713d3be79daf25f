//! Medical receipts as a health insurer has them: birth year, gender, date of treatment, the
//! diseases found (ICD-9-CM categories) and the drugs prescribed. These are the columns of the
//! receipts in the 2014 paper (Section 6).
//!
//! The frequencies of diseases and drugs and the sizes of the sets follow Zipf's law: a few
//! diseases and drugs are on most receipts, and most of them on few. The diseases depend on age and
//! gender, and the drugs on the diseases, so that items occur together as they do on prescriptions.

use std::fmt::Write as _;
use std::io::Write;

use serde_json::{Value, json};

use super::draw::Draw;

/// The birth years, and the year of treatment.
const YEARS: std::ops::RangeInclusive<i64> = 1920..=2019;
const TREATED: i64 = 2024;

/// Number of days of each month in the year of treatment.
const DAYS: [i64; 12] = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/// Maximum number of diseases and of drugs on a receipt.
const MOST_DISEASES: usize = 24;
const MOST_DRUGS: usize = 40;

/// The anatomical groups of drugs, and the number of substances in each.
const DRUG_GROUPS: [(&str, usize); 14] = [
    ("A Alimentary tract", 96),
    ("B Blood", 40),
    ("C Cardiovascular", 120),
    ("D Skin", 72),
    ("G Genitourinary", 48),
    ("H Hormones", 32),
    ("J Infections", 110),
    ("L Neoplasms and immunity", 64),
    ("M Muscles and bones", 60),
    ("N Nerves", 130),
    ("P Parasites", 24),
    ("R Airways", 84),
    ("S Eyes and ears", 60),
    ("V Various", 20),
];

/// Number of substances in a subgroup.
const SUBGROUP: usize = 8;

/// For each chapter of ICD-9-CM: its frequency at the ages 0, 20, 40, 60 and 80, and the groups of
/// drugs for its diseases, the most frequent group first.
const CHAPTERS: [([f64; 5], [usize; 3]); 19] = [
    ([9.0, 5.0, 4.0, 4.0, 4.0], [6, 10, 0]),
    ([0.5, 1.0, 3.0, 7.0, 8.0], [7, 9, 1]),
    ([2.0, 4.0, 9.0, 14.0, 13.0], [0, 2, 5]),
    ([1.0, 1.5, 1.5, 2.0, 3.0], [1, 0, 7]),
    ([2.0, 7.0, 8.0, 6.0, 7.0], [9, 9, 0]),
    ([9.0, 6.0, 7.0, 9.0, 12.0], [12, 9, 2]),
    ([0.5, 2.0, 9.0, 19.0, 26.0], [2, 1, 2]),
    ([24.0, 13.0, 10.0, 9.0, 10.0], [11, 6, 9]),
    ([5.0, 8.0, 9.0, 9.0, 9.0], [0, 6, 9]),
    ([2.0, 8.0, 8.0, 7.0, 7.0], [4, 6, 9]),
    ([0.0, 6.0, 3.0, 0.0, 0.0], [4, 1, 0]),
    ([8.0, 9.0, 6.0, 5.0, 5.0], [3, 6, 5]),
    ([1.0, 6.0, 12.0, 14.0, 14.0], [8, 9, 8]),
    ([2.0, 0.5, 0.3, 0.2, 0.1], [2, 9, 13]),
    ([1.0, 0.0, 0.0, 0.0, 0.0], [11, 6, 13]),
    ([10.0, 9.0, 9.0, 8.0, 8.0], [9, 0, 8]),
    ([8.0, 9.0, 6.0, 5.0, 6.0], [8, 9, 3]),
    ([9.0, 6.0, 5.0, 5.0, 5.0], [13, 6, 4]),
    ([0.5, 0.5, 0.3, 0.3, 0.4], [8, 9, 3]),
];

/// The index of the chapter on pregnancy.
const PREGNANCY: usize = 10;

/// The taxonomy of diagnoses.
fn diagnoses() -> Value {
    // The file is part of this crate, and a test checks that it is valid.
    serde_json::from_str(include_str!("data/icd9cm.json")).unwrap_or_default()
}

/// The categories of each chapter, in the order of the taxonomy.
fn categories() -> Vec<Vec<String>> {
    fn leaves(node: &Value, found: &mut Vec<String>) {
        match node["children"].as_array() {
            Some(children) => children.iter().for_each(|child| leaves(child, found)),
            None => found.extend(node["label"].as_str().map(str::to_owned)),
        }
    }
    let tree = diagnoses();
    let chapters = tree["children"].as_array().into_iter().flatten();
    chapters
        .map(|chapter| {
            let mut found = Vec::new();
            leaves(chapter, &mut found);
            found
        })
        .collect()
}

/// A category of diagnoses.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Disease {
    /// The index of its chapter.
    chapter: usize,
    /// Its index in the chapter.
    place: usize,
}

/// A substance.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Drug {
    /// The index of its group.
    group: usize,
    /// Its index in the group.
    number: usize,
}

impl Drug {
    /// The letter of its group and its number in the group.
    fn label(self) -> String {
        format!("{}{:03}", &DRUG_GROUPS[self.group].0[..1], self.number + 1)
    }
}

fn drugs() -> Value {
    let groups = DRUG_GROUPS
        .iter()
        .enumerate()
        .map(|(group, (label, count))| {
            let drug = |number| Drug { group, number }.label();
            let subgroups = (0..*count).step_by(SUBGROUP).map(|first| {
                let last = (first + SUBGROUP).min(*count);
                let leaves: Vec<Value> = (first..last)
                    .map(|number| json!({ "label": drug(number) }))
                    .collect();
                let label = format!("{} to {}", drug(first), drug(last - 1));
                json!({ "label": label, "children": leaves })
            });
            json!({ "label": label, "children": subgroups.collect::<Vec<_>>() })
        });
    json!({ "label": "Any drug", "children": groups.collect::<Vec<_>>() })
}

/// The taxonomy of birth years, as intervals of 1, 5, 10, 20 and 100 years.
fn birth_years() -> Value {
    let (first, end) = (*YEARS.start(), *YEARS.end() + 1);
    let node = |lo: i64, hi: i64, children: Vec<Value>| {
        let label = format!("[{lo},{hi}{}", if hi == end { ']' } else { ')' });
        if children.is_empty() {
            json!({ "label": label })
        } else {
            json!({ "label": label, "children": children })
        }
    };
    let mut level: Vec<(i64, i64, Value)> = (first..end)
        .map(|year| (year, year + 1, Value::Null))
        .collect();
    for width in [1, 5, 2, 2, 5] {
        let grouped = level.chunks(width).map(|part| {
            let (lo, hi) = (part[0].0, part[part.len() - 1].1);
            let children: Vec<Value> = match width {
                1 => Vec::new(),
                _ => part.iter().map(|(.., node)| node.clone()).collect(),
            };
            (lo, hi, node(lo, hi, children))
        });
        level = grouped.collect();
    }
    level.pop().map_or(Value::Null, |(.., root)| root)
}

/// The taxonomy of days, by month and quarter.
fn days() -> Value {
    let day = |month: usize, day: i64| format!("{TREATED}-{:02}-{day:02}", month + 1);
    let month = |month: usize| {
        let days: Vec<Value> = (1..=DAYS[month])
            .map(|number| json!({ "label": day(month, number) }))
            .collect();
        json!({ "label": format!("{TREATED}-{:02}", month + 1), "children": days })
    };
    let quarters = (0..4).map(|quarter| {
        let months: Vec<Value> = (quarter * 3..quarter * 3 + 3).map(month).collect();
        json!({ "label": format!("{TREATED}-Q{}", quarter + 1), "children": months })
    });
    json!({ "label": TREATED.to_string(), "children": quarters.collect::<Vec<_>>() })
}

/// The body of `POST /v1/datasets`.
pub fn schema() -> Value {
    let genders = json!({ "label": "Any gender",
        "children": [{ "label": "Female" }, { "label": "Male" }] });
    json!({
        "name": "receipts",
        "description": "Medical receipts of persons who do not exist",
        "columns": [
            { "name": "receipt", "role": "identifier" },
            { "name": "birth_year", "role": "quasi_identifier", "kind": "numeric",
              "taxonomy": birth_years() },
            { "name": "gender", "role": "quasi_identifier", "taxonomy": genders },
            { "name": "treatment_date", "role": "quasi_identifier", "taxonomy": days() },
            { "name": "diseases", "role": "quasi_identifier", "kind": "set",
              "taxonomy": diagnoses() },
            { "name": "drugs", "role": "quasi_identifier", "kind": "set", "taxonomy": drugs() },
        ],
    })
}

/// The body of `POST /v1/jobs`, with the *k* of the paper's experiments.
pub fn job() -> Value {
    json!({
        "privacy": { "model": "k_anonymity", "k": 10 },
        "suppression_limit": 0.01,
        "release": true,
    })
}

/// Writes the rows as CSV, with a header.
///
/// # Errors
/// Those of `out`.
pub fn write_csv(rows: u64, seed: u64, out: &mut dyn Write) -> std::io::Result<()> {
    let categories = categories();
    writeln!(
        out,
        "receipt,birth_year,gender,treatment_date,diseases,drugs"
    )?;
    let mut line = String::new();
    for row in 0..rows {
        line.clear();
        record(row, &categories, &mut Draw::of(seed, row), &mut line);
        out.write_all(line.as_bytes())?;
    }
    Ok(())
}

fn record(row: u64, categories: &[Vec<String>], draw: &mut Draw, line: &mut String) {
    let age = draw.normal(48.0, 24.0).clamp(5.0, 104.0) as i64;
    let year = (TREATED - age).clamp(*YEARS.start(), *YEARS.end());
    let woman = draw.chance(0.54);
    let month = draw.below(12);
    let day = draw.between(1, DAYS[month]);
    // Older patients have more diseases.
    let most = if age < 60 {
        MOST_DISEASES / 2
    } else {
        MOST_DISEASES
    };
    let diseases = chosen_diseases(categories, age, woman, 1 + draw.skewed(most), draw);
    let drugs = chosen_drugs(&diseases, draw);
    let gender = if woman { "Female" } else { "Male" };
    // Writing to a string does not fail.
    let _ = write!(
        line,
        "{row},{year},{gender},{TREATED}-{:02}-{day:02},",
        month + 1
    );
    let labels = diseases.iter().map(|it| &*categories[it.chapter][it.place]);
    join(line, labels);
    line.push(',');
    let labels: Vec<String> = drugs.iter().map(|drug| drug.label()).collect();
    join(line, labels.iter().map(String::as_str));
    line.push('\n');
}

fn join<'a>(line: &mut String, items: impl Iterator<Item = &'a str>) {
    for (index, item) in items.enumerate() {
        if index > 0 {
            line.push('|');
        }
        line.push_str(item);
    }
}

/// Draws up to `wanted` different diseases of a patient, but at least one.
fn chosen_diseases(
    categories: &[Vec<String>],
    age: i64,
    woman: bool,
    wanted: usize,
    draw: &mut Draw,
) -> Vec<Disease> {
    let decade = (age as f64 / 20.0).min(3.999);
    let (before, share) = (decade as usize, decade.fract());
    let weights = CHAPTERS.map(|(at, _)| at[before] * (1.0 - share) + at[before + 1] * share);
    let mut found: Vec<Disease> = Vec::with_capacity(wanted);
    for _ in 0..wanted {
        let chapter = draw.weighted(&weights).min(categories.len() - 1);
        if chapter == PREGNANCY && !woman {
            continue;
        }
        let place = shuffled(chapter, draw.skewed(categories[chapter].len()), categories);
        let disease = Disease { chapter, place };
        if !found.contains(&disease) {
            found.push(disease);
        }
    }
    if found.is_empty() {
        found.push(Disease {
            chapter: 7,
            place: shuffled(7, 0, categories),
        });
    }
    found
}

/// The index of the category with a given frequency rank. The ranks are shuffled, because codes are
/// not in the order of their frequency.
fn shuffled(chapter: usize, rank: usize, categories: &[Vec<String>]) -> usize {
    let count = categories[chapter].len();
    // A step that is coprime to the count reaches every index.
    let shared = |step: usize, by: usize| step.is_multiple_of(by) && count.is_multiple_of(by);
    let coprime = |step: &usize| !(2..=*step).any(|by| shared(*step, by));
    let step = (7 + chapter..).find(coprime).unwrap_or(1);
    (rank * step + chapter) % count
}

/// Draws the drugs for some diseases. Each disease has a few typical drugs, drawn by Zipf's law, and some
/// drugs occur on receipts of any kind.
fn chosen_drugs(diseases: &[Disease], draw: &mut Draw) -> Vec<Drug> {
    let mut found: Vec<Drug> = Vec::new();
    let mut add = |group, number| {
        let drug = Drug { group, number };
        if found.len() < MOST_DRUGS && !found.contains(&drug) {
            found.push(drug);
        }
    };
    for &Disease { chapter, place } in diseases {
        let (_, groups) = CHAPTERS[chapter];
        for _ in 0..1 + draw.skewed(4) {
            let group = groups[draw.weighted(&[6.0, 3.0, 1.0])];
            let count = DRUG_GROUPS[group].1;
            // Half of the drugs are drawn from the whole group, the others are typical of the
            // disease.
            let number = if draw.chance(0.5) {
                draw.skewed(count)
            } else {
                (place * 5 + draw.skewed(8)) % count
            };
            add(group, number);
        }
    }
    if draw.chance(0.35) {
        add(9, draw.skewed(6));
    }
    if draw.chance(0.25) {
        add(0, draw.skewed(6));
    }
    found
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use pais_core::definition::{DatasetDefinition, JobDefinition};
    use pais_core::schema::Schema;
    use pais_core::taxonomy::TreeLimits;
    use pais_io::read::{ReadLimits, csv};

    fn written(rows: u64) -> String {
        let mut out = Vec::new();
        write_csv(rows, 7, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn resolved() -> Schema {
        let definition: DatasetDefinition = serde_json::from_value(schema()).unwrap();
        let limits = TreeLimits {
            leaves: 10_000,
            depth: 10,
        };
        Schema::resolve(&definition, limits, |_| None).unwrap()
    }

    #[test]
    fn sets_are_skewed_and_correlated() {
        let text = written(4000);
        assert!(
            text.starts_with(&written(10)),
            "the first rows are the same"
        );
        let mut sizes = [BTreeSet::new(), BTreeSet::new()];
        let mut frequency: BTreeMap<&str, u32> = BTreeMap::new();
        let mut of_airways = [0u32; 2];
        for line in text.lines().skip(1) {
            let cells: Vec<&str> = line.split(',').collect();
            for (sizes, cell) in sizes.iter_mut().zip(&cells[4..]) {
                let items: BTreeSet<&str> = cell.split('|').collect();
                assert_eq!(
                    items.len(),
                    cell.split('|').count(),
                    "an item occurs twice: {line}"
                );
                sizes.insert(items.len());
            }
            for item in cells[5].split('|') {
                *frequency.entry(item).or_default() += 1;
            }
            let coughs = cells[4]
                .split('|')
                .any(|code| ("460".."520").contains(&code));
            let airways = cells[5].split('|').any(|drug| drug.starts_with('R'));
            of_airways[usize::from(coughs)] += u32::from(airways);
        }
        for sizes in sizes {
            assert!(
                sizes.contains(&1) && sizes.iter().all(|&size| size <= 40),
                "{sizes:?}"
            );
            assert!(sizes.last() > Some(&10), "{sizes:?}");
        }
        let mut counts: Vec<u32> = frequency.into_values().collect();
        counts.sort_unstable();
        let most = counts[counts.len() - 1];
        assert!(most > 20 * counts[counts.len() / 2], "most drugs are rare");
        assert!(of_airways[1] > of_airways[0], "{of_airways:?}");
    }

    #[test]
    fn rows_match_the_schema() {
        let job: JobDefinition = serde_json::from_value(job()).unwrap();
        job.parse().unwrap();
        let mut rows = 0;
        let read = csv::read(
            &resolved(),
            written(2000).as_bytes(),
            ReadLimits::default(),
            |chunk| {
                rows += chunk.rows;
                Ok::<_, std::convert::Infallible>(())
            },
        );
        assert!(read.is_ok());
        assert_eq!(rows, 2000);
    }
}
