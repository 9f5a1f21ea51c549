"""Stands for a coding agent: it thinks for a while, and edits the files of the folder that it is started in.

The API that it thinks with refuses the first three attempts, as such APIs do on busy days.
"""

import os
import sys
from pathlib import Path
from threading import Event

OVERLOADED = 75  # EX_TEMPFAIL: try again later
REFUSALS = 3
CODE = '''

def discounted(price: int, count: int) -> int:
    """Ten items or more cost ten percent less."""
    full = total(price, count)
    return full * 9 // 10 if count >= 10 else full
'''
TEST = '''"""Who buys much pays less."""

import unittest

from prices import discounted


class Discount(unittest.TestCase):
    def test_nine_items_cost_the_full_price(self):
        self.assertEqual(discounted(100, 9), 900)

    def test_ten_items_cost_ten_percent_less(self):
        self.assertEqual(discounted(100, 10), 900)
'''


def think(about: str, seconds: float) -> None:
    print(about, flush=True)
    Event().wait(seconds)


if __name__ == "__main__":
    if int(os.environ["UNDERSTUDY_ATTEMPT"]) <= REFUSALS:
        print("API overloaded", file=sys.stderr)
        sys.exit(OVERLOADED)
    think(f"I was asked: {sys.argv[-1]}", 0.8)
    think("editing prices.py", 0.8)
    prices = Path("prices.py")
    prices.write_text(prices.read_text() + CODE)
    think("writing test_discount.py", 0.8)
    Path("test_discount.py").write_text(TEST)
    print("done")
