"""Counting on a real Ray cluster, a node of which dies on the way."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any

import psutil
import pytest

from tests.frequency.test_count import Cut, counted, cut_after, documents, expected, slowly, write
from uncode import UncodeError
from uncode.frequency.corpora import shards
from uncode.frequency.corpora.shards import Shard
from uncode.frequency.counting import cluster as counting_on_ray
from uncode.frequency.counting.job import BadRecordRules, CountProgress

ray = pytest.importorskip("ray", reason="ray is not installed")
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two nodes of one processor each; the test of a node's death adds the third."""
    from ray.cluster_utils import Cluster

    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_DEDUP_LOGS": "0"}
    path = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(
        [str(Path(p).resolve()) for p in ("src", ".")] + ([path] if path else [])
    )
    made = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False, "object_store_memory": 1 << 27}
    )
    made.add_node(num_cpus=1, object_store_memory=1 << 27)
    ray.init(address=made.address, log_to_driver=False, logging_level="ERROR")
    yield made
    ray.shutdown()
    made.shutdown()
    os.environ.pop("PYTHONPATH") if path is None else os.environ.update(PYTHONPATH=path)


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    return [write(tmp_path / f"{n:02}.jsonl", documents(30, seed=n)) for n in range(8)]


def texts(first: int = 240) -> list[str]:
    return [text for n in range(8) for text in documents(30, seed=n)][:first]


@pytest.mark.slow
def test_a_cluster_counts_the_same(cluster: Any, files: list[Path], tmp_path: Path) -> None:
    seen: list[CountProgress] = []
    done = counted(tmp_path / "t.safetensors", *files, ray="auto", on_progress=seen.append)
    assert done.table == expected("split", texts()) and done.totals.documents == 240
    assert len(seen) == 8 and seen[-1].share == 1 and seen[-1].tokens == done.table.total
    assert done.table == counted(tmp_path / "here.safetensors", *files).table


@pytest.mark.parametrize("first", [1, 30, 47, 239])
def test_limits_mean_the_same_documents(first: int, cluster: Any, files: list[Path], tmp_path: Path) -> None:
    limit = sum(len(text.encode()) for text in texts(first)) + 1
    by_size = counted(tmp_path / "s.safetensors", *files, ray="auto", max_bytes=limit)
    by_number = counted(tmp_path / "n.safetensors", *files, ray="auto", max_documents=first)
    here = counted(tmp_path / "h.safetensors", *files, max_bytes=limit)
    assert by_size.table == by_number.table == here.table == expected("split", texts(first))
    assert by_size.totals == here.totals


def test_parts_of_files_and_bad_lines(cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(tmp_path / "a.jsonl", documents(60))
    with file.open("a") as more:
        more.write("nonsense\n")
    monkeypatch.setattr(shards, "SHARD_BYTES", 1 << 13)
    done = counted(tmp_path / "t.safetensors", file, ray="auto", rules=BadRecordRules(allow_bad=0.1))
    assert done.table == expected("split", documents(60))
    assert [(fault.file, fault.line) for fault in done.totals.faults] == [(str(file), 61)]
    with pytest.raises(UncodeError, match=r"a\.jsonl, line 61"):
        counted(tmp_path / "u.safetensors", file, ray="auto", rules=BadRecordRules(strict=True))


def test_what_cannot_be_read_is_one_sentence(cluster: Any, tmp_path: Path) -> None:
    broken = tmp_path / "a.jsonl.gz"
    broken.write_bytes(b"nonsense")
    with pytest.raises(UncodeError, match=r"a\.jsonl\.gz' could not be read to its end"):
        counted(tmp_path / "t.safetensors", broken, ray="auto")
    with pytest.raises(UncodeError, match="standard input"):
        counted(tmp_path / "t.safetensors", Path("-"), ray="auto")


@pytest.mark.slow
def test_a_fault_on_a_worker_is_one_sentence_and_what_was_counted_stays(
    cluster: Any, files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other tasks still run when the count ends, and end by themselves."""
    for _ in range(5):
        with monkeypatch.context() as patch:
            patch.setattr(counting_on_ray, "count_shard", counts_all_but_one)
            with pytest.raises(
                UncodeError, match=r"count '.*05\.jsonl' \(OSError: the disk is full\)\. The counts so far"
            ):
                counted(tmp_path / "t.safetensors", *files, ray="auto")
    done = counted(tmp_path / "t.safetensors", *files, ray="auto")
    assert done.resumed and done.table == expected("split", texts())


def counts_all_but_one(shard: Shard, *given: Any) -> Any:
    if "05" in Path(shard.path).name:
        raise OSError("the disk is full.")
    return counting_on_ray.count_shard(shard, *given)


def test_a_killed_driver_resumes(
    cluster: Any, files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Begun on this machine, cut in the middle of a file, gone on with on the cluster, cut again, and ended."""
    slowly(monkeypatch)
    for cut, where in ((40, None), (2, "auto")):
        with monkeypatch.context() as patch:
            cut_after(cut, patch)
            with pytest.raises(Cut):
                counted(tmp_path / "t.safetensors", *files, ray=where)
    done = counted(tmp_path / "t.safetensors", *files, ray="auto")
    assert done.resumed and done.table == expected("split", texts()) and done.totals.documents == 240


@pytest.mark.slow
def test_a_node_that_dies_changes_nothing(cluster: Any, tmp_path: Path) -> None:
    """Three nodes; the third is killed while it is counting."""
    many = [write(tmp_path / f"{n:02}.jsonl", documents(1000, seed=n)) for n in range(8)]
    victim, busy = cluster.add_node(num_cpus=2, object_store_memory=1 << 27), []
    cluster.wait_for_nodes()
    assert len(alive()) == 3

    def kill() -> None:
        while not busy:
            time.sleep(0.005)
            busy.extend(working(victim))
        cluster.remove_node(victim, allow_graceful=False)

    killer = Thread(target=kill)
    killer.start()
    done = counted(tmp_path / "t.safetensors", *many, ray="auto")
    killer.join()
    assert done.table == expected("split", [text for n in range(8) for text in documents(1000, seed=n)])
    assert done.totals.documents == 8 * 1000
    limit = time.monotonic() + 60
    while len(alive()) == 3 and time.monotonic() < limit:
        time.sleep(0.1)
    assert len(alive()) == 2


def alive() -> list[Any]:
    return [node for node in ray.nodes() if node["Alive"]]


def working(node: Any) -> list[str]:
    """What the workers of a node are doing."""
    raylet = psutil.Process(node.all_processes["raylet"][0].process.pid)
    titles = []
    for child in raylet.children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # it ended since
            titles.append(" ".join(child.cmdline()))
    return [title for title in titles if "count_shard" in title]
