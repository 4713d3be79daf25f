-- The trace of a job: where traces are on, the span of the request that made it, as the random ids of the
-- trace (16 bytes) and of the span (8 bytes). Its attempts are parts of that trace, in whichever process.

ALTER TABLE jobs ADD COLUMN trace_context bytea CHECK (octet_length(trace_context) = 24);
