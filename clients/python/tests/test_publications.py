"""Publications, against a service."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from pais_client import Client
from pais_client.errors import Conflict


def month(first: int) -> pd.DataFrame:
    """Sixteen visits, of persons from `first` on: each age and ward twice."""
    numbers = range(16)
    return pd.DataFrame(
        {
            "person": [f"p{first + number}" for number in numbers],
            "age": [[20, 70][number // 2 % 2] for number in numbers],
            "ward": [["a", "b", "c", "d"][number // 4] for number in numbers],
            "diagnosis": [f"d{number % 3}" for number in numbers],
        }
    )


def test_editions_are_published_and_read(
    connect: Callable[[str, str], Client], tmp_path: Path
) -> None:
    holder = connect("press", "holder")
    analyst = connect("readers", "recipient")
    dataset = holder.create_dataset(
        "visits",
        [
            {"name": "person", "role": "subject"},
            {"name": "age", "role": "quasi_identifier", "kind": "numeric", "domain": [0, 99]},
            {"name": "ward", "role": "quasi_identifier"},
            {"name": "diagnosis", "role": "sensitive"},
        ],
    )
    publication = holder.create_publication(
        "monthly",
        dataset["id"],
        {"privacy": {"model": "k_anonymity", "k": 2}},
        recipients=[{"recipient": "readers", "purpose": "blood usage"}],
        trigger="manual",
    )
    assert [each["name"] for each in analyst.publications()] == ["monthly"]
    with pytest.raises(Conflict):
        holder.publish_edition(publication["id"])
    for number in range(2):
        holder.submit(dataset["id"], month(100 * number))
        assert holder.publish_edition(publication["id"])["number"] == number + 1
        [edition] = analyst.editions(publication["id"], after=number, wait=30)
        assert (edition["number"], edition["rows"]) == (number + 1, 16)
    manifest = analyst.publication_manifest(publication["id"])
    assert [each["number"] for each in manifest["editions"]] == [1, 2]
    frame = analyst.publication_frame(publication["id"])
    assert list(frame.columns)[0] == "edition"
    assert frame["edition"].value_counts().to_dict() == {1: 16, 2: 16}
    written = analyst.download_publication(publication["id"], tmp_path / "all.csv")
    assert written.read_text().startswith("edition,")
    paused = holder.change_publication(publication["id"], paused=True)
    assert paused["paused"] is True
    holder.delete_publication(publication["id"])
    assert list(holder.publications()) == []
