"""The kernel in a real process: it exits whatever its work does, and Ctrl+C works."""

import signal
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).with_name("process_program.py")
HANG_S = 60  # no claim about speed: a process that has not ended by then will not end


def start(scenario: str) -> subprocess.Popen[str]:
    command = [sys.executable, str(PROGRAM), scenario]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_process_exits_although_work_ignores_its_cancellation_and_actors_never_rest() -> None:
    output, errors = start("stubborn").communicate(timeout=HANG_S)
    assert "abandoned: ('work of Stubborn-1',)" in output
    assert errors == ""


def test_interrupt_from_the_keyboard_stops_in_order() -> None:
    process = start("busy")
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=HANG_S)
    assert output == "second stopped\nfirst stopped\n"
    assert "KeyboardInterrupt" in errors
    assert process.returncode == -signal.SIGINT


def test_keyboard_interrupt_inside_an_actor_is_booked_and_passed_on() -> None:
    process = start("interrupted")
    output, errors = process.communicate(timeout=HANG_S)
    assert output == "second stopped\nfirst stopped\npoison: ['interrupt']\n"
    assert "KeyboardInterrupt" in errors
    assert process.returncode == -signal.SIGINT


def test_system_exit_inside_an_actor_does_not_end_the_process() -> None:
    process = start("exiting")
    output, errors = process.communicate(timeout=HANG_S)
    assert output == "goes on\nsecond stopped\nfirst stopped\npoison: ['exit']\n"
    assert (errors, process.returncode) == ("", 0)
