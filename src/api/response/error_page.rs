//! All error codes, with their meanings and what to do, as a page and as Markdown.

use std::fmt::Write;

use axum::response::Response;
use maud::{Markup, html};

use crate::problem::Code;

use super::html_page;

/// What to do about an error with this code.
pub fn remedy(code: Code) -> &'static str {
    match code {
        Code::MalformedJson => "Fix the JSON at the line and column that `detail` names.",
        Code::InvalidShape => {
            "Fix the field that `pointer` names: its type, its spelling, a value that is not one of the documented ones, or a parameter of another privacy model."
        }
        Code::MalformedBody => {
            "Send UTF-8 without NUL, close every quote, and make sure that the body has the declared `Content-Type` and `Content-Encoding`."
        }
        Code::InvalidParameter => {
            "Fix the id in the path (a UUID), the query parameter or the header that `detail` names."
        }
        Code::Unauthenticated => {
            "Send `Authorization: Bearer <token>` with a token that is neither expired nor revoked."
        }
        Code::Forbidden => {
            "Use a token of a role that may do this; an `admin` issues one at `POST /v1/tokens`."
        }
        Code::NotFound => {
            "Check the id or the path. This is also the answer for what belongs to another organization or was not granted to yours."
        }
        Code::MethodNotAllowed => "Use one of the methods in the header `Allow`.",
        Code::NotAcceptable => {
            "Name one of the media types of `detail` in `Accept`, or use `?format=`."
        }
        Code::RequestTimeout => "Send the request again; for an upload, without long pauses.",
        Code::Conflict => {
            "Change what `pointer` names in another way, wait for the jobs and uploads that `detail` names, or declare another dataset."
        }
        Code::NameTaken => "Choose another name, or use the resource that has the name.",
        Code::TaxonomyInUse => "Delete the datasets that use the taxonomy first, or keep it.",
        Code::JobEnded => "Nothing: the job has ended, so it cannot be cancelled.",
        Code::JobNotSucceeded => {
            "Wait until the job has succeeded. If it has failed, its `error` says why."
        }
        Code::DatasetDeleted => {
            "The rows cannot be restored. Use an earlier release, or declare the dataset and send the rows again."
        }
        Code::IdempotencyKeyReused => {
            "Use a new `Idempotency-Key` for a new request. Repeat a request with exactly the same body."
        }
        Code::IdempotencyKeyInUse => "Wait until the first request has ended, then send it again.",
        Code::DuplicateSubmission => {
            "Nothing, if the rows were sent twice by mistake: `detail` names the submission that has them. Otherwise send them with `?allow_duplicate=true`."
        }
        Code::Withdrawn => {
            "Ask the holder for a later release; `GET /v1/releases/{id}` has the reason and the time."
        }
        Code::LegalHold => {
            "Delete it after the hold was lifted (`DELETE /v1/datasets/{id}/legal-hold`), once the reason has ended."
        }
        Code::ApprovalRequired => {
            "Have another token of the organization approve the release: `POST /v1/releases/{id}/approval`."
        }
        Code::BelowPolicy => {
            "Change what `pointer` names so that it meets the line of the policy in `detail`, or have the policy changed (`PUT /v1/policy`)."
        }
        Code::CompositionRisk => {
            "`GET /v1/releases/{id}/composition?recipient=NAME` has the figures. Grant another \
             release, such as another step of the same run, or say in \
             `acknowledge_composition_risk` why the risk is taken."
        }
        Code::GrantExists => "Use the existing grant, or withdraw it before you create another.",
        Code::TooLarge => {
            "Send less at once, such as the rows in several submissions. The operator can raise the limit that `detail` names."
        }
        Code::UnsupportedMediaType => {
            "Send one of the media types, charsets and encodings that `detail` names, and declare it in the header."
        }
        Code::RangeNotSatisfiable => {
            "Request bytes inside the content; `Content-Range` has its size."
        }
        Code::InvalidSchema => "Fix the columns that the pointers name; all faults are listed.",
        Code::InvalidTaxonomy => {
            "Fix the node or row that is named. Labels are not empty and are unique in the tree; the tree has a root above its leaves and is within the limits."
        }
        Code::InvalidName => "Choose a name of the form that `detail` describes.",
        Code::InvalidHeader => {
            "Name exactly the declared columns, in any order. For a misspelt name, `suggested_fix` has the right one."
        }
        Code::InvalidCells => {
            "Fix the cells that are named by line and column (at most the first 20). Nothing was stored."
        }
        Code::EmptySubmission => "Send at least one row.",
        Code::InvalidPrivacy => {
            "Change the parameter that `pointer` names to a value in its range."
        }
        Code::InvalidJob => {
            "Change the part of the job that `pointer` names so that it fits the dataset's columns and rows."
        }
        Code::NoSuchStep => {
            "Name one of the steps of `GET /v1/jobs/{id}/steps`, or leave `step` out for the last."
        }
        Code::InvalidValue => "Change the value that `pointer` names to one in its range.",
        Code::LimitExceeded => {
            "Declare less. The operator can raise the limit that `detail` names."
        }
        Code::NotAnonymizable => {
            "The error of a job: weaken the model as `detail` says, allow suppression, or send more rows. Nothing was released."
        }
        Code::VerificationFailed => {
            "Report it: the verifier rejected the table that the service made. Nothing was released."
        }
        Code::TooManyRequests => "Wait for the seconds in `Retry-After`.",
        Code::Cancelled => "Nothing: the job was cancelled, or its dataset was deleted.",
        Code::AttemptsExhausted => {
            "The error of a job: its worker died in each attempt. Ask the operator for the log, which has the job's id."
        }
        Code::Internal => {
            "Report it with the answer's `x-request-id`; the service's log has the details under this id."
        }
        Code::QuotaExceeded => {
            "Wait until earlier jobs, uploads or streams of the organization have ended; for stored rows, delete datasets, or have the limit named in the message raised."
        }
        Code::Busy => "Try again after the seconds in `Retry-After`; the message names the limit.",
        Code::StorageFull => {
            "Delete datasets that are not needed, or have the operator free the disk; the message names the limit."
        }
        Code::Unavailable => "Try again after the seconds in `Retry-After`.",
    }
}

/// The table of all codes as Markdown: `docs/errors.md`.
pub fn markdown() -> String {
    let mut text = String::from(
        "# Error codes\n\n\
         Errors are problem documents (RFC 9457) of the media type `application/problem+json`: \
         `{type, title, status, detail, code, errors?}`. `code` is one of this table and never \
         changes its meaning; `type` links to its row on the page `/docs/errors` of the service; \
         `errors` names places by `pointer` (RFC 6901, into a JSON body) or by `line` and \
         `column` (of a file), each with a `detail` and, if there is one, a `suggested_fix`. \
         An error never contains the value of a cell.\n\n\
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

/// The table of all codes as a page. The id of each row is the fragment of the problem's `type`.
pub(crate) fn page() -> Response {
    let content = html! {
        p { "The meaning of each code of a problem document, and what to do about it." }
        table {
            tr { th { "Code" } th { "Status" } th { "Meaning" } th { "What to do" } }
            @for &code in Code::ALL {
                tr id=(code.as_str()) {
                    td { code { (code.as_str()) } }
                    td { (code.status()) }
                    td { (code.title()) }
                    td { (with_code(remedy(code))) }
                }
            }
        }
    };
    html_page("Error codes", &content)
}

/// Text in which the parts between backquotes are marked as code.
fn with_code(text: &str) -> Markup {
    html! {
        @for (index, part) in text.split('`').enumerate() {
            @if index % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}
