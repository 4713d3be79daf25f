//! Invalid JSON, parameters, headers and paths.

use serde_json::{Value, json};

use crate::wrong_input::{Fixture, InvalidRequest, Position, SECRET};

const JSON: &str = "application/json";
const UNKNOWN: &str = "01900000-0000-7000-8000-000000000000";

const SHAPE: (u16, &str) = (400, "invalid_shape");
const NO_JSON: (u16, &str) = (400, "malformed_json");
const NOT_FOUND: (u16, &str) = (404, "not_found");
const SCHEMA: (u16, &str) = (422, "invalid_schema");
const TREE: (u16, &str) = (422, "invalid_taxonomy");
const JOB: (u16, &str) = (422, "invalid_job");
const PRIVACY: (u16, &str) = (422, "invalid_privacy");

pub(crate) fn cases(fixture: &Fixture) -> Vec<InvalidRequest> {
    let mut cases = body_cases();
    cases.extend(dataset_cases());
    cases.extend(taxonomy_cases());
    cases.extend(job_cases(fixture));
    cases.extend(release_cases(fixture));
    cases.extend(parameter_cases(fixture));
    cases
}

fn body_cases() -> Vec<InvalidRequest> {
    let case = |name, body: &[u8], refusal| {
        InvalidRequest::post(name, "/v1/datasets", JSON, body, refusal)
    };
    let deep = "{\"name\":".repeat(100_000);
    let long = format!("{{\"name\":\"{}\"}}", SECRET.repeat(100_000));
    vec![
        case("json: an empty body", b"", NO_JSON),
        case("json: truncated", b"{\"name\": \"zz-secret-zz\"", NO_JSON),
        case(
            "json: a trailing comma",
            b"{\"name\": \"zz-secret-zz\",}",
            NO_JSON,
        ),
        case(
            "json: invalid UTF-8",
            b"{\"name\": \"zz-secret-zz\xff\"}",
            NO_JSON,
        ),
        case(
            "json: NUL in a string",
            b"{\"name\": \"zz-secret-zz\\u0000\"}",
            (400, "malformed_body"),
        ),
        case("json: nested too deeply", deep.as_bytes(), SHAPE),
        case("json: an array", b"[\"zz-secret-zz\"]", SHAPE),
        case(
            "json: larger than the limit",
            long.as_bytes(),
            (413, "too_large"),
        ),
        case(
            "json: a duplicate field",
            b"{\"name\":\"a\",\"name\":\"b\",\"columns\":[]}",
            SHAPE,
        ),
        InvalidRequest::post(
            "json: a duplicate field of a map",
            "/v1/jobs",
            JSON,
            "{\"roles\": {\"a\": \"insensitive\", \"a\": \"sensitive\"}}",
            SHAPE,
        ),
        InvalidRequest::post(
            "json: a wrong media type",
            "/v1/jobs",
            "text/plain",
            "{}",
            (415, "unsupported_media_type"),
        ),
        InvalidRequest::post(
            "json: another charset",
            "/v1/jobs",
            "application/json; charset=utf-16",
            "{}",
            (415, "unsupported_media_type"),
        ),
        InvalidRequest::post(
            "json: compressed",
            "/v1/jobs",
            JSON,
            "{}",
            (415, "unsupported_media_type"),
        )
        .header("content-encoding", "gzip"),
    ]
}

