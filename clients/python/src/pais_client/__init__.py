"""Client of pais, the service for privacy-aware sharing of health data.

A hospital declares a dataset, submits rows, starts an anonymization job and grants the release to a
recipient, who fetches it:

    with Client(url, token) as client:
        dataset = client.create_dataset("patients", columns)
        client.submit(dataset["id"], frame)
        job = client.create_job(dataset["id"], {"model": "k_anonymity", "k": 5}, release=True)
        job = client.wait(job["id"])
        frame = client.release_frame(job["release_id"])
"""

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

__all__ = [
    "Client",
    "Conflict",
    "IntegrityError",
    "JobCancelled",
    "JobFailed",
    "NotFound",
    "PaisError",
    "ProblemError",
    "RateLimited",
    "ServiceUnreachable",
]
