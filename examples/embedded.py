"""Durable work inside a program, in forty lines: run this file.

A flow fetches pages, one of them only at the second try, counts their words beside each other, and sums up.
"""

import asyncio
import tempfile
from pathlib import Path

from understudy.runtime import Flow, RetryPolicy, Runtime, TransientError, current_task, task

PAGES = {"home": "welcome to the house", "about": "three floors and a cellar", "contact": "knock twice"}


@task(timeout=5, retry=RetryPolicy(max_attempts=3, base_delay=0.2))
async def fetch(page: str) -> str:
    if page == "about" and current_task().attempt == 1:
        raise TransientError("the line is busy")
    return PAGES[page]


def count_words(text: str) -> int:  # a plain function runs in a thread
    return len(text.split())


async def sum_up(counts: list[int]) -> str:
    return f"{sum(counts)} words on {len(counts)} pages"


async def main(folder: Path) -> None:
    flow = Flow()
    texts = flow.map(fetch, list(PAGES))
    counts = flow.map(count_words, texts.output)
    summary = flow.add(sum_up, counts.output)
    async with Runtime(folder / "state.db") as runtime:
        handle = await runtime.submit(flow, request_id="count the words")  # durable from here on
        async for event in handle.events():
            if event.trigger == "retry_scheduled":
                print(f"{event.record_id.partition('/')[2]} is tried again {event.reason}")
        print(await handle.output(summary.id))
        again = await runtime.submit(flow, request_id="count the words")
        print(f"asked for twice, done once: {again.id == handle.id}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(Path(folder)))
