//! `pais token create`.

use crate::cli_dir::CliDir;

const CREATE: &str = "pais token create --organization h --role holder --data-dir data";

#[test]
fn a_label_is_checked_as_over_http() {
    let dir = CliDir::new();
    let long = "ä".repeat(201);
    for label in [&*long, "$'a\\nb'", "$'\\e[31mred'", "$'\\x01'"] {
        let (status, text) = dir.bash(&format!("{CREATE} --label {label}"));
        assert_eq!(status, Some(2), "{label}: {text}");
        assert!(
            text.contains("--label") && !text.contains("pais_"),
            "{text}"
        );
    }
    assert!(!dir.path().join("data").exists());
}
