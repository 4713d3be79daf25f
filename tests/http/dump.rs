//! What someone with a dump of the database, or with its files, can read.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::Path;

use aho_corasick::AhoCorasick;
use pais::db::Store;
use pais_io::chunk;
use sqlx::AssertSqlSafe;

use crate::database;
use pais_test_support::hex::hex;

/// Values that were sent, to be searched for.
pub(crate) struct Planted {
    values: Vec<String>,
    /// The bytes of all values, in each of their spellings.
    spellings: AhoCorasick,
    /// The value of each spelling.
    spelled: Vec<usize>,
}

impl Planted {
    /// Texts, and numbers with a fraction. They are searched for as text or as the bytes of a number, plain or
    /// hexadecimal.
    pub(crate) fn new(
        texts: impl IntoIterator<Item = String>,
        numbers: impl IntoIterator<Item = f64>,
    ) -> Self {
        let texts = texts
            .into_iter()
            .map(|text| (vec![text.clone().into_bytes()], text));
        let numbers = numbers.into_iter().map(|number| {
            let text = number.to_string();
            let (little, big) = (number.to_le_bytes(), number.to_be_bytes());
            (
                vec![text.clone().into_bytes(), little.into(), big.into()],
                text,
            )
        });
        let (mut values, mut spellings, mut spelled) = (Vec::new(), Vec::new(), Vec::new());
        for (plain, value) in texts.chain(numbers) {
            for bytes in plain {
                let hex = hex(&bytes);
                spellings.extend([hex.to_uppercase().into_bytes(), hex.into_bytes(), bytes]);
            }
            spelled.resize(spellings.len(), values.len());
            values.push(value);
        }
        Self {
            values,
            spellings: AhoCorasick::new(spellings).unwrap(),
            spelled,
        }
    }

    /// The values that are in some bytes.
    pub(crate) fn found_in(&self, bytes: &[u8]) -> BTreeSet<String> {
        let found = self.spellings.find_overlapping_iter(bytes);
        let found: BTreeSet<usize> = found.map(|it| self.spelled[it.pattern()]).collect();
        found
            .into_iter()
            .map(|at| self.values[at].clone())
            .collect()
    }

    /// The values that are in the rows of any table, in the columns of released chunks, or in the
    /// statistics of the database.
    pub(crate) async fn found_in_tables(&self, store: &Store) -> BTreeSet<String> {
        sqlx::raw_sql("ANALYZE")
            .execute(store.owner())
            .await
            .unwrap();
        let tables: Vec<String> = sqlx::query_scalar(
            "SELECT table_name::text FROM information_schema.tables WHERE table_schema = 'public'",
        )
        .fetch_all(store.owner())
        .await
        .unwrap();
        assert!(tables.len() > 10, "{tables:?}");
        let mut found = BTreeSet::new();
        let sources = tables.iter().map(String::as_str);
        for source in sources.chain(["pg_stats", "pg_stat_activity"]) {
            let query = AssertSqlSafe(format!("SELECT t::text FROM {source} t"));
            let rows: Vec<String> = sqlx::query_scalar(query)
                .fetch_all(store.owner())
                .await
                .unwrap();
            found.extend(self.found_in(rows.join("\n").as_bytes()));
        }
        let chunks: Vec<Vec<u8>> = sqlx::query_scalar("SELECT data FROM release_chunks")
            .fetch_all(store.owner())
            .await
            .unwrap();
        for chunk in chunks {
            for column in chunk::decode(&chunk).unwrap().columns {
                found.extend(self.found_in(column.dictionary.join("\n").as_bytes()));
            }
        }
        found
    }

    /// The values that are in the files of a database, and in those that all databases of the server
    /// share: write-ahead log, catalogs, server log.
    pub(crate) async fn found_in_files(&self, store: &Store) -> BTreeSet<String> {
        let oid: String = sqlx::query_scalar(
            "SELECT oid::text FROM pg_database WHERE datname = current_database()",
        )
        .fetch_one(store.owner())
        .await
        .unwrap();
        let mut found = BTreeSet::new();
        let mut searched = 0;
        let directory = database::written_directory().await;
        walk(directory, &mut |path, bytes| {
            let inside = path.strip_prefix(directory).unwrap();
            let names: Vec<_> = inside.iter().filter_map(|name| name.to_str()).collect();
            let database = names.iter().position(|name| *name == "base");
            let of_database = database.and_then(|index| names.get(index + 1));
            if of_database.is_none_or(|name| *name == oid) {
                searched += 1;
                found.extend(self.found_in(bytes));
            }
        });
        assert!(searched > 100, "only {searched} files were searched");
        found
    }

    /// The values that are in the files below a directory.
    pub(crate) fn found_below(&self, directory: &Path) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        walk(directory, &mut |_, bytes| {
            found.extend(self.found_in(bytes))
        });
        found
    }
}

/// Calls `visit` with every file below a directory. Files that are deleted meanwhile are skipped.
fn walk(directory: &Path, visit: &mut dyn FnMut(&Path, &[u8])) {
    let entries = match std::fs::read_dir(directory) {
        Err(error) if error.kind() == ErrorKind::NotFound => return,
        entries => entries.unwrap(),
    };
    for entry in entries {
        let path = entry.unwrap().path();
        let Ok(metadata) = path.symlink_metadata() else {
            continue;
        };
        if metadata.is_dir() {
            walk(&path, visit);
        } else if metadata.is_file() {
            match std::fs::read(&path) {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                bytes => visit(&path, &bytes.unwrap()),
            }
        }
    }
}
