//! Blood transfusions as a hospital submits them to a transfusion service: 62 columns, of which
//! 41 are quasi-identifiers, the blood group is the class and the diagnosis, one of 15 categories,
//! is sensitive. This is the shape of the table of the KDD'09 paper's experiments (Section 5).
//!
//! The columns depend on each other as in a hospital: the diagnosis on age and sex, the ward on the
//! diagnosis, measurements and treatments on both, and the blood group on the origin of the
//! patient, so that a classifier can learn the class.

use std::io::Write;

use serde_json::{Value, json};

use super::choice;
use super::draw::Draw;
use super::labels::{self, Date};

/// The eight blood groups, and their frequencies for each origin (one row per origin, in the order
/// of [`ORIGINS`]).
const GROUPS: [&str; 8] = ["O+", "A+", "B+", "AB+", "O-", "A-", "B-", "AB-"];
const GROUP_WEIGHTS: [[f64; 8]; 5] = [
    [37.0, 35.7, 8.5, 3.4, 6.6, 6.3, 1.5, 0.6],
    [29.0, 24.0, 33.0, 10.0, 1.5, 1.2, 1.0, 0.3],
    [46.0, 24.0, 19.0, 4.0, 3.7, 2.0, 1.1, 0.2],
    [27.0, 31.0, 27.0, 9.0, 2.3, 2.2, 1.2, 0.3],
    [57.0, 28.0, 7.0, 2.0, 3.6, 1.9, 0.4, 0.1],
];

/// The diagnosis categories: name, usual ward, mean age, share of women, and frequency.
const DIAGNOSES: [(&str, &str, f64, f64, f64); 15] = [
    ("Anaemia", "General medicine", 62.0, 0.6, 9.0),
    ("Birth", "Maternity", 31.0, 1.0, 7.0),
    ("Bone marrow failure", "Haematology", 48.0, 0.5, 4.0),
    ("Burn", "Burns unit", 38.0, 0.3, 3.0),
    ("Cancer of the gut", "Oncology", 68.0, 0.45, 8.0),
    ("Cancer of the lung", "Oncology", 67.0, 0.4, 7.0),
    ("Coagulation disorder", "Haematology", 41.0, 0.4, 5.0),
    (
        "Gastrointestinal bleeding",
        "Gastroenterology",
        64.0,
        0.42,
        9.0,
    ),
    ("Heart surgery", "Cardiac surgery", 66.0, 0.33, 9.0),
    ("Hip fracture", "Orthopaedics", 78.0, 0.7, 8.0),
    ("Leukaemia", "Haematology", 45.0, 0.45, 7.0),
    ("Liver disease", "Gastroenterology", 55.0, 0.35, 7.0),
    ("Organ transplant", "Transplantation", 49.0, 0.4, 4.0),
    ("Renal failure", "Nephrology", 63.0, 0.45, 7.0),
    ("Trauma", "Trauma care", 39.0, 0.3, 8.0),
];

const ORIGINS: [&str; 5] = [
    "Europe",
    "South Asia",
    "Africa",
    "East Asia",
    "Latin America",
];

/// The role and type of a column.
enum SampleColumn {
    /// An identifier, which is dropped when the rows are read.
    Identifier,
    /// A numeric quasi-identifier.
    Number,
    /// A quasi-identifier with a taxonomy.
    Tree(fn() -> Value),
    /// A categorical quasi-identifier without a taxonomy.
    Flat,
    /// The class.
    Class,
    /// The sensitive column.
    Sensitive,
    /// An insensitive column, released unchanged. True if it is numeric.
    Other(bool),
}

use SampleColumn::{Class, Flat, Identifier, Number, Other, Sensitive, Tree};

