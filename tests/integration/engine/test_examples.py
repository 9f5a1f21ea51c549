"""The examples do what they say: a service whose orders are taken once, and are there after it was started again."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.engine.world import HANG_S
from tests.meta.house import ROOT

ORDER = {"item": "tea", "amount": 2}


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("DATABASE", str(tmp_path / "orders.db"))
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    import fastapi_app  # type: ignore[import-not-found]

    return fastapi_app.app


def client_of(service: Any) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(service), base_url="http://service")


async def test_an_order_is_taken_once_whatever_crashes_and_its_state_is_shown(service: Any) -> None:
    async with service.router.lifespan_context(service), client_of(service) as client:
        placed = await client.post("/orders", json=ORDER, headers={"Idempotency-Key": "one"})
        again = await client.post("/orders", json=ORDER, headers={"Idempotency-Key": "one"})
        assert (placed.status_code, again.status_code) == (202, 202)
        assert placed.json() == again.json()
        order_id = placed.json()["id"]
        await service.state.runtime.handle(order_id).wait()
        shown = (await client.get(f"/orders/{order_id}")).json()
        assert (shown["state"], shown["tasks"]) == ("completed", {"reserve": "completed", "ship": "completed"})
    async with service.router.lifespan_context(service), client_of(service) as client:  # it is started again
        third = await client.post("/orders", json=ORDER, headers={"Idempotency-Key": "one"})
        assert third.json() == {"id": order_id}
        other = await client.post("/orders", json=ORDER, headers={"Idempotency-Key": "two"})
        assert other.json()["id"] != order_id
        assert len(await service.state.runtime.workstreams()) == 2


async def test_what_is_not_there_or_not_an_order_is_told_as_such(service: Any) -> None:
    async with service.router.lifespan_context(service), client_of(service) as client:
        assert (await client.get("/orders/none")).status_code == 404
        assert (await client.post("/orders", json=ORDER)).status_code == 422
        assert (await client.post("/orders", json={}, headers={"Idempotency-Key": "x"})).status_code == 422


def test_the_embedded_example_says_what_it_does(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "examples" / "embedded.py")]
    finished = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=HANG_S, check=True)
    retried, summary, twice = finished.stdout.splitlines()
    assert retried.startswith("fetch.1 is tried again in 0.")
    assert summary == "11 words on 3 pages"
    assert twice == "asked for twice, done once: True"


def test_the_demo_recovers_from_its_kill_and_shows_every_attempt(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "examples" / "resume_demo.py")]
    finished = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=HANG_S, check=True)
    said = finished.stdout
    for text in ("ended with -9", "run again (crash)", "payments: open", "payments: half_open", "ended with 0"):
        assert text in said
    assert said.index("payments: open") < said.index("ended with -9") < said.index("payments: half_open")
    assert "result: 6 pages read, all orders paid" in said
