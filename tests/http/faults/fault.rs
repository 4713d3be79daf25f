//! The faults of the rounds.

use std::time::Duration;

use rustix::process::Signal;

use super::cluster::{Cluster, Member};
use crate::link::Condition;
use pais_test_support::poll::pace;
use pais_test_support::split_mix::SplitMix64;

/// One fault. The process, the time and the duration are random.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// SIGKILL of a service.
    KilledService,
    /// SIGKILL of a process that runs jobs.
    KilledWorker,
    /// SIGKILL of PostgreSQL, or its immediate shutdown.
    KilledDatabase,
    /// SIGKILL of everything at once.
    PowerCut,
    /// A link to the database is cut, several times.
    CutDatabase,
    /// Bytes to and from the database are forwarded slowly.
    SlowDatabase,
    /// A link to the database is silent.
    SilentDatabase,
    /// The open connections to the database stay silent, and new ones work.
    VanishedDatabase,
    /// A link from the clients is cut, several times.
    CutClients,
    /// Bytes from and to the clients are forwarded slowly.
    SlowClients,
    /// SIGSTOP of a process that runs jobs, until its leases have expired; then SIGCONT.
    StoppedWorker,
    /// The disk is full.
    FullDisk,
    /// The wall clock of one process, or of PostgreSQL, is wrong by up to a day.
    SteppedClock,
    /// All processes are stopped by SIGTERM and started again, one after the other.
    RollingRestart,
}

impl Fault {
    pub(super) const ALL: [Self; 14] = [
        Self::KilledService,
        Self::KilledWorker,
        Self::KilledDatabase,
        Self::PowerCut,
        Self::CutDatabase,
        Self::SlowDatabase,
        Self::SilentDatabase,
        Self::VanishedDatabase,
        Self::CutClients,
        Self::SlowClients,
        Self::StoppedWorker,
        Self::FullDisk,
        Self::SteppedClock,
        Self::RollingRestart,
    ];

    /// The error code with which a job may fail because of this fault.
    pub(super) fn error(self) -> Option<&'static str> {
        (self == Self::FullDisk).then_some("storage_full")
    }

    /// Causes the fault. [`Cluster::heal`] repairs what remains. Returns the name of what was hit.
    pub(super) async fn happen(self, cluster: &mut Cluster, random: &mut SplitMix64) -> String {
        pace(milliseconds(random, 100, 900)).await;
        match self {
            Self::KilledService => {
                let service = &mut cluster.services[random.below(2)];
                kill(service, random).await
            }
            Self::KilledWorker => {
                let worker = &mut cluster.workers[random.below(2)];
                kill(worker, random).await
            }
            Self::KilledDatabase => {
                let signal = [Signal::KILL, Signal::QUIT][random.below(2)];
                cluster.postgres.kill(signal);
                pace(milliseconds(random, 0, 800)).await;
                cluster.postgres.start_again().await;
                format!("{signal:?}")
            }
            Self::PowerCut => {
                cluster.postgres.kill(Signal::KILL);
                cluster.members().for_each(Member::kill);
                "all".to_owned()
            }
            Self::CutDatabase => {
                let member = any(cluster, random);
                for _ in 0..=random.below(3) {
                    member.database.set(Condition::Cut);
                    pace(milliseconds(random, 20, 500)).await;
                    member.database.set(Condition::Normal);
                    pace(milliseconds(random, 100, 400)).await;
                }
                member.name.to_owned()
            }
            Self::SlowDatabase | Self::SilentDatabase => {
                let member = any(cluster, random);
                let condition = match self {
                    Self::SlowDatabase => Condition::Slow,
                    _ => Condition::Silent,
                };
                member.database.set(condition);
                // Longer than a lease, or shorter.
                pace(milliseconds(random, 500, 4500)).await;
                if random.below(2) == 0 {
                    member.database.set(Condition::Cut);
                    pace(milliseconds(random, 20, 100)).await;
                }
                member.database.set(Condition::Normal);
                member.name.to_owned()
            }
            Self::VanishedDatabase => vanish(any(cluster, random)).await,
            Self::CutClients => {
                for _ in 0..3 {
                    let service = &cluster.services[random.below(2)];
                    let front = service.front.as_ref().unwrap();
                    front.set(Condition::Cut);
                    pace(milliseconds(random, 10, 300)).await;
                    front.set(Condition::Normal);
                    pace(milliseconds(random, 50, 300)).await;
                }
                String::new()
            }
            Self::SlowClients => {
                let service = &cluster.services[random.below(2)];
                let front = service.front.as_ref().unwrap();
                front.set(Condition::Slow);
                pace(milliseconds(random, 500, 3000)).await;
                front.set(Condition::Normal);
                service.name.to_owned()
            }
            Self::StoppedWorker => {
                let worker = &cluster.workers[random.below(2)];
                worker.signal(Signal::STOP);
                pace(milliseconds(random, 3200, 5000)).await;
                worker.signal(Signal::CONT);
                worker.name.to_owned()
            }
            Self::FullDisk => {
                let Some(disk) = cluster.disk() else {
                    return "not run".to_owned();
                };
                disk.shrink();
                pace(milliseconds(random, 300, 2500)).await;
                String::new()
            }
            Self::SteppedClock => step(cluster, random).await,
            Self::RollingRestart => {
                for member in cluster.members() {
                    member.stop().await;
                    member.start();
                    member.ready().await;
                }
                String::new()
            }
        }
    }
}

/// A time from `least` to `most` milliseconds.
pub(super) fn milliseconds(random: &mut SplitMix64, least: usize, most: usize) -> Duration {
    Duration::from_millis((least + random.below(most - least + 1)) as u64)
}

/// One of the four processes.
pub(super) fn any<'a>(cluster: &'a mut Cluster, random: &mut SplitMix64) -> &'a mut Member {
    cluster.members().nth(random.below(4)).unwrap()
}

/// Kills a process, and starts it again some time later.
pub(super) async fn kill(member: &mut Member, random: &mut SplitMix64) -> String {
    member.kill();
    pace(milliseconds(random, 0, 1000)).await;
    member.start();
    member.name.to_owned()
}

/// Loses the database connections of a process. It must end by itself, and is started again.
pub(super) async fn vanish(member: &mut Member) -> String {
    member.database.lose_connections();
    member.ended_with_error().await;
    member.start();
    format!("database of {}", member.name)
}

/// Sets a clock wrong for some time.
async fn step(cluster: &mut Cluster, random: &mut SplitMix64) -> String {
    let (name, clock) = if random.below(5) == 0 {
        ("postgres", cluster.postgres.clock.clone())
    } else {
        let member = any(cluster, random);
        (member.name, member.clock.clone())
    };
    let Some(clock) = clock else {
        return "not run".to_owned();
    };
    let seconds = [10, 600, 5400, 72_000][random.below(4)];
    let by = Duration::from_secs(seconds);
    let is_ahead = random.below(2) == 0;
    if is_ahead {
        clock.set_ahead(by);
    } else {
        clock.set_behind(by);
    }
    pace(milliseconds(random, 500, 2500)).await;
    let direction = if is_ahead { "ahead" } else { "behind" };
    format!("{name} {direction} by {seconds} s")
}
