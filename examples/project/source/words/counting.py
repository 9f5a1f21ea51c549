"""Counts the words of files."""

import re
import sys
from collections import Counter
from pathlib import Path


def count(text: str) -> Counter[str]:
    return Counter(word.lower() for word in re.findall(r"[^\W\d_]+", text))


def main() -> None:
    counted: Counter[str] = Counter()
    for name in sys.argv[1:]:
        counted += count(Path(name).read_text(encoding="utf-8"))
    for word, times in counted.most_common(5):
        print(f"{times:6} {word}")
