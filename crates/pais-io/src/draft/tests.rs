//! What is proposed for whole files.

use pais_core::definition::{ColumnKind, ColumnRole};
use pais_core::table::ReadErrorKind;
use serde_json::{Value, json};

use super::{Answer, DraftFailure, DraftOptions, csv, ndjson};
use crate::read::{TextEncoding, TextParameters};

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
    assert_eq!(role("readmitted"), "class");
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
    // One of the dates is invalid, so that nothing is shown.
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

/// A draft that declared it could not read its own file.
#[test]
fn utf_16_without_a_byte_order_mark_is_refused_as_a_submission_is() {
    let given = TextParameters {
        encoding: Some(TextEncoding::Utf16),
        ..TextParameters::default()
    };
    let options = DraftOptions::default();
    match csv(&b"a,b\n1,2\n"[..], given, options) {
        Err(DraftFailure::Refused(error)) => assert!(error.detail.contains("byte order mark")),
        other => panic!("{other:?}"),
    }
    let marked: Vec<u8> = "\u{feff}a,b\n1,2\n"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let draft = csv(marked.as_slice(), given, options).unwrap();
    assert_eq!(
        serde_json::to_value(draft).unwrap()["format"]["encoding"],
        "utf-16"
    );
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
    let ages = json!({"generate": "ranges", "widths": [5.0, 10.0, 20.0]});
    assert_eq!(column(&draft, "age")["taxonomy"], ages);
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
    let mut text = "height,level\n".to_owned();
    for row in 0..rows {
        text += &format!(
            "{},{}\n",
            row % 90,
            ["low", "medium", "high"][(row % 3) as usize]
        );
    }
    let draft = draft(text.as_bytes());
    let reasons = draft["reasons"]["height"].to_string();
    assert!(reasons.contains("and the file has more"), "{reasons}");
    assert_eq!(column(&draft, "height")["round_range"], true);
    assert_eq!(column(&draft, "height")["domain"], Value::Null);
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
        let reasons = draft["reasons"].to_string() + &draft["doubts"].to_string();
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

/// Rows of a file: a header, and the cells of each of `rows` rows.
fn file(header: &str, rows: usize, row: impl Fn(usize) -> String) -> String {
    let rows = (0..rows).map(|at| row(at) + "\n");
    format!("{header}\n{}", rows.collect::<String>())
}

/// The attack: births of 1935 to 1969 were read as those of the next century without a question.
#[test]
fn years_of_two_digits_are_asked_about() {
    let file = file("birth_date,note", 60, |row| {
        format!("{}.05.{},x", 14 + row % 15, 35 + row)
    });
    let found = draft(file.as_bytes());
    let column = &found["dataset"]["columns"][0];
    assert_eq!(column["format"], "%d.%m.%y", "{column}");
    let doubt = doubt(&found, "birth_date");
    assert_eq!(doubt["choices"], json!(["quasi_identifier", "identifier"]));
    let question = doubt["question"].as_str().unwrap();
    assert!(question.contains("2000 to 2069"), "{question}");
    let of_four = file.replace(".05.", ".05.19");
    assert_eq!(draft(of_four.as_bytes())["doubts"], json!([]));
}

fn doubt<'d>(draft: &'d Value, name: &str) -> &'d Value {
    let doubts = draft["doubts"].as_array().unwrap();
    doubts.iter().find(|doubt| doubt["column"] == name).unwrap()
}

/// No name says that these are keys: numbers of one length in any order, a counter with gaps, letters before
/// digits. A measure with as many numbers is not a key.
#[test]
fn keys_are_known_by_their_values() {
    let header = "drawn,counted,lettered,measured,sex";
    let text = file(header, 200, |row| {
        let drawn = 100_000 + row * 7_919 % 900_000;
        let measured = 1_000 + row * 7_919 % 10_007;
        format!(
            "{drawn},{},Q{},{measured},f",
            13 + 3 * row,
            55_000 + row * 31 % 4_001
        )
    });
    let draft = draft(text.as_bytes());
    for name in ["drawn", "counted", "lettered"] {
        assert_eq!(column(&draft, name)["role"], "identifier", "{name}");
    }
    assert_eq!(
        doubt(&draft, "drawn")["choices"],
        json!(["identifier", "insensitive"])
    );
    assert_eq!(column(&draft, "measured")["role"], "insensitive");
    assert_eq!(column(&draft, "measured")["round"], 500.0, "{draft}");
}

