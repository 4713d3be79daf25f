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
    """A connection to a service under one token, whose role decides what may be called.

    `base_url` is where the service is, such as `https://pais.example.org`, without `/v1`.
    `timeout` is the longest silence in seconds that is taken for work; the default is longer than
    the service's own, so that its answer arrives. `retries` is how often a call that may be made
    twice is repeated when the service answers 429 or 503; it waits as long as the service asks,
    and raises when that is more than a minute. `transport` replaces the network, for tests.

    A client keeps its connections open and may be shared by threads. Close it, or use it as a
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
