//! The sources of settings. Each has a name, which error messages show.

use std::fmt;

use figment::error::Kind;
use figment::value::{Dict, Map, Value};
use figment::{Error, Figment, Metadata, Profile, Provider};
use secrecy::SecretString;
use serde::de::{self, Deserializer, Visitor};

use super::{ConfigError, Flags};

/// Prefix of the environment variables. After it, `__` separates section and key.
const PREFIX: &str = "PAIS__";
/// The usual environment variable for `database.url`.
const DATABASE_URL: &str = "DATABASE_URL";
/// The end of the name of a variable that names a file.
const FILE: &str = "_FILE";
/// The settings that a file may give.
const SECRETS: [&str; 2] = ["database.url", "encryption.key_base64"];

/// A source with a name.
pub(super) struct NamedSource<P> {
    name: String,
    provider: P,
}

impl<P> NamedSource<P> {
    pub(super) fn new(name: impl Into<String>, provider: P) -> Self {
        Self {
            name: name.into(),
            provider,
        }
    }
}

impl<P: Provider> Provider for NamedSource<P> {
    fn metadata(&self) -> Metadata {
        Metadata::named(self.name.clone())
    }

    fn data(&self) -> Result<Map<Profile, Dict>, Error> {
        self.provider.data()
    }
}

/// A source with a single setting.
pub(super) struct SingleSetting {
    key: String,
    value: Value,
}

impl Provider for SingleSetting {
    fn metadata(&self) -> Metadata {
        Metadata::named("a single setting")
    }

    fn data(&self) -> Result<Map<Profile, Dict>, Error> {
        let nested = figment::util::nest(&self.key, self.value.clone());
        let dict = nested
            .into_dict()
            .ok_or("expected a variable name of the form PAIS__SECTION__KEY")?;
        Ok(Profile::Default.collect(dict))
    }
}

/// The settings in an environment. `DATABASE_URL` comes first, so that `PAIS__DATABASE__URL`
/// overrides it. The variable of a secret may end in `_FILE`: then its value names a file with the
/// secret, as orchestrators mount it.
///
/// # Errors
/// A file of a secret cannot be read, or a secret is given in both ways.
pub(super) fn variables(
    environment: impl IntoIterator<Item = (String, String)>,
) -> Result<Vec<NamedSource<SingleSetting>>, ConfigError> {
    let mut found: Vec<Variable> = environment
        .into_iter()
        .filter_map(|(name, value)| Variable::new(name, value))
        .collect();
    found.sort_by_key(|variable| {
        let is_general = variable.name.starts_with(DATABASE_URL);
        (!is_general, variable.name.clone())
    });
    found
        .iter()
        .map(|variable| variable.source(&found))
        .collect()
}

/// A variable that gives a setting.
struct Variable {
    name: String,
    /// The setting, as `section.key`.
    key: String,
    value: String,
    /// Whether the value names a file with the setting's value.
    is_file: bool,
}

impl Variable {
    /// `None` for a variable that is not one of pais.
    fn new(name: String, value: String) -> Option<Self> {
        let key = if let Some(rest) = name.strip_prefix(DATABASE_URL) {
            ["", FILE]
                .contains(&rest)
                .then(|| format!("database.url{}", rest.to_ascii_lowercase()))?
        } else {
            name.strip_prefix(PREFIX)?
                .to_ascii_lowercase()
                .replace("__", ".")
        };
        let secret = key
            .strip_suffix("_file")
            .filter(|key| SECRETS.contains(key));
        Some(match secret {
            Some(key) => Self {
                key: key.to_owned(),
                name,
                value,
                is_file: true,
            },
            None => Self {
                name,
                key,
                value,
                is_file: false,
            },
        })
    }

    fn source(&self, all: &[Self]) -> Result<NamedSource<SingleSetting>, ConfigError> {
        let Self {
            name,
            key,
            value,
            is_file,
        } = self;
        if !is_file {
            let (key, value) = (key.clone(), read_value(key, value.clone()));
            let single = SingleSetting { key, value };
            return Ok(NamedSource::new(format!("the variable {name}"), single));
        }
        let plain = name.trim_end_matches(FILE);
        if all
            .iter()
            .any(|other| other.name == plain && !other.value.is_empty())
        {
            let message = format!("the variables {plain} and {name} are both set; leave one out");
            return Err(ConfigError::Form(vec![message]));
        }
        let text = std::fs::read_to_string(value).map_err(|source| ConfigError::File {
            path: value.into(),
            source,
        })?;
        let single = SingleSetting {
            key: key.clone(),
            value: Value::from(text.trim_end_matches(['\r', '\n'])),
        };
        Ok(NamedSource::new(
            format!("the file {value}, which the variable {name} names"),
            single,
        ))
    }
}

