"""The time of day, for what is written down. Nothing waits by it: it can jump."""

import time


def wall_us() -> int:
    """Microseconds since 1970."""
    return time.time_ns() // 1_000
