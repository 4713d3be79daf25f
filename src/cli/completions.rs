//! `pais completions`: the completion script of a shell.

use std::io::Write;

use clap::{Args, Command};
use clap_complete::{Shell, generate};

use super::failure::Failure;
use super::streams;

/// Arguments of `pais completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell; for bash: `source <(pais completions bash)`.
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

impl CompletionsArgs {
    /// Prints the script of the whole command line to standard output.
    ///
    /// # Errors
    /// If standard output cannot be written.
    pub(crate) fn run(&self, mut command: Command) -> Result<(), Failure> {
        // The generator panics where its writer fails, so it writes to memory.
        let mut script = Vec::new();
        generate(self.shell, &mut command, "pais", &mut script);
        streams::print(|out| out.write_all(&script))
    }
}
