"""The client for asyncio."""

from __future__ import annotations

from types import TracebackType

import httpx

from . import (
    _admin,
    _anonymize,
    _datasets,
    _jobs,
    _policy,
    _publications,
    _releases,
    _schemas,
    _submissions,
    _taxonomies,
    _wait,
)
from ._async_transport import AsyncTransport
from ._methods import async_lister, async_method


class AsyncDatasetCalls:
    """The calls for datasets; calling it yields the datasets themselves."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    __call__ = async_lister(_datasets.listed)
    create = async_method(_datasets.create)
    get = async_method(_datasets.dataset)
    profile = async_method(_datasets.profile)
    draft = async_method(_datasets.draft)
    patch = async_method(_datasets.change)
    risk = async_method(_datasets.risk)
    delete = async_method(_datasets.destroy)


class AsyncClient:
    """A `Client` for asyncio: the same calls, to be awaited.

    Lists are asynchronous iterators. DataFrames and files are converted in threads, so the event
    loop is not blocked. The arguments are those of `Client`.

        async with AsyncClient("http://127.0.0.1:8080", token) as client:
            async for release in client.releases():
                print(release["name"], release["rows"])
    """

    def __init__(
        self,
        base_url: str,
        token: str,
        *,
        timeout: float = 70.0,
        retries: int = 4,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._transport = AsyncTransport(base_url, token, timeout, retries, transport)
        self.datasets = AsyncDatasetCalls(self._transport)

    anonymize = async_method(_anonymize.anonymize)
    draft_schema = async_method(_schemas.draft_schema)

    create_organization = async_method(_admin.create_organization)
    organizations = async_lister(_admin.organizations)
    disable_organization = async_method(_admin.disable_organization)
    enable_organization = async_method(_admin.enable_organization)
    create_token = async_method(_admin.create_token)
    tokens = async_lister(_admin.tokens)
    own_tokens = async_lister(_admin.own_tokens)
    redeem_enrolment = async_method(_admin.redeem_enrolment)
    revoke_token = async_method(_admin.revoke_token)
    audit = async_lister(_admin.audit)

    create_taxonomy = async_method(_taxonomies.create_taxonomy)
    taxonomies = async_lister(_taxonomies.taxonomies)
    taxonomy = async_method(_taxonomies.taxonomy)
    delete_taxonomy = async_method(_taxonomies.delete_taxonomy)
    preview_hierarchy = async_method(_taxonomies.preview_hierarchy)

    create_dataset = async_method(_datasets.create)
    dataset = async_method(_datasets.dataset)
    draft_dataset = async_method(_datasets.draft)
    patch_dataset = async_method(_datasets.change)
    dataset_risk = async_method(_datasets.risk)
    profile = async_method(_datasets.profile)
    delete_dataset = async_method(_datasets.destroy)
    place_legal_hold = async_method(_datasets.place_legal_hold)
    lift_legal_hold = async_method(_datasets.lift_legal_hold)

    submit = async_method(_submissions.submit)
    submissions = async_lister(_submissions.submissions)
    delete_submission = async_method(_submissions.delete_submission)

    create_job = async_method(_jobs.create_job)
    jobs = async_lister(_jobs.jobs)
    job = async_method(_jobs.job)
    cancel_job = async_method(_jobs.cancel_job)
    wait = async_method(_wait.wait)
    steps = async_method(_jobs.steps)
    iter_steps = async_lister(_jobs.iter_steps)
    sweep = async_method(_jobs.sweep)
    job_report = async_method(_jobs.job_report)

    create_release = async_method(_releases.create_release)
    releases = async_lister(_releases.releases)
    release = async_method(_releases.release)
    report = async_method(_releases.report)
    download = async_method(_releases.download)
    release_frame = async_method(_releases.release_frame)
    download_package = async_method(_releases.download_package)
    release_files = async_lister(_releases.release_files)
    download_file = async_method(_releases.download_file)
    create_grant = async_method(_releases.create_grant)
    grants = async_lister(_releases.grants)
    delete_grant = async_method(_releases.delete_grant)
    composition = async_method(_releases.composition)
    withdraw_release = async_method(_releases.withdraw_release)
    policy = async_method(_policy.policy)
    set_policy = async_method(_policy.set_policy)
    approve_release = async_method(_policy.approve_release)
    approvals = async_lister(_policy.approvals)

    create_publication = async_method(_publications.create_publication)
    publications = async_lister(_publications.publications)
    publication = async_method(_publications.publication)
    change_publication = async_method(_publications.change_publication)
    delete_publication = async_method(_publications.delete_publication)
    publish_edition = async_method(_publications.publish_edition)
    editions = async_method(_publications.editions)
    publication_manifest = async_method(_publications.publication_manifest)
    download_publication = async_method(_publications.download_publication)
    publication_frame = async_method(_publications.publication_frame)

    async def close(self) -> None:
        """Closes the connections."""
        await self._transport.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"AsyncClient({self._transport.base_url!r})"
