"""Our tables refine the machines of all five documents at once; what those cannot show is reconciled, and must be."""

import tomllib
from collections.abc import Iterator
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.actors.lifecycle import DOCUMENTS, MACHINES, START, Document, Entity, Machine
from understudy.actors.lifecycle.vocabulary import HAS_RUN, ByPrevious, ByRun, Vocabulary

PAIRS = [(document, entity) for document, known in DOCUMENTS.items() for entity in known]
vocabularies = pytest.mark.parametrize(("document", "entity"), PAIRS)
SPECIFICATION = Path(__file__).parents[4] / "shared" / "spec" / "lifecycles.toml"
specified = pytest.mark.skipif(not SPECIFICATION.exists(), reason="the specification does not lie beside the project")


def records(machine: Machine, state: str) -> Iterator[tuple[str, bool]]:
    """Every (previous state, has run a task) that a record in a state can have."""
    for previous, ran in product({move.source for move in machine.moves if move.target == state}, (False, True)):
        settled = state in ("idle", "shutdown", "terminated", "failed")
        if machine.entity == "worker" and not settled and ran == (state == "initializing"):
            continue  # a new worker has run nothing yet; one that is busy, paused or unresponsive has
        yield previous, ran


@vocabularies
def test_every_move_of_ours_is_a_path_of_the_documents_or_reconciled(document: Document, entity: Entity) -> None:
    machine, vocabulary = MACHINES[entity], DOCUMENTS[document][entity]
    unseen: set[tuple[str, str]] = set()
    for move in machine.moves:
        if move.source == START:
            continue
        for previous, ran in records(machine, move.source):
            here = vocabulary.read(move.source, previous, ran)
            there = vocabulary.read(move.target, move.source, ran or move.target in HAS_RUN)
            if vocabulary.path(here, there) is None:
                unseen.add((move.source, move.target))
    assert unseen == set(vocabulary.reconciled)


@vocabularies
def test_every_state_of_the_document_is_shown_by_some_record_of_ours(document: Document, entity: Entity) -> None:
    vocabulary = DOCUMENTS[document][entity]
    shown: set[str] = set()
    for reading in vocabulary.words.values():
        match reading:
            case str():
                shown.add(reading)
            case ByPrevious(otherwise, after):
                shown |= {otherwise, *after.values()}
            case ByRun(fresh, has_run):
                shown |= {fresh, has_run}
    assert set(vocabulary.states) - vocabulary.passed_through == shown


@vocabularies
def test_every_state_of_ours_has_a_word(document: Document, entity: Entity) -> None:
    assert set(DOCUMENTS[document][entity].words) == set(MACHINES[entity].states)


def lives(machine: Machine) -> st.SearchStrategy[list[tuple[str, str]]]:
    """Random lives that the machine allows, from the start on."""

    @st.composite
    def life(draw: st.DrawFn) -> list[tuple[str, str]]:
        moves = [(START, machine.initial)]
        for _ in range(draw(st.integers(0, 25))):
            choices = sorted({move.target for move in machine.leaving(moves[-1][1])})
            if not choices:
                break
            moves.append((moves[-1][1], draw(st.sampled_from(choices))))
        return moves

    return life()


@vocabularies
@given(data=st.data())
def test_a_whole_life_reads_as_a_legal_life_of_the_document(
    document: Document, entity: Entity, data: st.DataObject
) -> None:
    vocabulary: Vocabulary = DOCUMENTS[document][entity]
    told = vocabulary.read_moves(data.draw(lives(MACHINES[entity])))
    assert told[0].source is None
    for before, after in pairwise(told):
        assert after.source == before.target or before.reconciled or after.reconciled
    for said in told[1:]:
        assert (said.source, said.target) in vocabulary.edges or said.reconciled


def test_path_is_the_shortest_and_shows_what_is_passed_through() -> None:
    workstream = DOCUMENTS[Document.TASKER][Entity.WORKSTREAM]
    told = workstream.read_moves([(START, "planned"), ("planned", "ready"), ("ready", "executing")])
    assert [(said.source, said.target, said.implied) for said in told] == [
        (None, "Pending", False),
        ("Pending", "Initializing", False),
        ("Initializing", "EnqueuingSteps", True),
        ("EnqueuingSteps", "StepsInProcess", False),
    ]


def test_move_between_two_states_with_the_same_word_is_not_told() -> None:
    task = DOCUMENTS[Document.ORCHESTRATION][Entity.TASK]
    told = task.read_moves([("queued", "running"), ("running", "timed_out"), ("timed_out", "retrying")])
    assert [(said.source, said.target) for said in told] == [("queued", "running"), ("running", "retrying")]


@specified
@pytest.mark.parametrize("entity", MACHINES)
def test_the_tables_say_what_the_specification_says(entity: Entity) -> None:
    specification: dict[str, Any] = tomllib.loads(SPECIFICATION.read_text())[entity]
    machine = MACHINES[entity]
    assert machine.initial == specification["initial"]
    assert {state for state in machine.states if machine.is_terminal(state)} == set(specification["terminal"])
    ours = {(move.source, move.target, trigger) for move in machine.moves for trigger in move.triggers}
    theirs = {(source, to, trigger) for source, to, triggers in specification["transitions"] for trigger in triggers}
    assert ours == theirs


@specified
@vocabularies
def test_the_vocabularies_say_what_the_specification_says(document: Document, entity: Entity) -> None:
    specification = tomllib.loads(SPECIFICATION.read_text())
    table, vocabulary = specification["documents"][document][entity], DOCUMENTS[document][entity]
    assert {(row[0], target) for row in table["transitions"] for target in row[1:]} == vocabulary.edges
    for state, rule in table["as"].items():
        match vocabulary.words[state]:
            case str(word):
                assert rule == word
            case ByPrevious(otherwise, after):
                cases = ",".join(f"{previous}={word}" for previous, word in after.items())
                assert rule == f"prev:{cases},*={otherwise}"
            case ByRun(fresh, has_run):
                assert rule == f"ran:yes={has_run},no={fresh}"
    reconciled = {
        (source, target)
        for entry in specification["reconciled"]
        if entry["document"] == f"{document}.{entity}"
        for source, target in entry["transitions"]
    }
    assert reconciled == set(vocabulary.reconciled)
