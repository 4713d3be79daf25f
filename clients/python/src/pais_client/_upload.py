"""The body of a submission, as a stream of bytes that can be sent again."""

from __future__ import annotations

import hashlib
import io
import os
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, get_args

from ._frame_text import frame_to_csv, frame_to_parquet
from ._frames import is_frame
from .types import Column, RowsFormat

MEDIA_TYPES: dict[str, str] = {
    "csv": "text/csv",
    "tsv": "text/tab-separated-values",
    "ndjson": "application/x-ndjson",
    "parquet": "application/vnd.apache.parquet",
}
FORMAT_BY_SUFFIX: dict[str, RowsFormat] = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".parquet": "parquet",
}
ENCODING_BY_SUFFIX = {".gz": "gzip", ".zst": "zstd"}
CHUNK_BYTES = 1 << 18


@dataclass
class Upload:
    """A request body with its format and compression."""

    format: RowsFormat
    source: Callable[[], Iterator[bytes]]
    encoding: str | None = None
    """The compression that the source already has."""
    replayable: bool = True
    gzip: bool = False
    """Whether to compress the body while it is sent."""
    digest: Any = field(default=None, init=False)

    def headers(self) -> dict[str, str]:
        headers = {"Content-Type": MEDIA_TYPES[self.format]}
        encoding = self.encoding or ("gzip" if self.gzip else None)
        if encoding:
            headers["Content-Encoding"] = encoding
        return headers

    def body(self) -> Iterator[bytes]:
        """Returns the bytes to send; each call starts from the beginning."""
        self.digest = None if self.encoding else hashlib.sha256()
        chunks = self._digested(self.digest)
        return gzip_chunks(chunks) if self.gzip and not self.encoding else chunks

    def sha256(self) -> str | None:
        """Returns the SHA-256 of the uncompressed bytes; `None` if the source is compressed."""
        return None if self.digest is None else str(self.digest.hexdigest())

    def _digested(self, digest: Any) -> Iterator[bytes]:
        for chunk in self.source():
            if digest is not None:
                digest.update(chunk)
            yield chunk


def upload(
    data: Any, format: RowsFormat | None, gzip: bool, columns: list[Column] | None
) -> Upload:
    """Creates an upload from the `data` of `submit`.

    `columns` are those that the dataset declares, for a DataFrame; `None` for a draft.
    """
    if format is not None and format not in get_args(RowsFormat):
        raise ValueError(f"format must be one of {', '.join(get_args(RowsFormat))}, not {format!r}")
    if is_frame(data):
        return upload_from_frame(data, format or "csv", gzip, columns)
    if isinstance(data, (bytes, bytearray, memoryview)):
        content = bytes(data)
        return Upload(format or "csv", lambda: read_chunks(io.BytesIO(content)), gzip=gzip)
    if isinstance(data, (str, os.PathLike)):
        return upload_from_path(Path(data), format, gzip)
    if hasattr(data, "read"):
        return upload_from_file(data, format or "csv", gzip)
    raise TypeError(
        "data must be a path, bytes, a file opened in binary mode or a pandas DataFrame, "
        f"not {type(data).__name__}"
    )


def upload_from_frame(
    frame: Any, format: RowsFormat, gzip: bool, columns: list[Column] | None
) -> Upload:
    if format in ("ndjson", "tsv"):
        raise ValueError(f"a DataFrame can be sent as 'csv' or 'parquet', not as {format!r}")
    write = frame_to_parquet if format == "parquet" else frame_to_csv
    content = write(frame, columns)
    return Upload(format, lambda: read_chunks(io.BytesIO(content)), gzip=gzip)


def upload_from_path(path: Path, format: RowsFormat | None, gzip: bool) -> Upload:
    """Creates an upload of a file; the suffixes of its name give format and compression."""
    encoding = ENCODING_BY_SUFFIX.get(path.suffix.lower())
    suffix = (Path(path.stem) if encoding else path).suffix.lower()
    if format is None and suffix not in FORMAT_BY_SUFFIX:
        raise ValueError(f"the name {path.name} has no known suffix; set format='csv' or another")

    def source() -> Iterator[bytes]:
        with path.open("rb") as file:
            yield from read_chunks(file)

    # Raises for a missing or unreadable file before anything is sent.
    with path.open("rb"):
        pass
    return Upload(format or FORMAT_BY_SUFFIX[suffix], source, encoding=encoding, gzip=gzip)


def upload_from_file(file: IO[bytes], format: RowsFormat, gzip: bool) -> Upload:
    """Creates an upload of an open file from its position; without seek it is sent only once."""
    seekable = getattr(file, "seekable", lambda: False)()
    start = file.tell() if seekable else 0

    def source() -> Iterator[bytes]:
        if seekable:
            file.seek(start)
        yield from read_chunks(file)

    return Upload(format, source, replayable=seekable, gzip=gzip)


def read_chunks(file: IO[bytes]) -> Iterator[bytes]:
    while chunk := file.read(CHUNK_BYTES):
        if not isinstance(chunk, bytes):
            raise TypeError("open the file in binary mode: open(path, 'rb')")
        yield chunk


def gzip_chunks(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Compresses the chunks with gzip, one at a time."""
    compressor = zlib.compressobj(wbits=31)
    for chunk in chunks:
        if piece := compressor.compress(chunk):
            yield piece
    yield compressor.flush()
