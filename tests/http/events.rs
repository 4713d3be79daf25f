//! The events of a job, `GET /v1/jobs/{id}/events`.

use reqwest::{Method, Response};
use serde_json::Value;

use crate::hospital::Hospital;

/// The name and the data of each complete event of a stream.
pub(crate) fn events(stream: &str) -> Vec<(String, Value)> {
    let (complete, _) = stream.rsplit_once("\n\n").unwrap_or_default();
    let mut events = Vec::new();
    for block in complete.split("\n\n") {
        let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name));
        if let (Some(event), Some(data)) = (field("event: "), field("data: ")) {
            events.push((event.to_owned(), serde_json::from_str(data).unwrap()));
        }
    }
    events
}

/// A stream that is being read.
pub(crate) struct EventStream {
    response: Response,
    text: String,
}

impl EventStream {
    /// Opens the stream of a job and waits for its first event.
    pub(crate) async fn open(hospital: &Hospital, job: &str) -> Self {
        let request = hospital.app.request(Method::GET, &format!("{job}/events"));
        let request = request.bearer_auth(&hospital.token);
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let mut stream = Self {
            response,
            text: String::new(),
        };
        while events(&stream.text).is_empty() {
            assert!(stream.read().await, "the stream ended without an event");
        }
        stream
    }

    /// All events, when the service has ended the stream.
    pub(crate) async fn rest(mut self) -> Vec<(String, Value)> {
        while self.read().await {}
        events(&self.text)
    }

    /// Reads a part; whether there was one.
    async fn read(&mut self) -> bool {
        let part = self.response.chunk().await.unwrap();
        let part = part.map(|bytes| String::from_utf8(bytes.to_vec()).unwrap());
        self.text.push_str(part.as_deref().unwrap_or_default());
        part.is_some()
    }
}
