//! The operating-system account that the server runs as, and how it accesses the data directory.
//!
//! PostgreSQL refuses to run as root. If pais is started as root, it runs the server as the owner
//! of the existing cluster, or else as `postgres`. That account may have no permission to enter the
//! directories above the data directory (below `/root`, or a 0700 temporary directory). It then
//! inherits an open directory descriptor and uses the path `/proc/self/fd/N`, which does not need
//! that permission.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::process::{getegid, geteuid};
use tokio::process::Command;

use super::error::PostgresError;

/// The account that the distributions' packages create for PostgreSQL.
const NAME: &str = "postgres";

/// The account that the server runs as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Account {
    uid: u32,
    gid: u32,
    /// Whether it is not the account of this process.
    differs: bool,
}

impl Account {
    /// Chooses the account that runs the server on `cluster`.
    ///
    /// # Errors
    /// If the cluster belongs to an account that this process cannot use, or there is no `postgres`
    /// account.
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
            Some((uid, _)) if uid != own || uid == 0 => Err(PostgresError::Unusable(format!(
                "the database in {} belongs to operating-system user {uid}; start pais as that user",
                cluster.display()
            ))),
            None if own == 0 => Self::installed(),
            _ => Ok(Self {
                uid: own,
                gid: getegid().as_raw(),
                differs: false,
            }),
        }
    }

    /// The account that the packages create.
    fn installed() -> Result<Self, PostgresError> {
        let passwd =
            fs::read_to_string("/etc/passwd").map_err(PostgresError::io("read", "/etc/passwd"))?;
        let (uid, gid) = look_up(&passwd, NAME).ok_or_else(|| {
            PostgresError::Unusable(format!(
                "PostgreSQL refuses to run as root and there is no `{NAME}` account to run it as; \
                 install the distribution's postgresql package, which creates the account, or start \
                 pais as an ordinary user"
            ))
        })?;
        Ok(Self {
            uid,
            gid,
            differs: true,
        })
    }

    /// Whether it is not the account of this process.
    pub(super) fn differs(&self) -> bool {
        self.differs
    }

    /// Its group id.
    pub(super) fn gid(&self) -> u32 {
        self.gid
    }

    /// Makes the account the owner of a file or directory. Does not follow a link.
    pub(super) fn make_owner_of(&self, path: &Path) -> Result<(), PostgresError> {
        if !self.differs {
            return Ok(());
        }
        lchown(path, Some(self.uid), Some(self.gid))
            .map_err(PostgresError::io("change the owner of", path))
    }

    /// Makes a command run as this account, without root's supplementary groups.
    pub(super) fn apply_to(&self, command: &mut Command) {
        if self.differs {
            command.uid(self.uid).gid(self.gid);
        }
    }

    /// The first directory on the path up to and including `dir` that the account may not enter.
    /// Only the mode bits are checked.
    pub(super) fn first_forbidden(&self, dir: &Path) -> Option<PathBuf> {
        let mut path: Vec<&Path> = dir.ancestors().collect();
        path.reverse();
        path.into_iter()
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

/// How the server's account accesses the paths below one directory.
#[derive(Debug)]
pub(super) struct PathAccess {
    dir: PathBuf,
    /// Open while the server is started, because the server inherits it.
    inherited: Option<OwnedFd>,
}

impl PathAccess {
    /// Finds a path by which `account` can access `dir`. It must have the permission to enter `dir`
    /// itself.
    ///
    /// # Errors
    /// [`PostgresError::Unusable`] if there is no such path.
    pub(super) fn open(dir: &Path, account: &Account) -> Result<Self, PostgresError> {
        let mut inherited = None;
        if account.differs
            && let Some(forbidden) = account.first_forbidden(dir)
        {
            if forbidden == dir || !Path::new("/proc/self/fd").is_dir() {
                return Err(PostgresError::Unusable(format!(
                    "the operating-system user {}, which PostgreSQL runs as, may not enter {}; allow it \
                     with chmod o+x, or choose a data directory elsewhere, such as /var/lib/pais",
                    account.uid,
                    forbidden.display()
                )));
            }
            // Without CLOEXEC on purpose, so that the server inherits it.
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW;
            let fd = rustix::fs::open(dir, flags, Mode::empty())
                .map_err(|errno| PostgresError::io("open", dir)(io::Error::from(errno)))?;
            inherited = Some(fd);
        }
        Ok(Self {
            dir: dir.to_path_buf(),
            inherited,
        })
    }

    /// The path by which the server's account accesses `path`.
    pub(super) fn path(&self, path: &Path) -> PathBuf {
        match (&self.inherited, path.strip_prefix(&self.dir)) {
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
    }

    fn private_dir() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o700)).unwrap();
        dir
    }

    #[test]
    fn a_forbidden_parent_directory_is_detected() {
        let dir = private_dir();
        let inner = dir.path().join("inner");
        fs::create_dir(&inner).unwrap();
        let stranger = Account {
            uid: 4_000_000,
            gid: 4_000_000,
            differs: true,
        };
        assert_eq!(
            stranger.first_forbidden(&inner),
            Some(dir.path().to_path_buf())
        );
        let owner = fs::metadata(dir.path()).unwrap().uid();
        let own = Account {
            uid: owner,
            ..stranger
        };
        assert_eq!(own.first_forbidden(&inner), None);
    }

    #[test]
    fn a_descriptor_gives_access_below_a_forbidden_directory() {
        let dir = private_dir();
        let inner = dir.path().join("inner");
        fs::create_dir(&inner).unwrap();
        fs::set_permissions(&inner, fs::Permissions::from_mode(0o711)).unwrap();
        fs::write(inner.join("file"), "here").unwrap();
        let stranger = Account {
            uid: 4_000_000,
            gid: 4_000_000,
            differs: true,
        };
        let access = PathAccess::open(&inner, &stranger).unwrap();
        let path = access.path(&inner.join("file"));
        assert!(path.starts_with("/proc/self/fd"), "{}", path.display());
        assert_eq!(fs::read_to_string(path).unwrap(), "here");
        assert_eq!(access.path(Path::new("/etc")), Path::new("/etc"));
    }
}
