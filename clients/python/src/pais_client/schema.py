"""Schemas: what the columns of a table are, made from a DataFrame and changed by methods."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, cast

from ._documents import columns_html
from ._frame_columns import frame_columns
from .types import Column, ColumnOptions, ColumnRole, DatasetDefinition, Draft, Hierarchy

if TYPE_CHECKING:
    import pandas as pd
    from typing_extensions import Unpack

UNDECIDED = "its role is not decided; as a quasi-identifier it is generalized"
NOT_RELEASED: frozenset[ColumnRole] = frozenset({"identifier", "subject"})
REPLACES: Mapping[str, Collection[str]] = {
    "taxonomy": ("order", "domain", "round_range"),
    "order": ("taxonomy",),
    "domain": ("taxonomy", "round_range"),
    "round": ("taxonomy",),
    "round_range": ("taxonomy", "domain"),
}
"""The options that a column cannot have beside one."""
OF_A_KIND = ("taxonomy", "order", "domain", "round_range", "format", "separator")
"""The options that another kind does not take. `round` stays, so that the service refuses it:
without it exact numbers would be released."""


class Drafting(Protocol):
    """Proposes datasets, such as a `Client`."""

    @property
    def draft_dataset(self) -> Any:
        """Takes a DataFrame and `name`; returns a `Draft`."""


@dataclass(frozen=True)
class Schema:
    """The definition of a dataset. Methods return a changed copy.

    `columns` has the declared columns in the order of the table, `missing` the words that mean
    missing in columns that declare none, and `reasons` for each column why it was proposed so.
    `proposed` has for each column the options that a draft or a DataFrame gave and nobody has set.
    """

    name: str
    columns: tuple[Column, ...]
    missing: tuple[str, ...] | None = None
    reasons: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    proposed: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @classmethod
    def from_frame(
        cls, frame: pd.DataFrame, *, name: str = "frame", client: Drafting | None = None
    ) -> Schema:
        """Proposes a schema for a DataFrame. Check the roles: a proposal is no decision.

        With a `client` the service drafts roles, kinds and hierarchies from the rows, which it does
        not store; with an `AsyncClient` use `await client.draft_schema(frame)`. Without one the
        kinds follow from the types of the columns, and every column is a quasi-identifier, the
        role under which nothing is released as it is. Ordered categories, intervals and periods
        keep their order in either case.
        """
        if client is not None:
            return cls.from_draft(client.draft_dataset(frame, name=name), frame)
        columns = tuple(_undecided(str(column)) for column in frame.columns)
        reason = (UNDECIDED,)
        reasons = {column["name"]: reason for column in columns}
        return cls(name, columns, None, reasons)._as_in(frame)

    @classmethod
    def from_draft(cls, draft: Draft, frame: pd.DataFrame | None = None) -> Schema:
        """Returns the schema of a draft, with what only the types of the DataFrame tell."""
        dataset = draft["dataset"]
        missing = dataset.get("missing")
        schema = cls(
            dataset["name"],
            tuple(dataset["columns"]),
            None if missing is None else tuple(missing),
            {name: tuple(sentences) for name, sentences in draft["reasons"].items()},
        )
        return schema._all_proposed() if frame is None else schema._as_in(frame)

    def identifier(self, *columns: str) -> Schema:
        """The columns name a person; they are dropped while the upload is parsed."""
        return self.role("identifier", *columns)

    def subject(self, column: str) -> Schema:
        """The column names the person a row is about; models then count persons."""
        return self.role("subject", column)

    def quasi_identifier(self, *columns: str) -> Schema:
        """The columns may be known to others; they are generalized."""
        return self.role("quasi_identifier", *columns)

    def sensitive(self, *columns: str) -> Schema:
        """The columns must not be inferred about a person."""
        return self.role("sensitive", *columns)

    def class_column(self, column: str) -> Schema:
        """The column is what a classifier is to predict from the release."""
        return self.role("class", column)

    def insensitive(self, *columns: str) -> Schema:
        """The columns are released as they are."""
        return self.role("insensitive", *columns)

    def role(self, role: ColumnRole, *columns: str) -> Schema:
        """Gives columns a role. Raises `KeyError` for a column that is not in the schema."""
        return self.roles({column: role for column in columns})

    def roles(self, roles: Mapping[str, ColumnRole]) -> Schema:
        """Gives each of the columns its role."""
        self._require(roles)
        changed = []
        for column in self.columns:
            role = roles.get(column["name"])
            changed.append(column if role is None else _with_role(column, role))
        return replace(self, columns=tuple(changed))

    def column(self, name: str, **options: Unpack[ColumnOptions]) -> Schema:
        """Changes the options of a column, such as `kind`, `domain` or `missing`.

        Proposed options that do not go with them are left out.
        """
        self._require([name])
        proposed = self.proposed.get(name, frozenset()) - options.keys()
        changed = []
        for column in self.columns:
            if column["name"] == name:
                column = without(column, proposed & replaced(column, options))
                column.update(options)  # type: ignore[typeddict-item]
            changed.append(column)
        return replace(self, columns=tuple(changed), proposed={**self.proposed, name: proposed})

    def hierarchy(self, column: str, hierarchy: str | Hierarchy) -> Schema:
        """Sets the hierarchy of a column: a tree, the id of a taxonomy, or how one is made."""
        return self.column(column, taxonomy=hierarchy)

    def missing_words(self, *words: str) -> Schema:
        """Sets the words that mean missing in every column that declares none."""
        return replace(self, missing=words)

    def named(self, name: str) -> Schema:
        """Sets the name of the dataset."""
        return replace(self, name=name)

    def to_definition(self) -> DatasetDefinition:
        """Returns the arguments of `create_dataset`.

        Columns that are not released, identifiers and the subject, are without the options that
        were only proposed; options that were set are sent with every role.
        `client.create_dataset(**schema.to_definition())` creates the dataset.
        """
        definition: DatasetDefinition = {
            "name": self.name,
            "columns": [self._fitting(column) for column in self.columns],
        }
        if self.missing is not None:
            definition["missing"] = list(self.missing)
        return definition

    def _require(self, columns: Mapping[str, Any] | Sequence[str]) -> None:
        names = [column["name"] for column in self.columns]
        unknown = [column for column in columns if column not in names]
        if unknown:
            raise KeyError(
                f"the schema has no column {', '.join(map(repr, unknown))}; "
                f"its columns are: {', '.join(map(repr, names))}"
            )

    def _as_in(self, frame: Any) -> Schema:
        found = frame_columns(frame)
        columns, reasons = [], dict(self.reasons)
        for column in self.columns:
            known = found.get(column["name"])
            if known is not None and (known.decides or "kind" not in column):
                column = _told_by_frame(column, known.options)
                told = () if known.decides else reasons.get(column["name"], ())
                reasons[column["name"]] = (*told, known.reason)
            columns.append(column)
        return replace(self, columns=tuple(columns), reasons=reasons)._all_proposed()

    def _all_proposed(self) -> Schema:
        """Returns the schema with all options of its columns as proposals."""
        proposed = {column["name"]: frozenset(column) for column in self.columns}
        return replace(self, proposed=proposed)

    def _fitting(self, column: Column) -> Column:
        """Returns the column without proposals that its role does not take.

        The service refuses those of a subject, and those of an identifier can have its values as
        labels. Words for missing are for every column. A quasi-identifier with a hierarchy that
        was set is not rounded.
        """
        proposed = self.proposed.get(column["name"], frozenset())
        if column["role"] in NOT_RELEASED:
            return without(column, proposed - {"name", "role", "missing"})
        if column["role"] == "quasi_identifier" and column.get("taxonomy"):
            return without(column, proposed & {"round"})
        return column.copy()

    def _repr_html_(self) -> str:
        reasons = {name: list(sentences) for name, sentences in self.reasons.items()}
        return columns_html(f"Schema {self.name}", self.to_definition(), reasons)


def _undecided(name: str) -> Column:
    return {"name": name, "role": "quasi_identifier"}


def _with_role(column: Column, role: ColumnRole) -> Column:
    changed = column.copy()
    changed["role"] = role
    return changed


def _told_by_frame(column: Column, options: ColumnOptions) -> Column:
    """Returns the column with the options of the frame in place of those that were proposed."""
    told: Column = {"name": column["name"], "role": column["role"]}
    told.update(options)  # type: ignore[typeddict-item]
    return told


def without(column: Column, options: Collection[str]) -> Column:
    """Returns a copy of the column without these options."""
    left = {name: value for name, value in column.items() if name not in options}
    return cast(Column, left)


def replaced(column: Column, options: ColumnOptions) -> set[str]:
    """Returns the options of a column that do not go with others."""
    found = {each for name, value in options.items() if value for each in REPLACES.get(name, ())}
    kind = column.get("kind", "categorical")
    if options.get("kind", kind) != kind:
        found.update(OF_A_KIND)
    return found
