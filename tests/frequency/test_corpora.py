"""Corpora: what sources stand for, how much of them is counted, and when a count is another count."""

from __future__ import annotations

import dataclasses
import gzip
import io
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest

from tests.hub import Hub, Repo, pointing_at, serve
from tests.small_tokenizers import TOKENIZERS, gpt2
from uncode import UncodeError
from uncode.frequency.corpora import shards
from uncode.frequency.corpora.corpus import Corpus, Source, Totals, read_size
from uncode.frequency.corpora.corpus_spec import read_spec
from uncode.frequency.corpora.readers import Reader
from uncode.frequency.counting.encoder import Encoder
from uncode.frequency.counting.job import BadRecordRules, CountJob
from uncode.frequency.counting.words import cutter_for

FILES = {
    "b.txt": b"b\n",
    "a.jsonl": b'{"text": "a"}\n',
    "deep/er/c.md": b"c\n",
    "deep/d.csv.gz": gzip.compress(b"text\nd\n"),
    "deep/README": b"r\n",
    "x.bin": b"x\n",
    ".hidden.txt": b"h\n",
    ".git/config.txt": b"g\n",
}


def of(*where: object, **how: Any) -> Corpus:
    return Corpus("corpus", tuple(Source(str(each), **how) for each in where))


def names(corpus: Corpus, folder: object) -> list[str]:
    """The paths of the shards, from a folder on."""
    return [shard.path.split(f"{folder}/", 1)[1] for shard in corpus.shards()]


def texts(corpus: Corpus) -> list[str]:
    found = [record for shard in corpus.shards() for record in Reader(shard)]
    assert not any(record.why for record in found)
    return ["".join(record.texts) for record in found]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, content in FILES.items():
        path = tmp_path / "corpus" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return tmp_path / "corpus"


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("16GB", 16_000_000_000),
        ("1.5 GiB", 3 << 29),
        ("500MB", 500_000_000),
        ("300000", 300_000),
        (" 20 kb ", 20_000),
        ("2T", 2_000_000_000_000),
        ("7b", 7),
        ("1Mi", 1 << 20),
        ("0.5k", 500),
        ("1.1KB", 1100),
        ("1.001MB", 1_001_000),
    ],
)
def test_a_size_is_read(text: str, size: int) -> None:
    assert read_size(text) == size


@pytest.mark.parametrize("text", ["nonsense", "", "GB", "-5", "1e9", "12 XB", "1,5GB", "16GB or so", "nan", "."])
def test_what_is_no_size_is_one_sentence(text: str) -> None:
    with pytest.raises(UncodeError, match=f"'{text}' is not a size: write 16GB"):
        read_size(text)


def test_a_folder_is_its_files_of_known_kinds(folder: Path) -> None:
    assert names(of(folder), folder) == ["a.jsonl", "b.txt", "deep/d.csv.gz", "deep/er/c.md"]
    assert texts(of(f"{folder}/")) == ["a", "b\n", "d", "c\n"]


def test_a_format_takes_all_files_of_a_folder(folder: Path) -> None:
    found = of(folder, format="text").shards()
    assert {shard.format for shard in found} == {"text"} and [shard.compression for shard in found].count("gz") == 1
    assert names(of(folder, format="text"), folder) == [
        "a.jsonl",
        "b.txt",
        "deep/README",
        "deep/d.csv.gz",
        "deep/er/c.md",
        "x.bin",
    ]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.txt", ["b.txt"]),
        ("?.*[!n]", ["a.jsonl", "b.txt"]),
        ("**/*.md", ["deep/er/c.md"]),
        ("*/*.gz", ["deep/d.csv.gz"]),
        ("deep/[a-e]*", ["deep/d.csv.gz"]),
    ],
)
def test_a_glob_is_the_files_it_matches(pattern: str, expected: list[str], folder: Path) -> None:
    assert names(of(folder / pattern), folder) == expected
    assert names(of(f"file://{folder}/{pattern}"), folder) == expected


def test_a_file_whose_name_looks_like_a_glob_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "[a].txt").write_bytes(b"a\n")
    assert texts(of(tmp_path / "[a].txt")) == ["a\n"]


