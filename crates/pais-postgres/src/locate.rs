//! Finds the PostgreSQL server binaries on this machine.
//!
//! If a directory is configured, only that one is searched. Otherwise the search order is
//! `pg_config --bindir`, the version directories of Debian and of the PostgreSQL project's RPMs,
//! newest first, and `PATH`. Only its own major version can open an existing cluster, so that
//! version is preferred to a newer one.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use tokio::process::Command;

use super::error::PostgresError;

/// Oldest major version that has the settings used here.
const OLDEST: u32 = 14;

/// Where distributions have one directory for each major version: its parent, the prefix of its
/// name, and the subdirectory of the programs.
const VERSIONED: [(&str, &str, &str); 2] = [
    ("/usr/lib/postgresql", "", "bin"),
    ("/usr", "pgsql-", "bin"),
];

/// A directory that contains `postgres` and `initdb`, and their major version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Binaries {
    dir: PathBuf,
    major: u32,
}

impl Binaries {
    /// The server program.
    pub(super) fn postgres(&self) -> PathBuf {
        self.program("postgres")
    }

    /// The program that creates a new cluster.
    pub(super) fn initdb(&self) -> PathBuf {
        self.program("initdb")
    }

    /// The program with this name.
    pub(super) fn program(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }
}

/// Finds binaries that can open `cluster`, or the first supported ones if there is no cluster yet.
///
/// # Errors
/// [`PostgresError::Unusable`] if no binaries of the cluster's major version, or of a supported one, were
/// found.
pub(super) async fn locate(
    bin_dir: Option<&Path>,
    cluster: &Path,
) -> Result<Binaries, PostgresError> {
    let (candidates, searched) = candidates(bin_dir, &["postgres", "initdb"]).await;
    let mut found = Vec::new();
    for dir in candidates {
        if let Some(major) = major_version(&dir.join("postgres")).await {
            found.push(Binaries { dir, major });
        }
    }
    choose(found, searched, cluster)
}

/// The newest client program with this name. It can dump a server of its own version and of older ones.
///
/// # Errors
/// [`PostgresError::Unusable`] if there is none.
pub(super) async fn newest(name: &str, bin_dir: Option<&Path>) -> Result<PathBuf, PostgresError> {
    let (candidates, searched) = candidates(bin_dir, &[name]).await;
    let mut newest: Option<(u32, PathBuf)> = None;
    for dir in candidates {
        let program = dir.join(name);
        if let Some(major) = major_version(&program).await
            && newest.as_ref().is_none_or(|(best, _)| major > *best)
        {
            newest = Some((major, program));
        }
    }
    newest.map(|(_, program)| program).ok_or_else(|| {
        PostgresError::Unusable(format!(
            "no {name} found (searched in {}); install the client programs of PostgreSQL (Debian, Ubuntu: \
             apt-get install postgresql-client), or point postgres.bin_dir at their directory",
            searched.join(", ")
        ))
    })
}

/// Chooses the binaries for `cluster` from those found.
fn choose(
    found: Vec<Binaries>,
    searched: Vec<String>,
    cluster: &Path,
) -> Result<Binaries, PostgresError> {
    let versions: Vec<String> = found.iter().map(|b| b.major.to_string()).collect();
    let versions = versions.join(", ");
    let wanted = fs::read_to_string(cluster.join("PG_VERSION")).ok();
    let wanted = wanted.as_deref().map(str::trim);
    let fits = |b: &Binaries| match wanted {
        Some(wanted) => b.major.to_string() == wanted,
        None => b.major >= OLDEST,
    };
    let problem = match wanted {
        _ if found.is_empty() => format!(
            "no PostgreSQL server binaries found (searched in {}); install them (Debian, Ubuntu: \
             apt-get install postgresql; Fedora: dnf install postgresql-server), or point \
             postgres.bin_dir at the directory that holds `postgres` and `initdb`, or set \
             DATABASE_URL to use an outside server",
            searched.join(", ")
        ),
        Some(wanted) => format!(
            "the database in {} was created by PostgreSQL {wanted}, but only version {versions} is \
             installed; install the server binaries of version {wanted} (Debian: apt-get install \
             postgresql-{wanted}) or convert the database with pg_upgrade",
            cluster.display()
        ),
        None => format!("PostgreSQL {versions} is too old; install version {OLDEST} or newer"),
    };
    let chosen = found.into_iter().find(fits);
    chosen.ok_or(PostgresError::Unusable(problem))
}

