//! Releases of datasets with a subject column: K is asked of persons, whom the raw table names.

use pais_core::cancellation::Cancellation;
use pais_core::definition::{DatasetDefinition, JobDefinition, json};
use pais_core::reimport;
use pais_core::reimport::anatomized;
use pais_core::schema::Schema;
use pais_io::read::csv;

use super::{
    FoundRecoding, PrivacyFinding, ReleaseError, ReleaseTables, ReleaseVerification, Undecided,
    UndecidedReason, verify_release,
};

const SCHEMA: &[u8] = br#"{"name": "visits", "columns": [
    {"name": "patient", "role": "subject"},
    {"name": "age", "role": "quasi_identifier", "kind": "numeric", "domain": [0, 99]},
    {"name": "diagnosis", "role": "sensitive"}]}"#;

/// Two patients below 50, three from 50 on.
const RAW: &str = "patient,age,diagnosis\np1,21,flu\np1,25,cold\np2,33,flu\n\
    p3,71,flu\np4,78,cold\np5,90,flu\n";

const HALVES: &str = "age,diagnosis\n\"[0,50)\",flu\n\"[0,50)\",cold\n\"[0,50)\",flu\n\
    \"[50,99]\",cold\n\"[50,99]\",flu\n\"[50,99]\",flu\n";

fn schema() -> Schema {
    let dataset: DatasetDefinition = json::parse(SCHEMA).unwrap();
    Schema::inline(&dataset).unwrap()
}

