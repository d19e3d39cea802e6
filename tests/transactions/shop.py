"""A task whose effect is a row of the user's, made in the transaction in which its job succeeds."""

from __future__ import annotations

import sys

from tests.campaign.child import die_with_parent
from tests.postgres.fixtures import PostgresSchema
from tests.transactions.bench import Bench

from holdfast import RetryPolicy, current_job


class Shop(Bench):
    """`sell` writes one row per run that counts, into `{schema}_sale`, which takes any number per job."""

    def __init__(self, place: PostgresSchema, *, url: str | None = None, lease_s: float = 10.0) -> None:
        super().__init__(PostgresSchema(url or place.url, place.schema), lease_s=lease_s)
        table = self.table = f"{place.schema}_sale"

        @self.hf.task(name="sell", retry=RetryPolicy(max_attempts=20, base=0.01, cap=0.1))
        async def sell(number: int) -> int:
            job = current_job()
            async with job.transaction() as connection:
                await connection.execute(f"INSERT INTO {table} (job, number) VALUES ($1, $2)", job.id, number)
                job.finish(number * 2)
            return -1  # does not count

        self.sell = sell

    def open_shop(self) -> None:
        """The user's own table."""
        self.do(f"DROP TABLE IF EXISTS {self.table}", f"CREATE TABLE {self.table} (job uuid, number int)")

    def sales(self) -> int:
        return int(self.ask(f"SELECT count(*) FROM {self.table}"))

    def sold_jobs(self) -> int:
        return int(self.ask(f"SELECT count(DISTINCT job) FROM {self.table}"))


def main(url: str, schema: str, lease_s: str) -> None:
    """A worker in a process of its own."""
    die_with_parent()
    Shop(PostgresSchema(url, schema), lease_s=float(lease_s)).hf.run_worker(concurrency=1)


if __name__ == "__main__":
    main(*sys.argv[1:])
