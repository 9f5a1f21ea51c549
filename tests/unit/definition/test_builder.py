"""Definitions in Python: functions become tasks, outputs become inputs, and what cannot be stored is refused."""

from decimal import Decimal
from functools import partial
from pathlib import PurePosixPath
from typing import Any, cast

import pytest

from understudy.actors.definition import Check, DefinitionError, RetryPolicy, When
from understudy.actors.errors import MisuseError
from understudy.runtime.definition import Flow, drawing, task


@task(timeout=30, retry=RetryPolicy(max_attempts=2), checks=[Check(file_exists="page.html")])
async def fetch(url: str, tries: int = 1) -> str:
    return url * tries


def parse(page: str, limit: int) -> list[int]:
    return [len(page)] * limit


def total(lengths: list[list[int]], page: str) -> int:
    return sum(map(sum, lengths)) + len(page)


def by_position(value: int, /) -> int:
    return value


HERE = __name__


def test_functions_become_tasks_and_outputs_inputs() -> None:
    flow = Flow("scrape")
    page = flow.add(fetch, "http://localhost")
    parsed = flow.map(parse, ["a", "b"], limit=3)
    flow.having(id="sum", when=When.ALL_DONE).add(total, parsed.output, page.output)
    first, second, third = flow.build().tasks
    assert (first.id, first.call, first.inputs) == ("fetch", f"{HERE}:fetch", {"url": "http://localhost"})
    assert (first.timeout, first.retry, first.checks) == (
        30,
        RetryPolicy(max_attempts=2),
        (Check(file_exists="page.html"),),
    )
    assert (second.each, second.inputs) == (["a", "b"], {"page": "${item}", "limit": 3})
    assert (third.id, third.when) == ("sum", When.ALL_DONE)
    assert third.inputs == {"lengths": "${parse.output}", "page": "${fetch.output}"}


def test_map_over_an_output_is_bound_when_it_runs() -> None:
    flow = Flow("scrape")
    pages = flow.map(fetch, ["a", "b"])
    flow.map(parse, pages.output, limit=1)
    assert flow.build().tasks[1].each == "${fetch.output}"


def test_parts_of_an_output_can_be_bound() -> None:
    flow = Flow("scrape")
    lengths = flow.add(parse, "page", limit=2)
    flow.add(fetch, "http://localhost", tries=lengths.output[0])
    assert flow.build().tasks[1].inputs["tries"] == "${parse.output[0]}"


def test_function_used_twice_gets_another_id() -> None:
    flow = Flow("scrape")
    flow.add(fetch, "a")
    flow.add(fetch, "b")
    assert [each.id for each in flow.build().tasks] == ["fetch", "fetch-2"]


def test_order_without_data_is_given_by_after() -> None:
    flow = Flow("scrape")
    first = flow.add(fetch, "a")
    flow.having(after=[first]).add(fetch, "b")
    assert flow.build().tasks[1].after == ("fetch",)


async def test_decorated_function_can_still_be_called() -> None:
    assert await fetch("ab", tries=2) == "abab"


def test_output_has_no_value_before_it_runs() -> None:
    output = Flow("scrape").add(parse, "page", limit=1).output
    with pytest.raises(MisuseError, match="use `condition`"):
        bool(output)
    with pytest.raises(MisuseError, match=r"use flow\.map"):
        list(output)


def test_function_that_cannot_be_imported_is_refused() -> None:
    def local(value: int) -> int:
        return value

    with pytest.raises(MisuseError, match="cannot be imported by another process"):
        Flow("scrape").add(local, 1)


def test_arguments_that_do_not_fit_are_refused() -> None:
    with pytest.raises(MisuseError, match="fetch cannot be called so: missing a required argument: 'url'"):
        Flow("scrape").add(fetch)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
    with pytest.raises(MisuseError, match="takes value by position only"):
        Flow("scrape").add(by_position, 1)


def test_what_cannot_be_stored_is_refused_with_its_path() -> None:
    flow = Flow("scrape")
    with pytest.raises(DefinitionError, match=r"\$\.tasks\[0\]\.with\.url: PurePosixPath cannot be stored as JSON"):
        flow.add(fetch, cast("str", PurePosixPath("a")))
    with pytest.raises(MisuseError, match="hand on its output"):
        flow.add(parse, cast("str", flow.add(fetch, "a")), limit=1)


def test_types_that_json_can_store_are_stored() -> None:
    flow = Flow("scrape")
    flow.add(fetch, "a", tries=cast("int", Decimal("1.5")))
    assert flow.build().tasks[0].inputs["tries"] == "1.5"


def test_flow_is_checked_as_a_whole() -> None:
    flow = Flow("scrape", params={})
    flow.having(condition="${params.x}").add(fetch, "a")
    with pytest.raises(DefinitionError, match="there is no param 'x'"):
        flow.build()


def test_graph_is_drawn_as_text_mermaid_and_dot() -> None:
    flow = Flow("scrape")
    page = flow.add(fetch, "a")
    flow.map(parse, [page.output], limit=1)
    definition = flow.build()
    assert drawing.text(definition) == (
        f"   0  fetch  {HERE}:fetch\n   1  parse  {HERE}:parse for each item  after fetch\n"
    )
    assert "    t0 --> t1\n" in drawing.mermaid(definition)
    assert '    "fetch" -> "parse";\n' in drawing.dot(definition)


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"priority": "high"}, r"\$\.priority"),
        ({"deadline": -5}, r"\$\.deadline"),
        ({"on_failure": "whatever"}, r"\$\.on_failure"),
        ({"prms": {}}, r"\$\.prms: unknown field 'prms' \(did you mean 'params'\?\)"),
        ({"params": {"o": object()}}, r"\$\.params\.o: object cannot be stored"),
        ({"params": {"n": float("nan")}}, r"\$\.params\.n: nan cannot be stored"),
        ({"params": {1: "x"}}, r"\$\.params: the key 1 is not a text"),
    ],
)
def test_fields_of_a_flow_are_checked_like_those_of_a_file(fields: dict[str, Any], path: str) -> None:
    with pytest.raises(DefinitionError, match=path):
        Flow("scrape", **fields).build()


def test_ids_are_checked_and_do_not_collide() -> None:
    flow = Flow("scrape")
    flow.having(id="fetch-2").add(fetch, "a")
    flow.add(fetch, "b")
    flow.add(fetch, "c")
    assert [each.id for each in flow.build().tasks] == ["fetch-2", "fetch", "fetch-3"]
    flow.having(id="a/b c").add(fetch, "d")
    with pytest.raises(DefinitionError, match=r"\$\.tasks\[3\]\.id"):
        flow.build()


def test_output_cannot_be_compared_before_it_runs() -> None:
    with pytest.raises(MisuseError, match="compare it inside a task"):
        bool(Flow("scrape").add(fetch, "a").output == "yes")


class Shop:
    def sell(self, what: str) -> str:
        return what


def test_what_cannot_be_called_again_elsewhere_is_refused() -> None:
    cycle: list[Any] = []
    cycle.append(cycle)
    for function in (Shop().sell, partial(parse, limit=1)):
        with pytest.raises(MisuseError, match="cannot be imported by another process"):
            Flow("scrape").add(cast("Any", function), "a")
    with pytest.raises(DefinitionError, match="nested deeper"):
        Flow("scrape").add(cast("Any", fetch), cycle)
