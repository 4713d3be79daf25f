//! Invalid requests of every kind: each is answered by a problem document that names the position
//! of the error and repeats no value; nothing is stored, and the service stays healthy.

use pais::roles::Role;
use reqwest::Method;
use serde_json::{Value, json};

use crate::app::{Answer, TestApp, send, text};
use crate::hospital::Hospital;
use crate::{wrong_documents, wrong_tables};

/// A value in place of a patient's; no answer may contain it.
pub(crate) const SECRET: &str = "zz-secret-zz";

/// An invalid request and the expected answer.
pub(crate) struct InvalidRequest {
    pub name: &'static str,
    pub method: Method,
    pub path: String,
    /// Headers besides `Authorization`.
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
    pub status: u16,
    pub code: &'static str,
    pub position: Position,
}

/// The expected position of the first error.
pub(crate) enum Position {
    Anywhere,
    Pointer(&'static str),
    Line(u64),
    Column(&'static str),
}

impl InvalidRequest {
    pub(crate) fn get(
        name: &'static str,
        path: impl Into<String>,
        status: u16,
        code: &'static str,
    ) -> Self {
        Self {
            name,
            method: Method::GET,
            path: path.into(),
            headers: Vec::new(),
            body: Vec::new(),
            status,
            code,
            position: Position::Anywhere,
        }
    }

    pub(crate) fn post(
        name: &'static str,
        path: impl Into<String>,
        media_type: &str,
        body: impl Into<Vec<u8>>,
        (status, code): (u16, &'static str),
    ) -> Self {
        Self {
            method: Method::POST,
            headers: vec![("content-type", media_type.to_owned())],
            body: body.into(),
            ..Self::get(name, path, status, code)
        }
    }

    pub(crate) fn json(
        name: &'static str,
        path: &str,
        body: &Value,
        refusal: (u16, &'static str),
        pointer: &'static str,
    ) -> Self {
        let body = body.to_string();
        Self::post(name, path, "application/json", body, refusal).at(Position::Pointer(pointer))
    }

    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(crate) fn at(mut self, position: Position) -> Self {
        self.position = position;
        self
    }

    async fn send(&self, app: &TestApp, token: &str) -> Answer {
        let mut request = app
            .request(self.method.clone(), &self.path)
            .bearer_auth(token);
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        send(request.body(self.body.clone())).await
    }
}

/// The resources that the requests use.
pub(crate) struct Fixture {
    pub dataset: String,
    pub job: String,
    pub release: String,
}

/// The number of rows of each database table.
async fn row_counts(app: &TestApp) -> Vec<(String, i64)> {
    let pool = app.state.unscoped().db.owner();
    let tables: Vec<String> = sqlx::query_scalar(
        "SELECT table_name::text FROM information_schema.tables WHERE table_schema = 'public'
         ORDER BY 1",
    )
    .fetch_all(pool)
    .await
    .unwrap();
    let mut counts = Vec::new();
    for table in tables {
        let query = sqlx::AssertSqlSafe(format!("SELECT count(*) FROM {table}"));
        let count = sqlx::query_scalar(query).fetch_one(pool).await.unwrap();
        counts.push((table, count));
    }
    assert!(counts.len() > 5, "{counts:?}");
    counts
}

/// A message if the answer differs from the expected one.
fn difference(case: &InvalidRequest, answer: &Answer) -> Option<String> {
    let document: Value = serde_json::from_str(&answer.text).unwrap_or_default();
    let error = &document["errors"][0];
    let is_there = match case.position {
        Position::Anywhere => true,
        Position::Pointer(pointer) => error["pointer"] == pointer,
        Position::Line(line) => error["line"] == line,
        Position::Column(column) => error["column"] == column,
    };
    let is_right = answer.status.as_u16() == case.status
        && answer.status.is_client_error()
        && answer.header("content-type") == "application/problem+json"
        && document["code"] == case.code
        && document["status"] == case.status
        && document["detail"]
            .as_str()
            .is_some_and(|detail| !detail.is_empty())
        && is_there
        && !answer.text.contains(SECRET);
    (!is_right).then(|| format!("{}: {} {}", case.name, answer.status, answer.text))
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_requests_are_refused_and_store_nothing() {
    let builder = TestApp::builder().without_workers();
    let app = builder
        .limits(|limits| limits.upload_bytes = 1 << 20)
        .start()
        .await;
    let hospital = Hospital::with_app(app).await;
    let release = hospital.release().await;
    let document = hospital.get(&release).await.json(200);
    let fixture = Fixture {
        dataset: format!("/v1/datasets/{}", text(&document["dataset_id"])),
        job: text(&document["job_id"]).to_owned(),
        release,
    };
    hospital.app.token("bts", Role::Recipient).await;
    let app = &hospital.app;
    let before = row_counts(app).await;
    let spooled = || std::fs::read_dir(app.spool.path()).unwrap().count();
    let spooled_before = spooled();
    let mut cases = wrong_tables::cases(&fixture);
    cases.extend(wrong_documents::cases(&fixture));
    assert!(cases.len() >= 60, "{}", cases.len());
    let mut differences = Vec::new();
    for case in cases {
        let name = case.name;
        let answer = case.send(app, &hospital.token).await;
        differences.extend(difference(&case, &answer));
        assert_eq!(row_counts(app).await, before, "{name}");
        let health = send(app.request(Method::GET, "/readyz")).await;
        assert_eq!(health.json(200), json!({"status": "ok"}), "{name}");
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert_eq!(
        spooled(),
        spooled_before,
        "a refused upload was left on disk"
    );
    // The service still accepts a valid request.
    let rows = crate::hospital::TABLE;
    hospital.submit(&fixture.dataset, rows).await.json(201);
}
