//! The command line: one file a subcommand.

mod anatomized;
mod anonymize;
mod bar;
mod counted;
mod database;
mod directory;
mod documents;
mod failure;
mod keys;
mod migrate;
mod openapi;
mod sample;
mod serve;
mod settings;
mod table_file;
mod token;
mod verify;

use std::process::ExitCode;

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
    Serve(serve::Args),
    /// Apply the migrations that are missing, and stop
    Migrate(migrate::Args),
    /// Issue API tokens
    #[command(subcommand)]
    Token(token::Command),
    /// Anonymize a table in files, without server or database
    Anonymize(anonymize::Anonymize),
    /// Check a finished table, whoever made it, against a privacy model
    Verify(verify::Verify),
    /// Write a table of persons who do not exist, with its schema and a job, to try things on
    Sample(sample::Arguments),
    /// Print the OpenAPI document
    Openapi,
}

/// Runs the command that the arguments name. The exit status is 2 where arguments or settings
/// are off, 1 where the work failed.
pub fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Serve(args) => serve::run(args),
        Command::Migrate(args) => migrate::run(&args),
        Command::Token(command) => token::run(command),
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
        Command::Verify(command) => {
            return command.run().unwrap_or_else(|failure| failure.report());
        }
        Command::Openapi => openapi::run(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            if let Some(problem) = error.downcast_ref::<Problem>() {
                // A document is strings and numbers; serializing it cannot fail.
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

/// Runs a command's asynchronous work.
fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?
        .block_on(work)
}
