"""Much output, and output that holds secrets: memory and logs stay within bounds, and nothing is given away."""

import base64
import json
import sys
import urllib.parse
from collections import deque
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.integration.tools.program_place import ProgramPlace, running_programs
from understudy.actors.definition import Gives
from understudy.actors.ports.workplace import Report
from understudy.adapters.tools.attempt_log import HEAD_BYTES, TAIL_BYTES, AttemptLog
from understudy.adapters.tools.secrets import Secrets
from understudy.adapters.tools.streams import LINE_BYTES_MAX, Stream

CANARY = 'c4nary"se/cret\\ value'
KEY = "-----BEGIN KEY-----\nMIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC\nab\n-----END KEY-----"
NAMES = ("CANARY_OF_TESTS", "KEY_OF_TESTS")
MEMORY_BYTES_MAX = 50_000_000
LINES = """
import sys
line = "%09d " + "x" * 90
for start in range(0, {count}, 1000):
    sys.stdout.write("\\n".join(line % number for number in range(start, start + 1000)) + "\\n")
"""
PIECES = """
import os, sys
data = sys.stdin.buffer.read()
for at in range(0, len(data), 7):
    os.write(int(sys.argv[1]), data[at:at + 7])
"""


@pytest.fixture
async def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ProgramPlace]:
    monkeypatch.setenv("CANARY_OF_TESTS", CANARY)
    monkeypatch.setenv("KEY_OF_TESTS", KEY)
    async with running_programs(tmp_path) as made:
        yield made


def memory_bytes(name: str) -> int:
    [line] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(f"{name}:")]
    return int(line.split()[1]) * 1024


def everything(place: ProgramPlace, *reports: Report) -> str:
    """All that an attempt gives out."""
    return "\n".join([repr(reports), *place.logs(), *place.ears.lines])


def assert_nothing_is_given_away(text: str) -> None:
    for form in (CANARY, "c4nary", json.dumps(CANARY)[1:-1], repr(CANARY)[1:-1], urllib.parse.quote(CANARY, safe="")):
        assert form not in text
    for line in ("MIIEvQIBADANBgkq", "hkiG9w0BAQEFAASC"):
        assert line not in text


@pytest.mark.parametrize(
    "argv",
    [
        (sys.executable, "-c", LINES.format(count=2_560_000)),
        ("sh", "-c", "head -c 258560000 /dev/zero | tr '\\0' x"),
    ],
    ids=["lines", "one-line"],
)
async def test_memory_and_log_stay_bounded_however_much_is_written(place: ProgramPlace, argv: tuple[str, ...]) -> None:
    place.ears.lines = deque(maxlen=1)
    await place.run("true")
    Path("/proc/self/clear_refs").write_text("5")  # the peak is counted from here
    before = memory_bytes("VmRSS")
    report = await place.run(*argv)
    assert memory_bytes("VmHWM") - before < MEMORY_BYTES_MAX
    assert report.error is None
    assert report.output_bytes < 70_000
    [log] = place.folders.logs("flow")
    assert HEAD_BYTES < log.path.stat().st_size <= HEAD_BYTES + TAIL_BYTES
    lines = log.path.read_text().splitlines()
    [marker] = [number for number, line in enumerate(lines) if line.startswith("[... ")]
    assert lines[marker].startswith("[... 257.")
    if argv[0] == sys.executable:
        head = [int(line.split()[0]) for line in lines[:marker]]
        tail = [int(line.split()[0]) for line in lines[marker + 1 :]]
        assert head == list(range(len(head)))
        assert tail == list(range(2_560_000 - len(tail), 2_560_000))


async def test_a_result_that_is_much_too_large_says_its_size(place: ProgramPlace) -> None:
    report = await place.run("sh", "-c", "head -c 64000000 /dev/zero", gives=Gives.JSON)
    assert (report.error, report.permanent) == ("result 64.0 MB > 1 MiB: return a file", True)


async def test_a_program_has_no_secret_that_it_was_not_given(place: ProgramPlace) -> None:
    assert (await place.script("env | grep -c _OF_TESTS; true", secrets=NAMES)).output == "0"
    count = 'printf %s "$TAKEN$1" | wc -c'
    assert (await place.script(count, CANARY, env={"TAKEN": CANARY}, secrets=NAMES)).output.strip() == "42"


