"""One release in every format: all formats contain the same table, read by common tools."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pais_client import Client
from pais_client.types import Column

COLUMNS: list[Column] = [
    {"name": "patient", "role": "identifier"},
    {"name": "age", "role": "quasi_identifier", "kind": "numeric", "domain": [0, 120]},
    {"name": "sex", "role": "quasi_identifier"},
    {"name": "units", "role": "insensitive", "kind": "numeric"},
    {"name": "haemoglobin", "role": "insensitive", "kind": "numeric"},
    {"name": "drugs", "role": "insensitive", "kind": "set"},
    {"name": "note", "role": "insensitive"},
    {"name": "diagnosis", "role": "sensitive"},
]
ROWS = 60


def raw_row(n: int) -> list[Any]:
    haemoglobin = "" if n % 7 == 0 else f"{9 + n / 10:.1f}"
    note = "" if n % 5 == 0 else f'said "{n}", left'
    drugs = "|".join(["heparin", "iron", "zinc"][: n % 4])
    return [n, n % 90, "FM"[n % 2], n % 6, haemoglobin, drugs, note, ["A", "B", "C"][n % 3]]


@pytest.fixture(scope="module")
def files(connect: Callable[[str, str], Client], tmp_path_factory: Any) -> dict[str, Path]:
    client = connect("clinic-of-formats", "holder")
    folder = tmp_path_factory.mktemp("formats")
    raw = folder / "raw.csv"
    with raw.open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(column["name"] for column in COLUMNS)
        writer.writerows(raw_row(n) for n in range(ROWS))
    dataset = client.create_dataset("formats", COLUMNS)["id"]
    client.submit(dataset, raw)
    keys = {"haemoglobin": "its exact numbers are compared", "note": "its quotes are compared"}
    job = client.create_job(
        dataset, {"model": "k_anonymity", "k": 5}, release=True, acknowledge_unchanged=keys
    )
    release = str(client.wait(job["id"], timeout=120)["release_id"])
    formats: tuple[Any, ...] = ("csv", "ndjson", "parquet")
    return {
        each: client.download(release, folder / f"released.{each}", format=each) for each in formats
    }


def as_csv(value: Any) -> str:
    """Returns a typed value as it is written in CSV."""
    if value is None:
        return ""
    if isinstance(value, list):
        return "|".join(value)
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def number(text: str) -> str:
    return as_csv(float(text)) if text else ""


def test_all_formats_contain_the_same_table(files: dict[str, Path]) -> None:
    with files["csv"].open(newline="") as lines:
        header, *rows = csv.reader(lines)
    assert header == [str(column["name"]) for column in COLUMNS[1:]]
    assert len(rows) == ROWS
    numeric = [header.index(name) for name in ("units", "haemoglobin")]
    for row in rows:
        for position in numeric:
            row[position] = number(row[position])
    objects = [json.loads(text) for text in files["ndjson"].read_text().splitlines()]
    assert [list(each) for each in objects] == [header] * ROWS
    assert [[as_csv(value) for value in each.values()] for each in objects] == rows
    table = pq.read_table(files["parquet"])
    assert table.column_names == header
    assert [[as_csv(each[name]) for name in header] for each in table.to_pylist()] == rows


def test_pyarrow_reads_the_declared_types(files: dict[str, Path]) -> None:
    schema = pq.read_schema(files["parquet"])
    assert schema.field("units").type == pa.int64()
    assert schema.field("haemoglobin").type == pa.float64()
    assert schema.field("drugs").type.value_type == pa.string()
    for name in ("age", "sex", "note", "diagnosis"):
        field = schema.field(name).type
        text = field.value_type if pa.types.is_dictionary(field) else field
        assert text == pa.string(), name
    table = pq.read_table(files["parquet"])
    assert table["haemoglobin"].null_count == len([n for n in range(ROWS) if n % 7 == 0])
    assert table["age"].null_count == 0


def test_duckdb_can_query_the_parquet_file(files: dict[str, Path]) -> None:
    with duckdb.connect() as database:
        path = str(files["parquet"])
        described = database.execute("DESCRIBE SELECT * FROM read_parquet(?)", [path]).fetchall()
        assert {name: kind for name, kind, *_ in described} == {
            "age": "VARCHAR",
            "sex": "VARCHAR",
            "units": "BIGINT",
            "haemoglobin": "DOUBLE",
            "drugs": "VARCHAR[]",
            "note": "VARCHAR",
            "diagnosis": "VARCHAR",
        }
        smallest = database.execute(
            "SELECT min(n) FROM (SELECT count(*) AS n FROM read_parquet(?) GROUP BY age, sex)",
            [path],
        ).fetchone()
        assert smallest is not None and smallest[0] >= 5
        iron = database.execute(
            "SELECT count(*) FROM read_parquet(?) WHERE list_contains(drugs, 'iron')", [path]
        ).fetchone()
        assert iron == (len([n for n in range(ROWS) if n % 4 >= 2]),)
