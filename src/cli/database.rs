//! The database a command works with: the one of the settings, or the embedded one.

use std::sync::Arc;

use anyhow::Context;
use pais::clock::SystemClock;
use pais::config::Settings;
use pais_postgres::{self, EmbeddedOptions, EmbeddedServer, PostgresError};
use pais::store::Store;
use secrecy::ExposeSecret;

/// An open database, and the embedded server behind it where there is one.
pub struct Database {
    /// The database, migrated.
    pub store: Store,
    server: Option<EmbeddedServer>,
}

impl Database {
    /// For the service: the embedded server is its own.
    pub async fn open_for_service(settings: &Settings) -> anyhow::Result<Self> {
        let dir = &settings.server.data_dir;
        let server = match settings.database.url {
            Some(_) => None,
            None => Some(postgres::start(dir, &embedded(settings)).await?),
        };
        Self::open(settings, server).await
    }

    /// For a command: beside a running service its server is shared.
    pub async fn open_for_command(settings: &Settings) -> anyhow::Result<Self> {
        let dir = &settings.server.data_dir;
        let server = match settings.database.url {
            Some(_) => None,
            None => Some(postgres::attach_or_start(dir, &embedded(settings)).await?),
        };
        Self::open(settings, server).await
    }

    async fn open(settings: &Settings, server: Option<EmbeddedServer>) -> anyhow::Result<Self> {
        let connections = settings.database.connections;
        let clock = Arc::new(SystemClock);
        let store = match (&server, &settings.database.url) {
            (Some(server), _) => Store::new(server.connect_options(), connections, clock),
            (None, Some(url)) => Store::from_url(url.expose_secret(), connections, clock)
                .context("database.url is not usable")?,
            (None, None) => anyhow::bail!("there is neither an embedded nor an outside database"),
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

    /// Waits until the embedded server ends by itself, and answers why.
    pub async fn ended(&mut self) -> PostgresError {
        match &mut self.server {
            Some(server) => server.ended().await,
            None => std::future::pending().await,
        }
    }

    /// Closes the connections, and stops the embedded server if it is this process's own.
    pub async fn close(self) -> anyhow::Result<()> {
        self.store.close().await;
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
