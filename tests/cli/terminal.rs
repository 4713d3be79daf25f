//! What the commands print: lines for a person at a terminal, JSON for a program, and nothing more
//! once the reader has closed the pipe.

use std::process::Command;
use std::time::Duration;

use pais_test_support::poll::poll;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::cli_dir::CliDir;

const RUN: &str = "anonymize --schema s.json --job j.json raw.csv";

/// Four patients of two groups.
fn patients() -> CliDir {
    let dir = CliDir::new();
    let schema = json!({"name": "t", "columns": [
        {"name": "age", "role": "quasi_identifier", "kind": "numeric", "domain": [0, 99]},
        {"name": "ill", "role": "sensitive"},
        {"name": "ward", "role": "sensitive"},
    ]});
    dir.write("s.json", &schema.to_string());
    let privacy = json!({"model": "alpha_k", "k": 2, "alpha": 0.5,
        "sensitive_values": {"ill": ["flu"]}});
    dir.write("j.json", &json!({"privacy": privacy}).to_string());
    dir.write(
        "raw.csv",
        "age,ill,ward\n10,flu,a\n20,cold,a\n70,flu,b\n80,cold,b\n",
    );
    dir
}

/// The output of the program at a terminal.
fn at_terminal(dir: &CliDir, arguments: &str) -> (Option<i32>, String) {
    let program = env!("CARGO_BIN_EXE_pais");
    let mut command = Command::new("script");
    let line = format!("'{program}' {arguments}");
    let ran = command
        .current_dir(dir.path())
        .args(["-qec", &line, "/dev/null"]);
    let ran = ran.stdin(std::process::Stdio::null()).output().unwrap();
    let text = String::from_utf8(ran.stdout).unwrap();
    (ran.status.code(), text.replace('\r', ""))
}

