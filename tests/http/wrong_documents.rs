//! Wrong JSON, parameters, headers and paths.

use serde_json::{Value, json};

use crate::wrong_input::{Case, Ground, Place, SECRET};

const JSON: &str = "application/json";
const UNKNOWN: &str = "01900000-0000-7000-8000-000000000000";

const SHAPE: (u16, &str) = (400, "invalid_shape");
const NO_JSON: (u16, &str) = (400, "malformed_json");
const NOT_FOUND: (u16, &str) = (404, "not_found");
const SCHEMA: (u16, &str) = (422, "invalid_schema");
const TREE: (u16, &str) = (422, "invalid_taxonomy");
const JOB: (u16, &str) = (422, "invalid_job");
const PRIVACY: (u16, &str) = (422, "invalid_privacy");

pub fn cases(ground: &Ground) -> Vec<Case> {
    let mut cases = body_cases();
    cases.extend(dataset_cases());
    cases.extend(taxonomy_cases());
    cases.extend(job_cases(ground));
    cases.extend(release_cases(ground));
    cases.extend(parameter_cases(ground));
    cases
}

fn body_cases() -> Vec<Case> {
    let case = |name, body: &[u8], refusal| Case::post(name, "/v1/datasets", JSON, body, refusal);
    let deep = "{\"name\":".repeat(100_000);
    let long = format!("{{\"name\":\"{}\"}}", SECRET.repeat(100_000));
    vec![
        case("json: nothing at all", b"", NO_JSON),
        case("json: cut short", b"{\"name\": \"zz-secret-zz\"", NO_JSON),
        case(
            "json: a comma too many",
            b"{\"name\": \"zz-secret-zz\",}",
            NO_JSON,
        ),
        case(
            "json: no UTF-8",
            b"{\"name\": \"zz-secret-zz\xff\"}",
            NO_JSON,
        ),
        case(
            "json: NUL in a string",
            b"{\"name\": \"zz-secret-zz\\u0000\"}",
            (400, "malformed_body"),
        ),
        case("json: nested beyond all bounds", deep.as_bytes(), SHAPE),
        case("json: an array", b"[\"zz-secret-zz\"]", SHAPE),
        case(
            "json: larger than the limit",
            long.as_bytes(),
            (413, "too_large"),
        ),
        case(
            "json: a field twice",
            b"{\"name\":\"a\",\"name\":\"b\",\"columns\":[]}",
            SHAPE,
        ),
        Case::post(
            "json: no media type",
            "/v1/jobs",
            "text/plain",
            "{}",
            (415, "unsupported_media_type"),
        ),
        Case::post(
            "json: packed",
            "/v1/jobs",
            JSON,
            "{}",
            (415, "unsupported_media_type"),
        )
        .header("content-encoding", "gzip"),
    ]
}

fn dataset_cases() -> Vec<Case> {
    let column = |name, change: Value, refusal, pointer| {
        let mut column = json!({"name": "x", "role": "quasi_identifier"});
        for (key, value) in change.as_object().unwrap() {
            column[key] = value.clone();
        }
        let body = json!({"name": "d", "columns": [column]});
        Case::json(name, "/v1/datasets", &body, refusal, pointer)
    };
    let whole = |name, body: Value, refusal, pointer| {
        Case::json(name, "/v1/datasets", &body, refusal, pointer)
    };
    let one = json!([{"name": "x", "role": "insensitive"}]);
    vec![
        whole("dataset: no name", json!({"columns": one}), SHAPE, ""),
        whole(
            "dataset: no columns",
            json!({"name": "d", "columns": []}),
            SCHEMA,
            "/columns",
        ),
        whole(
            "dataset: an unknown field",
            json!({"name": "d", "columns": one, "zz": SECRET}),
            SHAPE,
            "/zz",
        ),
        whole(
            "dataset: an empty name",
            json!({"name": " ", "columns": one}),
            (422, "invalid_name"),
            "/name",
        ),
        whole(
            "dataset: kept for no day",
            json!({"name": "d", "columns": one, "retention_days": 0}),
            (422, "invalid_value"),
            "/retention_days",
        ),
        whole(
            "dataset: a column twice",
            json!({"name": "d", "columns": [one[0], one[0]]}),
            SCHEMA,
            "/columns/1/name",
        ),
        column(
            "column: an unknown role",
            json!({"role": SECRET}),
            SHAPE,
            "/columns/0/role",
        ),
        column(
            "column: an unknown kind",
            json!({"kind": SECRET}),
            SHAPE,
            "/columns/0/kind",
        ),
        column(
            "column: a domain of labels",
            json!({"domain": [1, 2]}),
            SCHEMA,
            "/columns/0/domain",
        ),
        column(
            "column: a domain upside down",
            json!({"kind": "numeric", "domain": [2, 1]}),
            SCHEMA,
            "/columns/0/domain",
        ),
        column(
            "column: a domain of one",
            json!({"kind": "numeric", "domain": [2]}),
            SHAPE,
            "/columns/0/domain",
        ),
        column(
            "column: a long separator",
            json!({"kind": "set", "separator": "||"}),
            SCHEMA,
            "/columns/0/separator",
        ),
        column(
            "column: a taxonomy of no id",
            json!({"taxonomy": SECRET}),
            SHAPE,
            "/columns/0/taxonomy",
        ),
        column(
            "column: an unknown taxonomy",
            json!({"taxonomy": UNKNOWN}),
            NOT_FOUND,
            "/columns/0/taxonomy",
        ),
        column(
            "column: a tree of no ranges",
            json!({"kind": "numeric",
            "taxonomy": {"label": "*", "children": [{"label": "a"}]}}),
            SCHEMA,
            "/columns/0/taxonomy",
        ),
    ]
}

