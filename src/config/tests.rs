use secrecy::ExposeSecret;

use super::*;

fn load(
    file: Option<&str>,
    environment: &[(&str, &str)],
    flags: &Flags,
) -> Result<Settings, String> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("pais.toml");
    std::fs::write(&path, file.unwrap_or_default()).unwrap();
    let environment = environment
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Settings::load_from(file.map(|_| path.as_path()), environment, flags)
        .map_err(|error| error.to_string())
}

fn refusal(file: Option<&str>, environment: &[(&str, &str)]) -> String {
    load(file, environment, &Flags::default()).unwrap_err()
}

#[test]
fn the_defaults_are_complete() {
    let settings = load(None, &[], &Flags::default()).unwrap();
    assert_eq!(settings.server.listen.to_string(), "127.0.0.1:8080");
    assert!(settings.database.url.is_none());
    assert!(settings.server.cors_origins.is_empty());
    assert!(settings.limits.taxonomy_leaves >= 100_000);
    assert_eq!(settings.workers.jobs, 2);
    assert_eq!(settings.workers.heartbeat_seconds, 1);
}

#[test]
fn the_example_loads() {
    let example = include_str!("../../config/example.toml");
    let settings = load(Some(example), &[], &Flags::default()).unwrap();
    assert_eq!(settings.log.format, LogFormat::Json);
    assert!(settings.database.url.is_some());
}

#[test]
fn object_stores_come_from_the_file_and_from_variables() {
    let file = "[object_stores.share]\nurl = \"file:///srv/pais\"\norganizations = [\"a\", \"b\"]";
    let secret = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(secret.path(), "planted-key\n").unwrap();
    let environment = [
        ("PAIS__OBJECT_STORES__LAKE__URL", "s3://lake/pais"),
        ("PAIS__OBJECT_STORES__LAKE__ORGANIZATIONS", "[hospital]"),
        ("PAIS__OBJECT_STORES__LAKE__ACCESS_KEY_ID", "12345"),
        (
            "PAIS__OBJECT_STORES__LAKE__SECRET_ACCESS_KEY_FILE",
            secret.path().to_str().unwrap(),
        ),
    ];
    let settings = load(Some(file), &environment, &Flags::default()).unwrap();
    let lake = &settings.object_stores["lake"];
    assert_eq!(lake.organizations, ["hospital"]);
    assert_eq!(lake.access_key_id.as_deref(), Some("12345"));
    assert_eq!(
        lake.secret_access_key.as_ref().unwrap().expose_secret(),
        "planted-key"
    );
    assert!(!format!("{settings:?}").contains("planted"));
    assert_eq!(settings.object_stores["share"].organizations, ["a", "b"]);
    for (url, more) in [
        ("s3://lake/../other", ""),
        ("gs://lake", ""),
        ("s3://lake", "secret_access_key = \"planted-key\"\n"),
        ("s3://lake", "acces_key_id = \"x\"\n"),
    ] {
        let file = format!(
            "[object_stores.lake]\nurl = \"{url}\"\norganizations = [\"hospital\"]\n{more}"
        );
        let refused = refusal(Some(&file), &[]);
        assert!(refused.contains("object_stores"), "{refused}");
        assert!(!refused.contains("planted"), "{refused}");
    }
}

#[cfg(not(feature = "scale"))]
#[test]
fn a_program_without_scale_refuses_executors() {
    let file = "[executors.big]\nurl = \"in-process\"\nmemory = \"1GiB\"";
    let refused = refusal(Some(file), &[]);
    assert!(refused.contains("executors.big"), "{refused}");
    assert!(refused.contains("built without `scale`"), "{refused}");
}

