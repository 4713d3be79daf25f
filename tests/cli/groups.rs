//! `pais anonymize` and `pais verify` with groups: anatomized releases, which are directories of
//! tables, local recoding, and output paths that are refused.

use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use crate::cli_dir::CliDir;

/// A directory with a schema of two sensitive columns, a job and a raw table.
struct GroupsDir(CliDir);

const RAW: &str = "name,age,sex,ill,drug/s,note\n\
    1,20,F,flu,a,x\n2,21,F,hiv,b,\n3,22,M,cold,c,x\n4,40,M,flu,d,y\n5,41,F,hiv,a,y\n\
    6,41,F,gout,b,y\n7,42,M,cold,c,\n8,,M,gout,d,z\n";

impl GroupsDir {
    fn new(privacy: &Value) -> Self {
        let dir = Self(CliDir::new());
        let schema = json!({"name": "t", "columns": [
            {"name": "name", "role": "identifier"},
            {"name": "age", "role": "quasi_identifier", "kind": "numeric"},
            {"name": "sex", "role": "quasi_identifier"},
            {"name": "ill", "role": "sensitive"},
            {"name": "drug/s", "role": "sensitive"},
            {"name": "note", "role": "insensitive"},
        ]});
        dir.write("s.json", &schema.to_string());
        dir.write("raw.csv", RAW);
        dir.job("j.json", privacy, &json!({}));
        dir
    }

