//! Every error code is explained, in `docs/errors.md` and at `/docs/errors`.

use pais::problem::Code;
use reqwest::Method;

use crate::app::{TestApp, send};

/// The table of all codes as Markdown: `docs/errors.md`.
fn markdown() -> String {
    let mut text = String::from(
        "# Error codes\n\n\
         Errors are problem documents (RFC 9457) of the media type `application/problem+json`: \
         `{type, title, status, detail, code, errors?}`. `code` is one of this table and never \
         changes its meaning; `type` links to its row on the page `/docs/errors` of the service; \
         `errors` names places by `pointer` (RFC 6901, into a JSON body) or by `line` and \
         `column` (of a file), each with a `detail` and, if there is one, a `suggested_fix`. \
         A pointer names the smallest part of the body that has to be changed. Of what is missing, it \
         names the place where it belongs, or the object that lacks it. \
         An error never contains the value of a cell.\n\n\
         This file is generated from the source: `make bless` writes it.\n\n\
         | code | status | meaning | what to do |\n|---|---|---|---|\n",
    );
    for &code in Code::ALL {
        text += &format!(
            "| `{}` | {} | {} | {} |\n",
            code.as_str(),
            code.status(),
            code.title(),
            code.remedy()
        );
    }
    text
}

#[test]
fn the_committed_table_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/errors.md");
    if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        std::fs::write(path, markdown()).unwrap();
    }
    let committed = std::fs::read_to_string(path).unwrap();
    assert!(
        committed == markdown(),
        "docs/errors.md is not up to date; run `make bless` and review the difference"
    );
}

#[test]
fn every_code_has_its_own_name_and_a_remedy() {
    for (index, code) in Code::ALL.iter().enumerate() {
        assert!(code.remedy().ends_with('.'), "{}", code.as_str());
        let before = &Code::ALL[..index];
        assert!(before.iter().all(|other| other.as_str() != code.as_str()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_type_of_a_problem_leads_to_its_explanation() {
    let app = TestApp::new().await;
    let refused = send(app.request(Method::GET, "/v1/datasets")).await;
    let kind = refused.problem(401, "unauthenticated")["type"].clone();
    let (path, fragment) = kind.as_str().unwrap().split_once('#').unwrap();
    let page = send(app.request(Method::GET, path)).await;
    assert_eq!(page.status, 200);
    assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
    assert!(page.text.contains(&format!("id=\"{fragment}\"")));
    for code in Code::ALL {
        assert!(page.text.contains(&format!("id=\"{}\"", code.as_str())));
    }
    // Both pages work without a network.
    for loaded in ["<script", "http://", "https://", "<link", "<img"] {
        assert!(!page.text.contains(loaded), "{loaded}");
    }
    let browser = send(app.request(Method::GET, "/docs/")).await;
    assert!(browser.text.contains("swagger-ui"));
    let bundle = send(app.request(Method::GET, "/docs/swagger-ui-bundle.js")).await;
    assert_eq!(bundle.status, 200);
    let settings = send(app.request(Method::GET, "/docs/swagger-initializer.js")).await;
    assert!(settings.text.contains("/openapi.json"), "{}", settings.text);
    assert!(!settings.text.contains("https://"), "{}", settings.text);
}
