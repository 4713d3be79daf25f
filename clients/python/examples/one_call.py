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
        "patient": [f"P{n}" for n in range(24)],
        "job": ["Janitor", "Mover", "Carpenter", "Technician", "Doctor", "Lawyer"] * 4,
        "age": [20 + 13 * n % 50 for n in range(24)],
        "surgery": ["Plastic", "Vascular", "Urology"] * 8,
    }
)

roles: dict[str, ColumnRole] = {
    "patient": "identifier",
    "job": "quasi_identifier",
    "age": "quasi_identifier",
    "surgery": "sensitive",
}

with Client(os.environ["PAIS_URL"], os.environ["PAIS_TOKEN"]) as client:
    result = client.anonymize(
        patients,
        roles=roles,
        hierarchies={"job": JOBS},
        privacy={"model": "lkc", "l": 2, "k": 3, "c": 0.6},
    )

released = result.frame()
print(released.groupby(["job", "age"]).size().to_string())
print(f"smallest group: {result.report['utility']['smallest_group']}")
print(f"highest risk: {result.report['risk']['highest']:.2f}")
for warning in result.warnings:
    print(f"{warning['code']}: {warning['detail']}")
