//! Random changes of every format of a submission, sent to a running service.

use std::hash::{BuildHasher, RandomState};

use reqwest::StatusCode;

use crate::hospital::{Hospital, TABLE};
use crate::submissions::{NDJSON, PARQUET, ndjson, parquet};
use pais_test_support::mutations::{Mutations, tokens};

/// Changed files of each format.
const FILES: usize = 200;

#[tokio::test(flavor = "multi_thread")]
async fn no_change_of_a_file_is_an_error_of_the_service() {
    let hospital = Hospital::new().await;
    let seed = match std::env::var("PAIS_FUZZ_SEED") {
        Ok(seed) => seed.parse().expect("PAIS_FUZZ_SEED is a number"),
        Err(_) => RandomState::new().hash_one("seed"),
    };
    for (media_type, sample, tokens) in [
        ("text/csv", TABLE.as_bytes().to_vec(), tokens::CSV),
        (NDJSON, ndjson(), tokens::NDJSON),
        (PARQUET, parquet(), tokens::PARQUET),
    ] {
        let dataset = hospital.dataset().await;
        let samples = [sample];
        let mut mutations = Mutations::new(seed, &samples, tokens, 64 << 10);
        let mut accepted = 0;
        for number in 0..FILES {
            let headers = [("content-type", media_type)];
            let answer = hospital
                .submit_with(&dataset, &headers, mutations.mutated())
                .await;
            let what = format!("{media_type} {number} of PAIS_FUZZ_SEED={seed}");
            match answer.status {
                StatusCode::CREATED => accepted += 1,
                status => assert!(status.is_client_error(), "{status}: {what}"),
            }
        }
        assert!(accepted < FILES, "{media_type}: no file was damaged");
        hospital
            .submit(&hospital.dataset().await, TABLE)
            .await
            .json(201);
    }
}
