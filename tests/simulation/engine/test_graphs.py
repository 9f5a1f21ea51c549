"""Graphs of every shape, run to their ends: who ran, in what order, and what became of the rest."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.simulation.engine.world import QUICK, Refused, Takes, World, step, stream
from understudy.actors.definition import DefinitionError, Task, When, Workstream
from understudy.actors.lifecycle import Entity
from understudy.actors.ports.workplace import Order

ONE = {"retry": QUICK}
SHAPES: dict[str, tuple[Task, ...]] = {
    "linear": (step("a", **ONE), step("b", "a", **ONE), step("c", "b", **ONE), step("d", "c", **ONE)),
    "diamond": (step("a", **ONE), step("b", "a", **ONE), step("c", "a", **ONE), step("d", "b", "c", **ONE)),
    "tree": (
        step("a", **ONE),
        step("b", "a", **ONE),
        step("c", "a", **ONE),
        step("d", "b", **ONE),
        step("e", "b", **ONE),
    ),
    "mixed": (step("a", **ONE), step("x", **ONE), step("b", "a", "x", **ONE), step("c", **ONE), step("d", "b", **ONE)),
    "map": (
        step("a", **ONE),
        step("b", "a", each=[10, 20, 30], inputs={"n": "${item}"}, **ONE),
        step("d", inputs={"all": "${b.output}"}, **ONE),
    ),
}
TARGETS = {"early": "a", "middle": "b", "late": "d"}


def depends_on(definition: Workstream, world: World) -> dict[str, tuple[str, ...]]:
    keys = world.states()
    return {key: world.task(key).depends_on for key in keys}


def assert_in_order(world: World, definition: Workstream) -> None:
    """Nothing has started before everything that it waits for had ended."""
    moves = list(world.store._moves.values())
    for key, before in depends_on(definition, world).items():
        begun = [each.sequence for each in moves if each.record_id == f"ws/{key}" and each.to_state == "queued"]
        for other in before:
            ended = [each.sequence for each in moves if each.record_id == f"ws/{other}"][-1]
            assert not begun or ended < begun[0], f"{key} began before {other} had ended"


def failing(key: str, *, times: int = 99, permanent: bool = False) -> Callable[[Order], Any]:
    def script(order: Order) -> Any:
        hit = order.key == key or order.key.startswith(f"{key}.")
        if hit and order.attempt <= times:
            raise Refused(f"{order.key} is down", permanent=permanent)
        return order.key

    return script


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("shape", SHAPES)
def test_everything_completes_in_the_order_of_the_graph(shape: str, seed: int) -> None:
    definition = stream(*SHAPES[shape])
    world = World(seed=seed)
    world.submit(definition)
    world.run()
    assert world.workstream().state == "completed"
    assert set(world.states().values()) == {"completed"}
    assert len(world.runs) == len(world.states()), "each ran once"
    assert_in_order(world, definition)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("where", TARGETS)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_transient_failure_is_mended_by_retries(shape: str, where: str, seed: int) -> None:
    definition, key = stream(*SHAPES[shape]), TARGETS[where]
    world = World(failing(key, times=2), seed=seed)
    world.submit(definition)
    world.run()
    assert world.workstream().state == "completed"
    assert set(world.states().values()) == {"completed"}
    tried = [order.attempt for order in world.runs if order.key == key and order.call == "shop:work"]
    assert tried in ([1, 2, 3], []), "the map itself only gathers"
    assert_in_order(world, definition)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("permanent", [False, True])
@pytest.mark.parametrize("where", TARGETS)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_lasting_failure_fails_the_workstream_and_ends_the_rest(
    shape: str, where: str, permanent: bool, seed: int
) -> None:
    definition, key = stream(*SHAPES[shape]), TARGETS[where]
    world = World(failing(key, permanent=permanent), seed=seed)
    world.submit(definition)
    world.run()
    assert world.workstream().state == "failed"
    states = world.states()
    hit = "b.0" if key == "b" and shape == "map" else key
    assert any(state == "failed" for each, state in states.items() if each.startswith(key))
    tried = [order for order in world.runs if order.key == hit]
    assert len(tried) <= (1 if permanent else 3)
    if key == "a":
        assert all(state in ("skipped", "cancelled", "completed") for each, state in states.items() if each != "a")
        assert not [order for order in world.runs if order.key in ("b", "d", "e")]
    if where == "late" and shape != "tree":
        assert [each for each, state in states.items() if state == "failed"] == ["d"]
        assert all(state == "completed" for each, state in states.items() if each != "d")
    assert_in_order(world, definition)


# Maps


@pytest.mark.parametrize("seed", range(10))
def test_a_map_gathers_what_its_items_give_in_their_order(seed: int) -> None:
    def script(order: Order) -> Any:
        return Takes(10 - order.inputs["n"], order.inputs["n"] ** 2) if order.inputs else [3, 1, 2]

    world = World(script, seed=seed)
    world.submit(stream(step("src"), step("fetch", each="${src.output}", inputs={"n": "${item}"})))
    world.run()
    assert world.states() == dict.fromkeys(("src", "fetch", "fetch.0", "fetch.1", "fetch.2"), "completed")
    assert world.task("fetch").output == [9, 1, 4]


def test_an_empty_map_completes_with_an_empty_list() -> None:
    world = World()
    world.submit(stream(step("fetch", each=[]), step("b", inputs={"all": "${fetch.output}"})))
    world.run()
    assert world.workstream().state == "completed"
    assert world.task("fetch").output == []
    assert [order.inputs for order in world.runs if order.key == "b"] == [{"all": []}]


def test_a_failing_item_skips_its_map_and_the_items_that_succeeded_stay() -> None:
    world = World(failing("fetch.1", permanent=True))
    world.submit(stream(step("fetch", each=[1, 2])))
    world.run()
    states = world.states()
    assert (states["fetch"], states["fetch.1"]) == ("skipped", "failed")
    assert world.workstream().state == "failed"


def test_an_optional_map_with_a_failing_item_does_not_fail_the_workstream() -> None:
    world = World(failing("fetch.1", permanent=True))
    world.submit(stream(step("fetch", each=[1, 2, 3], optional=True), step("b", "fetch", when=When.ALL_DONE)))
    world.run()
    assert world.workstream().state == "completed"
    expected = {
        "fetch": "skipped",
        "fetch.0": "completed",
        "fetch.1": "failed",
        "fetch.2": "completed",
        "b": "completed",
    }
    assert world.states() == expected


def test_a_map_of_more_items_than_one_turn_creates_runs_them_all() -> None:
    world = World(lambda order: order.inputs["n"])
    world.submit(stream(step("fetch", each=list(range(1_200)), inputs={"n": "${item}"})))
    world.run()
    assert world.workstream().state == "completed"
    assert world.task("fetch").output == list(range(1_200))


def test_a_map_over_what_is_no_list_is_rejected() -> None:
    world = World(lambda order: {"a": 1})
    world.submit(stream(step("src"), step("fetch", each="${src.output}")))
    world.run()
    assert world.task("fetch").trigger == "rejected"
    assert "not a list" in (world.task("fetch").last_error or "")
    assert world.workstream().state == "failed"


# Bindings


def test_outputs_and_params_reach_the_task_that_asks_for_them() -> None:
    world = World(lambda order: {"diff": [1, {"x": "y"}]} if order.key == "a" else None)
    inputs = {"whole": "${a.output}", "part": "${a.output.diff[1].x}", "text": "v${params.version}: ${a.output.diff}"}
    world.submit(stream(step("a"), step("b", inputs=inputs), params={"version": "1.2"}))
    world.run()
    given = next(order.inputs for order in world.runs if order.key == "b")
    assert given == {"whole": {"diff": [1, {"x": "y"}]}, "part": "y", "text": 'v1.2: [1,{"x":"y"}]'}


def stored(world: World) -> str:
    store = world.store
    return repr([store._records, store._moves, store._tries, store._results, store._answers])


@pytest.mark.parametrize(
    "task",
    [
        step("a", inputs={"key": "Bearer ${secrets.TOKEN}"}),
        step("a", each=["${secrets.TOKEN}"], inputs={"key": "Bearer ${item}"}),
        step("a", inputs={"key": "Bearer ${secrets.TOKEN}"}, condition="${secrets.TOKEN}"),
    ],
)
def test_a_secret_reaches_the_task_and_no_record(task: Task) -> None:
    world = World()
    world.submit(stream(task, secrets=("TOKEN",)))
    world.run()
    assert world.workstream().state == "completed"
    assert {"key": "Bearer hunter2"} in [order.inputs for order in world.runs]
    assert "hunter2" not in stored(world)


def test_text_like_a_reference_inside_data_is_left_alone() -> None:
    world = World(lambda order: "${secrets.TOKEN} ${params.p}" if order.key == "a" else [order.inputs])
    world.submit(
        stream(
            step("a"),
            step("b", inputs={"x": "${a.output}", "y": "<${a.output}>"}),
            step("c", each="${b.output}", inputs={"z": "${item.x}"}),
            secrets=("TOKEN",),
            params={"p": "${secrets.TOKEN}"},
        )
    )
    world.run()
    given = {order.key: order.inputs for order in world.runs}
    assert given["b"] == {"x": "${secrets.TOKEN} ${params.p}", "y": "<${secrets.TOKEN} ${params.p}>"}
    assert given["c.0"] == {"z": "${secrets.TOKEN} ${params.p}"}
    assert "hunter2" not in stored(world)


@pytest.mark.parametrize(
    ("inputs", "secrets"),
    [({"x": "${a.output.missing}"}, ()), ({"x": "${a.output[3]}"}, ()), ({"x": "${secrets.ABSENT}"}, ("ABSENT",))],
)
def test_a_reference_without_a_value_rejects_the_task(inputs: dict[str, str], secrets: tuple[str, ...]) -> None:
    world = World(lambda order: {"there": 1})
    world.submit(stream(step("a"), step("b", "a", inputs=inputs), step("c", "b"), secrets=secrets))
    world.run()
    assert (world.task("b").state, world.task("b").trigger) == ("failed", "rejected")
    assert world.states()["c"] in ("skipped", "cancelled")
    assert world.workstream().state == "failed"
    assert [order.key for order in world.runs] == ["a"]


def test_a_function_that_does_not_exist_rejects_the_task() -> None:
    world = World()
    world.submit(stream(Task("a", call="shop:missing")))
    world.run()
    assert (world.task("a").state, world.task("a").trigger) == ("failed", "rejected")


# Conditions, rules, optional tasks


@pytest.mark.parametrize(
    ("given", "state"), [(True, "completed"), (False, "skipped"), ([], "skipped"), ("x", "completed")]
)
def test_a_condition_decides_whether_a_task_runs(given: Any, state: str) -> None:
    world = World(lambda order: {"go": given})
    world.submit(stream(step("a"), step("b", condition="${a.output.go}"), step("c", "b", when=When.NONE_FAILED)))
    world.run()
    assert world.states() == {"a": "completed", "b": state, "c": "completed"}
    assert world.workstream().state == "completed"


MIXES = [(x, y) for x in ("completed", "failed", "skipped") for y in ("completed", "failed", "skipped")]


def runs_after(rule: When, ends: tuple[str, str]) -> bool:
    match rule:
        case When.ALL_SUCCEEDED:
            return ends == ("completed", "completed")
        case When.NONE_FAILED:
            return "failed" not in ends
        case When.ANY_SUCCEEDED:
            return "completed" in ends
        case When.ALL_DONE:
            return True


@pytest.mark.parametrize("ends", MIXES)
@pytest.mark.parametrize("rule", list(When))
def test_a_rule_decides_by_how_the_tasks_before_have_ended(rule: When, ends: tuple[str, str]) -> None:
    tasks = [
        step(key, condition=end != "skipped", optional=True, retry=QUICK) for key, end in zip("xy", ends, strict=True)
    ]
    broken = {key for key, end in zip("xy", ends, strict=True) if end == "failed"}

    def script(order: Order) -> Any:
        if order.key in broken:
            raise Refused("no", permanent=True)

    world = World(script)
    world.submit(stream(*tasks, step("z", "x", "y", when=rule)))
    world.run()
    states = world.states()
    assert (states["x"], states["y"]) == ends
    assert states["z"] == ("completed" if runs_after(rule, ends) else "skipped")
    assert world.workstream().state == "completed", "what failed was optional"


@pytest.mark.parametrize("optional", [True, False])
def test_only_the_failure_of_a_task_that_is_not_optional_fails_the_workstream(optional: bool) -> None:
    world = World(failing("a", permanent=True))
    world.submit(stream(step("a", optional=optional), step("b", "a"), step("c")))
    world.run()
    assert world.workstream().state == ("completed" if optional else "failed")
    assert world.states()["b"] == "skipped"


def test_a_graph_larger_than_what_may_be_active_completes() -> None:
    from understudy.actors.engine.house import Limits

    world = World(limits=Limits(active_tasks=7, chunk=11))
    tasks = [step(f"t{n}", *([f"t{n - 3}"] if n >= 3 else [])) for n in range(100)]
    definition = stream(*tasks)
    world.submit(definition)
    world.run()
    assert world.workstream().state == "completed"
    assert_in_order(world, definition)
    assert world.path(Entity.TASK, "ws/t99") == ["pending", "queued", "running", "validating", "completed"]


@pytest.mark.parametrize("seed", range(5))
def test_tasks_that_a_running_task_adds_are_run(seed: int) -> None:
    from understudy.actors.engine import messages as m
    from understudy.actors.engine.house import Limits

    world = World(lambda order: Takes(5, order.key), seed=seed, limits=Limits(chunk=4, sweep_s=1e9))
    world.submit(stream(step("first"), step("a", "first"), step("z", "a")))
    world.pass_time(7)
    more = tuple(step(f"n{n}", "first", inputs={"f": "${first.output}"}) for n in range(10))
    ref: Any = world.engine.house.workstreams["ws"]
    added = ref.ask(lambda reply: m.AddTasks((*more, step("last", "n9", "z")), "a", reply))
    again = ref.ask(lambda reply: m.AddTasks(more, "a", reply))
    changed = ref.ask(lambda reply: m.AddTasks((step("n0"),), "a", reply))
    world.run()
    assert (added.result(), again.result()) == (None, None)
    with pytest.raises(DefinitionError):
        changed.result()
    assert set(world.states().values()) == {"completed"}
    assert len(world.states()) == 14
    assert {order.inputs["f"] for order in world.runs if order.key.startswith("n")} == {"first"}
