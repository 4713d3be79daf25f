"""What the OpenAPI document says in words only, so that Schemathesis respects it.

A body whose `Content-Encoding` is gzip or zstd must be compressed, and a hierarchy in CSV needs a name
in the query. To the document a table or a hierarchy is any text or bytes. So one that shall be accepted
is replaced by a real one here, Parquet by the file that PAIS_PARQUET names, and one that shall be
refused by a damaged one.
"""

import os
import pathlib

import schemathesis

TABLES = {
    "text/csv": b"ID,Job,Age\n1,Janitor,34\n2,Doctor,58\n",
    "text/tab-separated-values": b"ID\tJob\tAge\n1\tJanitor\t34\n",
    "application/x-ndjson": b'{"ID": "1", "Job": "Janitor", "Age": 34}\n',
    "application/vnd.apache.parquet": pathlib.Path(os.environ["PAIS_PARQUET"]).read_bytes(),
}
DAMAGED = {
    "text/csv": b'ID,Job\n"1,Janitor\n',
    "text/tab-separated-values": b'ID\tJob\n"1\tJanitor\n',
    "application/x-ndjson": b'{"ID": \n',
    "application/vnd.apache.parquet": b"PAR1",
}
HIERARCHY = "Janitor;Blue-collar;ANY\nDoctor;White-collar;ANY\n"
TWO_ROOTS = "a;b;x\nc;d;y\n"


@schemathesis.hook
def before_call(context, case, kwargs):
    for header in list(case.headers or {}):
        if header.lower() == "content-encoding":
            del case.headers[header]
    is_negative = case.meta is not None and case.meta.generation.mode.is_negative
    if case.path == "/v1/taxonomies":
        if case.method.upper() == "POST" and case.media_type == "text/csv":
            case.query = {"name": "rows", **(case.query or {})}
            case.body = TWO_ROOTS if is_negative else HIERARCHY
    elif case.media_type in TABLES:
        case.body = (DAMAGED if is_negative else TABLES)[case.media_type]


@schemathesis.serializer(
    "application/vnd.apache.parquet",
    "application/x-ndjson",
    "text/csv",
    "text/tab-separated-values",
)
def as_bytes(context, value):
    return value if isinstance(value, bytes) else str(value).encode()