def test_sources_keep_their_order_and_a_file_is_read_once(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link.txt").symlink_to(folder / "b.txt")
    found = of("corpus/b.txt", folder / "b.txt", "link.txt", "corpus/../corpus/*.txt", folder).shards()
    assert found[0].path == "corpus/b.txt" and len(found) == len(of(folder).shards())
    assert texts(of(folder / "b.txt", folder / "a.jsonl")) == ["b\n", "a"]
    assert texts(of(folder / "a.jsonl", folder / "b.txt")) == ["a", "b\n"]


def test_standard_input_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind, content in {None: b"a\nb\n", "jsonl": b'{"text": "a\\nb\\n"}'}.items():
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
        assert texts(of("-", format=kind)) == ["a\nb\n"]


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("no.txt", "there is no file or folder 'no.txt' here, and it is not a dataset id"),
        ("corpus/no.txt", "there is no file or folder 'corpus/no.txt'"),
        ("./a/b", "there is no file or folder './a/b'"),
        ("", "there is no file or folder ''"),
        ("corpus/*.csv", "no file matches 'corpus/\\*.csv'"),
        ("corpus/x.bin", "'corpus/x.bin' has no known ending \\(.txt, .*.bz2\\): give its `format=`"),
        ("corpus/*.bin", "has no known ending"),
        ("corpus/deep/README", "has no known ending"),
        ("bins", "'bins' holds no file with a known ending \\(.txt, .*\\): give their `format=`"),
        ("memory://no/file.txt", "'memory://no/file.txt' cannot be read"),
        ("memory://no/*.txt", "no file matches 'memory://no/\\*.txt'"),
        ("what://is/this.txt", "'what://is/this.txt' cannot be read: Protocol not known: what"),
    ],
)
def test_what_is_not_there_is_one_sentence(
    where: str, message: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bins").mkdir()
    (tmp_path / "bins" / "x.bin").write_bytes(b"")
    with pytest.raises(UncodeError, match=message):
        of(where).shards()


@pytest.mark.parametrize(
    ("where", "error", "message"),
    [
        ("https://x.org/a.txt", ImportError("no aiohttp"), r"is missing: pip install 'uncode\[corpora\]'\.$"),
        ("s3://x/a.txt", ImportError("Install s3fs to access S3"), r"is missing: Install s3fs to access S3\.$"),
        (
            "https://x.org/a.txt",
            FileNotFoundError("https://x.org/a.txt"),
            "no file is there, or the server cannot be r",
        ),
    ],
)
def test_an_address_that_cannot_be_read_says_what_to_do(
    where: str, error: Exception, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: str) -> None:
        raise error

    monkeypatch.setattr("fsspec.core.url_to_fs", fail)
    with pytest.raises(UncodeError, match=f"^'{where}' cannot be read.*{message}"):
        of(where).shards()


def test_a_dataset_id_without_its_package_says_both_possibilities(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    both = r"there is no file or folder 'no/data' here, and reading it as a dataset id needs datasets: pip install"
    with pytest.raises(UncodeError, match=both):
        of("no/data").shards()


@pytest.fixture
def memory() -> Iterator[str]:
    """The files, in memory."""
    filesystem = fsspec.filesystem("memory")
    filesystem.pipe({f"/corpus/{name}": content for name, content in FILES.items()})
    yield "memory://corpus"
    filesystem.rm("/corpus", recursive=True)


def test_an_address_is_a_file_or_a_folder_or_a_glob(memory: str, folder: Path) -> None:
    for root in (memory, f"file://{folder}"):
        assert texts(of(f"{root}/b.txt")) == ["b\n"] and texts(of(f"{root}/deep/d.csv.gz")) == ["d"]
        assert names(of(root), "corpus") == names(of(folder), folder)
        assert texts(of(root)) == texts(of(f"{root}/")) == texts(of(folder))
        assert names(of(f"{root}/**/*.md", f"{root}/*l"), "corpus") == ["deep/er/c.md", "a.jsonl"]


def test_a_glob_at_an_address_leaves_folders_out(memory: str) -> None:
    assert names(of(f"{memory}/d*/*", format="text"), "corpus") == ["deep/README", "deep/d.csv.gz"]


def test_a_file_at_an_address_is_read_once(memory: str, folder: Path) -> None:
    assert len(of(folder / "b.txt", f"file://{folder}/b.txt").shards()) == 1
    assert names(of(f"{memory}/b.txt", f"{memory}/b*", memory), "corpus")[0] == "b.txt"
    assert len(of(f"{memory}/b.txt", f"{memory}/b*", memory).shards()) == len(of(memory).shards())


@pytest.mark.parametrize("where", ["{0}", "file://{0}", "memory://large"])
def test_a_large_file_is_divided_wherever_it_is(where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "SHARD_BYTES", 1 << 14)
    content = b'{"text": "some text"}\n' * 2000
    (tmp_path / "a.jsonl").write_bytes(content)
    fsspec.filesystem("memory").pipe("/large/a.jsonl", content)
    corpus = of(where.format(tmp_path) + "/a.jsonl")
    assert len(corpus.shards()) == 3 and texts(corpus) == ["some text"] * 2000


def lines(*values: str) -> bytes:
    return "".join(json.dumps({"text": value}) + "\n" for value in values).encode()


CARD = b"""---
configs:
- config_name: en
  data_files:
  - split: train
    path: en/train-*.json.gz
  - split: validation
    path: en/rest.jsonl
- config_name: de
  data_files: de/*.json.gz
---
"""
MANY = {
    "README.md": CARD,
    "en/train-1.json.gz": gzip.compress(lines("two", "three")),
    "en/train-0.json.gz": gzip.compress(lines("one")),
    "en/rest.jsonl": lines("four"),
    "de/all.json.gz": gzip.compress(lines("eins")),
}
ONE = {"data/train.txt": b"some\ntext\n", "data/test.txt": b"more\n"}


@pytest.fixture(scope="module")
def hub() -> Iterator[Hub]:
    with serve() as made:
        made.datasets = {
            "some/many": Repo([MANY, MANY | {"de/all.json.gz": gzip.compress(lines("zwei"))}], {"v2": 1}),
            "some/one": Repo([ONE]),
            "some/gated": Repo([ONE], gated=True),
            "some/private": Repo([ONE], token="xyz"),
            "some/broken": Repo([ONE], status=503),
            "some/empty": Repo([{".gitattributes": b""}]),
        }
        yield made


@pytest.mark.parametrize(
    ("name", "how", "expected"),
    [
        ("some/many", {"config": "en"}, ["one", "two", "three"]),
        ("some/many", {"config": "en", "split": "validation"}, ["four"]),
        ("some/many", {"config": "de"}, ["eins"]),
        ("some/many", {"config": "de", "revision": "v2"}, ["zwei"]),
        ("some/one", {}, ["some\ntext\n"]),
        ("some/one", {"split": "test"}, ["more\n"]),
        ("hf://datasets/some/many/en/train-1.json.gz", {}, ["two", "three"]),
        ("hf://datasets/some/many/en", {}, ["four", "one", "two", "three"]),
        ("hf://datasets/some/many/*/*.json.gz", {}, ["eins", "one", "two", "three"]),
        ("hf://datasets/some/one/data/train.txt", {}, ["some\ntext\n"]),
    ],
)
def test_a_dataset_is_read_from_the_hub(
    name: str, how: dict[str, str], expected: list[str], hub: Hub, tmp_path: Path
) -> None:
    with pointing_at(hub, tmp_path):
        assert texts(of(name, **how)) == expected


def test_a_large_file_on_the_hub_is_divided(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "SHARD_BYTES", 1 << 14)
    written = [f"{n} some text" for n in range(1000)]
    hub.datasets["some/large"] = Repo([{"train.jsonl": lines(*written)}])
    with pointing_at(hub, tmp_path):
        corpus = of("some/large")
        assert len(corpus.shards()) > 1 and texts(corpus) == written


@pytest.mark.parametrize(
    ("name", "how", "message"),
    [
        ("some/many", {"config": "fr"}, "'some/many' .*'fr' not found. Available: \\['en', 'de'\\]"),
        ("some/many", {}, "'some/many' .*pick one among the available configs: \\['en', 'de'\\]"),
        ("some/many", {"config": "en", "split": "vaildation"}, "no split 'vaildation': did you mean 'validation'"),
        ("some/many", {"config": "de", "split": "test"}, "'some/many' has no split 'test': known: train"),
        ("some/many", {"config": "en", "revision": "v3"}, "'some/many' .*Revision 'v3' doesn't exist"),
        ("some/gated", {}, "'some/gated' .*gated dataset.*authenticated"),
        ("some/private", {}, "'some/private' .*doesn't exist on the Hub or cannot be accessed"),
        ("some/nothing", {}, "'some/nothing' .*doesn't exist on the Hub or cannot be accessed"),
        ("some/broken", {}, "'some/broken' here, and as a dataset id it cannot be read: .*connection"),
        ("some/empty", {}, "'some/empty' .*doesn't contain any data files"),
        ("hf://datasets/some/nothing/a.txt", {}, "'hf://datasets/some/nothing/a.txt' cannot be read"),
        ("hf://datasets/some/one/no.txt", {}, "'hf://datasets/some/one/no.txt' cannot be read"),
    ],
)
def test_a_dataset_that_cannot_be_read_is_one_sentence(
    name: str, how: dict[str, str], message: str, hub: Hub, tmp_path: Path
) -> None:
    with pointing_at(hub, tmp_path), pytest.raises(UncodeError, match=message) as caught:
        of(name, **how).shards()
    assert "\n" not in str(caught.value)


def test_a_dataset_without_a_network_is_one_sentence(hub: Hub, tmp_path: Path) -> None:
    hub.asked.clear()
    with pointing_at(hub, tmp_path, offline=True), pytest.raises(UncodeError, match=r"'some/one' .*Offline"):
        of("some/one").shards()
    assert hub.asked == []


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("some/one/resolve/main/data/train.txt", ["some\ntext\n"]),
        ("some/one/resolve/main/data/train.txt?download=true", ["some\ntext\n"]),
        ("some/many/resolve/main/en/rest.jsonl", ["four"]),
        ("some/many/resolve/main/en/train-1.json.gz", ["two", "three"]),
    ],
)
def test_a_file_is_read_from_a_web_server(where: str, expected: list[str], hub: Hub) -> None:
    assert texts(of(f"{hub.endpoint}/datasets/{where}")) == expected


