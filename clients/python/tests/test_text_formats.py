"""Text that is not plain CSV is sent as it is, with how it is written."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import httpx
import pytest

from pais_client import Client, ProblemError

GERMAN = "Größe;paid\n180,5;1.234,50\n171;\n".encode("latin-1")


def recorded(seen: list[httpx.Request]) -> Client:
    def handler(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        digest = hashlib.sha256(request.read()).hexdigest()
        return httpx.Response(201, json={"id": "s", "sha256": digest})

    return Client("http://service/", "secret", transport=httpx.MockTransport(handler))


def test_the_text_format_is_in_the_query() -> None:
    seen: list[httpx.Request] = []
    with recorded(seen) as client:
        client.submit("d", GERMAN, delimiter=";", decimal=",", thousands=".", encoding="iso-8859-1")
        client.submit("d", GERMAN)
    assert dict(seen[0].url.params) == {
        "delimiter": ";",
        "decimal": ",",
        "thousands": ".",
        "encoding": "iso-8859-1",
    }
    assert seen[0].content == GERMAN
    assert not seen[1].url.params


def test_a_tsv_file_has_its_media_type(tmp_path: Path) -> None:
    seen: list[httpx.Request] = []
    path = tmp_path / "rows.tsv"
    path.write_bytes(b"a\tb\n1\t2\n")
    with recorded(seen) as client:
        client.submit("d", path)
        client.submit("d", b"a\n1\n", format="tsv")
    types = [request.headers["content-type"] for request in seen]
    assert types == ["text/tab-separated-values"] * 2


def test_a_frame_takes_no_text_format() -> None:
    pandas: Any = pytest.importorskip("pandas")
    with recorded([]) as client, pytest.raises(ValueError, match="decimal"):
        client.submit("d", pandas.DataFrame({"a": [1]}), decimal=",")


def test_a_refused_file_has_its_faults_by_column() -> None:
    def handler(_: httpx.Request) -> httpx.Response:
        document = {"code": "invalid_cells", "detail": "no", "errors_by_column": {"paid": 7}}
        return httpx.Response(422, json=document)

    transport = httpx.MockTransport(handler)
    client = Client("http://service/", "secret", transport=transport)
    with client, pytest.raises(ProblemError) as refused:
        client.submit("d", GERMAN)
    assert refused.value.errors_by_column == {"paid": 7}
