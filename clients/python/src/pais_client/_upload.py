"""What is submitted, as a stream of bytes that can be sent again."""

from __future__ import annotations

import hashlib
import io
import os
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, get_args

from ._frames import frame_to_csv, frame_to_parquet, is_frame
from .types import Column, Format

MEDIA_TYPES: dict[str, str] = {
    "csv": "text/csv",
    "ndjson": "application/x-ndjson",
    "parquet": "application/vnd.apache.parquet",
}
ENDINGS: dict[str, Format] = {
    ".csv": "csv",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".parquet": "parquet",
}
ENCODINGS = {".gz": "gzip", ".zst": "zstd"}
CHUNK = 1 << 18


@dataclass
class Upload:
    """A body and how it is declared."""

    format: Format
    source: Callable[[], Iterator[bytes]]
    encoding: str | None = None
    """What the source is compressed with already."""
    replayable: bool = True
    gzip: bool = False
    """Whether to compress it on the way."""
    digest: Any = field(default=None, init=False)

    def headers(self) -> dict[str, str]:
        headers = {"Content-Type": MEDIA_TYPES[self.format]}
        encoding = self.encoding or ("gzip" if self.gzip else None)
        if encoding:
            headers["Content-Encoding"] = encoding
        return headers

    def body(self) -> Iterator[bytes]:
        """The bytes to send, from the beginning each time it is called."""
        self.digest = None if self.encoding else hashlib.sha256()
        chunks = self._digested(self.digest)
        return compressed(chunks) if self.gzip and not self.encoding else chunks

    def sha256(self) -> str | None:
        """That of what was sent, before compression; unknown if it was compressed before."""
        return None if self.digest is None else str(self.digest.hexdigest())

    def _digested(self, digest: Any) -> Iterator[bytes]:
        for chunk in self.source():
            if digest is not None:
                digest.update(chunk)
            yield chunk


def upload(
    data: Any, format: Format | None, gzip: bool, columns: Callable[[], list[Column]]
) -> Upload:
    """Makes an upload of whatever `submit` takes; `columns` is asked for DataFrames only."""
    if format is not None and format not in get_args(Format):
        raise ValueError(f"format is one of {', '.join(get_args(Format))}, not {format!r}")
    if is_frame(data):
        return of_frame(data, format or "csv", gzip, columns)
    if isinstance(data, (bytes, bytearray, memoryview)):
        content = bytes(data)
        return Upload(format or "csv", lambda: chunks_of(io.BytesIO(content)), gzip=gzip)
    if isinstance(data, (str, os.PathLike)):
        return of_path(Path(data), format, gzip)
    if hasattr(data, "read"):
        return of_file(data, format or "csv", gzip)
    raise TypeError(
        "data is a path, bytes, a file opened in binary mode or a pandas DataFrame, "
        f"not {type(data).__name__}"
    )


def of_frame(frame: Any, format: Format, gzip: bool, columns: Callable[[], list[Column]]) -> Upload:
    if format == "ndjson":
        raise ValueError("a DataFrame is sent as csv or parquet")
    content = frame_to_parquet(frame) if format == "parquet" else frame_to_csv(frame, columns())
    return Upload(format, lambda: chunks_of(io.BytesIO(content)), gzip=gzip)


def of_path(path: Path, format: Format | None, gzip: bool) -> Upload:
    """A file; `rows.csv.gz` says by its name what it is."""
    encoding = ENCODINGS.get(path.suffix.lower())
    ending = (Path(path.stem) if encoding else path).suffix.lower()
    if format is None and ending not in ENDINGS:
        raise ValueError(f"the name {path.name} does not tell its format: give format='csv'")

    def source() -> Iterator[bytes]:
        with path.open("rb") as file:
            yield from chunks_of(file)

    # Missing or unreadable is told before anything is sent.
    with path.open("rb"):
        pass
    return Upload(format or ENDINGS[ending], source, encoding=encoding, gzip=gzip)


def of_file(file: IO[bytes], format: Format, gzip: bool) -> Upload:
    """An open file from where it stands; one that cannot seek is sent once only."""
    seekable = getattr(file, "seekable", lambda: False)()
    start = file.tell() if seekable else 0

    def source() -> Iterator[bytes]:
        if seekable:
            file.seek(start)
        yield from chunks_of(file)

    return Upload(format, source, replayable=seekable, gzip=gzip)


def chunks_of(file: IO[bytes]) -> Iterator[bytes]:
    while chunk := file.read(CHUNK):
        if not isinstance(chunk, bytes):
            raise TypeError("open the file in binary mode: open(path, 'rb')")
        yield chunk


def compressed(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Gzip, chunk by chunk."""
    compressor = zlib.compressobj(wbits=31)
    for chunk in chunks:
        if piece := compressor.compress(chunk):
            yield piece
    yield compressor.flush()
