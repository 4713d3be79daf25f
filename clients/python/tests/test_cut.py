"""New rows are mapped through the cut of a release."""

from __future__ import annotations

import datetime
from typing import Any

import pandas as pd
import pytest

from pais_client import transform

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
