"""Documents that a notebook shows as tables. In every other respect they are dictionaries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import _html


class Document(dict[str, Any]):
    """A dictionary that has an HTML form."""

    def _repr_html_(self) -> str:
        raise NotImplementedError


class JobDocument(Document):
    """A `Job`."""

    def _repr_html_(self) -> str:
        error: Mapping[str, Any] = self.get("error") or {}
        definition: Mapping[str, Any] = self.get("definition") or {}
        return _html.panel(
            f"Job {self.get('status', '')}",
            _html.progress(float(self.get("progress") or 0)),
            _html.fields(
                {
                    "id": self.get("id"),
                    "phase": self.get("phase"),
                    "privacy": definition.get("privacy"),
                    "rows": self.get("rows"),
                    "steps": self.get("steps_done"),
                    "error": error.get("code"),
                    "reason": error.get("detail"),
                    "release": self.get("release_id"),
                }
            ),
            _html.warnings(self.get("warnings")),
        )


class ReleaseDocument(Document):
    """A `Release`."""

    def _repr_html_(self) -> str:
        tables = _html.table(
            ["table", "rows", "SHA-256 of the CSV"],
            [
                [each.get("name"), each.get("rows"), each.get("sha256")]
                for each in self.get("tables") or []
            ],
        )
        cut: Mapping[str, Any] = self.get("cut") or {}
        labels = _html.table(["column", "labels"], cut.items()) if cut else ""
        verification: Mapping[str, Any] = self.get("verification") or {}
        return _html.panel(
            f"Release {self.get('name') or self.get('id', '')}",
            _html.fields(
                {
                    "id": self.get("id"),
                    "privacy": self.get("privacy"),
                    "verified": verification.get("holds"),
                    "rows": self.get("rows"),
                    "suppressed rows": self.get("suppressed_rows"),
                    "created": self.get("created_at"),
                    "withdrawn": self.get("withdrawn"),
                }
            ),
            tables,
            labels,
            _html.warnings(self.get("warnings")),
        )


class ReportDocument(Document):
    """A `Report`."""

    def _repr_html_(self) -> str:
        utility: Mapping[str, Any] = self.get("utility") or {}
        by_column = {
            name[: -len("_by_column")]: values
            for name, values in utility.items()
            if name.endswith("_by_column") and isinstance(values, Mapping)
        }
        columns = list(dict.fromkeys(name for each in by_column.values() for name in each))
        rows = [[name, *(each.get(name) for each in by_column.values())] for name in columns]
        plain = {
            name: value
            for name, value in utility.items()
            if isinstance(value, (int, float)) and not isinstance(value, bool)
        }
        risk: Mapping[str, Any] = self.get("risk") or {}
        figures = {name: value for name, value in risk.items() if isinstance(value, (int, float))}
        return _html.panel(
            "Report",
            _html.fields(
                {
                    "rows": self.get("rows"),
                    "suppressed rows": self.get("suppressed_rows"),
                    "subjects": self.get("subjects"),
                }
            ),
            _html.table(["risk", "value"], figures.items()),
            _html.table(["utility", "value"], plain.items()),
            _html.table(["column", *by_column], rows) if rows else "",
            _html.warnings(self.get("warnings")),
        )


class ProfileDocument(Document):
    """A `Profile`."""

    def _repr_html_(self) -> str:
        rows = [
            [each.get("name"), each.get("role"), each.get("kind"), each.get("distinct"),
             each.get("missing"), each.get("single_rows"), value_range(each)]
            for each in self.get("columns") or []
        ]  # fmt: skip
        header = ["column", "role", "kind", "distinct", "missing", "in one row only", "range"]
        names = ("rows", "subjects", "rows_per_subject_max", "shared_subjects")
        return _html.panel(
            "Profile",
            _html.fields({name.replace("_", " "): self.get(name) for name in names}),
            _html.table(header, rows),
            _html.warnings(self.get("warnings")),
        )


def value_range(column: Mapping[str, Any]) -> str | None:
    """Returns the range of numbers, of dates or of the sizes of sets of a column."""
    sizes = column.get("set_sizes")
    for least, most, unit in [
        (column.get("min"), column.get("max"), ""),
        (column.get("earliest"), column.get("latest"), ""),
        ((sizes or {}).get("min"), (sizes or {}).get("max"), " items"),
    ]:
        if least is not None and most is not None:
            return f"{_html.text(least)} to {_html.text(most)}{unit}"
    return None


class DraftDocument(Document):
    """A `Draft`."""

    def _repr_html_(self) -> str:
        definition: Mapping[str, Any] = self.get("dataset") or {}
        return columns_html("Draft", definition, self.get("reasons") or {})


class DatasetDocument(Document):
    """A `Dataset`."""

    def _repr_html_(self) -> str:
        return columns_html(f"Dataset {self.get('name', '')}", self, {})


class DatasetRiskDocument(Document):
    """A `DatasetRisk`."""

    def _repr_html_(self) -> str:
        columns = [
            [each.get(name) for name in ("name", "distinctness", "separation", "unique_share")]
            for each in self.get("columns") or []
        ]
        combinations = [
            [each.get(name) for name in ("columns", "distinctness", "unique_share")]
            for each in self.get("combinations") or []
        ]
        feasible: Mapping[str, Any] = self.get("feasible") or {}
        return _html.panel(
            "Risk before a run",
            _html.fields(
                {
                    "rows": self.get("rows"),
                    "subjects": self.get("subjects"),
                    "columns that single out": self.get("singling_out") or None,
                    "greatest feasible k": feasible.get("k_max"),
                    "greatest feasible l": feasible.get("l_max"),
                }
            ),
            _html.table(["column", "distinctness", "separation", "unique share"], columns),
            _html.table(["combination", "distinctness", "unique share"], combinations),
            _html.warnings(self.get("warnings")),
        )


def columns_html(
    title: str, definition: Mapping[str, Any], reasons: Mapping[str, list[str]]
) -> str:
    """Returns the columns of a definition with the reasons for each."""
    header = ["column", "role", "kind", "hierarchy", *(["reasons"] if reasons else [])]
    rows = []
    for column in definition.get("columns") or []:
        row = [
            column.get("name"),
            column.get("role"),
            column.get("kind", "categorical"),
            hierarchy_text(column),
        ]
        if reasons:
            row.append(_html.lines(reasons.get(column.get("name"), [])))
        rows.append(row)
    return _html.panel(
        title,
        _html.fields({"rows": definition.get("rows"), "missing": definition.get("missing")}),
        _html.table(header, rows),
        _html.warnings(definition.get("warnings")),
    )


def hierarchy_text(column: Mapping[str, Any]) -> str | None:
    """Describes the hierarchy of a column in a few words."""
    tree = column.get("taxonomy")
    if isinstance(tree, Mapping):
        made = tree.get("generate")
        return str(made) if made else f"tree below {tree.get('label')}"
    if tree is not None:
        return f"taxonomy {tree}"
    domain = column.get("domain")
    if domain:
        return f"intervals of {_html.text(domain[0])} to {_html.text(domain[1])}"
    return "ordered" if column.get("order") else None
