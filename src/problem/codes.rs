//! The table of error codes. A code never changes its meaning.

macro_rules! codes {
    ($($name:ident = $code:literal, $status:literal, $title:literal;)+) => {
        /// The codes of errors, each with its HTTP status and its title.
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
            pub(crate) fn status(self) -> u16 {
                match self { $(Self::$name => $status),+ }
            }

            /// The meaning, as a short title.
            pub(crate) fn title(self) -> &'static str {
                match self { $(Self::$name => $title),+ }
            }
        }
    };
}

codes! {
    MalformedJson = "malformed_json", 400, "The body is not valid JSON";
    InvalidShape = "invalid_shape", 400, "The body is not of the documented shape";
    MalformedBody = "malformed_body", 400, "The body cannot be decoded";
    InvalidParameter = "invalid_parameter", 400, "A parameter in path, query or header is not of the documented form";
    Unauthenticated = "unauthenticated", 401, "A valid bearer token is needed";
    Forbidden = "forbidden", 403, "This role may not use this endpoint";
    NotFound = "not_found", 404, "There is no such thing";
    MethodNotAllowed = "method_not_allowed", 405, "This path does not take this method";
    NotAcceptable = "not_acceptable", 406, "None of the accepted media types can be served";
    RequestTimeout = "request_timeout", 408, "The request took too long";
    Conflict = "conflict", 409, "The change does not fit what is stored or under way";
    NameTaken = "name_taken", 409, "The name is taken";
    TaxonomyInUse = "taxonomy_in_use", 409, "A dataset uses the taxonomy";
    JobEnded = "job_ended", 409, "The job has ended";
    JobNotSucceeded = "job_not_succeeded", 409, "The job has not succeeded";
    DatasetDeleted = "dataset_deleted", 409, "The dataset was deleted";
    IdempotencyKeyReused = "idempotency_key_reused", 409, "The idempotency key was used with another body";
    IdempotencyKeyInUse = "idempotency_key_in_use", 409, "A request with this idempotency key is under way";
    DuplicateSubmission = "duplicate_submission", 409, "The dataset has these rows already";
    ApprovalRequired = "approval_required", 409, "The release is not approved";
    CompositionRisk = "composition_risk", 409, "The releases together do not meet the privacy model";
    LegalHold = "legal_hold", 409, "The dataset has a legal hold";
    GrantExists = "grant_exists", 409, "The recipient holds this grant already";
    Withdrawn = "withdrawn", 410, "The release was withdrawn";
    TooLarge = "too_large", 413, "The body is larger than the limit";
    UnsupportedMediaType = "unsupported_media_type", 415, "The media type is not supported";
    RangeNotSatisfiable = "range_not_satisfiable", 416, "The range lies outside the content";
    InvalidSchema = "invalid_schema", 422, "The columns do not make a schema";
    InvalidTaxonomy = "invalid_taxonomy", 422, "The taxonomy is not a tree of distinct labels";
    InvalidName = "invalid_name", 422, "The name is not usable";
    InvalidHeader = "invalid_header", 422, "The header does not name the declared columns";
    InvalidCells = "invalid_cells", 422, "Some cells do not fit their columns";
    EmptySubmission = "empty_submission", 422, "The submission has no rows";
    InvalidPrivacy = "invalid_privacy", 422, "The privacy parameters are out of range";
    InvalidJob = "invalid_job", 422, "The job does not fit the dataset";
    BelowPolicy = "below_policy", 422, "The organization's policy does not allow this";
    NoSuchStep = "no_such_step", 422, "The job has no such step";
    InvalidValue = "invalid_value", 422, "A value is out of range";
    LimitExceeded = "limit_exceeded", 422, "A configured limit is exceeded";
    NotAnonymizable = "not_anonymizable", 422, "No generalization of the table meets the privacy model";
    VerificationFailed = "verification_failed", 500, "The verifier did not accept the release";
    TooManyRequests = "too_many_requests", 429, "Too many requests";
    QuotaExceeded = "quota_exceeded", 429, "The organization has used up its share";
    Cancelled = "cancelled", 409, "The job was cancelled";
    AttemptsExhausted = "attempts_exhausted", 500, "The job was tried too often";
    Internal = "internal", 500, "The service failed";
    Unavailable = "unavailable", 503, "The service is not ready";
    Busy = "busy", 503, "The service is busy";
    StorageFull = "storage_full", 507, "The disk is full";
}
