"""An HTTP service whose orders survive it: FastAPI outside, a runtime inside, one process and one file.

    DATABASE=orders.db uvicorn fastapi_app:app

The same `Idempotency-Key` gives the same order, however often it is sent and whatever has crashed in between.
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import FastAPI, Header, HTTPException, Request, status
from pydantic import BaseModel

from understudy.runtime import Flow, NotFound, NotTakingWork, RetryPolicy, Runtime, task


class Order(BaseModel):
    item: str
    amount: int = 1


@task(timeout=10, retry=RetryPolicy(max_attempts=3, base_delay=0.1))
async def reserve(item: str, amount: int) -> str:
    return f"{amount} x {item}"


@task(timeout=10)
async def ship(reserved: str) -> str:
    return f"shipped {reserved}"


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with Runtime(os.environ.get("DATABASE", "orders.db")) as runtime:
        app.state.runtime = runtime
        yield


app = FastAPI(lifespan=lifespan)


@app.post("/orders", status_code=status.HTTP_202_ACCEPTED)
async def place(order: Order, request: Request, idempotency_key: Annotated[str, Header()]) -> dict[str, str]:
    flow = Flow(name="order")
    reserved = flow.add(reserve, order.item, order.amount)
    flow.add(ship, reserved.output)
    runtime: Runtime = request.app.state.runtime
    try:
        handle = await runtime.submit(flow, request_id=idempotency_key)
    except NotTakingWork as busy:
        raise HTTPException(503, str(busy), {"Retry-After": str(busy.retry_after_s)}) from None
    return {"id": handle.id}


@app.get("/orders/{order_id}")
async def show(order_id: str, request: Request) -> dict[str, Any]:
    runtime: Runtime = request.app.state.runtime
    try:
        record = await runtime.workstream(order_id)
    except NotFound as missing:
        raise HTTPException(404, str(missing)) from None
    tasks = {each.key: each.state async for each in runtime.all_tasks(order_id)}
    return {"id": order_id, "state": record.state, "error": record.last_error, "tasks": tasks}


if __name__ == "__main__":
    print("This is an app for a server. With uvicorn installed, in this folder:")
    print("  DATABASE=orders.db uvicorn fastapi_app:app")
    print("""  curl -X POST localhost:8000/orders -H 'Idempotency-Key: 1' --json '{"item": "tea", "amount": 2}'""")
