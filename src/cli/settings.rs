//! The flags of every command that works with the service's data.

use std::path::PathBuf;

use clap::Args;
use pais::config::{ConfigError, Flags, Settings};

/// Where settings come from, beside the environment.
#[derive(Args)]
pub struct SettingsArgs {
    /// Settings file (TOML); config/example.toml lists what can be set
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Directory of the embedded database and the key file
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

impl SettingsArgs {
    /// Reads the settings; `flags` holds what the command's own flags set.
    pub fn load(&self, mut flags: Flags) -> Result<Settings, ConfigError> {
        flags.data_dir = self.data_dir.clone();
        Settings::load(self.config.as_deref(), &flags)
    }
}
