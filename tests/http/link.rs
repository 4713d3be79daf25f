//! A TCP proxy between a client and a service, or between a process and its database.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use pais_test_support::poll::pace;

/// What a link does with the bytes on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    /// Forwards them.
    Normal,
    /// Closes all connections, also new ones.
    Cut,
    /// Forwards a few bytes at a time, with pauses.
    Slow,
    /// Forwards nothing, and closes nothing.
    Silent,
}

/// Where a link leads.
#[derive(Clone, Debug)]
pub(crate) enum Far {
    /// To an address and port.
    Address(String),
    /// To a socket of this machine.
    Socket(PathBuf),
}

impl Far {
    /// To a PostgreSQL server that has a socket.
    pub(crate) fn database(options: &PgConnectOptions) -> Self {
        let name = format!(".s.PGSQL.{}", options.get_port());
        Self::Socket(options.get_socket().unwrap().join(name))
    }
}

/// Bytes that are forwarded at a time.
const PIECE: usize = 16 << 10;

/// The same on a slow link, and the pause after them.
const SLOW_PIECE: usize = 2 << 10;
const SLOW_PAUSE: Duration = Duration::from_millis(15);

/// The state of a link.
#[derive(Clone, Copy, Debug)]
struct State {
    condition: Condition,
    /// How often its connections were lost.
    losses: u64,
}

/// A link. Its connections end when it is dropped.
pub(crate) struct Link {
    /// Where it begins.
    pub(crate) address: SocketAddr,
    state: watch::Sender<State>,
    _accepting: AbortOnDropHandle<()>,
}

impl Link {
    pub(crate) async fn to(far: Far) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let initial = State {
            condition: Condition::Normal,
            losses: 0,
        };
        let (state, seen) = watch::channel(initial);
        let accepting = tokio::spawn(accept(listener, far, seen));
        Self {
            address,
            state,
            _accepting: AbortOnDropHandle::new(accepting),
        }
    }

    pub(crate) fn set(&self, condition: Condition) {
        self.state.send_modify(|state| state.condition = condition);
    }

    /// Makes its connections silent for ever, as if the host of the far side had vanished and another one
    /// had its address. Connections that begin later work.
    pub(crate) fn lose_connections(&self) {
        self.state.send_modify(|state| state.losses += 1);
    }
}

async fn accept(listener: TcpListener, far: Far, state: watch::Receiver<State>) {
    loop {
        // An error is that of a client that is gone.
        if let Ok((near, _)) = listener.accept().await
            && state.borrow().condition != Condition::Cut
        {
            tokio::spawn(connect(near, far.clone(), state.clone()));
        }
    }
}

/// Joins a connection to a new one, until either ends. The far side may be down. Where the connection is
/// lost, the far side has vanished with its host, and the near side is silent until it ends.
async fn connect(mut near: TcpStream, far: Far, state: watch::Receiver<State>) {
    let losses = state.borrow().losses;
    let relayed = async {
        match far {
            Far::Address(address) => {
                if let Ok(mut far) = TcpStream::connect(address).await {
                    relay(near.split(), far.split(), state.clone()).await;
                }
            }
            Far::Socket(path) => {
                if let Ok(mut far) = UnixStream::connect(path).await {
                    relay(near.split(), far.split(), state.clone()).await;
                }
            }
        }
    };
    let mut lost = state.clone();
    tokio::select! {
        () = relayed => return,
        Ok(_) = lost.wait_for(|state| state.losses != losses) => {}
    }
    let mut swallowed = vec![0; PIECE];
    while near.read(&mut swallowed).await.is_ok_and(|read| read > 0) {}
}

/// Forwards both ways until both sides have ended, one fails, or the link is cut.
async fn relay(
    (near_in, near_out): (impl AsyncRead + Unpin, impl AsyncWrite + Unpin),
    (far_in, far_out): (impl AsyncRead + Unpin, impl AsyncWrite + Unpin),
    state: watch::Receiver<State>,
) {
    let mut cut = state.clone();
    let both = async {
        tokio::try_join!(
            forward(near_in, far_out, state.clone()),
            forward(far_in, near_out, state.clone()),
        )
    };
    tokio::select! {
        _ = both => {}
        _ = cut.wait_for(|state| state.condition == Condition::Cut) => {}
    }
}

/// Forwards one way until its end.
///
/// # Errors
/// When a side has failed: then nothing of the other way arrives, either.
async fn forward(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut state: watch::Receiver<State>,
) -> io::Result<()> {
    let mut piece = vec![0; PIECE];
    loop {
        let is_slow = state.borrow().condition == Condition::Slow;
        let most = if is_slow { SLOW_PIECE } else { PIECE };
        let read = from.read(&mut piece[..most]).await?;
        // An error says that the link was dropped, and ends the relay, too.
        let _ = state
            .wait_for(|now| now.condition != Condition::Silent)
            .await;
        if is_slow {
            pace(SLOW_PAUSE).await;
        }
        if read == 0 {
            return to.shutdown().await;
        }
        to.write_all(&piece[..read]).await?;
    }
}
