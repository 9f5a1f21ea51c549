"""How tasks are to be run: their own wishes, their tools', and the defaults, put together. And tools' breakers."""

from typing import Any

from understudy.actors.definition import BreakerPolicy, RetryPolicy, Task, Tool, WorkerKind
from understudy.actors.engine import messages as m
from understudy.actors.engine.breaker import Breaker, BreakerSeat
from understudy.actors.engine.graph import Node
from understudy.actors.engine.house import GATHER, House, Plan

_DEFAULT_RETRY = RetryPolicy()
_GATHER = Tool(call=GATHER)
_PROGRAM = frozenset({WorkerKind.PROGRAM._value_})
_REQUEST = frozenset({WorkerKind.ASYNC._value_})


class Planner:
    """Makes the plans of one workstream's tasks. Tasks that are alike share one."""

    __slots__ = ("_house", "_plans", "_policies", "_tools")

    def __init__(self, house: House, tools: dict[str, Tool]) -> None:
        self._house = house
        self._tools = tools
        self._plans: dict[Any, Plan] = {}
        self._policies: dict[str, BreakerPolicy] = {}  # that breakers were given, by their names

    def plan(self, node: Node) -> Plan:
        """Raises `LookupError` where its function does not exist."""
        definition = node.definition
        if node.items is not None:
            kinds = self._house.workplaces.kinds_for(GATHER)
            return Plan(_GATHER, kinds, frozenset(), self.retry_of(definition), 300.0, (0,), definition.checks)
        key = (
            definition.tool, definition.call, definition.argv, definition.retry, definition.timeout,
            definition.capabilities, definition.expected_exit_codes, definition.breaker,
        )  # fmt: skip
        found = None if definition.checks else self._plans.get(key)
        if found is None:
            found = self._make_plan(definition)
            if not definition.checks:
                self._plans[key] = found
        return found

    def _make_plan(self, definition: Task) -> Plan:
        tool = self._tool_of(definition)
        own = definition.breaker
        breaker = definition.tool or (definition.call if own is not None else None)
        policy = own or tool.breaker
        is_guarded = breaker is not None and policy.enabled
        return Plan(
            tool,
            self._kinds_for(tool),
            frozenset((*definition.capabilities, *tool.capabilities)),
            self.retry_of(definition),
            definition.timeout if definition.timeout is not None else tool.timeout,
            definition.expected_exit_codes or tool.expected_exit_codes,
            definition.checks,
            breaker if is_guarded else None,
            policy if is_guarded else None,
        )

    def _tool_of(self, definition: Task) -> Tool:
        if definition.tool is None:
            return Tool(call=definition.call, argv=definition.argv)
        return self._tools[definition.tool]

    def _kinds_for(self, tool: Tool) -> frozenset[str]:
        """The kinds of workers that can run it. Raises `LookupError` where there is no such function."""
        if tool.call is not None:
            return self._house.workplaces.kinds_for(tool.call)
        return _REQUEST if tool.http is not None else _PROGRAM

    def retry_of(self, definition: Task) -> RetryPolicy:
        if definition.retry is not None:
            return definition.retry
        tool = self._tools.get(definition.tool or "")
        return _DEFAULT_RETRY if tool is None else tool.retry

    def open_breaker(self, plan: Plan) -> None:
        """See to it that the breaker of a tool is there, and has the newest policy."""
        name, policy = plan.breaker, plan.breaker_policy
        if name is None or policy is None or self._policies.get(name) == policy:
            return
        self._policies[name] = policy
        if name in self._house.breakers:
            self._house.breakers[name].tell(m.NewPolicy(policy))
        else:
            self._house.breakers[name] = self._house.spawn(
                Breaker, BreakerSeat(self._house, name, policy), f"breaker {name}"
            )
