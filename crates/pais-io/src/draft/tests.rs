//! What is proposed for whole files.

use pais_core::table::ReadErrorKind;
use serde_json::{Value, json};

use super::{DraftFailure, DraftOptions, csv, ndjson};
use crate::read::TextParameters;

fn draft(rows: &[u8]) -> Value {
    let draft = csv(rows, TextParameters::default(), DraftOptions::default());
    serde_json::to_value(draft.unwrap()).unwrap()
}

fn refusal(rows: &[u8]) -> (ReadErrorKind, String) {
    match csv(rows, TextParameters::default(), DraftOptions::default()) {
        Err(DraftFailure::Refused(error)) => (error.kind, error.detail),
        other => panic!("{other:?}"),
    }
}

fn column<'d>(draft: &'d Value, name: &str) -> &'d Value {
    let columns = draft["dataset"]["columns"].as_array().unwrap();
    columns
        .iter()
        .find(|column| column["name"] == name)
        .unwrap()
}

#[test]
fn a_german_file_of_a_spreadsheet_is_understood() {
    let mut text =
        "Patientennummer;Name;Geburtsdatum;Geschlecht;PLZ;Gewicht;Kosten;Diagnose\r\n".to_owned();
    for row in 0..40 {
        text += &format!(
            "{};Müller {row};{:02}.{:02}.19{};{};0{};{},5;1.{:03},25;{}\r\n",
            1000 + row / 2,
            row % 28 + 1,
            row % 12 + 1,
            50 + row,
            ["m", "w"][row % 2],
            1000 + row % 7,
            60 + row,
            row,
            ["E11.9", "I10", "C50.1", "F32"][row % 4],
        );
    }
    let latin: Vec<u8> = text.chars().map(|it| u8::try_from(it).unwrap()).collect();
    let marked = format!("\u{feff}{text}");
    for (bytes, encoding) in [(latin, "windows-1252"), (marked.into_bytes(), "utf-8")] {
        let draft = draft(&bytes);
        assert_eq!(
            draft["format"],
            json!({"delimiter": ";", "decimal": ",", "thousands": ".", "encoding": encoding})
        );
        let of = |name: &str| column(&draft, name);
        assert_eq!(
            of("Patientennummer"),
            &json!({"name": "Patientennummer", "role": "subject", "kind": "categorical"})
        );
        assert_eq!(of("Name")["role"], "identifier");
        assert_eq!(of("Geburtsdatum")["kind"], "date");
        assert_eq!(of("Geburtsdatum")["format"], "%d.%m.%Y");
        assert_eq!(of("Geburtsdatum")["role"], "quasi_identifier");
        assert_eq!(of("Geschlecht")["role"], "quasi_identifier");
        assert_eq!(
            (&of("PLZ")["kind"], &of("PLZ")["role"]),
            (&json!("categorical"), &json!("quasi_identifier"))
        );
        assert_eq!(of("Gewicht")["kind"], "numeric");
        assert_eq!(of("Kosten")["kind"], "numeric");
        assert_eq!(of("Kosten")["role"], "insensitive");
        assert_eq!(of("Diagnose")["role"], "sensitive");
    }
}

#[test]
fn other_keys_and_flags_get_their_roles() {
    let mut text =
        "encounter_id,patient_nbr,admission_type,weight,age,diag_1,readmitted,note\n".to_owned();
    for row in 0..60 {
        text += &format!(
            "{},{},{},{},[{}0-{}0),{},{},word{} of {row}\n",
            2_278_392 + row * 11,
            8_222_157 + row / 3,
            row % 5,
            ["?", "81.5"][usize::from(row % 9 == 0)],
            row % 4,
            row % 4 + 1,
            ["250.83", "V45", "8", "E812"][row % 4],
            ["NO", ">30", "<30"][row % 3],
            row * 7,
        );
    }
    let draft = draft(text.as_bytes());
    assert_eq!(draft["format"]["delimiter"], ",");
    let role = |name: &str| column(&draft, name)["role"].as_str().unwrap().to_owned();
    assert_eq!(role("encounter_id"), "identifier");
    assert_eq!(role("patient_nbr"), "subject");
    assert_eq!(role("age"), "quasi_identifier");
    assert_eq!(role("diag_1"), "sensitive");
    assert_eq!(role("readmitted"), "quasi_identifier");
    assert_eq!(role("note"), "identifier");
    assert_eq!(column(&draft, "diag_1")["kind"], "categorical");
    assert_eq!(column(&draft, "weight")["missing"], json!(["", "?"]));
    assert_eq!(column(&draft, "weight")["kind"], "numeric");
}

