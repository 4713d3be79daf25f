//! `pais migrate`.

use pais::config::Flags;
use pais::telemetry;

use super::block_on;
use super::database::Database;
use super::settings::SettingsArgs;

/// Flags of `pais migrate`.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    settings: SettingsArgs,
}

/// Applies the migrations that are missing.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let settings = args.settings.load(Flags::default())?;
    telemetry::init(&settings.log)?;
    block_on(async {
        // Opening migrates.
        Database::open_for_command(&settings).await?.close().await
    })
}
