"""New rows are mapped through the cut of a release."""

from __future__ import annotations

import datetime
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from service import Service

from pais_client import Client, transform
from pais_client.types import Column

JOBS = {
    "label": "ANY",
    "children": [
        {"label": "Blue", "children": [{"label": "Janitor"}, {"label": "Mover"}]},
        {"label": "Doctor"},
    ],
}


def release(**cut: list[str]) -> dict[str, Any]:
    columns = [
        {"name": "id", "role": "identifier", "kind": "categorical"},
        {"name": "age", "role": "quasi_identifier", "kind": "numeric"},
        {"name": "born", "role": "quasi_identifier", "kind": "date"},
        {"name": "job", "role": "quasi_identifier", "kind": "categorical", "missing": ["NA"]},
        {"name": "drugs", "role": "quasi_identifier", "kind": "set", "separator": "|"},
    ]
    return {"cut": cut, "codebook": {"columns": columns}}


def test_numbers_and_dates_need_no_taxonomy() -> None:
    shown = release(age=["[0,60)", "[60,99]", "?"], born=["1987-Q3", "1987-W41", "1990s"])
    days = [datetime.date(1987, 9, 30), "1987-10-05", pd.Timestamp("1999-12-31")]
    frame = pd.DataFrame({"id": [1, 2, 3], "age": [59.9, 99, None], "born": days, "ill": "flu"})
    mapped = transform(shown, frame)
    assert list(mapped.columns) == ["age", "born", "ill"]
    assert mapped["age"].tolist() == ["[0,60)", "[60,99]", "?"]
    assert mapped["born"].tolist() == ["1987-Q3", "1987-W41", "1990s"]
    assert frame["age"].tolist()[0] == 59.9


def test_missing_values_are_under_the_only_interval() -> None:
    shown = release(age=["[1,3]"], born=["[1990-01-01,2000-01-01)"])
    frame = pd.DataFrame({"age": [2, None], "born": ["1991-02-03", pd.NA]})
    mapped = transform(shown, frame)
    assert mapped["age"].tolist() == ["[1,3]", "[1,3]"]
    assert mapped["born"].tolist() == ["[1990-01-01,2000-01-01)"] * 2
    # A single number is no interval: nothing says that the missing value is that.
    missing = pd.DataFrame({"age": [5, None]})
    exact = transform(release(age=["5", "?"]), missing)
    assert exact["age"].tolist() == ["5", "?"]
    with pytest.raises(ValueError, match="position 1 of the column 'age'"):
        transform(release(age=["5"]), missing)


def test_labels_below_the_cut_need_the_taxonomy() -> None:
    shown = release(job=["Blue", "Doctor", "?"])
    frame = pd.DataFrame({"job": ["Mover", "Doctor", "NA"]})
    mapped = transform(shown, frame, taxonomies={"job": JOBS})
    assert mapped["job"].tolist() == ["Blue", "Doctor", "?"]
    with pytest.raises(ValueError, match="position 0 of the column 'job'") as refused:
        transform(shown, frame)
    assert "Mover" not in str(refused.value)
    whole = transform(release(job=["*"]), frame)
    assert whole["job"].tolist() == ["*", "*", "*"]


def test_sets_are_mapped_item_by_item() -> None:
    shown = release(drugs=["Blue", "Doctor"])
    frame = pd.DataFrame({"drugs": ["Mover|Doctor|Janitor", ["Doctor"], None]})
    mapped = transform(shown, frame, taxonomies={"drugs": JOBS})
    assert mapped["drugs"].tolist() == ["Blue|Doctor", "Doctor", ""]


def test_what_cannot_be_mapped_is_refused() -> None:
    with pytest.raises(ValueError, match="no cut"):
        transform({"codebook": {"columns": []}}, pd.DataFrame())
    with pytest.raises(ValueError, match="no codebook"):
        transform({"cut": {"age": ["*"]}}, pd.DataFrame())
    with pytest.raises(ValueError, match="no column 'age'"):
        transform(release(age=["[0,60)"]), pd.DataFrame({"job": ["Mover"]}))
    for age in (60, -1, "old"):
        with pytest.raises(ValueError, match="position 0 of the column 'age'"):
            transform(release(age=["[0,60)"]), pd.DataFrame({"age": [age]}))


