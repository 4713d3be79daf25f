//! `pais migrate`.

use pais::config::Flags;
use pais::telemetry;

use super::block_on;
use super::database::Database;
use super::settings::SettingsArgs;

/// Flags of `pais migrate`.
#[derive(clap::Args)]
pub(crate) struct MigrateArgs {
    #[command(flatten)]
    settings: SettingsArgs,
}

/// Applies the missing migrations.
///
/// # Errors
/// If the settings are invalid, or the database cannot be opened or migrated.
pub(crate) fn run(args: &MigrateArgs) -> anyhow::Result<()> {
    let settings = args.settings.load(Flags::default())?;
    telemetry::init(&settings.log)?;
    block_on(async {
        // Opening the database applies the migrations.
        Database::open_for_command(&settings).await?.close().await
    })
}