/// A key with one row each is that of the persons; one with many rows each is not.
#[test]
fn a_column_of_few_values_is_not_the_subject_beside_a_key_of_all_rows() {
    let text = file("seqn,ward_key,age", 400, |row| {
        format!("{},{},{}", 62_161 + row * 3, 40 + row % 128, 20 + row % 60)
    });
    let draft = draft(text.as_bytes());
    assert_eq!(column(&draft, "seqn")["role"], "identifier");
    assert_ne!(column(&draft, "ward_key")["role"], "subject");
    let repeated = file("id,age", 400, |row| {
        format!("{},{}", 62_161 + row / 3, 20 + row / 3 % 60)
    });
    let draft = self::draft(repeated.as_bytes());
    assert_eq!(column(&draft, "id")["role"], "subject");
    assert_eq!(
        doubt(&draft, "id")["choices"],
        json!(["subject", "identifier"])
    );
}

#[test]
fn numbered_columns_with_the_same_codes_are_one_set_that_reads_its_file() {
    let code = |at: usize| format!("{}{}", ["250", "V45", "401", "E81"][at % 4], at * 7 % 10);
    let text = file("visit,DX1,DX2,DX3,bp1,bp2,bp3", 300, |row| {
        let pressures = format!("{},{},{}", 90 + row % 50, 60 + row % 40, 61 + row % 45);
        let second = if row % 3 == 0 {
            "?".to_owned()
        } else {
            code(row / 3)
        };
        format!("{row},{},{second},{},{pressures}", code(row), code(row + 5))
    });
    let draft = csv(
        text.as_bytes(),
        TextParameters::default(),
        DraftOptions::default(),
    )
    .unwrap();
    let shown = serde_json::to_value(&draft).unwrap();
    assert_eq!(
        column(&shown, "DX"),
        &json!({"name": "DX", "role": "quasi_identifier", "kind": "set",
            "from": ["DX1", "DX2", "DX3"], "missing": ["", "?"],
            "taxonomy": {"generate": "prefix", "lengths": [3]}})
    );
    assert_eq!(column(&shown, "bp1")["kind"], "numeric");
    let schema = pais_core::schema::Schema::inline(&draft.dataset).unwrap();
    let table = crate::read::csv::read_table(&schema, text.as_bytes()).unwrap();
    assert_eq!(table.rows, 300);
}

#[test]
fn a_code_and_its_text_get_one_role_and_the_text_of_a_generalized_code_is_dropped() {
    let header = "CCS Diagnosis Code,CCS Diagnosis Description,Unit Code,Unit Description";
    let text = file(header, 200, |row| {
        let (disease, unit) = (row * 7 % 31, row * 3 % 20);
        format!("{disease},\"Disease, of kind {disease}\",{unit},\"Unit, the one of {unit}\"")
    });
    let draft = draft(text.as_bytes());
    for name in ["CCS Diagnosis Code", "CCS Diagnosis Description"] {
        assert_eq!(column(&draft, name)["role"], "sensitive", "{name}");
        assert_ne!(column(&draft, name)["kind"], "set");
        assert_eq!(column(&draft, name).get("taxonomy"), None);
    }
    assert_eq!(column(&draft, "Unit Code")["role"], "quasi_identifier");
    assert_eq!(column(&draft, "Unit Description")["role"], "identifier");
    assert_eq!(
        doubt(&draft, "CCS Diagnosis Description")["choices"],
        json!(["sensitive", "identifier"])
    );
}

