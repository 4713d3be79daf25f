"""Trees from dictionaries, frames and files, and descriptions of those that the service makes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

import pandas as pd
import pytest

from pais_client import Client, hierarchies
from pais_client.types import Column, GeneratedHierarchy, TaxonomyNode

JOBS = "Janitor;Blue-collar;ANY\nMover;Blue-collar;ANY\nLawyer;White-collar;ANY\n"


def shown(node: TaxonomyNode) -> str:
    """Returns a tree as `label(child child)`."""
    below = " ".join(shown(child) for child in node.get("children", []))
    return f"{node['label']}({below})" if below else node["label"]


def test_nested_dictionaries_are_a_tree() -> None:
    tree = hierarchies.from_nested(
        {"Blue": {"Technical": ["Carpenter"], "Janitor": None}, "White": ["Doctor", "Lawyer"]}
    )
    assert shown(tree) == "*(Blue(Technical(Carpenter) Janitor) White(Doctor Lawyer))"
    assert shown(hierarchies.from_nested(["a", "b"], "Any")) == "Any(a b)"


def test_a_frame_of_levels_is_a_tree() -> None:
    levels = pd.DataFrame(
        {"zip": [2500, 2511, 2500, 999], "region": ["25", "25", "25", None], "top": ["CH"] * 4}
    )
    assert shown(hierarchies.from_levels(levels)) == "CH(25(2500 2511) 999)"
    assert shown(hierarchies.from_levels(levels[["zip", "region"]])) == "*(25(2500 2511) 999)"


def test_a_file_of_arx_is_a_tree() -> None:
    expected = "ANY(Blue-collar(Janitor Mover) White-collar(Lawyer))"
    assert shown(hierarchies.from_csv("\ufeff" + JOBS.replace("\n", "\r\n"))) == expected
    assert shown(hierarchies.from_csv(JOBS.replace(";", ","))) == expected
    ragged = 'a;x;*\nb;*\n\nc;c;*\n"d;e";x;*\n'
    assert shown(hierarchies.from_csv(ragged)) == "*(x(a d;e) b c)"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a;x;*\na;y;*\n", "row 2.*below 'y', but below 'x'"),
        ("a;x;*\nx;*\n", "row 2.*'x' is a leaf"),
        ('a;"x\n', "line 1"),
        ("\n", "no labels"),
        ("a;x\nb;*\n", "label '\\*' already"),
    ],
)
def test_rows_that_make_no_tree_are_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        hierarchies.from_csv(text)


def test_deep_trees_do_not_exhaust_the_stack() -> None:
    path = [f"n{level}" for level in range(5000)]
    tree = hierarchies.from_csv(";".join(reversed(path)))
    depth = 1
    while "children" in tree:
        tree, depth = tree["children"][0], depth + 1
    assert depth == 5000


def test_the_service_makes_the_same_tree_of_a_file(connect: Callable[[str, str], Client]) -> None:
    client = connect("clinic-of-trees", "holder")
    from_text = client.create_taxonomy("text", JOBS)
    from_tree = client.create_taxonomy("tree", hierarchies.from_csv(JOBS))
    assert shown(from_text["root"]) == shown(from_tree["root"])
    client.delete_taxonomy(from_text["id"])
    assert [each["name"] for each in client.taxonomies()] == ["tree"]


def test_a_hierarchy_is_seen_before_a_dataset_is_made(
    connect: Callable[[str, str], Client],
) -> None:
    client = connect("clinic-of-previews", "holder")
    zips: Column = {
        "name": "zip",
        "role": "quasi_identifier",
        "taxonomy": hierarchies.prefix([3, 1]),
    }
    preview = client.preview_hierarchy(zips, ["12345", "12399", "20001"])
    root = preview["root"]
    assert root is not None
    assert shown(root).count("123") == 3
    assert (preview["unfit_total"], preview["unused_total"]) == (0, 0)

    jobs: Column = {
        "name": "job",
        "role": "quasi_identifier",
        "taxonomy": hierarchies.from_csv(JOBS),
    }
    preview = client.preview_hierarchy(jobs, {"Janitor": 7, "Pilot": 1})
    assert [each["value"] for each in preview["unfit"]] == ["Pilot"]
    assert preview["unused"] == ["Mover", "Lawyer"]

    costs: Column = {"name": "cost", "role": "quasi_identifier", "kind": "numeric"}
    assert client.preview_hierarchy(costs, ["1,5"])["unfit_total"] == 1
    assert client.preview_hierarchy(costs, ["1,5"], decimal=",")["unfit_total"] == 0


@pytest.mark.parametrize(
    ("made", "options"),
    [
        (hierarchies.prefix(), {}),
        (hierarchies.prefix([3, 1]), {}),
        (hierarchies.mask_right(), {}),
        (hierarchies.mask_left(), {}),
        (hierarchies.ordered(["low", "high"], fanout=3), {}),
        (hierarchies.ordered(), {"order": ["low", "high"]}),
        (hierarchies.ranges([10, 50], start=5), {"kind": "numeric"}),
        (hierarchies.calendar(["month", "year"]), {"kind": "date"}),
        (hierarchies.calendar(), {"kind": "date"}),
        (hierarchies.ordered(["low", "high"], balance=True), {}),
        (hierarchies.ranges([10], balance=True), {"kind": "numeric"}),
        (hierarchies.age("2026-01-01"), {"kind": "date"}),
        (hierarchies.age(date(2026, 1, 1), [5, 10]), {"kind": "date"}),
        (hierarchies.rare(5), {}),
        (hierarchies.rare(), {}),
    ],
)
def test_the_service_takes_every_made_hierarchy(
    connect: Callable[[str, str], Client], made: GeneratedHierarchy, options: Column
) -> None:
    client = connect("clinic-of-trees", "holder")
    column: Column = {"name": "x", "role": "quasi_identifier", "taxonomy": made}
    column.update(options)
    dataset = client.create_dataset(f"made {made} {options}"[:100], [column])
    stored = dataset["columns"][0].get("taxonomy")
    assert isinstance(stored, dict)
    assert stored.items() >= made.items()
