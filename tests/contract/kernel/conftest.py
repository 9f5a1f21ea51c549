from collections.abc import AsyncIterator

import pytest

from tests.contract.kernel.world import LoopWorld, SimulatedWorld, World
from understudy.actors.kernel import LoopKernel, SimulatedKernel


@pytest.fixture(params=["loop", "simulated"])
async def world(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    if request.param == "simulated":
        yield SimulatedWorld(SimulatedKernel(seed=1))
    else:
        async with LoopKernel(grace_s=0) as kernel:
            yield LoopWorld(kernel)
