//! Hospital encounters: one row for each stay, and several stays for many patients. The column
//! `patient_id` is the subject: a privacy model counts patients, not rows.
//!
//! A patient has 1 to 30 stays, most have few. The stays of a patient follow each other, at a growing age and
//! mostly in one region; a chronic diagnosis comes back. So the rows of a patient are similar, and counting
//! rows would mistake one patient for many.

use std::io::Write;

use serde_json::{Value, json};

use super::draw::Draw;
use super::labels;

/// Maximum number of stays of a patient.
const MOST_STAYS: usize = 30;

/// The first year, and the last.
const YEARS: (i64, i64) = (2015, 2024);

/// The diagnoses: name, usual ward, mean age, share of women, chance that it comes back at the next
/// stay, and frequency.
const DIAGNOSES: [(&str, &str, f64, f64, f64, f64); 16] = [
    ("Appendicitis", "General surgery", 31.0, 0.48, 0.02, 6.0),
    ("Asthma", "General medicine", 38.0, 0.58, 0.60, 6.0),
    ("Birth", "Maternity", 31.0, 1.00, 0.15, 9.0),
    ("Breast cancer", "Oncology", 62.0, 0.99, 0.85, 5.0),
    ("Burn", "Burns unit", 36.0, 0.34, 0.10, 2.0),
    (
        "Chronic kidney disease",
        "Nephrology",
        66.0,
        0.45,
        0.90,
        6.0,
    ),
    ("Colon cancer", "Oncology", 69.0, 0.46, 0.80, 5.0),
    ("Depression", "General medicine", 44.0, 0.62, 0.55, 6.0),
    ("Diabetes", "General medicine", 61.0, 0.47, 0.70, 9.0),
    ("Gallstones", "Gastroenterology", 55.0, 0.66, 0.15, 7.0),
    ("HIV infection", "General medicine", 43.0, 0.25, 0.75, 1.5),
    ("Heart failure", "General medicine", 76.0, 0.49, 0.75, 10.0),
    ("Hip fracture", "Orthopaedics", 79.0, 0.71, 0.10, 6.0),
    ("Leukaemia", "Haematology", 52.0, 0.45, 0.90, 2.5),
    (
        "Myocardial infarction",
        "Cardiac surgery",
        67.0,
        0.34,
        0.30,
        8.0,
    ),
    ("Trauma", "Trauma care", 39.0, 0.36, 0.08, 11.0),
];

/// How a patient came in.
const ADMISSIONS: [&str; 3] = ["planned", "urgent", "emergency"];

/// How the stay ended: the class.
const RESULTS: [&str; 4] = ["home", "care home", "other hospital", "died"];

/// The body of `POST /v1/datasets`.
pub fn schema() -> Value {
    json!({
        "name": "encounters",
        "description": "Hospital stays of persons who do not exist, several for many of them",
        "columns": [
            { "name": "encounter_id", "role": "identifier" },
            { "name": "patient_id", "role": "subject" },
            { "name": "sex", "role": "quasi_identifier" },
            { "name": "age", "role": "quasi_identifier", "kind": "numeric", "domain": [0, 110] },
            { "name": "region", "role": "quasi_identifier", "taxonomy": labels::districts() },
            { "name": "ward", "role": "quasi_identifier", "taxonomy": labels::wards() },
            { "name": "admission_type", "role": "quasi_identifier" },
            { "name": "year", "role": "quasi_identifier", "kind": "numeric" },
            { "name": "length_of_stay", "role": "insensitive", "kind": "numeric" },
            { "name": "diagnosis", "role": "sensitive" },
            { "name": "result", "role": "class" },
        ],
    })
}

/// The body of `POST /v1/jobs`, without the dataset.
pub fn job() -> Value {
    json!({
        "privacy": {
            "model": "lkc", "l": 3, "k": 10, "c": 0.5,
            "sensitive_values": { "diagnosis": ["HIV infection", "Depression"] },
        },
        "utility": { "objective": "classification" },
        "release": true,
    })
}

/// Writes the rows as CSV, with a header. The last patient may have fewer stays than drawn.
///
/// # Errors
/// Those of `out`.
pub fn write_csv(rows: u64, seed: u64, out: &mut dyn Write) -> std::io::Result<()> {
    writeln!(
        out,
        "encounter_id,patient_id,sex,age,region,ward,admission_type,year,length_of_stay,diagnosis,\
         result"
    )?;
    let mut row = 0;
    for number in 0.. {
        if row >= rows {
            break;
        }
        let mut patient = Patient::drawn(number, Draw::of(seed, number));
        for _ in 0..patient.stays.min(rows - row) {
            patient.write_stay(row, out)?;
            row += 1;
        }
    }
    Ok(())
}

/// A patient during the generation of stays.
struct Patient {
    id: u64,
    draw: Draw,
    stays: u64,
    woman: bool,
    age: i64,
    year: i64,
    district: usize,
    diagnosis: usize,
}

