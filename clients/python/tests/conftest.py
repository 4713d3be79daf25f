from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest
from service import Service

from pais_client import Client


@pytest.fixture(scope="session")
def service() -> Iterator[Service]:
    program = os.environ.get("PAIS_BIN")
    if not program:
        pytest.fail("set PAIS_BIN to the built program, such as target/release/pais")
    # Requests to the local service must not go through a proxy of the environment.
    for name in ("NO_PROXY", "no_proxy"):
        os.environ[name] = "127.0.0.1"
    running = Service(program)
    try:
        running.wait_ready()
        yield running
    finally:
        status = running.stop()
    assert status == 0, f"the service ended with {status}"


@pytest.fixture(scope="session")
def connect(service: Service) -> Iterator[Callable[[str, str], Client]]:
    """Returns a client for an organization and role; creates a token for them if needed."""
    clients: dict[tuple[str, str], Client] = {}

    def client(organization: str, role: str) -> Client:
        key = (organization, role)
        if key not in clients:
            clients[key] = Client(service.url, service.token(*key))
        return clients[key]

    yield client
    for each in clients.values():
        each.close()


@pytest.fixture(scope="session")
def holder(connect: Callable[[str, str], Client]) -> Client:
    return connect("hospital", "holder")
