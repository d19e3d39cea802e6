"""Run with: pytest -c examples/shop/pytest.ini examples/shop"""

from __future__ import annotations

import asyncio

import pytest

from examples.shop.tasks import charge, checkout, hf, send_mail, sent
from holdfast import PermanentError
from holdfast.testing import SyncHarness, harness


def test_a_checkout_enqueues_a_charge(holdfast_harness: SyncHarness) -> None:
    checkout("Ada", 700)
    holdfast_harness.assert_enqueued(charge, "Ada", cents=700)
    holdfast_harness.assert_not_enqueued(send_mail)


def test_a_reminder_goes_out_a_day_later(holdfast_harness: SyncHarness) -> None:
    sent.clear()
    checkout("Ada", 700)
    holdfast_harness.run_due()
    assert sent == ["Ada: thank you"]
    holdfast_harness.assert_enqueued(send_mail, "Ada", "how was it?", queue="mail", delay=86_400)
    holdfast_harness.clock.advance(86_400)
    holdfast_harness.run_due()
    assert sent == ["Ada: thank you", "Ada: how was it?"]


def test_a_bank_that_does_not_answer_is_asked_again(holdfast_harness: SyncHarness) -> None:
    checkout("unlucky", 700)
    first = holdfast_harness.run_until_idle()[0]
    assert (first.state, first.attempt, first.result) == ("succeeded", 3, "unlucky paid 700")


def test_inline_an_error_comes_out_of_the_enqueue() -> None:
    with harness(hf, inline=True), pytest.raises(PermanentError):
        checkout("Bob", -1)


def test_async_code_uses_the_same_harness() -> None:
    async def main() -> None:
        async with harness(hf) as t:
            job = await charge.enqueue("Ada", 700)
            await t.run_due()
            assert await job.result(timeout=10) == "Ada paid 700"
            t.assert_enqueued_count(send_mail, 2)

    asyncio.run(main())
