"""`uncode decode --ray` on a local cluster: the answers of one machine, also where a worker is killed on the way."""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

from tests.cli.running import run
from tests.local_ray import local_ray
from uncode import UncodeError
from uncode.adapters.ray_data import Answer, Decoder
from uncode.cli.answering.on_ray import MAX_SHARD, RayRun, ShardWorker, answer_on_ray, shard_name
from uncode.cli.answering.prompts import PromptLine
from uncode.util.arrow_files import ArrowPath

pytest.importorskip("ray", reason="ray is not installed")
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
SAMPLER = ("--model", "toy", "--sampler", "confidence", "--set", "steps=4", "--set", "temperature=0.7")
DECODER = {"model": "toy", "sampler": "confidence", "options": {"steps": 4, "temperature": 0.7}, "length": 16}
WORKERS = 4


class Counting(Decoder):
    """Writes down what it begins, by the seeds."""

    def __init__(self, log: str, **options: Any) -> None:
        super().__init__(**options)
        self.log = log

    def answers(self, prompts: Sequence[Any], lengths: Sequence[int | None], seeds: Sequence[int]) -> list[Answer]:
        with open(self.log, "a") as file:
            file.write("".join(f"{os.getpid()} {seed}\n" for seed in seeds))
        time.sleep(0.02)  # so that a kill hits it
        return super().answers(prompts, lengths, seeds)


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    with local_ray(WORKERS):
        yield


def test_a_decoder_holds_its_answers_to_a_constraint() -> None:
    """Given as data, which the job's file keeps; gaps too."""
    decoder = Decoder("toy", constraint={"regex": "[0-9]+ [.]"}, length=6)
    assert all(one.text.endswith(" .") for one in decoder.answers(["add 3 4 5", "add 1 2 3"], [None, 8], [0, 1]))
    gaps = Decoder("toy", constraint={"choices": ["7"]}).answers(["add 3 4 5 first 3 + 4 = <mask:1> ,"], [None], [0])
    assert gaps[0].text == "add 3 4 5 first 3 + 4 = 7 ,"
    with pytest.raises(UncodeError, match="a constraint is one of regex, choices and json_schema"):
        Decoder("toy", constraint={"regexp": "a"})


def write_prompts(folder: Path, count: int) -> Path:
    """Two files, so that prompts are numbered across them; some prompts have an id, a length or a seed."""
    folder.mkdir()
    lines = []
    for i in range(count):
        line: dict[str, Any] = {"prompt": f"add {1 + i % 9} {1 + i // 9 % 9} {1 + i % 7}"}
        line |= {"id": f"x{i}"} if i % 3 == 0 else {}
        line |= {"length": 12 + i % 5} if i % 2 else {}
        lines.append(json.dumps(line) + "\n")
    half = count // 2
    (folder / "a.jsonl").write_text("".join(lines[:half]))
    (folder / "b.jsonl").write_text("".join(lines[half:]))
    return folder


def on_one_machine(prompts: Path, out: Path) -> str:
    whole = out.with_suffix(".prompts.jsonl")
    whole.write_text("".join((prompts / name).read_text() for name in ("a.jsonl", "b.jsonl")))
    done = run("decode", "--input", str(whole), "--out", str(out), *SAMPLER, "--length", "16")
    assert done.returncode == 0, done.stderr
    return out.read_text()


def ray_run(prompts: Path, out: Path, **decoder: Any) -> RayRun:
    return RayRun(ArrowPath(str(prompts)), ArrowPath(str(out)), DECODER | decoder, "", 2)


def together(folder: Path) -> str:
    return "".join(file.read_text() for file in sorted(folder.glob("part-*.jsonl")))


