"""Counting whole corpora: exact, in limits, and through kills."""

from __future__ import annotations

import dataclasses
import json
import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.forked import Forked
from tests.frequency.test_words import naive
from tests.small_tokenizers import TEXT, TOKENIZERS
from uncode import FrequencyTable, UncodeError
from uncode.frequency import fingerprint
from uncode.frequency.corpora import shards
from uncode.frequency.corpora.corpus import Corpus, Source, Totals
from uncode.frequency.counting import checkpoint, job
from uncode.frequency.counting.count import Counted, count
from uncode.frequency.counting.encoder import Encoder
from uncode.frequency.counting.job import BadRecordRules, CountProgress, ResumePoint
from uncode.frequency.fingerprint import special_ids

SRC = Path(__file__).parents[2] / "src"


def documents(number: int, seed: int = 0) -> list[str]:
    """Texts of mixed scripts, each its own."""
    dice = random.Random(seed)
    words = " ".join(TEXT).split(" ")
    return [" ".join(dice.choices(words, k=dice.randint(0, 60))) + f" {n}\n" for n in range(number)]


def write(path: Path, texts: list[str]) -> Path:
    path.write_text("".join(json.dumps({"text": text}, ensure_ascii=n % 2 == 0) + "\n" for n, text in enumerate(texts)))
    return path


def counted(out: Path, *files: Path, kind: str = "split", **options: Any) -> Counted:
    limits = {key: options.pop(key) for key in ("max_bytes", "max_documents", "sample", "seed") if key in options}
    corpus = Corpus("some", tuple(Source(str(file)) for file in files), **limits)
    return count(corpus, TOKENIZERS[kind](), out, **options)


def expected(kind: str, texts: list[str]) -> FrequencyTable:
    tokenizer = TOKENIZERS[kind]()
    counts = np.zeros(max(tokenizer.get_vocab().values()) + 1, dtype=np.int64)
    for token, times in naive(tokenizer, texts).items():
        counts[token] = times
    return FrequencyTable(torch.from_numpy(counts), "naive", special_ids(tokenizer))


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_a_thousand_documents_are_counted_exactly(kind: str, tmp_path: Path) -> None:
    texts = documents(1000)
    files = [write(tmp_path / f"{n}.jsonl", texts[n::3]) for n in range(3)]
    done = counted(tmp_path / "t.safetensors", *files, kind=kind)
    assert done.table == FrequencyTable.load(tmp_path / "t.safetensors") == expected(kind, texts)
    assert done.by_words == (kind != "whole") and not done.resumed
    assert counted(tmp_path / "p.safetensors", *files, kind=kind, plain=True).table == done.table
    assert {p.suffix for p in tmp_path.iterdir()} == {".jsonl", ".safetensors"}


def test_the_table_says_where_it_comes_from(tmp_path: Path) -> None:
    texts = documents(10)
    file = write(tmp_path / "a.jsonl", texts)
    with file.open("a") as more:
        more.write("nonsense\n")
    done = counted(
        tmp_path / "t.safetensors",
        file,
        rules=BadRecordRules(allow_bad=1),
        tokenizer_name="mine",
        revision="abc",
        max_documents=99,
    )
    made, size = done.table.made, sum(len(text.encode()) for text in texts)
    assert (made.tokenizer, made.revision, made.fingerprint) == ("mine", "abc", fingerprint(TOKENIZERS["split"]()))
    assert (made.corpus, made.files, made.bytes, made.documents) == ("some", (str(file),), size, 10)
    assert (made.tokens, made.bad) == (done.table.total, 1)
    assert json.loads(made.settings) == {"max_documents": 99, "fields": ["text"]}
    assert [str(fault) for fault in done.totals.faults] == [f"{file}, line 11: not valid JSON (column 1)"]


def test_limits_take_the_first_documents(tmp_path: Path) -> None:
    texts = documents(60)
    files = [write(tmp_path / f"{n}.jsonl", texts[20 * n : 20 * n + 20]) for n in range(3)]
    sizes = np.cumsum([len(text.encode()) for text in texts])
    for first in (1, 20, 31, 60):
        by_number = counted(tmp_path / "n.safetensors", *files, max_documents=first)
        by_size = counted(tmp_path / "s.safetensors", *files, max_bytes=int(sizes[first - 1]))
        less = counted(tmp_path / "l.safetensors", *files, max_bytes=int(sizes[first]) - 1) if first < 60 else by_size
        assert by_number.table == by_size.table == less.table == expected("split", texts[:first])
        assert by_number.totals.documents == first and by_size.totals.bytes == sizes[first - 1]


def test_a_sample_is_a_part_by_content(tmp_path: Path) -> None:
    texts = documents(400)
    one, two = write(tmp_path / "a.jsonl", texts), write(tmp_path / "b.jsonl", texts[::-1])
    some = counted(tmp_path / "1.safetensors", one, sample=0.25)
    assert 60 < some.totals.documents < 140
    assert counted(tmp_path / "2.safetensors", two, sample=0.25).table == some.table
    assert counted(tmp_path / "3.safetensors", one, sample=0.25, seed=1).table != some.table
    more = counted(tmp_path / "4.safetensors", one, sample=0.5)
    assert bool((more.table.counts >= some.table.counts).all()), "a larger sample holds the smaller"


