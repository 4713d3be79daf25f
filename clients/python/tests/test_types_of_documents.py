"""`pais_client.types` declares the fields that the service's OpenAPI document has."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, get_args, is_typeddict

import pytest
from service import ROOT

from pais_client import Client, types

DOCUMENT = json.loads((ROOT / "openapi" / "openapi.json").read_text(encoding="utf-8"))
SCHEMAS: dict[str, Any] = DOCUMENT["components"]["schemas"]

# Types that do not have the name of their schema, and those of several schemas.
SCHEMAS_OF: dict[str, tuple[str, ...]] = {
    "Approval": ("ApprovalDocument",),
    "AuditEvent": ("Event",),
    "Column": ("ColumnDefinition",),
    "ColumnChange": ("ColumnPatch",),
    "Composition": ("CompositionDocument",),
    "DatasetRisk": ("RiskDocument",),
    "Edition": ("EditionDocument", "ReceivedEdition"),
    "EditionPlace": ("EditionPlaceDocument",),
    "Grant": ("GrantDocument",),
    "Job": ("JobDocument", "JobSummaryDocument"),
    "NewToken": ("ShownToken",),
    "Privacy": ("PrivacyDefinition",),
    "Problem": ("ProblemDocument",),
    "Profile": ("ProfileDocument",),
    "Publication": ("PublicationDocument", "ReceivedPublication"),
    "PublicationRecipient": ("PublicationRecipientDocument",),
    "Recipient": ("RecipientDocument",),
    "Release": ("ReleaseDocument",),
    "ReleaseFile": ("ReleaseFileDocument",),
    "ReleaseLocation": ("LocatedRelease",),
    "Report": ("ReportDocument", "Report"),
    "RiskReport": ("Risk",),
    "Step": ("StepItem",),
    "Submission": ("SubmissionDocument", "SubmissionSummary"),
    "Table": ("TableDocument",),
    "TextFormat": ("TextFormat", "TextFormatDefinition"),
    "UtilityReport": ("Utility",),
    "Withdrawal": ("WithdrawalDocument",),
}
HIERARCHIES = {
    "Age": "age",
    "Calendar": "calendar",
    "Mask": "mask_right",
    "Ordered": "ordered",
    "Prefix": "prefix",
    "Ranges": "ranges",
    "Rare": "rare",
}
# The document has no schema of it, or it is a part of others.
WITHOUT_SCHEMA = {"ColumnOptions", "Verification"}
# Schemas of requests that a call has parameters for, of parts of others, and of answers that the
# client reads itself or does not fetch.
WITHOUT_TYPE = {
    "ApprovalDefinition", "CallerDocument", "CallerOrganization", "DatasetPatch", "EditionEvent",
    "Enrolment", "GrantDefinition", "GroupMetrics", "Health", "HierarchyPreviewRequest", "JobEvent",
    "LegalHoldDefinition", "NewOrganization", "NewTaxonomy", "OrganizationChange",
    "ProgressDocument", "PublicationDefinition", "PublicationPatch",
    "PublicationRecipientDefinition", "ReleaseDefinition", "ReleaseLocation", "ReportLinkDocument",
    "SeenEdition", "SeenPublication", "SigningKeyDocument", "TableRisk", "TokenRequest",
    "ValueRows", "WithdrawalDefinition",
}  # fmt: skip
WORDS = {"ColumnKind": "Kind", "ModelWord": "Model", "SearchRule": "Search", "SplitRule": "Split"}
# A newer service has further codes; the others are words of one field.
UNTYPED_WORDS = {"AllValues", "LocationFormat", "Outcome", "SweepStatus", "WarningCode"}

TYPED = {name: kind for name in types.__all__ if is_typeddict(kind := getattr(types, name))}


def fields(schema: dict[str, Any]) -> set[str]:
    """Returns the fields of an object, of all parts or variants of it."""
    found = set(schema.get("properties", {}))
    if "$ref" in schema:
        found |= fields(SCHEMAS[schema["$ref"].rpartition("/")[2]])
    for part in [*schema.get("allOf", []), *schema.get("oneOf", []), *schema.get("anyOf", [])]:
        found |= fields(part)
    return found


def declared(kind: Any) -> set[str]:
    return set(kind.__required_keys__ | kind.__optional_keys__)


@pytest.mark.parametrize("name", sorted(TYPED.keys() - HIERARCHIES.keys() - WITHOUT_SCHEMA))
def test_a_type_has_the_fields_of_its_schema(name: str) -> None:
    schemas = SCHEMAS_OF.get(name, (name,))
    assert declared(TYPED[name]) == set().union(*(fields(SCHEMAS[each]) for each in schemas))


def test_the_hierarchies_that_are_made_have_their_options() -> None:
    variants = SCHEMAS["GeneratedHierarchy"]["oneOf"]
    options = {each["properties"]["generate"]["enum"][0]: fields(each) for each in variants}
    assert options.pop("mask_left") == options["mask_right"]
    assert {word: declared(TYPED[name]) for name, word in HIERARCHIES.items()} == options


def test_options_are_those_of_a_column_without_its_name_and_role() -> None:
    # `from` is a word of Python, and no argument.
    assert declared(types.ColumnOptions) == declared(types.Column) - {"name", "role", "from"}


def test_every_document_of_the_service_has_a_type() -> None:
    documents = {name for name, schema in SCHEMAS.items() if fields(schema)}
    documents = {name for name in documents if not name.startswith("Page_")}
    known = {each for name in TYPED for each in SCHEMAS_OF.get(name, (name,))}
    unions = {"GeneratedHierarchy", "TaxonomyReference", "JobRelease"}
    assert documents - known - WITHOUT_TYPE - unions == set()
    assert known & WITHOUT_TYPE == set()


@pytest.mark.parametrize(
    "name", sorted(name for name in SCHEMAS.keys() - UNTYPED_WORDS if "enum" in SCHEMAS[name])
)
def test_words_are_those_of_their_schema(name: str) -> None:
    kind = getattr(types, WORDS.get(name, name))
    assert set(get_args(kind)) == set(SCHEMAS[name]["enum"])


COLUMNS: list[types.Column] = [
    {"name": "born", "role": "quasi_identifier", "kind": "date",
     "taxonomy": {"generate": "age", "at": "2026-01-01", "widths": [10, 20]}},
    {"name": "weight", "role": "quasi_identifier", "kind": "numeric",
     "taxonomy": {"generate": "ranges", "widths": [10], "balance": True}},
    {"name": "grade", "role": "quasi_identifier",
     "taxonomy": {"generate": "ordered", "order": ["low", "high"], "balance": True}},
    {"name": "drugs", "role": "quasi_identifier", "kind": "set"},
    {"name": "diagnosis", "role": "sensitive"},
]  # fmt: skip
ROWS = "born;weight;grade;drugs;diagnosis\n" + "".join(
    f"19{50 + n % 40}-03-01;{50 + n % 30};{['low', 'high'][n % 2]};iron;{'ABC'[n % 3]}\n"
    for n in range(120)
)


def test_documents_have_the_fields_that_are_declared(
    connect: Callable[[str, str], Client],
) -> None:
    """The type checker accepts each of these fields, and the service sends them."""
    client = connect("clinic-of-documents", "holder")
    draft = client.datasets.draft(ROWS.encode(), delimiter=";")
    assert all(each["choices"] for each in draft["doubts"])
    assert set(draft["safe_harbor"].values()) <= set(get_args(types.SafeHarborCategory))

    dataset = client.create_dataset("documents", COLUMNS, format={"delimiter": ";"})["id"]
    client.submit(dataset, ROWS.encode())
    risk = client.datasets.risk(dataset)
    assert risk["singling_out_pairs"] == [] and 0 <= risk["unique_share"] <= 1
    assert risk["combinations_total"] >= len(risk["combinations"])
    assert risk["feasible"]["c_min"] is not None and risk["columns"][0]["role"] != "sensitive"

    job = client.create_job(
        dataset, {"model": "k_anonymity", "k": 5}, roles={"drugs": "insensitive"}, release=True
    )
    release = client.release(str(client.wait(job["id"], timeout=120)["release_id"]))
    assert release["verdict"] in get_args(types.Verdict)
    report = client.report(release["id"])
    assert report["risk"]["prosecutor"] >= report["risk"]["marketer"]
    assert report["risk"]["by_length"][0]["length"] == 1
    assert "weight" in report["utility"]["entropy_loss_by_column"]
    assert report["guidelines"]["opinion_05_2014"]["linkability"]["answer"] == "possible"
    assert report["distributions"][0]["released"][0]["share"] > 0
    assert report["risk"]["unchanged"]["columns"] == ["drugs", "diagnosis"]
