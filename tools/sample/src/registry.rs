//! A cancer registry: birth date, gender, race and zip code as quasi-identifiers, seven sensitive
//! columns with skewed values that depend on each other. This is the shape of the table in the
//! experiments of the paper on multiple sensitive attributes (Gal, Chen, Gangopadhyay 2008,
//! *Setup*).
//!
//! `recurrence` has 31 values, and most records have one of a few. So it needs a column limit of
//! its own.

use std::io::Write;

use serde_json::{Value, json};

use super::draw::Draw;

/// The races, and their frequencies.
const RACES: [&str; 6] = [
    "White",
    "Black",
    "Asian",
    "Hispanic",
    "Native American",
    "Other",
];
const RACE_WEIGHTS: [f64; 6] = [86.0, 9.0, 1.5, 2.0, 0.5, 1.0];

/// The sites: first three characters of the topography, number of subsites, share of women, mean
/// age at diagnosis, family of the histology, mean survival in years, and frequency.
const SITES: [(&str, usize, f64, f64, i64, f64, f64); 16] = [
    ("C02", 8, 0.35, 62.0, 8050, 4.0, 2.0),
    ("C16", 9, 0.40, 68.0, 8140, 2.5, 2.0),
    ("C18", 10, 0.50, 70.0, 8140, 6.0, 11.0),
    ("C20", 2, 0.42, 67.0, 8140, 6.0, 4.0),
    ("C22", 2, 0.32, 65.0, 8170, 1.5, 1.5),
    ("C25", 10, 0.49, 69.0, 8500, 1.0, 3.0),
    ("C34", 9, 0.44, 68.0, 8040, 2.0, 18.0),
    ("C44", 10, 0.42, 60.0, 8720, 11.0, 5.0),
    ("C50", 10, 0.99, 61.0, 8500, 11.0, 16.0),
    ("C53", 4, 1.00, 49.0, 8070, 9.0, 2.0),
    ("C54", 6, 1.00, 63.0, 8380, 10.0, 3.0),
    ("C61", 1, 0.00, 67.0, 8140, 12.0, 14.0),
    ("C64", 1, 0.38, 63.0, 8310, 7.0, 3.5),
    ("C67", 10, 0.25, 70.0, 8120, 7.0, 5.0),
    ("C73", 1, 0.76, 48.0, 8260, 14.0, 2.5),
    ("C77", 9, 0.46, 60.0, 9680, 6.0, 6.0),
];

/// The body of `POST /v1/datasets`.
pub fn schema() -> Value {
    let known =
        |name: &str, kind: &str| json!({"name": name, "role": "quasi_identifier", "kind": kind});
    let sensitive =
        |name: &str, kind: &str| json!({"name": name, "role": "sensitive", "kind": kind});
    json!({
        "name": "registry",
        "description": "Cancer patients who do not exist",
        "columns": [
            { "name": "patient", "role": "identifier" },
            known("birth_date", "numeric"),
            known("gender", "categorical"),
            known("race", "categorical"),
            known("zip", "numeric"),
            sensitive("topography", "categorical"),
            sensitive("histology", "categorical"),
            sensitive("recurrence", "categorical"),
            sensitive("survival_years", "numeric"),
            sensitive("diagnosis_date", "numeric"),
            sensitive("age_at_diagnosis", "numeric"),
            sensitive("tumor_size", "numeric"),
        ],
    })
}

/// The body of `POST /v1/jobs`, without the dataset: *k* = 50 and *l* = 10, as in the paper.
pub fn job() -> Value {
    json!({
        "privacy": {
            "model": "l_diversity", "k": 50, "l": 10, "column_limits": { "recurrence": 2 },
        },
        "release": true,
    })
}

/// Writes the rows as CSV, with a header.
///
/// # Errors
/// Those of `out`.
pub fn write_csv(rows: u64, seed: u64, out: &mut dyn Write) -> std::io::Result<()> {
    writeln!(
        out,
        "patient,birth_date,gender,race,zip,topography,histology,recurrence,survival_years,\
         diagnosis_date,age_at_diagnosis,tumor_size"
    )?;
    (0..rows).try_for_each(|row| record(row, &mut Draw::of(seed, row), out))
}

/// Writes one row.
fn record(row: u64, draw: &mut Draw, out: &mut dyn Write) -> std::io::Result<()> {
    let weights = SITES.map(|site| site.6);
    let (site, subsites, women, mean_age, family, mean_survival, _) =
        SITES[draw.weighted(&weights)];
    let gender = if draw.chance(women) { "F" } else { "M" };
    let race = RACES[draw.weighted(&RACE_WEIGHTS)];
    let age = draw.normal(mean_age, 12.0).clamp(1.0, 103.0) as i64;
    let (year, month, day) = (
        draw.between(1995, 2006),
        draw.between(1, 12),
        draw.between(1, 28),
    );
    // In the year of diagnosis the birthday may be after the diagnosis.
    let born = year - age - i64::from(draw.chance(0.5));
    let born = born * 10_000 + draw.between(1, 12) * 100 + draw.between(1, 28);
    let zip = 40_003 + 3 * draw.skewed(900) as i64;
    let topography = format!("{site}.{}", draw.skewed(subsites));
    // Most tumours have the family of histologies of their site; some have another one.
    let family = if draw.chance(0.12) { 8000 } else { family };
    let histology = format!("{}/3", family + draw.skewed(40) as i64);
    let size = if draw.chance(0.08) {
        999
    } else {
        (draw.normal(32.0, 9.0) * (0.2 + 1.8 * draw.fraction())).clamp(1.0, 250.0) as i64
    };
    // Survival is shorter for larger tumours and older patients.
    let burden = f64::from(size.min(250) as i32) / 60.0 + (age - 40).max(0) as f64 / 60.0;
    let survival = (mean_survival * 2.0 * draw.fraction() / (0.5 + burden)).min(30.0) as i64;
    let recurrence = if draw.chance(0.35) {
        0
    } else {
        draw.skewed(31)
    };
    writeln!(
        out,
        "{row},{born},{gender},{race},{zip},{topography},{histology},R{recurrence:02},{survival},\
         {date},{age},{size}",
        date = year * 10_000 + month * 100 + day,
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    fn text(rows: u64, seed: u64) -> String {
        let mut out = Vec::new();
        super::write_csv(rows, seed, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_first_rows_do_not_depend_on_the_number_of_rows() {
        let long = text(200, 3);
        assert!(long.starts_with(&text(50, 3)));
        assert_ne!(long, text(200, 4));
    }

    #[test]
    fn recurrence_has_few_values_and_the_others_many() {
        let text = text(20_000, 1);
        let distinct = |column: usize| {
            let cells = text
                .lines()
                .skip(1)
                .map(|line| line.split(',').nth(column).unwrap());
            cells.collect::<BTreeSet<_>>().len()
        };
        assert_eq!(distinct(7), 31);
        assert!(distinct(5) > 90 && distinct(6) > 200 && distinct(9) > 3000);
        assert_eq!((distinct(2), distinct(3)), (2, 6));
    }
}
