"""What a notebook shows: escaped, without fixed colours, else plain dictionaries."""

from __future__ import annotations

import json
import pickle
import re
from html.parser import HTMLParser
from typing import Any

import pandas as pd
import pytest

from pais_client import Anonymized, Schema
from pais_client._documents import (
    DatasetDocument,
    DatasetRiskDocument,
    Document,
    DraftDocument,
    JobDocument,
    ProfileDocument,
    ReleaseDocument,
    ReportDocument,
)
from pais_client._progress import BarHtml, NotebookBar

EVIL = "<script>&\"'"
WARNINGS = [{"code": "exact_range", "detail": EVIL}]
COLUMN = {"name": EVIL, "role": "sensitive", "kind": "numeric", "distinct": 3, "missing": 0}

DOCUMENTS: list[Document] = [
    JobDocument(
        id="j", status=EVIL, progress=0.25, rows=1200, warnings=WARNINGS,
        error={"code": "not_anonymizable", "detail": EVIL},
        definition={"privacy": {"model": "lkc", "sensitive_values": {EVIL: [EVIL]}}},
    ),
    ReleaseDocument(
        id="r", name=EVIL, rows=3, tables=[{"name": EVIL, "rows": 3, "sha256": "00"}],
        cut={EVIL: [EVIL]}, privacy={"k": 3}, verification={"holds": True}, warnings=WARNINGS,
    ),
    ReportDocument(
        rows=3, suppressed_rows=0, risk={"highest": 1 / 3},
        utility={"ncp": 0.5, "ncp_by_column": {EVIL: 0.5}}, warnings=WARNINGS,
    ),
    ProfileDocument(rows=3, columns=[{**COLUMN, "min": 1.0, "max": 9.0}], warnings=WARNINGS),
    DraftDocument(
        dataset={"columns": [{**COLUMN, "taxonomy": {"label": EVIL}}]}, reasons={EVIL: [EVIL]}
    ),
    DatasetDocument(name=EVIL, columns=[{**COLUMN, "domain": [1, 9]}], warnings=WARNINGS),
    DatasetRiskDocument(
        rows=3, columns=[{"name": EVIL, "distinctness": 0.5}], singling_out=[EVIL],
        combinations=[{"columns": [EVIL], "distinctness": 1.0, "unique_share": 1.0}],
        feasible={"k_max": 3, "l_max": 2}, warnings=WARNINGS,
    ),
]  # fmt: skip


class Balance(HTMLParser):
    """Fails if the tags of a document are not nested."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda each: type(each).__name__)
def test_html_is_escaped_nested_and_without_colours(document: Document) -> None:
    html = document._repr_html_()
    assert "<script" not in html
    assert "&lt;script&gt;&amp;&quot;&#x27;" in html
    balance = Balance()
    balance.feed(html)
    balance.close()
    assert balance.open == []
    # Only borders have a colour, half transparent grey, which both themes show.
    styles = set(re.findall(r"([a-z-]+):", " ".join(re.findall(r'style="([^"]*)"', html))))
    assert not styles & {"color", "background", "background-color"}
    assert set(re.findall(r"rgba?\([^)]*\)|#[0-9a-f]{3,6}\b", html)) <= {"rgba(128, 128, 128, 0.5)"}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda each: type(each).__name__)
def test_documents_are_dictionaries(document: Document) -> None:
    assert document == dict(document)
    assert json.loads(json.dumps(document)) == document
    assert pickle.loads(pickle.dumps(document)) == document
    assert type(document)()._repr_html_().startswith("<div")


def test_figures_are_shown() -> None:
    job, release, report, profile, draft, dataset, risk = (each._repr_html_() for each in DOCUMENTS)
    assert 'value="0.2500"' in job and "25 %" in job and "1,200" in job
    assert "not_anonymizable" in job and "exact_range" in job
    assert "yes" in release
    assert "0.3333" in report and ">ncp<" in report
    assert "1 to 9" in profile
    assert "tree below" in draft
    assert "intervals of 1 to 9" in dataset
    assert "greatest feasible k" in risk


def test_a_schema_and_a_result_have_html() -> None:
    schema = Schema.from_frame(pd.DataFrame({EVIL: [1]}))
    assert "&lt;script" in schema._repr_html_() and "<script" not in schema._repr_html_()
    result: Any = Anonymized
    made = result("r", DOCUMENTS[1], DOCUMENTS[2], {"data": pd.DataFrame()})
    assert made._repr_html_().count("exact_range") == 1


def test_a_notebook_shows_a_bar_in_place() -> None:
    shown: list[object] = []

    class Handle:
        def update(self, bar: object) -> None:
            shown.append(bar)

    def display(bar: object, *, display_id: bool) -> Handle:
        assert display_id
        shown.append(bar)
        return Handle()

    bar = NotebookBar(display)
    bar.show(0.5, "running: <searching>")
    bar.close()
    assert [type(each) for each in shown] == [BarHtml, BarHtml]
    html = BarHtml(0.5, "running: <searching>")._repr_html_()
    assert 'value="0.5000"' in html and "&lt;searching&gt;" in html
    assert repr(shown[1]) == "50 % running: <searching>"
