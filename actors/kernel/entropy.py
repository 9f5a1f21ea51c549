"""Where the kernel takes chance from: real, or given by a seed.

A seeded source depends on its seed and on the draws made before, on nothing else: not on the
process, not on PYTHONHASHSEED. Independent uses take a fork each, so that one more draw in one
place does not shift the draws of another.
"""

import hashlib
import random
from typing import Protocol


class Entropy(Protocol):
    def random(self) -> float:
        """A float from 0 up to but not including 1."""
        ...

    def below(self, limit: int, /) -> int:
        """A whole number from 0 up to but not including `limit`."""
        ...

    def fork(self, purpose: str) -> "Entropy":
        """An independent source that depends on this one's seed and on the purpose, not on draws made."""
        ...


class SeededEntropy:
    """Chance that repeats: the same seed gives the same draws, everywhere."""

    __slots__ = ("_source", "below", "random", "seed")

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._source = random.Random(seed)
        # Drawn from on every step of a simulation: bound here to save a call.
        self.random = self._source.random
        self.below = self._source.randrange

    def fork(self, purpose: str) -> "SeededEntropy":
        digest = hashlib.blake2b(f"{self.seed}/{purpose}".encode(), digest_size=8).digest()
        return SeededEntropy(int.from_bytes(digest))


class SystemEntropy(SeededEntropy):
    """Real chance: the seed comes from the operating system and can be reported afterwards."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(random.SystemRandom().getrandbits(64))
