"""One call from a DataFrame to a release: what it returns, and that nothing is left behind."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import httpx
import pandas as pd
import pytest
from service import Service

from pais_client import Client, JobFailed, ProblemError, Schema, hierarchies
from pais_client.types import ColumnRole, Privacy

Connect = Callable[[str, str], Client]

ROLES: dict[str, ColumnRole] = {
    "patient": "identifier",
    "age": "quasi_identifier",
    "ward": "quasi_identifier",
    "diagnosis": "sensitive",
}
K5: Privacy = {"model": "k_anonymity", "k": 5}


def patients(rows: int = 40) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "patient": [f"P{n:03}" for n in range(rows)],
            "age": [20 + n % 40 for n in range(rows)],
            "ward": [["north", "south"][n % 2] for n in range(rows)],
            "diagnosis": [["flu", "cold", "HIV"][n % 3] for n in range(rows)],
        }
    )


@pytest.fixture
def client(connect: Connect, request: pytest.FixtureRequest) -> Client:
    name = request.node.name.split("[")[0].replace("_", "-")
    return connect(name[:60].strip("-"), "holder")


def test_a_frame_is_anonymized_and_its_rows_are_destroyed(client: Client) -> None:
    frame = patients()
    result = client.anonymize(frame, roles=ROLES, privacy=K5, timeout=120)
    released = result.frame()
    assert list(released.columns) == ["age", "ward", "diagnosis"]
    assert released.groupby(["age", "ward"]).size().min() >= 5
    assert sorted(released["diagnosis"]) == sorted(frame["diagnosis"])
    assert result.report["utility"]["smallest_group"] >= 5
    assert result.release["id"] == result.release_id
    assert client.release(result.release_id)["rows"] == len(frame)
    assert result.dataset_id is None
    assert list(client.datasets()) == []


def test_the_dataset_is_kept_if_asked(client: Client) -> None:
    result = client.anonymize(
        patients(), roles=ROLES, privacy=K5, name="wards", keep_dataset=True, timeout=120
    )
    kept = client.dataset(str(result.dataset_id))
    assert (kept["name"], kept["rows"]) == ("wards", 40)


def test_warnings_of_the_release_are_listed_once(client: Client) -> None:
    privacy: Privacy = {
        "model": "lkc", "l": 2, "k": 2, "c": 0.9, "sensitive_values": {"diagnosis": ["cholera"]},
    }  # fmt: skip
    result = client.anonymize(patients(), roles=ROLES, privacy=privacy, timeout=120)
    codes = [each["code"] for each in result.warnings]
    assert codes.count("listed_value_absent") == 1


def test_a_schema_and_hierarchies_are_used(client: Client) -> None:
    schema = Schema.from_frame(patients()).roles(ROLES).column("age", domain=[0, 120])
    result = client.anonymize(
        patients(),
        schema=schema,
        hierarchies={"ward": hierarchies.from_nested(["north", "south", "west"], "hospital")},
        privacy={"model": "k_anonymity", "k": 15},
        timeout=120,
    )
    cut = result.release.get("cut") or {}
    assert set(cut["ward"]) <= {"hospital", "north", "south", "west"}
    assert all(label.startswith(("[0,", "[")) for label in cut["age"])


def test_an_existing_dataset_takes_the_rows_of_the_call_only(client: Client) -> None:
    schema = Schema.from_frame(patients()).roles(ROLES)
    dataset = client.create_dataset(**schema.to_definition())["id"]
    client.submit(dataset, patients(20))
    result = client.anonymize(
        patients(),
        dataset_id=dataset,
        roles={"ward": "insensitive"},
        privacy=K5,
        timeout=120,
    )
    assert result.dataset_id == dataset
    assert result.release["rows"] == 40
    assert set(result.frame()["ward"]) == {"north", "south"}
    assert client.dataset(dataset)["rows"] == 60


@pytest.mark.parametrize("deletes", [True, False])
def test_a_failed_job_takes_its_rows_back_from_an_existing_dataset(deletes: bool) -> None:
    seen: list[tuple[str, str]] = []

    def handler(request: httpx.Request) -> httpx.Response:
        body = request.read()
        at = (request.method, request.url.path.removeprefix("/v1"))
        seen.append(at)
        match at:
            case ("GET", "/datasets/d"):
                return httpx.Response(200, json={"columns": [], "missing": None})
            case ("POST", "/datasets/d/submissions"):
                digest = hashlib.sha256(body).hexdigest()
                return httpx.Response(201, json={"id": "s", "sha256": digest})
            case ("GET", "/datasets/d/submissions"):
                return httpx.Response(200, json={"items": [{"id": "s"}], "next_cursor": None})
            case ("POST", "/jobs"):
                assert json.loads(body)["submissions"] == ["s"]
                return httpx.Response(202, json={"id": "j"})
            case ("GET", "/jobs/j/events"):
                end = {"id": "j", "status": "failed", "progress": 1.0}
                return httpx.Response(200, text=f"event: end\ndata: {json.dumps(end)}\n\n")
            case ("DELETE", "/jobs/j"):
                return httpx.Response(409, json={"code": "job_ended"})
            case ("DELETE", "/datasets/d/submissions/s") if deletes:
                return httpx.Response(204)
        return httpx.Response(404, json={"code": "not_found"})

    with Client("http://service/", "t", transport=httpx.MockTransport(handler)) as client:
        warned: AbstractContextManager[Any] = (
            nullcontext() if deletes else pytest.warns(RuntimeWarning, match="dataset d ")
        )
        with warned, pytest.raises(JobFailed):
            client.anonymize(patients(), dataset_id="d", privacy=K5)
    assert ("DELETE", "/datasets/d/submissions/s") in seen
    assert ("DELETE", "/datasets/d") not in seen


@pytest.mark.parametrize("keep", [False, True])
def test_nothing_is_left_of_a_job_that_fails(client: Client, keep: bool) -> None:
    with pytest.raises(JobFailed):
        client.anonymize(
            patients(), roles=ROLES, privacy={"model": "k_anonymity", "k": 41}, keep_dataset=keep
        )
    assert list(client.datasets()) == []


def test_nothing_is_left_of_a_refused_request(client: Client) -> None:
    wrong = hierarchies.from_nested(["east", "west"])
    with pytest.raises(ProblemError):
        client.anonymize(patients(), roles=ROLES, hierarchies={"ward": wrong}, privacy=K5)
    with pytest.raises(ProblemError):
        client.anonymize(patients(), roles=ROLES, privacy={"model": "lkc", "k": 0})
    assert list(client.datasets()) == []


def test_nothing_is_left_after_a_timeout(client: Client) -> None:
    with pytest.raises(TimeoutError):
        client.anonymize(patients(), roles=ROLES, privacy=K5, timeout=0.0)
    assert list(client.datasets()) == []


def test_nothing_is_left_after_an_interrupt_or_a_lost_answer(service: Service) -> None:
    network = httpx.HTTPTransport()
    token = service.token("clinic-of-interrupts", "holder")

    def after(path: str, error: BaseException) -> Client:
        """Returns a client that carries a request out, but loses its answer."""

        def handler(request: httpx.Request) -> httpx.Response:
            response = network.handle_request(request)
            if request.method == "POST" and request.url.path.endswith(path):
                response.close()
                raise error
            return response

        return Client(service.url, token, transport=httpx.MockTransport(handler))

    for path, error in [
        ("/v1/datasets", httpx.ReadError("lost")),
        ("/v1/datasets", KeyboardInterrupt()),
        ("/submissions", KeyboardInterrupt()),
        ("/v1/jobs", KeyboardInterrupt()),
    ]:
        with after(path, error) as client, pytest.raises(BaseException) as raised:
            client.anonymize(patients(), roles=ROLES, privacy=K5)
        assert raised.value is error or raised.value.__cause__ is error
        with Client(service.url, token) as client:
            assert list(client.datasets()) == []


def test_every_column_needs_a_role(client: Client) -> None:
    some: dict[str, ColumnRole] = {"age": "quasi_identifier"}
    with pytest.raises(ValueError, match="'patient', 'ward', 'diagnosis'"):
        client.anonymize(patients(), roles=some, privacy=K5)
    with pytest.raises(ValueError, match="'weight'"):
        client.anonymize(patients(), roles={**ROLES, "weight": "insensitive"}, privacy=K5)
    with pytest.raises(TypeError, match="DataFrame"):
        client.anonymize(b"age\n1\n", roles=ROLES, privacy=K5)  # type: ignore[arg-type,unused-ignore]


def test_an_anatomized_release_has_several_tables(client: Client) -> None:
    privacy: Privacy = {"model": "l_diversity", "k": 4, "l": 2}
    result = client.anonymize(patients(), roles=ROLES, privacy=privacy, timeout=120)
    assert set(result.tables) == {"qit", "st_diagnosis"}
    assert "group_id" in result.frame("qit").columns
    with pytest.raises(ValueError, match="qit, st_diagnosis"):
        result.frame()
