"""What test_process starts: one scenario per run, named on the command line."""

import asyncio
import sys
from typing import Any

from understudy.actors.kernel import Actor, LoopKernel


class Endless(Actor[Any]):
    """Never rests, and raises what it is asked for."""

    __slots__ = ()

    def receive(self, message: Any) -> None:
        if message == "interrupt":
            raise KeyboardInterrupt
        if message == "exit":
            raise SystemExit(3)
        self.context.tell(message)

    def stopped(self) -> None:
        print(f"{self.context.name} stopped", flush=True)  # noqa: T201


class Stubborn(Actor[Any]):
    """Has work that swallows every cancellation."""

    __slots__ = ()

    def started(self) -> None:
        self.context.start(self.work, lambda outcome: outcome)

    def receive(self, message: Any) -> None: ...

    async def work(self) -> None:
        while True:
            try:
                await self.context.sleep(3_600)
            except asyncio.CancelledError:
                continue


async def main(scenario: str) -> None:
    kernel = LoopKernel(grace_s=0.05)
    try:
        async with kernel:
            if scenario == "stubborn":
                kernel.spawn(Stubborn)
                kernel.spawn(Endless, name="second").tell("round")
                report = await kernel.close()
                print(f"abandoned: {report.works_abandoned}", flush=True)  # noqa: T201
                return
            first, second = (kernel.spawn(Endless, name=name) for name in ("first", "second"))
            first.tell("round")
            second.tell({"interrupted": "interrupt", "exiting": "exit"}.get(scenario, "round"))
            if scenario == "exiting":
                await kernel.settled(0.05)
                print("goes on", flush=True)  # noqa: T201
                return
            if scenario == "busy":
                print("ready", flush=True)  # noqa: T201
            await asyncio.Event().wait()
    finally:
        if kernel.poison:
            print(f"poison: {[poison.message for poison in kernel.poison]}", flush=True)  # noqa: T201


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