#[cfg(feature = "scale")]
#[test]
fn executors_are_checked_at_the_start() {
    let environment = [
        ("PAIS__EXECUTORS__BIG__URL", "in-process"),
        ("PAIS__EXECUTORS__BIG__MEMORY", "1GiB"),
    ];
    let settings = load(None, &environment, &Flags::default()).unwrap();
    assert_eq!(settings.executors["big"].memory.0, 1 << 30);
    let shared = "spool = \"/srv/spool\"\nkey_file = \"/etc/key\"\n";
    let tls = "tls_certificate = \"c\"\ntls_key = \"k\"\ntls_authority = \"a\"\n";
    let section = |name: &str, url: &str, memory: &str, more: &str| {
        format!("[executors.{name}]\nurl = \"{url}\"\nmemory = \"{memory}\"\n{more}")
    };
    let (loopback, elsewhere) = ("http://127.0.0.1:5051", "https://a.example.org:5051");
    for (url, more) in [
        (loopback, shared.to_owned()),
        (
            "http://127.0.0.1:5051, http://[::1]:5052",
            shared.to_owned(),
        ),
        (elsewhere, format!("{shared}{tls}")),
    ] {
        let file = section("big", url, "64MiB", &more);
        load(Some(&file), &[], &Flags::default()).unwrap();
    }
    for (name, url, memory, more, what) in [
        ("local", "in-process", "1GiB", "", "another"),
        ("big", "in-process", "32MiB", "", "64MiB"),
        ("big", "in-process", "5GiB", "", "memory.job_bytes"),
        ("big", "in-process", "1 GB", "", "MiB or GiB"),
        ("big", "in-process", "1GiB", shared, "with an address"),
        ("big", loopback, "1GiB", "", "`key_file`"),
        (
            "big",
            "http://10.0.0.1:5051",
            "1GiB",
            shared,
            "not on this machine",
        ),
        ("big", elsewhere, "1GiB", shared, "tls_certificate"),
        ("big", "elsewhere", "1GiB", shared, "not the address"),
        ("big", "in-process", "1GiB", "treads = 1\n", "treads"),
    ] {
        let refused = refusal(Some(&section(name, url, memory, more)), &[]);
        assert!(refused.contains("executors"), "{refused}");
        assert!(refused.contains(what), "{refused}");
    }
}

#[test]
fn later_sources_win() {
    let file = "[server]\nlisten = \"127.0.0.1:1\"\ndata_dir = \"/from/file\"\n\
                [limits]\njson_bytes = 7\nupload_bytes = 7";
    let environment = [
        ("PAIS__LIMITS__JSON_BYTES", "8"),
        ("PAIS__SERVER__LISTEN", "127.0.0.1:2"),
        (
            "PAIS__SERVER__CORS_ORIGINS",
            r#"["https://a.example", "http://b.example:81"]"#,
        ),
        ("PAIS__LOG__FILTER", "off"),
        ("PAIS__OIDC__LEEWAY_SECONDS", "7"),
        ("HOME", "/root"),
    ];
    let flags = Flags {
        listen: Some("127.0.0.1:3".parse().unwrap()),
        ..Flags::default()
    };
    let settings = load(Some(file), &environment, &flags).unwrap();
    assert_eq!(settings.limits.upload_bytes, 7);
    assert_eq!(settings.limits.json_bytes, 8);
    assert_eq!(settings.server.listen.port(), 3);
    assert_eq!(settings.server.data_dir, Path::new("/from/file"));
    assert_eq!(settings.server.cors_origins.len(), 2);
    assert_eq!(settings.log.filter, "off");
    assert_eq!(settings.oidc.leeway_seconds, 7);
}

#[test]
fn database_url_sets_the_database() {
    let url = |settings: Settings| settings.database.url.unwrap().expose_secret().to_owned();
    let usual = ("DATABASE_URL", "postgres://a");
    let settings = load(None, &[usual], &Flags::default()).unwrap();
    assert_eq!(url(settings), "postgres://a");
    let both = [("PAIS__DATABASE__URL", "postgres://b"), usual];
    assert_eq!(
        url(load(None, &both, &Flags::default()).unwrap()),
        "postgres://b"
    );
    let empty = load(None, &[("DATABASE_URL", "")], &Flags::default()).unwrap();
    assert!(empty.database.url.is_none());
}

#[test]
fn text_settings_stay_text() {
    let environment = [
        ("PAIS__ENCRYPTION__KEY_BASE64", "1234567890"),
        ("PAIS__POSTGRES__BIN_DIR", "/1/2"),
        ("PAIS__SERVER__DATA_DIR", "2026"),
        ("PAIS__SERVER__PUBLIC_URL", "https://pais.example/"),
    ];
    let settings = load(None, &environment, &Flags::default()).unwrap();
    let key = settings.encryption.key_base64.unwrap();
    assert_eq!(key.expose_secret(), "1234567890");
    assert_eq!(settings.server.data_dir, Path::new("2026"));
    assert_eq!(settings.server.public_url.unwrap(), "https://pais.example");
}