#[test]
fn codes_dates_and_measures_are_told_apart() {
    let header = "grade,answer,years,seen,cost,score,gone";
    let text = file(header, 100, |row| {
        format!(
            "{},{},{},20{:02}-0{}-1{},{}.{:02},{},{}",
            row % 4,
            [1, 2, 8, 99][row % 4],
            1_930 + row % 40,
            row % 20,
            row % 9 + 1,
            row % 10,
            row * row,
            row % 100,
            row % 25,
            ["yes", "no"][usize::from(row % 7 == 0)]
        )
    });
    let draft = draft(text.as_bytes());
    let of = |name: &str| column(&draft, name);
    for name in ["grade", "answer"] {
        assert_eq!(of(name)["kind"], "categorical", "{name}");
        assert_eq!(of(name)["role"], "insensitive", "{name}");
    }
    assert_eq!(of("years")["role"], "quasi_identifier");
    assert_eq!(
        of("years")["taxonomy"],
        json!({"generate": "ranges", "widths": [5.0, 10.0]})
    );
    assert_eq!(of("seen")["taxonomy"], json!({"generate": "calendar"}));
    assert_eq!(of("cost")["role"], "insensitive");
    assert!(of("cost")["round"].as_f64().unwrap() >= 100.0);
    assert_eq!(of("score")["kind"], "numeric");
    assert_eq!(of("score").get("round"), None);
    // The last column has two values.
    assert_eq!(of("gone")["role"], "class");
}

/// As a set, which cannot be sensitive, nothing would bound what is inferred about it.
#[test]
fn a_sensitive_column_with_several_items_in_some_cells_is_asked_about() {
    let text = file("age,diagnosis", 100, |row| {
        let items = ["flu", "birth", "birth; sepsis", "flu; sepsis", "sepsis"];
        format!("{},{}", 20 + row % 50, items[row % 5])
    });
    let draft = csv(
        text.as_bytes(),
        TextParameters::default(),
        DraftOptions::default(),
    )
    .unwrap();
    let column = &draft.dataset.columns[1];
    assert_eq!(
        (column.role, column.kind),
        (ColumnRole::QuasiIdentifier, ColumnKind::Set)
    );
    assert_eq!(draft.doubts[0].column, "diagnosis");
    let answers = [answer("diagnosis", "sensitive")];
    let answered = draft.answered(&answers).unwrap();
    let column = &answered.dataset.columns[1];
    assert_eq!(
        (column.role, column.kind),
        (ColumnRole::Sensitive, ColumnKind::Categorical)
    );
    assert!(answered.doubts.is_empty());
}

#[test]
fn columns_with_the_same_few_values_are_asked_about_once_and_answered_together() {
    let text = file("one,other,third,sex", 60, |row| {
        let pick = |at: usize| ["No", "Steady", "Up"][at % 3];
        format!(
            "{},{},{},{}",
            pick(row),
            pick(row / 2),
            pick(row / 3),
            ["f", "m"][row % 2]
        )
    });
    let draft = csv(
        text.as_bytes(),
        TextParameters::default(),
        DraftOptions::default(),
    )
    .unwrap();
    assert_eq!(draft.doubts.len(), 1);
    assert_eq!(draft.doubts[0].also, ["other", "third"]);
    let answers = [answer("one", "quasi_identifier")];
    let answered = draft.answered(&answers).unwrap();
    assert!(answered.doubts.is_empty());
    let roles = answered
        .dataset
        .columns
        .iter()
        .map(|column| column.role.as_str());
    assert!(roles.eq(["quasi_identifier"; 4]));
    // An answer that is not a choice changes nothing.
    let other = [answer("one", "zzsecretzz")];
    assert_eq!(draft.answered(&other).unwrap().dataset, draft.dataset);
    // Neither does one to a question that nobody asked.
    let unasked = [answer("sex", "insensitive")];
    assert_eq!(draft.answered(&unasked).unwrap().dataset, draft.dataset);
    // Nor does a role that the question does not offer.
    let class = [answer("one", "class")];
    assert_eq!(draft.answered(&class).unwrap().dataset, draft.dataset);
}