def test_bad_records_stop_a_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = documents(200)
    file = write(tmp_path / "a.jsonl", texts)
    lines = file.read_text().splitlines(keepends=True)
    lines[50:50] = ["nonsense\n", '{"txt": "x"}\n', '{"text": "\\ud800"}\n']
    file.write_text("".join(lines))
    out = tmp_path / "t.safetensors"
    with pytest.raises(UncodeError, match=r"a bad record stops a strict count: .*a.jsonl, line 51: not valid JSON"):
        counted(out, file, rules=BadRecordRules(strict=True))
    with pytest.raises(
        UncodeError, match=r"3 of 203 records are bad, more than the 1 % that `allow_bad=0.01` allows .*line 51"
    ):
        counted(out, file)
    assert not out.exists()
    done = counted(out, file, rules=BadRecordRules(allow_bad=0.02))
    assert done.resumed and done.table == expected("split", texts), "what was counted is not counted again"
    assert [(fault.line, fault.why.split(":")[0]) for fault in done.totals.faults] == [
        (51, "not valid JSON (column 1)"), (52, "no field 'text'"), (53, "not UTF-8 text")
    ]  # fmt: skip
    monkeypatch.setattr(job, "MIN_JUDGED_RECORDS", 52)
    with pytest.raises(UncodeError, match="2 of 52 records are bad"):
        counted(tmp_path / "u.safetensors", file)


def test_progress_reports_grow_to_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter(range(10**6))
    monkeypatch.setattr("uncode.frequency.counting.count.time.monotonic", lambda: float(next(now)))
    seen: list[tuple[int, float]] = []

    def watch(report: CountProgress) -> None:
        seen.append((report.totals.documents, report.share))

    files = [write(tmp_path / f"{n}.jsonl", documents(20, n)) for n in range(3)]
    counted(tmp_path / "t.safetensors", *files, on_progress=watch)
    assert [*dict(seen)] == list(range(1, 61)) and sorted(part for _, part in seen) == [p for _, p in seen]
    assert 0 < seen[0][1] < seen[-1][1] == 1
    seen.clear()
    counted(tmp_path / "t.safetensors", *files, on_progress=watch, max_documents=40)
    assert dict(seen)[20] >= 0.5 and seen[-1][1] == pytest.approx(39 / 40)


def slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of a few records, each written down."""
    monkeypatch.setattr(job, "BATCH_SECONDS", 0.0)
    monkeypatch.setattr(checkpoint, "SAVE_SECONDS", 0.0)


class Cut(BaseException):
    """The power fails."""


def cut_after(batches: int, monkeypatch: pytest.MonkeyPatch) -> None:
    real, seen = checkpoint.Checkpoint.save, [0]

    def save(self: checkpoint.Checkpoint) -> None:
        if seen[0] == batches:
            raise Cut
        seen[0] += 1
        real(self)

    monkeypatch.setattr(checkpoint.Checkpoint, "save", save)


@pytest.mark.parametrize("batches", [1, 7, 19, 33])
def test_an_interrupted_count_resumes(batches: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = documents(36)
    files = [write(tmp_path / f"{n}.jsonl", texts[12 * n : 12 * n + 12]) for n in range(3)]
    slowly(monkeypatch)
    with monkeypatch.context() as patch:
        cut_after(batches, patch)
        with pytest.raises(Cut):
            counted(tmp_path / "t.safetensors", *files)
    assert (tmp_path / "t.safetensors.counting").is_file()
    done = counted(tmp_path / "t.safetensors", *files)
    assert done.resumed and done.table == expected("split", texts) and done.totals.documents == 36
    assert sorted(p.name for p in tmp_path.iterdir()) == ["0.jsonl", "1.jsonl", "2.jsonl", "t.safetensors"]


def test_an_interrupt_while_the_tokenizer_works_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C comes while the count waits for a batch."""
    texts = documents(12)
    file, out = write(tmp_path / "a.jsonl", texts), tmp_path / "t.safetensors"
    slowly(monkeypatch)
    real, calls = checkpoint.Checkpoint.advance, [0]

    def advance(self: checkpoint.Checkpoint, *batch: Any) -> None:
        calls[0] += 1
        if calls[0] == 3:
            raise KeyboardInterrupt
        real(self, *batch)

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint.Checkpoint, "advance", advance)
        with pytest.raises(KeyboardInterrupt):
            counted(out, file)
    assert counted(out, file).table == expected("split", texts)


def test_shards_that_a_cluster_counted_are_not_counted_again_here(tmp_path: Path) -> None:
    texts = documents(40)
    files = [write(tmp_path / f"{n}.jsonl", texts[10 * n : 10 * n + 10]) for n in range(4)]
    corpus, tokenizer, out = (
        Corpus("some", tuple(Source(str(f)) for f in files)),
        TOKENIZERS["split"](),
        tmp_path / "t.st",
    )
    encoder = Encoder(tokenizer)
    whole = job.CountJob(corpus, tuple(corpus.shards()), None)
    with checkpoint.Checkpoint.open(out, whole.identity(encoder), encoder.size) as state:
        state.advance(encoder.count(texts[20:30]), Totals(10, 10, 1), ResumePoint(), counted=2)
        state.save()
    done = count(corpus, tokenizer, out)
    assert done.resumed and done.table == expected("split", texts) and done.totals.documents == 40


