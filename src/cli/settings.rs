//! The flags of every command that uses the service's data.

use std::path::PathBuf;

use clap::Args;
use pais::config::{ConfigError, Flags, Settings};

/// The sources of settings other than the environment.
#[derive(Args)]
pub(crate) struct SettingsArgs {
    /// Settings file (TOML); config/example.toml lists what can be set
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Directory of the embedded database and the key file
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

impl SettingsArgs {
    /// Reads the settings. `flags` contains the values of the command's own flags.
    ///
    /// # Errors
    /// [`ConfigError`], with the key and source of the invalid setting.
    pub(crate) fn load(&self, mut flags: Flags) -> Result<Settings, ConfigError> {
        flags.data_dir = self.data_dir.clone();
        Settings::load(self.config.as_deref(), &flags)
    }
}
