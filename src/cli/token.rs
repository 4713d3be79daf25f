//! `pais token create`.

use pais::config::{Flags, Settings};
use pais::problem::Problem;
use pais::roles::Role;
use pais::store::organizations::{check_name, find_or_create};
use pais::store::tokens::{NewToken, create_token};
use pais::store::{Store, StoreError};
use pais::telemetry;
use secrecy::{ExposeSecret, SecretString};

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
    #[command(flatten)]
    settings: SettingsArgs,
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
    let database = Database::open_for_command(settings).await?;
    let issued = issue(&database.store, args).await;
    database.close().await?;
    Ok(issued?)
}

async fn issue(store: &Store, args: &CreateArgs) -> Result<SecretString, StoreError> {
    let new = NewToken {
        role: args.role,
        label: args.label.as_deref(),
        expires_at: None,
    };
    loop {
        let organization = find_or_create(store, &args.organization).await?;
        // Organizations are never deleted, so this succeeds in the first iteration.
        if let Some(issued) = create_token(store, None, &organization.name, new).await? {
            return Ok(issued.secret);
        }
    }
}