const COLUMNS: [(&str, SampleColumn); 62] = [
    ("record", Identifier),
    ("patient", Identifier),
    ("age", Number),
    ("sex", Flat),
    ("origin", Tree(labels::origins)),
    ("district", Tree(labels::districts)),
    ("job", Tree(labels::jobs)),
    ("education", Tree(labels::educations)),
    ("marital_status", Tree(labels::marital_statuses)),
    ("insurance", Tree(|| choice::INSURANCE.tree())),
    ("language", Tree(|| choice::LANGUAGE.tree())),
    ("religion", Tree(|| choice::RELIGION.tree())),
    ("household", Number),
    ("weight_kg", Number),
    ("height_cm", Number),
    ("smoker", Flat),
    ("diabetic", Flat),
    ("pregnancies", Number),
    ("admission", Tree(labels::days)),
    ("discharge", Tree(labels::days)),
    ("transfusion", Tree(labels::days)),
    ("last_donation", Tree(labels::days)),
    ("length_of_stay", Number),
    ("hospital", Tree(labels::hospitals)),
    ("ward", Tree(labels::wards)),
    ("referral", Tree(|| choice::REFERRAL.tree())),
    ("emergency", Flat),
    ("surgery", Flat),
    ("anaesthesia", Flat),
    ("intensive_care", Flat),
    ("discharged_to", Flat),
    ("earlier_transfusions", Number),
    ("earlier_admissions", Number),
    ("haemoglobin", Number),
    ("platelets", Number),
    ("leukocytes", Number),
    ("creatinine", Number),
    ("bilirubin", Number),
    ("systolic", Number),
    ("pulse", Number),
    ("temperature", Number),
    ("iron", Number),
    ("anticoagulant", Flat),
    ("blood_group", Class),
    ("diagnosis", Sensitive),
    ("red_cell_units", Other(true)),
    ("plasma_units", Other(true)),
    ("platelet_units", Other(true)),
    ("cryoprecipitate_units", Other(true)),
    ("wasted_units", Other(true)),
    ("storage_days", Other(true)),
    ("minutes_to_issue", Other(true)),
    ("volume_ml", Other(true)),
    ("crossmatch", Other(false)),
    ("antibody_screen", Other(false)),
    ("urgency", Other(false)),
    ("reaction", Other(false)),
    ("irradiated", Other(false)),
    ("filtered", Other(false)),
    ("cmv_tested", Other(false)),
    ("donor", Other(false)),
    ("haemoglobin_after", Other(true)),
];

/// The body of `POST /v1/datasets`.
pub fn schema() -> Value {
    let columns = COLUMNS.iter().map(|(name, kind)| match kind {
        Identifier => json!({ "name": name, "role": "identifier" }),
        Number => json!({ "name": name, "role": "quasi_identifier", "kind": "numeric" }),
        Tree(tree) => json!({ "name": name, "role": "quasi_identifier", "taxonomy": tree() }),
        Flat => json!({ "name": name, "role": "quasi_identifier" }),
        Class => json!({ "name": name, "role": "class" }),
        Sensitive => json!({ "name": name, "role": "sensitive" }),
        Other(true) => json!({ "name": name, "role": "insensitive", "kind": "numeric" }),
        Other(false) => json!({ "name": name, "role": "insensitive" }),
    });
    json!({
        "name": "blood",
        "description": "Blood transfusions of persons who do not exist",
        "columns": columns.collect::<Vec<_>>(),
    })
}

/// The body of `POST /v1/jobs`.
pub fn job() -> Value {
    json!({
        "privacy": { "model": "lkc", "l": 4, "k": 20, "c": 0.2 },
        "utility": { "objective": "classification" },
        "release": true,
    })
}

/// Writes the rows as CSV, with a header.
///
/// # Errors
/// Those of `out`.
pub fn write_csv(rows: u64, seed: u64, out: &mut dyn Write) -> std::io::Result<()> {
    let names: Vec<&str> = COLUMNS.iter().map(|(name, _)| *name).collect();
    writeln!(out, "{}", names.join(","))?;
    let mut line = String::new();
    for row in 0..rows {
        line.clear();
        record(row, &mut Draw::of(seed, row), &mut line);
        // Replace the last comma by the line end.
        line.pop();
        line.push('\n');
        out.write_all(line.as_bytes())?;
    }
    Ok(())
}

