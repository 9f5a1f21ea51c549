"""`understudy init`: a first definition, with a word on everything in it, that runs as it is."""

from pathlib import Path
from typing import Annotated, Final

import typer

from understudy.runtime.cli.output import fail

SAMPLE: Final = """\
# A workstream: tasks, what they wait for, and what happens when one fails.
#   understudy validate {file}     is it sound?
#   understudy graph {file}        what can run at once?
#   understudy run {file}          run it

name: my first workstream

# Values for ${{params.name}}. Secrets are named apart, under `secrets`, and come from the environment.
params:
  greeting: hello

# What tasks use. A tool is a program (argv), a Python function (call) or an HTTP API (http).
# {{name}} in a tool is filled from `with` of the task. No shell is involved: a value stays one argument.
tools:
  say:
    argv: [echo, "{{text}}"]
    timeout: 30
    retry:
      max_attempts: 3   # the first one counts
      base_delay: 1     # seconds; doubles with each attempt, up to max_delay
  python:
    argv: [python3, -c, "{{code}}"]
    gives: json         # what the program prints is read as JSON

tasks:
  - id: greet
    tool: say
    with: {{text: "${{params.greeting}} from understudy"}}
    checks:             # it has succeeded only when these pass
      - output_matches: understudy

  - id: count
    tool: python
    with: {{code: "print(sum(range(10)))"}}

  - id: report          # waits for both: `after` says so, and so does the use of an output
    tool: say
    after: [greet]
    with: {{text: "counted to ${{count.output}}"}}

# What becomes of all this when a task has failed for good: fail, block (until somebody mends it) or retry.
on_failure: block
"""


def init(
    file: Annotated[Path, typer.Argument(help="Where to write it.")] = Path("understudy.yaml"),
    force: Annotated[bool, typer.Option("--force", help="Write over a file that is there.")] = False,
) -> None:
    """Write a first definition to start from."""
    try:
        with file.open("w" if force else "x", encoding="utf-8") as opened:
            opened.write(SAMPLE.format(file=file))
    except FileExistsError:
        fail(f"{file} is there already: choose another name, or say --force to write over it")
    except OSError as error:
        fail(f"{file} cannot be written: {error.strerror}")
    typer.echo(f"{file} is written; run it with: understudy run {file}")