fn dataset_cases() -> Vec<InvalidRequest> {
    let column = |name, change: Value, refusal, pointer| {
        let mut column = json!({"name": "x", "role": "quasi_identifier"});
        for (key, value) in change.as_object().unwrap() {
            column[key] = value.clone();
        }
        let body = json!({"name": "d", "columns": [column]});
        InvalidRequest::json(name, "/v1/datasets", &body, refusal, pointer)
    };
    let whole = |name, body: Value, refusal, pointer| {
        InvalidRequest::json(name, "/v1/datasets", &body, refusal, pointer)
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
            "dataset: a retention of 0 days",
            json!({"name": "d", "columns": one, "retention_days": 0}),
            (422, "invalid_value"),
            "/retention_days",
        ),
        whole(
            "dataset: a duplicate column",
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
            "column: a domain of a categorical column",
            json!({"domain": [1, 2]}),
            SCHEMA,
            "/columns/0/domain",
        ),
        column(
            "column: a domain with min > max",
            json!({"kind": "numeric", "domain": [2, 1]}),
            SCHEMA,
            "/columns/0/domain",
        ),
        column(
            "column: a domain of one number",
            json!({"kind": "numeric", "domain": [2]}),
            SHAPE,
            "/columns/0/domain",
        ),
        column(
            "column: a domain of three numbers",
            json!({"kind": "numeric", "domain": [1, 2, 3]}),
            SHAPE,
            "/columns/0/domain",
        ),
        column(
            "column: prefixes in the wrong order",
            json!({"taxonomy": {"generate": "prefix", "lengths": [1, 3]}}),
            SCHEMA,
            "/columns/0/taxonomy/lengths",
        ),
        column(
            "column: a start of ranges beyond the numbers",
            json!({"kind": "numeric", "taxonomy": {"generate": "ranges", "start": 1e308}}),
            SCHEMA,
            "/columns/0/taxonomy/start",
        ),
        column(
            "column: widths that are no multiples",
            json!({"kind": "numeric", "taxonomy": {"generate": "ranges", "widths": [3, 4]}}),
            SCHEMA,
            "/columns/0/taxonomy/widths",
        ),
        column(
            "column: periods in the wrong order",
            json!({"kind": "date", "taxonomy": {"generate": "calendar", "levels": ["year", "month"]}}),
            SCHEMA,
            "/columns/0/taxonomy/levels",
        ),
        column(
            "column: ages at no date",
            json!({"kind": "date", "taxonomy": {"generate": "age", "at": SECRET}}),
            SCHEMA,
            "/columns/0/taxonomy/at",
        ),
        column(
            "column: ages in half years",
            json!({"kind": "date",
            "taxonomy": {"generate": "age", "at": "2026-01-01", "widths": [0.5]}}),
            SHAPE,
            "/columns/0/taxonomy/widths",
        ),
        column(
            "column: rare values of one row",
            json!({"taxonomy": {"generate": "rare", "below": 1}}),
            SCHEMA,
            "/columns/0/taxonomy/below",
        ),
        column(
            "column: an option of another hierarchy",
            json!({"taxonomy": {"generate": "mask_left", "lengths": [1]}}),
            SHAPE,
            "/columns/0/taxonomy/lengths",
        ),
        column(
            "column: ordered labels without labels",
            json!({"taxonomy": {"generate": "ordered"}}),
            SCHEMA,
            "/columns/0/taxonomy",
        ),
        column(
            "column: labels of the column beside an ordered hierarchy",
            json!({"order": ["a"], "taxonomy": {"generate": "ordered"}}),
            SCHEMA,
            "/columns/0/order",
        ),
        column(
            "column: neither a tree nor a hierarchy that is made",
            json!({"taxonomy": {"lengths": [1]}}),
            SHAPE,
            "/columns/0/taxonomy",
        ),
        column(
            "column: a long separator",
            json!({"kind": "set", "separator": "||"}),
            SCHEMA,
            "/columns/0/separator",
        ),
        column(
            "column: a taxonomy with an invalid id",
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
            "column: a tree without ranges for a numeric column",
            json!({"kind": "numeric",
            "taxonomy": {"label": "*", "children": [{"label": "a"}]}}),
            SCHEMA,
            "/columns/0/taxonomy",
        ),
    ]
}