/// All directories that contain these programs, in order of preference, and the places searched.
async fn candidates(bin_dir: Option<&Path>, programs: &[&str]) -> (Vec<PathBuf>, Vec<String>) {
    let mut dirs = Vec::new();
    let mut push = |dir: &Path| push(&mut dirs, dir, programs);
    if let Some(dir) = bin_dir {
        push(dir);
        return (dirs, vec![dir.display().to_string()]);
    }
    let mut searched = vec!["pg_config --bindir".to_owned()];
    if let Some(dir) = pg_config().await {
        push(&dir);
    }
    for (parent, prefix, rest) in VERSIONED {
        searched.push(format!("{parent}/{prefix}*/{rest}"));
        for dir in newest_first(Path::new(parent), prefix) {
            push(&dir.join(rest));
        }
    }
    searched.push("PATH".to_owned());
    for entry in env::split_paths(&env::var_os("PATH").unwrap_or_default()) {
        // If this is a link to the program, the other programs are in the directory it points to.
        if let Ok(program) = entry.join(programs[0]).canonicalize()
            && let Some(dir) = program.parent()
        {
            push(dir);
        }
    }
    (dirs, searched)
}

/// Adds `dir` if it contains the programs and is not in the list yet, also by another path.
fn push(dirs: &mut Vec<PathBuf>, dir: &Path, programs: &[&str]) {
    if let Ok(dir) = dir.canonicalize()
        && programs.iter().all(|program| dir.join(program).is_file())
        && !dirs.contains(&dir)
    {
        dirs.push(dir);
    }
}

/// The directory that `pg_config` returns; `None` if it is not installed.
async fn pg_config() -> Option<PathBuf> {
    let output = Command::new("pg_config")
        .arg("--bindir")
        .output()
        .await
        .ok()?;
    let dir = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !dir.trim().is_empty()).then(|| PathBuf::from(dir.trim()))
}

/// The directories `parent/<prefix><number>`, the highest number first.
fn newest_first(parent: &Path, prefix: &str) -> Vec<PathBuf> {
    let mut versions: Vec<(u32, PathBuf)> = fs::read_dir(parent)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name();
            let number = name.to_str()?.strip_prefix(prefix)?.parse().ok()?;
            Some((number, entry.path()))
        })
        .collect();
    versions.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
    versions.into_iter().map(|(_, path)| path).collect()
}

/// Runs a server program to get its major version; `None` if it cannot be run.
async fn major_version(postgres: &Path) -> Option<u32> {
    let output = Command::new(postgres)
        .arg("--version")
        .output()
        .await
        .ok()?;
    parse_version(&String::from_utf8(output.stdout).ok()?)
}

/// Parses the major version: 15 from `postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)`, 18
/// from `… 18beta1`.
fn parse_version(line: &str) -> Option<u32> {
    let number = line.split_once("(PostgreSQL)")?.1.trim_start();
    let end = number
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(number.len());
    number[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_major_version() {
        let debian = "postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n";
        assert_eq!(parse_version(debian), Some(15));
        assert_eq!(parse_version("postgres (PostgreSQL) 18beta1"), Some(18));
        assert_eq!(parse_version("something else"), None);
    }

    #[test]
    fn prefers_the_version_of_the_cluster() {
        let dir = tempfile::tempdir().unwrap();
        let of = |major| Binaries {
            dir: PathBuf::from(format!("/pg/{major}")),
            major,
        };
        let found = vec![of(17), of(15)];
        let newest = choose(found.clone(), Vec::new(), dir.path()).unwrap();
        assert_eq!(newest.major, 17);
        fs::write(dir.path().join("PG_VERSION"), "15\n").unwrap();
        assert_eq!(
            choose(found.clone(), Vec::new(), dir.path()).unwrap().major,
            15
        );
        fs::write(dir.path().join("PG_VERSION"), "16\n").unwrap();
        let error = choose(found, Vec::new(), dir.path())
            .unwrap_err()
            .to_string();
        assert!(error.contains("created by PostgreSQL 16"), "{error}");
        assert!(
            error.contains("only version 17, 15 is installed"),
            "{error}"
        );
    }

    #[test]
    fn old_binaries_are_rejected_for_a_new_cluster() {
        let dir = tempfile::tempdir().unwrap();
        let old = vec![Binaries {
            dir: PathBuf::from("/pg/12"),
            major: 12,
        }];
        let error = choose(old, Vec::new(), dir.path()).unwrap_err().to_string();
        assert!(error.contains("PostgreSQL 12 is too old"), "{error}");
    }

    #[tokio::test]
    async fn missing_binaries_name_the_package() {
        let dir = tempfile::tempdir().unwrap();
        let error = locate(Some(dir.path()), dir.path()).await.unwrap_err();
        let text = error.to_string();
        assert!(text.contains("apt-get install postgresql"), "{text}");
        assert!(text.contains("postgresql-server"), "{text}");
        assert!(text.contains(dir.path().to_str().unwrap()), "{text}");
    }
}
