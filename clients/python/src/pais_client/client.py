"""The client."""

from __future__ import annotations

from types import TracebackType

import httpx

from ._admin import Admin
from ._datasets import Datasets
from ._jobs import Jobs
from ._releases import Releases
from ._transport import Transport


class Client(Admin, Datasets, Jobs, Releases):
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
