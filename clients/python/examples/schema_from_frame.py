"""Drafts a schema from a DataFrame, changes it and uses it. PAIS_URL and PAIS_TOKEN are needed."""

import os

import pandas as pd

from pais_client import Client, Schema, hierarchies, parse_intervals

rows = 60
visits = pd.DataFrame(
    {
        "patient": [f"P{n:03}" for n in range(rows)],
        "zip": [f"{2500 + n % 20}" for n in range(rows)],
        "born": pd.date_range("1950-01-01", periods=rows, freq="90D"),
        "age": pd.cut([20 + n for n in range(rows)], [0, 40, 60, 100]),
        "units": [n % 5 for n in range(rows)],
        "diagnosis": ["flu", "cold", "asthma"] * 20,
    }
)

with Client(os.environ["PAIS_URL"], os.environ["PAIS_TOKEN"]) as client:
    schema = Schema.from_frame(visits, name="visits", client=client)
    for column in ("patient", "zip", "age"):
        print(f"{column}: {'; '.join(schema.reasons[column])}")

    schema = (
        schema.identifier("patient")
        .quasi_identifier("zip", "born", "age")
        .insensitive("units")
        .sensitive("diagnosis")
        .column("zip", kind="categorical")
        .hierarchy("zip", hierarchies.prefix([3, 2]))
        .hierarchy("born", hierarchies.calendar(["year", "decade"]))
    )
    dataset = client.create_dataset(**schema.to_definition())
    client.submit(dataset["id"], visits)
    job = client.create_job(dataset["id"], {"model": "k_anonymity", "k": 5}, release=True)
    released = client.release_frame(str(client.wait(job["id"])["release_id"]))

print(released.groupby(["zip", "born", "age"]).size().to_string())
print("bounds:", sorted({str(each) for each in parse_intervals(released["age"]).dropna()}))