fn taxonomy_cases() -> Vec<Case> {
    let tree = |name, root: Value, refusal, pointer| {
        Case::json(
            name,
            "/v1/taxonomies",
            &json!({"name": "t", "root": root}),
            refusal,
            pointer,
        )
    };
    let rows = |name, rows: &str, refusal| {
        Case::post(name, "/v1/taxonomies?name=t", "text/csv", rows, refusal)
    };
    let leaf = |label: &str| json!({ "label": label });
    let open = r#"{"label":"x","children":["#;
    let deep = format!(
        "{{\"name\":\"t\",\"root\":{}{}",
        open.repeat(10_000),
        "]}".repeat(10_000)
    );
    let deep_row: Vec<String> = (0..10_000).map(|level| format!("l{level}")).collect();
    let wide: Vec<Value> = (0..100_000)
        .map(|n| json!({"label": n.to_string()}))
        .collect();
    let few: Vec<Value> = (0..1001).map(|n| json!({"label": n.to_string()})).collect();
    let wide_rows: String = (0..100_000).map(|n| format!("{n};*\n")).collect();
    vec![
        tree("tree: a root alone", leaf("*"), TREE, "/root"),
        tree(
            "tree: a label twice",
            json!({"label": "*", "children": [leaf("a"), leaf("a")]}),
            TREE,
            "/root/children/1",
        ),
        tree(
            "tree: an empty label",
            json!({"label": "*", "children": [leaf("")]}),
            TREE,
            "/root/children/0",
        ),
        tree(
            "tree: no label",
            json!({"children": [leaf("a")]}),
            SHAPE,
            "/root",
        ),
        tree(
            "tree: too many leaves",
            json!({"label": "*", "children": few}),
            TREE,
            "/root",
        ),
        Case::post(
            "tree: 100,000 leaves",
            "/v1/taxonomies",
            JSON,
            json!({"name": "t", "root": {"label": "*", "children": wide}}).to_string(),
            (413, "too_large"),
        ),
        Case::post("tree: 10,000 levels", "/v1/taxonomies", JSON, deep, NO_JSON),
        rows("rows: 10,000 levels", &deep_row.join(";"), TREE).at(Place::Line(1)),
        rows("rows: 100,000 leaves", &wide_rows, TREE),
        rows("rows: two tops", "a;*\nb;+\n", TREE).at(Place::Line(2)),
        rows("rows: of two lengths", "a;A;*\nb;*\n", TREE).at(Place::Line(2)),
        rows("rows: none", "", TREE),
        rows(
            "rows: a quote never closed",
            "\"a;*\n",
            (400, "malformed_body"),
        ),
        Case::post(
            "rows: no name",
            "/v1/taxonomies",
            "text/csv",
            "a;*\n",
            (400, "invalid_parameter"),
        ),
    ]
}

fn job_cases(ground: &Ground) -> Vec<Case> {
    let dataset = ground.dataset.rsplit('/').next().unwrap();
    let job = |name, change: Value, refusal, pointer| {
        let mut body = json!({"dataset_id": dataset, "privacy": {"model": "k_anonymity", "k": 2}});
        for (key, value) in change.as_object().unwrap() {
            body[key] = value.clone();
        }
        Case::json(name, "/v1/jobs", &body, refusal, pointer)
    };
    let lkc = |l: i64, k: i64, c: f64| {
        json!({"privacy": {"model": "lkc", "l": l, "k": k, "c": c,
            "sensitive_values": {"Surgery": ["Transgender"]}}})
    };
    let named = json!({"privacy": {"model": "lkc", "l": 1, "k": 1, "c": 0.5,
        "sensitive_values": {"Job": [SECRET]}}});
    vec![
        job(
            "job: an unknown dataset",
            json!({"dataset_id": UNKNOWN}),
            NOT_FOUND,
            "/dataset_id",
        ),
        job(
            "job: no dataset",
            json!({"dataset_id": null}),
            SHAPE,
            "/dataset_id",
        ),
        job(
            "job: an unknown model",
            json!({"privacy": {"model": SECRET}}),
            SHAPE,
            "/privacy/model",
        ),
        job(
            "job: no privacy",
            json!({"privacy": null}),
            SHAPE,
            "/privacy",
        ),
        job(
            "job: another model's parameter",
            json!({"privacy": {"model": "k_anonymity", "k": 2, "alpha": 0.5}}),
            SHAPE,
            "/privacy/alpha",
        ),
        job("job: k of nothing", lkc(1, 0, 0.5), PRIVACY, "/privacy/k"),
        job("job: l below 1", lkc(-1, 2, 0.5), PRIVACY, "/privacy/l"),
        job("job: c above 1", lkc(1, 2, 1.5), PRIVACY, "/privacy/c"),
        job(
            "job: values of no sensitive column",
            named,
            JOB,
            "/privacy/sensitive_values/Job",
        ),
        job(
            "job: an unknown submission",
            json!({"submissions": [UNKNOWN]}),
            NOT_FOUND,
            "/submissions/0",
        ),
        job(
            "job: no submission",
            json!({"submissions": []}),
            JOB,
            "/submissions",
        ),
        job(
            "job: suppresses more than all",
            json!({"suppression_limit": 2}),
            (422, "invalid_value"),
            "/suppression_limit",
        ),
        job(
            "job: an unknown objective",
            json!({"utility": {"objective": SECRET}}),
            SHAPE,
            "/utility/objective",
        ),
        job(
            "job: anatomized by one cut",
            json!({"output": "anatomized", "recoding": "global"}),
            JOB,
            "/output",
        ),
    ]
}

