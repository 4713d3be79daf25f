//! Two services, two processes that run their jobs, and one PostgreSQL, with links between them that can be
//! cut, clocks that can be stepped, and a disk that can be full.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pais_postgres::{EmbeddedOptions, EmbeddedServer};
use rustix::process::{Pid, Signal, kill_process};
use sqlx::{AssertSqlSafe, ConnectOptions, PgConnection};

use super::clock::{Clocks, SteppedClock};
use crate::database::janitor;
use crate::link::{Condition, Far, Link};
use crate::process::{ServiceProcess, pais};
use crate::small_disk::SmallDisk;
use pais_test_support::poll::poll_async;

/// Size of the disk.
const DISK_MIB: u64 = 4096;

/// The time in which everything works again after a fault.
pub(super) const HEALED: Duration = Duration::from_secs(120);

/// How long PostgreSQL may take to recover by itself before it is started again.
const RECOVERED: Duration = Duration::from_secs(3);

/// The end of each log that a failure prints, in bytes.
const LOG_TAIL: usize = 6 << 10;

/// Counts how often jobs are claimed and ended, and refuses nothing.
const WITNESS: &str = "
    CREATE SCHEMA witness;
    CREATE TABLE witness.job_events (job uuid NOT NULL, event text NOT NULL);
    CREATE INDEX ON witness.job_events (job);
    CREATE FUNCTION witness.job_changes() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
    BEGIN
        IF NEW.ended_at IS DISTINCT FROM OLD.ended_at OR (OLD.ended_at IS NOT NULL AND NEW.status <> OLD.status) THEN
            INSERT INTO witness.job_events VALUES (NEW.id, 'end');
        END IF;
        IF NEW.lease_token IS NOT NULL AND NEW.lease_token IS DISTINCT FROM OLD.lease_token THEN
            INSERT INTO witness.job_events VALUES (NEW.id, 'claim');
        END IF;
        RETURN NULL;
    END $$;
    CREATE TRIGGER witness_jobs AFTER UPDATE ON jobs FOR EACH ROW EXECUTE FUNCTION witness.job_changes();
";

/// The settings of all processes.
const SETTINGS: [(&str, &str); 10] = [
    ("PAIS__DATABASE__CONNECTIONS", "8"),
    // Longer than a silence after which the connections work again.
    ("PAIS__DATABASE__SILENCE_SECONDS", "6"),
    ("PAIS__LIMITS__REQUESTS_PER_SECOND", "0"),
    ("PAIS__ORGANIZATIONS__QUEUED_JOBS", "0"),
    ("PAIS__SERVER__REQUEST_TIMEOUT_SECONDS", "20"),
    ("PAIS__STORAGE__MIN_FREE_BYTES", "16777216"),
    ("PAIS__STORAGE__RESERVE_BYTES", "1048576"),
    ("PAIS__WORKERS__HEARTBEAT_SECONDS", "1"),
    ("PAIS__WORKERS__LEASE_SECONDS", "3"),
    // Two processes share the cores of the machine.
    ("PAIS__WORKERS__THREADS", "1"),
];

/// A process of the service.
pub(super) struct Member {
    pub(super) name: &'static str,
    /// The link to its database.
    pub(super) database: Link,
    /// The link from its clients; `None` for one that runs jobs only.
    pub(super) front: Option<Link>,
    pub(super) clock: Option<SteppedClock>,
    listen: String,
    data: PathBuf,
    settings: Vec<(&'static str, String)>,
    process: Option<Child>,
}

impl Member {
    fn command(&self) -> Command {
        let mut program = pais(&self.data);
        let settings = self.settings.iter().map(|(name, value)| (name, value));
        program.envs(settings);
        if let Some(clock) = &self.clock {
            clock.preload(&mut program);
        }
        program
    }

    /// Starts it, without waiting until it is ready.
    pub(super) fn start(&mut self) {
        let mut program = self.command();
        match self.front {
            Some(_) => program.args(["serve", "--no-workers", "--listen", &self.listen]),
            None => program.arg("work"),
        };
        let log = OpenOptions::new()
            .append(true)
            .create(true)
            .open(self.log());
        let log = log.unwrap();
        self.process = Some(program.stderr(log).spawn().unwrap());
    }

    fn log(&self) -> PathBuf {
        self.data.with_extension("log")
    }

    pub(super) fn signal(&self, signal: Signal) {
        if let Some(process) = &self.process {
            // It may have ended by itself, which `heal` reports.
            let _ = kill_process(Pid::from_child(process), signal);
        }
    }