def test_a_file_a_web_server_does_not_have_is_one_sentence(hub: Hub) -> None:
    for where in (f"{hub.endpoint}/datasets/some/one/resolve/main/no.txt", "http://127.0.0.1:9/a.txt"):
        with pytest.raises(UncodeError, match=f"'{where}' cannot be read"):
            of(where).shards()


SPEC = """
max_bytes = "1.5 GiB"
sample = 0.5
seed = 3

[[source]]
where = "allenai/c4"
config = "en"
split = "validation"
revision = "1588ec454efa1a09f29cd18ddd04fe05fc8653a2"

[[source]]
where = "größe/*.xml"
format = "jsonl"
fields = ["title", "messages.content"]
encoding = "latin-1"
"""


def spec_file(folder: Path, content: str) -> Path:
    (folder / "mix.toml").write_text(content, encoding="utf-8")
    return folder / "mix.toml"


def test_a_corpus_spec_is_read(tmp_path: Path) -> None:
    c4 = Source("allenai/c4", config="en", split="validation", revision="1588ec454efa1a09f29cd18ddd04fe05fc8653a2")
    more = Source("größe/*.xml", "jsonl", ("title", "messages.content"), "latin-1")
    assert read_spec(spec_file(tmp_path, SPEC)) == Corpus("mix", (c4, more), 3 << 29, sample=0.5, seed=3)


