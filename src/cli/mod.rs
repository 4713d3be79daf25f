//! The command line. Each subcommand has a file of its own.

mod anatomized;
mod anonymize;
mod bar;
mod counted;
mod database;
mod directory;
mod documents;
mod failure;
mod hardening;
mod home;
mod input_format;
mod key_file;
mod keys;
mod machine_memory;
mod migrate;
mod openapi;
mod overwriting;
mod process;
mod sample;
mod schema;
mod serve;
mod settings;
mod signals;
mod storage;
mod sweep_table;
mod table_file;
mod token;
mod verify;
mod verify_text;

use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use pais::config::ConfigError;
use pais::problem::Problem;

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
    Migrate(migrate::MigrateArgs),
    /// Issue API tokens
    #[command(subcommand)]
    Token(token::TokenCommand),
    /// Make, rotate and check the keys that protect raw rows
    #[command(subcommand)]
    Keys(keys::KeysCommand),
    /// Anonymize a table in a file, without a server or database
    Anonymize(anonymize::Anonymize),
    /// Check a finished table from any source against a privacy model
    Verify(verify::Verify),
    /// Write a table of fictitious persons, with its schema and a job, for trying pais out
    Sample(sample::SampleArgs),
    /// Propose the schema of a table
    #[command(subcommand)]
    Schema(schema::SchemaCommand),
    /// Print the OpenAPI document
    Openapi,
}

/// Runs the command given on the command line. The exit status is 0 on success, 2 if arguments or
/// settings are invalid, and 1 if the work failed.
pub(crate) fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Serve(args) => serve::run(args),
        Command::Migrate(args) => migrate::run(&args),
        Command::Token(command) => token::run(command),
        Command::Keys(command) => match keys::run(command) {
            Ok(status) => return status,
            Err(error) => Err(error),
        },
        Command::Anonymize(command) => {
            return match command.run() {
                Ok(()) => ExitCode::SUCCESS,
                Err(failure) => failure.report(),
            };
        }
        Command::Sample(command) => {
            return match command.run() {
                Ok(()) => ExitCode::SUCCESS,
                Err(failure) => failure.report(),
            };
        }
        Command::Schema(command) => {
            return match command.run() {
                Ok(()) => ExitCode::SUCCESS,
                Err(failure) => failure.report(),
            };
        }
        Command::Verify(command) => {
            return command.run().unwrap_or_else(|failure| failure.report());
        }
        Command::Openapi => openapi::run(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            if let Some(problem) = error.downcast_ref::<Problem>() {
                // Serializing cannot fail: a document has only strings and numbers.
                let text = serde_json::to_string_pretty(&problem.document()).unwrap_or_default();
                eprintln!("{text}");
            } else {
                eprintln!("pais: {error:#}");
            }
            let usage = error.is::<ConfigError>();
            ExitCode::from(if usage { 2 } else { 1 })
        }
    }
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