    fn job(&self, name: &str, privacy: &Value, extra: &Value) {
        let mut job = json!({"privacy": privacy, "recoding": "local"});
        for (name, value) in extra.as_object().unwrap() {
            job[name] = value.clone();
        }
        self.write(name, &job.to_string());
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        self.0.write(name, text);
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    fn run(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let Output {
            status,
            stdout,
            stderr,
        } = self.0.run(arguments);
        let text = String::from_utf8([stdout, stderr].concat()).unwrap();
        (status.code(), text)
    }

    fn anonymize(&self, job: &str, out: &[&str]) -> (Option<i32>, String) {
        let arguments = ["anonymize", "--schema", "s.json", "--job", job, "raw.csv"];
        self.run(&[&arguments, out].concat())
    }

    fn verify(&self, job: &str, release: &str, raw: &[&str]) -> (Option<i32>, String) {
        let arguments = ["verify", "--schema", "s.json", "--job", job, release];
        self.run(&[&arguments, raw].concat())
    }
}

fn diverse(k: u32, l: u32) -> Value {
    json!({"model": "l_diversity", "k": k, "l": l})
}

/// Under LKC-privacy groups are generalized. What is released holds, with and without the raw table;
/// a release whose groups are safe only by L is decided by what raw values match.
#[test]
fn overlapping_labels_are_decided_by_what_raw_values_match() {
    let privacy = json!({"model": "lkc", "l": 1, "k": 2, "c": 0.5,
                         "sensitive_values": {"ill": ["hiv"], "drug/s": ["a"]}});
    let dir = GroupsDir::new(&privacy);
    let (status, text) = dir.anonymize("j.json", &["-o", "o.csv"]);
    assert_eq!(status, Some(0), "{text}");
    for raw in [&WITH_RAW[..], &[]] {
        let (status, text) = dir.verify("j.json", "o.csv", raw);
        assert_eq!(status, Some(0), "{text}");
    }
    // No two rows share both labels, but each age, also a missing one, and each sex matches two.
    let header = "age,sex,ill,drug/s,note\n";
    let safe = "\"[20,30]\",*,hiv,c,x\n\"[20,40]\",F,flu,b,x\n\"[20,50]\",F,flu,a,y\n\
                \"[20,50]\",M,cold,b,y\n\"[31,50]\",M,gout,d,y\n\"[41,50]\",*,flu,d,y\n";
    dir.write("safe.csv", &format!("{header}{safe}"));
    let (status, text) = dir.verify("j.json", "safe.csv", &[]);
    assert_eq!(status, Some(0), "{text}");
    // A missing age and one sex match one row together.
    dir.job(
        "both.json",
        &json!({"model": "lkc", "l": 2, "k": 2, "c": 0.5,
        "sensitive_values": {"ill": ["hiv"]}}),
        &json!({}),
    );
    let (status, text) = dir.verify("both.json", "safe.csv", &[]);
    assert_eq!(status, Some(1), "{text}");
    // 60 is covered by one label only.
    let unsafe_rows = safe.replace("[41,50]", "[41,60]");
    dir.write("unsafe.csv", &format!("{header}{unsafe_rows}"));
    let (status, text) = dir.verify("j.json", "unsafe.csv", &[]);
    assert_eq!(status, Some(1), "{text}");
}

/// A job with both recodings writes a row for each.
#[test]
fn recodings_and_objectives_are_compared_in_one_table() {
    let dir = GroupsDir::new(&json!({"model": "lkc", "l": 2, "k": 2, "c": 0.5,
                                     "sensitive_values": {"ill": ["hiv"]}}));
    dir.job(
        "sweep.json",
        &json!({"model": "lkc", "l": 2, "k": 2, "c": 0.5, "sensitive_values": {"ill": ["hiv"]}}),
        &json!({"recoding": ["global", "local"], "utility": {"objective": ["ncp", "discernibility"]}}),
    );
    let (status, text) = dir.anonymize("sweep.json", &["-o", "sweep.csv"]);
    assert_eq!(status, Some(0), "{text}");
    let table = dir.read("sweep.csv");
    let rows: Vec<Vec<&str>> = table
        .lines()
        .map(|line| line.split(',').collect())
        .collect();
    let shown: Vec<&[&str]> = rows.iter().map(|row| &row[3..6]).collect();
    assert_eq!(
        shown,
        [
            ["recoding", "objective", "status"],
            ["global", "ncp", "succeeded"],
            ["global", "discernibility", "succeeded"],
            ["local", "ncp", "succeeded"],
            ["local", "discernibility", "succeeded"],
        ]
    );
    let ncp: Vec<f64> = rows[1..]
        .iter()
        .map(|row| row[11].parse().unwrap())
        .collect();
    assert_eq!(rows[0][11], "ncp");
    assert!(ncp[2] < ncp[0], "{ncp:?}");
}

const WITH_RAW: [&str; 2] = ["--raw", "raw.csv"];

#[test]
fn an_anatomized_release_is_a_directory() {
    let dir = GroupsDir::new(&diverse(4, 3));
    let (status, text) = dir.anonymize("j.json", &["-o", "out"]);
    assert_eq!(status, Some(0), "{text}");
    for file in ["qit.csv", "st_ill.csv", "st_drug%2Fs.csv"] {
        assert!(Path::new(&dir.path("out").join(file)).is_file(), "{file}");
    }
    assert!(
        dir.read("out/qit.csv")
            .starts_with("age,sex,note,group_id\n")
    );
    let (status, text) = dir.verify("j.json", "out", &WITH_RAW);
    assert_eq!(status, Some(0), "{text}");
    assert!(text.contains("least diversity      3"), "{text}");
    // Verifying needs the raw table. The release does not meet a stricter model.
    assert_eq!(dir.verify("j.json", "out", &[]).0, Some(2));
    dir.job("strict.json", &diverse(4, 5), &json!({}));
    let (status, text) = dir.verify("strict.json", "out", &WITH_RAW);
    assert_eq!(status, Some(1), "{text}");
    assert!(
        text.contains("worst groups") && text.contains("group_id = "),
        "{text}"
    );
    // Exact quasi-identifiers beside counts of sensitive values protect nobody by K alone.
    dir.job(
        "k.json",
        &json!({"model": "k_anonymity", "k": 4}),
        &json!({}),
    );
    let (status, text) = dir.verify("k.json", "out", &WITH_RAW);
    assert_eq!(status, Some(2));
    assert!(text.contains("choose a model of diversity"), "{text}");
}

#[test]
fn a_modified_anatomy_is_rejected() {
    let dir = GroupsDir::new(&diverse(4, 3));
    dir.anonymize("j.json", &["-o", "out"]);
    let qit = dir.read("out/qit.csv");
    let mut lines: Vec<&str> = qit.lines().collect();
    // A row is missing: the sensitive tables count one value too many.
    let last = lines.pop().unwrap();
    dir.write("out/qit.csv", &(lines.join("\n") + "\n"));
    let (status, text) = dir.verify("j.json", "out", &WITH_RAW);
    assert_eq!(status, Some(1), "{text}");
    assert!(text.contains("no records lost      NO"), "{text}");
    // A row occurs twice.
    dir.write("out/qit.csv", &format!("{qit}{last}\n"));
    let (status, text) = dir.verify("j.json", "out", &WITH_RAW);
    assert_eq!(status, Some(1), "{text}");
    assert!(text.contains("truthful             NO"), "{text}");
    dir.write("out/qit.csv", &qit);
    // A group counts a value that none of its rows has.
    let counted = dir.read("out/st_ill.csv");
    let (from, to) = if counted.contains("1,cold,") {
        ("1,cold", "1,flu2")
    } else {
        ("1,", "1,")
    };
    assert_ne!(from, to, "{counted}");
    dir.write("out/st_ill.csv", &counted.replacen(from, to, 1));
    let (status, text) = dir.verify("j.json", "out", &WITH_RAW);
    assert_eq!(status, Some(1), "{text}");
    assert!(text.contains("sensitive tables     NO"), "{text}");
    // Tables that can be read and count what no group has.
    let rows: Vec<&str> = counted.lines().collect();
    let (header, first, last) = (rows[0], rows[1], rows[rows.len() - 1]);
    let last_line = rows.len() as u64;
    let uncounted = |row: &str, count: &str| format!("{},{count}", row.rsplit_once(',').unwrap().0);
    let others = rows[2..].join("\n");
    for (table, line) in [
        (format!("{header}\n{last}\n{first}\n"), 3),
        (format!("{counted}{last}\n"), last_line + 1),
        (
            format!("{header}\n{}\n{others}\n", uncounted(first, "0")),
            2,
        ),
        (
            format!("{header}\n{}\n{others}\n", uncounted(first, "-1")),
            2,
        ),
    ] {
        dir.write("out/st_ill.csv", &table);
        let (status, text) = dir.verify("j.json", "out", &WITH_RAW);
        assert_eq!(status, Some(1), "{table}{text}");
        let problem: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(problem["errors"][0]["line"], line, "{table}{text}");
        assert!(text.contains("table `st_ill`"), "{text}");
    }
    // A table without counts, and a missing table.
    dir.write("out/st_ill.csv", "group_id,ill\n1,flu\n");
    assert_eq!(dir.verify("j.json", "out", &WITH_RAW).0, Some(2));
    std::fs::remove_file(dir.path("out/st_ill.csv")).unwrap();
    assert_eq!(dir.verify("j.json", "out", &WITH_RAW).0, Some(2));
}

/// Rows with equal exact columns may be in different groups: the counts decide which row is where.
#[test]
fn equal_rows_are_assigned_to_groups_by_the_counts() {
    let dir = GroupsDir::new(&json!({"model": "l_diversity", "k": 2, "l": 2}));
    dir.write(
        "raw.csv",
        "name,age,sex,ill,drug/s,note\n1,20,F,flu,a,\n2,20,F,hiv,b,\n3,20,F,flu,c,\n4,20,F,cold,d,\n",
    );
    std::fs::create_dir(dir.path("out")).unwrap();
    dir.write(
        "out/qit.csv",
        "age,sex,group_id\n20,F,1\n20,F,2\n20,F,1\n20,F,2\n",
    );
    dir.write(
        "out/st_ill.csv",
        "group_id,ill,count\n1,flu,2\n2,cold,1\n2,hiv,1\n",
    );
    dir.write(
        "out/st_drug%2Fs.csv",
        "group_id,drug/s,count\n1,a,1\n1,c,1\n2,b,1\n2,d,1\n",
    );
    let (status, text) = dir.verify("j.json", "out", &WITH_RAW);
    assert_eq!(status, Some(1), "{text}");
    // Both records of the first group have the flu: one value deletes them.
    assert!(text.contains("1  group_id = 1"), "{text}");
    dir.write(
        "out/st_ill.csv",
        "group_id,ill,count\n1,flu,1\n1,hiv,1\n2,cold,1\n2,flu,1\n",
    );
    let (status, text) = dir.verify("j.json", "out", &WITH_RAW);
    // No patient took `a` or `c` and had hiv.
    assert_eq!(status, Some(1), "{text}");
    assert!(text.contains("sensitive tables     NO"), "{text}");
}

#[test]
fn a_generalized_table_of_groups_is_a_file() {
    let dir = GroupsDir::new(&diverse(4, 3));
    dir.job("g.json", &diverse(4, 3), &json!({"output": "generalized"}));
    let (status, text) = dir.anonymize("g.json", &["-o", "g.csv"]);
    assert_eq!(status, Some(0), "{text}");
    let (status, text) = dir.verify("g.json", "g.csv", &WITH_RAW);
    assert_eq!(status, Some(0), "{text}");
    dir.job(
        "strict.json",
        &diverse(4, 5),
        &json!({"output": "generalized"}),
    );
    let (status, text) = dir.verify("strict.json", "g.csv", &WITH_RAW);
    assert_eq!(status, Some(1), "{text}");
    assert!(text.contains("age = ["), "{text}");
}

#[test]
fn the_output_path_must_match_the_kind_of_output() {
    let dir = GroupsDir::new(&diverse(4, 3));
    dir.write("taken", "a file");
    for out in [&["-o", "x.csv"][..], &["-o", "taken"], &[]] {
        let (status, text) = dir.anonymize("j.json", out);
        assert_eq!(status, Some(2), "{out:?}: {text}");
    }
    dir.job("g.json", &diverse(4, 3), &json!({"output": "generalized"}));
    assert_eq!(dir.anonymize("g.json", &["-o", "out"]).0, Some(2));
    dir.job("h.json", &diverse(4, 9), &json!({}));
    let (status, text) = dir.anonymize("h.json", &["-o", "out"]);
    assert_eq!(status, Some(1), "{text}");
    assert!(
        text.contains("not_anonymizable") && !dir.path("out").exists(),
        "{text}"
    );
    dir.job(
        "l.json",
        &json!({"model": "lkc", "l": 1, "k": 2, "c": 1}),
        &json!({"recoding": "global", "output": "anatomized"}),
    );
    assert_eq!(dir.anonymize("l.json", &["-o", "out"]).0, Some(1));
}