COLUMNS: list[Column] = [
    {"name": "age", "role": "quasi_identifier", "kind": "numeric", "missing": ["NA"]},
    {"name": "born", "role": "quasi_identifier", "kind": "date", "format": "%d.%m.%Y"},
    {"name": "seen", "role": "quasi_identifier", "kind": "datetime", "format": "%d/%m/%y %H:%M"},
    {"name": "cost", "role": "insensitive", "kind": "numeric", "round": 0.5, "missing": ["6", "-"]},
    {"name": "code", "role": "insensitive"},
]


@pytest.fixture(scope="module")
def shown(connect: Callable[[str, str], Client]) -> dict[str, Any]:
    """A release of dates in a format of their own, and of rounded numbers."""
    client = connect("clinic-of-cuts", "holder")
    dataset = client.create_dataset("cuts", COLUMNS)["id"]
    days = [f"{1 + n % 28:02}.{1 + n % 12:02}.19{50 + n}" for n in range(40)]
    seen = [f"{1 + n % 28:02}/03/20 {n % 24:02}:15" for n in range(40)]
    ages = ["NA" if n % 5 == 1 else str(20 + n) for n in range(40)]
    rows = zip(ages, days, seen, ["10.69", "-"] * 20, ["01", "02"] * 20)
    text = "".join(",".join(map(str, row)) + "\n" for row in rows)
    client.submit(dataset, f"age,born,seen,cost,code\n{text}".encode())
    job = client.create_job(
        dataset,
        {"model": "k_anonymity", "k": 4},
        release=True,
        acknowledge_unchanged={"cost": "it is rounded", "code": "it is compared"},
    )
    return dict(client.release(str(client.wait(job["id"], timeout=120)["release_id"])))


def test_rows_are_mapped_as_the_program_maps_them(
    service: Service, shown: dict[str, Any], tmp_path: Path
) -> None:
    costs = ["10.69", "6.18", "11.52", "0.25", "-0.25", "-0.75", "-", "0.74999", "5.75", "1e2", "7"]
    rows = pd.DataFrame(
        {
            "age": [str(20 + n) if n % 4 else "NA" for n in range(len(costs))],
            "born": ["03.09.1977", "1977-09-03"] * 5 + ["28.02.1989"],
            "seen": ["03/03/20 04:15", "2020-03-03T04:15:00Z"] * 5 + ["05/03/20 23:59"],
            "cost": costs,
            "code": "001",
        }
    )
    file, document = tmp_path / "rows.csv", tmp_path / "release.json"
    rows.to_csv(file, index=False)
    document.write_text(json.dumps(shown))
    done = subprocess.run(
        [service.program, "transform", "--release", str(document), str(file)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    mapped = transform(shown, rows)
    assert mapped.to_csv(index=False) == done.stdout
    assert mapped["cost"].tolist()[:5] == ["10.5", "6.5", "11.5", "0.5", "-0.5"]
    numbers = pd.Series([10.69, 6.18, None, -0.75])
    typed = transform(shown, rows.head(4).assign(cost=numbers))
    assert typed["cost"].dropna().tolist() == [10.5, 6.5, -1]
    whole = transform(shown, rows.head(1).assign(cost=[7]))
    assert whole["cost"].tolist() == [7] and whole["cost"].dtype == "int64"


def test_a_cell_is_refused_for_what_it_is(shown: dict[str, Any]) -> None:
    rows = pd.DataFrame({"age": [20], "born": ["03.09.1977"], "seen": ["2020-03-03T04:15"]})
    for column, cell, why in [
        ("born", "1977/09/03", "no date of ISO 8601 or of the format '%d.%m.%Y'"),
        ("seen", "31.02.2020", "no date"),
        ("age", "young", "no number"),
        ("age", 1000, "no interval of the cut has"),
    ]:
        where = f"position 0 of the column '{column}'"
        with pytest.raises(ValueError, match=f"{where}.*{why}") as refused:
            transform(shown, rows.assign(**{column: [cell]}))
        assert str(cell) not in str(refused.value)
