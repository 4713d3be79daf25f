//! The table of error codes. A code never changes its meaning.

macro_rules! codes {
    ($($name:ident = $code:literal, $status:literal, $title:literal, $remedy:literal;)+) => {
        /// The codes of errors, each with its HTTP status, its title and what to do about it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code {$(
            #[doc = concat!("`", $code, "` (", stringify!($status), "): ", $title, ".")]
            $name,
        )+}

        impl Code {
            /// All codes, in the order of the table.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// The code as it is sent.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $code),+ }
            }

            /// The HTTP status.
            pub fn status(self) -> u16 {
                match self { $(Self::$name => $status),+ }
            }

            /// The meaning, as a short title.
            pub fn title(self) -> &'static str {
                match self { $(Self::$name => $title),+ }
            }

            /// What to do about an error with this code.
            pub fn remedy(self) -> &'static str {
                match self { $(Self::$name => $remedy),+ }
            }
        }
    };
}

codes! {
    MalformedJson = "malformed_json", 400, "The body is not valid JSON",
        "Fix the JSON at the line and column that `detail` names.";
    InvalidShape = "invalid_shape", 400, "The body is not of the documented shape",
        "Fix the field that `pointer` names: its type, its spelling, a value that is not one of the documented ones, or a parameter of another privacy model.";
    MalformedBody = "malformed_body", 400, "The body cannot be decoded",
        "Send UTF-8 without NUL, close every quote, and make sure that the body has the declared `Content-Type` and `Content-Encoding`.";
    InvalidParameter = "invalid_parameter", 400, "A parameter in path, query or header is not of the documented form",
        "Fix the id in the path (a UUID), the query parameter or the header that `detail` names.";
    Unauthenticated = "unauthenticated", 401, "A valid bearer token is needed",
        "Send `Authorization: Bearer <token>` with a token that is neither expired nor revoked.";
    Forbidden = "forbidden", 403, "This role may not use this endpoint",
        "Use a token of a role that may do this; an `admin` issues one at `POST /v1/tokens`.";
    OfficerRequired = "officer_required", 403, "The organization's privacy officer decides this",
        "Have the officer do it. When all tokens of an organization's officers are revoked or expired, its holders can decide again.";
    NotFound = "not_found", 404, "Not found",
        "Check the id or the path. The response is the same for resources that belong to another organization or were not granted to yours.";
    MethodNotAllowed = "method_not_allowed", 405, "This path does not take this method",
        "Use one of the methods in the header `Allow`.";
    NotAcceptable = "not_acceptable", 406, "None of the accepted media types can be served",
        "Name one of the media types of `detail` in `Accept`, or use `?format=`.";
    RequestTimeout = "request_timeout", 408, "The request took too long",
        "Send the request again; for an upload, without long pauses.";
    Conflict = "conflict", 409, "The change conflicts with stored data or work in progress",
        "Change what `pointer` names differently, wait for the jobs and uploads that `detail` names, retry if another change came first, or declare another dataset.";
    NameTaken = "name_taken", 409, "The name is taken",
        "Choose another name, or use the resource that has the name.";
    TaxonomyInUse = "taxonomy_in_use", 409, "A dataset uses the taxonomy",
        "Delete the datasets that use the taxonomy first, or keep it.";
    JobEnded = "job_ended", 409, "The job has ended",
        "Nothing: the job has ended, so it cannot be cancelled.";
    JobNotSucceeded = "job_not_succeeded", 409, "The job has not succeeded",
        "Wait until the job has succeeded. If it has failed, its `error` says why.";
    DatasetDeleted = "dataset_deleted", 409, "The dataset or its rows were deleted",
        "The rows cannot be restored. Use an earlier release, or declare the dataset and send the rows again.";
    IdempotencyKeyReused = "idempotency_key_reused", 409, "The idempotency key was used with another body",
        "Use a new `Idempotency-Key` for a new request. Repeat a request with exactly the same body, and the same `?replaces=`.";
    IdempotencyKeyInUse = "idempotency_key_in_use", 409, "A request with this idempotency key is in progress",
        "Wait until the first request has ended, then send it again.";
    DuplicateSubmission = "duplicate_submission", 409, "The dataset has these rows already",
        "Nothing, if the rows were sent twice by mistake: `detail` names the submission that has them. Otherwise send them with `?allow_duplicate=true`.";
    NotReplaceable = "not_replaceable", 409, "The submission cannot be replaced",
        "If another submission has taken its place, name that one in `?replaces=`. Rows that were released are replaced only in a dataset with a column of the role `subject`: declare one, and send the rows there.";
    SubmissionReplaced = "submission_replaced", 409, "One of the job's submissions has been replaced",
        "Start the job again: it reads the current submissions. In a publication, the next edition has their rows.";
    LocatedDataset = "located_dataset", 409, "The rows of the dataset are at its location",
        "Declare another dataset: with the `location` of further files, or without one for rows that are sent.";
    LocationChanged = "location_changed", 409, "The objects at the location have changed",
        "Declare another dataset for the current objects; releases of the earlier ones stay. For a file of a release, ask its holder for another release.";
    ReleaseInFiles = "release_in_files", 409, "The rows of the release are only in its files",
        "Fetch the files that `GET /v1/releases/{id}/files` lists. The service has no other copy of the rows, so no other format is available.";
    ApprovalRequired = "approval_required", 409, "The release is not approved",
        "Have another token of the organization approve the release: `POST /v1/releases/{id}/approval`.";
    CompositionRisk = "composition_risk", 409, "The releases together do not meet the privacy model",
        "`GET /v1/releases/{id}/composition?recipient=NAME` has the figures. Grant another release, such as another step of the same run, or state in `acknowledge_composition_risk` why the risk is accepted.";
    NothingNew = "nothing_new", 409, "There are no new rows to publish",
        "Send rows to the dataset first; waiting rows are tried again with the next submission.";
    EditionOpen = "edition_open", 409, "The previous edition is not published yet",
        "Wait until it is published, refused or failed (`GET /v1/publications/{id}/editions`); approve or reject its release if it waits for that.";
    PublicationPaused = "publication_paused", 409, "The publication is paused",
        "Resume it with `PATCH /v1/publications/{id}` and `{\"paused\": false}`.";
    LegalHold = "legal_hold", 409, "The dataset has a legal hold",
        "Lift the hold first (`DELETE /v1/datasets/{id}/legal-hold`), once its reason no longer applies.";
    GrantExists = "grant_exists", 409, "The recipient already has this grant",
        "Use the existing grant, or withdraw it before you create another.";
    Withdrawn = "withdrawn", 410, "The release was withdrawn",
        "Ask the holder for a later release; `GET /v1/releases/{id}` has the reason and the time.";
    TooLarge = "too_large", 413, "The body is larger than the limit",
        "Send less at once, such as the rows in several submissions. The operator can raise the limit that `detail` names.";
    UnsupportedMediaType = "unsupported_media_type", 415, "The media type is not supported",
        "Send one of the media types, charsets and encodings that `detail` names, and declare it in the header.";
    RangeNotSatisfiable = "range_not_satisfiable", 416, "The range lies outside the content",
        "Request bytes inside the content; `Content-Range` has its size.";
    InvalidSchema = "invalid_schema", 422, "The columns do not make a schema",
        "Fix the columns that the pointers name; all errors are listed.";
    InvalidTaxonomy = "invalid_taxonomy", 422, "The taxonomy is not a tree of distinct labels",
        "Fix the node or row that is named. Labels are not empty and are unique in the tree; the tree has a root above its leaves and is within the limits.";
    InvalidName = "invalid_name", 422, "The name is not usable",
        "Choose a name of the form that `detail` describes.";
    InvalidHeader = "invalid_header", 422, "The header does not name the declared columns",
        "Name exactly the declared columns, in any order. For a misspelt name, `suggested_fix` has the right one.";
    InvalidCells = "invalid_cells", 422, "Some cells do not fit their columns",
        "Fix the cells that are named by line and column (at most the first 20). Nothing was stored.";
    EmptySubmission = "empty_submission", 422, "The submission has no rows",
        "Send at least one row.";
    InvalidPrivacy = "invalid_privacy", 422, "The privacy parameters are out of range",
        "Change the parameter that `pointer` names to a value in its range.";
    InvalidJob = "invalid_job", 422, "The job does not fit the dataset",
        "Change the part of the job that `pointer` names so that it fits the dataset's columns and rows.";
    UnchangedKey = "unchanged_key", 422, "A column that is nearly a key would be released unchanged",
        "Each column in `errors` has nearly as many values as rows, or values of its own for nearly all persons, so its values single out persons. Make it a quasi-identifier in `roles`, declare `round` for its numbers, declare it an `identifier`, which is not stored, or say in `acknowledge_unchanged` why it must be released.";
    BelowPolicy = "below_policy", 422, "The organization's policy does not allow this",
        "Change what `pointer` names so that it meets the line of the policy in `detail`, or have the policy changed (`PUT /v1/policy`).";
    NoSuchStep = "no_such_step", 422, "The job has no such step",
        "Name one of the steps of `GET /v1/jobs/{id}/steps`, or leave `step` out for the last.";
    InvalidValue = "invalid_value", 422, "A value is out of range",
        "Change the value that `pointer` names to one in its range.";
    LocationNotGranted = "location_not_granted", 422, "The location is not granted to the organization",
        "Name a URL below one of the prefixes that the operator has granted to the organization (`object_stores`). The response does not depend on what is there.";
    LimitExceeded = "limit_exceeded", 422, "A configured limit is exceeded",
        "Declare less. The operator can raise the limit that `detail` names.";
    NotAnonymizable = "not_anonymizable", 422, "No generalization of the table meets the privacy model",
        "The error of a job: weaken the model as `detail` says, allow suppression, or send more rows. Nothing was released.";
    VerificationFailed = "verification_failed", 500, "The verifier did not accept the release",
        "Report it: the verifier rejected the table that the service made. Nothing was released.";
    TooManyRequests = "too_many_requests", 429, "Too many requests",
        "Wait for the seconds in `Retry-After`.";
    QuotaExceeded = "quota_exceeded", 429, "The organization has used up its quota",
        "Wait until earlier jobs, uploads or streams of the organization have ended; for stored rows, delete datasets, or have the limit named in the message raised.";
    Cancelled = "cancelled", 409, "The job was cancelled",
        "Nothing: the job was cancelled, or its dataset was deleted.";
    AttemptsExhausted = "attempts_exhausted", 500, "The job was tried too often",
        "The error of a job: its worker died in each attempt. Ask the operator for the log, which has the job's id.";
    Internal = "internal", 500, "The service failed",
        "Report it with the response's `x-request-id`; the service's log has the details under this id.";
    Unavailable = "unavailable", 503, "The service is not ready",
        "Try again after the seconds in `Retry-After`.";
    LocationUnavailable = "location_unavailable", 503, "The object store of the location cannot be used",
        "Try again later; if the error persists, ask the operator to check the service's log: the store does not answer, or refuses the credentials of the service.";
    ExecutorUnavailable = "executor_unavailable", 503, "The executor could not count the rows",
        "Start the job again later; if the error persists, ask the operator to check the logs of the service and the executors: none of them answers, or their answers were void three times in a row.";
    Busy = "busy", 503, "The service is busy",
        "Try again after the seconds in `Retry-After`; the message names the limit.";
    StorageFull = "storage_full", 507, "The disk is full",
        "Delete datasets that are not needed, or have the operator free the disk; the message names the limit.";
}
