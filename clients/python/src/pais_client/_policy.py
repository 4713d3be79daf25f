"""The policy of an organization, and approvals of releases (role `holder`)."""

from __future__ import annotations

from typing import cast

from ._operations import Operation, get, path, post, put
from .types import Approval, Policy


def policy() -> Operation[Policy]:
    """Returns the policy of the token's organization; empty if it has none. Role: holder."""
    answer = yield get(path("policy"))
    return cast(Policy, answer)


def set_policy(policy: Policy) -> Operation[Policy]:
    """Replaces the policy: jobs, releases and grants below it are refused from then on.

    `{"k_min": 10, "c_max": 0.3, "require_approval": True}` for example. Role: holder.
    """
    answer = yield put(path("policy"), policy)
    return cast(Policy, answer)


def approve_release(release_id: str) -> Operation[Approval]:
    """Approves a release that another token of the organization has made. Role: holder."""
    answer = yield post(path("releases", release_id, "approval"), {})
    return cast(Approval, answer)