def test_a_corpus_spec_may_name_itself_and_its_limits_in_numbers(tmp_path: Path) -> None:
    path = spec_file(tmp_path, 'name = "mine"\nmax_bytes = 500\nmax_documents = 7\n[[source]]\nwhere = "-"')
    assert read_spec(path) == Corpus("mine", (Source("-"),), 500, 7)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('max_byte = 5\n[[source]]\nwhere = "a"', "unknown key 'max_byte': did you mean 'max_bytes'"),
        ('[[source]]\nwhere = "a"\nfield = ["b"]', "unknown key 'field': did you mean 'fields'"),
        ('[[source]]\nwhere = "a"\nmax_bytes = 5', "unknown key 'max_bytes': known: config, encoding"),
        ('[[source]]\nwhere = "a"\n[other]\nx = 1', "unknown key 'other': known: max_bytes"),
        ('sources = ["a"]\n[[source]]\nwhere = "a"', "unknown key 'sources'"),
        ('name = "a"', r"needs a \[\[source\]\] for each of its sources"),
        ("", r"needs a \[\[source\]\]"),
        ('[source]\nwhere = "a"', r"needs a \[\[source\]\]"),
        ('source = ["a"]', r"needs a \[\[source\]\]"),
        ("source = []", "has no source"),
        ("[[source]\n", "the corpus spec '.*mix.toml' is not a TOML file: .*line 1"),
        ('max_bytes = "much"\n[[source]]\nwhere = "a"', "'much' is not a size"),
        ('max_bytes = 0\n[[source]]\nwhere = "a"', "max_bytes must be above 0, not 0"),
        ('max_documents = -1\n[[source]]\nwhere = "a"', "max_documents must be above 0, not -1"),
        ('sample = 0.0\n[[source]]\nwhere = "a"', "sample must be above 0 and at most 1, not 0"),
        ('sample = 2\n[[source]]\nwhere = "a"', "sample must be above 0 and at most 1, not 2"),
        ("[[source]]\nfields = ['a']", "mix.toml'.* 'where'"),
        ("[[source]]\nwhere = 5", "mix.toml'.* 'where'"),
        ('[[source]]\nwhere = "a"\nfields = [1]', "mix.toml'.* 'fields'"),
        ('[[source]]\nwhere = "a"\nfields = []', "mix.toml'.* 'fields'"),
        ('[[source]]\nwhere = "a"\nformat = "json"', "mix.toml'.* 'format'"),
        ('max_documents = "5"\n[[source]]\nwhere = "a"', "mix.toml'.* 'max_documents'"),
        ('max_bytes = 1.5\n[[source]]\nwhere = "a"', "mix.toml'.* 'max_bytes'"),
        ('sample = "half"\n[[source]]\nwhere = "a"', "mix.toml'.* 'sample'"),
        ('seed = "x"\n[[source]]\nwhere = "a"', "mix.toml'.* 'seed'"),
    ],
)
def test_a_wrong_corpus_spec_is_one_sentence(content: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UncodeError, match=message):
        read_spec(spec_file(tmp_path, content))


