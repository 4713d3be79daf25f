//! The command line. Each subcommand with work of its own has a file.

mod anonymize;
mod audit;
mod bar;
mod data_dir;
mod database;
mod definitions;
mod directory;
mod key_file;
mod keys;
mod output;
mod process;
mod sample;
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
use std::process::ExitCode;
use std::time::Duration;

use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::{Shell, generate};
use pais::config::ConfigError;
use pais::problem::{Code, Problem};

use database::{SettingsArgs, with_database};
use output::Failure;
use output::Style;

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
    /// Apply the missing migrations, and exit
    Migrate(SettingsArgs),
    /// Issue API tokens
    #[command(subcommand)]
    Token(token::TokenCommand),
    /// Make, rotate and check the keys that protect raw rows
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
    /// Map new raw rows through the cut of a release
    Transform(transform::Transform),
    /// Write a table of fictitious persons, with its schema and a job, for trying pais out
    Sample(sample::SampleArgs),
    /// Propose the schema of a table
    #[command(subcommand)]
    Schema(schema::SchemaCommand),
    /// Make, convert and check hierarchies
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
}

/// Runs the command given on the command line. The exit status is 0 on success, 2 if arguments or
/// settings are invalid, and 1 if the work failed.
pub(crate) fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Serve(args) => of_service(serve::run(args)),
        Command::Migrate(args) => of_service(migrate(&args)),
        Command::Token(command) => of_service(token::run(command)),
        Command::Keys(command) => match keys::run(command) {
            Ok(status) => status,
            Err(error) => of_service(Err(error)),
        },
        Command::Audit(command) => match audit::run(command) {
            Ok(status) => status,
            Err(error) => of_service(Err(error)),
        },
        Command::Anonymize(command) => of_files(command.run(), command.style()),
        Command::VerifyPackage(command) => match command.run() {
            Ok(status) => status,
            Err(failure) => failure.report(Style::of_errors(false)),
        },
        Command::Transform(command) => of_files(command.run(), command.style()),
        Command::Sample(command) => of_files(command.run(), Style::of_errors(false)),
        Command::Schema(command) => of_files(command.run(), command.style()),
        Command::Taxonomy(command) => of_files(command.run(), command.style()),
        Command::Verify(command) => match command.run() {
            Ok(status) => status,
            Err(failure) => failure.report(command.style()),
        },
        Command::Openapi => of_files(openapi(), Style::of_errors(false)),
        Command::Completions { shell } => of_files(completions(shell), Style::of_errors(false)),
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

/// The exit status of a command that works on files.
fn of_files(result: Result<(), Failure>, style: Style) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(style),
    }
}

/// The exit status of a command that works on the service or its database.
fn of_service(result: anyhow::Result<()>) -> ExitCode {
    let Err(error) = result else {
        return ExitCode::SUCCESS;
    };
    match error.downcast_ref::<Problem>() {
        Some(problem) => output::print_problem(problem, Style::of_errors(false)),
        None => output::note(format_args!("pais: {error:#}")),
    }
    let usage = error.is::<ConfigError>();
    ExitCode::from(if usage { 2 } else { 1 })
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
