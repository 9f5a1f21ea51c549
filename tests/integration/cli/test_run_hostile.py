"""Programs and definitions that say what a terminal would obey, too much of it, or a secret: it is shown, and no more."""

import json
import sqlite3
from pathlib import Path

import pytest

from tests.integration.cli.runs import ask, running, shell, wait_for, write
from tests.integration.cli.terminal import needs_tmux, terminal

COMMAND = "understudy run work.yaml --db state.db"
NASTY = {
    "colour": (r"\033[31mred\033[0m", "red"),
    "cleared": (r"\033[2J\033[Hhome", "home"),
    "title": (r"\033]0;owned\007titled", "titled"),
    "link": (r"\033]8;;http://evil\033\\shown\033]8;;\033\\", "shown"),
    "markup": ("[bold red]not bold[/bold red]", "[bold red]not bold[/bold red]"),
    "broken_markup": ("[/red] [error]", "[/red] [error]"),
    "over": (r"10%%\r50%%\r99%%", "99%"),
    "bell": (r"ding\007\010dong", "ding��dong"),
    "nul": (r"a\000b", "a�b"),
    "bytes": (r"caf\351 \377\376", "caf� ��"),
    "c1": (r"\302\2335n", "�5n"),
    "right_to_left": (r"abc\342\200\256cba", "abc�cba"),
    "tab": (r"a\tb", "a   b"),
}


def write_nasty(folder: Path) -> None:
    tasks = [shell(key, f"printf '{text}\\n'; {wait_for('go')}") for key, (text, _) in NASTY.items()]
    write(
        folder,
        "id: w",
        'name: "\\e[31m[bold]named[/bold]\\e[0m"',
        "workers: [{id: many, kind: program, max_concurrent_tasks: 20}]",
        "tasks:",
        *tasks,
    )


@needs_tmux
async def test_what_programs_write_is_shown_as_plain_text(tmp_path: Path) -> None:
    write_nasty(tmp_path)
    async with terminal(tmp_path, 100, 40) as window:
        await window.type(COMMAND)
        screen = await window.shows(*(shown for _, shown in NASTY.values()))
        for key, (_, shown) in NASTY.items():
            assert any(f"● {key} " in line and line.endswith(f"  {shown}") for line in screen.splitlines()), key
        assert screen.splitlines()[0].startswith("# PS1"), "nothing has cleared the screen"
        assert "[bold]named[/bold]  executing" in screen
        assert await window.tmux("display-message", "-p", "#{pane_title}") != "owned\n"
        (tmp_path / "go").touch()
        assert await window.exit_code() == 0


async def test_what_programs_write_is_a_plain_line_each(tmp_path: Path) -> None:
    write_nasty(tmp_path)
    (tmp_path / "go").touch()
    async with running(tmp_path, "work.yaml") as run:
        assert await run.end() == 0
    for key, (_, shown) in NASTY.items():
        assert f"{key} | {shown}" in run.text.splitlines()


async def test_what_programs_write_is_whole_in_json(tmp_path: Path) -> None:
    write_nasty(tmp_path)
    (tmp_path / "go").touch()
    async with running(tmp_path, "work.yaml", "--json") as run:
        assert await run.end() == 0
    lines = {each["task_id"]: each["line"] for each in run.told if each["type"] == "output"}
    assert lines["w/cleared"] == "\x1b[2J\x1b[Hhome"
    assert lines["w/nul"] == "a\0b"


async def test_an_error_that_would_move_the_cursor_is_said_in_plain_text(tmp_path: Path) -> None:
    write(
        tmp_path,
        "id: w",
        "tasks:",
        shell("a", r"printf '\033[2Jgone\nand [red]more\n' >&2; exit 1", ", retry: {max_attempts: 1}"),
    )
    async with running(tmp_path, "work.yaml") as run:
        assert await run.end() == 1
    assert "\x1b" not in run.text
    assert "and [red]more" in run.text


@pytest.mark.parametrize("text", ["\x1b[31m", "a b", "../../etc", "a\nb", "[red]", "ä", "x" * 200])
def test_an_id_that_is_more_than_a_name_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "work.json").write_text(json.dumps({"tasks": [{"id": text, "argv": ["true"]}]}))
    finished = ask(tmp_path, "run", "work.json")
    assert finished.returncode == 5
    assert "\x1b" not in finished.stderr
    assert "Traceback" not in finished.stderr


