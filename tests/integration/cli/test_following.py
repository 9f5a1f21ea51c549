"""Following logs: nothing is lost and nothing said twice, also when a long log is replaced by a shorter one."""

from pathlib import Path

from understudy.adapters.log_files import LogTail, last_lines


def test_lines_are_read_as_they_come_and_only_whole_ones(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("one\ntw")
    tail = LogTail(log)
    assert tail.read_on() == ["one"]
    with log.open("a") as file:
        file.write("o\nthree\n")
    assert tail.read_on() == ["two", "three"]
    assert tail.read_on() == []
    tail.close()


def test_a_log_that_is_replaced_is_followed_behind_what_was_read(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("".join(f"{number}\n" for number in range(1_000)))
    tail = LogTail(log, 2)
    assert tail.read_on() == ["998", "999"]
    with log.open("a") as file:
        file.write("1000\n")
    fresh = tmp_path / "log.new"
    fresh.write_text("0\n... left out ...\n998\n999\n1000\n1001\n")
    fresh.replace(log)
    assert tail.read_on() == ["1000", "1001"]
    tail.close()


def test_the_last_lines_of_a_long_file(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("".join(f"line {number} {'x' * 100}\n" for number in range(10_000)))
    assert [line.split()[1] for line in last_lines(log, 3)] == ["9997", "9998", "9999"]
    assert len(last_lines(log, 20_000)) == 10_000
    assert last_lines(log, 0) == []
    assert last_lines(tmp_path / "nothing", 3) == []
