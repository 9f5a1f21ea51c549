"""How states, times and reasons are said in views: short, and the same in each of them."""

from typing import Final

from understudy.actors.lifecycle import BreakerState, TaskState, WorkstreamState
from understudy.runtime.views.scene import Scene, TaskView

S = TaskState
SIGNS: Final[dict[TaskState, tuple[str, str]]] = {
    S.PENDING: ("·", "dim"),
    S.QUEUED: ("○", "cyan"),
    S.RUNNING: ("●", "bold blue"),
    S.VALIDATING: ("◆", "bold blue"),
    S.ERRORED: ("!", "yellow"),
    S.TIMED_OUT: ("!", "yellow"),
    S.RETRYING: ("↻", "yellow"),
    S.CIRCUIT_OPEN: ("⊘", "magenta"),
    S.HALF_OPEN: ("◐", "magenta"),
    S.COMPLETED: ("✔", "green"),
    S.RESOLVED: ("✔", "green"),
    S.FAILED: ("✘", "bold red"),
    S.SKIPPED: ("-", "dim"),
    S.CANCELLED: ("✘", "yellow"),
}
STYLES: Final[dict[WorkstreamState, str]] = {
    WorkstreamState.COMPLETED: "bold green",
    WorkstreamState.RESOLVED: "bold green",
    WorkstreamState.FAILED: "bold red",
    WorkstreamState.CANCELLED: "bold yellow",
    WorkstreamState.BLOCKED: "bold magenta",
}


def duration(us: int | None) -> str:
    """A time as people say it: 0.4 s, 12 s, 3:07, 1:02:00."""
    if us is None:
        return ""
    seconds = max(us, 0) / 1e6
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def spent(view: TaskView, now: int) -> str:
    """How long a task has taken, from its first attempt on."""
    if view.started_at is None:
        return ""
    return duration((view.ended_at if view.has_ended and view.ended_at else now) - view.started_at)


def attempts(view: TaskView) -> str:
    """Which attempt it is, where that is worth a word."""
    if view.attempts < 2 and view.state not in (S.RETRYING, S.CIRCUIT_OPEN, S.HALF_OPEN):
        return ""
    return f"attempt {view.attempts} of {view.attempts_max}"


def reason(scene: Scene, view: TaskView, now: int) -> str:
    """What a task does, or what it waits for."""
    match view.state:
        case S.PENDING:
            waits_for = [key for key in view.depends_on if not _has_ended(scene, view, key)]
            shown = ", ".join(waits_for[:3]) + (f" and {len(waits_for) - 3} more" if len(waits_for) > 3 else "")
            return f"waits for {shown}" if waits_for else ""
        case S.QUEUED:
            return "waits for a worker"
        case S.RUNNING:
            return view.line or f"on {view.worker_id}"
        case S.VALIDATING:
            return "checks are running"
        case S.RETRYING:
            left = duration((view.due_at or now) - now)
            return f"again in {left}, after: {view.error}"
        case S.CIRCUIT_OPEN | S.HALF_OPEN:
            return f"waits for the breaker of {view.tool}, after: {view.error}"
        case S.COMPLETED | S.RESOLVED:
            return ""
        case _:
            return view.error or ""


def breakers(scene: Scene, now: int) -> list[str]:
    """Those that are not closed."""
    found: list[str] = []
    for each in list(scene.breakers.values()):
        if each.state is BreakerState.OPEN:
            due = f", a probe in {duration(each.due_at - now)}" if each.due_at is not None else ""
            found.append(f"{each.id} open{due}, after: {each.last_error}")
        elif each.state is BreakerState.HALF_OPEN:
            found.append(f"{each.id} half open, a probe is under way")
    return found


def _has_ended(scene: Scene, view: TaskView, key: str) -> bool:
    before = scene.tasks.get(f"{view.workstream_id}/{key}")
    return before is not None and before.has_ended