#[test]
fn errors_name_key_and_source() {
    let text = refusal(None, &[("PAIS__LIMITS__JSON_BYTES", "many")]);
    assert!(
        text.contains("limits.json_bytes in the variable PAIS__LIMITS__JSON_BYTES"),
        "{text}"
    );
    let text = refusal(None, &[("PAIS__LIMITS__JSON", "1")]);
    assert!(text.contains("PAIS__LIMITS__JSON"), "{text}");
    assert!(text.contains("no setting \"json\""), "{text}");
    let text = refusal(Some("[server]\nlisen = \"x\""), &[]);
    assert!(
        text.contains("pais.toml") && text.contains("lisen"),
        "{text}"
    );
    let text = refusal(None, &[("PAIS__SERVER__LISTEN", "everywhere")]);
    assert!(
        text.contains("server.listen in the variable PAIS__SERVER__LISTEN"),
        "{text}"
    );
    let missing = Settings::load_from(Some(Path::new("/no/such/file")), [], &Flags::default());
    assert!(missing.unwrap_err().to_string().contains("/no/such/file"));
    let text = refusal(None, &[("DATABASE_URL_FILE", "/no/such/file")]);
    assert_eq!(
        text,
        "could not read the file that DATABASE_URL_FILE names, /no/such/file"
    );
}

