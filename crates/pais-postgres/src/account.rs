//! The operating-system account the server runs as, and how it reaches the data directory.
//!
//! PostgreSQL refuses to run as root. Started as root, pais runs it as the owner of the existing
//! cluster, else as `postgres`. That account may have no right to pass through the directories
//! above the data directory (below `/root`, or a 0700 temporary directory); it is then handed an
//! open directory descriptor and uses the path `/proc/self/fd/N`, which needs no such right.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::process::{getegid, geteuid};
use tokio::process::Command;

use super::error::PostgresError;

/// The account the distributions' packages make for PostgreSQL.
const NAME: &str = "postgres";

/// Who the server runs as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Account {
    uid: u32,
    gid: u32,
    differs: bool,
}

impl Account {
    /// Decides who runs the server on `cluster`.
    pub(super) fn choose(cluster: &Path) -> Result<Self, PostgresError> {
        let own = geteuid().as_raw();
        let owner = fs::symlink_metadata(cluster)
            .ok()
            .map(|meta| (meta.uid(), meta.gid()));
        match owner {
            Some((uid, gid)) if own == 0 && uid != 0 => Ok(Self {
                uid,
                gid,
                differs: true,
            }),
            Some((uid, _)) if uid != own || uid == 0 => Err(PostgresError::ForeignCluster {
                cluster: cluster.to_path_buf(),
                owner: uid,
            }),
            None if own == 0 => Self::installed(),
            _ => Ok(Self {
                uid: own,
                gid: getegid().as_raw(),
                differs: false,
            }),
        }
    }

    /// The account the packages make.
    fn installed() -> Result<Self, PostgresError> {
        let passwd =
            fs::read_to_string("/etc/passwd").map_err(PostgresError::io("read", "/etc/passwd"))?;
        let (uid, gid) =
            look_up(&passwd, NAME).ok_or(PostgresError::NoAccount { account: NAME })?;
        Ok(Self {
            uid,
            gid,
            differs: true,
        })
    }

    /// Whether it is another account than this process's.
    pub(super) fn differs(&self) -> bool {
        self.differs
    }

    /// Its group.
    pub(super) fn gid(&self) -> u32 {
        self.gid
    }

    /// Gives it a file or directory; a link is not followed.
    pub(super) fn give(&self, path: &Path) -> Result<(), PostgresError> {
        if !self.differs {
            return Ok(());
        }
        lchown(path, Some(self.uid), Some(self.gid))
            .map_err(PostgresError::io("change the owner of", path))
    }

    /// Makes a command run as this account, without any of root's other groups.
    pub(super) fn run(&self, command: &mut Command) {
        if self.differs {
            command.uid(self.uid).gid(self.gid);
        }
    }

    /// The first directory on the way to and including `dir` that it may not enter, by the mode
    /// bits alone.
    pub(super) fn barred_at(&self, dir: &Path) -> Option<PathBuf> {
        let mut way: Vec<&Path> = dir.ancestors().collect();
        way.reverse();
        way.into_iter()
            .find(|step| !self.may_enter(step))
            .map(Path::to_path_buf)
    }

    fn may_enter(&self, dir: &Path) -> bool {
        let Ok(meta) = fs::metadata(dir) else {
            return false;
        };
        let mode = meta.permissions().mode();
        let bit = if meta.uid() == self.uid {
            0o100
        } else if meta.gid() == self.gid {
            0o010
        } else {
            0o001
        };
        mode & bit != 0
    }
}

/// User and group id of `name` in the text of `/etc/passwd`.
fn look_up(passwd: &str, name: &str) -> Option<(u32, u32)> {
    let line = passwd
        .lines()
        .find(|line| line.split(':').next() == Some(name))?;
    let mut fields = line.split(':').skip(2);
    let uid = fields.next()?.parse().ok()?;
    let gid = fields.next()?.parse().ok()?;
    Some((uid, gid))
}

/// How the server's account names what lies below one directory.
#[derive(Debug)]
pub(super) struct Reach {
    dir: PathBuf,
    /// Held while a server is being started, which inherits it.
    handed: Option<OwnedFd>,
}

impl Reach {
    /// Finds a way for `account` to `dir`, a directory it may itself enter.
    pub(super) fn open(dir: &Path, account: &Account) -> Result<Self, PostgresError> {
        let mut handed = None;
        if account.differs
            && let Some(barred) = account.barred_at(dir)
        {
            if barred == dir || !Path::new("/proc/self/fd").is_dir() {
                return Err(PostgresError::Unreachable {
                    dir: barred,
                    uid: account.uid,
                });
            }
            // Without CLOEXEC on purpose: the server is to inherit it.
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW;
            let fd = rustix::fs::open(dir, flags, Mode::empty())
                .map_err(|errno| PostgresError::io("open", dir)(io::Error::from(errno)))?;
            handed = Some(fd);
        }
        Ok(Self {
            dir: dir.to_path_buf(),
            handed,
        })
    }

    /// The path by which the server's account reaches `path`.
    pub(super) fn path(&self, path: &Path) -> PathBuf {
        match (&self.handed, path.strip_prefix(&self.dir)) {
            (Some(fd), Ok(below)) => {
                Path::new(&format!("/proc/self/fd/{}", fd.as_raw_fd())).join(below)
            }
            _ => path.to_path_buf(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_account() {
        let passwd = "root:x:0:0:root:/root:/bin/bash\n\
                      postgres:x:101:104:PostgreSQL,,,:/var/lib/postgresql:/bin/bash\n";
        assert_eq!(look_up(passwd, "postgres"), Some((101, 104)));
        assert_eq!(look_up(passwd, "post"), None);
        let text = PostgresError::NoAccount { account: NAME }.to_string();
        assert!(text.contains("start pais as an ordinary user"), "{text}");
    }

    fn closed_dir() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o700)).unwrap();
        dir
    }

    #[test]
    fn a_closed_parent_is_noticed() {
        let dir = closed_dir();
        let inner = dir.path().join("inner");
        fs::create_dir(&inner).unwrap();
        let stranger = Account {
            uid: 4_000_000,
            gid: 4_000_000,
            differs: true,
        };
        assert_eq!(stranger.barred_at(&inner), Some(dir.path().to_path_buf()));
        let owner = fs::metadata(dir.path()).unwrap().uid();
        let own = Account {
            uid: owner,
            ..stranger
        };
        assert_eq!(own.barred_at(&inner), None);
    }

    #[test]
    fn a_closed_parent_is_passed_by_a_descriptor() {
        let dir = closed_dir();
        let inner = dir.path().join("inner");
        fs::create_dir(&inner).unwrap();
        fs::set_permissions(&inner, fs::Permissions::from_mode(0o711)).unwrap();
        fs::write(inner.join("file"), "here").unwrap();
        let stranger = Account {
            uid: 4_000_000,
            gid: 4_000_000,
            differs: true,
        };
        let reach = Reach::open(&inner, &stranger).unwrap();
        let path = reach.path(&inner.join("file"));
        assert!(path.starts_with("/proc/self/fd"), "{}", path.display());
        assert_eq!(fs::read_to_string(path).unwrap(), "here");
        assert_eq!(reach.path(Path::new("/etc")), Path::new("/etc"));
    }
}
