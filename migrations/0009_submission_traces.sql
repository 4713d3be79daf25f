-- The trace of a submission: where traces are on, the span of the request that sent it, as that of a job. The
-- edition that takes it is a part of that trace, whichever process queues it.

ALTER TABLE submissions ADD COLUMN trace_context bytea CHECK (octet_length(trace_context) = 24);