#[test]
fn columns_have_the_categories_of_identifiers_of_hipaa() {
    let header = "who,where,born,number,call,mailbox,visit_id,weight";
    let text = file(header, 40, |row| {
        format!(
            "999-{:02}-1{:03},0{},19{}-01-02,{},+41 44 668 {:02} 00,a{row}@x.example,{},{}",
            row % 90 + 10,
            row,
            1_000 + row % 9,
            50 + row % 40,
            row % 3,
            row % 90 + 10,
            7_000_000 + row,
            row % 9
        )
    });
    let draft = draft(text.as_bytes());
    assert_eq!(
        draft["safe_harbor"],
        json!({
            "who": "social_security_numbers",
            "where": "geographic_subdivisions",
            "born": "dates",
            "call": "telephone_numbers",
            "mailbox": "email_addresses",
            "visit_id": "account_numbers",
        })
    );
    assert_eq!(column(&draft, "who")["role"], "identifier");
    assert_eq!(column(&draft, "where")["role"], "quasi_identifier");
}

/// The file of one person, or of two, is no reason to release who they are.
#[test]
fn names_and_keys_of_one_or_two_persons_are_dropped_as_those_of_many() {
    for persons in [1, 2] {
        let mut text = "Name,Patient,phone,Diagnose\n".to_owned();
        for row in 0..60 {
            let person = row % persons;
            text += &format!(
                "Anna M{person},P471{person},{},I1{}\n",
                ["yes", "no"][row % 2],
                row % 3
            );
        }
        let draft = draft(text.as_bytes());
        for name in ["Name", "Patient"] {
            let role = &column(&draft, name)["role"];
            assert!(
                role == "identifier" || role == "subject",
                "{name} of {persons}: {role}"
            );
        }
        // Whether somebody has a telephone is not a telephone number.
        assert_ne!(column(&draft, "phone")["role"], "identifier");
    }
}

/// The attack: a first try with a few rows released the patients as they are.
#[test]
fn short_keys_of_the_few_persons_of_a_small_file_are_keys() {
    for prefix in ["", "P"] {
        let several = file("Patient,age", 16, |row| {
            format!("{prefix}{},{}", 1 + row / 2, 20 + row / 2)
        });
        assert_eq!(role(&draft(several.as_bytes()), "Patient"), "subject");
        let one = file("Patient,age", 8, |row| {
            format!("{prefix}{},{}", 1 + row, 20 + row)
        });
        let one = draft(one.as_bytes());
        assert_eq!(role(&one, "Patient"), "identifier");
        assert!(is_asked(&one, "Patient"));
    }
    let kinds = file("Patient,age", 2_000, |row| {
        format!("{},{}", 1 + row % 4, 20 + row % 60)
    });
    assert_eq!(role(&draft(kinds.as_bytes()), "Patient"), "insensitive");
}

fn role<'d>(draft: &'d Value, name: &str) -> &'d str {
    column(draft, name)["role"].as_str().unwrap()
}

fn is_asked(draft: &Value, name: &str) -> bool {
    let doubts = draft["doubts"].as_array().unwrap();
    doubts.iter().any(|doubt| doubt["column"] == name)
}

/// The file of a month has each patient once, and that of the next month has the same patients.
#[test]
fn a_key_that_has_each_person_once_is_asked_about() {
    for name in ["PatientenID", "KVNR", "mrn", "Patient"] {
        let text = file(&format!("{name},age,Fallnummer"), 60, |row| {
            format!("{},{},F{}", 4_711 + row * 37, 20 + row % 50, 90_000 + row)
        });
        let draft = draft(text.as_bytes());
        assert_eq!(role(&draft, name), "identifier", "{name}");
        let doubt = doubt(&draft, name);
        assert_eq!(doubt["choices"], json!(["identifier", "subject"]), "{name}");
        let question = doubt["question"].as_str().unwrap();
        assert!(question.contains("another month"), "{question}");
        assert!(!is_asked(&draft, "Fallnummer"), "{name}");
    }
    // A subject must not be missing, and other keys are not of persons.
    let text = file("mrn,row_id,invoice_id", 60, |row| match row % 9 {
        0 => format!(",{row},R{}", 50_000 + row),
        _ => format!("{},{row},R{}", 4_711 + row * 37, 50_000 + row),
    });
    assert_eq!(draft(text.as_bytes())["doubts"], json!([]));
}

