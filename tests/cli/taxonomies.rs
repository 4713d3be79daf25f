//! `pais taxonomy`: hierarchies that are made, converted and checked in files.

use serde_json::{Value, json};

use crate::cli_dir::CliDir;

const ROWS: &str = "id;zip;age;born;drugs\n\
    1;2500;34,5;1991-01-02;a|b\n\
    2;2511;41;1985-06-30;b\n\
    3;2511;;;\n";

fn directory() -> CliDir {
    let dir = CliDir::new();
    let schema = json!({"name": "t", "columns": [
        {"name": "id", "role": "identifier"},
        {"name": "zip", "role": "quasi_identifier",
            "taxonomy": {"generate": "prefix", "lengths": [2]}},
        {"name": "age", "role": "quasi_identifier", "kind": "numeric", "round": 5},
        {"name": "born", "role": "quasi_identifier", "kind": "date",
            "taxonomy": {"generate": "age", "at": "2026-01-01", "widths": [10]}},
        {"name": "drugs", "role": "quasi_identifier", "kind": "set",
            "taxonomy": "01900000-0000-7000-8000-000000000000"},
    ]});
    dir.write("s.json", &schema.to_string());
    dir.write("raw.csv", ROWS);
    dir
}

/// Exit status, standard output and standard error of `pais taxonomy`.
fn taxonomy(dir: &CliDir, arguments: &[&str]) -> (Option<i32>, String, String) {
    let arguments: Vec<&str> = ["taxonomy"].iter().chain(arguments).copied().collect();
    let ran = dir.run(&arguments);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (ran.status.code(), text(ran.stdout), text(ran.stderr))
}

fn generate(dir: &CliDir, arguments: &[&str]) -> (Option<i32>, String, String) {
    let given = [
        "generate",
        "--schema",
        "s.json",
        "raw.csv",
        "--delimiter",
        ";",
    ];
    taxonomy(dir, &[&given[..], arguments].concat())
}

#[test]
fn the_hierarchy_of_a_column_is_the_body_of_a_taxonomy() {
    let dir = directory();
    let (status, out, _) = generate(&dir, &["--column", "zip"]);
    assert_eq!(status, Some(0));
    let found: Value = serde_json::from_str(&out).unwrap();
    let expected = json!({"name": "zip", "root": {"label": "*", "children": [
        {"label": "25*", "children": [{"label": "2500"}, {"label": "2511"}]}]}});
    assert_eq!(found, expected);

    let (status, ..) = generate(&dir, &["--column", "born", "-o", "born.csv"]);
    assert_eq!(status, Some(0));
    let rows = std::fs::read_to_string(dir.path().join("born.csv")).unwrap();
    assert_eq!(rows, "1991-01-02;[30,40);*\n1985-06-30;[40,50);*\n");
    let named = [
        "--column",
        "born",
        "--name",
        "ages",
        "--format",
        "json",
        "-o",
        "born.json",
    ];
    assert_eq!(generate(&dir, &named).0, Some(0));
    assert_eq!(dir.json("born.json")["name"], "ages");
}

