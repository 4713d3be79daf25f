"""Taxonomies (role `holder`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

from ._operations import Operation, Pages, Request, delete, get, path, post, without_none
from .types import Column, Decimal, HierarchyPreview, Taxonomy, TaxonomyNode, TaxonomySummary


def create_taxonomy(name: str, tree: TaxonomyNode | str) -> Operation[Taxonomy]:
    """Creates a taxonomy: how the values of a column may be generalized. Role: holder.

    `tree` is a dictionary `{"label": …, "children": [...]}`, where a node without children is
    a leaf (see `pais_client.hierarchies`), or CSV text with a row for each leaf, such as
    `Janitor;Blue-collar;Any`, which is the hierarchy format of ARX and Amnesia. Labels must be
    unique in a tree, names in the organization.
    """
    if isinstance(tree, str):
        content = tree.encode()
        answer = yield Request(
            "POST",
            path("taxonomies"),
            params={"name": name},
            headers={"Content-Type": "text/csv"},
            body=lambda: content,
        )
    else:
        answer = yield post(path("taxonomies"), {"name": name, "root": tree})
    return cast(Taxonomy, answer)


def taxonomies(*, page_size: int | None = None) -> Pages[TaxonomySummary]:
    """Yields the organization's taxonomies, without their trees. Role: holder."""
    return Pages(path("taxonomies"), page_size, lambda each: cast(TaxonomySummary, each))


def taxonomy(taxonomy_id: str) -> Operation[Taxonomy]:
    """Returns a taxonomy with its tree. Role: holder."""
    answer = yield get(path("taxonomies", taxonomy_id))
    return cast(Taxonomy, answer)


def preview_hierarchy(
    column: Column,
    values: Mapping[str, int] | Iterable[str],
    *,
    decimal: Decimal | None = None,
    thousands: str | None = None,
) -> Operation[HierarchyPreview]:
    """Returns the tree that the hierarchy of a column has over some values. Role: holder.

    `column` is as for `create_dataset`. `values` are the distinct cells of the column, as a file
    has them, with their numbers of rows where they are a mapping: rare values and balanced ranges
    depend on these. The answer names values that the column does not take, and leaves of a given
    tree that no value has. The service neither stores nor logs what is sent.
    """
    rows = values.items() if isinstance(values, Mapping) else ((value, 1) for value in values)
    # Cells alone have no delimiter; the comma, which is the default, could be that of a fraction.
    format = {"delimiter": "tab", "decimal": decimal, "thousands": thousands}
    fields = {
        "column": column,
        "format": without_none(format),
        "values": [{"value": value, "rows": count} for value, count in rows],
    }
    answer = yield post(path("taxonomies", "preview"), fields)
    return cast(HierarchyPreview, answer)


def delete_taxonomy(taxonomy_id: str) -> Operation[None]:
    """Deletes a taxonomy; raises `Conflict` while a dataset uses it. Role: holder."""
    yield delete(path("taxonomies", taxonomy_id))
