"""The same seed takes the same steps, in another process and under another PYTHONHASHSEED too."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("traced_program.py")


def run_traced(seed: int, hash_seed: int) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed)}
    command = [sys.executable, str(PROGRAM), str(seed)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("seed", [0, 1, 2**40])
def test_same_seed_gives_the_same_trace_in_another_process(seed: int) -> None:
    first, second = run_traced(seed, hash_seed=1), run_traced(seed, hash_seed=2)
    assert first == second
    assert first.count("\n") > 500


def test_other_seed_gives_another_trace() -> None:
    digests = {run_traced(seed, hash_seed=1).splitlines()[-1] for seed in range(5)}
    assert len(digests) == 5
