"""DataFrames as input and output, and the errors for invalid ones."""

from __future__ import annotations

import datetime
import gzip
import io
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pandas as pd
import pytest

from pais_client import Client, Conflict, JobCancelled, JobFailed, ProblemError
from pais_client.types import Column, Kind

Connect = Callable[[str, str], Client]

COLUMNS: list[Column] = [
    {"name": "age", "role": "quasi_identifier", "kind": "numeric", "domain": [0, 120]},
    {"name": "sex", "role": "quasi_identifier"},
    {"name": "ward", "role": "insensitive"},
    {"name": "visits", "role": "insensitive", "kind": "numeric"},
    {"name": "diagnosis", "role": "sensitive"},
]


@pytest.fixture(scope="module")
def client(connect: Connect) -> Client:
    return connect("clinic-of-frames", "holder")


@pytest.fixture
def dataset(client: Client, request: pytest.FixtureRequest) -> str:
    return client.create_dataset(request.node.name, COLUMNS)["id"]


@pytest.fixture
def frame() -> pd.DataFrame:
    rows = 40
    return pd.DataFrame(
        {
            "age": [20 + n % 40 for n in range(rows)],
            "sex": ["F" if n % 2 else "M" for n in range(rows)],
            "ward": [f'"{n % 3}", north\nwing' for n in range(rows)],
            "visits": [n % 5 for n in range(rows)],
            "diagnosis": [["flu", "cold", "None"][n % 3] for n in range(rows)],
        },
        index=range(100, 100 + rows),
    )


def test_a_frame_makes_a_round_trip(client: Client, dataset: str, frame: pd.DataFrame) -> None:
    submission = client.submit(dataset, frame, gzip=True)
    assert submission["rows"] == len(frame)
    job = client.create_job(dataset, {"model": "k_anonymity", "k": 5}, release=True)
    job = client.wait(job["id"], timeout=120)
    out = client.release_frame(str(job["release_id"]))

    assert len(out) == len(frame)
    untouched = ["ward", "visits", "diagnosis"]
    assert sorted(out[untouched].itertuples(index=False)) == sorted(
        frame[untouched].itertuples(index=False)
    )
    assert out["visits"].dtype == frame["visits"].dtype
    assert out.groupby(["age", "sex"]).size().min() >= 5
    assert out["age"].astype(str).str.match(r"[\[(].*,.*[\])]|\d+").all()


def test_a_frame_can_be_sent_as_parquet(client: Client, dataset: str, frame: pd.DataFrame) -> None:
    assert client.submit(dataset, frame, format="parquet")["rows"] == len(frame)


def test_missing_values_and_lists_are_sent_as_declared(client: Client) -> None:
    columns: list[Column] = [
        {"name": "city", "role": "quasi_identifier", "missing": ["unknown"]},
        {"name": "drugs", "role": "quasi_identifier", "kind": "set", "separator": ";"},
        {"name": "note", "role": "insensitive"},
    ]
    dataset = client.create_dataset("lists", columns)["id"]
    frame = pd.DataFrame(
        {
            "city": ["Bern", None, float("nan")],
            "drugs": [["a", "b"], ["b"], ("a", "c")],
            "note": [None, "x", "y"],
        }
    )
    same = b"city,drugs,note\nBern,a;b,\nunknown,b,x\nunknown,a;c,y\n"
    first = client.submit(dataset, frame)
    assert first["sha256"] == client.submit(dataset, same, allow_duplicate=True)["sha256"]
    assert frame["drugs"][0] == ["a", "b"], "the caller's frame is unchanged"
    with pytest.raises(ValueError, match="separator"):
        client.submit(dataset, frame.assign(drugs=pd.Series([["a;b"]] * 3)))


def test_released_sets_are_lists_in_parquet(client: Client) -> None:
    columns: list[Column] = [{"name": "drugs", "role": "quasi_identifier", "kind": "set"}]
    dataset = client.create_dataset("disclosed", columns)["id"]
    lists: list[list[str]] = [["b", "a"], ["a", "b"], ["c"], ["c", "d"], [], []]
    frame = pd.DataFrame({"drugs": lists})
    client.submit(dataset, frame)
    job = client.create_job(dataset, {"model": "k_anonymity", "k": 2}, release=True)
    release = str(client.wait(job["id"], timeout=120)["release_id"])
    cells = client.release_frame(release, format="parquet")["drugs"]
    expected = [[], [], ["a", "b"], ["a", "b"], ["c"], ["c"]]
    assert sorted(list(cell) for cell in cells) == expected


