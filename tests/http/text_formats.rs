//! Uploads of text that is not plain CSV: its delimiter, its numbers and its encoding.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::app::{Answer, text};
use crate::hospital::Hospital;
use pais_test_support::hex::hex;

async fn payments(hospital: &Hospital) -> String {
    let definition = json!({"name": format!("payments {}", uuid::Uuid::new_v4()), "missing": ["", "k.A."],
    "columns": [
        {"name": "Größe", "role": "quasi_identifier", "kind": "numeric"},
        {"name": "paid", "role": "sensitive", "kind": "numeric"},
        {"name": "dx", "role": "quasi_identifier", "kind": "set", "from": ["DX1", "DX2"]},
    ]});
    let made = hospital.post("/v1/datasets", &definition).await.json(201);
    assert_eq!(made["missing"], json!(["", "k.A."]));
    format!("/v1/datasets/{}", text(&made["id"]))
}

async fn submit(
    hospital: &Hospital,
    dataset: &str,
    query: &str,
    media_type: &str,
    body: impl Into<reqwest::Body>,
) -> Answer {
    let path = format!("{dataset}/submissions{query}");
    let app = &hospital.app;
    app.post_bytes(&hospital.token, &path, media_type, body)
        .await
}

/// What is known of the rows of a dataset, without its id.
async fn profile(hospital: &Hospital, dataset: &str) -> Value {
    let profile = hospital.get(&format!("{dataset}/profile")).await.json(200);
    profile["columns"].clone()
}