#[test]
fn a_finished_run_is_summed_up_in_lines_at_a_terminal() {
    let dir = patients();
    let (status, text) = at_terminal(&dir, &format!("{RUN} -o out.csv"));
    assert_eq!(status, Some(0), "{text}");
    for line in [
        "rows                 4\n",
        "groups               2\n",
        "smallest group       2\n",
        "smallest known group 2\n",
        "NCP                  0.5",
        "DR                   0.5000\n",
        // Two columns with two values each single out every one of the four rows.
        "verdict              holds, but what is released unchanged singles out rows: 100 % of the rows by 2 unchanged columns\n",
        "warning              the model bounds no value of the sensitive column `ward`",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

#[test]
fn a_finished_run_is_summed_up_in_json_for_a_program() {
    let dir = patients();
    let arguments = RUN.split(' ').chain(["-o", "out.csv"]);
    let arguments: Vec<&str> = arguments.collect();
    let ran = dir.run(&arguments);
    assert!(ran.status.success() && ran.stdout.is_empty());
    let summary: Value = serde_json::from_slice(&ran.stderr).unwrap();
    assert_eq!(
        (&summary["rows"], &summary["suppressed_rows"]),
        (&json!(4), &json!(0))
    );
    assert_eq!(
        (&summary["groups"], &summary["smallest_group"]),
        (&json!(2), &json!(2))
    );
    assert_eq!(summary["smallest_known_group"], 2);
    assert_eq!(summary["verdict"], "holds_but_singles_out");
    assert_eq!(summary["unchanged"]["columns"], json!(["ill", "ward"]));
    assert_eq!(
        summary["unchanged"]["by_column"],
        json!({"ill": 0.0, "ward": 0.0})
    );
    assert_eq!(summary["dr"], 0.5);
    assert_eq!(summary["warnings"][0]["code"], "unbounded_sensitive_column");

    let (status, text) = at_terminal(&dir, &format!("{RUN} -o out.csv --json"));
    assert_eq!(status, Some(0), "{text}");
    assert!(text.contains("\"smallest_group\": 2"), "{text}");
}

#[test]
fn an_error_is_lines_at_a_terminal_and_a_document_for_a_program() {
    let dir = patients();
    dir.write("raw.csv", "age,ill,ward\n10,flu,a\nx,cold,a\n70,flu,b\n");
    let (status, text) = at_terminal(&dir, RUN);
    assert_eq!(status, Some(1));
    assert!(text.contains("pais: raw.csv: "), "{text}");
    assert!(
        text.contains("\n  line 3, column `age`\n    fix: "),
        "{text}"
    );
    assert!(!text.contains('{'), "{text}");
    let ran = dir.run(&RUN.split(' ').collect::<Vec<_>>());
    assert_eq!(ran.status.code(), Some(1));
    let problem: Value = serde_json::from_slice(&ran.stderr).unwrap();
    assert_eq!(problem["errors"][0]["line"], 3);
    let (_, text) = at_terminal(&dir, &format!("{RUN} --json"));
    assert!(text.contains("\"code\": \"invalid_cells\""), "{text}");
}

#[test]
fn a_closed_pipe_ends_a_command_quietly() {
    let dir = patients();
    let rows: String = (0..40_000)
        .map(|age| format!("{},flu,a\n", age % 99))
        .collect();
    dir.write("raw.csv", &format!("age,ill,ward\n{rows}"));
    let job = json!({"privacy": {"model": "k_anonymity", "k": 2}});
    dir.write("j.json", &job.to_string());
    for line in [
        format!("pais {RUN} | head -1"),
        format!("pais {RUN} 2>&1 | true"),
        "pais openapi | head -1".to_owned(),
        "pais completions bash | head -1".to_owned(),
        "pais schema draft raw.csv 2>&1 | true".to_owned(),
        format!("pais {RUN} -o r.csv && pais verify --schema s.json --job j.json r.csv | true"),
        "pais verify --schema s.json --job j.json absent.csv 2>&1 | true; (exit 0)".to_owned(),
    ] {
        let (status, text) = dir.bash(&line);
        assert_eq!(status, Some(0), "{line}: {text}");
        assert!(
            !text.contains("panicked") && !text.contains("pipe"),
            "{line}: {text}"
        );
    }
}

#[test]
fn the_verdict_of_verify_is_its_exit_status_even_without_a_reader() {
    let dir = patients();
    dir.write("r.csv", "age,ill,ward\n10,flu,a\n20,cold,a\n");
    let (status, text) = dir.bash("pais verify --schema s.json --job j.json r.csv | true");
    assert_eq!(status, Some(1), "{text}");
}

#[test]
fn verify_prints_the_model_as_the_job_asks_for_it() {
    let dir = patients();
    dir.anonymize("raw.csv", "out.csv");
    let (status, text) = dir.verify("out.csv", true);
    assert_eq!(status, Some(0), "{text}");
    let model = "model                (alpha,k)-anonymity, alpha = 50 %, K = 2\n";
    assert!(text.contains(model), "{text}");
    for (privacy, words) in [
        (
            json!({"model": "k_anonymity", "k": 2}),
            "k-anonymity, K = 2",
        ),
        (
            json!({"model": "confidence_bounding", "c": 0.5, "sensitive_values": {"ill": ["flu"]}}),
            "confidence bounding, C = 50 %",
        ),
        (
            json!({"model": "lkc", "l": 1, "k": 2, "c": 1}),
            "LKC-privacy, L = 1, K = 2, C = 100 %",
        ),
    ] {
        dir.write("j.json", &json!({"privacy": privacy}).to_string());
        let (_, text) = dir.verify("out.csv", false);
        assert!(text.contains(words), "{text}");
    }
}

#[test]
fn verify_prints_one_document_for_a_program() {
    let dir = patients();
    dir.anonymize("raw.csv", "out.csv");
    let ran = dir.run(&[
        "verify", "--schema", "s.json", "--job", "j.json", "out.csv", "--raw", "raw.csv", "--json",
    ]);
    assert!(ran.status.success() && ran.stderr.is_empty());
    let found: Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(
        (&found["holds"], &found["fails"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(found["privacy"]["model"], "alpha_k");
    assert_eq!(found["verification"]["smallest_group"], 2);
    assert_eq!(found["raw"]["made_up"], 0);
    assert_eq!(found["raw"]["recoding"], "global");
}

#[test]
fn every_command_has_a_page_of_the_manual() {
    let dir = CliDir::new();
    std::fs::create_dir(dir.path().join("man")).unwrap();
    let ran = dir.run(&["man", "man"]);
    assert!(
        ran.status.success(),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    let help = dir.run(&["help"]);
    let help = String::from_utf8(help.stdout).unwrap();
    let (_, commands) = help.split_once("Commands:\n").unwrap();
    let (commands, _) = commands.split_once("\n\n").unwrap();
    let names = commands.lines().filter(|line| !line.starts_with("   "));
    let names: Vec<&str> = names
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(names.contains(&"serve") && names.contains(&"man"), "{help}");
    for name in names.into_iter().filter(|name| *name != "help") {
        let page = std::fs::read_to_string(dir.path().join(format!("man/pais-{name}.1")));
        let page = page.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(page.contains(".SH NAME"), "{name}: {page}");
    }
    let refused = dir.run(&["man", "nowhere"]);
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn every_shell_gets_its_completions() {
    let dir = CliDir::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = dir.run(&["completions", shell]);
        let script = String::from_utf8(ran.stdout).unwrap();
        assert!(ran.status.success(), "{shell}");
        assert!(
            script.contains("anonymize") && script.contains("completions"),
            "{shell}"
        );
    }
    let (status, text) = dir.bash("source <(pais completions bash) && complete -p pais");
    assert_eq!(status, Some(0), "{text}");
}

#[test]
fn a_job_names_no_location_on_the_command_line() {
    let dir = patients();
    let mut job = dir.json("j.json");
    job["release"] = json!({"location": {"url": "file:///srv/releases"}});
    dir.write("j.json", &job.to_string());
    let (status, said) = dir.bash(&format!("pais {RUN}"));
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("/release/location"), "{said}");
}

#[test]
fn a_document_is_in_a_file() {
    let dir = patients();
    for option in ["--schema", "--job"] {
        let line = RUN.replace(
            &format!("{option} {}.json", &option[2..3]),
            &format!("{option} -"),
        );
        let (status, said) = dir.bash(&format!("pais {line}"));
        assert_eq!(status, Some(2), "{said}");
        assert!(
            said.contains(option) && said.contains("name a file"),
            "{said}"
        );
    }
}

#[test]
fn a_program_that_asks_for_json_gets_every_error_as_json() {
    let dir = patients();
    for line in [
        "anonymize --json --schema s.json --job j.json absent.csv",
        "anonymize --json --schema s.json --job j.json raw.csv -o out.xlsx",
        "verify --json --schema s.json --job j.json absent.csv",
        "taxonomy check --json absent.csv",
        "schema draft --json absent.csv",
    ] {
        let output = dir.run(&line.split(' ').collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(2), "{line}");
        let problem: Value = serde_json::from_slice(&output.stderr).unwrap();
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("absent.csv") || detail.contains("out.xlsx"));
    }
}

#[test]
fn a_token_is_sent_to_another_machine_by_https_only() {
    let dir = patients();
    let line = "PAIS_TOKEN=secret pais publish --url http://192.0.2.2 --publication p raw.csv";
    let (status, said) = dir.bash(line);
    assert_eq!(status, Some(2), "{said}");
    assert!(said.contains("by https only"), "{said}");
}

#[test]
fn mistyped_arguments_and_settings_are_named() {
    let dir = patients();
    dir.write("a.csv", "age\n1\n");
    let publish = "PAIS_TOKEN=x pais publish --publication p";
    for (line, expected, words) in [
        (
            format!("{publish} --url http://127.0.0.1:1 a.csv absent.csv"),
            2,
            "absent.csv: No such file",
        ),
        (
            format!("{publish} --url http://127.0.0.1:1 a.csv"),
            1,
            "http://127.0.0.1:1 does not answer; check --url",
        ),
        (
            format!("{publish} --url notaurl a.csv"),
            2,
            "this is no URL",
        ),
        (
            "pais verify --schema s.json --job j.json absent".to_owned(),
            2,
            "absent: No such file",
        ),
        (
            "PAIS__SERVER=x pais doctor --data-dir data".to_owned(),
            1,
            "server in the variable PAIS__SERVER is a section",
        ),
        (
            "PAIS__SERVER__DATA_DIR= pais doctor".to_owned(),
            1,
            "server.data_dir is empty",
        ),
        (
            "PAIS__STORAGE__SPOOL_DIR=s.json/spool pais doctor --data-dir data".to_owned(),
            1,
            "storage.spool_dir",
        ),
    ] {
        let (status, text) = dir.bash(&line);
        assert_eq!(status, Some(expected), "{line}: {text}");
        assert!(text.contains(words), "{line}: {text}");
    }

    let log = dir.path().join("log");
    let mut command = Command::new(env!("CARGO_BIN_EXE_pais"));
    let command = command.args(["work", "--data-dir", "absent"]);
    let command = command.env_remove("DATABASE_URL").current_dir(dir.path());
    let stderr = std::fs::File::create(&log).unwrap();
    let mut process = command.stderr(stderr).spawn().unwrap();
    let is_said = || {
        let said = std::fs::read_to_string(&log).unwrap();
        said.contains("does not exist").then_some(())
    };
    poll(Duration::from_secs(60), is_said).expect("the name is said");
    kill_process(Pid::from_child(&process), Signal::TERM).unwrap();
    assert!(process.wait().unwrap().success());
    assert!(!dir.path().join("absent").exists());
}