@pytest.mark.parametrize("descriptor", ["1", "2"])
@pytest.mark.parametrize("code", [0, 3])
async def test_a_secret_is_shown_nowhere_wherever_it_came_from(place: ProgramPlace, descriptor: str, code: int) -> None:
    script = f'(cat; echo "env $TAKEN"; echo "argv $1"; printf "%s" "$TAKEN") >&{descriptor}; exit {code}'
    report = await place.script(script, CANARY, env={"TAKEN": CANARY}, stdin=f"{CANARY}\n{KEY}\n", secrets=NAMES)
    assert_nothing_is_given_away(everything(place, report))
    assert "argv ***" in place.logs()[0]
    assert report.exit_code == code


@pytest.mark.parametrize("descriptor", ["1", "2"])
async def test_a_secret_that_arrives_in_pieces_is_shown_nowhere(place: ProgramPlace, descriptor: str) -> None:
    text = (
        f"one {CANARY} two {CANARY}{CANARY}\n{KEY}\n{json.dumps([CANARY, KEY])} {urllib.parse.quote(CANARY, safe='')}"
    )
    report = await place.python(PIECES, descriptor, stdin=text, secrets=NAMES)
    assert_nothing_is_given_away(everything(place, report))
    assert "one *** two ******" in place.logs()[0]


async def test_a_secret_in_a_result_is_shown_nowhere(place: ProgramPlace) -> None:
    text = json.dumps({"a": [CANARY], CANARY: f"x{CANARY}"}).replace("4", "\\u0034")
    for script, gives in (("cat", Gives.JSON), ("cat > $UNDERSTUDY_OUTPUT", Gives.TEXT)):
        report = await place.script(script, stdin=text, gives=gives, secrets=NAMES)
        assert (report.error, report.output) == (None, {"a": ["***"], "***": "x***"})


@pytest.mark.parametrize(
    "program",
    [(CANARY,), (f"./{CANARY}",), ("echo", f"{CANARY}\0")],
)
async def test_a_secret_in_a_refusal_is_shown_nowhere(place: ProgramPlace, program: tuple[str, ...]) -> None:
    refused = await place.run(*program, secrets=NAMES)
    astray = await place.run("pwd", cwd=CANARY, secrets=NAMES)
    assert refused.permanent
    assert astray.permanent
    assert_nothing_is_given_away(everything(place, refused, astray))


@given(before=st.integers(0, 200), many=st.integers(1, 4), size=st.integers(1, 9_000), filler=st.sampled_from("xé€😀"))
def test_no_secret_slips_through_the_cut_of_a_long_line(before: int, many: int, size: int, filler: str) -> None:
    secret = "s3cret-" + base64.b32encode(bytes(range(90))).decode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LONG_OF_TESTS", secret)
        secrets = Secrets(("LONG_OF_TESTS",))
    lines: list[str] = []
    stream = Stream(secrets, AttemptLog(Path("/dev/null"), head_bytes=2**40), lines.append)
    text = filler * (LINE_BYTES_MAX // len(filler.encode()) - before) + secret * many + filler * LINE_BYTES_MAX + secret
    data = text.encode()
    for start in range(0, len(data), size):
        stream.feed(data[start : start + size])
    stream.end()
    assert "".join(lines) == text.replace(secret, "***")
    assert max(len(line.encode()) for line in lines) <= LINE_BYTES_MAX


def test_a_log_keeps_its_head_and_its_tail_and_counts_what_is_between(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "a.1.1.log"
    log = AttemptLog(path, head_bytes=100, tail_bytes=100)
    for number in range(10_000):
        log.write(b"%09d\n" % number)
        assert path.stat().st_size <= 350
    log.close()
    lines = path.read_text().splitlines()
    assert lines[:10] == [f"{number:09d}" for number in range(10)]
    assert lines[10].startswith("[... 99.8 kB left out")
    assert lines[11:] == [f"{number:09d}" for number in range(10_000 - len(lines[11:]), 10_000)]
    assert [each.name for each in path.parent.iterdir()] == ["a.1.1.log"]
