"""What checks have found, of a task or of a whole workstream."""

from understudy.actors.journal import Book
from understudy.actors.kernel import Failed, Outcome, Succeeded
from understudy.actors.records import CheckResult


def find_faults(outcome: Outcome[list[CheckResult]], book: Book) -> str | None:
    """Write the results down. Answers what is wrong, nothing where all passed, and None where they were cut off."""
    match outcome:
        case Succeeded(results):
            for each in results:
                book.add_check(each)
            return "; ".join(f"check {each.name} failed: {each.detail}" for each in results if not each.passed)
        case Failed(error):
            return f"the checks could not be run: {error!r}"
        case _:
            return None  # by a stop: the next life checks again
