"""Schemas drafted by the service (role `holder`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import _datasets
from ._operations import Operation
from .schema import Schema

if TYPE_CHECKING:
    import pandas as pd


def draft_schema(frame: pd.DataFrame, *, name: str = "frame") -> Operation[Schema]:
    """Proposes a schema for a DataFrame, whose rows the service does not store. Role: holder.

    Its `reasons` say why each column is proposed so. Check the roles: a proposal is no decision.
    """
    draft = yield from _datasets.draft(frame, name=name)
    return Schema.from_draft(draft, frame)
