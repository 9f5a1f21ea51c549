"""Threads that never keep the process from exiting: daemons, up to a number, started when there is work for them.

A job may be abandoned. Its thread goes on until the code in it ends, and another one may take its place.
"""

import contextvars
import queue
import threading
from collections.abc import Callable


class Job:
    """Something that runs once, in the context of who submitted it."""

    def __init__(self, work: Callable[[], None], threads: "Threads") -> None:
        self._work = work
        self._threads = threads
        self._context = contextvars.copy_context()
        self.started = False
        self.ended = False
        self.abandoned = False

    def abandon(self) -> None:
        """Wait for it no more. It never starts, if it has not yet."""
        self._threads.abandon(self)

    def run(self) -> None:
        self._context.run(self._work)


class Threads:
    """Runs jobs, at most `most` at a time, those abandoned not counted."""

    def __init__(self, name: str, most: int) -> None:
        self._name = name
        self._most = most
        self._lock = threading.Lock()
        self._waiting: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._queued = 0  # jobs that no thread has taken
        self._idle = 0  # threads that wait for a job
        self._alive = 0

    def submit(self, work: Callable[[], None]) -> Job:
        """Raises `RuntimeError` where the system gives no thread for it."""
        job = Job(work, self)
        with self._lock:
            self._queued += 1
            try:
                self._start_if_needed()
            except BaseException:
                self._queued -= 1
                raise
        self._waiting.put(job)
        return job

    def abandon(self, job: Job) -> None:
        with self._lock:
            if job.abandoned or job.ended:
                return
            job.abandoned = True
            if job.started:
                self._most += 1
                self._start_if_needed()

    def close(self) -> None:
        """Let idle threads end. Those that are busy end when their jobs do."""
        with self._lock:
            for _ in range(self._alive):
                self._waiting.put(None)

    def _start_if_needed(self) -> None:
        if self._queued > self._idle and self._alive < self._most:
            threading.Thread(target=self._serve, name=f"{self._name}-{self._alive + 1}", daemon=True).start()
            self._alive += 1
            self._idle += 1  # it waits for a job from the start

    def _serve(self) -> None:
        while (job := self._waiting.get()) is not None:
            if self._take(job):
                job.run()
            if not self._put_back(job):
                return

    def _take(self, job: Job) -> bool:
        with self._lock:
            self._queued -= 1
            self._idle -= 1
            job.started = not job.abandoned
            return job.started

    def _put_back(self, job: Job) -> bool:
        """Whether the thread goes on."""
        with self._lock:
            job.ended = True
            if job.started and job.abandoned:
                self._most -= 1
            if self._alive > self._most:
                self._alive -= 1
                return False
            self._idle += 1
            return True