#[test]
fn the_key_of_a_stay_is_no_key_of_a_person() {
    for (name, is_number) in [
        ("Fall", true),
        ("Fallnummer", true),
        ("Fall-Nr", true),
        ("Aufnahme", false),
        ("AufnahmeNr", true),
        ("admission number", true),
        ("encounter_id", false),
        ("visit", true),
        ("stay_id", false),
    ] {
        for rows_a_stay in [1, 2] {
            let stay = |row: usize| {
                let letter = if is_number { "" } else { "S" };
                format!("{letter}{}", 700_000 + row / rows_a_stay * 13)
            };
            let with = file(&format!("{name},PatientNr,age"), 80, |row| {
                format!("{},{},{}", stay(row), 9_000 + row / 4, 20 + row / 4)
            });
            let draft = draft(with.as_bytes());
            assert_eq!(role(&draft, name), "identifier", "{name}");
            assert_eq!(role(&draft, "PatientNr"), "subject", "{name}");
            assert_eq!(draft["doubts"], json!([]), "{name}");

            let without = file(&format!("{name},age"), 80, |row| {
                format!("{},{}", stay(row), 20 + row / 4)
            });
            let draft = self::draft(without.as_bytes());
            let expected = ["identifier", "subject"][rows_a_stay - 1];
            assert_eq!(role(&draft, name), expected, "{name}");
            let question = doubt(&draft, name)["question"].as_str().unwrap();
            assert!(
                question.contains("names a stay, not a person"),
                "{question}"
            );
        }
    }
    // Few numbers of visits, texts and lengths of stay are not keys.
    let text = file("visit,stay,Aufnahme", 200, |row| {
        let admitted = ["Notfall", "Einweisung", "Verlegung"][row % 3];
        format!("{},{},{admitted}", row % 4 + 1, row % 40)
    });
    let draft = draft(text.as_bytes());
    for name in ["visit", "stay", "Aufnahme"] {
        assert!(
            !["identifier", "subject"].contains(&role(&draft, name)),
            "{name}"
        );
    }
}

#[test]
fn names_of_hospital_tables_say_what_others_know() {
    let header =
        "Körpergröße,Beschäftigung,Straße,GebMonat,GebTag,Geb-Jahr,Zimmer,KW,SSW,BMI,LANR,VersNr";
    let text = file(header, 120, |row| {
        format!(
            "{},B{},Weg {},{},{},{},{},{},{},{}.{},{},{}",
            150 + row % 50,
            row % 8,
            row % 30,
            row % 12 + 1,
            row % 28 + 1,
            1_930 + row % 70,
            100 + row % 20,
            row % 52 + 1,
            row % 20 + 20,
            20 + row % 15,
            row % 10,
            123_456_700 + row % 9,
            5_000 + row / 2
        )
    });
    let draft = draft(text.as_bytes());
    let mut names = header.split(',');
    for name in names.by_ref().take(10) {
        let expected = if name == "Straße" {
            "identifier"
        } else {
            "quasi_identifier"
        };
        assert_eq!(role(&draft, name), expected, "{name}");
    }
    assert_eq!(role(&draft, "LANR"), "identifier");
    assert_eq!(role(&draft, "VersNr"), "subject");
}

