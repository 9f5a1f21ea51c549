"""For a process that is there to run workstreams, as a daemon or a benchmark is: settings of the interpreter itself.

An application that embeds a runtime decides for itself; nothing here happens on its own.
"""

import gc
import sys
from typing import Final

SWITCH_S: Final = 0.0001  # beside a busy loop the store's thread waits this long for its turn; 5 ms as shipped
YOUNG_MAX: Final = 20_000  # objects between two looks for cycles; 700 as shipped, which is a fifth of the engine's time


def tune() -> None:
    """Let the store's thread have its turn sooner, and the garbage collector look less often."""
    sys.setswitchinterval(SWITCH_S)
    gc.freeze()
    gc.set_threshold(YOUNG_MAX, 20, 100)
