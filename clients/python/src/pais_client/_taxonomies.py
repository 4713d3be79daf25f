"""Taxonomies (role `holder`)."""

from __future__ import annotations

from typing import cast

from ._operations import Operation, Pages, Request, delete, get, path, post
from .types import Taxonomy, TaxonomyNode, TaxonomySummary


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


def delete_taxonomy(taxonomy_id: str) -> Operation[None]:
    """Deletes a taxonomy; raises `Conflict` while a dataset uses it. Role: holder."""
    yield delete(path("taxonomies", taxonomy_id))