#[test]
fn the_order_of_day_and_month_is_that_of_another_column_or_said_to_be_open() {
    let reasons = |draft: &Value, name: &str| draft["reasons"][name].to_string();
    let open = draft(b"from,to\n01/02/1999,03/04/1999\n");
    assert_eq!(column(&open, "from")["format"], "%m/%d/%Y");
    assert!(reasons(&open, "from").contains("check the order"), "{open}");
    let european = draft(b"from;to\n01/02/1999;03/04/1999\n");
    assert_eq!(column(&european, "from")["format"], "%d/%m/%Y");
    let shown = draft(b"from,to\n01/02/1999,31/04/1999\n01/02/1999,31/12/1999\n");
    // One of the dates is none, so that nothing is shown.
    assert_eq!(column(&shown, "to")["kind"], "categorical");
    let shown = draft(b"from,to\n01/02/1999,31/03/1999\n");
    assert_eq!(column(&shown, "from")["format"], "%d/%m/%Y");
    assert!(
        reasons(&shown, "from").contains("as in another column"),
        "{shown}"
    );
}

#[test]
fn given_parameters_win_over_what_is_found() {
    let given = TextParameters {
        delimiter: ";".parse().ok(),
        decimal: ",".parse().ok(),
        encoding: "windows-1252".parse().ok(),
        ..TextParameters::default()
    };
    let rows = "a,b;größe\n1,5;2\n".as_bytes();
    let draft = csv(rows, given, DraftOptions::default()).unwrap();
    let draft = serde_json::to_value(draft).unwrap();
    assert_eq!(draft["format"]["delimiter"], ";");
    assert_eq!(column(&draft, "a,b")["kind"], "numeric");
    assert_eq!(column(&draft, "grÃ¶ÃŸe")["name"], "grÃ¶ÃŸe");
}

#[test]
fn records_of_ndjson_have_their_types() {
    let rows = concat!(
        "{\"zip\": \"01067\", \"code\": \"7\", \"age\": 41, \"drugs\": [\"a\", \"b|c\"], \"sex\": true}\n",
        "{\"zip\": \"01069\", \"code\": \"8\", \"age\": null, \"drugs\": [], \"sex\": false}\n",
        "{\"zip\": \"01069\", \"code\": \"9\", \"age\": 43, \"drugs\": null, \"sex\": null}\n",
    );
    let draft = ndjson(rows.as_bytes(), DraftOptions::default()).unwrap();
    let draft = serde_json::to_value(draft).unwrap();
    let names = draft["dataset"]["columns"].as_array().unwrap().iter();
    assert!(
        names
            .map(|it| &it["name"])
            .eq(["zip", "code", "age", "drugs", "sex"].iter())
    );
    assert_eq!(column(&draft, "code")["kind"], "categorical");
    assert_eq!(column(&draft, "age")["kind"], "numeric");
    assert_eq!(column(&draft, "age")["domain"], json!([41.0, 43.0]));
    assert_eq!(column(&draft, "drugs")["kind"], "set");
    assert_eq!(column(&draft, "drugs")["separator"], ";");
    assert_eq!(column(&draft, "sex")["role"], "quasi_identifier");
}

#[test]
fn files_that_are_no_tables_are_refused_as_a_submission_is() {
    for (rows, kind) in [
        (&b""[..], ReadErrorKind::Empty),
        (b"a,b\n", ReadErrorKind::Empty),
        (b"a,b\n1\n", ReadErrorKind::Cells),
        (b"a,a\n1,2\n", ReadErrorKind::Header),
        (b"a,\n1,2\n", ReadErrorKind::Header),
        (b"a\n\"1\n", ReadErrorKind::Malformed),
        (b"a\nx\0y\n", ReadErrorKind::Malformed),
        (b"\xc3\xa9\n\xff\n", ReadErrorKind::Malformed),
    ] {
        let (found, detail) = refusal(rows);
        assert_eq!(found, kind, "{rows:?}: {detail}");
    }
    let options = DraftOptions {
        columns: 1,
        ..DraftOptions::default()
    };
    assert!(csv(&b"a,b\n1,2\n"[..], TextParameters::default(), options).is_err());
    for rows in [&b""[..], b"{}\n", b"[1]\n", b"{\"a\": \n"] {
        assert!(ndjson(rows, DraftOptions::default()).is_err(), "{rows:?}");
    }
}

