//! `pais anonymize` and `pais verify` on groups: directories of tables, and what is refused.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

/// A directory with a schema, a job and a raw table.
struct Desk(tempfile::TempDir);

const RAW: &str = "name,age,sex,ill,drug/s,note\n\
    1,20,F,flu,a,x\n2,21,F,hiv,b,\n3,22,M,cold,c,x\n4,40,M,flu,d,y\n5,41,F,hiv,a,y\n\
    6,41,F,gout,b,y\n7,42,M,cold,c,\n8,,M,gout,d,z\n";

impl Desk {
    fn new(privacy: &Value) -> Self {
        let desk = Self(tempfile::tempdir().unwrap());
        let schema = json!({"name": "t", "columns": [
            {"name": "name", "role": "identifier"},
            {"name": "age", "role": "quasi_identifier", "kind": "numeric"},
            {"name": "sex", "role": "quasi_identifier"},
            {"name": "ill", "role": "sensitive"},
            {"name": "drug/s", "role": "sensitive"},
            {"name": "note", "role": "insensitive"},
        ]});
        desk.write("s.json", &schema.to_string());
        desk.write("raw.csv", RAW);
        desk.job("j.json", privacy, &json!({}));
        desk
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
        std::fs::write(self.path(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    fn run(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let Output {
            status,
            stdout,
            stderr,
        } = Command::new(env!("CARGO_BIN_EXE_pais"))
            .current_dir(self.0.path())
            .args(arguments)
            .output()
            .unwrap();
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

const HELD: [&str; 2] = ["--raw", "raw.csv"];

#[test]
fn an_anatomized_release_is_a_directory() {
    let desk = Desk::new(&diverse(4, 3));
    let (status, text) = desk.anonymize("j.json", &["-o", "out"]);
    assert_eq!(status, Some(0), "{text}");
    for file in ["qit.csv", "st_ill.csv", "st_drug%2Fs.csv"] {
        assert!(Path::new(&desk.path("out").join(file)).is_file(), "{file}");
    }
    assert!(
        desk.read("out/qit.csv")
            .starts_with("age,sex,note,group_id\n")
    );
    let (status, text) = desk.verify("j.json", "out", &HELD);
    assert_eq!(status, Some(0), "{text}");
    assert!(text.contains("least diversity      3"), "{text}");
    // It is not checked without the raw table, and does not hold a stricter model.
    assert_eq!(desk.verify("j.json", "out", &[]).0, Some(2));
    desk.job("strict.json", &diverse(4, 5), &json!({}));
    let (status, text) = desk.verify("strict.json", "out", &HELD);
    assert_eq!(status, Some(1), "{text}");
    assert!(
        text.contains("worst groups") && text.contains("group_id = "),
        "{text}"
    );
    desk.job(
        "k.json",
        &json!({"model": "k_anonymity", "k": 5}),
        &json!({}),
    );
    assert_eq!(desk.verify("k.json", "out", &HELD).0, Some(1));
    desk.job(
        "k.json",
        &json!({"model": "k_anonymity", "k": 4}),
        &json!({}),
    );
    assert_eq!(desk.verify("k.json", "out", &HELD).0, Some(0));
}

#[test]
fn a_tampered_anatomy_does_not_hold() {
    let desk = Desk::new(&diverse(4, 3));
    desk.anonymize("j.json", &["-o", "out"]);
    let qit = desk.read("out/qit.csv");
    let mut lines: Vec<&str> = qit.lines().collect();
    // A row lost; the sensitive tables count one too many.
    let last = lines.pop().unwrap();
    desk.write("out/qit.csv", &(lines.join("\n") + "\n"));
    let (status, text) = desk.verify("j.json", "out", &HELD);
    assert_eq!(status, Some(1), "{text}");
    assert!(text.contains("no records lost      NO"), "{text}");
    // A row twice.
    desk.write("out/qit.csv", &format!("{qit}{last}\n"));
    let (status, text) = desk.verify("j.json", "out", &HELD);
    assert_eq!(status, Some(1), "{text}");
    assert!(text.contains("truthful             NO"), "{text}");
    desk.write("out/qit.csv", &qit);
    // A value of one group counted in place of another.
    let counted = desk.read("out/st_ill.csv");
    let (from, to) = if counted.contains("1,cold,") {
        ("1,cold", "1,flu2")
    } else {
        ("1,", "1,")
    };
    assert_ne!(from, to, "{counted}");
    desk.write("out/st_ill.csv", &counted.replacen(from, to, 1));
    let (status, text) = desk.verify("j.json", "out", &HELD);
    assert_eq!(status, Some(1), "{text}");
    assert!(text.contains("sensitive tables     NO"), "{text}");
    // No table at all, or one that is no table.
    desk.write("out/st_ill.csv", "group_id,ill\n1,flu\n");
    assert_eq!(desk.verify("j.json", "out", &HELD).0, Some(2));
    std::fs::remove_file(desk.path("out/st_ill.csv")).unwrap();
    assert_eq!(desk.verify("j.json", "out", &HELD).0, Some(2));
}

/// Others may part rows that are alike in all exact columns: the counts tell which is where.
#[test]
fn rows_that_are_alike_are_told_by_the_counts() {
    let desk = Desk::new(&json!({"model": "l_diversity", "k": 2, "l": 2}));
    desk.write(
        "raw.csv",
        "name,age,sex,ill,drug/s,note\n1,20,F,flu,a,\n2,20,F,hiv,b,\n3,20,F,flu,c,\n4,20,F,cold,d,\n",
    );
    std::fs::create_dir(desk.path("out")).unwrap();
    desk.write(
        "out/qit.csv",
        "age,sex,group_id\n20,F,1\n20,F,2\n20,F,1\n20,F,2\n",
    );
    desk.write(
        "out/st_ill.csv",
        "group_id,ill,count\n1,flu,2\n2,cold,1\n2,hiv,1\n",
    );
    desk.write(
        "out/st_drug%2Fs.csv",
        "group_id,drug/s,count\n1,a,1\n1,c,1\n2,b,1\n2,d,1\n",
    );
    let (status, text) = desk.verify("j.json", "out", &HELD);
    assert_eq!(status, Some(1), "{text}");
    // Both records of the first group have the flu: one value deletes them.
    assert!(text.contains("1  group_id = 1"), "{text}");
    desk.write(
        "out/st_ill.csv",
        "group_id,ill,count\n1,flu,1\n1,hiv,1\n2,cold,1\n2,flu,1\n",
    );
    let (status, text) = desk.verify("j.json", "out", &HELD);
    // No patient took `a` or `c` and had hiv.
    assert_eq!(status, Some(1), "{text}");
    assert!(text.contains("sensitive tables     NO"), "{text}");
}

#[test]
fn a_generalized_table_of_groups_is_a_file() {
    let desk = Desk::new(&diverse(4, 3));
    desk.job("g.json", &diverse(4, 3), &json!({"output": "generalized"}));
    let (status, text) = desk.anonymize("g.json", &["-o", "g.csv"]);
    assert_eq!(status, Some(0), "{text}");
    let (status, text) = desk.verify("g.json", "g.csv", &HELD);
    assert_eq!(status, Some(0), "{text}");
    desk.job(
        "strict.json",
        &diverse(4, 5),
        &json!({"output": "generalized"}),
    );
    let (status, text) = desk.verify("strict.json", "g.csv", &HELD);
    assert_eq!(status, Some(1), "{text}");
    assert!(text.contains("age = ["), "{text}");
}

#[test]
fn where_the_tables_go_must_fit_what_they_are() {
    let desk = Desk::new(&diverse(4, 3));
    desk.write("taken", "a file");
    for out in [&["-o", "x.csv"][..], &["-o", "taken"], &[]] {
        let (status, text) = desk.anonymize("j.json", out);
        assert_eq!(status, Some(2), "{out:?}: {text}");
    }
    desk.job("g.json", &diverse(4, 3), &json!({"output": "generalized"}));
    assert_eq!(desk.anonymize("g.json", &["-o", "out"]).0, Some(2));
    desk.job("h.json", &diverse(4, 9), &json!({}));
    let (status, text) = desk.anonymize("h.json", &["-o", "out"]);
    assert_eq!(status, Some(1), "{text}");
    assert!(
        text.contains("not_anonymizable") && !desk.path("out").exists(),
        "{text}"
    );
    desk.job(
        "l.json",
        &json!({"model": "lkc", "l": 1, "k": 2, "c": 1}),
        &json!({}),
    );
    assert_eq!(desk.anonymize("l.json", &["-o", "out"]).0, Some(1));
}
