//! The real program as a process, on its own data directory with its own database server.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use pais_test_support::poll::poll_async;

/// The program, without the settings of the environment.
pub(crate) fn pais(data: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pais"));
    command
        .env_remove("DATABASE_URL")
        .env("PAIS__SERVER__DATA_DIR", data)
        .stdin(Stdio::null());
    command
}

/// A running service. It is killed, with SIGKILL, when dropped; its database server keeps running
/// then. [`ServiceProcess::stop`] stops both.
pub(crate) struct ServiceProcess {
    program: Child,
    data: PathBuf,
    pub(crate) base: String,
}

impl Drop for ServiceProcess {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

impl ServiceProcess {
    /// Starts the service with these settings, given as `PAIS__SECTION__KEY`, and waits until it is
    /// ready.
    pub(crate) async fn start(data: &Path, settings: &[(&str, &str)]) -> Self {
        Self::start_with(pais(data), data, settings).await
    }

    /// Like [`Self::start`], with a program that is prepared in another way.
    pub(crate) async fn start_with(
        program: Command,
        data: &Path,
        settings: &[(&str, &str)],
    ) -> Self {
        let listen = Self::free_address();
        let probes = format!("http://{listen}");
        Self::start_at(program, data, settings, &listen, &probes).await
    }

    /// Like [`Self::start`], without waiting for anything.
    pub(crate) fn begin(data: &Path, settings: &[(&str, &str)]) -> Self {
        Self::spawn(pais(data), data, settings, &Self::free_address())
    }

    /// Like [`Self::start`], without waiting for the readiness: only until the service answers.
    pub(crate) async fn start_unready(data: &Path, settings: &[(&str, &str)]) -> Self {
        let service = Self::begin(data, settings);
        service.wait(&service.base, |_| true).await;
        service
    }

    /// An address and a port that are free.
    pub(crate) fn free_address() -> String {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().to_string()
    }

    /// Like [`Self::start_with`], at this address, with the probes below another URL.
    pub(crate) async fn start_at(
        program: Command,
        data: &Path,
        settings: &[(&str, &str)],
        listen: &str,
        probes: &str,
    ) -> Self {
        let service = Self::spawn(program, data, settings, listen);
        service.wait(probes, |status| status == 200).await;
        service
    }

    /// Like [`Self::start`], for a service whose jobs are run by other processes.
    pub(crate) async fn start_without_workers(data: &Path, settings: &[(&str, &str)]) -> Self {
        let listen = Self::free_address();
        let mut program = pais(data);
        program
            .args(["serve", "--no-workers", "--listen", &listen])
            .env("PAIS__LIMITS__REQUESTS_PER_SECOND", "0")
            .envs(settings.iter().copied());
        Self::start_command(program, data, &listen).await
    }

    /// Starts a command that serves at this address, and waits until it is ready.
    pub(crate) async fn start_command(program: Command, data: &Path, listen: &str) -> Self {
        let service = Self::spawn_command(program, data, &[], listen);
        service.wait(&service.base, |status| status == 200).await;
        service
    }

    fn spawn(mut program: Command, data: &Path, settings: &[(&str, &str)], listen: &str) -> Self {
        program.args(["serve", "--listen", listen]);
        Self::spawn_command(program, data, settings, listen)
    }

    fn spawn_command(
        mut program: Command,
        data: &Path,
        settings: &[(&str, &str)],
        listen: &str,
    ) -> Self {
        let program = program
            .envs(settings.iter().copied())
            .stderr(std::fs::File::create(log_of(data)).unwrap())
            .spawn()
            .unwrap();
        Self {
            program,
            data: data.to_path_buf(),
            base: format!("http://{listen}"),
        }
    }

    /// Waits until the answer of the readiness probe has an expected status.
    async fn wait(&self, probes: &str, is_expected: impl Fn(u16) -> bool) {
        let answered = poll_async(Duration::from_secs(120), async || {
            let answer = reqwest::get(format!("{probes}/readyz")).await;
            let status = answer.ok()?.status().as_u16();
            is_expected(status).then_some(())
        });
        answered.await.expect("the service did not become ready");
    }

    /// What the service has logged.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(log_of(&self.data)).unwrap()
    }

    /// The id of the process.
    pub(crate) fn pid(&self) -> u32 {
        self.program.id()
    }

    /// Whether the process still runs.
    pub(crate) fn is_running(&mut self) -> bool {
        self.program.try_wait().unwrap().is_none()
    }

    /// How the process ended; `None` while it runs.
    pub(crate) fn exit_status(&mut self) -> Option<std::process::ExitStatus> {
        self.program.try_wait().unwrap()
    }

    /// A new token of an organization, from the command line.
    pub(crate) fn token(&self, organization: &str, role: &str) -> String {
        let made = pais(&self.data)
            .args([
                "token",
                "create",
                "--organization",
                organization,
                "--role",
                role,
            ])
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&made.stderr);
        assert!(made.status.success(), "{errors}");
        String::from_utf8(made.stdout).unwrap().trim().to_owned()
    }

    /// Sends a signal to the process.
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.program);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// The time until the process has ended; panics if it fails or does not end.
    pub(crate) async fn ended(&mut self, longest: Duration) -> Duration {
        let started = std::time::Instant::now();
        let ended = poll_async(longest, async || self.program.try_wait().unwrap());
        let status = ended.await.expect("the process does not end");
        assert!(status.success(), "{status}");
        started.elapsed()
    }

    /// Whether the embedded database server runs.
    pub(crate) fn has_database_server(&self) -> bool {
        has_database_server(&self.data)
    }

    /// Stops the service by SIGTERM, so that its database server stops too.
    pub(crate) fn stop(mut self) {
        let pid = rustix::process::Pid::from_child(&self.program);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        assert!(self.program.wait().unwrap().success());
    }
}

/// Whether the embedded database server of a data directory runs.
pub(crate) fn has_database_server(data: &Path) -> bool {
    let file = data.join("postgres/cluster/postmaster.pid");
    let Ok(text) = std::fs::read_to_string(file) else {
        return false;
    };
    let pid = text.lines().next().unwrap_or_default();
    !pid.is_empty() && Path::new("/proc").join(pid).exists()
}

/// The JSON answer of a request; panics unless it succeeds.
pub(crate) async fn call(request: reqwest::RequestBuilder, token: &str) -> Value {
    let answer = request.bearer_auth(token).send().await.unwrap();
    let status = answer.status();
    let body: Value = answer.json().await.unwrap();
    assert!(status.is_success(), "{status} {body}");
    body
}

/// The file of a service's log, beside its data directory.
fn log_of(data: &Path) -> PathBuf {
    data.with_extension("log")
}
