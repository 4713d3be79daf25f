"""Schemas from DataFrames, with the types of the frame alone and with the service's draft."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from pais_client import Client, Schema, hierarchies


def visits() -> pd.DataFrame:
    rows = 60
    months = pd.period_range("1987-11", periods=3, freq="M")
    return pd.DataFrame(
        {
            "patient": [f"P{n:03}" for n in range(rows)],
            "age": pd.cut([20 + n for n in range(rows)], [0, 40, 60, 100]),
            "born": pd.date_range("1950-01-01", periods=rows, freq="90D"),
            "month": pd.PeriodIndex([months[n % 3] for n in range(rows)]),
            "grade": pd.Categorical(
                [["low", "high"][n % 2] for n in range(rows)], ["low", "high"], ordered=True
            ),
            "drugs": [["iron", "zinc"][: n % 3] for n in range(rows)],
            "units": [n % 5 for n in range(rows)],
            "diagnosis": ["flu", "cold", "asthma"] * 20,
        }
    )


def by_name(schema: Schema) -> dict[str, dict[str, Any]]:
    return {column["name"]: dict(column) for column in schema.to_definition()["columns"]}


def test_the_types_of_a_frame_give_kinds_and_orders() -> None:
    columns = by_name(Schema.from_frame(visits()))
    assert {name: column.get("kind") for name, column in columns.items()} == {
        "patient": None,
        "age": "categorical",
        "born": "date",
        "month": "categorical",
        "grade": "categorical",
        "drugs": "set",
        "units": "numeric",
        "diagnosis": None,
    }
    assert columns["age"]["taxonomy"]["order"] == ["(0,40]", "(40,60]", "(60,100]"]
    assert columns["grade"]["taxonomy"]["order"] == ["low", "high"]
    year = [{"label": "1987-11"}, {"label": "1987-12"}]
    years = [
        {"label": "1987", "children": year},
        {"label": "1988", "children": [{"label": "1988-01"}]},
    ]
    decade = {"label": "1980s", "children": years}
    assert columns["month"]["taxonomy"] == {"label": "*", "children": [decade]}


def test_without_a_draft_nothing_is_released_as_it_is() -> None:
    schema = Schema.from_frame(visits())
    assert {column["role"] for column in schema.columns} == {"quasi_identifier"}
    assert all("not decided" in reasons[0] for name, reasons in schema.reasons.items()
               if name in ("patient", "diagnosis", "units", "born"))  # fmt: skip


def test_methods_return_changed_copies() -> None:
    schema = Schema.from_frame(visits(), name="visits")
    changed = (
        schema.identifier("patient")
        .insensitive("units")
        .sensitive("diagnosis", "grade")
        .class_column("month")
        .hierarchy("born", hierarchies.calendar(["year"]))
        .column("units", missing=["-"])
        .missing_words("NA", "")
        .named("other")
    )
    columns = by_name(changed)
    assert columns["patient"] == {"name": "patient", "role": "identifier"}
    assert columns["grade"] == {"name": "grade", "role": "sensitive", "kind": "categorical"}
    assert columns["month"]["role"] == "class"
    assert columns["born"]["taxonomy"] == {"generate": "calendar", "levels": ["year"]}
    assert columns["units"]["missing"] == ["-"]
    assert (changed.name, changed.to_definition()["missing"]) == ("other", ["NA", ""])
    assert schema == Schema.from_frame(visits(), name="visits"), "the first is unchanged"


def test_the_options_of_a_role_come_back_with_it() -> None:
    schema = Schema.from_frame(visits())
    assert by_name(schema.sensitive("grade").quasi_identifier("grade")) == by_name(schema)


def test_unknown_columns_are_named() -> None:
    schema = Schema.from_frame(visits())
    with pytest.raises(KeyError, match="'weight'"):
        schema.sensitive("weight")
    with pytest.raises(KeyError, match="'weight'"):
        schema.column("weight", kind="numeric")


def test_a_draft_gives_roles_and_reasons(connect: Callable[[str, str], Client]) -> None:
    client = connect("clinic-of-schemas", "holder")
    schema = Schema.from_frame(visits(), name="drafted", client=client)
    columns = by_name(schema)
    assert columns["patient"]["role"] == "identifier"
    assert columns["diagnosis"]["role"] == "sensitive"
    assert columns["born"]["kind"] == "date"
    assert columns["age"]["taxonomy"]["order"] == ["(0,40]", "(40,60]", "(60,100]"]
    assert any("distinct" in reason for reason in schema.reasons["patient"])
    assert schema.reasons["age"] == ("its cells are intervals, in their order",)
    assert list(client.datasets()) == [], "a draft stores nothing"


@pytest.mark.parametrize("drafted", [False, True])
@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_a_schema_takes_the_rows_of_its_frame(
    connect: Callable[[str, str], Client], drafted: bool, format: Any
) -> None:
    client = connect("clinic-of-frames-with-schemas", "holder")
    schema = Schema.from_frame(visits(), client=client if drafted else None)
    schema = schema.identifier("patient").sensitive("diagnosis").insensitive("drugs", "units")
    schema = schema.quasi_identifier("grade")
    definition = schema.named(f"{drafted} {format}").to_definition()
    dataset = client.create_dataset(**definition)
    assert client.submit(dataset["id"], visits(), format=format)["rows"] == len(visits())
    job = client.create_job(dataset["id"], {"model": "k_anonymity", "k": 5}, release=True)
    release = client.release_frame(str(client.wait(job["id"], timeout=120)["release_id"]))
    assert release.groupby(["age", "born", "month", "grade"]).size().min() >= 5
