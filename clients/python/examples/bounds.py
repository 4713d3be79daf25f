"""Computes with released intervals. PAIS_URL and PAIS_TOKEN (role `holder`) name the service."""

import os
import tempfile
from pathlib import Path

import duckdb
import pandas as pd
from sklearn.tree import DecisionTreeClassifier

from pais_client import Client, transform
from pais_client.types import ColumnRole

ages = [20 + 13 * n % 50 for n in range(100)]
patients = pd.DataFrame(
    {
        "age": ages,
        "ward": ["north", "south"] * 50,
        "bleeds": ["yes" if age >= 45 else "no" for age in ages],
    }
)

roles: dict[str, ColumnRole] = {
    "age": "quasi_identifier",
    "ward": "quasi_identifier",
    "bleeds": "class",
}

with Client(os.environ["PAIS_URL"], os.environ["PAIS_TOKEN"]) as client:
    result = client.anonymize(
        patients,
        roles=roles,
        privacy={"model": "k_anonymity", "k": 5},
        utility={"objective": "classification"},
    )
    released = client.release_frame(result.release_id, intervals="bounds")
    release = client.release(result.release_id)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "released.parquet"
        client.download(result.release_id, file, format="parquet", intervals="bounds")
        query = f"SELECT count(*) FROM '{file}' WHERE age_lo >= 45"
        counted = duckdb.connect().execute(query).fetchone()

print("pandas:", len(released[released["age_lo"] >= 45]), "rows from 45 on")
print("DuckDB:", counted[0] if counted else 0)

bounds = ["age_lo", "age_hi"]
model = DecisionTreeClassifier(random_state=0).fit(released[bounds], released["bleeds"])
# New rows are recoded as the released ones, before the model sees them.
new = pd.DataFrame({"age": [24, 66], "ward": ["north", "south"]})
recoded = transform(release, new)
ends = released.drop_duplicates("age").set_index("age")[bounds]
print("scikit-learn:", model.predict(ends.loc[recoded["age"]]).tolist())
