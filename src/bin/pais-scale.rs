//! The program `pais-scale`: executors, which count rows for `pais anonymize --executor`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Parser, Subcommand};
use mimalloc::MiMalloc;
use pais::config::{LogFormat, LogSettings};
use pais::memory::{MemorySize, forbid_dumps};
use pais::storage::secret_file::read_one_key;
use pais::telemetry;
use pais_scale::{Executor, ExecutorKey, ExecutorSettings, TlsFiles};
use tokio::signal::unix::{SignalKind, signal};

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// The log filter: without the engine, whose messages are for its developers.
const LOG: &str = "pais=info,pais_scale=info";

/// Counts rows for `pais anonymize --executor`.
#[derive(Parser)]
#[command(name = "pais-scale", version, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run an executor until SIGTERM
    Executor(ExecutorArgs),
}

#[derive(clap::Args)]
struct ExecutorArgs {
    /// The address to listen on; without TLS, only a loopback address.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:5051")]
    listen: SocketAddr,
    /// The directory that `pais anonymize --spool` names, as this machine sees it.
    #[arg(long, value_name = "DIR")]
    spool: PathBuf,
    /// The same key as `pais anonymize --executor-key`: a file made by `pais keys generate`.
    #[arg(long, value_name = "FILE")]
    key_file: PathBuf,
    /// Memory of the engine. What does not fit is spilled into encrypted files in the spool directory.
    #[arg(long, value_name = "SIZE", default_value = "1GiB")]
    memory: MemorySize,
    /// Its certificate (PEM).
    #[arg(long, value_name = "FILE", requires_all = ["tls_key", "tls_authority"])]
    tls_certificate: Option<PathBuf>,
    /// The private key of its certificate (PEM).
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    tls_key: Option<PathBuf>,
    /// The certificate authority of its clients (PEM).
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    tls_authority: Option<PathBuf>,
}

fn main() -> ExitCode {
    let Cli {
        command: Command::Executor(args),
    } = Cli::parse();
    match run(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("pais-scale: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run(args: ExecutorArgs) -> anyhow::Result<()> {
    telemetry::init(&LogSettings {
        format: LogFormat::Text,
        filter: LOG.to_owned(),
    })?;
    forbid_dumps();
    let tls = match (args.tls_certificate, args.tls_key, args.tls_authority) {
        (Some(certificate), Some(key), Some(authority)) => Some(TlsFiles {
            certificate,
            key,
            authority,
        }),
        _ => None,
    };
    let engine = tokio::runtime::Builder::new_multi_thread()
        .enable_time()
        .build()?;
    let settings = ExecutorSettings {
        listen: args.listen,
        spool: args.spool,
        key: ExecutorKey::new(&read_one_key(&args.key_file)?),
        memory: args.memory.0,
        tls,
        threads: engine.handle().clone(),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let served = runtime.block_on(async {
        let [mut terminate, mut interrupt] = [
            signal(SignalKind::terminate())?,
            signal(SignalKind::interrupt())?,
        ];
        let executor = Executor::bind(settings).await?;
        let address = executor.address().context("the address is unknown")?;
        tracing::info!(%address, "an executor listens");
        let stop = async {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        };
        executor.serve(stop).await;
        Ok(())
    });
    // Statements that run have lost their connections.
    runtime.shutdown_background();
    engine.shutdown_background();
    served
}