fn release_cases(ground: &Ground) -> Vec<Case> {
    let release = |name, body: Value, refusal, pointer| {
        Case::json(name, "/v1/releases", &body, refusal, pointer)
    };
    let path = format!("{}/grants", ground.release);
    let grant =
        |name, body: Value, refusal, pointer| Case::json(name, &path, &body, refusal, pointer);
    let job = &ground.job;
    let value = (422, "invalid_value");
    vec![
        release(
            "release: an unknown job",
            json!({"job_id": UNKNOWN}),
            NOT_FOUND,
            "/job_id",
        ),
        release(
            "release: a job of no id",
            json!({"job_id": SECRET}),
            SHAPE,
            "/job_id",
        ),
        release(
            "release: no such step",
            json!({"job_id": job, "step": 99}),
            (422, "no_such_step"),
            "/step",
        ),
        release(
            "release: half a step",
            json!({"job_id": job, "step": 0.5}),
            SHAPE,
            "/step",
        ),
        release(
            "release: an empty name",
            json!({"job_id": job, "name": ""}),
            (422, "invalid_name"),
            "/name",
        ),
        grant(
            "grant: to nobody",
            json!({"recipient": SECRET, "purpose": "x"}),
            NOT_FOUND,
            "/recipient",
        ),
        grant(
            "grant: for nothing",
            json!({"recipient": "bts", "purpose": " "}),
            value,
            "/purpose",
        ),
        grant(
            "grant: until yesterday",
            json!({"recipient": "bts", "purpose": "x",
            "expires_at": "2001-01-01T00:00:00Z"}),
            value,
            "/expires_at",
        ),
        grant(
            "grant: until no time",
            json!({"recipient": "bts", "purpose": "x",
            "expires_at": SECRET}),
            SHAPE,
            "/expires_at",
        ),
    ]
}

fn parameter_cases(ground: &Ground) -> Vec<Case> {
    let parameter = |name, path: String| Case::get(name, path, 400, "invalid_parameter");
    let release = &ground.release;
    let submissions = format!("{}/submissions", ground.dataset);
    vec![
        parameter("path: no id", format!("/v1/datasets/{SECRET}")),
        parameter("path: no UTF-8", "/v1/datasets/%ff".to_owned()),
        parameter("list: a limit of 0", "/v1/jobs?limit=0".to_owned()),
        parameter("list: a limit too high", "/v1/jobs?limit=1001".to_owned()),
        parameter(
            "list: a limit of no number",
            format!("/v1/jobs?limit={SECRET}"),
        ),
        parameter(
            "list: a cursor of its own making",
            format!("/v1/jobs?cursor={SECRET}"),
        ),
        parameter(
            "table: an unknown format",
            format!("{release}/data?format={SECRET}"),
        ),
        Case::get(
            "table: unacceptable",
            format!("{release}/data"),
            406,
            "not_acceptable",
        )
        .header("accept", "image/png"),
        Case::get(
            "table: no such",
            format!("{release}/tables/{SECRET}"),
            404,
            "not_found",
        ),
        Case::get(
            "report: unacceptable",
            format!("{release}/report"),
            406,
            "not_acceptable",
        )
        .header("accept", "image/png"),
        Case::get("path: nowhere", format!("/v1/{SECRET}"), 404, "not_found"),
        Case::post(
            "path: the wrong method",
            "/v1/audit",
            JSON,
            "{}",
            (405, "method_not_allowed"),
        ),
        Case::post(
            "key: far too long",
            submissions,
            "text/csv",
            "x",
            (400, "invalid_parameter"),
        )
        .header("idempotency-key", "k".repeat(256)),
    ]
}