impl Patient {
    fn drawn(number: u64, mut draw: Draw) -> Self {
        let diagnosis = draw.weighted(&DIAGNOSES.map(|(.., frequency)| frequency));
        let (_, _, mean_age, women, _, _) = DIAGNOSES[diagnosis];
        let deviation = if women == 1.0 { 5.0 } else { 13.0 };
        // The number of stays is skewed twice: most patients have one or two.
        let most = 1 + draw.skewed(MOST_STAYS);
        Self {
            // A permutation of the numbers below 10^8, so that ids reveal no order.
            id: number.wrapping_mul(61_803_399) % 100_000_000,
            stays: 1 + draw.skewed(most) as u64,
            woman: draw.chance(women),
            age: draw.normal(mean_age, deviation).clamp(0.0, 99.0) as i64,
            year: draw.between(YEARS.0, YEARS.1),
            district: draw.skewed(labels::DISTRICTS),
            diagnosis,
            draw,
        }
    }

    fn write_stay(&mut self, row: u64, out: &mut dyn Write) -> std::io::Result<()> {
        let draw = &mut self.draw;
        let (name, usual_ward, ..) = DIAGNOSES[self.diagnosis];
        let severe = draw.fraction();
        let ward = if draw.chance(0.8) {
            usual_ward
        } else {
            ["General medicine", "General surgery"][draw.below(2)]
        };
        let admission = ADMISSIONS[draw.weighted(&[45.0, 30.0, 10.0 + 40.0 * severe])];
        let nights = draw.skewed(2 + (40.0 * severe) as usize);
        let old = self.age as f64 / 10.0;
        let result = RESULTS[draw.weighted(&[90.0 - 30.0 * severe, old, 6.0, old * severe])];
        writeln!(
            out,
            "E{row:09},P{id:08},{sex},{age},{region},{ward},{admission},{year},{nights},{name},\
             {result}",
            id = self.id,
            sex = if self.woman { "F" } else { "M" },
            age = self.age,
            region = labels::district(self.district),
            year = self.year,
        )?;
        self.go_on();
        Ok(())
    }

    /// Draws what is new at the next stay.
    fn go_on(&mut self) {
        let draw = &mut self.draw;
        let (.., comes_back, _) = DIAGNOSES[self.diagnosis];
        if !draw.chance(comes_back) {
            // No man has a diagnosis that only women have.
            let frequency = |(_, _, _, women, _, frequency)| {
                if self.woman || women < 1.0 {
                    frequency
                } else {
                    0.0
                }
            };
            self.diagnosis = draw.weighted(&DIAGNOSES.map(frequency));
        }
        if draw.chance(0.35) && self.year < YEARS.1 {
            self.year += 1;
            self.age += 1;
        }
        if draw.chance(0.03) {
            self.district = draw.skewed(labels::DISTRICTS);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use pais_core::definition::{DatasetDefinition, JobDefinition};
    use pais_core::schema::Schema;
    use pais_io::read::csv;

    fn written(rows: u64, seed: u64) -> String {
        let mut out = Vec::new();
        super::write_csv(rows, seed, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_first_rows_do_not_depend_on_the_number_of_rows() {
        let long = written(500, 3);
        for rows in [0, 1, 77, 499] {
            assert!(long.starts_with(&written(rows, 3)), "{rows}");
        }
        assert_eq!(long.lines().count(), 501);
        assert_ne!(long, written(500, 4));
    }

    #[test]
    fn patients_have_1_to_30_rows_and_most_have_few() {
        let text = written(100_000, 1);
        let mut rows: BTreeMap<&str, (usize, &str)> = BTreeMap::new();
        for line in text.lines().skip(1) {
            let cells: Vec<&str> = line.split(',').collect();
            let (count, sex) = rows.entry(cells[1]).or_insert((0, cells[2]));
            *count += 1;
            assert_eq!(*sex, cells[2], "the sex of a patient does not change");
        }
        let counts: Vec<usize> = rows.values().map(|(count, _)| *count).collect();
        let of = |count: usize| counts.iter().filter(|found| **found == count).count();
        assert_eq!(counts.iter().max(), Some(&30));
        assert!(of(1) > of(2) && of(2) > of(4) && of(4) > of(8) && of(8) > of(16));
        assert!(
            counts.len() > 20_000 && counts.len() < 60_000,
            "{}",
            counts.len()
        );
    }

    #[test]
    fn rows_match_the_schema() {
        let definition: DatasetDefinition = serde_json::from_value(super::schema()).unwrap();
        let schema = Schema::inline(&definition).unwrap();
        let job: JobDefinition = serde_json::from_value(super::job()).unwrap();
        job.parse().unwrap();
        let table = csv::read_table(&schema, written(2000, 7).as_bytes()).unwrap();
        assert_eq!(table.rows, 2000);
        let subjects = &table.columns[schema.subject().unwrap()];
        assert!(subjects.dictionary.len() < 1500);
    }
}
