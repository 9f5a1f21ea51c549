"""Runs a shell script as a program beside the database that is named, tells its lines, and waits to be killed."""

import asyncio
import sys
from pathlib import Path

from tests.integration.tools.program_place import running_programs


async def main() -> None:
    async with running_programs(Path(sys.argv[1])) as place:
        attempt = place.start(sys.argv[2], shell=True)
        for line in await place.ears.hear(int(sys.argv[3])):
            print(line, flush=True)  # noqa: T201
        await attempt


if __name__ == "__main__":
    asyncio.run(main())
