"""One writer: whole files under names of their own, links not followed, one builder at a time."""

import errno
import fcntl
import os
from pathlib import Path

import pytest

from parabolt.documents import is_there, read_text
from parabolt.errors import InstanceError, JournalError, LockedError, ParaboltError, StoreError
from parabolt.files import unfinished, write_all_whole, write_whole
from parabolt.instances.catalogue import load_instance
from parabolt.journal.file import JOURNAL, Journal
from parabolt.lock import Lock


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_there_whole_or_as_it_was(tmp_path):
    path = tmp_path / "deep" / "x"
    write_whole(path, b"old")

    def fail_half_way():
        with unfinished(path) as file:
            file.write_bytes(b"half")
            assert path.read_bytes() == b"old"
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_half_way()
    assert path.read_bytes() == b"old"
    with unfinished(path) as file:
        file.unlink()  # given up
    assert path.read_bytes() == b"old"
    write_whole(path, b"new")
    assert path.read_bytes() == b"new"
    assert names(path.parent) == ["x"]


def test_files_that_belong_together_change_together(tmp_path, monkeypatch):
    one, other = tmp_path / "one", tmp_path / "other"
    write_all_whole({one: b"old", other: b"old"})

    def full(path, content):
        if len(content) > 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write_bytes(path, content)

    write_bytes = Path.write_bytes
    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(StoreError, match=r"^no space left for .*other; what was finished before"):
        write_all_whole({one: b"new", other: b"newer"})
    assert (one.read_bytes(), other.read_bytes()) == (b"old", b"old")
    write_all_whole({one: b"new", other: b"too"})
    assert (one.read_bytes(), other.read_bytes()) == (b"new", b"too")
    assert names(tmp_path) == ["one", "other"]


def test_two_writers_of_one_path_have_files_of_their_own(tmp_path):
    path = tmp_path / "x"
    with unfinished(path) as one, unfinished(path) as other:
        assert len({one, other, path}) == 3
        one.write_bytes(b"one")
        other.write_bytes(b"other")
    assert path.read_bytes() == b"one"


def test_a_link_is_replaced_and_what_is_behind_it_stays(tmp_path):
    precious, path = tmp_path / "precious", tmp_path / "x"
    precious.write_text("precious")
    path.symlink_to(precious)
    write_whole(path, b"new")
    assert (precious.read_text(), path.read_bytes()) == ("precious", b"new")
    assert not path.is_symlink()


def test_errors_are_one_line_and_the_blocks_own_stay_as_they_are(tmp_path):
    with pytest.raises(StoreError, match=r"^cannot write /proc/parabolt/x: "):
        write_whole(Path("/proc/parabolt/x"), b"")
    with pytest.raises(LockedError, match=r"^mine$"), unfinished(tmp_path / "x"):
        raise LockedError("mine")
    assert names(tmp_path) == []


@pytest.mark.parametrize("kind", ["link", "dangling", "folder", "pipe"])
def test_a_lock_is_a_file_and_nothing_else(kind, tmp_path):
    precious, path = tmp_path / "precious", tmp_path / "lock"
    precious.write_text("precious")
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(precious if kind == "link" else tmp_path / "nothing")
    with pytest.raises(ParaboltError, match=r"lock: expected a file, got something else; try del"):
        Lock(path, of=tmp_path)
    assert precious.read_text() == "precious"
    assert not (tmp_path / "nothing").exists()


def test_a_temporary_lock_leaves_nothing(tmp_path):
    path = tmp_path / "lock"
    with Lock(path, of=tmp_path, is_lasting=False):
        assert path.exists()
        with pytest.raises(LockedError, match=f"in use by process {os.getpid()}"):
            Lock(path, of=tmp_path, is_lasting=False)
    assert not path.exists()
    with Lock(path, of=tmp_path):
        pass
    assert path.exists()


def test_a_lock_on_a_file_that_its_holder_deletes_meanwhile_is_none(tmp_path, monkeypatch):
    path, flock = tmp_path / "lock", fcntl.flock

    def late_flock(file, how):
        path.unlink()
        flock(file, how)

    monkeypatch.setattr(fcntl, "flock", late_flock)
    with pytest.raises(LockedError, match="was in use until just now; try again"):
        Lock(path, of=tmp_path)


def test_what_is_no_file_is_told_and_never_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.toml")
    (tmp_path / "folder.toml").mkdir()
    for name in ("pipe.toml", "folder.toml", "absent.toml", f"{'x' * 300}.toml", "a\0.toml"):
        with pytest.raises(InstanceError, match="cannot read instance file"):
            load_instance(str(tmp_path / name))
    with pytest.raises(InstanceError, match="expected a regular file"):
        read_text("/dev/zero", "instance file", InstanceError)
    (tmp_path / "long.toml").touch()
    os.truncate(tmp_path / "long.toml", 1 << 27)
    with pytest.raises(InstanceError, match="expected at most 67108864 bytes, got 134217728"):
        load_instance(str(tmp_path / "long.toml"))
    assert not is_there("x" * 300)
    assert not is_there("a\0")


def test_an_error_is_one_line_that_can_be_printed():
    error = StoreError("a\nb\x1b[31m\ud800é ü")
    assert str(error) == "a\\nb\\x1b[31m\\ud800é ü"


def test_a_journal_that_is_gone_or_a_link_is_told(tmp_path):
    path = tmp_path / JOURNAL
    with Journal(path) as journal:
        journal.append({"a": 1})
        path.rename(tmp_path / "moved")
        with pytest.raises(JournalError, match="was removed or replaced"):
            journal.append({"a": 2})
        path.write_text("{}\n")
        with pytest.raises(JournalError, match="was removed or replaced"):
            journal.check()
    path.unlink()
    path.symlink_to(tmp_path / "moved")
    with pytest.raises(JournalError, match="cannot write"):
        Journal(path)
    assert (tmp_path / "moved").read_text() == '{"a": 1}\n'
