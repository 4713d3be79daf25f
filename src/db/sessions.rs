//! Sessions with a database whose host has vanished: packets to it are dropped, and no error ends the
//! sessions. The client library cannot set keepalives on its sockets, and cannot close a socket that is being
//! waited for.

use std::pin::pin;
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Connection, PgConnection};
use tokio::time::{sleep, timeout};

use super::Store;

/// Time between two queries to the database.
const INTERVAL: Duration = Duration::from_secs(1);

/// How long a silent session may take to answer after a new session has answered: a database that was only
/// paused answers all of them.
const GRACE: Duration = Duration::from_secs(1);

/// Makes the server end the session within a minute after the host of this process has vanished. Otherwise the
/// locks of its transaction would be held for hours. No effect on a Unix socket.
pub(super) async fn keep_alive(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::raw_sql(
        "SET tcp_keepalives_idle = 20; SET tcp_keepalives_interval = 10; SET tcp_keepalives_count = 4;
         SET tcp_user_timeout = 60000",
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Waits until the sessions of this process are lost: a watched session is silent for `silence`, and stays
/// silent while a new one answers.
pub async fn lost(store: &Store, silence: Duration) {
    let options = store.owner().connect_options();
    loop {
        if let Some(session) = open(&options, silence).await
            && is_lost(session, &options, silence).await
        {
            return;
        }
        sleep(INTERVAL).await;
    }
}

/// A new session that answers in time.
async fn open(options: &PgConnectOptions, limit: Duration) -> Option<PgConnection> {
    timeout(limit, options.connect()).await.ok()?.ok()
}

/// Watches a session until it ends with an error, like those of the same server, or is lost.
async fn is_lost(mut session: PgConnection, options: &PgConnectOptions, silence: Duration) -> bool {
    loop {
        let mut answer = pin!(session.ping());
        let answered = match timeout(silence, &mut answer).await {
            Ok(answered) => answered,
            Err(_) => {
                tracing::warn!("the database does not answer");
                tokio::select! {
                    answered = &mut answer => answered,
                    () = new_session_answers(options, silence) => return true,
                }
            }
        };
        if answered.is_err() {
            return false;
        }
        sleep(INTERVAL).await;
    }
}

async fn new_session_answers(options: &PgConnectOptions, limit: Duration) {
    while open(options, limit).await.is_none() {
        sleep(INTERVAL).await;
    }
    sleep(GRACE).await;
}