def test_bytes_and_files_are_sent_unchanged(
    client: Client, dataset: str, frame: pd.DataFrame, tmp_path: Any
) -> None:
    text = frame.to_csv(index=False).encode()
    packed = tmp_path / "rows.csv.gz"
    packed.write_bytes(gzip.compress(text))
    plain = tmp_path / "rows.csv"
    plain.write_bytes(text)
    number: Any = 7
    sent: list[Any] = [text, io.BytesIO(text), packed, str(plain)]
    with plain.open("rb") as file:
        again = [client.submit(dataset, each, allow_duplicate=True) for each in [*sent, file]]
    sums = {submission["sha256"] for submission in again}
    assert len(sums) == 1
    assert client.dataset(dataset)["rows"] == 5 * len(frame)
    with pytest.raises(ValueError, match="format"):
        client.submit(dataset, tmp_path / "rows.txt", format=None)
    with pytest.raises(FileNotFoundError):
        client.submit(dataset, tmp_path / "absent.csv")
    with pytest.raises(TypeError):
        client.submit(dataset, number)


def test_an_idempotency_key_stores_rows_once(
    client: Client, dataset: str, frame: pd.DataFrame
) -> None:
    first = client.submit(dataset, frame, idempotency_key="batch-1")
    assert client.submit(dataset, frame, idempotency_key="batch-1") == first
    assert client.dataset(dataset)["rows"] == len(frame)
    with pytest.raises(Conflict) as refused:
        client.submit(dataset, frame.head(3), idempotency_key="batch-1")
    assert refused.value.code == "idempotency_key_reused"


def test_rows_take_the_place_of_those_of_another_submission(
    client: Client, dataset: str, frame: pd.DataFrame
) -> None:
    first = client.submit(dataset, frame)
    second = client.submit(dataset, frame.head(2), replaces=first["id"])
    assert second["replaces"] == first["id"]
    assert client.dataset(dataset)["rows"] == 2
    assert [each.get("replaced_by") for each in client.submissions(dataset)] == [second["id"], None]
    with pytest.raises(Conflict) as refused:
        client.submit(dataset, frame.head(3), replaces=first["id"])
    assert refused.value.code == "not_replaceable"


def test_rows_that_the_dataset_has_are_refused_unless_allowed(
    client: Client, dataset: str, frame: pd.DataFrame
) -> None:
    first = client.submit(dataset, frame)
    with pytest.raises(Conflict) as refused:
        client.submit(dataset, frame.iloc[::-1], format="parquet")
    assert refused.value.code == "duplicate_submission"
    assert first["id"] in str(refused.value)
    assert client.dataset(dataset)["rows"] == len(frame)
    client.submit(dataset, frame, allow_duplicate=True)
    assert client.dataset(dataset)["rows"] == 2 * len(frame)


