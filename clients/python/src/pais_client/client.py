"""The client."""

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
from ._methods import lister, method
from ._transport import Transport


class DatasetCalls:
    """The calls for datasets; calling it yields the datasets themselves."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    __call__ = lister(_datasets.listed)
    create = method(_datasets.create)
    get = method(_datasets.dataset)
    profile = method(_datasets.profile)
    draft = method(_datasets.draft)
    patch = method(_datasets.change)
    risk = method(_datasets.risk)
    delete = method(_datasets.destroy)


class Client:
    """A connection to a service with one token, whose role decides which calls are allowed.

    `base_url` is the address of the service, such as `https://pais.example.org`, without `/v1`.
    `timeout` is how many seconds the client waits for data; the default is longer than the
    service's own timeout, so the service's answer arrives first. `retries` is how often an
    idempotent call is repeated when the service answers 429 or 503. The client waits as long as
    the service asks, and raises the error if that is more than a minute. `transport` replaces the
    network in tests.

    A client keeps its connections open and can be shared by threads. Close it, or use it as a
    context manager:

        with Client("http://127.0.0.1:8080", token) as client:
            for release in client.releases():
                print(release["name"], release["rows"])
    """

    def __init__(
        self,
        base_url: str,
        token: str,
        *,
        timeout: float = 70.0,
        retries: int = 4,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._transport = Transport(base_url, token, timeout, retries, transport)
        self.datasets = DatasetCalls(self._transport)

    anonymize = method(_anonymize.anonymize)
    draft_schema = method(_schemas.draft_schema)

    create_organization = method(_admin.create_organization)
    organizations = lister(_admin.organizations)
    disable_organization = method(_admin.disable_organization)
    enable_organization = method(_admin.enable_organization)
    create_token = method(_admin.create_token)
    tokens = lister(_admin.tokens)
    own_tokens = lister(_admin.own_tokens)
    redeem_enrolment = method(_admin.redeem_enrolment)
    revoke_token = method(_admin.revoke_token)
    audit = lister(_admin.audit)

    create_taxonomy = method(_taxonomies.create_taxonomy)
    taxonomies = lister(_taxonomies.taxonomies)
    taxonomy = method(_taxonomies.taxonomy)
    delete_taxonomy = method(_taxonomies.delete_taxonomy)
    preview_hierarchy = method(_taxonomies.preview_hierarchy)

    create_dataset = method(_datasets.create)
    dataset = method(_datasets.dataset)
    draft_dataset = method(_datasets.draft)
    patch_dataset = method(_datasets.change)
    dataset_risk = method(_datasets.risk)
    profile = method(_datasets.profile)
    delete_dataset = method(_datasets.destroy)
    place_legal_hold = method(_datasets.place_legal_hold)
    lift_legal_hold = method(_datasets.lift_legal_hold)

    submit = method(_submissions.submit)
    submissions = lister(_submissions.submissions)
    delete_submission = method(_submissions.delete_submission)

    create_job = method(_jobs.create_job)
    jobs = lister(_jobs.jobs)
    job = method(_jobs.job)
    cancel_job = method(_jobs.cancel_job)
    wait = method(_wait.wait)
    steps = method(_jobs.steps)
    iter_steps = lister(_jobs.iter_steps)
    sweep = method(_jobs.sweep)
    job_report = method(_jobs.job_report)

    create_release = method(_releases.create_release)
    releases = lister(_releases.releases)
    release = method(_releases.release)
    report = method(_releases.report)
    download = method(_releases.download)
    release_frame = method(_releases.release_frame)
    download_package = method(_releases.download_package)
    release_files = lister(_releases.release_files)
    download_file = method(_releases.download_file)
    create_grant = method(_releases.create_grant)
    grants = lister(_releases.grants)
    delete_grant = method(_releases.delete_grant)
    composition = method(_releases.composition)
    withdraw_release = method(_releases.withdraw_release)
    policy = method(_policy.policy)
    set_policy = method(_policy.set_policy)
    approve_release = method(_policy.approve_release)
    approvals = lister(_policy.approvals)

    create_publication = method(_publications.create_publication)
    publications = lister(_publications.publications)
    publication = method(_publications.publication)
    change_publication = method(_publications.change_publication)
    delete_publication = method(_publications.delete_publication)
    publish_edition = method(_publications.publish_edition)
    editions = method(_publications.editions)
    publication_manifest = method(_publications.publication_manifest)
    download_publication = method(_publications.download_publication)
    publication_frame = method(_publications.publication_frame)

    def close(self) -> None:
        """Closes the connections."""
        self._transport.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client({self._transport.base_url!r})"
