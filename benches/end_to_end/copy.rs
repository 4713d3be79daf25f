//! The reference: PostgreSQL's COPY of the same file, on a server with the same settings.

use std::path::Path;
use std::time::Instant;

use futures_util::TryStreamExt;
use pais_postgres::EmbeddedOptions;
use sqlx::{ConnectOptions, Connection, Executor, PgConnection};
use tokio::fs::File;

use crate::{READ_BYTES, REPEATS};
use pais_test_support::adult::{COLUMNS, NUMERIC};
use pais_test_support::median::median;

/// Seconds of COPY in and COPY out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CopySeconds {
    pub copy_in: f64,
    pub copy_out: f64,
}

/// Copies a file into a new server and out of it, several times; the medians.
pub(crate) async fn measure(file: &Path) -> anyhow::Result<CopySeconds> {
    let data = tempfile::Builder::new()
        .prefix("pais-bench-copy-")
        .tempdir()?;
    let server = pais_postgres::start(data.path(), &EmbeddedOptions::default()).await?;
    let measured = async {
        let mut connection = server.connect_options().connect().await?;
        let measured = copy(&mut connection, file).await?;
        connection.close().await?;
        anyhow::Ok(measured)
    }
    .await;
    server.stop().await?;
    measured
}

async fn copy(connection: &mut PgConnection, file: &Path) -> anyhow::Result<CopySeconds> {
    let columns = COLUMNS.map(|column| {
        let kind = if NUMERIC.contains(&column) {
            "integer"
        } else {
            "text"
        };
        format!("\"{column}\" {kind}")
    });
    let create = format!("CREATE TABLE adult ({})", columns.join(", "));
    let mut ins = Vec::new();
    let mut outs = Vec::new();
    for _ in 0..REPEATS {
        // A new table each time, since deleted rows would slow down the next COPY.
        connection.execute("DROP TABLE IF EXISTS adult").await?;
        connection
            .execute(sqlx::AssertSqlSafe(create.clone()))
            .await?;

        let began = Instant::now();
        let mut copy_in = connection
            .copy_in_raw("COPY adult FROM STDIN WITH (FORMAT csv, HEADER)")
            .await?;
        let source = tokio::io::BufReader::with_capacity(READ_BYTES, File::open(file).await?);
        copy_in.read_from(source).await?;
        copy_in.finish().await?;
        ins.push(began.elapsed().as_secs_f64());

        let began = Instant::now();
        let mut bytes = 0;
        let mut copy_out = connection
            .copy_out_raw("COPY adult TO STDOUT WITH (FORMAT csv, HEADER)")
            .await?;
        while let Some(part) = copy_out.try_next().await? {
            bytes += part.len() as u64;
        }
        drop(copy_out);
        outs.push(began.elapsed().as_secs_f64());
        let expected = std::fs::metadata(file)?.len();
        anyhow::ensure!(
            bytes == expected,
            "COPY returned {bytes} bytes; expected {expected}"
        );
    }
    Ok(CopySeconds {
        copy_in: median(&ins),
        copy_out: median(&outs),
    })
}