@pytest.mark.slow
def test_a_cluster_gives_the_answers_of_one_machine(
    cluster: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And a finished run is not run again."""
    prompts, out = write_prompts(tmp_path / "prompts", 40), tmp_path / "answers"
    expected = on_one_machine(prompts, tmp_path / "one.jsonl")
    for resumed in (0, 40):
        answer_on_ray(ray_run(prompts, out), as_json=True)
        assert together(out) == expected
        report = json.loads(capsys.readouterr().out)
        assert report["answers"] == 40 and report["resumed"] == resumed
        assert (report["forwards"] > 40) is (resumed == 0)
    with pytest.raises(UncodeError, match="is a job begun with seed none, now 5"):
        answer_on_ray(ray_run(prompts, out, seed=5))
    (out / "job.json").write_text("{")
    with pytest.raises(UncodeError, match=r"job\.json' is damaged: restore it, or remove the folder"):
        answer_on_ray(ray_run(prompts, out))


@pytest.mark.slow
def test_a_part_that_is_lost_is_made_again(cluster: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prompts, out = write_prompts(tmp_path / "prompts", 90), tmp_path / "answers"
    again = ray_run(prompts, out)
    answer_on_ray(again)
    expected = together(out)
    capsys.readouterr()
    size = json.loads((out / "job.json").read_text())["shard"]
    (out / shard_name(1)).unlink()
    before = {file.name: file.stat().st_mtime_ns for file in out.glob("part-*")}
    answer_on_ray(again, as_json=True)
    assert together(out) == expected and json.loads(capsys.readouterr().out)["resumed"] == 90 - size
    assert all((out / name).stat().st_mtime_ns == then for name, then in before.items())
    with (prompts / "b.jsonl").open("a") as file:
        file.write('{"prompt": "what is this"}\n')
    with pytest.raises(UncodeError, match=r"line 46 of 'b\.jsonl': the toy model does not know the word 'what'"):
        answer_on_ray(ray_run(prompts, tmp_path / "new"))


def test_a_worker_answers_a_shard_once_and_returns_its_faults(tmp_path: Path) -> None:
    """In this process, without Ray."""
    out = ArrowPath(str(tmp_path / "answers"))
    worker = ShardWorker(out, {**DECODER, "seed": 3}, Decoder)

    def answer(shard: int, *prompts: str) -> tuple[str, int, int]:
        lines = [
            asdict(PromptLine(number, f"line {number + 1}", text, number, None, None))
            for number, text in enumerate(prompts)
        ]
        done = worker({"shard": np.array([shard]), "lines": np.array([json.dumps(lines)])})
        return done["fault"][0], done["answers"][0], done["forwards"][0]

    first = answer(0, "add 1 2 3", "add 4 5 6")
    assert first[:2] == ("", 2) and first[2] > 0
    rows = [json.loads(row) for row in out.read(shard_name(0)).splitlines()]
    assert [row["seed"] for row in rows] == [3, 4]
    worker.decoder = None  # type: ignore[assignment]  # which a second answer would need
    assert answer(0, "add 1 2 3", "add 4 5 6") == first
    worker.decoder = Decoder(**DECODER)
    assert answer(1, "add 1 2 3", "what is this") == (
        "line 2: the toy model does not know the word 'what': try \"add 3 4 5\".",
        0,
        0,
    )
    worker = ShardWorker(out, DECODER | {"sampler": "nothing"}, Decoder)
    assert "'nothing'" in answer(2, "add 1 2 3")[0]
    assert out.names() == {shard_name(0)}


@pytest.mark.slow
def test_ten_thousand_prompts_and_a_worker_that_is_killed(
    cluster: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The answers are those of one machine, and nothing beyond the shard of the worker that died is decoded twice."""
    count = 10_000
    prompts, out, log = write_prompts(tmp_path / "prompts", count), tmp_path / "answers", tmp_path / "begun"
    expected, killed = on_one_machine(prompts, tmp_path / "one.jsonl"), list[int]()

    def kill_half_way() -> None:
        while not killed:
            begun = log.read_text().rpartition("\n")[0].splitlines() if log.exists() else []  # whole lines
            if len(begun) >= count // 2:
                killed.append(int(begun[-1].split()[0]))
                os.kill(killed[0], signal.SIGKILL)
            time.sleep(0.01)

    thread = Thread(target=kill_half_way, daemon=True)
    thread.start()
    began = time.monotonic()
    decoder = DECODER | {"log": str(log)}
    answer_on_ray(RayRun(ArrowPath(str(prompts)), ArrowPath(str(out)), decoder, "", WORKERS, Counting), as_json=True)
    seconds = time.monotonic() - began
    thread.join()
    assert together(out) == expected
    begun = Counter(line.split()[1] for line in log.read_text().splitlines())
    twice = sum(times - 1 for times in begun.values())
    assert len(begun) == count and 0 < twice <= MAX_SHARD
    workers = {line.split()[0] for line in log.read_text().splitlines()}
    assert len(workers) > WORKERS  # another one took the place of the one that died
    with capsys.disabled():
        shards = len(list(out.glob("part-*")))
        print(
            f"\n{count:,} prompts, {shards} shards, {WORKERS} workers, 1 killed: {twice} decoded twice, "
            f"all answers those of one machine, {seconds:.0f} s"
        )


def test_the_decoder_answers_batches_of_ray_data() -> None:
    decoder = Decoder("toy", sampler="confidence", options={"steps": 4}, length=8)
    batch = {"prompt": np.array(["add 1 2 3", "add 4 5 6"]), "seed": np.array([7, 8]), "name": np.array(["a", "b"])}
    found = decoder(batch)
    assert set(found) == {"prompt", "seed", "name", "text", "forwards"}
    assert found["forwards"].tolist() == [4, 4] and found["seed"].tolist() == [7, 8]
    alone = decoder.answers(["add 4 5 6"], [None], [8])
    assert alone[0].text == found["text"][1]
    alone = decoder({"prompt": np.array(["add 4 5 6"] * 2), "length": np.array([np.nan, 3]), "seed": [8, None]})
    assert alone["text"][0] == found["text"][1] and alone["seed"].tolist() == [8, 0]
    assert len(alone["text"][1].split()) <= 3
    assert decoder({"prompt": np.array([])})["text"].tolist() == []
    chat = {"messages": [[{"role": "user", "content": "add 1 2 3"}]]}
    with pytest.raises(UncodeError, match="prompt 0 of the batch: this model has no chat template"):
        decoder(chat)
    with pytest.raises(UncodeError, match="needs a column prompt or messages, and has text"):
        decoder({"text": ["a"]})


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--workers", "2", "hello"), "--workers is for --ray"),
        (("--ray", "--input", "a", "--out", "b", "--force"), "--force is for one machine"),
        (("--ray", "--input", "a", "--out", "b", "--trace", "c"), "--trace is for one machine"),
        (("--ray", "--input", "a"), "give --out FILE"),
        (("hello", "--ray"), "--ray is for the prompts of --input"),
        (("--ray", "--input", "nowhere", "--out", "b", "--model", "toy"), "there is no 'nowhere': give a file or"),
    ],
)
def test_options_that_do_not_fit(words: tuple[str, ...], message: str, tmp_path: Path) -> None:
    import re

    done = run("decode", *words)
    assert done.returncode == 2 and re.search(message, done.stderr), done.stderr


def test_a_folder_of_a_store(tmp_path: Path) -> None:
    folder = ArrowPath(str(tmp_path / "new" / "folder"))
    assert folder.names() == set()
    folder.write("b.txt", b"two")
    folder.write("a.txt", b"one")
    assert folder.names() == {"a.txt", "b.txt"} and folder.read("b.txt") == b"two"
    assert list(folder.files().items()) == [("a.txt", b"one"), ("b.txt", b"two")]
    by_uri = ArrowPath((tmp_path / "new" / "folder").as_uri())
    assert by_uri.names() == {"a.txt", "b.txt"} and not by_uri.is_local
    by_uri.write("c.txt", b"three")
    assert folder.read("c.txt") == b"three"
    with pytest.raises(UncodeError, match="cannot be opened"):
        ArrowPath("nothing://here").files()