const PLAIN: &str = "paid,DX1,Größe,DX2\n1234.5,I10,180.5,E11\n,,171,I10\n1000000,E11,k.A.,\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_stored_as_the_plain_file_of_its_table() {
    let hospital = Hospital::new().await;
    let plain = payments(&hospital).await;
    let stored = submit(&hospital, &plain, "", "text/csv", PLAIN).await;
    assert_eq!(stored.json(201)["rows"], 3);
    let expected = profile(&hospital, &plain).await;

    let german =
        "paid;DX1;Größe;DX2\r\n\"1.234,50\";I10;180,5;E11\r\n;;171;I10\r\n1.000.000;E11;k.A.;\r\n";
    let tsv =
        "paid\tDX1\tGröße\tDX2\n1'234.5\tI10\t180.5\tE11\n\t\t171\tI10\n1'000'000\tE11\tk.A.\t\n";
    let american =
        "paid,DX1,Größe,DX2\n\"1,234.50\",I10,180.5,E11\n,,171,I10\n\"1,000,000\",E11,k.A.,\n";
    let latin_1 =
        |text: &str| -> Vec<u8> { text.chars().map(|it| u8::try_from(it).unwrap()).collect() };
    let utf_16 = |text: &str| -> Vec<u8> {
        let units = std::iter::once(0xFEFF).chain(text.encode_utf16());
        units.flat_map(u16::to_le_bytes).collect()
    };
    let with_mark = format!("\u{feff}{german}").into_bytes();
    const GERMAN: &str = "?delimiter=;&decimal=,&thousands=.";
    let csv = "text/csv";
    for (query, media_type, body) in [
        (
            format!("{GERMAN}&encoding=iso-8859-1"),
            csv,
            latin_1(german),
        ),
        (
            format!("{GERMAN}&encoding=windows-1252"),
            csv,
            latin_1(german),
        ),
        // The byte order mark wins.
        (format!("{GERMAN}&encoding=iso-8859-1"), csv, with_mark),
        (format!("{GERMAN}&encoding=utf-16"), csv, utf_16(german)),
        (GERMAN.to_owned(), csv, utf_16(german)),
        (
            "?thousands=%27".to_owned(),
            "text/tab-separated-values",
            tsv.into(),
        ),
        ("?thousands=%27&delimiter=tab".to_owned(), csv, tsv.into()),
        ("?thousands=,".to_owned(), csv, american.into()),
    ] {
        let dataset = payments(&hospital).await;
        let stored = submit(&hospital, &dataset, &query, media_type, body.clone()).await;
        let stored = stored.json(201);
        assert_eq!(stored["rows"], 3, "{query}");
        assert_eq!(stored["sha256"], hex(&Sha256::digest(&body)), "{query}");
        assert_eq!(profile(&hospital, &dataset).await, expected, "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn parameters_that_cannot_be_met_are_refused() {
    let hospital = Hospital::new().await;
    let dataset = payments(&hospital).await;
    const NDJSON: &str = "application/x-ndjson";
    const PARQUET: &str = "application/vnd.apache.parquet";
    for (query, media_type) in [
        ("?decimal=,", "text/csv"),
        ("?delimiter=,&decimal=,", "text/csv"),
        ("?delimiter=;&decimal=,&thousands=,", "text/csv"),
        ("?thousands=.", "text/csv"),
        ("?decimal=.", NDJSON),
        ("?encoding=utf-8", PARQUET),
    ] {
        let refused = submit(&hospital, &dataset, query, media_type, PLAIN).await;
        refused.problem(422, "invalid_value");
    }
    for (query, media_type) in [
        ("?delimiter=%22", "text/csv"),
        ("?delimiter=", "text/csv"),
        ("?delimiter=;;", "text/csv"),
        ("?decimal=x", "text/csv"),
        ("?thousands=1", "text/csv"),
        ("?encoding=latin1", "text/csv"),
        ("?delimiter=;&delimiter=,", "text/csv"),
        ("?separator=;", "text/csv"),
    ] {
        let refused = submit(&hospital, &dataset, query, media_type, PLAIN).await;
        refused.problem(400, "invalid_parameter");
    }
    let listed = hospital.get(&dataset).await.json(200);
    assert_eq!(listed["rows"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_file_counts_its_faults_and_names_the_parameter_that_reads_it() {
    let hospital = Hospital::new().await;
    let dataset = payments(&hospital).await;
    let header = "paid;DX1;Größe;DX2\n";
    let rows = "108,429.42;I10;3,5;E11\n".repeat(50) + "1;I10;3;\n";
    let body = header.to_owned() + &rows;
    let refused = submit(
        &hospital,
        &dataset,
        "?delimiter=;",
        "text/csv",
        body.clone(),
    )
    .await;
    let document = refused.problem(422, "invalid_cells");
    assert_eq!(document["errors"].as_array().unwrap().len(), 20);
    assert_eq!(
        document["errors_by_column"],
        json!({"Größe": 50, "paid": 50})
    );
    let fix = |index: usize| text(&document["errors"][index]["suggested_fix"]).to_owned();
    assert!(fix(0).contains("`?thousands=,`"), "{}", fix(0));
    assert!(fix(1).contains("`?decimal=,`"), "{}", fix(1));
    let whole = document.to_string();
    assert!(!whole.contains("108") && !whole.contains("3,5"), "{whole}");

    let refused = submit(&hospital, &dataset, "", "text/csv", body).await;
    let document = refused.problem(422, "invalid_header");
    let fix = text(&document["errors"][0]["suggested_fix"]);
    assert!(fix.contains("`?delimiter=;`"), "{fix}");
    assert_eq!(document["errors_by_column"]["DX1"], 1);

    let latin_1 = b"paid,DX1,Gr\xf6\xdfe,DX2\n1,I10,3,\n";
    let refused = submit(&hospital, &dataset, "", "text/csv", &latin_1[..]).await;
    let document = refused.problem(400, "malformed_body");
    let fix = text(&document["errors"][0]["suggested_fix"]);
    assert!(fix.contains("`?encoding="), "{fix}");

    let units = "\u{feff}paid,DX1,Größe,DX2\n".encode_utf16();
    let half: Vec<u8> = units.chain([0xD83D]).flat_map(u16::to_le_bytes).collect();
    let refused = submit(&hospital, &dataset, "", "text/csv", half).await;
    let document = refused.problem(400, "malformed_body");
    assert_eq!(document["errors"][0]["line"], 2);
}

/// A dataset says how its text is written, and a request says otherwise.
#[tokio::test(flavor = "multi_thread")]
async fn a_dataset_keeps_how_its_text_is_written() {
    let hospital = Hospital::new().await;
    let plain = payments(&hospital).await;
    submit(&hospital, &plain, "", "text/csv", PLAIN)
        .await
        .json(201);
    let expected = profile(&hospital, &plain).await;
    let german = "paid;DX1;Größe;DX2\n1.234,50;I10;180,5;E11\n;;171;I10\n1.000.000;E11;k.A.;\n";
    let latin_1: Vec<u8> = german.chars().map(|it| u8::try_from(it).unwrap()).collect();
    let format = json!({ "delimiter": ";", "decimal": ",", "thousands": ".",
                         "encoding": "iso-8859-1" });
    let patch = async |dataset: &str, body: Value| {
        let request = hospital.app.request(reqwest::Method::PATCH, dataset);
        crate::app::send(request.bearer_auth(&hospital.token).json(&body)).await
    };
    let tsv = german.replace(';', "\t");
    for (query, media_type, body) in [
        ("", "text/csv", latin_1.clone()),
        // What the request says wins: the charset, the tabulators, the parameters.
        ("", "text/csv; charset=utf-8", german.as_bytes().to_vec()),
        ("?encoding=utf-8", "text/csv", german.as_bytes().to_vec()),
        (
            "",
            "text/tab-separated-values; charset=utf-8",
            tsv.into_bytes(),
        ),
        (
            "?delimiter=,&decimal=.&encoding=utf-8",
            "text/csv",
            PLAIN.as_bytes().to_vec(),
        ),
    ] {
        let dataset = payments(&hospital).await;
        assert_eq!(
            hospital.get(&dataset).await.json(200)["format"],
            Value::Null
        );
        let kept = patch(&dataset, json!({ "format": format })).await;
        assert_eq!(kept.json(200)["format"], format);
        submit(&hospital, &dataset, query, media_type, body)
            .await
            .json(201);
        assert_eq!(profile(&hospital, &dataset).await, expected, "{query}");
        let reset = patch(&dataset, json!({ "format": null })).await;
        assert_eq!(reset.json(200)["format"], Value::Null);
    }
    let dataset = payments(&hospital).await;
    for (format, status, code, pointer) in [
        (
            json!({ "delimiter": ";;" }),
            400,
            "invalid_shape",
            "/format/delimiter",
        ),
        (
            json!({ "encoding": "ebcdic" }),
            400,
            "invalid_shape",
            "/format/encoding",
        ),
        (
            json!({ "quote": "'" }),
            400,
            "invalid_shape",
            "/format/quote",
        ),
        (json!({ "decimal": "," }), 422, "invalid_value", "/format"),
    ] {
        let refused = patch(&dataset, json!({ "format": format })).await;
        let refused = refused.problem(status, code);
        assert_eq!(refused["errors"][0]["pointer"], pointer);
    }

    // The draft of a file has the format in the dataset, so that it is sent back as it is.
    let app = &hospital.app;
    let path = "/v1/datasets/draft?name=drafted";
    let draft = app.post_bytes(&hospital.token, path, "text/csv", latin_1.clone());
    let draft = draft.await.json(200);
    assert_eq!(draft["dataset"]["format"], draft["format"]);
    let made = hospital.post("/v1/datasets", &draft["dataset"]).await;
    let made = format!("/v1/datasets/{}", text(&made.json(201)["id"]));
    submit(&hospital, &made, "", "text/csv", latin_1)
        .await
        .json(201);
}