/// Parses the value of a variable. Settings that are text are not parsed; lists such as `[a, b]`,
/// numbers and the like are.
fn read_value(key: &str, text: String) -> Value {
    const LISTS_AND_NUMBERS: [&str; 7] = [
        "limits.",
        "organizations.",
        "workers.",
        "memory.",
        "storage.",
        "security.",
        "server.",
    ];
    let is_parsed = LISTS_AND_NUMBERS
        .iter()
        .any(|section| key.starts_with(section))
        || key.ends_with("connections");
    let is_text = [
        "server.listen",
        "server.operation_listen",
        "server.data_dir",
        "server.public_url",
        "storage.spool_dir",
    ]
    .contains(&key);
    if is_parsed && !is_text {
        // Parsing a value cannot fail: figment reads anything else as text.
        text.parse().unwrap_or_else(|_| Value::from(text))
    } else {
        Value::from(text)
    }
}

/// The settings on the command line.
pub(super) fn flags(flags: &Flags) -> Vec<NamedSource<SingleSetting>> {
    let listen = flags.listen.map(|listen| listen.to_string());
    let data_dir = flags
        .data_dir
        .as_ref()
        .map(|dir| dir.to_string_lossy().into_owned());
    [
        ("--listen", "server.listen", listen),
        ("--data-dir", "server.data_dir", data_dir),
    ]
    .into_iter()
    .filter_map(|(flag, key, value)| {
        let single = SingleSetting {
            key: key.to_owned(),
            value: Value::from(value?),
        };
        Some(NamedSource::new(format!("the flag {flag}"), single))
    })
    .collect()
}

/// The name of the source a setting comes from.
pub(super) fn set_by(figment: &Figment, key: &str) -> String {
    figment
        .find_metadata(key)
        .map_or_else(|| "nothing".to_owned(), |found| found.name.to_string())
}

/// Converts an error of figment, with one message for each thing that is wrong.
pub(super) fn explain(error: Error) -> ConfigError {
    ConfigError::Form(error.into_iter().map(|error| explain_one(&error)).collect())
}

fn explain_one(error: &Error) -> String {
    let what = match &error.kind {
        Kind::UnknownField(field, known) => {
            format!(
                "there is no setting {field:?} here, only {}",
                known.join(", ")
            )
        }
        Kind::MissingField(field) => format!("the setting {field:?} is missing"),
        kind => without_excerpt(&kind.to_string()),
    };
    let key = error.path.join(".");
    let source = error.metadata.as_ref().map(|found| found.name.as_ref());
    match (key.is_empty(), source) {
        (false, Some(source)) => format!("{key} in {source}: {what}"),
        (false, None) => format!("{key}: {what}"),
        (true, Some(source)) => format!("{source}: {what}"),
        (true, None) => what,
    }
}

/// Removes the excerpt of the file from a TOML error, because it may contain a secret.
fn without_excerpt(message: &str) -> String {
    let is_excerpt = |line: &str| {
        line.trim_start()
            .trim_start_matches(|c: char| c.is_ascii_digit())
            .trim_start()
            .starts_with('|')
    };
    let kept: Vec<&str> = message
        .lines()
        .filter(|line| !is_excerpt(line) && !line.trim().is_empty())
        .collect();
    kept.join(", ")
}

/// Reads a secret. No error quotes it, whatever type the parser took it for.
pub(super) fn secret<'de, D>(deserializer: D) -> Result<Option<SecretString>, D::Error>
where
    D: Deserializer<'de>,
{
    deserializer.deserialize_any(SecretVisitor)
}

struct SecretVisitor;

/// The error for a value that is not text.
const NOT_TEXT: &str = "a secret must be text; put it in quotes";

impl<'de> Visitor<'de> for SecretVisitor {
    type Value = Option<SecretString>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Some(SecretString::from(text)))
    }

    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_none<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<Self::Value, D::Error> {
        secret(inner)
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<Self::Value, E> {
        Err(E::custom(NOT_TEXT))
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<Self::Value, E> {
        Err(E::custom(NOT_TEXT))
    }

    fn visit_i128<E: de::Error>(self, _: i128) -> Result<Self::Value, E> {
        Err(E::custom(NOT_TEXT))
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<Self::Value, E> {
        Err(E::custom(NOT_TEXT))
    }

    fn visit_u128<E: de::Error>(self, _: u128) -> Result<Self::Value, E> {
        Err(E::custom(NOT_TEXT))
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<Self::Value, E> {
        Err(E::custom(NOT_TEXT))
    }
}
