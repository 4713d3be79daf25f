//! `pais token create`.

use anyhow::Context;
use pais::clock::{Clock, SystemClock};
use pais::config::{Flags, Settings};
use pais::problem::Problem;
use pais::roles::Role;
use pais::service::TokenLifetime;
use pais::store::Store;
use pais::store::organizations::{check_name, find_or_create};
use pais::store::tokens::{NewToken, create_token};
use pais::telemetry;
use secrecy::{ExposeSecret, SecretString};
use time::format_description::well_known::Rfc3339;
use time::macros::format_description;
use time::{Date, Duration, OffsetDateTime, UtcOffset};

use super::block_on;
use super::database::Database;
use super::settings::SettingsArgs;

/// The subcommands of `pais token`.
#[derive(clap::Subcommand)]
pub(crate) enum TokenCommand {
    /// Issue a token and print only the token on standard output; create its organization if it
    /// does not exist
    Create(CreateArgs),
}

/// Flags of `pais token create`.
#[derive(clap::Args)]
pub(crate) struct CreateArgs {
    /// Name of the organization on whose behalf the token acts
    #[arg(long, value_name = "NAME", value_parser = organization_name)]
    organization: String,
    /// What the token may do
    #[arg(long)]
    role: Role,
    /// What the token is for
    #[arg(long)]
    label: Option<String>,
    /// When it expires: a number of days (90d), a date (2027-01-31, its start in UTC) or a time
    /// (2027-01-31T12:00:00Z). Without it, after security.token_max_days
    #[arg(long, value_name = "DAYS|DATE|TIME", value_parser = expiry)]
    expires: Option<Expiry>,
    #[command(flatten)]
    settings: SettingsArgs,
}

/// When a token expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expiry {
    After(Duration),
    At(OffsetDateTime),
}

impl Expiry {
    /// The time, for a token that is issued `now`; `None` if it is beyond the calendar.
    fn from(self, now: OffsetDateTime) -> Option<OffsetDateTime> {
        match self {
            Self::After(lifetime) => now.checked_add(lifetime),
            Self::At(time) => Some(time),
        }
    }
}

fn expiry(text: &str) -> Result<Expiry, String> {
    if let Some(days) = text.strip_suffix('d')
        && let Ok(days) = days.parse::<u32>()
    {
        return Ok(Expiry::After(Duration::days(days.into())));
    }
    let date = format_description!("[year]-[month]-[day]");
    if let Ok(date) = Date::parse(text, date) {
        return Ok(Expiry::At(date.midnight().assume_utc()));
    }
    OffsetDateTime::parse(text, &Rfc3339)
        .map(|time| Expiry::At(time.to_offset(UtcOffset::UTC)))
        .map_err(|_| {
            "expected days (90d), a date (2027-01-31) or a time (2027-01-31T12:00:00Z)".to_owned()
        })
}

fn organization_name(text: &str) -> Result<String, Problem> {
    check_name(text).map(|()| text.to_owned())
}

/// Runs a subcommand of `pais token`.
///
/// # Errors
/// If the settings are invalid or the database fails.
pub(crate) fn run(command: TokenCommand) -> anyhow::Result<()> {
    let TokenCommand::Create(args) = command;
    let settings = args.settings.load(Flags::default())?;
    telemetry::init(&settings.log)?;
    let secret = block_on(create(&settings, &args))?;
    println!("{}", secret.expose_secret());
    Ok(())
}

async fn create(settings: &Settings, args: &CreateArgs) -> anyhow::Result<SecretString> {
    let lifetime = TokenLifetime {
        max_days: settings.security.token_max_days,
    };
    // Before the database is started: a time that is refused is reported at once.
    expires_at(lifetime, args, SystemClock.now())?;
    let database = Database::open_for_command(settings).await?;
    let issued = issue(&database.store, args, lifetime).await;
    database.close().await?;
    issued
}

/// When the token expires if it is issued `now`.
fn expires_at(
    lifetime: TokenLifetime,
    args: &CreateArgs,
    now: OffsetDateTime,
) -> anyhow::Result<Option<OffsetDateTime>> {
    let requested = args.expires.map(|expiry| {
        let time = expiry.from(now);
        time.context("--expires is beyond the calendar; give an earlier time")
    });
    let requested = requested.transpose()?;
    lifetime.expiry(now, requested).context("--expires")
}

async fn issue(
    store: &Store,
    args: &CreateArgs,
    lifetime: TokenLifetime,
) -> anyhow::Result<SecretString> {
    let new = NewToken {
        role: args.role,
        label: args.label.as_deref(),
        expires_at: expires_at(lifetime, args, store.now())?,
    };
    loop {
        let organization = find_or_create(store, &args.organization).await?;
        // Organizations are never deleted, so this succeeds in the first iteration.
        if let Some(issued) = create_token(store, None, &organization.name, new).await? {
            return Ok(issued.secret);
        }
    }
}

#[cfg(test)]
mod tests {
    use time::Duration;
    use time::macros::datetime;

    use super::{Expiry, expiry};

    #[test]
    fn an_expiry_is_a_number_of_days_a_date_or_a_time() {
        assert_eq!(expiry("90d"), Ok(Expiry::After(Duration::days(90))));
        let date = datetime!(2027-01-31 0:00 UTC);
        assert_eq!(expiry("2027-01-31"), Ok(Expiry::At(date)));
        let time = datetime!(2027-01-31 11:00 UTC);
        assert_eq!(expiry("2027-01-31T12:00:00+01:00"), Ok(Expiry::At(time)));
        for text in [
            "",
            "d",
            "-1d",
            "90",
            "90 d",
            "31.01.2027",
            "2027-02-30",
            "4294967296d",
        ] {
            assert!(expiry(text).is_err(), "{text}");
        }
    }
}