def test_nothing_to_count_is_one_sentence(tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", ["x" * 100])
    with pytest.raises(UncodeError, match=r"nothing was counted: .*larger than `max_bytes=` \(50\)"):
        counted(tmp_path / "t.safetensors", file, max_bytes=50)


def interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """A count that was cut in the middle of its file."""
    file, out = write(tmp_path / "a.jsonl", documents(20)), tmp_path / "t.safetensors"
    slowly(monkeypatch)
    with monkeypatch.context() as patch:
        cut_after(8, patch)
        with pytest.raises(Cut):
            counted(out, file)
    return file, out


def test_a_checkpoint_of_another_job_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, out = interrupted(tmp_path, monkeypatch)
    with pytest.raises(UncodeError, match=r"begun with other tokenizer: .*`restart=True`"):
        counted(out, file, kind="byte-level")
    with pytest.raises(UncodeError, match="begun with other limits"):
        counted(out, file, max_documents=3)
    with pytest.raises(UncodeError, match="begun with other files"):
        counted(out, file, write(tmp_path / "b.jsonl", ["x"]))
    assert not (again := counted(out, file, max_documents=3, restart=True)).resumed and again.totals.documents == 3


def test_a_file_that_changed_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, out = interrupted(tmp_path, monkeypatch)
    facts = os.stat(file)
    content = file.read_bytes()
    file.write_bytes(content.replace(b'"text": "', b'"text": ".', 1)[: len(content) - 1] + b"\n")
    os.utime(file, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    with pytest.raises(UncodeError, match=r"has changed since it was counted: .*`restart=True`"):
        counted(out, file)


def test_a_broken_checkpoint_is_one_sentence(tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", documents(3))
    (tmp_path / "t.safetensors.counting").write_bytes(b"nonsense")
    with pytest.raises(UncodeError, match="start again with `restart=True`"):
        counted(tmp_path / "t.safetensors", file)


def test_two_at_once_are_refused(tmp_path: Path) -> None:
    out = tmp_path / "t.safetensors"
    with checkpoint.Checkpoint.open(out, {}, 3), pytest.raises(UncodeError, match="another process is counting"):
        counted(out, write(tmp_path / "a.jsonl", documents(3)))


def test_parts_of_a_large_file_are_counted_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = documents(100)
    file = write(tmp_path / "a.jsonl", texts)
    monkeypatch.setattr(shards, "SHARD_BYTES", 1 << 12)
    assert len(Corpus("x", (Source(str(file)),)).shards()) > 3
    assert counted(tmp_path / "t.safetensors", file).table == expected("split", texts)


def test_kill_9_at_random_moments_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At two; under `make verify` at five."""
    moments = sorted(random.Random(5).sample(range(25, 450), 5))
    texts = documents(500)
    files = [write(tmp_path / f"{n}.jsonl", texts[125 * n : 125 * n + 125]) for n in range(4)]
    out, kept = tmp_path / "t.safetensors", tmp_path / "t.safetensors.counting"
    real, reached = checkpoint.Checkpoint.advance, []
    with monkeypatch.context() as slow:
        slow.setattr(job, "BATCH_SECONDS", 0.0)
        slow.setattr(checkpoint, "SAVE_SECONDS", 0.0)
        slow.setattr(checkpoint.Checkpoint, "advance", lambda *given: (time.sleep(0.002), real(*given))[1])
        for moment in moments if os.environ.get("HYPOTHESIS_PROFILE") == "soak" else moments[1::2]:
            with Forked(lambda: counted(out, *files)) as process:
                while _records(kept) < moment:
                    assert process.poll() is None, process.communicate()
                    time.sleep(0.005)
                process.kill()
                assert process.wait() == -signal.SIGKILL and not out.exists()
            reached.append(_records(kept))
        assert reached == sorted(set(reached)) and reached[-1] < 500
        with Forked(lambda: counted(out, *files)) as process:
            assert process.wait() == 0
    assert FrequencyTable.load(out) == expected("split", texts)
    assert FrequencyTable.load(out).made.documents == 500
    assert not list(tmp_path.glob("*.counting*"))


def _records(path: Path) -> int:
    from safetensors import safe_open

    if not path.exists():
        return 0
    with safe_open(path, framework="np") as file:
        return int(json.loads(file.metadata()["state"])["totals"]["records"])


def test_a_corpus_is_checked_before_it_is_read() -> None:
    good = Corpus("x", (Source("a.txt"),))
    for change, message in [
        ({"sources": ()}, "has no source"),
        ({"sample": 0.0}, "sample must be above 0 and at most 1, not 0"),
        ({"max_bytes": 0}, "above 0"),
    ]:
        with pytest.raises(UncodeError, match=message):
            dataclasses.replace(good, **change)