/// Writes one row to `line`, with a comma after each cell.
#[allow(
    clippy::too_many_lines,
    reason = "writes the cells one after another, in the order of the columns"
)]
fn record(row: u64, draw: &mut Draw, line: &mut String) {
    use std::fmt::Write as _;
    // Writing to a string does not fail.
    macro_rules! cells {
        ($($value:expr),+ $(,)?) => { $( let _ = write!(line, "{},", $value); )+ };
    }
    let yes = |yes: bool| if yes { "Y" } else { "N" };
    let whole = |value: f64, lo: f64, hi: f64| value.clamp(lo, hi).round();
    let tenths = |value: f64, lo: f64, hi: f64| (value.clamp(lo, hi) * 10.0).round() / 10.0;

    let frequencies = DIAGNOSES.map(|(.., frequency)| frequency);
    let diagnosis = draw.weighted(&frequencies);
    let (name, ward, mean_age, women, _) = DIAGNOSES[diagnosis];
    let age = whole(
        draw.normal(mean_age, if women == 1.0 { 5.0 } else { 14.0 }),
        0.0,
        102.0,
    );
    let woman = draw.chance(women);
    let if_woman = |of_women: f64, of_men: f64| if woman { of_women } else { of_men };
    let with =
        |diagnosis: &str, here: f64, usual: f64| if name == diagnosis { here } else { usual };
    let origin = draw.weighted(&[46.0, 18.0, 12.0, 14.0, 10.0]);
    let group = draw.weighted(&GROUP_WEIGHTS[origin]);
    let severe = draw.fraction();
    let surgery = draw.chance(match name {
        "Heart surgery" | "Hip fracture" | "Organ transplant" => 0.8,
        "Trauma" | "Cancer of the gut" | "Burn" => 0.5,
        _ => 0.35,
    });
    let admission = Date::drawn(draw);
    let stay = whole(
        2.0 + 18.0 * severe * severe + draw.normal(0.0, 1.5),
        0.0,
        90.0,
    );
    let district = draw.skewed(labels::DISTRICTS);
    let weight = whole(draw.normal(if_woman(68.0, 81.0), 13.0), 3.0, 180.0);
    let units = whole(1.0 + 7.0 * severe * draw.fraction(), 1.0, 30.0);
    let before = tenths(11.0 - 4.5 * severe + draw.normal(0.0, 0.7), 3.0, 18.0);

    cells![
        format_args!("R{row:09}"),
        format_args!("P{:08}", draw.below(90_000_000))
    ];
    cells![age, if woman { "F" } else { "M" }];
    cells![
        labels::country(ORIGINS[origin], draw),
        labels::district(district)
    ];
    cells![
        labels::job(age, draw),
        labels::education(age, draw),
        labels::marital(age, draw)
    ];
    cells![
        choice::INSURANCE.draw(draw),
        choice::LANGUAGE.draw(draw),
        choice::RELIGION.draw(draw)
    ];
    cells![1 + draw.skewed(8), weight];
    let height = draw.normal(if_woman(165.0, 177.0), 7.0);
    cells![whole(height, 50.0, 210.0)];
    cells![
        yes(draw.chance(0.35)),
        yes(draw.chance(if age > 50.0 { 0.24 } else { 0.06 }))
    ];
    cells![if woman && age > 17.0 {
        draw.skewed(6)
    } else {
        0
    }];
    cells![
        admission,
        admission.later(stay as usize),
        admission.later(draw.below(3))
    ];
    cells![Date::drawn(draw), stay];
    cells![labels::hospital(district, draw), labels::ward(ward, draw)];
    cells![choice::REFERRAL.draw(draw)];
    cells![yes(draw.chance(0.15 + 0.6 * severe)), yes(surgery)];
    cells![match (surgery, draw.chance(0.2)) {
        (false, _) => "none",
        (true, true) => "regional",
        (true, false) => "general",
    }];
    cells![yes(draw.chance(severe * severe))];
    cells![
        ["home", "care home", "other hospital", "died"]
            [draw.weighted(&[82.0 - 40.0 * severe, 4.0 + age / 10.0, 8.0, 9.0 * severe])]
    ];
    cells![
        draw.skewed(1 + (12.0 * severe) as usize),
        draw.skewed(9),
        before
    ];
    let platelets = draw.normal(240.0 - with("Leukaemia", 160.0, 0.0), 60.0);
    let leukocytes = draw.normal(8.0 + with("Leukaemia", 30.0, 2.0 * severe), 2.5);
    let creatinine = draw.normal(with("Renal failure", 420.0, 85.0), 25.0);
    let bilirubin = draw.normal(with("Liver disease", 90.0, 13.0), 6.0);
    cells![whole(platelets, 5.0, 900.0), tenths(leukocytes, 0.2, 150.0)];
    cells![
        whole(creatinine, 30.0, 1200.0),
        whole(bilirubin, 2.0, 500.0)
    ];
    cells![whole(draw.normal(134.0 - 30.0 * severe, 15.0), 50.0, 230.0)];
    cells![whole(draw.normal(74.0 + 28.0 * severe, 10.0), 35.0, 190.0)];
    cells![tenths(draw.normal(36.8 + 0.6 * severe, 0.5), 33.0, 41.5)];
    let iron = draw.normal(with("Anaemia", 6.0, 15.0), 4.0);
    cells![whole(iron, 1.0, 45.0)];
    cells![yes(draw.chance(if age > 60.0 { 0.4 } else { 0.08 }))];
    cells![GROUPS[group], name];
    let plasma = draw.skewed(1 + (6.0 * severe) as usize);
    cells![
        units,
        plasma,
        draw.skewed(3),
        draw.skewed(2),
        draw.skewed(3)
    ];
    cells![draw.between(1, 42), draw.between(5, 180)];
    cells![units as i64 * 280 + plasma as i64 * 220];
    cells![["compatible", "incompatible"][draw.weighted(&[99.0, 1.0])]];
    cells![["negative", "positive"][draw.weighted(&[96.0, 4.0])]];
    cells![["routine", "urgent", "immediate"][draw.weighted(&[60.0, 30.0, 1.0 + 30.0 * severe])]];
    cells![["none", "fever", "allergy", "overload"][draw.weighted(&[97.0, 1.5, 1.0, 0.5])]];
    cells![yes(name == "Leukaemia"), yes(true), yes(draw.chance(0.3))];
    cells![["voluntary", "directed"][draw.weighted(&[98.0, 2.0])]];
    cells![tenths(
        before + 0.9 * units + draw.normal(0.0, 0.4),
        3.0,
        19.0
    )];
}

