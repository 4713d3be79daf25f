//! Every stable code of an error: what it means and what to do, as a page and as Markdown.

use std::fmt::Write;

use axum::response::Response;

use crate::problem::Code;

use super::html::{Page, escape};

/// What whoever meets a code can do.
pub fn remedy(code: Code) -> &'static str {
    match code {
        Code::MalformedJson => "Mend the JSON at the line and column that `detail` names.",
        Code::InvalidShape => {
            "Mend the field that `pointer` names: its type, its spelling, a word that is not among those documented, or a parameter of another privacy model."
        }
        Code::MalformedBody => {
            "Send UTF-8 without NUL, every quote closed, and a body that really is of its `Content-Type` and `Content-Encoding`."
        }
        Code::InvalidParameter => {
            "Mend the id in the path (a UUID), the query parameter or the header that `detail` names."
        }
        Code::Unauthenticated => {
            "Send `Authorization: Bearer <token>` with a token that is neither expired nor revoked."
        }
        Code::Forbidden => {
            "Use a token of a role that may do this; an `admin` issues one at `POST /v1/tokens`."
        }
        Code::NotFound => {
            "Check the id or the path. What belongs to another organization, or was not granted to yours, is not found either."
        }
        Code::MethodNotAllowed => "Use one of the methods in the header `Allow`.",
        Code::NotAcceptable => {
            "Name one of the media types of `detail` in `Accept`, or use `?format=`."
        }
        Code::RequestTimeout => "Send the request again; for an upload, without long pauses.",
        Code::NameTaken => "Choose another name, or use what has the name already.",
        Code::JobEnded => "Nothing: there is nothing left to cancel.",
        Code::JobNotSucceeded => {
            "Wait until the job has succeeded; where it has failed, its `error` says why."
        }
        Code::DatasetDeleted => {
            "Nothing brings the rows back: use a release made before, or declare the dataset anew and send the rows again."
        }
        Code::IdempotencyKeyReused => {
            "Use a new `Idempotency-Key` for another request; repeat a request with the very same body."
        }
        Code::IdempotencyKeyInUse => "Wait until the first request has ended, then send it again.",
        Code::GrantExists => "Use the grant there is, or withdraw it before you make another.",
        Code::TooLarge => {
            "Send less at once, such as the rows in several submissions; the operator may raise the limit that `detail` names."
        }
        Code::UnsupportedMediaType => {
            "Send one of the media types, charsets and encodings that `detail` names, and declare it."
        }
        Code::RangeNotSatisfiable => {
            "Ask for bytes inside the content; `Content-Range` tells its size."
        }
        Code::InvalidSchema => "Mend the columns that the pointers name; all faults are listed.",
        Code::InvalidTaxonomy => {
            "Mend the node or row that is named: labels are not empty and unique in a tree, and a tree has a root over leaves and stays within the limits."
        }
        Code::InvalidName => "Choose a name of the form that `detail` describes.",
        Code::InvalidHeader => {
            "Name exactly the declared columns, in any order; where a name is nearly right, `suggested_fix` has it."
        }
        Code::InvalidCells => {
            "Mend the cells that are named by line and column; at most the first 20 are. Nothing was stored."
        }
        Code::EmptySubmission => "Send at least one row.",
        Code::InvalidPrivacy => "Bring the parameter that `pointer` names into its range.",
        Code::InvalidJob => {
            "Change the job at the place that `pointer` names so that it fits the dataset's columns and rows."
        }
        Code::NoSuchStep => {
            "Name one of the steps of `GET /v1/jobs/{id}/steps`, or none for the last."
        }
        Code::InvalidValue => "Bring the value that `pointer` names into its range.",
        Code::LimitExceeded => {
            "Declare less; the operator may raise the limit that `detail` names."
        }
        Code::NotAnonymizable => {
            "As a job's error: weaken the model as `detail` says, allow suppression, or send more rows. Nothing was released."
        }
        Code::VerificationFailed => {
            "Report it: the service made a table that its own verifier refused. Nothing was released."
        }
        Code::TooManyRequests => "Wait as many seconds as `Retry-After` says.",
        Code::Cancelled => "Nothing: the job was cancelled, or its dataset deleted.",
        Code::AttemptsExhausted => {
            "As a job's error: its workers died again and again; ask the operator for the log, which has the job's id."
        }
        Code::Internal => {
            "Report it with the answer's `x-request-id`, under which the log has the cause."
        }
        Code::Unavailable => "Try again after as many seconds as `Retry-After` says.",
    }
}

/// The table of all codes as Markdown: `docs/errors.md`.
pub fn markdown() -> String {
    let mut text = String::from(
        "# Error codes\n\n\
         Errors are problem documents (RFC 9457) of the media type `application/problem+json`: \
         `{type, title, status, detail, code, errors?}`. `code` is a word of this table and never \
         changes its meaning; `type` leads to its row on the page `/docs/errors` of the service; \
         `errors` names places by `pointer` (RFC 6901, into a JSON body) or by `line` and \
         `column` (of a file), each with a `detail` and, where there is one, a `suggested_fix`. \
         The value of a cell never stands in an error.\n\n\
         This file is generated from the source: `make bless` writes it.\n\n\
         | code | status | meaning | what to do |\n|---|---|---|---|\n",
    );
    for &code in Code::ALL {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "| `{}` | {} | {} | {} |",
            code.as_str(),
            code.status(),
            code.title(),
            remedy(code)
        );
    }
    text
}

/// The table of all codes as a page, each row under the fragment that `type` names.
pub(super) fn page() -> Response {
    let mut page = Page::new("Error codes");
    page.text("What each code of a problem document means, and what to do about it.");
    page.line(format_args!(
        "<table><tr><th>Code</th><th>Status</th><th>Meaning</th><th>What to do</th></tr>"
    ));
    for &code in Code::ALL {
        page.line(format_args!(
            "<tr id=\"{0}\"><td><code>{0}</code></td><td>{1}</td><td>{2}</td><td>{3}</td></tr>",
            code.as_str(),
            code.status(),
            escape(code.title()),
            marked(remedy(code)),
        ));
    }
    page.line(format_args!("</table>"));
    page.into_response()
}

/// What stands between backquotes, as code.
fn marked(text: &str) -> String {
    let parts = text.split('`').enumerate().map(|(index, part)| {
        let part = escape(part);
        match index % 2 {
            1 => format!("<code>{part}</code>"),
            _ => part,
        }
    });
    parts.collect()
}