/// No name says that the card is a key. The date of birth says as much, and others know it.
#[test]
fn a_column_that_says_the_same_as_the_subject_is_dropped() {
    let text = file("Patient,born,sex,ward,card,colour", 300, |row| {
        let person = row / 3;
        format!(
            "{},19{:02}-03-{:02},{},W{},{},c{}",
            8_000 + person,
            person % 90,
            person / 90 + 10,
            ["f", "m"][person % 2],
            row % 7,
            200 + person * 3,
            person % 40
        )
    });
    let draft = draft(text.as_bytes());
    assert_eq!(role(&draft, "Patient"), "subject");
    assert_eq!(role(&draft, "card"), "identifier");
    let reasons = draft["reasons"]["card"].to_string();
    assert!(reasons.contains("it is another key"), "{reasons}");
    for name in ["born", "sex", "ward", "colour"] {
        assert_eq!(role(&draft, name), "quasi_identifier", "{name}");
    }
}

#[test]
fn numbers_with_slashes_are_no_sets() {
    let text = file("ended,billed,short,pressure,seen,codes", 200, |row| {
        let (month, day) = (row % 12 + 1, row % 31 + 1);
        // One of the dates does not exist.
        let seen = if row == 7 { 2 } else { day % 28 + 1 };
        let codes = ["10/20/30", "10", "20/30", "10/40", "40"][row % 5];
        format!(
            "{month:02}/{},{},{day:02}/{month:02},{}/{},{seen:02}/{}/2025,{codes}",
            2_020 + row % 5,
            format_args!("{}-{month:02}", 2_020 + row % 5),
            110 + row % 6 * 10,
            70 + row % 5 * 5,
            if row == 7 { 30 } else { month },
        )
    });
    let draft = draft(text.as_bytes());
    for name in ["ended", "billed", "short", "pressure", "seen"] {
        assert_eq!(column(&draft, name)["kind"], "categorical", "{name}");
        assert_ne!(role(&draft, name), "insensitive", "{name}");
    }
    for name in ["ended", "billed"] {
        let reasons = draft["reasons"][name].to_string();
        assert!(reasons.contains("years and months"), "{reasons}");
    }
    assert_eq!(column(&draft, "codes")["kind"], "set");
}

#[test]
fn few_whole_numbers_without_a_telling_name_are_asked_about() {
    let text = file("xtag,xmon,pulse,n_visits,share,age", 300, |row| {
        format!(
            "{},{},{},{},{}.5,{}",
            row % 31 + 1,
            row % 12 + 1,
            50 + row % 70,
            row % 9,
            row % 20,
            row % 30
        )
    });
    let draft = draft(text.as_bytes());
    for name in ["xtag", "xmon"] {
        assert_eq!(role(&draft, name), "insensitive");
        let choices = &doubt(&draft, name)["choices"];
        assert_eq!(
            *choices,
            json!(["insensitive", "quasi_identifier", "sensitive"])
        );
    }
    for name in ["pulse", "n_visits", "share", "age"] {
        assert!(!is_asked(&draft, name), "{name}");
    }
}

fn answer(column: &str, choice: &str) -> Answer {
    Answer {
        column: column.to_owned(),
        choice: choice.to_owned(),
    }
}

/// A csv draft, its questions answered, and its schema read over the file.
fn answered(text: &str, answers: &[(&str, &str)]) -> super::Draft {
    let options = DraftOptions::default();
    let draft = csv(text.as_bytes(), TextParameters::default(), options).unwrap();
    let answers = answers.iter();
    let answers = answers.map(|(column, choice)| answer(column, choice));
    let draft = draft.answered(&answers.collect::<Vec<_>>()).unwrap();
    let schema = pais_core::schema::Schema::inline(&draft.dataset).unwrap();
    crate::read::csv::read_table(&schema, text.as_bytes()).unwrap();
    draft
}

