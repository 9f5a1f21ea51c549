"""Watches workers, and looks for records that nothing will ever move.

A worker that misses its health checks is unresponsive: its tasks go to others. It may come back, or is ended and
replaced. One that has died is started again, later and later as long as it keeps dying.
"""

from typing import Any, assert_never

import msgspec

from understudy.actors.definition import WorkerKind
from understudy.actors.engine import messages as m
from understudy.actors.engine.house import House
from understudy.actors.engine.worker import Worker
from understudy.actors.engine.worker_seat import WorkerSeat
from understudy.actors.kernel import Actor

RESPAWN_S_MAX = 60.0
TICK_S = 0.25  # the finest grain of a health check


class _Tick(msgspec.Struct, frozen=True):
    """Look at the workers."""


class _Sweep(msgspec.Struct, frozen=True):
    """Look at everything that is alive."""


class _RespawnNow(msgspec.Struct, frozen=True):
    worker_id: str


class Health:
    """What is known of one worker's signs of life."""

    __slots__ = ("deaths", "is_down", "is_watched", "last_beat", "missed", "seat", "since")

    def __init__(self, seat: WorkerSeat) -> None:
        self.seat = seat
        self.is_down = False  # it has ended by itself and is to be started again
        self.is_watched = False  # while it is up; only a process can die or freeze by itself
        self.last_beat = 0.0
        self.missed = 0
        self.deaths = 0  # in a row, without a sign of life in between
        self.since: float | None = None  # when it became unresponsive


class SupervisorState:
    """What the supervisor is rebuilt from."""

    def __init__(self, house: House, seats: list[WorkerSeat]) -> None:
        self.house = house
        self.workers = {seat.id: Health(seat) for seat in seats}


class Supervisor(Actor[Any]):
    __slots__ = ("_house", "_workers")

    mailbox_capacity = 100_000  # bounded by the workers, a few messages for each

    def __init__(self, state: SupervisorState) -> None:
        self._house = state.house
        self._workers = state.workers

    def started(self) -> None:
        for worker_id, health in self._workers.items():
            if worker_id not in self._house.workers:
                ref = self.context.spawn(Worker, health.seat, name=f"worker {worker_id}")
                self._house.workers[worker_id] = ref
            elif health.is_down:  # a life before this one was to start it again
                self.context.tell(_RespawnNow(worker_id))
        self._arm_tick()
        self.context.after(self._house.limits.sweep_s, _Sweep())

    def receive(self, message: Any) -> None:
        match message:
            case m.Beat():
                self._beat(self._workers[message.worker_id])
            case _Tick():
                for health in self._workers.values():
                    if health.is_watched:
                        self._check(health)
                self._arm_tick()
            case m.WorkerUp():
                health = self._workers[message.worker_id]
                health.is_watched = health.seat.definition.kind is WorkerKind.PROCESS
                health.last_beat, health.missed, health.since = self.context.now, 0, None
                health.is_down = False
            case m.WorkerDown():
                self._respawn_later(self._workers[message.worker_id])
            case _RespawnNow(worker_id):
                self._house.workers[worker_id].tell(m.Respawn())
            case _Sweep():
                for workstream in list(self._house.workstreams.values()):
                    workstream.tell(m.Recheck())
                self.context.after(self._house.limits.sweep_s, _Sweep())
            case _:
                assert_never(message)

    def _arm_tick(self) -> None:
        heartbeats = [each.seat.definition.heartbeat for each in self._workers.values()]
        if any(each.seat.definition.kind is WorkerKind.PROCESS for each in self._workers.values()):
            self.context.after(max(min(heartbeats) / 2, TICK_S), _Tick())

    def _beat(self, health: Health) -> None:
        health.last_beat, health.missed, health.deaths = self.context.now, 0, 0
        if health.since is not None:
            health.since = None
            self._house.workers[health.seat.id].tell(m.Recovered())

    def _check(self, health: Health) -> None:
        """Count the signs of life that should have come since the last one."""
        definition, now = health.seat.definition, self.context.now
        health.missed = int((now - health.last_beat) / definition.heartbeat)
        if health.since is None and health.missed >= definition.missed_checks_max:
            health.since = now
            self._house.workers[health.seat.id].tell(m.Unresponsive(health.missed))
        elif health.since is not None and now - health.since >= definition.recovery:
            health.is_watched, health.since = False, None
            self._house.workers[health.seat.id].tell(m.GiveUpOn(definition.recovery))

    def _respawn_later(self, health: Health) -> None:
        health.is_watched, health.since, health.is_down = False, None, True
        delay_s = min(self._house.limits.respawn_s * 2.0 ** min(health.deaths, 10), RESPAWN_S_MAX)
        health.deaths += 1
        self.context.after(0.0 if health.deaths == 1 else delay_s, _RespawnNow(health.seat.id))