#[test]
fn a_log_filter_is_a_level_or_levels_by_module() {
    let filter = |text: &str| {
        let settings = load(None, &[("PAIS__LOG__FILTER", text)], &Flags::default());
        settings.map(|settings| settings.log.targets().unwrap())
    };
    let plain = filter("info,pais::jobs=debug").unwrap();
    // Spaces and a last comma change nothing.
    assert_eq!(filter(" info, pais::jobs=debug,").unwrap(), plain);
    for wrong in [
        "inof",
        "pais::jobs",
        "pais[request]=debug",
        "pais[{job}]=debug",
    ] {
        assert!(filter(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn malformed_variable_names_are_rejected_without_a_panic() {
    for name in [
        "PAIS__",
        "PAIS__SERVER",
        "PAIS__SERVER__",
        "PAIS____LISTEN",
        "PAIS__A__B__C",
    ] {
        assert!(
            load(None, &[(name, "1")], &Flags::default()).is_err(),
            "{name}"
        );
    }
}

#[test]
fn invalid_values_are_rejected() {
    for (name, value, says) in [
        (
            "PAIS__WORKERS__HEARTBEAT_SECONDS",
            "60",
            "workers.heartbeat_seconds must be less than",
        ),
        (
            "PAIS__WORKERS__JOBS",
            "0",
            "workers.jobs must be at least 1",
        ),
        (
            "PAIS__WORKERS__LEASE_SECONDS",
            "1",
            "workers.heartbeat_seconds must be less than workers.lease_seconds, which is 1 (set by the built-in \
             config/default.toml; workers.lease_seconds by the variable PAIS__WORKERS__LEASE_SECONDS)",
        ),
        (
            "PAIS__SERVER__OPERATION_LISTEN",
            "127.0.0.1:8080",
            "server.operation_listen is the address of server.listen",
        ),
        (
            "PAIS__OIDC__CONSOLE_CLIENT_ID",
            "pais",
            "oidc.console_client_id needs oidc.issuer",
        ),
        ("PAIS__OIDC__ROLE_CLAIM", "", "oidc.role_claim is empty"),
        (
            "PAIS__SECURITY__TOKEN_MAX_DAYS",
            "4000000",
            "security.token_max_days must be at most 3650",
        ),
        (
            "PAIS__LOG__FILTER",
            "inof",
            "log.filter is \"inof\"; expected a level",
        ),
        (
            "PAIS__LOG__FILTER",
            "pais=loud",
            "log.filter is \"pais=loud\"; expected a level",
        ),
        (
            "PAIS__LIMITS__TAXONOMY_DEPTH",
            "61",
            "limits.taxonomy_depth must be at most 60",
        ),
        (
            "PAIS__MEMORY__PROCESS_BYTES",
            "2048",
            "memory.process_bytes must be 0, or at least 67108864; it is in bytes",
        ),
        (
            "PAIS__POSTGRES__MAX_CONNECTIONS",
            "5",
            "postgres.max_connections must be at least",
        ),
        (
            "PAIS__SERVER__PUBLIC_URL",
            "pais.example",
            "server.public_url must be a URL like",
        ),
        (
            "PAIS__SERVER__PUBLIC_URL",
            "https://u:p@pais.example/?y#z",
            "without user, query and fragment",
        ),
        (
            "PAIS__DATABASE__URL",
            "mysql://pais@db.example.org/pais",
            "database.url must begin with postgres://",
        ),
        (
            "PAIS__LIMITS__UPLOAD_WAIT_SECONDS",
            "9223372036854775807",
            "limits.upload_wait_seconds must be at most 315360000",
        ),
        (
            "PAIS__WORKERS__THREADS",
            "100000",
            "workers.threads must be at most 1024",
        ),
        (
            "PAIS__LIMITS__UPLOADS",
            "18446744073709551615",
            "limits.uploads must be at most 1024",
        ),
        (
            "PAIS__POSTGRES__MAX_CONNECTIONS",
            "4294967295",
            "postgres.max_connections must be at most 1024",
        ),
        (
            "PAIS__SERVER__CORS_ORIGINS",
            r#"["*"]"#,
            "server.cors_origins has \"*\"",
        ),
    ] {
        let text = refusal(None, &[(name, value)]);
        assert!(text.contains(says), "{text}");
        assert!(text.contains(&format!("by the variable {name}")), "{text}");
    }
}

#[test]
fn secrets_are_never_shown() {
    let file =
        "[encryption]\nkey_base64 = \"c2VjcmV0\"\n[database]\nurl = \"postgres://u:c2VjcmV0@h/d\"";
    let settings = load(Some(file), &[], &Flags::default()).unwrap();
    assert!(!format!("{settings:?}").contains("c2VjcmV0"));
    for broken in [
        "[encryption]\nkey_base64 = c2VjcmV0",
        "[encryption]\nkey_base64 = 47114711",
        "[encryption]\nkey_base64 = [47114711]",
        "[encryption]\nkey_file = \"f\"\nkey_base64 = \"c2VjcmV0\"",
    ] {
        let text = refusal(Some(broken), &[]);
        assert!(
            !text.contains("c2VjcmV0") && !text.contains("4711"),
            "{text}"
        );
        assert!(text.contains("pais.toml"), "{text}");
    }
}

#[test]
fn a_secret_can_come_from_a_file_that_a_variable_names() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("url");
    std::fs::write(&path, "postgres://pais:secret@db/pais\n").unwrap();
    let path = path.to_str().unwrap();
    for name in ["DATABASE_URL_FILE", "PAIS__DATABASE__URL_FILE"] {
        let settings = load(None, &[(name, path)], &Flags::default()).unwrap();
        let url = settings.database.url.unwrap();
        assert_eq!(url.expose_secret(), "postgres://pais:secret@db/pais");
    }
    let both = [
        ("DATABASE_URL", "postgres://a/b"),
        ("DATABASE_URL_FILE", path),
    ];
    let message = refusal(None, &both);
    assert!(
        message.contains("DATABASE_URL_FILE are both set"),
        "{message}"
    );
    assert!(!message.contains("secret"), "{message}");
    let message = refusal(None, &[("PAIS__ENCRYPTION__KEY_BASE64_FILE", "/nowhere")]);
    assert!(message.contains("/nowhere"), "{message}");
    // Only secrets can be given this way.
    let message = refusal(None, &[("PAIS__LOG__FORMAT_FILE", path)]);
    assert!(message.contains("format_file"), "{message}");
}

#[test]
fn plain_http_stays_on_the_machine_unless_a_proxy_is_in_front() {
    let open = ("PAIS__SERVER__LISTEN", "0.0.0.0:8080");
    let refused = refusal(None, &[open]);
    assert!(refused.contains("server.listen"), "{refused}");
    assert!(refused.contains("behind_proxy"), "{refused}");
    let proxy = ("PAIS__SERVER__BEHIND_PROXY", "true");
    load(None, &[open, proxy], &Flags::default()).unwrap();
    let certificate = ("PAIS__SERVER__TLS_CERTIFICATE", "/c.pem");
    let key = ("PAIS__SERVER__TLS_KEY", "/k.pem");
    load(None, &[open, certificate, key], &Flags::default()).unwrap();
    for listen in ["127.0.0.1:1", "[::1]:1", "127.9.9.9:1"] {
        load(None, &[("PAIS__SERVER__LISTEN", listen)], &Flags::default()).unwrap();
    }
    let half = refusal(None, &[certificate]);
    assert!(half.contains("server.tls_key"), "{half}");
    let half = refusal(None, &[key]);
    assert!(half.contains("server.tls_certificate"), "{half}");
}
