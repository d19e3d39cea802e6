"""The shop's tasks: an order is charged, then shipped; a reminder goes out a day later."""

from __future__ import annotations

from holdfast import Holdfast, PermanentError, RetryPolicy, current_job

hf = Holdfast("sqlite:///shop.db")

sent: list[str] = []


@hf.task(queue="mail")
def send_mail(to: str, subject: str) -> None:
    sent.append(f"{to}: {subject}")


@hf.task(retry=RetryPolicy(max_attempts=3, base=60))
async def charge(customer: str, cents: int) -> str:
    if cents <= 0:
        raise PermanentError(f"{cents} cents cannot be charged")
    if customer == "unlucky" and current_job().attempt < 3:
        raise ConnectionError("the bank does not answer")
    await send_mail.enqueue(customer, "thank you")
    await send_mail.options(delay=86_400).enqueue(customer, subject="how was it?")
    return f"{customer} paid {cents}"


def checkout(customer: str, cents: int) -> None:
    """What a view of the shop's website calls: ordinary code without an event loop."""
    charge.sync.enqueue(customer, cents)