fn taxonomy_cases() -> Vec<InvalidRequest> {
    let tree = |name, root: Value, refusal, pointer| {
        InvalidRequest::json(
            name,
            "/v1/taxonomies",
            &json!({"name": "t", "root": root}),
            refusal,
            pointer,
        )
    };
    let rows = |name, rows: &str, refusal| {
        InvalidRequest::post(name, "/v1/taxonomies?name=t", "text/csv", rows, refusal)
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
        tree("tree: only a root", leaf("*"), TREE, "/root"),
        tree(
            "tree: a duplicate label",
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
        InvalidRequest::post(
            "tree: 100,000 leaves",
            "/v1/taxonomies",
            JSON,
            json!({"name": "t", "root": {"label": "*", "children": wide}}).to_string(),
            (413, "too_large"),
        ),
        InvalidRequest::post("tree: 10,000 levels", "/v1/taxonomies", JSON, deep, NO_JSON),
        rows("rows: 10,000 levels", &deep_row.join(";"), TREE).at(Position::Line(1)),
        rows("rows: 100,000 leaves", &wide_rows, TREE),
        rows("rows: two roots", "a;*\nb;+\n", TREE).at(Position::Line(2)),
        rows("rows: a leaf above another", "a;A;*\nA;*\n", TREE).at(Position::Line(2)),
        rows("rows: none", "", TREE),
        rows(
            "rows: an unclosed quote",
            "\"a;*\n",
            (400, "malformed_body"),
        ),
        InvalidRequest::post(
            "rows: no name",
            "/v1/taxonomies",
            "text/csv",
            "a;*\n",
            (400, "invalid_parameter"),
        ),
    ]
}

fn job_cases(fixture: &Fixture) -> Vec<InvalidRequest> {
    let dataset = fixture.dataset.rsplit('/').next().unwrap();
    let job = |name, change: Value, refusal, pointer| {
        let mut body = json!({"dataset_id": dataset, "privacy": {"model": "k_anonymity", "k": 2}});
        for (key, value) in change.as_object().unwrap() {
            body[key] = value.clone();
        }
        InvalidRequest::json(name, "/v1/jobs", &body, refusal, pointer)
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
        job(
            "job: exact quasi-identifiers, by default, under a diversity of 1",
            json!({"privacy": {"model": "l_diversity", "k": 2, "l": 1}}),
            JOB,
            "/output",
        ),
        job(
            "job: a dataset id of another type",
            json!({"dataset_id": [1, 2, 3]}),
            SHAPE,
            "/dataset_id",
        ),
        job(
            "job: an objective that is an object",
            json!({"utility": {"objective": {}}}),
            SHAPE,
            "/utility/objective",
        ),
        job("job: k = 0", lkc(1, 0, 0.5), PRIVACY, "/privacy/k"),
        job("job: l below 1", lkc(-1, 2, 0.5), PRIVACY, "/privacy/l"),
        job("job: c above 1", lkc(1, 2, 1.5), PRIVACY, "/privacy/c"),
        job(
            "job: sensitive values of another column",
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
            "job: a suppression limit above 1",
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
            "job: an anatomized release with global recoding",
            json!({"output": "anatomized", "recoding": "global"}),
            JOB,
            "/output",
        ),
    ]
}

fn release_cases(fixture: &Fixture) -> Vec<InvalidRequest> {
    let release = |name, body: Value, refusal, pointer| {
        InvalidRequest::json(name, "/v1/releases", &body, refusal, pointer)
    };
    let path = format!("{}/grants", fixture.release);
    let grant = |name, body: Value, refusal, pointer| {
        InvalidRequest::json(name, &path, &body, refusal, pointer)
    };
    let job = &fixture.job;
    let value = (422, "invalid_value");
    vec![
        release(
            "release: an unknown job",
            json!({"job_id": UNKNOWN}),
            NOT_FOUND,
            "/job_id",
        ),
        release(
            "release: an invalid job id",
            json!({"job_id": SECRET}),
            SHAPE,
            "/job_id",
        ),
        release(
            "release: an unknown step",
            json!({"job_id": job, "step": 99}),
            (422, "no_such_step"),
            "/step",
        ),
        release(
            "release: a fractional step",
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
            "grant: an unknown recipient",
            json!({"recipient": SECRET, "purpose": "x"}),
            NOT_FOUND,
            "/recipient",
        ),
        grant(
            "grant: an empty purpose",
            json!({"recipient": "bts", "purpose": " "}),
            value,
            "/purpose",
        ),
        grant(
            "grant: expires in the past",
            json!({"recipient": "bts", "purpose": "x",
            "expires_at": "2001-01-01T00:00:00Z"}),
            value,
            "/expires_at",
        ),
        grant(
            "grant: a time that is a number",
            json!({"recipient": "bts", "purpose": "x", "expires_at": 5}),
            SHAPE,
            "/expires_at",
        ),
        grant(
            "grant: an invalid time",
            json!({"recipient": "bts", "purpose": "x",
            "expires_at": SECRET}),
            SHAPE,
            "/expires_at",
        ),
    ]
}

fn parameter_cases(fixture: &Fixture) -> Vec<InvalidRequest> {
    let parameter = |name, path: String| InvalidRequest::get(name, path, 400, "invalid_parameter");
    let release = &fixture.release;
    let submissions = format!("{}/submissions", fixture.dataset);
    vec![
        parameter("path: an invalid id", format!("/v1/datasets/{SECRET}")),
        parameter("path: invalid UTF-8", "/v1/datasets/%ff".to_owned()),
        parameter("list: a limit of 0", "/v1/jobs?limit=0".to_owned()),
        parameter("list: a limit too high", "/v1/jobs?limit=1001".to_owned()),
        parameter(
            "list: a limit that is not a number",
            format!("/v1/jobs?limit={SECRET}"),
        ),
        parameter(
            "list: an invalid cursor",
            format!("/v1/jobs?cursor={SECRET}"),
        ),
        parameter(
            "table: an unknown format",
            format!("{release}/data?format={SECRET}"),
        ),
        InvalidRequest::get(
            "table: an unacceptable media type",
            format!("{release}/data"),
            406,
            "not_acceptable",
        )
        .header("accept", "image/png"),
        InvalidRequest::get(
            "table: an unknown table",
            format!("{release}/tables/{SECRET}"),
            404,
            "not_found",
        ),
        InvalidRequest::get(
            "report: an unacceptable media type",
            format!("{release}/report"),
            406,
            "not_acceptable",
        )
        .header("accept", "image/png"),
        InvalidRequest::get(
            "path: an unknown path",
            format!("/v1/{SECRET}"),
            404,
            "not_found",
        ),
        InvalidRequest::post(
            "path: the wrong method",
            "/v1/audit",
            JSON,
            "{}",
            (405, "method_not_allowed"),
        ),
        InvalidRequest::post(
            "key: too long",
            submissions,
            "text/csv",
            "x",
            (400, "invalid_parameter"),
        )
        .header("idempotency-key", "k".repeat(256)),
    ]
}
