"""A workstream's graph while it runs: who waits for whom, who is ready, who has ended and how.

Pure state, owned by the workstream's actor. A task that waits is only a node here, not an actor: a graph of
100,000 tasks costs what its nodes cost. Nothing recurses.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from enum import Enum, auto
from typing import Any, Final

import msgspec

from understudy.actors.definition import OnFailure, Task, When
from understudy.actors.definition.soundness import outputs_taken
from understudy.actors.kernel import Ref
from understudy.actors.lifecycle import TASK, TaskState, breaks_workstream, satisfies_dependents

ABSENT: Final[Any] = msgspec.UNSET  # an output that is not in memory


class Node:
    """One task of the graph."""

    __slots__ = (
        "created_at",
        "definition",
        "dependents",
        "depends_on",
        "generation",
        "item",
        "items",
        "key",
        "map_of",
        "output",
        "ref",
        "seat",
        "state",
        "takers",
        "takes",
        "trigger",
        "waits",
    )

    def __init__(
        self, definition: Task, key: str | None = None, map_of: "Node | None" = None, item: Any = None
    ) -> None:
        self.definition = definition
        self.key = key or definition.id  # an item of a map has one of its own
        self.state: TaskState | None = None  # None: it has no record yet
        self.trigger = ""
        self.generation = 0
        self.created_at = 0
        self.depends_on: tuple[str, ...] = ()
        self.dependents: list[Node] = []
        self.waits = 0  # for so many tasks that have not ended
        self.takes: tuple[str, ...] = ()  # the outputs of these
        self.takers = 0  # so many that have not ended take its output
        self.output: Any = ABSENT
        self.ref: Ref[Any] | None = None  # while it is an actor
        self.seat: Any = None  # and what that is rebuilt from
        self.map_of = map_of
        self.item = item
        self.items: list[Node] | None = None  # of a map, once it is unfolded

    @property
    def ended(self) -> bool:
        return self.state is not None and TASK.is_terminal(self.state)

    @property
    def satisfies(self) -> bool:
        return self.state is not None and satisfies_dependents(self.state, self.trigger)

    @property
    def broken(self) -> bool:
        """Whether it has ended so that the workstream cannot have all it was to do."""
        return breaks_workstream(self.state, self.trigger) and not self.definition.optional


class Verdict(Enum):
    """What becomes of a task when all before it have ended."""

    RUN = auto()
    SKIP = auto()
    HOLD = auto()  # until somebody mends what is broken


class Graph:
    def __init__(self, on_failure: OnFailure) -> None:
        self.nodes: dict[str, Node] = {}
        self.ready: deque[Node] = deque()  # created, and nothing before them is left; not judged yet
        self.held: dict[str, Node] = {}
        self.broken: dict[str, Node] = {}
        self.live = 0  # nodes that have not ended
        self.active = 0  # nodes that are actors
        self._on_failure = on_failure

    def add(self, tasks: Iterable[Task]) -> list[Node]:
        """Take in tasks that may wait for each other and for those that are there."""
        added = [Node(task) for task in tasks]
        for node in added:
            self._enter(node)
        for node in added:
            self._tie(node)
        return added

    def unfold(self, node: Node, items: list[Any]) -> list[Node]:
        """Make the tasks of a map that it does not have yet: none, or a crash came in between.

        The map itself then waits for them, and gathers what they give. Answers those that were made.
        """
        known = {each.key: each for each in node.items or ()}
        made: list[Node] = []
        once = msgspec.structs.replace(node.definition, each=None, condition=True, after=())
        for index, item in enumerate(items):
            key = f"{node.key}.{index}"  # a dot keeps it apart from what users name
            if key not in known:
                each = Node(once, key, node, item)
                self._enter(each)
                made.append(each)
        self.tie_items(node, made)
        return made

    def restore(self, nodes: Iterable[tuple[Node, str | None]]) -> None:
        """Take in nodes with the states that they had, each with the key of the map that it is an item of."""
        maps: dict[str, list[Node]] = {}
        entered = list(nodes)
        for node, map_of in entered:
            self._enter(node)
            if map_of is not None:
                maps.setdefault(map_of, []).append(node)
        for node, map_of in entered:
            if map_of is None:
                self._tie(node)
        for key, items in maps.items():
            parent = self.nodes[key]
            for each in items:
                each.map_of = parent
            self.tie_items(parent, items)
        self.settle()

    def tie_items(self, node: Node, items: list[Node]) -> None:
        node.items = sorted((*(node.items or ()), *items), key=lambda each: int(each.key.rpartition(".")[2]))
        for each in items:
            each.dependents.append(node)
            each.takers += 1
        node.waits += sum(not each.ended for each in items)
        if not node.waits:
            self.ready.append(node)

    def settle(self) -> None:
        """Count anew who waits for whom, and who is ready: after nodes were set back."""
        self.ready.clear()
        self.held.clear()
        self.broken = {key: node for key, node in self.nodes.items() if node.broken}
        self.live = sum(not node.ended for node in self.nodes.values())
        for node in self.nodes.values():
            node.takers = 0
        for node in self.nodes.values():
            node.waits = sum(not before.ended for before in self.before(node))
            for before in () if node.ended else self.taken(node):
                before.takers += 1
            if node.state is TaskState.PENDING and not node.waits and node.ref is None:
                self.ready.append(node)

    def clear(self) -> None:
        """Let go of everything at once: nodes refer to each other, and would wait for the garbage collector."""
        for node in self.nodes.values():
            node.dependents, node.items, node.map_of = [], None, None
        self.nodes.clear()
        self.broken.clear()
        self.held.clear()

    def stranded(self) -> int:
        """How many tasks could run although nobody will look at them: none, if all is well."""
        known = {node.key for node in self.ready} | set(self.held)
        return sum(
            node.state is TaskState.PENDING and node.ref is None and not node.waits and key not in known
            for key, node in self.nodes.items()
        )

    def before(self, node: Node) -> Iterator[Node]:
        """What must end before a node: its dependencies, and the items of an unfolded map."""
        yield from (self.nodes[key] for key in node.depends_on)
        yield from node.items or ()

    def after(self, node: Node) -> list[Node]:
        """Everything that depends on a node, directly or not."""
        found: dict[str, Node] = {}
        waiting = [node]
        while waiting:
            for each in waiting.pop().dependents:
                if each.key not in found:
                    found[each.key] = each
                    waiting.append(each)
        return list(found.values())

    def taken(self, node: Node) -> Iterator[Node]:
        """Whose outputs a node takes."""
        yield from (self.nodes[key] for key in node.takes)
        yield from node.items or ()

    def end(self, node: Node, state: TaskState, trigger: str, output: Any = None) -> None:
        """A task has ended. Those that waited for it alone are ready."""
        node.state, node.trigger = state, trigger
        node.output = output if node.takers else ABSENT
        if node.ref is not None:
            node.ref = node.seat = None
            self.active -= 1
        self.live -= 1
        self.held.pop(node.key, None)
        for before in self.taken(node):
            before.takers -= 1
            if not before.takers:
                before.output = ABSENT
        if node.broken:
            self.broken[node.key] = node
        for after in node.dependents:
            after.waits -= 1
            if not after.waits and after.state is TaskState.PENDING and after.ref is None:
                self.ready.append(after)

    def judge(self, node: Node) -> Verdict:
        """Whether a node whose dependencies have all ended is to run. Conditions are not looked at here."""
        if node.items is not None:
            before = node.items
            rule = When.ALL_SUCCEEDED
        else:
            before = [self.nodes[key] for key in node.depends_on]
            rule = node.definition.when
        match rule:
            case When.ALL_DONE:
                fits = True
            case When.ANY_SUCCEEDED:
                fits = not before or any(each.satisfies for each in before)
            case When.NONE_FAILED:
                fits = not any(each.state in _NOT_DONE for each in before)
            case When.ALL_SUCCEEDED:
                fits = all(each.satisfies for each in before)
        if fits:
            return Verdict.RUN
        mendable = self._on_failure is not OnFailure.FAIL and any(each.broken or self._is_held(each) for each in before)
        return Verdict.HOLD if mendable else Verdict.SKIP

    def _is_held(self, node: Node) -> bool:
        return node.key in self.held

    def _enter(self, node: Node) -> None:
        self.nodes[node.key] = node
        if not node.ended:
            self.live += 1

    def _tie(self, node: Node) -> None:
        given = node.definition
        if given.after or given.inputs or given.each is not None or given.condition is not True or given.argv:
            node.takes = tuple(key for key in outputs_taken(node.definition) if key in self.nodes)
            node.depends_on = tuple(key for key in dict.fromkeys((*node.definition.after, *node.takes)))
        for key in node.depends_on:
            self.nodes[key].dependents.append(node)
            node.waits += not self.nodes[key].ended
        if not node.ended:
            for key in node.takes:
                self.nodes[key].takers += 1


_NOT_DONE = frozenset({TaskState.FAILED, TaskState.CANCELLED})
