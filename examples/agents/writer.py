"""Stands for an agent that writes: it reads the folder that it is started in, and writes the page it is asked for."""

import re
import sys
from pathlib import Path
from threading import Event

TEST = '''"""A total is a price times a count."""

import unittest

from prices import total


class Total(unittest.TestCase):
    def test_three_items_cost_three_times_as_much(self):
        self.assertEqual(total(250, 3), 750)

    def test_nothing_costs_nothing(self):
        self.assertEqual(total(250, 0), 0)
'''


def think(about: str, seconds: float) -> None:
    print(about, flush=True)
    Event().wait(seconds)


def guide() -> str:
    functions = re.findall(r"^def (\w+)", Path("prices.py").read_text(), re.MULTILINE)
    return "# The shop\n\n" + "".join(f"- `prices.{name}`\n" for name in functions)


if __name__ == "__main__":
    page = Path(sys.argv[1])
    think("reading prices.py", 1.0)
    think(f"writing {page}", 1.5)
    page.write_text(guide() if page.suffix == ".md" else TEST)
    print("done")
