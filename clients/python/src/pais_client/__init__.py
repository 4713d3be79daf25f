"""Client of pais, the service for privacy-aware sharing of health data.

A DataFrame is anonymized in one call:

    with Client(url, token) as client:
        result = client.anonymize(frame, roles=roles, privacy={"model": "k_anonymity", "k": 5})
        print(result.frame())

Step by step, a hospital declares a dataset, submits rows, starts an anonymization job and grants
the release to a recipient, who fetches it:

    with Client(url, token) as client:
        dataset = client.create_dataset("patients", columns)
        client.submit(dataset["id"], frame)
        job = client.create_job(dataset["id"], {"model": "k_anonymity", "k": 5}, release=True)
        job = client.wait(job["id"])
        frame = client.release_frame(job["release_id"])
"""

from . import hierarchies
from ._cut import transform
from .anonymized import Anonymized
from .async_client import AsyncClient
from .client import Client
from .errors import (
    Conflict,
    IntegrityError,
    JobCancelled,
    JobFailed,
    NotFound,
    PaisError,
    ProblemError,
    RateLimited,
    ServiceUnreachable,
)
from .intervals import parse_interval, parse_intervals
from .schema import Schema

__all__ = [
    "Anonymized",
    "AsyncClient",
    "Client",
    "Conflict",
    "IntegrityError",
    "JobCancelled",
    "JobFailed",
    "NotFound",
    "PaisError",
    "ProblemError",
    "RateLimited",
    "Schema",
    "ServiceUnreachable",
    "hierarchies",
    "parse_interval",
    "parse_intervals",
    "transform",
]
