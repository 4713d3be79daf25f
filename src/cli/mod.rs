//! The command line. Each subcommand with work of its own has a file.

mod anonymize;
mod audit;
mod backup;
mod bar;
mod data_dir;
mod database;
mod definitions;
mod directory;
mod doctor;
mod files;
mod finished_table;
mod interview;
mod key_file;
mod keys;
mod new_file;
mod output;
mod process;
mod publish;
mod restore;
mod sample;
mod scale;
mod schema;
mod serve;
mod sources;
mod summary;
mod table_file;
mod taxonomy;
mod token;
mod transform;
mod verify;
mod verify_package;
mod verify_text;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::{Shell, generate};
use pais::problem::{Code, Problem};

use database::{SettingsArgs, with_database};
use files::Files;
use output::{Failure, Style};

/// Privacy-aware sharing of health data.
#[derive(Parser)]
#[command(name = "pais", version, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the service: migrate, start the workers, serve HTTP
    Serve(serve::ServeArgs),
    /// Run jobs only, for a service with --no-workers or in addition to one that also runs jobs
    Work(SettingsArgs),
    /// Apply the missing migrations, and exit
    Migrate(SettingsArgs),
    /// Check settings, data directory, keys, database, disk, clock and ports: exit status 0 if the service
    /// can run, 1 if not
    Doctor(SettingsArgs),
    /// Back up a running or stopped service
    Backup(backup::BackupArgs),
    /// Restore a backup into a new data directory
    Restore(restore::RestoreArgs),
    /// Issue API tokens
    #[command(subcommand)]
    Token(token::TokenCommand),
    /// Create, rotate and check the keys that protect raw rows
    #[command(subcommand)]
    Keys(keys::KeysCommand),
    /// Check the audit logs
    #[command(subcommand)]
    Audit(audit::AuditCommand),
    /// Anonymize a table in a file, without a server or database
    Anonymize(anonymize::Anonymize),
    /// Check a finished table from any source against a privacy model
    Verify(verify::Verify),
    /// Check the hashes and the signature of a package: exit status 0 if they are right, 1 if not, 2 if
    /// it cannot be read
    VerifyPackage(verify_package::VerifyPackage),
    /// Send files to the dataset of a publication, and wait for their edition: exit status 0 if it is
    /// published, 3 if it waits for approval, 1 if it is refused or has failed
    Publish(publish::Publish),
    /// Map new raw rows through the cut of a release
    Transform(transform::Transform),
    /// Write a table of fictitious persons, with its schema and a job, to try out pais
    Sample(sample::SampleArgs),
    /// Propose the schema of a table
    #[command(subcommand)]
    Schema(schema::SchemaCommand),
    /// Generate, convert and check hierarchies
    #[command(subcommand)]
    Taxonomy(taxonomy::TaxonomyCommand),
    /// Print the OpenAPI document
    Openapi,
    /// Print the completion script of a shell
    Completions {
        /// The shell; for bash: `source <(pais completions bash)`.
        #[arg(value_name = "SHELL")]
        shell: Shell,
    },
    /// Write the pages of the manual, one for each command
    Man {
        /// An existing directory
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
}

/// Runs the command given on the command line. The exit status is 0 on success, 2 if arguments or
/// settings are invalid, and 1 if the work failed.
pub(crate) fn main() -> ExitCode {
    let of_faults = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !pais_io::read::parquet::is_decoding() {
            of_faults(panic);
        }
    }));
    let command = Cli::parse().command;
    let style = Style::of_errors(command.has_json());
    let done = command.run();
    done.unwrap_or_else(|failure| failure.report(style))
}

impl Command {
    /// Whether `--json` is given.
    fn has_json(&self) -> bool {
        match self {
            Self::Anonymize(command) => command.json,
            Self::Verify(command) => command.json,
            Self::Schema(schema::SchemaCommand::Draft(args)) => args.json,
            Self::Taxonomy(taxonomy::TaxonomyCommand::Check(args)) => args.json,
            _ => false,
        }
    }

    /// The files that it reads and writes, where it may do both.
    fn files(&self) -> Files {
        match self {
            Self::Anonymize(command) => command.files(),
            Self::Transform(command) => command.files(),
            Self::Schema(schema::SchemaCommand::Draft(args)) => args.files(),
            Self::Taxonomy(command) => command.files(),
            _ => Files::default(),
        }
    }

    fn run(self) -> Result<ExitCode, Failure> {
        self.files().check()?;
        match self {
            Self::Keys(command) => return keys::run(command).map_err(Failure::Service),
            Self::Audit(command) => return audit::run(command).map_err(Failure::Service),
            Self::Doctor(args) => return doctor::run(&args).map_err(Failure::Service),
            Self::Backup(args) => return backup::run(args).map_err(Failure::Service),
            Self::Restore(args) => restore::run(&args).map_err(Failure::Service)?,
            Self::Work(args) => serve::work(&args).map_err(Failure::Service)?,
            Self::VerifyPackage(command) => return command.run(),
            Self::Verify(command) => return command.run(),
            Self::Publish(command) => return command.run(),
            Self::Serve(args) => serve::run(args).map_err(Failure::Service)?,
            Self::Migrate(args) => migrate(&args).map_err(Failure::Service)?,
            Self::Token(command) => token::run(command).map_err(Failure::Service)?,
            Self::Anonymize(command) => return command.run(),
            Self::Transform(command) => command.run()?,
            Self::Sample(command) => command.run()?,
            Self::Schema(schema::SchemaCommand::Draft(args)) => args.run()?,
            Self::Taxonomy(command) => command.run()?,
            Self::Openapi => openapi()?,
            Self::Completions { shell } => completions(shell)?,
            Self::Man { directory } => clap_mangen::generate_to(Cli::command(), &directory)
                .map_err(|error| Failure::file(&directory, error))?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Applies the missing migrations.
fn migrate(args: &SettingsArgs) -> anyhow::Result<()> {
    // Opening the database applies them.
    with_database(&args.start()?, async |_| Ok(()))
}

/// Prints the OpenAPI document to standard output.
fn openapi() -> Result<(), Failure> {
    let text = pais::api::document_text()
        .map_err(|error| Problem::new(Code::Internal, error.to_string()))?;
    output::print(|out| out.write_all(text.as_bytes()))
}

/// Prints the completion script of the whole command line to standard output.
fn completions(shell: Shell) -> Result<(), Failure> {
    // The generator panics where its writer fails, so it writes to memory.
    let mut script = Vec::new();
    generate(shell, &mut Cli::command(), "pais", &mut script);
    output::print(|out| out.write_all(&script))
}

/// How long the process waits at its end for threads that are still busy.
const THREADS_WAIT: Duration = Duration::from_secs(1);

/// Runs the asynchronous part of a command on a new multi-threaded runtime.
fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let result = runtime.block_on(work);
    runtime.shutdown_timeout(THREADS_WAIT);
    result
}