#[test]
fn well_known_values_for_missing_ones_are_asked_about() {
    let header = "age,height,score,born,died,zip,enrolled,children,stay,cost";
    let text = file(header, 100, |row| {
        let rare = |is_missing: bool, other: String, text: &str| {
            if is_missing { text.to_owned() } else { other }
        };
        [
            rare(row % 40 == 0, (18 + row % 70).to_string(), "999"),
            rare(row % 30 == 0, (150 + row % 50).to_string(), "-1"),
            (row - row % 2).to_string(),
            rare(
                row % 20 == 0,
                format!("19{}-02-03", 30 + row % 60),
                "1900-01-01",
            ),
            rare(
                row % 5 > 0,
                format!("2024-0{}-07", row % 9 + 1),
                "9999-12-31",
            ),
            rare(row % 25 == 0, format!("010{:02}", row % 20), "00000"),
            rare(row % 20 == 0, (1_990 + row % 30).to_string(), "9999"),
            (row % 9).to_string(),
            // These are no more than the other numbers, or rare.
            rare(row % 10 == 0, (row % 90 + 4).to_string(), "99"),
            rare(row == 7, (row % 50).to_string(), "9999"),
        ]
        .join(",")
    });
    let draft = draft(text.as_bytes());
    for (name, value) in [
        ("age", "999"),
        ("height", "-1"),
        ("born", "1900-01-01"),
        ("died", "9999-12-31"),
        ("zip", "00000"),
        ("enrolled", "9999"),
    ] {
        let doubt = doubt(&draft, name);
        assert_eq!(doubt["choices"], json!(["value", "missing"]), "{name}");
        let question = doubt["question"].as_str().unwrap();
        assert!(question.contains(&format!("`{value}`")), "{question}");
        assert_eq!(column(&draft, name).get("missing"), None);
    }
    for name in ["score", "stay", "cost"] {
        assert!(!is_asked(&draft, name), "{name}");
    }
    // Years stay years, and ages are in years.
    assert_eq!(role(&draft, "enrolled"), "quasi_identifier");
    let ages = json!({"generate": "ranges", "widths": [5.0, 10.0, 20.0]});
    assert_eq!(column(&draft, "age")["taxonomy"], ages);
    assert_eq!(column(&draft, "height")["domain"], json!([-100.0, 200.0]));

    let draft = answered(
        &text,
        &[("height", "missing"), ("born", "missing"), ("age", "value")],
    );
    let shown = serde_json::to_value(&draft).unwrap();
    assert_eq!(column(&shown, "height")["missing"], json!(["", "-1"]));
    assert_eq!(column(&shown, "height")["domain"], json!([150.0, 200.0]));
    assert_eq!(column(&shown, "born")["missing"], json!(["", "1900-01-01"]));
    for name in ["height", "born", "age"] {
        assert!(!is_asked(&shown, name), "{name}");
    }
}

/// Both answers apply, and one answer about the same values is for all columns.
#[test]
fn a_column_can_have_two_questions() {
    let text = file("seen,left,xday", 100, |row| {
        let day = |gap: usize| match row % gap {
            0 => "01/01/1900".to_owned(),
            _ => format!("0{}/0{}/2024", row % 9 + 1, row % 7 + 1),
        };
        let number = if row % 25 == 0 { 99 } else { row % 28 + 1 };
        format!("{},{},{number}", day(10), day(11))
    });
    let draft = answered(
        &text,
        &[
            ("seen", "missing"),
            ("seen", "%d/%m/%Y"),
            ("xday", "missing"),
            ("xday", "quasi_identifier"),
        ],
    );
    let shown = serde_json::to_value(&draft).unwrap();
    for name in ["seen", "left"] {
        assert_eq!(
            column(&shown, name)["missing"],
            json!(["", "01/01/1900"]),
            "{name}"
        );
    }
    assert_eq!(column(&shown, "seen")["format"], "%d/%m/%Y");
    assert_eq!(column(&shown, "xday")["missing"], json!(["", "99"]));
    assert_eq!(role(&shown, "xday"), "quasi_identifier");
    assert!(!is_asked(&shown, "seen") && !is_asked(&shown, "xday"));
}
