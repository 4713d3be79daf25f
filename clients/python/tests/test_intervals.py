"""Intervals of pandas become the text of the service, and released labels become intervals."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import get_args

import pandas as pd
import pytest

from pais_client import Client, hierarchies, parse_interval, parse_intervals
from pais_client.intervals import interval_text
from pais_client.types import CalendarLevel, Column


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[30,60)", pd.Interval(30, 60, closed="left")),
        ("[60,99]", pd.Interval(60, 99, closed="both")),
        ("(0.5,1e3]", pd.Interval(0.5, 1000, closed="right")),
        ("34", pd.Interval(34, 34, closed="both")),
        ("-1.5", pd.Interval(-1.5, -1.5, closed="both")),
        ("[60,)", pd.Interval(60, float("inf"), closed="left")),
        ("(0,20]..(40,60]", pd.Interval(0, 60, closed="right")),
    ],
)
def test_released_numbers_are_read(text: str, expected: object) -> None:
    assert parse_interval(text) == expected


@pytest.mark.parametrize(
    ("text", "left", "right"),
    [
        ("[1950-01-01,1960-07-01)", "1950-01-01", "1960-07-01"),
        ("1987", "1987-01-01", "1988-01-01"),
        ("1987-Q3", "1987-07-01", "1987-10-01"),
        ("1987-12", "1987-12-01", "1988-01-01"),
        ("1987-02-28", "1987-02-28", "1987-03-01"),
        ("1980s", "1980-01-01", "1990-01-01"),
        ("2024-W04", "2024-01-22", "2024-01-29"),
        ("1987-W01", "1986-12-29", "1987-01-05"),
        ("2020-W53", "2020-12-28", "2021-01-04"),
        ("0000s", "0001-01-01", "0010-01-01"),
        ("9990s", "9990-01-01", "9999-12-31T23:59:59.999999"),
        ("9999-12-31", "9999-12-31", "9999-12-31T23:59:59.999999"),
    ],
)
def test_released_dates_are_read(text: str, left: str, right: str) -> None:
    expected = pd.Interval(pd.Timestamp(left), pd.Timestamp(right), closed="left")
    assert parse_interval(text, "date") == expected
    assert parse_interval(text, "datetime") == expected


@pytest.mark.parametrize("text", ["2021-W53", "0000", "0000-Q3", "1987-W00", "1987-Q5", "1987-13", "1987-02-30"])
def test_periods_that_the_calendar_does_not_have_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="position 0"):
        parse_intervals([text], "date")


@pytest.mark.parametrize("level", get_args(CalendarLevel))
def test_every_level_that_the_service_releases_is_read(
    connect: Callable[[str, str], Client], level: CalendarLevel
) -> None:
    client = connect("clinic-of-calendars", "holder")
    seen = pd.Series(pd.date_range("1999-12-20", periods=60).repeat(4))
    column: Column = {
        "name": "seen",
        "role": "quasi_identifier",
        "kind": "date",
        "taxonomy": hierarchies.calendar([level]),
    }
    dataset = client.create_dataset(f"by {level}", [column])["id"]
    client.submit(dataset, pd.DataFrame({"seen": seen}))
    job = client.create_job(dataset, {"model": "k_anonymity", "k": 4}, release=True)
    release = str(client.wait(job["id"], timeout=120)["release_id"])
    frame = client.release_frame(release, intervals="bounds")
    found = parse_intervals(frame["seen"], kind="date")
    assert found.notna().all()
    last = found.map(lambda each: each.right - pd.Timedelta(days=1))
    assert found.map(lambda each: each.left.date()).tolist() == frame["seen_lo"].tolist()
    assert last.map(lambda day: day.date()).tolist() == frame["seen_hi"].tolist()


def test_labels_without_bounds_are_missing() -> None:
    cells = ["[1,2)", "*", "?", None, "", pd.NA]
    column = pd.Series(cells, index=[5, 6, 7, 8, 9, 10], name="age")
    found = parse_intervals(column)
    assert list(found.index) == [5, 6, 7, 8, 9, 10]
    assert found.name == "age"
    assert found.isna().tolist() == [False, True, True, True, True, True]
    assert isinstance(found.dtype, pd.IntervalDtype)


def test_intervals_closed_on_different_sides_are_objects() -> None:
    found = parse_intervals(pd.Series(["[1,2)", "[2,3]"]))
    assert found.dtype == object
    assert [each.closed for each in found] == ["left", "both"]


@pytest.mark.parametrize("text", ["[1,2", "1,2)", "[b,a)", "north", "[2,1)", "*..[1,2)", "[1,2,3)"])
def test_other_text_is_refused_without_quoting_it(text: str) -> None:
    with pytest.raises(ValueError, match="position 1") as refused:
        parse_intervals(["[1,2)", text])
    assert text not in str(refused.value)


def test_intervals_survive_being_written_and_read() -> None:
    for _ in range(500):
        left, right = sorted(random.uniform(-1e6, 1e6) for _ in range(2))
        if random.random() < 0.5:
            left, right = float(int(left)), float(int(right) + 1)
        closed = random.choice(["left", "right", "both", "neither"])
        interval = pd.Interval(left, right, closed=closed)  # type: ignore[call-overload,unused-ignore]
        assert parse_interval(interval_text(interval)) == interval
