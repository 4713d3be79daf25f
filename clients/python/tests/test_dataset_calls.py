"""The calls of `client.datasets`, by the requests that they send."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pandas as pd
import pytest

from pais_client import Client

RISK = {
    "rows": 3,
    "subjects": None,
    "columns": [{"name": "age", "distinctness": 1.0, "separation": 1.0, "unique_share": 1.0}],
    "combinations": [{"columns": ["age", "sex"], "distinctness": 1.0, "unique_share": 1.0}],
    "singling_out": ["age"],
    "feasible": {"k_max": 3, "l_max": 2},
}
DRAFT = {
    "dataset": {"name": "d", "columns": [{"name": "x", "role": "insensitive"}]},
    "format": {"delimiter": ";", "decimal": ",", "thousands": None, "encoding": "utf-8"},
    "reasons": {"x": ["few values"]},
}


def answering(document: Any, seen: list[httpx.Request]) -> Client:
    def handler(request: httpx.Request) -> httpx.Response:
        request.read()
        seen.append(request)
        return httpx.Response(200, json=document)

    return Client("http://service/", "secret", transport=httpx.MockTransport(handler))


def test_risk_is_asked_up_to_l_columns() -> None:
    seen: list[httpx.Request] = []
    client = answering(RISK, seen)
    risk = client.datasets.risk("d", l=2)
    assert risk["feasible"]["k_max"] == 3
    assert risk["columns"][0]["unique_share"] == 1.0
    client.dataset_risk("d")
    assert [(each.method, str(each.url)) for each in seen] == [
        ("GET", "http://service/v1/datasets/d/risk?l=2"),
        ("GET", "http://service/v1/datasets/d/risk"),
    ]


def test_a_change_sends_only_what_changes() -> None:
    seen: list[httpx.Request] = []
    client = answering({"id": "d", "columns": []}, seen)
    client.datasets.patch("d", columns=[{"name": "age", "role": "sensitive", "domain": None}])
    client.datasets.patch("d", description=None, retention_days=30)
    assert [each.method for each in seen] == ["PATCH", "PATCH"]
    assert [json.loads(each.content) for each in seen] == [
        {"columns": [{"name": "age", "role": "sensitive", "domain": None}]},
        {"description": None, "retention_days": 30},
    ]


def test_a_draft_sends_rows_and_how_they_are_written() -> None:
    seen: list[httpx.Request] = []
    client = answering(DRAFT, seen)
    draft = client.datasets.draft(b"x\n1\n", name="d", delimiter=";", encoding="utf-16")
    assert draft["format"]["decimal"] == ","
    assert draft["reasons"] == {"x": ["few values"]}
    client.datasets.draft(pd.DataFrame({"x": [1]}))
    assert dict(seen[0].url.params) == {"name": "d", "delimiter": ";", "encoding": "utf-16"}
    assert not seen[1].url.params
    assert [each.content for each in seen] == [b"x\n1\n", b"x\n1\n"]
    assert seen[0].headers["content-type"] == "text/csv"


def test_datasets_are_listed_by_calling_the_group() -> None:
    seen: list[httpx.Request] = []
    client = answering({"items": [{"id": "d"}], "next_cursor": None}, seen)
    assert [each["id"] for each in client.datasets(page_size=7)] == ["d"]
    assert str(seen[0].url) == "http://service/v1/datasets?limit=7"


def test_a_column_of_several_columns_is_sent_as_declared() -> None:
    seen: list[httpx.Request] = []
    client = answering({"id": "d", "columns": []}, seen)
    client.datasets.create(
        "d",
        [
            {"name": "dx", "role": "sensitive", "kind": "set", "from": ["DX1", "DX2"]},
            {"name": "age", "role": "quasi_identifier", "kind": "numeric", "round": 5},
            {"name": "person", "role": "subject"},
        ],
        missing=["NA"],
    )
    sent = json.loads(seen[0].content)
    assert sent["columns"][0]["from"] == ["DX1", "DX2"]
    assert sent["columns"][1]["round"] == 5
    assert sent["missing"] == ["NA"]


@pytest.mark.parametrize("call", ["draft", "submit"])
def test_a_frame_takes_no_text_format(call: str) -> None:
    client = answering(DRAFT, [])
    frame = pd.DataFrame({"x": [1]})
    with pytest.raises(ValueError, match="thousands"):
        if call == "draft":
            client.datasets.draft(frame, thousands="'")
        else:
            client.submit("d", frame, thousands="'")
