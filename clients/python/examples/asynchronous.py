"""Anonymizes with two values of k at once. PAIS_URL and PAIS_TOKEN name the service."""

import asyncio
import os

import pandas as pd

from pais_client import AsyncClient
from pais_client.types import ColumnRole

patients = pd.DataFrame(
    {
        "ward": ["north", "south", "east"] * 20,
        "age": [20 + n for n in range(60)],
        "diagnosis": ["flu", "cold"] * 30,
    }
)

roles: dict[str, ColumnRole] = {
    "ward": "quasi_identifier",
    "age": "quasi_identifier",
    "diagnosis": "sensitive",
}


async def smallest_group(client: AsyncClient, k: int) -> int:
    result = await client.anonymize(
        patients, roles=roles, privacy={"model": "k_anonymity", "k": k}, progress=False
    )
    return result.report["utility"]["smallest_group"]


async def main() -> None:
    async with AsyncClient(os.environ["PAIS_URL"], os.environ["PAIS_TOKEN"]) as client:
        found = await asyncio.gather(*(smallest_group(client, k) for k in (5, 25)))
        for k, smallest in zip((5, 25), found, strict=True):
            print(f"k = {k}: the smallest group has {smallest} rows")
        print("releases:", len([release async for release in client.releases()]))


asyncio.run(main())
