"""What a DataFrame's cells are sent as: intervals, dates, times, periods, lists, numbers."""

from __future__ import annotations

import datetime
from typing import Any

import pandas as pd
import pytest

from pais_client import Schema
from pais_client._frame_text import frame_to_csv
from pais_client.types import Column, Kind

NOON = pd.Timestamp("1987-03-02 12:30:05")


def sent(values: Any, column: Column | None = None) -> list[str]:
    """Returns the cells as text, with the column declared or in a draft."""
    frame = pd.DataFrame({"x": values})
    text = frame_to_csv(frame, None if column is None else [column]).decode()
    return [line.strip('"') for line in text.splitlines()[1:]]


def kind(word: Kind, format: str | None = None) -> Column:
    return {"name": "x", "role": "quasi_identifier", "kind": word, "format": format}


def test_intervals_of_cut_are_ranges() -> None:
    cut = pd.cut(pd.Series([5, 25, None]), [0, 20, 40])
    assert sent(cut) == ["(0,20]", "(20,40]", ""]
    assert sent(cut.astype(object), kind("categorical")) == ["(0,20]", "(20,40]", ""]
    half = pd.cut(pd.Series([0.25]), [0, 0.5], right=False)
    assert sent(half) == ["[0,0.5)"]
    days = pd.interval_range(pd.Timestamp("2020-01-01"), periods=1, freq="D")
    assert sent(pd.Series(days)) == ["(2020-01-01,2020-01-02]"]


def test_intervals_are_no_cells_of_a_numeric_column() -> None:
    with pytest.raises(ValueError, match=r"'x' has intervals.*Schema\.from_frame"):
        sent(pd.cut(pd.Series([5]), [0, 20]), kind("numeric"))


def test_dates_are_in_iso_8601_or_in_the_declared_format() -> None:
    days = pd.Series([pd.Timestamp("1987-03-02"), pd.NaT])
    assert sent(days) == ["1987-03-02", ""]
    assert sent(days, kind("date")) == ["1987-03-02", ""]
    assert sent(days, kind("date", "%d.%m.%Y")) == ["02.03.1987", ""]
    assert sent(days, kind("datetime")) == ["1987-03-02T00:00:00", ""]
    objects = [datetime.date(1987, 3, 2), None]
    assert sent(pd.Series(objects, dtype=object), kind("date", "%d.%m.%Y")) == ["02.03.1987", ""]
    assert sent(pd.Series(objects, dtype=object)) == ["1987-03-02", ""]


def test_times_keep_their_fraction_and_their_zone() -> None:
    assert sent([NOON], kind("datetime")) == ["1987-03-02T12:30:05"]
    assert sent([NOON + pd.Timedelta("1ms")], kind("datetime")) == ["1987-03-02T12:30:05.001000"]
    berlin = pd.Series([NOON]).dt.tz_localize("Europe/Berlin")
    assert sent(berlin, kind("datetime")) == ["1987-03-02T11:30:05Z"]


def test_a_time_of_day_is_not_dropped_from_a_date() -> None:
    with pytest.raises(ValueError, match="normalize"):
        sent([NOON], kind("date"))


@pytest.mark.parametrize(
    ("freq", "label", "day"),
    [
        ("Y", "1987", "1987-01-01"),
        ("Q", "1987-Q1", "1987-01-01"),
        ("M", "1987-03", "1987-03-01"),
        ("D", "1987-03-02", "1987-03-02"),
    ],
)
def test_periods_are_labels_or_their_first_day(freq: str, label: str, day: str) -> None:
    periods = pd.Series(pd.PeriodIndex(["1987-03-02"], freq=freq))
    assert sent(periods) == [label]
    assert sent(periods, kind("date")) == [day]


def test_codes_with_missing_cells_are_not_made_decimal() -> None:
    codes = pd.Series([2500, None])
    assert sent(codes, kind("categorical")) == ["2500", ""]
    assert sent(codes, kind("numeric")) == ["2500.0", ""]
    assert sent(pd.Series([2.5, None]), kind("categorical")) == ["2.5", ""]


def test_lists_of_a_draft_are_joined() -> None:
    assert sent(pd.Series([["a", "b"], []])) == ["a|b", ""]


def test_column_names_are_text_and_distinct() -> None:
    assert frame_to_csv(pd.DataFrame({0: [1]}), None) == b"0\n1\n"
    with pytest.raises(ValueError, match="same name"):
        frame_to_csv(pd.DataFrame([[1, 2]], columns=["a", "a"]), None)


def test_labels_of_ordered_categories_are_their_cells() -> None:
    for categories in [[1.0, 2.0], [False, True], [NOON.normalize(), NOON], ["low", "high"]]:
        values = pd.Series(pd.Categorical(categories, categories, ordered=True))
        column = Schema.from_frame(pd.DataFrame({"x": values})).columns[0]
        tree: Any = column["taxonomy"]
        assert sent(values, column) == tree["order"]