async def test_a_param_reaches_a_program_letter_by_letter(tmp_path: Path) -> None:
    write(tmp_path, "params: {text: a}", "tasks: [{id: a, argv: [printf, '%s|', '${params.text}']}]")
    given = "'; touch owned; $(touch owned) \x1b[31m [red] \\ \" ${params.text} ü"
    async with running(tmp_path, "work.yaml", "--json", "-p", f"text={given}") as run:
        assert await run.end() == 0
    assert [each["line"] for each in run.told if each["type"] == "output"] == [f"{given}|"]
    assert not (tmp_path / "owned").exists()


@needs_tmux
async def test_a_flood_of_output_keeps_the_view_alive_and_the_log_small(tmp_path: Path) -> None:
    flood = "yes 'a line of output that says nothing in particular' | head -c 100000000"
    long_line = "head -c 3000000 /dev/zero | tr '\\0' x"
    write(tmp_path, "id: w", "tasks:", shell("flood", f"while :; do {flood}; done"), shell("long", long_line))
    async with terminal(tmp_path, 80, 24) as window:
        await window.type(COMMAND)
        await window.shows("flood │ a line of output", "✔ long")
        await window.press("C-c")
        assert await window.exit_code() == 3
        assert all(len(line) <= 80 for line in (await window.screen()).splitlines())
    logs = tmp_path / "state.db.files" / "logs"
    assert sum(path.stat().st_size for path in logs.rglob("*.log")) < 64 * 2**20


SECRET = "canary-5up3r-s3cret"


def write_secret(folder: Path) -> None:
    script = 'echo "the key is $KEY"; echo "err $KEY" >&2; echo "{\\"key\\": \\"$KEY\\"}"; echo $KEY > kept; exit 1'
    tool = f"  leaky: {{argv: [sh, -c, {json.dumps(script)}], env: {{KEY: '${{secrets.UNDERSTUDY_CANARY}}'}}, retry: {{max_attempts: 1}}}}"
    write(folder, "id: w", "secrets: [UNDERSTUDY_CANARY]", "tools:", tool, "tasks: [{id: a, tool: leaky}]")


def files_with(folder: Path, text: str) -> list[str]:
    paths = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink() and path.name != "kept"]
    return [str(path) for path in paths if text.encode() in path.read_bytes()]


@pytest.mark.parametrize("options", [[], ["--json"]])
async def test_a_secret_that_a_program_prints_is_told_and_kept_nowhere(tmp_path: Path, options: list[str]) -> None:
    write_secret(tmp_path)
    async with running(tmp_path, "work.yaml", *options, UNDERSTUDY_CANARY=SECRET) as run:
        assert await run.end() == 1
    assert "the key is ***" in run.text
    assert SECRET not in run.text
    assert (tmp_path / "kept").read_text() == f"{SECRET}\n", "the program itself had it"
    assert files_with(tmp_path, SECRET) == []
    with sqlite3.connect(tmp_path / "state.db") as connection:
        dump = "\n".join(connection.iterdump())
    connection.close()
    assert SECRET not in dump
    for words in (["show", "w/a"], ["explain", "w/a"], ["logs", "w/a"], ["history", "w/a"]):
        assert SECRET not in ask(tmp_path, *words).stdout


@needs_tmux
async def test_a_secret_is_not_on_the_screen(tmp_path: Path) -> None:
    write_secret(tmp_path)
    async with terminal(tmp_path, 100, 30, UNDERSTUDY_CANARY=SECRET) as window:
        await window.type(COMMAND)
        assert await window.exit_code() == 1
        everything = await window.everything()
        assert "the key is ***" in everything
        assert SECRET not in everything


async def test_an_output_that_knows_few_characters_gets_others_in_their_place(tmp_path: Path) -> None:
    write(tmp_path, "tasks:", shell("a", "echo grün"))
    async with running(tmp_path, "work.yaml", PYTHONIOENCODING="ascii", PYTHONUTF8="0") as run:
        assert await run.end() == 0
    assert "a | gr?n" in run.text
