//! `pais token create`.

use std::io::{self, Write};

use anyhow::Context;
use pais::api::limits::TokenLifetime;
use pais::api::organizations::check_name;
use pais::api::tokens::check_label;
use pais::db::Store;
use pais::db::organizations::find_or_create;
use pais::db::tokens::{IssuedToken, NewToken, create_token, revoke};
use pais::problem::Problem;
use pais::roles::Role;
use secrecy::{ExposeSecret, SecretString};
use time::format_description::well_known::Rfc3339;
use time::macros::format_description;
use time::{Date, Duration, OffsetDateTime};

use super::database::{SettingsArgs, with_database};

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
    #[arg(long, value_parser = label)]
    label: Option<String>,
    /// When it stops working: a number of days such as 90d, a date (the token works until its
    /// beginning, UTC) or an RFC 3339 time. If omitted: after security.token_max_days
    #[arg(long, value_name = "WHEN", value_parser = expiry)]
    expires: Option<OffsetDateTime>,
    #[command(flatten)]
    settings: SettingsArgs,
}

fn expiry(text: &str) -> Result<OffsetDateTime, &'static str> {
    expiry_from(OffsetDateTime::now_utc(), text)
}

fn expiry_from(now: OffsetDateTime, text: &str) -> Result<OffsetDateTime, &'static str> {
    // 65,535 days are less than two centuries.
    if let Some(days) = text
        .strip_suffix('d')
        .and_then(|days| days.parse::<u16>().ok())
    {
        return Ok(now + Duration::days(days.into()));
    }
    if let Ok(time) = OffsetDateTime::parse(text, &Rfc3339) {
        return Ok(time);
    }
    let date = Date::parse(text, format_description!("[year]-[month]-[day]"));
    let date = date.map_err(|_| "expected 90d, 2027-01-31 or 2027-01-31T12:00:00Z")?;
    Ok(date.midnight().assume_utc())
}

fn organization_name(text: &str) -> Result<String, Problem> {
    check_name(text).map(|()| text.to_owned())
}

fn label(text: &str) -> Result<String, Problem> {
    check_label(text).map(|()| text.to_owned())
}

/// Runs a subcommand of `pais token`.
///
/// # Errors
/// If the settings are invalid or the database fails, and if the token cannot be printed: it does not work
/// then.
pub(crate) fn run(command: TokenCommand) -> anyhow::Result<()> {
    let TokenCommand::Create(args) = command;
    let settings = args.settings.start()?;
    let lifetime = TokenLifetime::of_days(settings.security.token_max_days);
    with_database(&settings, async |store| {
        let issued = issue(store, &args, lifetime).await?;
        let Err(error) = print(&issued.secret) else {
            return Ok(());
        };
        let id = issued.token.id;
        let revoked = revoke(store, None, id).await;
        revoked.with_context(|| format!("the token {id} was not printed; revoke it"))?;
        Err(error).context("the token was revoked again, because it cannot be printed")
    })
}

/// Prints a secret. Unlike for other lines, a closed pipe is an error.
fn print(secret: &SecretString) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{}", secret.expose_secret())?;
    out.flush()
}

async fn issue(
    store: &Store,
    args: &CreateArgs,
    lifetime: TokenLifetime,
) -> anyhow::Result<IssuedToken> {
    let new = NewToken {
        role: args.role,
        label: args.label.as_deref(),
        expires_at: lifetime.end(args.expires, store.now())?,
        is_enrolled: false,
    };
    loop {
        let organization = find_or_create(store, &args.organization).await?;
        // Organizations are never deleted, so this succeeds in the first iteration.
        if let Some(issued) = create_token(store, None, &organization.name, new).await? {
            return Ok(issued);
        }
    }
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::expiry_from;

    #[test]
    fn an_expiry_is_a_number_of_days_a_date_or_a_time() {
        let now = datetime!(2026-11-22 10:00 UTC);
        let time = |text| expiry_from(now, text);
        assert_eq!(time("90d"), Ok(datetime!(2027-02-20 10:00 UTC)));
        assert_eq!(time("2027-01-31"), Ok(datetime!(2027-01-31 00:00 UTC)));
        let offset = time("2027-01-31T12:00:00+02:00");
        assert_eq!(offset, Ok(datetime!(2027-01-31 10:00 UTC)));
        for wrong in ["", "d", "-1d", "90", "99999d", "2027-02-30", "tomorrow"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }
}
