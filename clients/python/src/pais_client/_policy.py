"""The policy of an organization, and approvals of releases (roles `officer` and `holder`).

Where an organization has an officer, the policy and approvals are for her alone.
"""

from __future__ import annotations

from typing import cast

from ._operations import Operation, Pages, get, path, post, put, without_none
from .types import ApprovalStatus, DecidedRelease, Decision, ListedApproval, Policy


def policy() -> Operation[Policy]:
    """Returns the policy of the token's organization; empty if it has none. Role: holder, officer."""
    answer = yield get(path("policy"))
    return cast(Policy, answer)


def set_policy(policy: Policy) -> Operation[Policy]:
    """Replaces the policy: jobs, releases and grants below it are refused from then on.

    `{"k_min": 10, "c_max": 0.3, "require_approval": True}` for example. Role: officer, holder.
    """
    answer = yield put(path("policy"), policy)
    return cast(Policy, answer)


def approvals(
    *, status: ApprovalStatus | None = None, page_size: int | None = None
) -> Pages[ListedApproval]:
    """Yields the releases that wait for an approval or were decided. Role: officer, holder."""
    params = without_none({"status": status})
    return Pages(path("approvals"), page_size, lambda each: cast(ListedApproval, each), params)


def approve_release(
    release_id: str, *, decision: Decision = "approved", reason: str | None = None
) -> Operation[DecidedRelease]:
    """Approves or rejects a release that somebody else has made, for good. Role: officer, holder."""
    fields = without_none({"decision": decision, "reason": reason})
    answer = yield post(path("releases", release_id, "approval"), fields)
    return cast(DecidedRelease, answer)