fn verify_by(privacy: &str, suppressed: f64, file: &str, raw: Option<&str>) -> ReleaseVerification {
    let schema = schema();
    let job = format!(r#"{{"privacy": {privacy}, "suppression_limit": {suppressed}}}"#);
    let job: JobDefinition = json::parse(job.as_bytes()).unwrap();
    let job = job.parse().unwrap();
    let names: Vec<String> = csv::names(file.as_bytes(), pais_io::read::TextFormat::CSV).unwrap();
    let read_by = reimport::columns(&schema, &names);
    let table = csv::read_table(&read_by, file.as_bytes()).unwrap();
    let release =
        ReleaseTables::Generalized(reimport::released(&schema, &read_by, table, 2).unwrap());
    let raw = raw.map(|raw| csv::read_table(&schema, raw.as_bytes()).unwrap());
    verify_release(&schema, &job, &release, raw, &Cancellation::new()).unwrap()
}

fn verify(k: u64, file: &str, raw: Option<&str>) -> ReleaseVerification {
    let privacy = format!(r#"{{"model": "k_anonymity", "k": {k}}}"#);
    verify_by(&privacy, 0.0, file, raw)
}

fn smallest(found: &ReleaseVerification) -> u64 {
    match found.privacy.as_ref().unwrap() {
        PrivacyFinding::Subsets(found) => found.smallest_group,
        PrivacyFinding::Groups(found) => found.smallest_group,
    }
}

fn persons(found: &ReleaseVerification) -> Option<u64> {
    found.subjects.map(|it| it.count)
}

#[test]
fn persons_of_the_raw_table_are_counted() {
    let found = verify(2, HALVES, Some(RAW));
    assert!(found.holds() && !found.fails());
    assert_eq!(
        (smallest(&found), persons(&found), found.undecided),
        (2, Some(5), None)
    );
    let found = verify(3, HALVES, Some(RAW));
    assert!(found.fails(), "three rows below 50 are of two persons");
    assert_eq!(found.raw.unwrap().made_up, 0);
}

/// Both rows of a patient have a diagnosis that nobody else has; of another one there is one row.
#[test]
fn unchanged_columns_single_out_persons_where_the_raw_table_names_them() {
    let raw = "patient,age,diagnosis\np1,21,gout\np1,25,gout\np2,33,flu\n\
        p3,71,flu\np4,78,cold\np5,90,flu\n";
    let released = "age,diagnosis\n\"[0,50)\",gout\n\"[0,50)\",gout\n\"[0,50)\",flu\n\
        \"[50,99]\",cold\n\"[50,99]\",flu\n\"[50,99]\",flu\n";
    let found = verify(2, released, Some(raw));
    assert_eq!(persons(&found), Some(5));
    assert_eq!(found.unchanged.singled_out_share, 2.0 / 5.0);
    let found = verify(2, released, None);
    assert_eq!(found.unchanged.singled_out_share, 1.0 / 6.0);
}

#[test]
fn rows_alone_decide_neither_way_where_they_are_enough() {
    let found = verify(3, HALVES, None);
    assert!(!found.fails() && !found.holds());
    assert_eq!(found.subjects, None);
    let open = Undecided {
        k: 3,
        reason: UndecidedReason::NoRaw,
    };
    assert_eq!(found.undecided, Some(open));
    let text = found.undecided.unwrap().to_string();
    assert!(
        text.contains("K = 3") && text.contains("raw table"),
        "{text}"
    );
}

#[test]
fn a_group_of_fewer_rows_than_k_fails_without_the_raw_table() {
    let found = verify(4, HALVES, None);
    assert!(found.fails());
    assert_eq!((smallest(&found), found.undecided), (3, None));
}

/// A confidence is a share of rows, which a release shows.
#[test]
fn confidence_is_decided_without_the_raw_table() {
    let by = |c: f64| {
        let privacy = format!(r#"{{"model": "lkc", "l": 1, "k": 2, "c": {c}}}"#);
        verify_by(&privacy, 0.0, HALVES, None)
    };
    let open = Some(Undecided {
        k: 2,
        reason: UndecidedReason::NoRaw,
    });
    assert_eq!((by(0.6).fails(), by(0.6).undecided), (true, open));
    assert_eq!((by(0.7).fails(), by(0.7).undecided), (false, open));
    let bounding = r#"{"model": "confidence_bounding", "c": 0.7}"#;
    assert!(verify_by(bounding, 0.0, HALVES, None).holds(), "K is 1");
}

#[test]
fn the_same_file_twice_has_no_more_persons() {
    let twice = |file: &str| {
        let (head, rows) = file.split_once('\n').unwrap();
        format!("{head}\n{rows}{rows}")
    };
    let found = verify(3, &twice(HALVES), Some(&twice(RAW)));
    assert!(found.fails());
    assert_eq!((smallest(&found), persons(&found)), (2, Some(5)));
    assert!(verify(2, &twice(HALVES), Some(&twice(RAW))).holds());
}

#[test]
fn persons_of_one_row_each_are_rows() {
    let raw = RAW.replacen("p1", "p0", 1);
    let found = verify(3, HALVES, Some(&raw));
    assert!(found.holds());
    assert_eq!((smallest(&found), persons(&found)), (3, Some(6)));
}

/// Equal persons are equal in their canonical form, as everywhere.
#[test]
fn spaces_around_a_person_do_not_make_another() {
    let raw = RAW.replacen("p1", " p1 ", 1);
    assert_eq!(persons(&verify(2, HALVES, Some(&raw))), Some(5));
}

#[test]
fn a_row_that_is_left_out_takes_its_person_with_it() {
    // The only row with a cold below 50, the one of p1 that is left, and that of p2.
    let file = HALVES.replacen("\"[0,50)\",flu\n", "", 1);
    let privacy = r#"{"model": "k_anonymity", "k": 2}"#;
    let raw = RAW.replace("p2,33,flu\n", "p1,33,flu\n");
    let found = verify_by(privacy, 0.2, &file, Some(&raw));
    assert_eq!((smallest(&found), persons(&found)), (1, Some(4)));
    assert!(found.fails());
    assert_eq!(found.raw.unwrap().lost, 1);
}

#[test]
fn rows_of_nobody_are_of_one_person() {
    let file = HALVES.to_owned() + &"\"[0,99]\",plague\n".repeat(3);
    let found = verify(2, &file, Some(RAW));
    assert_eq!(found.raw.as_ref().unwrap().made_up, 3);
    assert_eq!((smallest(&found), persons(&found)), (1, Some(6)));
    assert!(found.fails());
}

/// The labels overlap, but each raw row fits one released row.
#[test]
fn persons_are_found_under_overlapping_labels() {
    let file = "age,diagnosis\n\"[20,33]\",flu\n\"[20,40]\",cold\n\"[20,33]\",flu\n\
        \"[71,90]\",flu\n\"[71,90]\",flu\n\"[71,99]\",cold\n";
    let found = verify(2, file, Some(RAW));
    assert!(found.fails(), "a cold of one person");
    assert_eq!(found.raw.as_ref().unwrap().made_up, 0);
    assert_eq!(found.raw.as_ref().unwrap().recoding, FoundRecoding::Local);
    assert_eq!((persons(&found), found.undecided), (Some(5), None));
    let file = file
        .replace("[20,40]", "[20,33]")
        .replace("[71,99]", "[71,90]");
    assert!(verify(2, &file, Some(RAW)).holds());
    let same = RAW.replace("p2", "p1").replace("p5", "p4");
    let found = verify(2, &file, Some(&same));
    assert_eq!((smallest(&found), persons(&found)), (1, Some(3)));
    assert!(found.fails());
}

/// The group `[20,22]` has the rows of p0 and p2, or those of p1 and p2, beside one of p1 in the other group: whichever
/// are assigned, the release does not fail, and persons are said to be of one assignment.
#[test]
fn a_release_whose_rows_fit_several_persons_does_not_fail_by_one_assignment() {
    let schema = r#"{"name": "t", "columns": [{"name": "patient", "role": "subject"},
        {"name": "age", "role": "quasi_identifier", "kind": "numeric"}]}"#;
    let dataset: DatasetDefinition = json::parse(schema.as_bytes()).unwrap();
    let schema = Schema::inline(&dataset).unwrap();
    let verify = |k: u64, rows: &[&str], raw: &str| {
        let job =
            format!(r#"{{"privacy": {{"model": "k_anonymity", "k": {k}}}, "recoding": "local"}}"#);
        let job: JobDefinition = json::parse(job.as_bytes()).unwrap();
        let file = format!("age\n\"{}\"\n", rows.join("\"\n\""));
        let read_by = reimport::columns(&schema, &["age".to_owned()]);
        let table = csv::read_table(&read_by, file.as_bytes()).unwrap();
        let table = reimport::released(&schema, &read_by, table, 2).unwrap();
        let raw = csv::read_table(&schema, raw.as_bytes()).unwrap();
        let release = ReleaseTables::Generalized(table);
        let job = job.parse().unwrap();
        verify_release(&schema, &job, &release, Some(raw), &Cancellation::new()).unwrap()
    };
    let raw = "patient,age\np1,22\np1,23\np2,20\np1,24\np0,22\n";
    let low = ["[20,22]"; 2];
    let high = ["[22,24]"; 3];
    let mut is_undecided = false;
    for rows in [[&low[..], &high].concat(), [&high[..], &low].concat()] {
        let found = verify(2, &rows, raw);
        let open = Undecided {
            k: 2,
            reason: UndecidedReason::SeveralPersons,
        };
        assert!(!found.fails() && found.subjects.is_none_or(|it| !it.are_known));
        assert!(found.undecided.is_none_or(|undecided| undecided == open));
        assert_eq!(found.holds(), found.undecided.is_none());
        assert!(found.raw.unwrap().holds());
        is_undecided |= found.undecided.is_some();
        assert!(verify(3, &rows, raw).fails(), "a group has two rows");
    }
    assert!(is_undecided, "in one order the persons of a group are one");
    // Any three rows are of two persons.
    let raw = raw.replace("p1,23", "p3,23") + "p4,23\n";
    let rows = [["[20,24]"; 3], ["[22,24]"; 3]].concat();
    assert!(verify(2, &rows, &raw).holds());
    assert!(!verify(3, &rows, &raw).fails());
}

/// What the groups of [`verify_anatomy`] have.
const COUNTS: &str = "group_id,diagnosis,count\n1,cold,1\n1,flu,2\n2,cold,1\n2,flu,2\n";

/// Groups of three rows: those of patients p1, p1, p2, and those of p3, p4, p5.
fn verify_anatomy(k: u64, raw: &str, counts: &str) -> ReleaseVerification {
    verify_anatomy_until(k, raw, counts, &Cancellation::new()).unwrap()
}

fn verify_anatomy_until(
    k: u64,
    raw: &str,
    counts: &str,
    cancellation: &Cancellation,
) -> Result<ReleaseVerification, ReleaseError> {
    let schema = schema();
    let job = format!(r#"{{"privacy": {{"model": "l_diversity", "k": {k}, "l": 2}}}}"#);
    let job: JobDefinition = json::parse(job.as_bytes()).unwrap();
    let job = job.parse().unwrap();
    let qit = "age,group_id\n90,2\n25,1\n33,1\n21,1\n71,2\n78,2\n";
    let names: Vec<String> = csv::names(qit.as_bytes(), pais_io::read::TextFormat::CSV).unwrap();
    let read_by = anatomized::quasi_identifier_columns(&schema, &names);
    let table = csv::read_table(&read_by, qit.as_bytes()).unwrap();
    let qit = anatomized::released("qit", &read_by, table);
    let diagnosis = schema
        .columns
        .iter()
        .find(|column| column.name() == "diagnosis");
    let read_by = anatomized::sensitive_columns(diagnosis.unwrap());
    let table = csv::read_table(&read_by, counts.as_bytes()).unwrap();
    let counts = vec![anatomized::released("st_diagnosis", &read_by, table)];
    let release = ReleaseTables::Anatomized { qit, counts };
    let raw = csv::read_table(&schema, raw.as_bytes()).unwrap();
    verify_release(&schema, &job, &release, Some(raw), cancellation)
}

#[test]
fn groups_of_an_anatomy_are_counted_in_persons() {
    let found = verify_anatomy(2, RAW, COUNTS);
    assert!(found.holds());
    assert_eq!((smallest(&found), persons(&found)), (2, Some(5)));
    assert!(verify_anatomy(3, RAW, COUNTS).fails());
    let one_each = RAW.replacen("p1", "p0", 1);
    let found = verify_anatomy(3, &one_each, COUNTS);
    assert!(found.holds());
    assert_eq!((smallest(&found), persons(&found)), (3, Some(6)));
}

#[test]
fn counts_whose_sum_is_out_of_range_do_not_match() {
    let half = u64::MAX / 2 + 1;
    let counts = format!("{COUNTS}3,cold,{half}\n3,flu,{half}\n");
    let found = verify_anatomy(2, RAW, &counts);
    let recoding = found.raw.as_ref().map(|raw| raw.recoding);
    let wrong = FoundRecoding::Anatomized {
        counts_match: false,
    };
    assert_eq!(recoding, Some(wrong));
    assert!(found.fails());
}

#[test]
fn the_rows_of_an_anatomy_are_not_assigned_after_a_request_to_stop() {
    let cancellation = Cancellation::new();
    cancellation.cancel();
    let found = verify_anatomy_until(2, RAW, COUNTS, &cancellation);
    assert_eq!(found.err(), Some(ReleaseError::Cancelled));
}
