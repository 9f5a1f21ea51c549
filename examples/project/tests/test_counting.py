"""Words are words in whatever case they are written."""

# ruff: noqa: PT009 - nothing but Python is needed here
import unittest

from words.counting import count  # type: ignore[import-not-found]


class Counting(unittest.TestCase):
    def test_case_does_not_matter(self) -> None:
        self.assertEqual(count("The cat, the hat")["the"], 2)

    def test_numbers_are_no_words(self) -> None:
        self.assertEqual(count("1 2 3"), {})
