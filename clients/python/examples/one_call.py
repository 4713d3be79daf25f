"""Anonymizes a table in one call. PAIS_URL and PAIS_TOKEN (role `holder`) name the service."""

import os

import pandas as pd

from pais_client import Client, hierarchies
from pais_client.types import ColumnRole

JOBS = hierarchies.from_nested(
    {
        "Blue-collar": {
            "Non-Technical": ["Janitor", "Mover"],
            "Technical": ["Carpenter", "Technician"],
        },
        "White-collar": {"Professional": ["Doctor", "Lawyer"]},
    },
    root="ANY",
)

patients = pd.DataFrame(
    {
        "patient": [f"P{n}" for n in range(12)],
        "job": ["Janitor", "Mover", "Carpenter", "Technician", "Doctor", "Lawyer"] * 2,
        "sex": ["F", "M"] * 6,
        "age": [23, 31, 36, 42, 47, 53, 58, 61, 64, 70, 72, 79],
        "surgery": ["Plastic", "Vascular", "Urology"] * 4,
    }
)

roles: dict[str, ColumnRole] = {
    "patient": "identifier",
    "job": "quasi_identifier",
    "sex": "quasi_identifier",
    "age": "quasi_identifier",
    "surgery": "sensitive",
}

with Client(os.environ["PAIS_URL"], os.environ["PAIS_TOKEN"]) as client:
    result = client.anonymize(
        patients,
        roles=roles,
        hierarchies={"job": JOBS},
        privacy={"model": "k_anonymity", "k": 3},
    )

released = result.frame()
print(released.groupby(["job", "sex", "age"]).size().to_string())
print(f"smallest group: {result.report['utility']['smallest_group']}")
print(f"highest risk: {result.report['risk']['highest']:.2f}")
for warning in result.warnings:
    print(f"{warning['code']}: {warning['detail']}")
