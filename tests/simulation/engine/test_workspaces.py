"""Where a workstream works: made before its tasks, merged after its checks, and never thrown away with work in it."""

from typing import Any

import pytest

from tests.simulation.engine.world import MortalStore, Refused, ScriptedWorkspaces, Takes, World, step, stream
from understudy.actors.definition import Check, Workspace, WorkspaceKind
from understudy.actors.engine.requests import Operation
from understudy.actors.lifecycle import Entity
from understudy.actors.ports.workplace import Order

WORKTREE = Workspace(WorkspaceKind.WORKTREE, path="repo")


def in_worktree(*tasks: Any, **fields: Any) -> Any:
    return stream(*tasks, workspace=WORKTREE, **fields)


def moves(world: World) -> list[str]:
    return [move.to_state for move in world.moves(Entity.WORKSTREAM, "ws")]


def test_tasks_work_in_the_workspace_and_it_is_merged_and_removed_in_the_end() -> None:
    world = World()
    world.submit(in_worktree(step("a"), step("b", "a"), checks=(Check(command=("pytest",), name="tests"),)))
    world.run()
    assert world.workspaces.asked == ["prepare ws", "plan ws", "merge ws", "remove ws"]
    assert moves(world) == ["planned", "ready", "executing", "validating", "completed"]
    assert {order.place.directory for order in world.runs if order.place} == {"/work/ws"}
    assert all(order.place is not None and order.place.is_closed for order in world.runs)
    [(_, subject)] = world.subjects
    assert subject.place is not None
    assert subject.place.directory == "/work/ws"
    record = world.workstream()
    assert record.merge is not None
    assert (record.merge.commit, record.merge.files, record.workspace) == ("c0ffee", ("a.py",), "/work/ws")
    assert not world.workspaces.held


def test_a_directory_is_neither_merged_nor_removed() -> None:
    world = World()
    world.submit(stream(step("a"), workspace=Workspace(WorkspaceKind.DIRECTORY)))
    world.run()
    assert world.workspaces.asked == ["prepare ws"]
    assert world.workstream().state == "completed"


def test_without_a_workspace_relative_paths_refer_to_the_directory_of_the_definition() -> None:
    world = World()
    world.submit(stream(step("a"), directory="/home/ann"))
    world.run()
    [order] = world.runs
    assert order.place is not None
    assert (order.place.directory, order.place.is_closed) == ("/home/ann", False)


def test_a_workspace_that_cannot_be_made_rejects_the_workstream_until_it_is_reset() -> None:
    world = World()
    world.workspaces.broken = {"prepare"}
    world.submit(in_worktree(step("a")))
    world.run()
    assert moves(world) == ["planned", "failed"]
    assert world.workstream().last_error == "its workspace cannot be made: cannot prepare"
    world.workspaces.broken = set()
    world.do(Operation.RESET, "ws")
    world.run()
    assert world.workstream().state == "completed"
    assert world.states() == {"a": "completed"}


def test_a_conflict_blocks_the_workstream_and_a_reset_tries_the_merge_again() -> None:
    world = World()
    world.workspaces.conflicts = ("app.py",)
    world.submit(in_worktree(step("a"), checks=(Check(command=("pytest",), name="tests"),)))
    world.run()
    record = world.workstream()
    assert (record.state, record.last_error) == ("blocked", "understudy/ws conflicts with main in app.py")
    assert not world.subjects, "nothing is validated that cannot be merged"
    world = world.crash()
    world.run()
    assert world.workstream().state == "blocked"
    world.workspaces.conflicts = ()
    world.do(Operation.RESET, "ws", who="ann", why="merged by hand")
    world.run()
    assert world.workstream().state == "completed"
    assert [order.token for order in world.runs] == [], "no task ran again"
    fixed = next(move for move in world.moves(Entity.WORKSTREAM, "ws") if move.trigger == "task_fixed")
    assert (fixed.who, fixed.reason) == ("ann", "merged by hand")


@pytest.mark.parametrize("operation", [Operation.CANCEL, Operation.GIVE_UP, Operation.RESOLVE])
def test_a_blocked_merge_may_be_given_up_and_its_files_are_kept(operation: Operation) -> None:
    world = World()
    world.workspaces.conflicts = ("app.py",)
    world.submit(in_worktree(step("a")))
    world.run()
    world.do(operation, "ws", why="enough")
    world.run()
    assert "remove ws" not in world.workspaces.asked
    assert world.workstream().workspace == "/work/ws"
    assert world.workstream().last_error == "enough; its files are kept in /work/ws"


def test_a_failure_keeps_the_worktree_and_says_where() -> None:
    def script(order: Order) -> Any:
        raise Refused("no", permanent=True)

    world = World(script)
    world.submit(in_worktree(step("a")))
    world.run()
    assert world.workspaces.asked == ["prepare ws"]
    assert world.workstream().last_error == "task a did not succeed; its files are kept in /work/ws"


@pytest.mark.parametrize(("step_", "state"), [("plan", "blocked"), ("merge", "failed"), ("remove", "completed")])
def test_what_cannot_be_done_with_a_worktree_is_told(step_: str, state: str) -> None:
    world = World()
    world.workspaces.broken = {step_}
    world.submit(in_worktree(step("a")))
    world.run()
    assert world.workstream().state == state
    assert not world.workspaces.held
    if state == "completed":
        assert world.notes[-1][0] == "workspace not removed"
    else:
        assert f"it cannot be merged: cannot {step_}" in str(world.workstream().last_error)


def test_failed_final_checks_give_the_turn_back_and_merge_nothing() -> None:
    world = World()
    world.faults = lambda name, attempt: "red"
    world.submit(in_worktree(step("a"), checks=(Check(command=("pytest",), name="tests"),)))
    world.run()
    assert world.workstream().state == "failed"
    assert world.workspaces.asked == ["prepare ws", "plan ws"]
    assert not world.workspaces.held


def test_a_reset_after_the_merge_begins_in_a_new_worktree() -> None:
    world = World()
    world.submit(in_worktree(step("a")))
    world.run()
    world.do(Operation.RESET, "ws/a")
    world.run()
    assert world.workspaces.asked == ["prepare ws", "plan ws", "merge ws", "remove ws"] * 2
    assert world.workstream().state == "completed"


@pytest.mark.parametrize("seed", range(5))
def test_a_crash_after_any_commit_ends_in_the_same_result(seed: int) -> None:
    definition = in_worktree(step("a"), step("b", "a"), checks=(Check(command=("x",), name="tests"),))
    commits = 0
    for commits in range(1, 100):
        store = MortalStore(commits)
        world = World(lambda order: Takes(1, order.key), seed=seed, store=store)
        world.submit(definition)
        world.kernel.run(until=100)
        if not store.refused:
            break
        again = world.crash(workspaces=ScriptedWorkspaces())
        if (Entity.WORKSTREAM, "ws") not in store._records:
            continue
        again.run()
        assert again.workstream().state == "completed", commits
        assert again.states() == {"a": "completed", "b": "completed"}
        done = world.workspaces.asked + again.workspaces.asked
        assert {"prepare ws", "merge ws", "remove ws"} <= set(done)
    assert 5 < commits < 99


def test_the_repository_of_a_worktree_may_be_a_param() -> None:
    world = World()
    world.submit(
        stream(
            step("a"),
            params={"repository": "shop"},
            directory="/home/ann",
            workspace=Workspace(WorkspaceKind.WORKTREE, path="${directory}/${params.repository}"),
        )
    )
    world.run()
    assert [each.path for each in world.workspaces.given] == ["/home/ann/shop"] * 4
