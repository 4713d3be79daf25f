//! The parsers.

use std::convert::Infallible;
use std::sync::LazyLock;

use axum::http::{HeaderMap, HeaderValue};
use bytes::Bytes;
use headers::ETag;
use pais::api::page::{NumberedPageQuery, PageQuery};
use pais::api::response::served_file::requested_range;
use pais_anonymize::JobPlan;
use pais_core::definition::{DatasetDefinition, JobDefinition, Sweep, json};
use pais_core::schema::Schema;
use pais_core::table::Table;
use pais_core::taxonomy::{Tree, TreeError, TreeLimits};
use pais_io::hierarchy;
use pais_io::read::{
    ReadFailure, ReadLimits, TextEncoding, TextFormat, TextParameters, ThousandsMark, csv, ndjson,
    parquet,
};

use crate::fuzz;
use pais_test_support::mutations::tokens;

const LIMITS: ReadLimits = ReadLimits {
    cell_bytes: 4096,
    total_bytes: 16 << 20,
};

const TREE_LIMITS: TreeLimits = TreeLimits {
    leaves: 10_000,
    depth: 20,
};

const JSON: &[&[u8]] = &[
    b"{",
    b"}",
    b"[",
    b"]",
    b"\"",
    b",",
    b":",
    b"null",
    b"\\u0000",
    b"{\"label\":\"a\",\"children\":[",
    b"\"l\":[1,2,3],",
    b"\"model\":\"lkc\"",
    b"\"taxonomy\":",
    b"1e308",
    b"-1",
];

/// The schema of the tables in the corpus.
static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    let definition = include_bytes!("corpus/dataset/people.json");
    Schema::inline(&json::parse::<DatasetDefinition>(definition).unwrap()).unwrap()
});

/// Checks that each chunk is whole, and drops it.
fn take(chunk: Table) -> Result<(), Infallible> {
    let rows = chunk.rows;
    assert!(
        chunk
            .columns
            .iter()
            .all(|column| column.codes.len() == rows)
    );
    Ok(())
}

fn check(read: Result<u64, ReadFailure<Infallible>>) {
    if let Err(ReadFailure::Refused(error)) = read {
        assert!(!error.detail.is_empty());
        assert!(error.faults.len() <= pais_core::table::MAX_FAULTS);
    }
}

#[test]
fn csv_files() {
    fuzz("csv", tokens::CSV, |bytes| {
        check(csv::read(&SCHEMA, bytes, LIMITS, take));
        let _ = csv::names(bytes, TextFormat::CSV);
        for encoding in TextEncoding::ALL {
            let parameters = TextParameters {
                thousands: ThousandsMark::new(','),
                encoding: Some(encoding),
                ..TextParameters::default()
            };
            let format = parameters.format(TextFormat::CSV).unwrap();
            check(csv::read_as(&SCHEMA, bytes, format, LIMITS, None, take));
        }
    });
}

#[test]
fn ndjson_files() {
    fuzz("ndjson", tokens::NDJSON, |bytes| {
        check(ndjson::read(&SCHEMA, bytes, LIMITS, take));
        let _ = ndjson::names(bytes);
    });
}

#[test]
fn parquet_files() {
    fuzz("parquet", tokens::PARQUET, |bytes| {
        let file = Bytes::copy_from_slice(bytes);
        let _ = parquet::names(&file);
        check(parquet::read(&SCHEMA, file, LIMITS, take));
    });
}

#[test]
fn taxonomies() {
    fuzz("hierarchy", tokens::CSV, |bytes| {
        let Ok(root) = hierarchy::parse(bytes, TREE_LIMITS) else {
            return;
        };
        match Tree::new(&root, TREE_LIMITS) {
            Ok(tree) => assert!(tree.leaf_count() <= TREE_LIMITS.leaves),
            Err(error) => assert!(matches!(error, TreeError::LongLabel { .. }), "{error}"),
        }
    });
}

#[test]
fn jobs() {
    fuzz("job", JSON, |bytes| {
        let Ok(job) = json::parse::<JobDefinition>(bytes) else {
            return;
        };
        let Ok(sweep) = Sweep::new(&job) else {
            return;
        };
        for combination in sweep.combinations.iter().take(3) {
            let job = combination.apply(&job).parse();
            if let Ok(plan) = job.and_then(|job| JobPlan::new(&SCHEMA, &job)) {
                let _ = plan.bytes_needed(&SCHEMA, u64::MAX, u64::MAX, 64);
            }
        }
    });
}

#[test]
fn datasets() {
    fuzz("dataset", JSON, |bytes| {
        if let Ok(definition) = json::parse::<DatasetDefinition>(bytes) {
            let _ = Schema::resolve(&definition, TREE_LIMITS, |_| None);
        }
    });
}

#[test]
fn cursors() {
    fuzz(
        "cursor",
        &[b"-", b"%", b"{", b"0", b"\xff", b"urn:uuid:"],
        |bytes| {
            let limit = Some(bytes.len() as i64);
            let cursor = Some(String::from_utf8_lossy(bytes).into_owned());
            let (by_id, by_number) = (cursor.clone(), cursor);
            let _ = PageQuery {
                limit,
                cursor: by_id,
            }
            .parse();
            let numbered = NumberedPageQuery {
                limit,
                cursor: by_number,
            };
            let _ = numbered.parse::<u32>();
        },
    );
}

#[test]
fn ranges() {
    let etag: ETag = "\"a\"".parse().unwrap();
    fuzz(
        "range",
        &[b"bytes=", b"-", b",", b" ", b"0-", b"=", b"\t"],
        |bytes| {
            for name in ["range", "if-range"] {
                let mut headers = HeaderMap::new();
                headers.insert("range", HeaderValue::from_static("bytes=0-9"));
                if let Ok(value) = HeaderValue::from_bytes(bytes) {
                    headers.insert(name, value);
                }
                requested_range(&headers, &etag);
            }
        },
    );
}
