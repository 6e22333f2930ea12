"""The paper's tables: their format, fetching them, and the real files where they are at hand."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

import uncode
from tests.checkpoints import checkpoint, llada_config
from tests.hub import Repo, files_in, pointing_at, serve
from tests.small_tokenizers import TOKENIZERS
from uncode import FrequencyTable, UncodeError, presets
from uncode.backbones.loading.load import check_exists
from uncode.core.errors import Advice
from uncode.frequency import as_table, fingerprint
from uncode.frequency.names import RELEASED, Released
from uncode.frequency.released import get, import_released

DATA = Path(__file__).parents[3] / "shared" / "data"


def content(**data: object) -> bytes:
    return json.dumps(data).encode()


SMALL = content(num_token=100, p_baseline_dict={"9": 60, "10": 39, "12": 1})


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """A server of the files in the test's folder."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path)))
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_released_format_is_read() -> None:
    table = import_released(SMALL, "small", vocab_size=40)
    assert len(table) == 40 and table.counts[[9, 10, 12]].tolist() == [60, 39, 1] and table.made.tokens == 100
    assert len(import_released(SMALL, "small")) == 13
    assert import_released(content(token_frequency_dict={"1": 2}), "what its script writes").total == 2


def test_a_tokenizer_says_the_size_and_the_special_tokens() -> None:
    tokenizer = TOKENIZERS["byte-level"]()
    table = import_released(SMALL, "small", tokenizer=tokenizer)
    assert len(table) == len(tokenizer) and table.fingerprint == fingerprint(tokenizer)
    assert table.special_ids == (tokenizer.eos_token_id,)


@pytest.mark.parametrize(
    ("file", "message"),
    [
        (b"{\n", r"'file.json' is not valid JSON \(line 2, column 1\)"),
        (b"\xff{", "'file.json' is not UTF-8 text"),
        (b"[" * 100_000, "nested too deeply"),
        (b"[1]", "has no p_baseline_dict or token_frequency_dict"),
        (content(p_baseline_dict=[1]), "has no p_baseline_dict"),
        (content(p_baseline_dict={"a": 1}), "a token id is not a number"),
        (content(p_baseline_dict={"1": 0.5}), "whole numbers"),
        (content(p_baseline_dict={"-1": 5}), "whole numbers"),
        (content(p_baseline_dict={"1": 5}, num_token=6), "its total is 6 tokens, but its counts sum to 5"),
        (content(p_baseline_dict={"50": 5}), "counts the id 50, outside a vocabulary of 40"),
    ],
)
def test_what_is_no_table_is_one_sentence(file: bytes, message: str) -> None:
    with pytest.raises(UncodeError, match=message):
        import_released(file, "file.json", vocab_size=40)


def test_a_table_is_fetched_checked_and_kept(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "t.json").write_bytes(SMALL)
    known = Released(f"{address}/t.json", sha256(SMALL).hexdigest(), 40, "some text")
    monkeypatch.setitem(RELEASED, "llada", known)
    monkeypatch.setenv("UNCODE_CACHE", str(tmp_path / "cache"))
    seen: list[tuple[int, int]] = []
    path = get("llada", on_progress=lambda *progress: seen.append(progress))
    assert path == tmp_path / "cache" / "tables" / "llada.safetensors" and seen == [(len(SMALL), len(SMALL))]
    table = as_table("llada")
    assert isinstance(table, FrequencyTable) and table == import_released(SMALL, "llada", vocab_size=40)
    assert table.made.corpus == "some text" and table.made.files == (known.url,)


@pytest.mark.parametrize(
    ("name", "file", "message"),
    [
        ("lada", "t.json", "did you mean 'llada'"),
        ("llada", "t.json", "its sha256 is"),
        ("llada", "no.json", r"could not be fetched \(HTTP Error 404.*uncode table import FILE"),
        ("llada", "endless", "more than 1 MB"),
    ],
)
def test_a_failed_fetch_leaves_nothing(
    name: str, file: str, message: str, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "t.json").write_bytes(SMALL)
    (tmp_path / "endless").write_bytes(bytes(2 << 20))
    monkeypatch.setattr("uncode.util.fetch.MAX_DOWNLOAD_BYTES", 1 << 20)
    monkeypatch.setenv("UNCODE_CACHE", str(tmp_path / "cache"))
    with pytest.raises(UncodeError, match=message):
        get(name, f"{address}/{file}")
    assert not (tmp_path / "cache").exists()


def test_no_server_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UncodeError, match="could not be fetched"):
        get("llada", "http://127.0.0.1:9/t.json")
    with pytest.raises(UncodeError, match="could not be fetched"):
        get("llada", "no address")


