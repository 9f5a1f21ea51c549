"""The actor kernel: mailboxes, turns, timers and supervision, in real and in virtual time.

What is promised is in docs/kernel.md. Open a `LoopKernel` on a running loop, or make a `SimulatedKernel`.
"""

from understudy.actors.kernel.actor import Actor
from understudy.actors.kernel.clock import Clock, MonotonicClock, VirtualClock
from understudy.actors.kernel.contract import (
    Context,
    EndReason,
    Promise,
    Quarantined,
    Ref,
    Reply,
    Terminated,
    Timer,
    Work,
)
from understudy.actors.kernel.entropy import Entropy, SeededEntropy, SystemEntropy
from understudy.actors.kernel.errors import (
    ActorCrashed,
    ActorStopped,
    ChildCrashed,
    IntakeClosed,
    KernelError,
    MailboxFull,
    RefusedError,
)
from understudy.actors.kernel.kernel import Counts, Health, Kernel, Status, StopReport
from understudy.actors.kernel.loop import LoopKernel
from understudy.actors.kernel.observer import DeadLetter, DeadReason, Observer, Poison
from understudy.actors.kernel.simulated import SimulatedKernel
from understudy.actors.kernel.supervision import Supervision, Verdict, decide
from understudy.actors.kernel.trace import Trace
from understudy.actors.kernel.work import Cancelled, Failed, Outcome, Succeeded

__all__ = [
    "Actor",
    "ActorCrashed",
    "ActorStopped",
    "Cancelled",
    "ChildCrashed",
    "Clock",
    "Context",
    "Counts",
    "DeadLetter",
    "DeadReason",
    "EndReason",
    "Entropy",
    "Failed",
    "Health",
    "IntakeClosed",
    "Kernel",
    "KernelError",
    "LoopKernel",
    "MailboxFull",
    "MonotonicClock",
    "Observer",
    "Outcome",
    "Poison",
    "Promise",
    "Quarantined",
    "Ref",
    "RefusedError",
    "Reply",
    "SeededEntropy",
    "SimulatedKernel",
    "Status",
    "StopReport",
    "Succeeded",
    "Supervision",
    "SystemEntropy",
    "Terminated",
    "Timer",
    "Trace",
    "Verdict",
    "VirtualClock",
    "Work",
    "decide",
]
