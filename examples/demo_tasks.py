"""What `holdfast demo` runs: the tasks of a small shop, and a producer that keeps them busy.

The tasks have names of their own, because this file is loaded by its path: see `holdfast/cli/demo/tasks_file.py`.
"""

from __future__ import annotations

import asyncio
import random
import time

from holdfast import Holdfast, PermanentError, RetryPolicy, current_job

hf = Holdfast()

CUSTOMERS = ("Ada", "Bob", "Cleo", "Dan", "Eve")
PARTNERS = ("the bank", "the post office", "the tax office")


# Quick: most of the load. Each call says how urgent it is.
@hf.task(name="send_mail", queue="mail")
async def send_mail(to: str) -> None:
    await asyncio.sleep(random.uniform(0.02, 0.15))


@hf.task(name="resize_image", queue="media", priority="bulk")
async def resize_image(number: int) -> str:
    await asyncio.sleep(random.uniform(0.05, 0.2))
    return f"image-{number}.webp"


# A `def`: it runs in a thread, so it may block.
@hf.task(name="write_invoice", queue="media")
def write_invoice(customer: str) -> str:
    time.sleep(random.uniform(0.3, 0.9))
    return f"invoice-{customer}.pdf"


# Slow, with progress. These are the jobs whose worker is killed in the middle.
@hf.task(name="import_rows", queue="imports")
async def import_rows(rows: int) -> int:
    for row in range(1, rows + 1):
        await asyncio.sleep(0.2)
        await current_job().progress(row, rows, stage="reading" if row < rows / 2 else "writing")
    return rows


# Flaky: never answers at first, mostly soon after; now and then it is out of attempts, and a dead letter.
@hf.task(name="call_partner", queue="payments", retry=RetryPolicy(max_attempts=4, base=1.0))
async def call_partner(name: str) -> str:
    await asyncio.sleep(random.uniform(0.1, 0.4))
    if current_job().attempt == 1 or random.random() < 0.4:
        raise ConnectionError(f"{name} does not answer")
    return f"{name} answered"


# Poison: some calls cannot succeed, and say so. They are dead at once.
@hf.task(name="charge", queue="payments", priority="high")
async def charge(customer: str, cents: int) -> str:
    await asyncio.sleep(random.uniform(0.05, 0.3))
    if cents <= 0:
        raise PermanentError(f"{cents} cents cannot be charged")
    return f"{customer} paid {cents} cents"


@hf.task(name="remind", queue="mail")
async def remind(customer: str) -> str:
    return f"{customer} was reminded"


async def produce() -> None:
    """Enqueue a realistic mix, for ever: a steady trickle, and a burst every few seconds."""
    beat = 0
    while True:
        customer = random.choice(CUSTOMERS)
        await hf.enqueue_many([resize_image.request(100 * beat + number) for number in range(random.randrange(4, 9))])
        for priority in ("critical", "normal", "normal", "low"):
            await send_mail.options(priority=priority).enqueue(f"{customer.lower()}@example.org")
        await charge.enqueue(customer, random.randrange(100, 9_000))
        if beat % 2 == 0:
            await call_partner.enqueue(random.choice(PARTNERS))
            await write_invoice.enqueue(customer)
        if beat % 4 == 1:
            await remind.options(delay=random.uniform(3, 8)).enqueue(customer)
        if beat % 8 < 2:
            await import_rows.enqueue(random.randrange(24, 30))
        if beat % 10 == 3:
            await charge.enqueue(customer, -random.randrange(1, 9) * 100)
        if beat % 14 == 5:  # a burst: the urgent mails overtake the images that came before them
            await hf.enqueue_many([resize_image.request(100 * beat + number) for number in range(160)])
            await hf.enqueue_many(
                [send_mail.options(priority="critical").request(f"order-{number}@example.org") for number in range(20)]
            )
        beat += 1
        await asyncio.sleep(0.5)