    /// Kills it, and waits for its end.
    pub(super) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    /// Has it stop, and waits for its end.
    pub(super) async fn stop(&mut self) {
        self.signal(Signal::TERM);
        let Some(mut process) = self.process.take() else {
            return;
        };
        let ended = poll_async(HEALED, async || process.try_wait().unwrap()).await;
        let ended = ended.unwrap_or_else(|| panic!("{} does not stop", self.name));
        assert!(ended.success(), "{} has stopped with {ended}", self.name);
    }

    /// Waits until it ends by itself, with an error.
    pub(super) async fn ended_with_error(&mut self) {
        let mut process = self.process.take().unwrap();
        let ended = poll_async(HEALED, async || process.try_wait().unwrap()).await;
        let ended = ended.unwrap_or_else(|| panic!("{} does not end", self.name));
        assert_eq!(
            ended.code(),
            Some(1),
            "{} has ended with {ended}",
            self.name
        );
    }

    /// Panics if it has ended without being killed.
    fn assert_alive(&mut self) {
        if let Some(process) = &mut self.process {
            let ended = process.try_wait().unwrap();
            assert!(
                ended.is_none(),
                "{} has ended by itself: {ended:?}",
                self.name
            );
        }
    }

    /// Waits until it takes requests.
    pub(super) async fn ready(&mut self) {
        let url = format!("http://{}/readyz", self.listen);
        let is_service = self.front.is_some();
        let ready = poll_async(HEALED, async || {
            self.assert_alive();
            let is_ready = !is_service
                || reqwest::get(&url)
                    .await
                    .is_ok_and(|answer| answer.status() == 200);
            is_ready.then_some(())
        });
        ready
            .await
            .unwrap_or_else(|| panic!("{} is not ready", self.name));
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        if std::thread::panicking() {
            print_log(self.name, &self.log());
        }
        if let Some(process) = &mut self.process {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

fn print_log(name: &str, path: &Path) {
    let log = std::fs::read(path).unwrap_or_default();
    let end = &log[log.len().saturating_sub(LOG_TAIL)..];
    println!("--- the log of {name}:\n{}", String::from_utf8_lossy(end));
}

/// PostgreSQL, which is started again when it was killed.
pub(super) struct Postgres {
    directory: PathBuf,
    options: EmbeddedOptions,
    server: Option<EmbeddedServer>,
    pub(super) clock: Option<SteppedClock>,
    _janitor: Child,
}

impl Postgres {
    async fn start(directory: PathBuf, clocks: Option<&Clocks>) -> Self {
        let clock = clocks.map(|clocks| clocks.clock("postgres.clock"));
        let bin_dir = match (clocks, &clock) {
            (Some(clocks), Some(clock)) => Some(clocks.postgres(clock).await),
            _ => None,
        };
        let mut postgres = Self {
            _janitor: janitor(&directory),
            directory,
            options: EmbeddedOptions {
                bin_dir,
                max_connections: 100,
            },
            server: None,
            clock,
        };
        postgres.start_again().await;
        postgres
    }

    /// Starts it after whatever has become of the one before.
    pub(super) async fn start_again(&mut self) {
        self.server = None;
        let server = pais_postgres::start(&self.directory, &self.options).await;
        self.server = Some(server.unwrap());
    }

    /// Ends it, with SIGKILL or with SIGQUIT, its immediate shutdown.
    pub(super) fn kill(&self, signal: Signal) {
        let file = self.directory.join("postgres/cluster/postmaster.pid");
        let text = std::fs::read_to_string(file).unwrap();
        let pid = text.lines().next().unwrap().parse().unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
    }

    /// A connection that is shown all rows.
    pub(super) async fn connect(&self) -> Result<PgConnection, sqlx::Error> {
        let options = self.server.as_ref().unwrap().connect_options();
        options.username("postgres").connect().await
    }

    async fn heal(&mut self) {
        let recovered = poll_async(RECOVERED, async || self.connect().await.ok());
        if recovered.await.is_none() {
            self.start_again().await;
        }
    }

    fn far(&self) -> Far {
        Far::database(&self.server.as_ref().unwrap().connect_options())
    }

    fn url(&self, link: &Link) -> String {
        let password = std::fs::read_to_string(self.directory.join("postgres/password"));
        let (password, address) = (password.unwrap(), link.address);
        format!(
            "postgres://pais:{}@{address}/pais?sslmode=disable",
            password.trim()
        )
    }
}

/// Where everything is: a small disk where that can be mounted.
enum Place {
    Disk(SmallDisk),
    Directory(tempfile::TempDir),
}

impl Place {
    fn path(&self) -> &Path {
        match self {
            Self::Disk(disk) => disk.path(),
            Self::Directory(directory) => directory.path(),
        }
    }
}

/// All of it. The parts are dropped in this order.
pub(super) struct Cluster {
    pub(super) services: [Member; 2],
    pub(super) workers: [Member; 2],
    pub(super) postgres: Postgres,
    place: Place,
    _clocks: Option<Clocks>,
}

impl Cluster {
    pub(super) async fn start() -> Self {
        let place = SmallDisk::mount(DISK_MIB).map_or_else(
            || {
                println!("no disk is filled: this process may not mount a file system");
                Place::Directory(tempfile::tempdir().unwrap())
            },
            Place::Disk,
        );
        let clocks = Clocks::compile();
        let postgres = Postgres::start(place.path().join("database"), clocks.as_ref()).await;
        let member = async |name: &'static str, is_service: bool| {
            let listen = ServiceProcess::free_address();
            let database = Link::to(postgres.far()).await;
            let mut settings = vec![
                ("DATABASE_URL", postgres.url(&database)),
                ("PAIS__ENCRYPTION__KEY_BASE64", STANDARD.encode([7; 32])),
            ];
            settings.extend(SETTINGS.map(|(name, value)| (name, value.to_owned())));
            let front = if is_service {
                Some(Link::to(Far::Address(listen.clone())).await)
            } else {
                None
            };
            Member {
                name,
                database,
                front,
                clock: clocks
                    .as_ref()
                    .map(|clocks| clocks.clock(&format!("{name}.clock"))),
                listen,
                data: place.path().join(name),
                settings,
                process: None,
            }
        };
        let mut cluster = Self {
            services: [
                member("service-1", true).await,
                member("service-2", true).await,
            ],
            workers: [
                member("worker-1", false).await,
                member("worker-2", false).await,
            ],
            postgres,
            place,
            _clocks: clocks,
        };
        // The first one makes the tables.
        for service in &mut cluster.services {
            service.start();
            service.ready().await;
        }
        let mut database = cluster.postgres.connect().await.unwrap();
        let witness = sqlx::raw_sql(AssertSqlSafe(WITNESS.to_owned()));
        witness.execute(&mut database).await.unwrap();
        cluster.heal().await;
        cluster
    }

    pub(super) fn members(&mut self) -> impl Iterator<Item = &mut Member> {
        self.services.iter_mut().chain(&mut self.workers)
    }

    /// The URLs under which clients reach the services.
    pub(super) fn urls(&self) -> [String; 2] {
        self.services.each_ref().map(|service| {
            let front = service.front.as_ref().unwrap();
            format!("http://{}", front.address)
        })
    }

    /// The disk; `None` where it cannot be filled.
    pub(super) fn disk(&self) -> Option<&SmallDisk> {
        match &self.place {
            Place::Disk(disk) => Some(disk),
            Place::Directory(_) => None,
        }
    }

    /// Ends every fault, and waits until everything works. What a fault has not killed must run.
    pub(super) async fn heal(&mut self) {
        if let Some(disk) = self.disk() {
            disk.grow(DISK_MIB);
        }
        let mut clocks = Vec::from_iter(self.postgres.clock.clone());
        clocks.extend(self.members().filter_map(|member| member.clock.clone()));
        for clock in clocks {
            clock.set_ahead(Duration::ZERO);
        }
        for member in self.members() {
            member.signal(Signal::CONT);
            member.database.set(Condition::Normal);
            if let Some(front) = &member.front {
                front.set(Condition::Normal);
            }
        }
        self.postgres.heal().await;
        for member in self.members() {
            member.assert_alive();
            if member.process.is_none() {
                member.start();
            }
        }
        for member in self.members() {
            member.ready().await;
        }
    }

    /// Runs a command of the program beside the services.
    pub(super) async fn pais(&self, arguments: &[&str]) -> Output {
        let mut program = self.services[0].command();
        program.args(arguments).stderr(Stdio::piped());
        let output = tokio::task::spawn_blocking(move || program.output());
        output.await.unwrap().unwrap()
    }

    /// A token of an administrator.
    pub(super) async fn administrator(&self) -> String {
        let arguments = [
            "token",
            "create",
            "--organization",
            "ops",
            "--role",
            "admin",
        ];
        let made = self.pais(&arguments).await;
        assert!(
            made.status.success(),
            "{}",
            String::from_utf8_lossy(&made.stderr)
        );
        String::from_utf8(made.stdout).unwrap().trim().to_owned()
    }

    /// Stops everything; each process must end well.
    pub(super) async fn stop(mut self) {
        for member in self.members() {
            member.stop().await;
        }
        self.postgres.server.take().unwrap().stop().await.unwrap();
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if std::thread::panicking() {
            print_log(
                "postgres",
                &self.postgres.directory.join("postgres/server.log"),
            );
        }
    }
}