def test_a_corpus_spec_that_is_no_text_or_not_there_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_bytes(b"\xff\xfe\0")
    with pytest.raises(UncodeError, match=r"a.toml' is not a TOML file: it is not UTF-8 text\."):
        read_spec(tmp_path / "a.toml")
    with pytest.raises(UncodeError, match=r"no.toml'"):
        read_spec(tmp_path / "no.toml")


def test_limits_on_bytes_and_documents() -> None:
    free, some, few = (dataclasses.replace(of("-"), **limit) for limit in ({}, {"max_bytes": 9}, {"max_documents": 2}))
    both = dataclasses.replace(some, max_documents=2)
    assert free.allows(1 << 60, 1 << 60) and not free.is_reached_by(1 << 60, 1 << 60)
    assert [some.allows(size, 99) for size in (0, 8, 9, 10)] == [True, True, True, False]
    assert [few.allows(99, documents) for documents in (1, 2, 3)] == [True, True, False]
    assert [both.allows(*size) for size in ((9, 2), (10, 2), (9, 3))] == [True, False, False]
    assert [both.is_reached_by(*size) for size in ((8, 1), (9, 1), (8, 2), (9, 2))] == [False, True, True, True]


def test_remaining_limits_after_a_partial_count() -> None:
    corpus = Corpus("corpus", (Source("-"),), 9, 2, 0.5, 7)
    assert corpus.remaining_after(Totals()) == corpus
    assert corpus.remaining_after(Totals(documents=1, bytes=4)) == Corpus("corpus", (Source("-"),), 5, 1, 0.5, 7)
    assert (
        corpus.remaining_after(Totals(documents=1, bytes=9)) is None
        and corpus.remaining_after(Totals(documents=2, bytes=4)) is None
    )
    assert of("-").remaining_after(Totals(documents=5, bytes=5)) == of("-")


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"max_bytes": 0}, "max_bytes must be above 0"),
        ({"max_documents": -3}, "max_documents must be above 0, not -3"),
        ({"sample": 0.0}, "above 0 and at most 1, not 0"),
        ({"sample": float("nan")}, "above 0 and at most 1, not nan"),
        ({"sources": ()}, "has no source"),
    ],
)
def test_limits_that_allow_nothing_are_refused(limits: dict[str, Any], message: str) -> None:
    with pytest.raises(UncodeError, match=message):
        dataclasses.replace(of("-"), **limits)


