//! One embedded PostgreSQL for the tests that run at a time.

use std::sync::{Arc, Mutex, Weak};
use std::thread::JoinHandle;

use pais::postgres::{self, EmbeddedOptions};
use sqlx::postgres::PgConnectOptions;
use tokio::sync::oneshot;

static RUNNING: Mutex<Weak<Server>> = Mutex::new(Weak::new());

/// A server that stops when nobody holds it any more.
pub struct Server {
    pub options: PgConnectOptions,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// The running server, or a new one. It lives on a runtime of its own: that of the test
    /// which started it may end first.
    pub fn shared() -> Arc<Self> {
        let mut running = RUNNING.lock().unwrap();
        if let Some(server) = running.upgrade() {
            return server;
        }
        let (stop, stopped) = oneshot::channel();
        let (tell, told) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Runtime::new().unwrap();
            runtime.block_on(async move {
                let directory = tempfile::tempdir().unwrap();
                let options = EmbeddedOptions::default();
                let server = postgres::start(directory.path(), &options).await.unwrap();
                tell.send(server.connect_options()).unwrap();
                let _ = stopped.await;
                server.stop().await.unwrap();
            });
        });
        let server = Arc::new(Self {
            options: told.recv().unwrap(),
            stop: Some(stop),
            thread: Some(thread),
        });
        *running = Arc::downgrade(&server);
        server
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
