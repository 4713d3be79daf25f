//! Wrong input of every kind: each is refused by a problem document that names its place, leaves
//! nothing behind, harms nothing and repeats no value.

use pais::domain::Role;
use reqwest::Method;
use serde_json::{Value, json};

use crate::app::{Answer, TestApp, send, text};
use crate::hospital::Hospital;
use crate::{wrong_documents, wrong_tables};

/// Stands wherever a value of a patient might.
pub const SECRET: &str = "zz-secret-zz";

/// A wrong request and what it is answered with.
pub struct Case {
    pub name: &'static str,
    pub method: Method,
    pub path: String,
    /// Beside `Authorization`.
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
    pub status: u16,
    pub code: &'static str,
    pub place: Place,
}

/// Where the first fault is said to be.
pub enum Place {
    Anywhere,
    Pointer(&'static str),
    Line(u64),
    Column(&'static str),
}

impl Case {
    pub fn get(
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
            place: Place::Anywhere,
        }
    }

    pub fn post(
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

    pub fn json(
        name: &'static str,
        path: &str,
        body: &Value,
        refusal: (u16, &'static str),
        pointer: &'static str,
    ) -> Self {
        let body = body.to_string();
        Self::post(name, path, "application/json", body, refusal).at(Place::Pointer(pointer))
    }

    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub fn at(mut self, place: Place) -> Self {
        self.place = place;
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

/// What the wrong requests are about.
pub struct Ground {
    pub dataset: String,
    pub job: String,
    pub release: String,
}

async fn stored(app: &TestApp) -> Vec<(String, i64)> {
    let pool = app.state.store.pool();
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

/// What is wrong with the answer to a wrong request.
fn fault(case: &Case, answer: &Answer) -> Option<String> {
    let document: Value = serde_json::from_str(&answer.text).unwrap_or_default();
    let fault = &document["errors"][0];
    let is_there = match case.place {
        Place::Anywhere => true,
        Place::Pointer(pointer) => fault["pointer"] == pointer,
        Place::Line(line) => fault["line"] == line,
        Place::Column(column) => fault["column"] == column,
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
async fn wrong_input_is_refused_and_leaves_nothing() {
    let builder = TestApp::builder().without_workers();
    let app = builder
        .limits(|limits| limits.upload_bytes = 1 << 20)
        .start()
        .await;
    let hospital = Hospital::of(app).await;
    let release = hospital.release().await;
    let document = hospital.get(&release).await.json(200);
    let ground = Ground {
        dataset: format!("/v1/datasets/{}", text(&document["dataset_id"])),
        job: text(&document["job_id"]).to_owned(),
        release,
    };
    hospital.app.token("bts", Role::Recipient).await;
    let app = &hospital.app;
    let before = stored(app).await;
    let mut cases = wrong_tables::cases(&ground);
    cases.extend(wrong_documents::cases(&ground));
    assert!(cases.len() >= 60, "{}", cases.len());
    let mut faults = Vec::new();
    for case in cases {
        let name = case.name;
        let answer = case.send(app, &hospital.token).await;
        faults.extend(fault(&case, &answer));
        assert_eq!(stored(app).await, before, "{name}");
        let health = send(app.request(Method::GET, "/readyz")).await;
        assert_eq!(health.json(200), json!({"status": "ok"}), "{name}");
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    let spool = std::fs::read_dir(&*app.state.spool).unwrap().count();
    assert_eq!(spool, 0, "a refused body was left on disk");
    // And the service still takes what is right.
    let rows = crate::hospital::TABLE;
    hospital.submit(&ground.dataset, rows).await.json(201);
}
