"""Schemas from DataFrames, with the types of the frame alone and with the service's draft."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import pandas as pd
import pytest

from pais_client import Client, JobFailed, ProblemError, Schema, hierarchies
from pais_client.types import ColumnRole, Privacy

ROLES: tuple[ColumnRole, ...] = get_args(ColumnRole)


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
    assert columns["grade"]["role"] == "sensitive"
    assert columns["grade"]["taxonomy"]["order"] == ["low", "high"]
    assert columns["month"]["role"] == "class"
    assert columns["born"]["taxonomy"] == {"generate": "calendar", "levels": ["year"]}
    assert columns["units"]["missing"] == ["-"]
    assert (changed.name, changed.to_definition()["missing"]) == ("other", ["NA", ""])
    assert schema == Schema.from_frame(visits(), name="visits"), "the first is unchanged"


def test_the_options_of_a_role_come_back_with_it() -> None:
    schema = Schema.from_frame(visits())
    assert by_name(schema.sensitive("grade").quasi_identifier("grade")) == by_name(schema)
    assert by_name(schema.identifier("grade").quasi_identifier("grade")) == by_name(schema)


def test_what_is_proposed_is_left_out_where_it_does_not_fit() -> None:
    schema = Schema.from_frame(visits())
    assert by_name(schema.identifier("grade"))["grade"] == {"name": "grade", "role": "identifier"}
    assert by_name(schema.subject("units"))["units"] == {"name": "units", "role": "subject"}
    changed = by_name(schema.column("grade", kind="date"))["grade"]
    assert changed == {"name": "grade", "role": "quasi_identifier", "kind": "date"}
    changed = by_name(schema.column("grade", order=["low", "high"]))["grade"]
    assert "taxonomy" not in changed
    same = schema.sensitive("grade").column("grade", kind="categorical", missing=["-"])
    assert by_name(same)["grade"]["taxonomy"]["order"] == ["low", "high"]


def test_what_is_set_is_sent_with_every_role() -> None:
    schema = Schema.from_frame(visits()).column("units", round=2, missing=["-"])
    for role in ROLES:
        column = by_name(schema.role(role, "units"))["units"]
        assert (column["round"], column["missing"]) == (2, ["-"]), role
    assert by_name(schema.subject("units").column("units", domain=[0, 9]))["units"] == {
        "name": "units", "role": "subject", "round": 2, "missing": ["-"], "domain": [0, 9],
    }  # fmt: skip


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


def measured() -> pd.DataFrame:
    """A table whose draft rounds a measure and gives diagnoses a hierarchy."""
    rows = 240
    codes = ["D64.9", "D64.1", "I10.0", "I10.1", "J45.0", "J45.1", "K20", "K21"]
    return pd.DataFrame(
        {
            "sex": ["m", "f"] * (rows // 2),
            "age": [20 + 7 * n % 50 for n in range(rows)],
            "haemoglobin": [round(8 + (37 * n % 101) / 13, 2) for n in range(rows)],
            "icd": [codes[n % 8] for n in range(rows)],
        }
    )


MEASURED: dict[str, ColumnRole] = {
    "sex": "quasi_identifier",
    "age": "quasi_identifier",
    "haemoglobin": "insensitive",
    "icd": "sensitive",
}


@pytest.fixture(scope="module")
def drafter(connect: Callable[[str, str], Client]) -> Client:
    return connect("clinic-of-drafted-options", "holder")


@pytest.mark.parametrize("role", ["insensitive", "sensitive", "class"])
@pytest.mark.parametrize("source", ["draft", "schema", "set"])
def test_columns_that_are_released_unchanged_stay_rounded(
    drafter: Client, role: ColumnRole, source: str
) -> None:
    frame, schema, roles = measured(), None, {**MEASURED, "haemoglobin": role}
    if source == "schema":
        schema = Schema.from_frame(frame, client=drafter)
    elif source == "set":
        schema = Schema.from_frame(frame).column("haemoglobin", round=0.5)
    privacy: Privacy = {"model": "k_anonymity", "k": 5}
    result = drafter.anonymize(frame, roles=roles, schema=schema, privacy=privacy, progress=False)
    numbers = pd.to_numeric(result.frame()["haemoglobin"])
    assert len(numbers) > 0 and (numbers * 2 % 1 == 0).all()


@pytest.mark.parametrize("given", [False, True])
def test_a_label_above_sensitive_values_is_no_listed_value(drafter: Client, given: bool) -> None:
    # Without its hierarchy the label would be a value of no row, and bound nothing.
    privacy: Privacy = {"model": "lkc", "l": 2, "k": 2, "c": 0.6}
    privacy["sensitive_values"] = {"icd": ["D64*"]}
    with pytest.raises(JobFailed, match="not a leaf"):
        drafter.anonymize(
            measured(),
            roles=MEASURED,
            hierarchies={"icd": hierarchies.prefix([3])} if given else None,
            privacy=privacy,
            progress=False,
        )


@pytest.mark.parametrize("column", list(MEASURED))
@pytest.mark.parametrize("role", ROLES)
def test_the_service_takes_what_is_drafted_with_every_role(
    drafter: Client, column: str, role: ColumnRole
) -> None:
    schema = Schema.from_frame(measured(), client=drafter).role(role, column)
    drafter.create_dataset(**schema.named(f"{column} as {role}").to_definition())


def test_a_hierarchy_takes_the_place_of_what_was_drafted(drafter: Client) -> None:
    schema = Schema.from_frame(measured(), client=drafter).quasi_identifier("haemoglobin")
    tens = hierarchies.ranges([10])
    for number, changed in enumerate(
        [
            schema.hierarchy("haemoglobin", tens),
            schema.column("age", round=5).column("age", domain=[0, 100]),
            schema.column("age", domain=[0, 100]).hierarchy("age", tens).column("age", domain=None),
            schema.insensitive("age").column("age", round=5),
            schema.column("age", kind="categorical"),
        ]
    ):
        drafter.create_dataset(**changed.named(f"changed {number}").to_definition())


def test_the_service_refuses_what_is_set_for_a_role_without_it(drafter: Client) -> None:
    schema = Schema.from_frame(measured(), name="refused", client=drafter)
    schema = schema.subject("age").column("age", domain=[0, 100])
    with pytest.raises(ProblemError, match="domain"):
        drafter.create_dataset(**schema.to_definition())
    exact = Schema.from_frame(measured(), name="exact", client=drafter)
    with pytest.raises(ProblemError, match="round"):
        drafter.create_dataset(**exact.column("haemoglobin", kind="categorical").to_definition())
