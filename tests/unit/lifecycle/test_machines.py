"""Every move that a table has works; every other pair of state and trigger is refused and changes nothing."""

from pathlib import Path

import pytest

from understudy.actors.lifecycle import (
    MACHINES,
    START,
    TASK,
    InvalidTransition,
    Machine,
    Move,
    TaskState,
    TaskTrigger,
    Trait,
    picture,
    satisfies_dependents,
)

machines = pytest.mark.parametrize("machine", MACHINES.values(), ids=list(MACHINES))
MOVES = [(machine, move) for machine in MACHINES.values() for move in machine.moves]
LEGAL = [(machine, move, trigger) for machine, move in MOVES for trigger in move.triggers]


@pytest.mark.parametrize(
    ("machine", "move", "trigger"), LEGAL, ids=[f"{m.entity}-{v.source}-{t}-{v.target}" for m, v, t in LEGAL]
)
def test_move_of_the_table_is_legal(machine: Machine, move: Move, trigger: str) -> None:
    assert machine.check("x", move.source, trigger, move.target) is move


@machines
def test_everything_that_the_table_does_not_have_is_refused(machine: Machine) -> None:
    legal = {(move.source, trigger, move.target) for move in machine.moves for trigger in move.triggers}
    refused = 0
    for source in (START, *machine.states):
        for trigger in machine.triggers:
            for target in machine.states:
                if (source, trigger, target) not in legal:
                    refused += 1
                    with pytest.raises(InvalidTransition):
                        machine.check("x", source, trigger, target)
    assert refused == (len(machine.states) + 1) * len(machine.triggers) * len(machine.states) - len(legal)


@machines
def test_trigger_alone_decides_where_it_leads_to_one_state_only(machine: Machine) -> None:
    for source in machine.states:
        for trigger in machine.triggers:
            moves = [move for move in machine.leaving(source) if trigger in move.triggers]
            if len(moves) == 1:
                assert machine.check("x", source, trigger) is moves[0]
            else:
                with pytest.raises(InvalidTransition):
                    machine.check("x", source, trigger)


def test_refusal_names_the_record_the_move_and_what_is_allowed() -> None:
    with pytest.raises(InvalidTransition) as refusal:
        TASK.check("build", TaskState.RETRYING, TaskTrigger.WORKER_STARTED, TaskState.RUNNING)
    assert str(refusal.value) == (
        "task build in state retrying does not allow worker_started -> running; it allows "
        "retry_delay_elapsed -> queued, circuit_opened -> circuit_open, user_cancelled -> cancelled, "
        "workstream_cancelled -> cancelled, resolved_manually -> resolved"
    )
    assert [move.target for move in refusal.value.allowed] == ["queued", "circuit_open", "cancelled", "resolved"]


def test_refusal_of_a_terminal_record_says_what_to_do() -> None:
    with pytest.raises(InvalidTransition, match="it is terminal: reset it to start a new generation"):
        TASK.check("build", TaskState.COMPLETED, TaskTrigger.USER_CANCELLED)


@machines
def test_terminal_states_are_those_that_nothing_leaves(machine: Machine) -> None:
    assert machine.having(Trait.TERMINAL) == {state for state in machine.states if not machine.leaving(state)}


@machines
def test_every_state_can_be_reached(machine: Machine) -> None:
    reached, growing = {START}, True
    while growing:
        further = {move.target for move in machine.moves if move.source in reached} - reached
        reached |= further
        growing = bool(further)
    assert reached == {START, *machine.states}


@machines
def test_every_state_is_terminal_active_or_waiting(machine: Machine) -> None:
    for traits in machine.states.values():
        assert sum(trait in traits for trait in (Trait.TERMINAL, Trait.ACTIVE, Trait.WAITING)) == 1


@machines
def test_live_tasks_and_workstreams_can_be_cancelled_and_others_ended(machine: Machine) -> None:
    ends = machine.having(Trait.TERMINAL)
    if machine.entity != "breaker":
        for state in set(machine.states) - ends:
            assert {move.target for move in machine.leaving(state)} & {"cancelled", "terminated"}


def test_only_a_running_task_holds_a_worker() -> None:
    assert TASK.having(Trait.HOLDS_WORKER) == {TaskState.RUNNING}


@pytest.mark.parametrize(
    ("state", "trigger", "satisfied"),
    [
        ("completed", "validation_passed", True),
        ("resolved", "resolved_manually", True),
        ("skipped", "user_skipped", True),
        ("skipped", "dependency_failed", False),
        ("skipped", "condition_not_met", False),
        ("failed", "permanent_error", False),
        ("cancelled", "user_cancelled", False),
        ("running", "worker_started", False),
    ],
)
def test_what_lets_dependents_go_on(state: str, trigger: str, satisfied: bool) -> None:
    assert satisfies_dependents(state, trigger) is satisfied


@machines
def test_diagrams_show_every_move(machine: Machine) -> None:
    shown = picture.of_machine(machine)
    mermaid, dot = picture.mermaid(shown), picture.dot(shown)
    for move in machine.moves:
        assert f"    {move.source.replace(START, '[*]')} --> {move.target}: " in mermaid
        assert f'"{move.source}" -> "{move.target}" [label=' in dot


def test_the_page_in_the_docs_is_made_from_the_tables() -> None:
    page = Path(__file__).parents[3] / "docs" / "lifecycles.md"
    assert page.read_text() == picture.page(MACHINES.values())
