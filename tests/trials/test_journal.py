import json
import multiprocessing
import os
import resource
import socket

import pytest

from parabolt.errors import JournalError, LockedError
from parabolt.journal.file import Journal, read_journal


@pytest.fixture
def path(tmp_path):
    return tmp_path / "deep" / "journal.jsonl"


def test_records_come_back_in_order(path):
    with Journal(path) as journal:
        for number in range(3):
            journal.append({"n": number, "text": "ä\n"})
    with Journal(path) as journal:
        assert [record["n"] for record in journal.records] == [0, 1, 2]
        assert journal.notice is None
    assert read_journal(path)[2] == {"n": 2, "text": "ä\n"}


@pytest.mark.parametrize("torn", [b"{", b'{"n": 7', b'{"n": 7}'])
def test_a_torn_last_line_is_cut_off(path, torn):
    with Journal(path) as journal:
        journal.append({"n": 0})
    with path.open("ab") as file:
        file.write(torn)
    assert read_journal(path) == [{"n": 0}]
    with Journal(path) as journal:
        journal.append({"n": 1})
    assert read_journal(path) == [{"n": 0}, {"n": 1}]


@pytest.mark.parametrize("line", ["not json", "[1]", '{"n": 1'])
def test_a_damaged_line_is_not_passed_over(path, line):
    path.parent.mkdir()
    path.write_text(f'{{"n": 0}}\n{line}\n{{"n": 2}}\n')
    with pytest.raises(JournalError, match="line 2: expected a JSON object"):
        Journal(path)
    with pytest.raises(JournalError, match="line 2"):
        read_journal(path)


def test_one_writer(path):
    with (
        Journal(path),
        pytest.raises(
            LockedError,
            match=f"in use by process {os.getpid()} on host {socket.gethostname()}",
        ),
    ):
        Journal(path)
    Journal(path).close()


def _die_writing(path):
    journal = Journal(path)
    journal.append({"n": 0})
    os._exit(1)


def test_the_lock_of_a_dead_process_is_taken_over_and_told(path):
    process = multiprocessing.get_context("fork").Process(target=_die_writing, args=(path,))
    process.start()
    process.join()
    with Journal(path) as journal:
        assert f"took over the lock of process {process.pid}" in journal.notice
        assert journal.records == [{"n": 0}]
    with Journal(path) as journal:
        assert journal.notice is None


def test_a_lock_of_another_host_is_explained(path):
    Journal(path).close()
    lock = path.with_name("journal.jsonl.lock")
    lock.write_text(json.dumps({"pid": 7, "host": "elsewhere"}))
    with pytest.raises(LockedError, match=r"process 7 on host elsewhere.*if it has ended, delete"):
        Journal(path)
    lock.unlink()
    Journal(path).close()


def _fill_up(path, results):
    journal = Journal(path)
    journal.append({"n": 0})
    resource.setrlimit(resource.RLIMIT_FSIZE, (15, 15))  # writes beyond it are cut, then fail
    try:
        journal.append({"n": 1, "text": "too long"})
    except JournalError as error:
        results.send(str(error))


def test_no_room_leaves_no_half_line(path):
    context = multiprocessing.get_context("fork")
    results, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_fill_up, args=(path, theirs))
    process.start()
    assert "cannot write" in results.recv()
    process.join()
    assert path.read_text() == '{"n": 0}\n'


def test_no_journal(path):
    with pytest.raises(JournalError, match="expected a journal at"):
        read_journal(path)
