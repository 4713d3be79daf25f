//! The sources of settings. Each has a name, which error messages show.

use figment::error::Kind;
use figment::providers::Serialized;
use figment::value::{Dict, Map, Value};
use figment::{Error, Figment, Metadata, Profile, Provider};

use super::{ConfigError, Flags};

/// Prefix of the environment variables. After it, `__` separates section and key.
const PREFIX: &str = "PAIS__";
/// The usual environment variable for `database.url`.
const DATABASE_URL: &str = "DATABASE_URL";
/// The end of the name of a variable that names a file.
const FILE: &str = "_FILE";
/// The settings that a file may give.
const SECRETS: [&str; 2] = ["database.url", "encryption.key_base64"];

/// The settings of each object store that a file may give.
const STORE_SECRETS: [&str; 2] = ["secret_access_key", "session_token"];

fn is_secret(key: &str) -> bool {
    SECRETS.contains(&key) || is_of_store(key, &STORE_SECRETS)
}

/// Whether a setting is one of these of an object store.
fn is_of_store(key: &str, names: &[&str]) -> bool {
    let of_store = key.strip_prefix("object_stores.");
    let of_store = of_store.and_then(|key| key.split_once('.'));
    of_store.is_some_and(|(_, key)| names.contains(&key))
}

/// A source with a name.
pub(super) struct NamedSource<P> {
    name: String,
    provider: P,
}

/// A source of one setting.
type SingleSetting = NamedSource<Serialized<Value>>;

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

/// The settings in an environment. `DATABASE_URL` comes first, so that `PAIS__DATABASE__URL`
/// overrides it. The variable of a secret may end in `_FILE`: then its value names a file with the
/// secret, as orchestrators mount it.
///
/// # Errors
/// A file of a secret cannot be read, or a secret is given in both ways.
pub(super) fn variables(
    environment: impl IntoIterator<Item = (String, String)>,
    defaults: &Figment,
) -> Result<Vec<SingleSetting>, ConfigError> {
    let environment = environment.into_iter();
    let mut found: Vec<Variable> = environment
        .filter_map(|(name, value)| Variable::new(name, value))
        .collect();
    found.sort_by_key(|variable| {
        let is_general = variable.name.starts_with(DATABASE_URL);
        (!is_general, variable.name.clone())
    });
    let sources = found.iter();
    sources
        .map(|variable| variable.source(&found, defaults))
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
        let key = match (name.strip_prefix(PREFIX), name.strip_prefix(DATABASE_URL)) {
            (Some(key), _) => key.to_ascii_lowercase().replace("__", "."),
            (None, Some("")) => "database.url".to_owned(),
            (None, Some(FILE)) => "database.url_file".to_owned(),
            (None, _) => return None,
        };
        let secret = key.strip_suffix("_file");
        let secret = secret.filter(|key| is_secret(key));
        Some(Self {
            is_file: secret.is_some(),
            key: secret.unwrap_or(&key).to_owned(),
            name,
            value,
        })
    }

    fn source(&self, all: &[Self], defaults: &Figment) -> Result<SingleSetting, ConfigError> {
        let Self {
            name,
            key,
            value,
            is_file,
        } = self;
        if !is_file {
            let value = read_value(defaults, key, value);
            let is_section = matches!(defaults.find_value(key), Ok(Value::Dict(..)));
            if is_section && !matches!(value, Value::Dict(..)) {
                return Err(ConfigError::Invalid(format!(
                    "settings: {key} in the variable {name} is a section; name one of its settings: {name}__…"
                )));
            }
            let single = Serialized::default(key, value);
            return Ok(NamedSource::new(format!("the variable {name}"), single));
        }
        let plain = name.trim_end_matches(FILE);
        let is_plain = |other: &Self| other.name == plain && !other.value.is_empty();
        if all.iter().any(is_plain) {
            return Err(ConfigError::Invalid(format!(
                "settings: the variables {plain} and {name} are both set; leave one out"
            )));
        }
        let text = std::fs::read_to_string(value).map_err(|source| ConfigError::File {
            what: format!("the file that {name} names,"),
            path: value.into(),
            source,
        })?;
        let text = Value::from(text.trim_end_matches(['\r', '\n']));
        Ok(NamedSource::new(
            format!("the file {value}, which the variable {name} names"),
            Serialized::default(key, text),
        ))
    }
}

/// The value of a variable. The value of a setting that is text by default, or has no default, stays text;
/// lists such as `[a, b]`, numbers and the like are parsed.
fn read_value(defaults: &Figment, key: &str, text: &str) -> Value {
    match defaults.find_value(key) {
        Err(_) if is_of_store(key, &["organizations"]) => {
            text.parse().unwrap_or_else(|_| Value::from(text))
        }
        Ok(Value::String(..)) | Err(_) => Value::from(text),
        // Parsing a value cannot fail: figment reads anything else as text.
        Ok(_) => text.parse().unwrap_or_else(|_| Value::from(text)),
    }
}

/// The settings on the command line.
pub(super) fn flags(flags: &Flags) -> Vec<SingleSetting> {
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
        let single = Serialized::default(key, Value::from(value?));
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
    let errors: Vec<String> = error.into_iter().map(|error| explain_one(&error)).collect();
    ConfigError::Invalid(format!("settings: {}", errors.join("; ")))
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