/// A raw table is read as its dataset declares where no flag says otherwise.
#[test]
fn the_format_of_the_dataset_is_that_of_the_table() {
    let dir = directory();
    let mut schema = dir.json("s.json");
    schema["format"] = json!({"delimiter": ";", "decimal": ","});
    dir.write("s.json", &schema.to_string());
    let read = |flags: &[&str]| {
        let given = [
            "generate", "--schema", "s.json", "raw.csv", "--column", "age",
        ];
        let made = ["--generate", r#"{"generate": "ranges", "widths": [5]}"#];
        taxonomy(&dir, &[&given[..], &made, flags].concat())
    };
    let (status, out, errors) = read(&[]);
    assert_eq!(status, Some(0), "{errors}");
    // 34,5 is read as 34.5.
    assert!(out.contains("[30,35)"), "{out}");
    let (status, _, errors) = read(&["--delimiter", ","]);
    assert_ne!(status, Some(0));
    assert!(
        errors.contains("header") || errors.contains("decimal"),
        "{errors}"
    );
}

#[test]
fn a_hierarchy_is_made_in_another_way_than_the_column_declares() {
    let dir = directory();
    let ranges = r#"{"generate": "ranges", "widths": [5, 10]}"#;
    let arguments = [
        "--column",
        "age",
        "--generate",
        ranges,
        "--decimal",
        ",",
        "--format",
        "csv",
    ];
    let (status, out, error) = generate(&dir, &arguments);
    assert_eq!(status, Some(0), "{error}");
    let expected = "[30,35);[30,40);[30,50)\n[35,40);[30,40);[30,50)\n\
        [40,45);[40,50);[30,50)\n[45,50);[40,50);[30,50)\n";
    assert_eq!(out, expected);

    let mask = r#"{"generate": "mask_left"}"#;
    let arguments = ["--column", "drugs", "--generate", mask, "--format", "csv"];
    assert_eq!(generate(&dir, &arguments).1, "a;*\nb;*\n");
}

#[test]
fn a_column_without_a_hierarchy_that_is_made_is_refused() {
    let dir = directory();
    let grown = r#"{"generate": "ranges"}"#;
    for arguments in [
        &["--column", "age"][..],
        &["--column", "id"],
        &["--column", "none"],
        &["--column", "drugs"],
        &["--column", "zip", "--generate", "{}"],
        &["--column", "zip", "--generate", "[1"],
        &["--column", "born", "--generate", grown],
        &["--column", "zip", "-o", "raw.csv"],
    ] {
        let (status, out, error) = generate(&dir, arguments);
        assert_eq!(status, Some(2), "{arguments:?}: {error}");
        assert!(out.is_empty() && error.starts_with("pais: "), "{error}");
    }
    let unfit = [
        "--column",
        "zip",
        "--generate",
        r#"{"generate": "calendar"}"#,
    ];
    let (status, _, error) = generate(&dir, &unfit);
    assert_eq!(status, Some(1));
    assert!(error.contains("/columns/1/taxonomy"), "{error}");
    assert_eq!(
        std::fs::read_to_string(dir.path().join("raw.csv")).unwrap(),
        ROWS
    );
}

#[test]
fn a_made_hierarchy_is_read_again_as_the_taxonomy_of_the_column() {
    let dir = directory();
    dir.write("plain.csv", "zip\n2500\n2500\n2511\n2511\n3001\n3002\n");
    let column = |taxonomy: Value| {
        json!({"name": "t", "columns": [
            {"name": "zip", "role": "quasi_identifier", "taxonomy": taxonomy}]})
        .to_string()
    };
    dir.write("s.json", &column(json!({"generate": "prefix"})));
    dir.write(
        "j.json",
        r#"{"privacy": {"model": "k_anonymity", "k": 2}, "seed": 1}"#,
    );
    dir.anonymize("plain.csv", "made.csv");
    let arguments = [
        "generate",
        "--schema",
        "s.json",
        "--column",
        "zip",
        "plain.csv",
    ];
    let (status, out, _) = taxonomy(&dir, &arguments);
    assert_eq!(status, Some(0));
    let body: Value = serde_json::from_str(&out).unwrap();
    dir.write("s.json", &column(body["root"].clone()));
    dir.anonymize("plain.csv", "declared.csv");
    let sorted = |name: &str| {
        let text = std::fs::read_to_string(dir.path().join(name)).unwrap();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    };
    assert_eq!(sorted("made.csv"), sorted("declared.csv"));
}

#[test]
fn files_of_arx_and_amnesia_become_json_and_json_becomes_rows() {
    let dir = CliDir::new();
    let root = json!({"label": "*", "children": [
        {"label": "Asia", "children": [{"label": "Laos"}, {"label": "Japan"}]},
        {"label": "Other"}]});
    dir.write(
        "arx.csv",
        "\u{feff}Laos;Asia;*\r\nJapan;\"Asia\";*;\r\nOther;*\r\n",
    );
    let amnesia = "distinct\nname c\ntype string\nheight 3\n\nAsia has Laos Japan \n\n\
        * has Asia Other \n";
    dir.write("amnesia.txt", amnesia);
    for (file, name) in [("arx.csv", "arx"), ("amnesia.txt", "amnesia")] {
        let (status, out, _) = taxonomy(&dir, &["convert", file]);
        assert_eq!(status, Some(0), "{file}");
        let found: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(found, json!({"name": name, "root": root}), "{file}");
    }
    dir.write(
        "body.json",
        &json!({"name": "countries", "root": root}).to_string(),
    );
    dir.write("tree.json", &root.to_string());
    for file in ["body.json", "tree.json"] {
        let (status, out, _) = taxonomy(&dir, &["convert", file]);
        assert_eq!(status, Some(0), "{file}");
        assert_eq!(out, "Laos;Asia;*\nJapan;Asia;*\nOther;Other;*\n");
    }
    let arguments = [
        "convert",
        "body.json",
        "--format",
        "json",
        "-o",
        "again.json",
    ];
    assert_eq!(taxonomy(&dir, &arguments).0, Some(0));
    let again = dir.json("again.json");
    assert_eq!(again, json!({"name": "countries", "root": root}));

    // As it is, it is the taxonomy of a column.
    let schema = json!({"name": "t", "columns": [
        {"name": "country", "role": "quasi_identifier", "taxonomy": again}]});
    dir.write("s.json", &schema.to_string());
    dir.write("j.json", r#"{"privacy": {"model": "k_anonymity", "k": 2}}"#);
    dir.write("raw.csv", "country\nLaos\nJapan\nOther\nOther\n");
    let ran = [
        "anonymize",
        "--schema",
        "s.json",
        "--job",
        "j.json",
        "raw.csv",
    ];
    let ran = dir.run(&ran);
    let out = String::from_utf8(ran.stdout).unwrap();
    assert_eq!(ran.status.code(), Some(0), "{:?}", ran.stderr);
    assert_eq!(out.matches("Asia").count(), 2, "{out}");
}

#[test]
fn a_hierarchy_is_checked() {
    let dir = CliDir::new();
    dir.write("good.csv", "a;x;*\nb;x;*\nc;*\n");
    let (status, out, error) = taxonomy(&dir, &["check", "good.csv"]);
    assert_eq!((status, &*error), (Some(0), ""));
    assert_eq!(out, "leaves: 3\nnodes: 5\nheight: 3 levels\n");
    let (_, out, _) = taxonomy(&dir, &["check", "good.csv", "--json"]);
    let found: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(found, json!({"leaves": 3, "nodes": 5, "depth": 3}));

    dir.write("fault.csv", "a;x;*\na;y;*\n");
    dir.write(
        "twice.json",
        r#"{"label": "*", "children": [{"label": "a"}, {"label": "a"}]}"#,
    );
    dir.write("other.json", r#"{"name": "t"}"#);
    dir.write("broken.json", r#"{"label": "*""#);
    dir.write("empty.csv", "");
    for (file, place) in [
        ("fault.csv", "\"line\": 2"),
        ("twice.json", "\"/children/1\""),
        ("other.json", "\"/root\""),
        ("broken.json", "malformed_json"),
        ("empty.csv", "invalid_taxonomy"),
    ] {
        let (status, out, error) = taxonomy(&dir, &["check", file]);
        assert_eq!((status, &*out), (Some(2), ""), "{file}");
        assert!(error.contains(place), "{file}: {error}");
        assert_eq!(taxonomy(&dir, &["convert", file]).0, Some(2), "{file}");
    }
    assert_eq!(taxonomy(&dir, &["check", "none.csv"]).0, Some(2));
}