@pytest.mark.parametrize(
    ("encoding", "message"),
    [
        ("klingon", "'klingon' is not an encoding that Python knows"),
        ("", "'' is not an encoding that Python knows"),
        ("rot13", "'rot13' is not an encoding that Python knows"),
        ("utf-16", "files in utf-16 cannot be read line by line: convert them to UTF-8"),
        ("utf-16-le", "files in utf-16-le cannot be read line by line"),
        ("UTF-32", "files in UTF-32 cannot be read line by line"),
        ("cp500", "files in cp500 cannot be read line by line"),
        ("undefined", "'undefined' is not an encoding"),
    ],
)
def test_an_encoding_that_cannot_be_read_is_refused(encoding: str, message: str, folder: Path) -> None:
    with pytest.raises(UncodeError, match=message):
        of(folder / "b.txt", encoding=encoding).shards()


def test_a_mark_may_be_part_of_the_encoding(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a", encoding="utf-8-sig")
    assert texts(of(tmp_path / "a.txt", encoding="utf-8-sig")) == ["a"]


@pytest.fixture(scope="module")
def tokenizers() -> tuple[Any, Any]:
    other = gpt2()
    other.add_tokens(["new"])
    return TOKENIZERS["byte-level"](), other


def touch(path: Path) -> None:
    facts = path.stat()
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns + 10**9))


def identity(corpus: Corpus, tokenizer: Any, **how: Any) -> dict[str, str]:
    return CountJob(corpus, tuple(corpus.shards()), how.pop("cutter", None), **how).identity(Encoder(tokenizer))


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (touch, "files"),
        (lambda path: path.write_bytes(b"longer\n"), "files"),
        (lambda path: path.rename(path.with_name("c.txt")), "files"),
        (lambda path: path.with_name("c.txt").write_bytes(b"c\n"), "files"),
        (lambda path: {"fields": ("title",)}, "fields or formats"),
        (lambda path: {"encoding": "latin-1"}, "fields or formats"),
        (lambda path: {"format": "text"}, "fields or formats"),
        (lambda path: {"max_bytes": 5}, "limits"),
        (lambda path: {"max_documents": 5}, "limits"),
        (lambda path: {"sample": 0.5}, "limits"),
        (lambda path: {"seed": 5}, "limits"),
    ],
)
def test_a_count_of_something_else_is_another_count(
    change: Callable[[Path], object], what: str, folder: Path, tokenizers: tuple[Any, Any]
) -> None:
    before = identity(of(folder), tokenizers[0])
    changed = change(folder / "b.txt")
    wish: dict[str, Any] = changed if isinstance(changed, dict) else {}
    limits = {key: wish.pop(key) for key in list(wish) if key not in ("fields", "encoding", "format")}
    after = identity(dataclasses.replace(of(folder, **wish), **limits), tokenizers[0])
    assert what in {key for key in before if before[key] != after[key]} <= {what, "files"}


def test_a_changed_file_at_an_address_makes_another_count(
    folder: Path, hub: Hub, tmp_path: Path, tokenizers: tuple[Any, Any]
) -> None:
    before = identity(of(f"file://{folder}/b.txt"), tokenizers[0])
    touch(folder / "b.txt")
    assert before != identity(of(f"file://{folder}/b.txt"), tokenizers[0])
    seen = []
    for content in (b"one\n", b"two\n", b"two\n"):
        hub.datasets["some/changing"] = Repo([{"a.txt": content}])
        with pointing_at(hub, tmp_path):
            seen.append(identity(of("hf://datasets/some/changing/a.txt"), tokenizers[0]))
    assert seen[0] != seen[1] == seen[2]


def test_another_tokenizer_makes_another_count(folder: Path, tokenizers: tuple[Any, Any]) -> None:
    before, after = (identity(of(folder), tokenizer) for tokenizer in tokenizers)
    assert {key for key in before if before[key] != after[key]} == {"tokenizer"}


def test_what_does_not_change_the_counts_does_not_make_another_count(folder: Path, tokenizers: tuple[Any, Any]) -> None:
    before = identity(of(folder), tokenizers[0])
    assert before == identity(of(folder), tokenizers[0].backend_tokenizer)
    assert before == identity(of(folder / "a.jsonl", folder), tokenizers[0])
    assert before == identity(dataclasses.replace(of(folder), name="other"), tokenizers[0])
    cutter = cutter_for(Encoder(tokenizers[0]).backend)
    assert cutter is not None
    assert before == identity(
        of(folder), tokenizers[0], rules=BadRecordRules(strict=True, allow_bad=0.5), cutter=cutter
    )
    (folder / "x.bin").write_bytes(b"not counted")
    (folder / ".hidden.txt").unlink()
    assert before == identity(of(folder), tokenizers[0])