@pytest.mark.skipif(not DATA.is_dir(), reason="the files of the release are not here")
@pytest.mark.parametrize(
    ("name", "tokens", "ids", "largest"),
    [("llada", 1_677_991_882, 83_769, 126_077), ("dream", 37_641_195, 39_621, 150_431)],
)
def test_the_real_files_are_fetched(
    name: str, tokens: int, ids: int, largest: int, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = f"reference_corpus_{name}.json"
    (tmp_path / file).write_bytes((DATA / file).read_bytes())
    monkeypatch.setenv("UNCODE_CACHE", str(tmp_path / "cache"))
    table = FrequencyTable.load(get(name, f"{address}/{file}"))
    seen = table.counts.nonzero().flatten()
    assert (table.total, len(seen), int(seen.max())) == (tokens, ids, largest)
    assert len(table) == RELEASED[name].vocab_size and table.made.tokens == tokens
    if name == "llada":
        assert float(table.surprisal().min()) == pytest.approx(3.090, abs=1e-3)  # the newline
        assert int((table.surprisal() < 10).sum()) == 2016


@pytest.fixture
def released(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FrequencyTable:
    """The paper's table for small LLaDAs; it is not in the cache."""
    vocab = llada_config(0)["vocab_size"]
    (tmp_path / "t.json").write_bytes(SMALL)
    known = Released(f"{address}/t.json", sha256(SMALL).hexdigest(), vocab, "some text")
    monkeypatch.setitem(RELEASED, "llada", known)
    monkeypatch.setenv("UNCODE_CACHE", str(tmp_path / "cache"))
    return import_released(SMALL, "llada", vocab_size=vocab)


@contextmanager
def hub_with_llada(tmp_path: Path, offline: bool = False) -> Iterator[None]:
    with serve() as hub, pointing_at(hub, tmp_path / "home"):
        hub.repos["some/llada"] = Repo([files_in(checkpoint(tmp_path / "m", "llada", 0))])
        uncode.load("some/llada", dtype="float32")
        with pointing_at(hub, tmp_path / "home", offline):
            yield


def decoded(model: uncode.core.denoiser.Denoiser, sampler: object) -> uncode.Trace:
    canvas = uncode.Canvas.after_prompt([[1, 2, 3]], length=4, mask_id=model.mask_id)
    return uncode.decode(model, canvas, sampler)  # type: ignore[arg-type]


def test_a_model_from_the_hub_comes_with_the_papers_table(tmp_path: Path, released: FrequencyTable) -> None:
    with hub_with_llada(tmp_path):
        model = uncode.load("some/llada")
        assert model.frequency == released and as_table("llada") == released
        for sampler in ("certain_first", "uncode", presets.uncode()):
            assert released.sha256 in json.dumps(decoded(model, sampler).samplers[0].to_dict())
        (tmp_path / "t.json").unlink()  # it is asked for once
        assert uncode.load("some/llada").frequency == released
    assert uncode.load(tmp_path / "m").frequency == released, "a folder takes the table that is on this machine"


def test_a_folder_asks_no_network_for_a_table(tmp_path: Path, released: FrequencyTable) -> None:
    model = uncode.load(checkpoint(tmp_path / "m", "llada", 0))
    assert model.frequency is None and not (tmp_path / "cache").exists()
    with pytest.warns(Advice, match="by confidence and position alone; `uncode table get llada` fetches its table"):
        decoded(model, "certain_first")
    with pytest.raises(UncodeError, match=r"this model has none: pass `frequency=TABLE` \(`uncode table get llada`"):
        decoded(model, "uncode")
    assert uncode.load(checkpoint(tmp_path / "n", "llada", 1)).released_table == "", "a vocabulary of another size"


@pytest.mark.parametrize("fault", ["silent", "offline", "missing", "another", "read-only"])
def test_a_table_that_cannot_be_had_is_no_error_and_no_delay(
    fault: str, tmp_path: Path, released: FrequencyTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # it takes connections, and never answers
        if fault == "silent":
            known = RELEASED["llada"]
            url = f"http://127.0.0.1:{silent.getsockname()[1]}/t.json"
            monkeypatch.setitem(RELEASED, "llada", Released(url, known.sha256, known.vocab_size, known.corpus))
        elif fault == "missing":
            (tmp_path / "t.json").unlink()
        elif fault == "another":
            (tmp_path / "t.json").write_bytes(b"<html>Welcome</html>")
        elif fault == "read-only":
            monkeypatch.setenv("UNCODE_CACHE", "/dev/null/cache")
        with hub_with_llada(tmp_path, fault == "offline"):
            for file in (tmp_path / "cache").rglob("*.safetensors"):
                file.unlink()
            began = time.monotonic()
            model = uncode.load("some/llada")
            assert model.frequency is None and time.monotonic() - began < 6.0
            with pytest.warns(Advice, match="`uncode table get llada` fetches its table"):
                decoded(model, "certain_first")


def test_a_silent_network_is_waited_for_once(
    tmp_path: Path, released: FrequencyTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command looks for the table before it reads the weights, and the model that it loads has it too."""
    asked = list[str]()
    monkeypatch.setattr("uncode.frequency.released.ANSWER_SECONDS", 0.1)
    monkeypatch.setattr("uncode.frequency.released.get", lambda name, *_, **__: (asked.append(name), time.sleep(0.5)))
    with serve() as hub, pointing_at(hub, tmp_path / "home"):
        hub.repos["some/llada"] = Repo([files_in(checkpoint(tmp_path / "m", "llada", 0))])
        assert check_exists("some/llada").table is None and asked == ["llada"]
        assert uncode.load("some/llada").frequency is None and asked == ["llada"]


def test_a_models_own_table_on_the_hub_is_found_before_its_weights_are_fetched(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "m", "llada", 0)
    own = import_released(SMALL, "own", vocab_size=llada_config(0)["vocab_size"])
    own.save(folder / "frequency.safetensors")
    with serve() as hub, pointing_at(hub, tmp_path / "home"):
        hub.repos["some/llada"] = Repo([files_in(folder)])
        found = check_exists("some/llada")
        assert found.table == own and hub.files_asked("some/llada") == {"config.json", "frequency.safetensors"}
        assert uncode.load("some/llada").frequency == own
        with pointing_at(hub, tmp_path / "home", offline=True):
            assert check_exists("some/llada").table == own
