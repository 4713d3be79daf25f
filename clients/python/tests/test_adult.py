"""All calls, end to end on public data: operator, holder, recipient and auditor."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from service import ADULT, Service

from pais_client import Client, Conflict, NotFound, ProblemError
from pais_client.types import Column, ColumnRole, Privacy

Connect = Callable[[str, str], Client]

ROWS = 45_222
HEADER = (
    "age workclass fnlwgt education education-num marital-status occupation relationship race sex "
    "capital-gain capital-loss hours-per-week native-country income"
).split()
ROLES: dict[str, ColumnRole] = {"marital-status": "sensitive", "income": "class"}
TREES = "workclass education occupation relationship race sex native-country".split()
PRIVACY: Privacy = {
    "model": "lkc",
    "l": 4,
    "k": 20,
    "c": 0.2,
    "sensitive_values": {"marital-status": ["Divorced", "Separated"]},
}


def columns(taxonomies: dict[str, str]) -> Iterator[Column]:
    for name in HEADER:
        column: Column = {"name": name, "role": ROLES.get(name, "quasi_identifier")}
        if name in taxonomies:
            column["taxonomy"] = taxonomies[name]
        elif name not in ROLES:
            column["kind"] = "numeric"
        yield column


@pytest.fixture(scope="module")
def dataset(holder: Client) -> dict[str, Any]:
    taxonomies = {}
    for name in TREES:
        root = json.loads((ADULT / "taxonomies" / f"{name}.json").read_text())["root"]
        taxonomies[name] = holder.create_taxonomy(name, root)["id"]
    made = holder.create_dataset("adult", list(columns(taxonomies)), description="UCI Adult")
    submission = holder.submit(made["id"], ADULT / "adult.csv.gz")
    assert submission["rows"] == ROWS
    return dict(holder.dataset(made["id"]))


@pytest.fixture(scope="module")
def job(holder: Client, dataset: dict[str, Any]) -> dict[str, Any]:
    created = holder.create_job(
        dataset["id"], PRIVACY, utility={"objective": "classification"}, release=True
    )
    assert created["status"] in ("queued", "running")
    return dict(holder.wait(created["id"], timeout=300))


def test_admins_create_organizations_and_tokens(connect: Connect, service: Service) -> None:
    admin = connect("operators", "admin")
    assert admin.create_organization("clinic", "The clinic")["display_name"] == "The clinic"
    with pytest.raises(Conflict):
        admin.create_organization("clinic")
    assert "clinic" in {each["name"] for each in admin.organizations(page_size=1)}

    token = admin.create_token("clinic", "holder", label="etl")
    with Client(service.url, token["token"]) as clinic:
        assert list(clinic.datasets()) == []
        admin.revoke_token(token["id"])
        with pytest.raises(ProblemError) as refused:
            list(clinic.datasets())
    assert refused.value.status == 401
    assert all("token" not in each for each in admin.tokens())
    with connect("clinic", "auditor") as auditor:
        assert token["id"] in {each["id"] for each in auditor.own_tokens()}
        created = next(iter(auditor.audit(action="token.created")))
        assert created["outcome"] == "done"
    with pytest.raises(NotFound):
        admin.redeem_enrolment("paisenrol_" + 64 * "0")


def test_a_legal_hold_keeps_a_dataset(connect: Connect) -> None:
    holder = connect("archive", "holder")
    columns: list[Column] = [{"name": "age", "role": "quasi_identifier"}]
    made = holder.create_dataset("held", columns, submission_retention_days=30)
    assert made["submission_retention_days"] == 30
    hold = holder.place_legal_hold(made["id"], "The court asked for the records")
    assert holder.dataset(made["id"])["legal_hold"] == hold
    with pytest.raises(Conflict):
        holder.delete_dataset(made["id"])
    holder.lift_legal_hold(made["id"])
    holder.delete_dataset(made["id"])


def test_taxonomies_are_returned(holder: Client, dataset: dict[str, Any]) -> None:
    listed = {each["name"]: each for each in holder.taxonomies(page_size=3)}
    assert set(TREES) <= set(listed)
    sex = holder.taxonomy(listed["sex"]["id"])
    assert [child["label"] for child in sex["root"]["children"]] == ["Female", "Male"]


def test_a_dataset_lists_its_rows_and_columns(holder: Client, dataset: dict[str, Any]) -> None:
    assert dataset["rows"] == ROWS
    assert [column["name"] for column in dataset["columns"]] == HEADER
    assert dataset["id"] in {each["id"] for each in holder.datasets()}


def test_the_profile_contains_no_cell_values(holder: Client, dataset: dict[str, Any]) -> None:
    profile = holder.profile(dataset["id"])
    assert "Divorced" not in json.dumps(profile)
    assert "age" in json.dumps(profile)


def test_steps_are_a_data_frame(holder: Client, job: dict[str, Any]) -> None:
    steps = holder.steps(job["id"])
    assert list(steps["step"]) == list(range(len(steps)))
    assert steps["groups"].iloc[0] == 1
    assert steps["attribute"].iloc[1] in HEADER
    assert list(holder.iter_steps(job["id"], page_size=7)) == list(holder.iter_steps(job["id"]))


def test_a_download_has_the_sha256_of_the_release(
    holder: Client, job: dict[str, Any], tmp_path: Path
) -> None:
    release = holder.release(job["release_id"])
    assert release["rows"] + release["suppressed_rows"] == ROWS
    path = holder.download(release["id"], tmp_path / "adult.csv")
    assert hashlib.sha256(path.read_bytes()).hexdigest() == release["sha256"]
    assert [each.name for each in tmp_path.iterdir()] == ["adult.csv"]

    frame = holder.release_frame(release["id"])
    assert len(frame) == release["rows"]
    assert sorted(frame.columns) == sorted(HEADER)
    assert set(frame["sex"]) <= set((release["cut"] or {})["sex"])
    assert frame.equals(pd.read_csv(path, keep_default_na=False, na_values=[""]))


@pytest.mark.parametrize("format", ["ndjson", "parquet"])
def test_other_formats_contain_all_rows(
    holder: Client, job: dict[str, Any], tmp_path: Path, format: Any
) -> None:
    path = holder.download(job["release_id"], tmp_path / f"adult.{format}", format=format)
    frame = pd.read_parquet(path) if format == "parquet" else pd.read_json(path, lines=True)
    assert len(frame) == holder.release(job["release_id"])["rows"]
    if format == "parquet":
        assert len(holder.release_frame(job["release_id"], format="parquet")) == len(frame)


def test_a_report_is_that_of_the_release_before_there_is_one(
    holder: Client, job: dict[str, Any]
) -> None:
    before = len(list(holder.releases()))
    assert holder.job_report(job["id"], step=0)["utility"]["groups"] == 1
    report = holder.job_report(job["id"])
    assert report["utility"]["groups"] == holder.report(job["release_id"])["utility"]["groups"]
    assert len(list(holder.releases())) == before


def test_an_earlier_step_can_be_released(holder: Client, job: dict[str, Any]) -> None:
    release = holder.create_release(job["id"], step=0, name="topmost")
    assert release["name"] == "topmost"
    assert holder.report(release["id"])["utility"]["groups"] == 1
    assert release["id"] in {each["id"] for each in holder.releases(page_size=1)}
    with pytest.raises(ProblemError) as refused:
        holder.create_release(job["id"], step=100_000)
    assert refused.value.status == 422


def test_a_sweep_reports_each_combination(holder: Client, dataset: dict[str, Any]) -> None:
    created = holder.create_job(dataset["id"], {**PRIVACY, "l": [2, 4], "k": [20, 100], "c": 1})
    job = holder.wait(created["id"], timeout=120, progress=False)
    rows = holder.sweep(job["id"])
    assert [tuple(row) for row in rows[["l", "k"]].to_numpy()] == [
        (2, 20), (2, 100), (4, 20), (4, 100),
    ]  # fmt: skip
    assert [rows["steps"][row] for row in (0, 2, 3)] == [32, 15, 6]
    steps = holder.steps(job["id"], l=4, k=20)
    assert steps["step"].iloc[-1] == rows["steps"][2]
    release = holder.create_release(job["id"], l=4, k=20)
    assert release["privacy"]["k"] == 20


def test_only_recipients_with_a_grant_can_fetch_a_release(
    connect: Connect, holder: Client, job: dict[str, Any], tmp_path: Path
) -> None:
    bts, insurer = connect("bts", "recipient"), connect("insurer", "recipient")
    assert list(bts.releases()) == []
    grant = holder.create_grant(job["release_id"], "bts", "Modelling the demand for blood")
    assert [each["recipient"]["name"] for each in holder.grants(job["release_id"])] == ["bts"]

    assert [each["id"] for each in bts.releases()] == [job["release_id"]]
    assert bts.report(job["release_id"])["risk"]["highest"] <= 1
    assert bts.download(job["release_id"], tmp_path / "granted.csv").stat().st_size > 0
    with pytest.raises(NotFound):
        insurer.download(job["release_id"], tmp_path / "stolen.csv")
    assert not (tmp_path / "stolen.csv").exists()

    holder.delete_grant(job["release_id"], grant["id"])
    with pytest.raises(NotFound):
        bts.release(job["release_id"])


def test_a_policy_an_approval_a_refused_composition_and_a_withdrawal(
    service: Service, connect: Connect, dataset: dict[str, Any]
) -> None:
    holder, bts = connect("hospital", "holder"), connect("bts", "recipient")
    admin = connect("hospital", "admin")
    issued = admin.create_token("hospital", "officer", label="Dr. Baumann")
    officer = Client(service.url, issued["token"])
    officer.set_policy({"k_min": 10, "require_approval": True})
    try:
        with pytest.raises(ProblemError) as officers:
            holder.set_policy({})
        assert officers.value.code == "officer_required"
        with pytest.raises(ProblemError) as below:
            holder.create_job(dataset["id"], {**PRIVACY, "k": 5})
        assert below.value.code == "below_policy"
        releases = []
        for objective in ("classification", "discernibility"):
            created = holder.create_job(
                dataset["id"], PRIVACY, utility={"objective": objective}, release=True
            )
            job = holder.wait(created["id"], timeout=120, progress=False)
            releases.append(str(job["release_id"]))
        first, second = releases
        with pytest.raises(Conflict) as unapproved:
            holder.create_grant(first, "bts", "Modelling")
        assert unapproved.value.code == "approval_required"
        # Those of earlier tests come first.
        pending = [each["release_id"] for each in officer.approvals(status="pending")]
        assert pending[-2:] == releases
        for release in releases:
            officer.approve_release(release, reason="The board agrees")
        assert holder.release(first)["approval"]["by"]["label"] == "Dr. Baumann"
        holder.create_grant(first, "bts", "Modelling")
        assert len(bts.release_frame(first)) > 0

        found = holder.composition(second, "bts")
        assert not found["holds"] and (found["smallest_group"] or 0) < 20
        with pytest.raises(Conflict) as together:
            holder.create_grant(second, "bts", "Comparing")
        assert together.value.code == "composition_risk"
        reason = "The analysts work on our premises"
        holder.create_grant(second, "bts", "Comparing", acknowledge_composition_risk=reason)

        holder.withdraw_release(first, "An error in the rows")
        with pytest.raises(ProblemError) as gone:
            bts.release_frame(first)
        assert gone.value.status == 410
    finally:
        officer.set_policy({})
        officer.close()
        admin.revoke_token(issued["id"])


def test_the_auditor_sees_releases_newest_first(connect: Connect, job: dict[str, Any]) -> None:
    events = list(connect("hospital", "auditor").audit(page_size=5))
    # Not as text: a fraction of a second has as many digits as it needs.
    times = pd.to_datetime([each["at"] for each in events], format="ISO8601")
    assert times.is_monotonic_decreasing
    assert job["release_id"] in {each["subject"] for each in events}


def test_an_ended_job_cannot_be_cancelled(holder: Client, job: dict[str, Any]) -> None:
    with pytest.raises(Conflict):
        holder.cancel_job(job["id"])
    assert job["id"] in {each["id"] for each in holder.jobs()}
