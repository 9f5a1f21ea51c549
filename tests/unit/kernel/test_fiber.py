"""Async work in simulation: what it may await, and how it is cancelled."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

from understudy.actors.errors import MisuseError
from understudy.actors.kernel import Actor, Cancelled, Failed, SimulatedKernel, Succeeded


class Working(Actor[Any]):
    __slots__ = ("outcomes",)

    def __init__(self, outcomes: list[Any]) -> None:
        self.outcomes = outcomes

    def receive(self, message: Any) -> None:
        if callable(message):
            work = self.context.start(cast("Any", message), lambda outcome: outcome)
            self.context.after(1.0, ("cancel", work))
        elif isinstance(message, tuple):
            message[1].cancel()
        else:
            self.outcomes.append(message)


def outcomes_of(work: Callable[[SimulatedKernel], Awaitable[Any]]) -> tuple[SimulatedKernel, list[Any]]:
    kernel = SimulatedKernel()
    outcomes: list[Any] = []
    kernel.spawn(Working, outcomes).tell(lambda: work(kernel))
    kernel.run()
    return kernel, outcomes


def test_work_that_awaits_what_needs_a_loop_fails_and_may_clean_up() -> None:
    async def work(kernel: SimulatedKernel) -> None:
        try:
            await asyncio.sleep(0)  # noqa: TID251 - the fault under test
        finally:
            await kernel.sleep(0.5)

    kernel, [outcome] = outcomes_of(work)
    assert isinstance(outcome, Failed)
    assert isinstance(outcome.error, MisuseError)
    assert kernel.works == 0


def test_cancelled_sleep_does_not_move_the_clock() -> None:
    async def work(kernel: SimulatedKernel) -> None:
        await kernel.sleep(1e6)

    kernel, outcomes = outcomes_of(work)
    assert outcomes == [Cancelled()]
    assert kernel.clock.now() == 1.0


def test_work_that_ends_its_own_actor_is_cancelled_at_its_next_await() -> None:
    log: list[str] = []

    async def work(kernel: SimulatedKernel) -> None:
        kernel.root.children[0].kill()
        log.append("killed")
        try:
            await kernel.sleep(0.5)
        finally:
            log.append(f"cancelled at {kernel.clock.now()}")

    kernel, outcomes = outcomes_of(work)
    assert outcomes == []
    assert log == ["killed", "cancelled at 0.0"]
    assert kernel.works == 0


def test_work_may_await_an_answer() -> None:
    class Answering(Actor[Any]):
        __slots__ = ()

        def receive(self, message: Any) -> None:
            message.send(42)

    async def work(kernel: SimulatedKernel) -> int:
        answer: int = await kernel.spawn(Answering).ask(lambda reply: reply)
        return answer

    assert outcomes_of(work)[1] == [Succeeded(42)]
