"""A DataFrame has the same values from CSV as from Parquet, whose types the service writes."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from pais_client import Client
from pais_client.types import Column

Connect = Callable[[str, str], Client]

COLUMNS: list[Column] = [
    {"name": "age", "role": "quasi_identifier", "kind": "numeric", "missing": ["-1.0"]},
    {"name": "zip", "role": "quasi_identifier", "missing": ["0"]},
    {"name": "born", "role": "quasi_identifier", "kind": "date"},
    {"name": "seen", "role": "quasi_identifier", "kind": "datetime"},
    {"name": "code", "role": "insensitive"},
    {"name": "agrees", "role": "insensitive"},
    {"name": "note", "role": "insensitive", "missing": [" NA"]},
    {"name": "units", "role": "insensitive", "kind": "numeric", "missing": ["NA", "-9.0"]},
    {"name": "weight", "role": "insensitive", "kind": "numeric"},
    {"name": "serial", "role": "insensitive", "kind": "numeric"},
    {"name": "account", "role": "insensitive", "kind": "numeric"},
    {"name": "died", "role": "insensitive", "kind": "date", "format": "%d.%m.%Y",
     "missing": ["31.12.2999"]},
    {"name": "drugs", "role": "insensitive", "kind": "set"},
    {"name": "diagnosis", "role": "sensitive", "missing": ["."]},
    {"name": "cost", "role": "sensitive", "kind": "numeric", "missing": ["unknown"]},
]  # fmt: skip


def raw(n: int) -> list[str]:
    return [
        str(20 + n % 10) if n % 11 else "-1",
        f"0{1000 + n % 4}",
        f"19{50 + n % 20}-03-{1 + n % 28:02}",
        f"2020-01-{1 + n % 28:02}T{n % 24:02}:15:00",
        ["001", "002"][n % 2],
        ["True", "False"][n % 2],
        ["NA", " NA", "nan", ""][n % 4],
        ["NA", "-9", "3", "4"][n % 4],
        ["70.5", "1e2", ""][n % 3],
        ["9007199254740993", "0.5"][n % 2],
        ["9007199254740993", "7", ""][n % 3],
        ["31.12.2999", "03.09.2001"][n % 2],
        ["", "iron|zinc"][n % 2],
        [".", "NA", "1", "?"][n % 4],
        ["unknown", "5", "7"][n % 3],
    ]


@pytest.fixture(scope="module")
def client(connect: Connect) -> Client:
    return connect("clinic-of-values", "holder")


@pytest.fixture(scope="module")
def dataset(client: Client, tmp_path_factory: pytest.TempPathFactory) -> str:
    rows = pd.DataFrame(map(raw, range(88)), columns=[column["name"] for column in COLUMNS])
    dataset = client.create_dataset("values", COLUMNS)["id"]
    file: Path = tmp_path_factory.mktemp("values") / "rows.csv"
    rows.to_csv(file, index=False)
    client.submit(dataset, file)
    return dataset


def released(client: Client, dataset: str, job: dict[str, Any]) -> str:
    columns = client.dataset(dataset)["columns"]
    others = [column["name"] for column in columns if column["role"] != "quasi_identifier"]
    unchanged = {name: "its values are compared" for name in others}
    made = client.create_job(dataset, **job, release=True, acknowledge_unchanged=unchanged)
    return str(client.wait(made["id"], timeout=120)["release_id"])


def same(client: Client, release: str, table: str, **options: Any) -> pd.DataFrame:
    """Returns a table from CSV, which is equal to that from Parquet with its sets as text."""
    frame = client.release_frame(release, table=table, **options)
    columns = client.release_frame(release, table=table, format="parquet", **options)
    if "drugs" in columns:
        columns["drugs"] = columns["drugs"].map("|".join, na_action="ignore").astype("str")
    assert_frame_equal(frame, columns)
    return frame


@pytest.mark.parametrize("recoding", ["global", "local"])
def test_a_generalized_table(client: Client, dataset: str, recoding: str) -> None:
    job = {"privacy": {"model": "k_anonymity", "k": 4}, "recoding": recoding}
    release = released(client, dataset, job)
    frame = same(client, release, "data")
    assert set(frame["code"]) == {"001", "002"}
    assert set(frame["agrees"]) == {"True", "False"}
    assert set(frame["note"].dropna()) == {"NA", "nan", ""}
    assert sorted(frame["units"].dropna().unique()) == [3, 4]
    assert set(frame["diagnosis"].dropna()) == {"NA", "1", "?"}
    assert set(frame["serial"]) == {Decimal("9007199254740993"), Decimal("0.5")}
    assert frame["account"].dtype == "Int64"
    assert set(frame["account"].dropna()) == {9007199254740993, 7}
    bounds = same(client, release, "data", intervals="bounds")
    assert bounds["age_lo"].dtype.kind in "if"
    assert bounds["seen_hi"].dtype.kind == "M"


def test_the_tables_of_an_anatomized_release(client: Client, dataset: str) -> None:
    job = {"privacy": {"model": "l_diversity", "k": 4, "l": 2}, "roles": {"cost": "insensitive"}}
    release = released(client, dataset, job)
    frame = same(client, release, "qit")
    assert set(frame["zip"]) == {"01000", "01001", "01002", "01003"}
    assert frame["age"].min() == 20
    counted = same(client, release, "st_diagnosis")
    assert counted["count"].sum() == 88
    assert set(counted["diagnosis"].dropna()) == {"NA", "1", "?"}


def test_generalized_sets_beside_other_columns(client: Client) -> None:
    columns: list[Column] = [
        {"name": "zip", "role": "quasi_identifier"},
        {"name": "drugs", "role": "quasi_identifier", "kind": "set"},
        {"name": "code", "role": "insensitive"},
    ]
    dataset = client.create_dataset("sets of values", columns)["id"]
    rows = "".join(f"0{n % 2},{['1|2', '1', ''][n % 3]},0{n % 2}\n" for n in range(24))
    client.submit(dataset, f"zip,drugs,code\n{rows}".encode())
    release = released(client, dataset, {"privacy": {"model": "k_anonymity", "k": 2}})
    frame = same(client, release, "data")
    assert set(frame["code"]) == {"00", "01"}
    assert set(frame["drugs"]) >= {"1", ""}


def test_all_editions_of_a_publication(client: Client, connect: Connect) -> None:
    columns: list[Column] = [
        {"name": "person", "role": "subject"},
        {"name": "age", "role": "quasi_identifier", "kind": "numeric", "domain": [0, 99]},
        {"name": "code", "role": "insensitive"},
        {"name": "units", "role": "insensitive", "kind": "numeric", "missing": ["NA"]},
        {"name": "diagnosis", "role": "sensitive", "missing": ["."]},
    ]
    dataset = client.create_dataset("months of values", columns)["id"]
    job = {"privacy": {"model": "k_anonymity", "k": 2}}
    reader = connect("readers-of-values", "recipient")
    recipients = [{"recipient": "readers-of-values", "purpose": "blood usage"}]
    publication = client.create_publication(
        "months", dataset, job, recipients=recipients, trigger="manual"
    )["id"]
    rows = "".join(
        f"p{n},{[20, 70][n % 2]},0{n % 2},{['NA', 5][n % 2]},{['.', 'NA'][n % 2]}\n"
        for n in range(16)
    )
    client.submit(dataset, f"person,age,code,units,diagnosis\n{rows}".encode())
    client.publish_edition(publication)
    assert len(reader.editions(publication, wait=30)) == 1
    frame = reader.publication_frame(publication)
    assert set(frame["edition"]) == {1}
    assert set(frame["code"]) == {"00", "01"}
    assert frame["units"].dropna().tolist() == [5.0] * 8
    assert frame["diagnosis"].dropna().tolist() == ["NA"] * 8
