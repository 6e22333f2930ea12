"""The cost of counting tokens, compared with two other methods on the same text in one run.

    python bench/count.py              Qwen2.5's tokenizer, about 80 MB of documentation and source code
    python bench/count.py --check      the same, and exit code 1 if a limit is not met
    python bench/count.py --text my.jsonl --tokenizer ./my-model

The methods are: `uncode count`, with reading, checking the tokenizer and writing the table; a bare loop of
`tokenizers.encode_batch_fast` that counts nothing; and a pool of threads that tokenize line by line into Counters, as
the script of the paper's release does (rewritten here). Each runs in its own process, which reports its peak memory.
Then `uncode count` runs on four times the text, and on the same text in gzip on one core, as a worker of a cluster
does. The last figure gives an estimate for 400 GB on 64 cores.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path

import material

MIN_SPEEDUP = {"batch": 1.5, "threads": 2.0}
MAX_PEAK_BYTES = 1.5e9
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def by_uncode(text: Path, tokenizer: str) -> int:
    """`uncode count`, as a library call."""
    from uncode.backbones.loading.tokenizer import load_tokenizer
    from uncode.frequency.corpora.corpus import Corpus, Source
    from uncode.frequency.counting.count import count

    with tempfile.TemporaryDirectory() as folder:
        corpus = Corpus("bench", (Source(str(text)),))
        return int(count(corpus, load_tokenizer(tokenizer).tokenizer, Path(folder) / "t.safetensors").table.total)


def by_batch(text: Path, tokenizer: str) -> int:
    """A bare loop over batches that only sums the numbers of tokens."""
    from uncode.backbones.loading.tokenizer import load_tokenizer

    backend, tokens = load_tokenizer(tokenizer).tokenizer.backend_tokenizer, 0
    with text.open() as lines:
        while batch := list(islice(lines, 256)):
            texts = [json.loads(line)["text"] for line in batch]
            tokens += sum(len(e) for e in backend.encode_batch_fast(texts, add_special_tokens=False))
    return tokens


def by_threads(text: Path, tokenizer: str) -> int:
    """Threads over chunks of lines, each with a Counter."""
    from uncode.backbones.loading.tokenizer import load_tokenizer

    encode = load_tokenizer(tokenizer).tokenizer.encode

    def chunk(lines: list[str]) -> Counter[int]:
        found: Counter[int] = Counter()
        for line in lines:
            found.update(encode(json.loads(line)["text"], add_special_tokens=False))
        return found

    lines = text.read_text().splitlines()
    size = max(100, min(20000, len(lines) // (4 * (os.cpu_count() or 1))))
    total: Counter[int] = Counter()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for found in pool.map(chunk, [lines[i : i + size] for i in range(0, len(lines), size)]):
            total.update(found)
    return total.total()


METHODS = {"uncode": by_uncode, "batch": by_batch, "threads": by_threads}


def measured(method: str, text: Path, tokenizer: str, *more: str) -> tuple[int, float, float]:
    """Tokens, seconds and peak bytes of one method, in its own process."""
    words = [sys.executable, __file__, "--method", method, "--text", str(text), "--tokenizer", tokenizer, *more]
    tokens, seconds, peak = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout.split()
    return int(tokens), float(seconds), float(peak)


def use_one_core() -> None:
    """Use one core, as a task on a cluster does."""
    os.environ["RAYON_NUM_THREADS"] = "1"
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def peak_memory() -> int:
    """The peak memory of this process in bytes, without that of its parent."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def fourfold(text: Path, target: Path) -> None:
    """Write the text and three copies with a shifted alphabet, whose words are new."""
    for shift in (0, 5, 11, 17):
        moved = LETTERS[shift:] + LETTERS[:shift]
        table = str.maketrans(LETTERS + LETTERS.upper(), moved + moved.upper())
        with text.open() as lines, target.open("a") as out:
            for line in lines:
                out.write(json.dumps({"text": json.loads(line)["text"].translate(table)}, ensure_ascii=False) + "\n")


def main() -> None:
    """Measure all methods and print a table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--text", type=Path, help="JSON lines with a text each")
    options.add_argument("--tokenizer")
    options.add_argument("--check", action="store_true")
    options.add_argument("--method", choices=METHODS, help=argparse.SUPPRESS)
    options.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    chosen = options.parse_args()
    text, tokenizer = chosen.text or material.corpus(), chosen.tokenizer or str(material.tokenizer())
    if chosen.method:
        if chosen.alone:
            use_one_core()
        began = time.perf_counter()
        tokens = METHODS[chosen.method](text, tokenizer)
        print(tokens, time.perf_counter() - began, peak_memory())
        return
    with text.open() as lines:
        size = sum(len(json.loads(line)["text"].encode()) for line in lines)
    print(f"{size / 1e6:.1f} MB of text, {os.cpu_count()} processors, tokenizer {Path(tokenizer).name}")
    found = {method: measured(method, text, tokenizer) for method in METHODS}
    with tempfile.TemporaryDirectory() as folder:
        fourfold(text, Path(folder) / "four.jsonl")
        found["uncode, 4 x text"] = measured("uncode", Path(folder) / "four.jsonl", tokenizer)
        packed = Path(folder) / "text.jsonl.gz"
        packed.write_bytes(gzip.compress(text.read_bytes(), 6))
        found["uncode, one core"] = measured("uncode", packed, tokenizer, "--alone")
    report(found, size)
    speed = size / found["uncode, one core"][1]
    print(f"400 GB on 64 such cores, at the speed of one: {400e9 / 64 / speed / 60:.0f} minutes")
    if chosen.check:
        check(found)


def report(found: dict[str, tuple[int, float, float]], size: int) -> None:
    """Print one line per method."""
    ours = found["uncode"][1]
    print(f"{'method':18}{'tokens':>14}{'seconds':>10}{'MB/s':>8}{'uncode is':>12}{'peak MB':>10}")
    for method, (tokens, seconds, peak) in found.items():
        times = f"{seconds / ours:.2f} x" if method in MIN_SPEEDUP else ""
        speed = size * (4 if method.endswith("text") else 1) / 1e6 / seconds
        print(f"{method:18}{tokens:>14,}{seconds:>10.1f}{speed:>8.2f}{times:>12}{peak / 1e6:>10.0f}")


def check(found: dict[str, tuple[int, float, float]]) -> None:
    """Exit with an error if a limit is not met."""
    ours, four = found["uncode"], found["uncode, 4 x text"]
    missed = [
        f"{method}: {found[method][1] / ours[1]:.2f} of {least}"
        for method, least in MIN_SPEEDUP.items()
        if found[method][1] < least * ours[1]
    ]
    missed += ["the methods disagree"] * (len({found[method][0] for method in METHODS}) > 1)
    missed += [
        f"{method}: {found[method][2] / 1e6:.0f} MB"
        for method in ("uncode", "uncode, 4 x text")
        if found[method][2] > MAX_PEAK_BYTES
    ]
    missed += [f"memory grows with the text: {four[2] / ours[2]:.2f}"] * (four[2] > 1.15 * ours[2])
    if missed:
        sys.exit("not met: " + "; ".join(missed))


if __name__ == "__main__":
    main()