NOON = pd.Timestamp("1987-03-02 12:30:05.25")
CELLS: dict[str, tuple[Any, list[Kind]]] = {
    "true and false": ([True, False], ["categorical"]),
    "true and false and missing": ([True, None], ["categorical"]),
    "nullable booleans": (pd.array([True, None], "boolean"), ["categorical"]),
    "great floats": ([1e16, 0.5], ["categorical", "numeric"]),
    "greater floats": ([1e22, None], ["categorical", "numeric"]),
    "small floats": ([1e-7, 0.1], ["categorical", "numeric"]),
    "floats of 32 bits": (pd.array([0.1, 1e-7], "float32"), ["categorical", "numeric"]),
    "nullable floats of 32 bits": (pd.array([0.1, None], "Float32"), ["categorical", "numeric"]),
    "whole floats": ([2500, None], ["categorical", "numeric"]),
    "whole numbers": ([2**53 + 1, -7], ["categorical", "numeric"]),
    "nullable whole numbers": (pd.array([2**53 + 1, None], "Int64"), ["categorical", "numeric"]),
    "numbers of 64 bits without a sign": ([2**64 - 1, 0], ["categorical", "numeric"]),
    "decimals": ([Decimal("1.10"), Decimal("1E+2")], ["categorical", "numeric"]),
    "numbers and text": ([1, "2"], ["categorical", "numeric"]),
    "digits of dates": ([20240102, None], ["date"]),
    "days": ([pd.Timestamp("1987-03-02"), None], ["categorical", "date", "datetime"]),
    "moments": ([NOON, None], ["categorical", "datetime"]),
    "moments with a zone": ([NOON.tz_localize("Europe/Berlin")] * 2, ["categorical", "datetime"]),
    "date objects": ([datetime.date(1987, 3, 2), None], ["categorical", "date", "datetime"]),
    "times of day": ([datetime.time(12, 30), None], ["categorical"]),
    "categories of text": (pd.Categorical(["b", "a"]), ["categorical"]),
    "categories of floats": (pd.Categorical([1.0, 1e16]), ["categorical", "numeric"]),
    "categories of booleans": (pd.Categorical([True, False]), ["categorical"]),
    "categories of days": (
        pd.Categorical([pd.Timestamp("1987-03-02"), pd.NaT]), ["categorical", "date"]
    ),
    "ordered numbers": (pd.Categorical([1, None], [3, 1], True), ["categorical", "numeric"]),
    "periods": (pd.PeriodIndex(["1987-03", "1988-01"], freq="M"), ["categorical", "date"]),
    "intervals": (pd.cut(pd.Series([1, 25]), [0, 20, 40]), ["categorical"]),
    "lists": ([["b", "a"], []], ["set"]),
    "lists of numbers": ([[2, 1], None], ["set"]),
    "nothing": ([None, None], ["categorical", "numeric", "date"]),
    "text": (["True", " x "], ["categorical"]),
}  # fmt: skip


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        pytest.param(cells, kind, id=f"{name} as {kind}")
        for name, (cells, kinds) in CELLS.items()
        for kind in kinds
    ],
)
def test_a_frame_has_the_same_rows_in_every_format(
    client: Client, cells: Any, kind: Kind
) -> None:
    frame = pd.DataFrame({"x": cells, "row": ["first", "second"]})
    column: Column = {"name": "x", "role": "insensitive", "kind": kind, "missing": ["NA"]}
    if kind == "date":
        column["format"] = "%Y%m%d"
    dataset = client.create_dataset(
        f"every format {uuid.uuid4()}", [column, {"name": "row", "role": "insensitive"}]
    )["id"]
    client.submit(dataset, frame)
    with pytest.raises(Conflict) as refused:
        client.submit(dataset, frame, format="parquet")
    assert refused.value.code == "duplicate_submission"


def test_an_invalid_cell_is_named_by_line_and_column(
    client: Client, dataset: str, frame: pd.DataFrame
) -> None:
    frame["ward"] = "north"
    frame["age"] = frame["age"].astype(object)
    frame.loc[103, "age"] = "fourteen"
    with pytest.raises(ProblemError) as refused:
        client.submit(dataset, frame)
    error = refused.value
    assert error.status == 422
    assert [(each["line"], each["column"]) for each in error.errors] == [(5, "age")]
    assert "line 5, column age" in str(error)
    assert "fourteen" not in str(error)
    assert client.dataset(dataset)["rows"] == 0


def test_undeclared_columns_are_refused(client: Client, dataset: str, frame: pd.DataFrame) -> None:
    with pytest.raises(ProblemError) as refused:
        client.submit(dataset, frame.assign(name="x"))
    assert refused.value.status == 422


def test_a_failed_job_reports_the_reason(client: Client, dataset: str, frame: pd.DataFrame) -> None:
    client.submit(dataset, frame)
    job = client.create_job(dataset, {"model": "k_anonymity", "k": 1000})
    with pytest.raises(JobFailed) as failed:
        client.wait(job["id"], timeout=120)
    assert not isinstance(failed.value, JobCancelled)
    assert failed.value.job["id"] == job["id"]
    assert failed.value.code and failed.value.code == failed.value.problem["code"]
    assert f"{len(frame)} rows" in failed.value.detail
    assert failed.value.detail in str(failed.value)
    with pytest.raises(Conflict):
        client.create_release(job["id"])


def test_a_deleted_dataset_is_not_found(client: Client, dataset: str) -> None:
    client.delete_dataset(dataset)
    with pytest.raises(ProblemError) as refused:
        client.dataset(dataset)
    assert refused.value.status == 404


def test_a_taxonomy_is_created_from_csv(client: Client) -> None:
    made = client.create_taxonomy("job", "Janitor;Blue-collar;Any\nLawyer;White-collar;Any\n")
    assert (made["leaves"], made["root"]["label"]) == (2, "Any")