#[test]
fn only_the_first_rows_of_a_large_file_are_read() {
    use super::MOST_ROWS;
    let rows = 2 * MOST_ROWS;
    let mut text = "age,level\n".to_owned();
    for row in 0..rows {
        text += &format!(
            "{},{}\n",
            row % 90,
            ["low", "medium", "high"][(row % 3) as usize]
        );
    }
    let draft = draft(text.as_bytes());
    let reasons = draft["reasons"]["age"].to_string();
    assert!(reasons.contains("and the file has more"), "{reasons}");
    assert_eq!(column(&draft, "age")["round_range"], true);
    assert_eq!(column(&draft, "age")["domain"], Value::Null);
    assert_eq!(column(&draft, "level")["taxonomy"], Value::Null);
}

/// Cells of every kind that must not be quoted.
const PLANTED: [&str; 8] = [
    "zzsecretzz",
    "31.12.1987",
    "E11.923",
    "12345.678",
    "a|b|zzsecretzz",
    "98765",
    "[30-40)",
    "zz@secret.example",
];

proptest::proptest! {
    #[test]
    fn reasons_contain_no_cell(
        cells in proptest::collection::vec(
            proptest::collection::vec(proptest::sample::select(PLANTED.to_vec()), 3), 1..40),
        names in proptest::sample::subsequence(vec!["zip", "dob", "diag", "x", "email", "id"], 3),
    ) {
        let mut text = names.join(",") + "\n";
        for row in &cells {
            text += &row.join(",");
            text.push('\n');
        }
        let draft = draft(text.as_bytes());
        let reasons = draft["reasons"].to_string();
        for planted in PLANTED {
            proptest::prop_assert!(!reasons.contains(planted), "{}", reasons);
        }
        proptest::prop_assert!(!reasons.contains("secret"));
    }

    #[test]
    fn no_file_makes_it_panic(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200)) {
        let _ = csv(bytes.as_slice(), TextParameters::default(), DraftOptions::default());
        let _ = ndjson(bytes.as_slice(), DraftOptions::default());
    }

    #[test]
    fn a_draft_reads_its_own_file(
        rows in proptest::collection::vec("[0-9a-cEN?.;|/-]{0,6},[0-9]{0,3},[ab]?", 1..40),
    ) {
        let text = format!("a,b,c\n{}\n", rows.join("\n"));
        let Ok(draft) = csv(text.as_bytes(), TextParameters::default(), DraftOptions::default()) else {
            return Ok(());
        };
        let schema = pais_core::schema::Schema::inline(&draft.dataset).unwrap();
        let limits = crate::read::ReadLimits::default();
        let read = crate::read::csv::read_as(&schema, text.as_bytes(), draft.format, limits, None, |_| {
            Ok::<_, std::convert::Infallible>(())
        });
        proptest::prop_assert!(read.is_ok(), "{:?}", draft);
    }
}

#[test]
fn a_key_of_persons_is_the_subject_even_if_its_values_look_like_codes_of_diseases() {
    let mut text = "Patient,age,diag\n".to_owned();
    for row in 0..60 {
        text += &format!("P{},{},E1{}.9\n", 100_000 + row / 3, 20 + row, row % 5);
    }
    let draft = draft(text.as_bytes());
    assert_eq!(column(&draft, "Patient")["role"], "subject");
    assert_eq!(column(&draft, "Patient").get("taxonomy"), None);
    assert_eq!(column(&draft, "diag")["role"], "sensitive");
    let few = "patient,age\nyes,1\nno,2\nyes,3\nno,4\nyes,5\nno,6\nyes,7\n";
    assert_ne!(
        column(&self::draft(few.as_bytes()), "patient")["role"],
        "subject"
    );
}

/// Each column takes about a kilobyte, and a header of a megabyte can have half a million of them.
#[test]
fn columns_are_counted_before_they_are_made() {
    use super::Rows;
    let options = DraftOptions {
        columns: 1_024,
        ..DraftOptions::default()
    };
    let made = (0..1_025).map(|_| -> (String, _, _) { panic!("a column was made") });
    let Err(DraftFailure::Refused(error)) = Rows::new(made, options) else {
        panic!("too many columns are accepted");
    };
    assert_eq!(error.kind, ReadErrorKind::Header);
    assert!(error.detail.contains("1025 columns"), "{}", error.detail);
    let header = ",".repeat(524_288);
    match csv(header.as_bytes(), TextParameters::default(), options) {
        Err(DraftFailure::Refused(error)) => assert_eq!(error.kind, ReadErrorKind::Header),
        other => panic!("{other:?}"),
    }
}