#[cfg(test)]
mod tests {
    use super::*;
    use pais_core::definition::DatasetDefinition;
    use pais_core::schema::Schema;
    use pais_core::taxonomy::TreeLimits;

    #[test]
    fn it_has_the_shape_of_the_papers_table() {
        let count = |wanted: fn(&SampleColumn) -> bool| {
            COLUMNS.iter().filter(|(_, kind)| wanted(kind)).count()
        };
        assert_eq!(count(|_| true), 62);
        assert_eq!(count(|kind| matches!(kind, Number | Tree(_) | Flat)), 41);
        assert_eq!(count(|kind| matches!(kind, Class)), 1);
        assert_eq!(count(|kind| matches!(kind, Sensitive)), 1);
        assert_eq!(DIAGNOSES.len(), 15);
        assert_eq!(GROUPS.len(), 8);
    }

    #[test]
    fn rows_match_the_schema_and_are_reproducible() {
        let definition: DatasetDefinition = serde_json::from_value(schema()).unwrap();
        let limits = TreeLimits {
            leaves: 10_000,
            depth: 10,
        };
        let schema = Schema::resolve(&definition, limits, |_| None).unwrap();
        let written = |rows| {
            let mut out = Vec::new();
            write_csv(rows, 7, &mut out).unwrap();
            out
        };
        let long = written(2000);
        assert!(
            long.starts_with(&written(10)),
            "the first rows are the same"
        );
        let text = String::from_utf8(long).unwrap();
        let mut lines = text.lines();
        let header: Vec<&str> = lines.next().unwrap().split(',').collect();
        assert_eq!(header.len(), 62);
        for line in lines {
            let cells: Vec<&str> = line.split(',').collect();
            assert_eq!(cells.len(), 62, "{line}");
            for (column, cell) in schema.columns.iter().zip(cells) {
                let fits = match column.tree() {
                    Some(tree) => tree.leaf_number(cell).is_some(),
                    None => !cell.is_empty(),
                };
                assert!(fits, "{}", column.name());
            }
        }
    }
}
