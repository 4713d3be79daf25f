//! The database that a command uses: the one in the settings, or the embedded one.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use pais::clock::SystemClock;
use pais::config::Settings;
use pais::store::Store;
use pais_postgres::{EmbeddedOptions, EmbeddedServer, PostgresError};
use secrecy::ExposeSecret;

/// How long the connections may take to be closed.
const CLOSE_WAIT: Duration = Duration::from_secs(2);

/// An open database, and its embedded server if it has one.
pub(crate) struct Database {
    /// The database, with all migrations applied.
    pub store: Store,
    server: Option<EmbeddedServer>,
}

impl Database {
    /// Opens the database for the service. The service starts its own embedded server.
    ///
    /// # Errors
    /// When the database cannot be started, reached or migrated.
    pub(crate) async fn open_for_service(settings: &Settings) -> anyhow::Result<Self> {
        let dir = &settings.server.data_dir;
        let server = match settings.database.url {
            Some(_) => None,
            None => Some(pais_postgres::start(dir, &embedded(settings)).await?),
        };
        Self::open(settings, server).await
    }

    /// Opens the database for a command. If a service is running, the command shares its server.
    ///
    /// # Errors
    /// When the database cannot be started, reached or migrated.
    pub(crate) async fn open_for_command(settings: &Settings) -> anyhow::Result<Self> {
        let dir = &settings.server.data_dir;
        let server = match settings.database.url {
            Some(_) => None,
            None => Some(pais_postgres::attach_or_start(dir, &embedded(settings)).await?),
        };
        Self::open(settings, server).await
    }

    async fn open(settings: &Settings, server: Option<EmbeddedServer>) -> anyhow::Result<Self> {
        let connections = settings.database.connections;
        let clock = Arc::new(SystemClock);
        let store = match (&server, &settings.database.url) {
            (Some(server), _) => Store::new(server.connect_options(), connections, clock),
            (None, Some(url)) => Store::from_url(url.expose_secret(), connections, clock).context(
                "database.url is invalid; expected postgres://user:password@host/database",
            )?,
            (None, None) => anyhow::bail!("there is no database; set database.url"),
        };
        let database = Self { store, server };
        match database.store.migrate().await {
            Ok(()) => Ok(database),
            Err(error) => {
                database.close().await?;
                Err(error.into())
            }
        }
    }

    /// Waits until the embedded server ends by itself, and returns why. Without an embedded
    /// server it never returns.
    pub(crate) async fn ended(&mut self) -> PostgresError {
        match &mut self.server {
            Some(server) => server.ended().await,
            None => std::future::pending().await,
        }
    }

    /// Closes the connections, and stops the embedded server if this process started it.
    ///
    /// # Errors
    /// When the embedded server does not stop.
    pub(crate) async fn close(self) -> anyhow::Result<()> {
        // Work that was not waited for may still have a connection.
        let _ = tokio::time::timeout(CLOSE_WAIT, self.store.close()).await;
        if let Some(server) = self.server {
            server.stop().await?;
        }
        Ok(())
    }
}

fn embedded(settings: &Settings) -> EmbeddedOptions {
    EmbeddedOptions {
        bin_dir: settings.postgres.bin_dir.clone(),
        max_connections: settings.postgres.max_connections,
    }
}
