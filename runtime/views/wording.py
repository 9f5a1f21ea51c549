"""How states, times and reasons are said in views: short, and the same in each of them.

What programs and definitions say reaches a screen only as plain text: it moves no cursor and changes no colour.
"""

import re
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
_ESCAPES: Final = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]"  # colours, and what moves the cursor
    r"|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?"  # titles, links and the like
    r"|[ -/]*[0-Z\\-~])"
)
_UNSEEN: Final = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def plain(text: str) -> str:
    """A text as one line that does nothing but to be read. Of a line that was written over, what came last."""
    if text.isascii() and text.isprintable():
        return text
    text = _ESCAPES.sub("", text).rstrip("\r\n")
    text = text.rpartition("\r")[2].replace("\n", " ").expandtabs(4)
    return _UNSEEN.sub("\N{REPLACEMENT CHARACTER}", text)


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


def reason(scene: Scene, view: TaskView, now: int) -> str:
    """What a task does, or what it waits for."""
    which = f"attempt {view.attempts} of {view.attempts_max}"
    match view.state:
        case S.PENDING:
            waits_for = [key for key in view.depends_on if not _has_ended(scene, view, key)]
            shown = ", ".join(waits_for[:3]) + (f" and {len(waits_for) - 3} more" if len(waits_for) > 3 else "")
            said = f"waits for {shown}" if waits_for else ""
        case S.QUEUED:
            breaker = scene.breaker_of(view)
            is_kept_away = breaker is not None and breaker.state is not BreakerState.CLOSED
            said = f"waits for the breaker of {view.tool}" if is_kept_away else "waits for a worker"
        case S.RUNNING | S.VALIDATING:
            doing = "checks are running" if view.state is S.VALIDATING else view.line or f"on {view.worker_id}"
            said = f"{which}: {doing}" if view.attempts > 1 else doing
        case S.RETRYING:
            said = f"again in {duration((view.due_at or now) - now)}{_after(view, which)}"
        case S.CIRCUIT_OPEN | S.HALF_OPEN:
            said = f"waits for the breaker of {view.tool}{_after(view, which)}"
        case S.COMPLETED | S.RESOLVED:
            said = f"at {which}" if view.attempts > 1 else ""
        case _:
            said = view.error or ""
    return plain(said)


def breakers(scene: Scene, now: int) -> list[str]:
    """Those that are not closed."""
    found: list[str] = []
    for each in scene.breakers.values():
        if each.state is BreakerState.OPEN:
            due = f", a probe in {duration(each.due_at - now)}" if each.due_at is not None else ""
            after = f", after: {each.last_error}" if each.last_error else ""
            found.append(f"{each.id} open{due}{after}")
        elif each.state is BreakerState.HALF_OPEN:
            found.append(f"{each.id} half open, a probe is under way")
    return [plain(each) for each in found]


def _after(view: TaskView, which: str) -> str:
    error = f": {view.error}" if view.error else ""
    return f", after {which}{error}" if view.attempts else ""


def _has_ended(scene: Scene, view: TaskView, key: str) -> bool:
    before = scene.tasks.get(f"{view.workstream_id}/{key}")
    return before is not None and before.has_ended
