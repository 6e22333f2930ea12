"""No path is destroyed: links stay links, devices stay devices, and a file is there whole or not at all."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import uncode
from uncode import Canvas, FrequencyTable, Sampler, Trace, UncodeError, presets
from uncode.util.files import Journal
from uncode.util.paths import make_folder
from uncode.util.write import check_writable, is_stream, write_whole

ROOT = Path(__file__).parents[2]
ROOT_USER = os.geteuid() == 0


def test_a_file_is_replaced_and_keeps_its_permissions(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    write_whole(file, "one")
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(file.stat().st_mode) == 0o666 & ~mask
    file.chmod(0o640)
    write_whole(file, b"two")
    assert file.read_text() == "two" and stat.S_IMODE(file.stat().st_mode) == 0o640
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("exists", [True, False])
def test_a_link_stays_a_link(tmp_path: Path, exists: bool) -> None:
    (tmp_path / "far").mkdir()
    target, link = tmp_path / "far" / "target.txt", tmp_path / "link.txt"
    if exists:
        target.write_text("old")
    link.symlink_to(target)
    check_writable(link)
    write_whole(link, "new")
    assert link.is_symlink() and target.read_text() == "new"


def test_a_link_planted_where_the_partial_file_was_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim.txt"
    victim.write_text("precious")
    (tmp_path / "out.jsonl.partial").symlink_to(victim)
    write_whole(tmp_path / "out.jsonl", "new")
    assert victim.read_text() == "precious" and (tmp_path / "out.jsonl").read_text() == "new"


def test_a_lock_does_not_empty_what_a_link_points_to(tmp_path: Path) -> None:
    victim = tmp_path / "victim.txt"
    victim.write_text("precious")
    (tmp_path / "out.jsonl.lock").symlink_to(victim)
    with pytest.raises(UncodeError, match="cannot be written"), Journal.of_job(tmp_path / "out.jsonl", {}):
        pass
    assert victim.read_text() == "precious"


def test_a_journal_of_a_link_is_kept_where_the_link_points(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    link = tmp_path / "answers.jsonl"
    link.symlink_to(tmp_path / "far" / "answers.jsonl")
    with Journal.of_job(link, {"a": 1}) as journal:
        journal.add({"id": 2})
        journal.add({"id": 1})
        journal.arrange([{"id": 1}, {"id": 2}])
    assert link.is_symlink() and link.read_text() == '{"id": 1}\n{"id": 2}\n'


def test_a_pipe_is_written_through(tmp_path: Path) -> None:
    pipe, found = tmp_path / "pipe", list[bytes]()
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
    reader.start()
    assert is_stream(pipe)
    check_writable(pipe)
    write_whole(pipe, "through")
    reader.join(10)
    assert found == [b"through"] and stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.skipif(not ROOT_USER, reason="only root makes device nodes")
def test_a_device_stays_a_device(tmp_path: Path) -> None:
    node = tmp_path / "null"
    try:
        os.mknod(node, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        node.write_bytes(b"")
    except OSError:
        pytest.skip("this machine makes no device nodes that can be opened")
    for path in (node, Path("/dev/null")):
        check_writable(path)
        write_whole(path, "gone")
        assert stat.S_ISCHR(path.stat().st_mode)


@pytest.mark.skipif(not ROOT_USER, reason="only root makes device nodes")
def test_a_disk_is_refused(tmp_path: Path) -> None:
    node = tmp_path / "disk"
    try:
        os.mknod(node, 0o600 | stat.S_IFBLK, os.makedev(7, 200))
    except OSError:
        pytest.skip("this machine makes no device nodes")
    for action in (check_writable, lambda path: write_whole(path, "x")):
        with pytest.raises(UncodeError, match="is a disk"):
            action(node)


def test_what_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "plain").write_text("")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        for path, message in (
            (tmp_path, "is a folder: --trace takes a file"),
            (tmp_path / "no" / "file", "does not exist: create it first"),
            (tmp_path / "plain" / "file", "plain' is a file: give a folder"),
            (tmp_path / ("x" * 300), "cannot be written: File name too long"),
            ("a\0b", "cannot be the name of a file"),
            (tmp_path / "loop", "loop|too many"),
            (tmp_path / "socket", "is a socket"),
            ("/dev/fd/999", "Bad file descriptor"),
        ):
            with pytest.raises(UncodeError, match=f"(?i){message}"):
                check_writable(path, "--trace")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["loop", "plain", "socket"]


def test_what_cannot_be_read_is_said_by_what_is_there(tmp_path: Path) -> None:
    for load, what in ((Sampler.load, "sampler file"), (Trace.load, "trace"), (FrequencyTable.load, "frequency table")):
        with pytest.raises(UncodeError, match=f"^'{tmp_path}' is a folder: give a {what}\\.$"):
            load(tmp_path)
        with pytest.raises(
            UncodeError, match=f"^the file '{tmp_path}/no' does not exist: give the path of a {what}\\.$"
        ):
            load(tmp_path / "no")
    (tmp_path / "file").write_text("x")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(UncodeError, match="file' is a file: choose another folder than"):
            make_folder(folder)
    make_folder(tmp_path / "a" / "b")
    make_folder(tmp_path / "a" / "b")


MODEL = uncode.load("toy")
SAVED = {
    "sampler file": presets.confidence(),
    "trace": uncode.decode(MODEL, Canvas.after_prompt([[2]], length=3, mask_id=MODEL.mask_id), "confidence"),
    "frequency table": MODEL.frequency,
}


@pytest.mark.parametrize("kind", SAVED)
def test_no_file_of_another_kind_is_replaced(kind: str, tmp_path: Path) -> None:
    thing: Any = SAVED[kind]
    others = [tmp_path / other.replace(" ", "_") for other in SAVED if other != kind]
    for other, path in zip((name for name in SAVED if name != kind), others, strict=True):
        SAVED[other].save(path)  # type: ignore[union-attr]
    notes, link, own = tmp_path / "notes.toml", tmp_path / "link", tmp_path / "own"
    notes.write_text('title = "x"\n[policy]\na = 1\n')
    link.symlink_to(notes)
    for path in (*others, notes, link):
        before = path.read_bytes()
        with pytest.raises(UncodeError, match=f"exists and is not a {kind}: choose another name, .* force=True"):
            thing.save(path)
        assert path.read_bytes() == before
    own.write_bytes(b"")
    thing.save(own)
    thing.save(own)
    thing.save(link, force=True)
    assert link.is_symlink() and len(notes.read_bytes()) == len(own.read_bytes())
    thing.save("/dev/null")
    with pytest.raises(UncodeError, match="is a folder"):
        thing.save(tmp_path, force=True)


def test_the_standard_streams_are_shared_not_replaced(tmp_path: Path) -> None:
    """Redirected to a file, /dev/stdout is that file: the trace follows what was printed, and is not written over."""
    out = tmp_path / "out.txt"
    script = (
        "from uncode.util.write import write_whole as w\nprint('before'); w('/dev/stdout', 'trace\\n'); print('after')"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    with open(out, "w") as file:
        subprocess.run([sys.executable, "-c", script], stdout=file, env=environment, check=True)
    assert out.read_text() == "before\ntrace\nafter\n"


def test_process_substitution(tmp_path: Path) -> None:
    script = (
        "import sys; from uncode.util.write import *\ncheck_writable(sys.argv[1]); write_whole(sys.argv[1], 'through')"
    )
    seen = tmp_path / "seen"
    command = f'"{sys.executable}" -c "$1" >(cat > "$2"); wait; sleep 0.2'
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    subprocess.run(["bash", "-c", command, "bash", script, str(seen)], env=environment, check=True)
    assert seen.read_text() == "through"
