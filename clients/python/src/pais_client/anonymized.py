"""The result of `anonymize`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ._documents import ReleaseDocument, ReportDocument
from .types import Release, Report, Warning

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Anonymized:
    """A release with its report and its tables, all fetched.

    `dataset_id` is the dataset with the raw rows, or `None` if it was deleted.
    """

    release_id: str
    release: Release
    report: Report
    tables: Mapping[str, Any] = field(repr=False)
    """The tables as DataFrames, by name: `data`, or those of an anatomized release."""
    dataset_id: str | None = None

    def frame(self, table: str | None = None) -> pd.DataFrame:
        """Returns the released table as a DataFrame.

        An anatomized release has several: `table` is `qit`, or `st_` followed by a column's name.
        """
        if table is None and len(self.tables) == 1:
            table = next(iter(self.tables))
        if table is None or table not in self.tables:
            names = ", ".join(self.tables)
            raise ValueError(f"set `table` to one of the tables of the release: {names}")
        frame: pd.DataFrame = self.tables[table]
        return frame

    @property
    def warnings(self) -> list[Warning]:
        """What to know about the release, each once."""
        found: list[Warning] = []
        for each in [*self.release.get("warnings", []), *self.report.get("warnings", [])]:
            if each not in found:
                found.append(each)
        return found

    def _repr_html_(self) -> str:
        report = {name: value for name, value in self.report.items() if name != "warnings"}
        release = {**self.release, "warnings": self.warnings}
        return ReleaseDocument(release)._repr_html_() + ReportDocument(report)._repr_html_()
