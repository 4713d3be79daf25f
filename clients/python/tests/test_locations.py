"""Rows are read from a location, and a release is written to one."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from service import Service

from pais_client import Client, IntegrityError, ProblemError
from pais_client.types import Column

COLUMNS: list[Column] = [
    {"name": "age", "role": "quasi_identifier", "kind": "numeric", "domain": [0, 99]},
    {"name": "illness", "role": "insensitive"},
]


def test_a_release_of_files_is_files(service: Service, holder: Client, tmp_path: Path) -> None:
    folder = service.share / "patients"
    folder.mkdir()
    for part in range(2):
        ages = [(7 * row + part) % 100 for row in range(200)]
        table = pa.table({"age": ages, "illness": ["flu", "cold"] * 100})
        pq.write_table(table, folder / f"part-{part}.parquet")
    dataset = holder.create_dataset(
        "located", COLUMNS, location={"url": f"file://{folder}", "format": "parquet"}
    )
    assert dataset["rows"] == 400
    assert dataset["location"] == {"url": f"file://{folder}", "format": "parquet"}
    job = holder.create_job(
        dataset["id"],
        {"model": "k_anonymity", "k": 5},
        release={"location": {"url": f"file://{service.share}/out"}},
    )
    release = holder.wait(job["id"])["release_id"]
    assert release is not None
    files = list(holder.release_files(release))
    assert [(file["table"], file["rows"]) for file in files] == [("data", 400)]
    fetched = holder.download_file(release, files[0], tmp_path / files[0]["name"])
    whole = holder.download(release, tmp_path / "whole.parquet", format="parquet")
    assert pq.read_table(fetched).equals(pq.read_table(whole))
    with pytest.raises(IntegrityError):
        holder.download_file(release, {**files[0], "sha256": "0" * 64}, tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_a_location_that_is_not_granted_is_refused(holder: Client) -> None:
    with pytest.raises(ProblemError) as refused:
        holder.create_dataset("etc", COLUMNS, location={"url": "file:///etc", "format": "parquet"})
    assert refused.value.code == "location_not_granted"
