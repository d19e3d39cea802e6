"""A scrape, read by Prometheus' own parser; and a client that can be as slow as it likes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

PATIENCE_S = 30.0


class Scraped:
    """What a text says."""

    def __init__(self, text: str) -> None:
        self.families = {family.name: family for family in text_string_to_metric_families(text)}
        self.samples: list[Sample] = [sample for family in self.families.values() for sample in family.samples]

    def found(self, name: str, **labels: str) -> list[Sample]:
        return [each for each in self.samples if each.name == name and labels.items() <= each.labels.items()]

    def value(self, name: str, **labels: str) -> float:
        """Of all samples that have these labels together; 0 where there is none."""
        return sum(each.value for each in self.found(name, **labels))

    def values(self, label: str) -> set[str]:
        """Everything that a label is anywhere."""
        return {each.labels[label] for each in self.samples if label in each.labels}


class Answered(NamedTuple):
    """What came back over one connection."""

    status: int
    head: str
    body: str


def host_and_port(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


async def get(address: str, path: str, *, method: str = "GET", head: str = "") -> Answered:
    """One request as a client makes it."""
    reader, writer = await asyncio.open_connection(*host_and_port(address))
    try:
        writer.write(f"{method} {path} HTTP/1.1\r\nHost: {address}\r\n{head}\r\n".encode())
        async with asyncio.timeout(PATIENCE_S):
            said = (await reader.read()).decode()
    finally:
        writer.close()
    first, _, body = said.partition("\r\n\r\n")
    return Answered(int(first.split()[1]), first, body)


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that has no event of its own."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await asyncio.sleep(0.005)
