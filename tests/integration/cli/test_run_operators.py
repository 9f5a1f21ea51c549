"""Operators at a run that goes on in another terminal, and what files can do with each other."""

import subprocess
from pathlib import Path

from tests.integration.cli.runs import ask, running, shell, state_of, wait_for, write

WAITS = wait_for("go")


async def test_a_task_is_resolved_while_its_run_goes_on(tmp_path: Path) -> None:
    write(tmp_path, "id: w", "tasks:", shell("a", f"echo begun; {WAITS}"), shell("b", "true", ", after: [a]"))
    async with running(tmp_path, "work.yaml") as run:
        await run.says("a | begun")
        refused = ask(tmp_path, "reset", "w/a")
        assert (refused.returncode, "is not for a task that is running" in refused.stderr) == (1, True)
        resolved = ask(tmp_path, "resolve", "w/a", "--why", "done by hand")
        assert (resolved.returncode, resolved.stdout) == (0, "w/a is resolved\n")
        assert await run.end() == 0
    assert state_of(tmp_path, "w/b")["state"] == "completed"


async def test_a_breaker_is_reset_while_its_run_waits_for_it(tmp_path: Path) -> None:
    tool = (
        "{argv: ['test -e go || { echo down; exit 1; }'], shell: true, breaker: {failure_threshold: 1, cooldown: 3600}}"
    )
    write(tmp_path, "id: w", f"tools: {{api: {tool}}}", "tasks:", "  - {id: a, tool: api}")
    async with running(tmp_path, "work.yaml") as run:
        await run.says("breaker api open")
        (tmp_path / "go").touch()
        done = ask(tmp_path, "breaker", "reset", "api")
        assert done.returncode == 0, done.stderr
        assert await run.end() == 0


async def test_workers_of_a_run_are_paused_and_resumed_from_outside(tmp_path: Path) -> None:
    write(tmp_path, "id: w", "tasks:", shell("a", f"echo begun; {WAITS}"), shell("b", "true", ", after: [a]"))
    async with running(tmp_path, "work.yaml") as run:
        await run.says("a | begun")
        assert ask(tmp_path, "worker", "pause", "programs").returncode == 0
        (tmp_path / "go").touch()
        await run.says("a completed")
        explained = ask(tmp_path, "explain", "worker:programs")
        assert "understudy worker resume programs" in explained.stdout
        assert ask(tmp_path, "worker", "resume", "programs").returncode == 0
        assert await run.end() == 0


async def test_a_process_that_does_not_listen_is_named(tmp_path: Path) -> None:
    write(tmp_path, "id: w", "tasks:", shell("a", f"echo begun; {WAITS}"))
    async with running(tmp_path, "work.yaml") as run:
        await run.says("a | begun")
        (tmp_path / "state.db.files" / "desk").unlink()
        refused = ask(tmp_path, "cancel", "w")
        assert (refused.returncode, f"in use by pid {run.pid}" in refused.stderr) == (2, True)


async def test_a_file_runs_functions_that_lie_beside_it_from_wherever_it_is_started(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "goods_of_tests.py").write_text("def price(of):\n    return len(of)\n")
    definition = "id: w\ntasks:\n  - {id: a, call: goods_of_tests:price, with: {of: apple}}\n"
    (tmp_path / "shop" / "work.yaml").write_text(definition)
    async with running(tmp_path, "shop/work.yaml") as run:
        assert await run.end() == 0, run.text


CHILD = """
on_failure: block
params: {name: nobody}
tasks:
  - {id: greet, argv: [sh, -c, 'test -e go && echo "hello $1"', sh, '${params.name}'], retry: {max_attempts: 1}}
"""
PARENT = """
id: w
tasks:
  - id: both
    call: understudy.runtime.nesting:run_file
    with: {file: child.yaml, params: {name: ann}}
  - {id: after, argv: [echo, '${both.output.greet}']}
"""


async def test_a_file_within_a_file_that_is_blocked_is_resumed_with_its_parent(tmp_path: Path) -> None:
    (tmp_path / "work.yaml").write_text(PARENT)
    (tmp_path / "child.yaml").write_text(CHILD)
    async with running(tmp_path, "work.yaml") as run:
        assert await run.end() == 4, run.text
    assert state_of(tmp_path, "w.both.1.0")["state"] == "blocked"
    (tmp_path / "go").touch()
    async with running(tmp_path, "--resume", "w") as run:
        assert await run.end() == 0, run.text
    assert "after | hello ann" in run.text
    assert state_of(tmp_path, "w.both.1.0")["state"] == "completed"


async def test_params_that_a_nested_file_does_not_have_are_refused(tmp_path: Path) -> None:
    (tmp_path / "work.yaml").write_text(PARENT.replace("name: ann", "nom: ann"))
    (tmp_path / "child.yaml").write_text(CHILD)
    async with running(tmp_path, "work.yaml") as run:
        assert await run.end() == 1
    assert "$.params.nom: there is no such param" in run.text


def git(folder: Path, *words: str, check: bool = True) -> str:
    identity = ("-c", "user.name=ann", "-c", "user.email=ann@localhost")
    return subprocess.run(
        ["git", "-C", str(folder), *identity, *words], check=check, capture_output=True, text=True
    ).stdout


async def test_a_conflict_blocks_the_run_and_is_settled_by_hand_in_the_worktree(tmp_path: Path) -> None:
    repository = tmp_path / "repo"
    git(tmp_path, "init", "-q", "-b", "main", str(repository))
    (repository / "app").write_text("one\n")
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "first")
    write(
        tmp_path, "id: w", "workspace: {kind: worktree, path: '${directory}/repo'}", "checks: [{file_exists: app}]",
        "tasks:", shell("a", "echo theirs > app; echo begun; while [ ! -e $1/go ]; do sleep 0.02; done")
        .replace("]", ", sh, '${directory}']"),
    )  # fmt: skip
    async with running(tmp_path, "work.yaml") as run:
        await run.says("a | begun")
        (repository / "app").write_text("ours\n")
        git(repository, "commit", "-qam", "meanwhile")
        (tmp_path / "go").touch()
        assert await run.end() == 4, run.text
    explained = ask(tmp_path, "explain", "w").stdout
    worktree = tmp_path / "state.db.files" / "workspaces" / "w"
    assert f"merge main into the worktree {worktree} by hand" in " ".join(explained.split())
    assert git(repository, "show", "main:app") == "ours\n"
    git(worktree, "merge", "-q", "main", check=False)
    (worktree / "app").write_text("both\n")
    git(worktree, "commit", "-qam", "settled")
    async with running(tmp_path, "--resume", "w") as run:
        assert await run.end() == 0, run.text
    assert git(repository, "show", "main:app") == "both\n"
    assert (repository / "app").read_text() == "both\n"
    assert "a running" not in run.text, "what has succeeded is not run again"
    assert not worktree.exists()


async def test_what_a_program_wrote_cannot_paint_on_the_screen_of_who_looks_at_it(tmp_path: Path) -> None:
    write(
        tmp_path,
        "id: w",
        "tasks:",
        shell("a", "printf '\\033[2J\\033]0;mine\\007red' >&2; exit 1", ", retry: {max_attempts: 1}"),
    )
    async with running(tmp_path, "work.yaml") as run:
        assert await run.end() == 1
    shown = ask(tmp_path, "show", "w").stdout
    assert "red" in shown
    assert "\x1b" not in shown
