from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import uncode
from tests.small_tokenizers import TOKENIZERS
from uncode import FrequencyTable, UncodeError
from uncode.frequency import Provenance, UnnamedTable, as_table, compare, fingerprint

MADE = Provenance(
    "tok", "abc", "1234", "books", ("a.txt", "b.txt"), 10, 2, 8, 1, '{"fields": ["text"]}', "2026-11-15", "0.1"
)


def test_a_table_is_saved_and_loaded(tmp_path: Path) -> None:
    table = FrequencyTable(torch.tensor([3, 0, 5]), "small", (1,), MADE)
    table.save(tmp_path / "t.safetensors")
    again = FrequencyTable.load(tmp_path / "t.safetensors")
    assert again == table and hash(again) == hash(table) and again.name == "small" and again.special_ids == (1,)
    assert again.made == MADE and again.fingerprint == "1234"
    assert as_table(tmp_path / "t.safetensors") == table and as_table(str(tmp_path / "t.safetensors")) == table
    assert not list(tmp_path.glob("*.partial"))
    assert table != FrequencyTable(torch.tensor([3, 0, 6])) and table != 3
    assert repr(table) == "FrequencyTable('small', 3 tokens, 8 counted)"


def test_a_table_of_an_old_version_has_no_provenance(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    save_file({"counts": torch.tensor([3, 5])}, tmp_path / "old.safetensors")
    assert FrequencyTable.load(tmp_path / "old.safetensors").made == Provenance()
    save_file({"counts": torch.tensor([3, 5])}, tmp_path / "bad.safetensors", metadata={"made": "[1"})
    with pytest.raises(UncodeError, match="is damaged"):
        FrequencyTable.load(tmp_path / "bad.safetensors")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: FrequencyTable(torch.zeros(2, 2)), "one number per token"),
        (lambda: FrequencyTable(torch.tensor([-1, 2])), "negative"),
        (lambda: FrequencyTable(torch.tensor([float("nan"), 2])), "infinite"),
        (lambda: FrequencyTable(torch.tensor([1, 2]), "x", (9,)), "special ids"),
        (lambda: FrequencyTable(torch.tensor([0, 0])), "at least one"),
        (lambda: as_table(3), "or a tensor, not int"),  # type: ignore[arg-type]
        (lambda: UnnamedTable().surprisal(), "needs a frequency table"),
        (lambda: as_table("lada"), "did you mean 'llada'"),
        (lambda: as_table("llada"), "uncode table get llada"),
        (lambda: as_table("no/such.safetensors"), "the file 'no/such.safetensors' does not exist"),
    ],
)
def test_mistakes_are_one_sentence(call: object, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNCODE_CACHE", str(tmp_path))
    with pytest.raises(UncodeError, match=message):
        call()  # type: ignore[operator]


def test_a_damaged_file_is_found(tmp_path: Path) -> None:
    path = tmp_path / "t.safetensors"
    FrequencyTable(torch.tensor([3, 0, 5])).save(path)
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(UncodeError, match=r"negative|damaged"):
        FrequencyTable.load(path)
    path.write_text('{"num_token": 3}')
    with pytest.raises(UncodeError, match="uncode table import"):
        FrequencyTable.load(path)


def test_unseen_tokens_count_as_seen_once_and_a_table_may_be_continued() -> None:
    table = FrequencyTable(torch.tensor([7, 0, 1]))
    assert table.surprisal().tolist() == pytest.approx([math.log(8 / 7), math.log(8), math.log(8)])
    assert table.surprisal(5).tolist() == pytest.approx([*table.surprisal().tolist(), math.log(8), math.log(8)])


Counts = st.lists(st.integers(0, 1 << 40), min_size=4, max_size=4).filter(any)


@given(Counts, Counts, Counts)
def test_tables_add_in_any_order(a: list[int], b: list[int], c: list[int]) -> None:
    x, y, z = (FrequencyTable(torch.tensor(counts), name) for counts, name in ((a, "x"), (b, "y"), (c, "z")))
    assert x.merge(y, z) == z.merge(x).merge(y) == y.merge(z.merge(x), name="all")
    assert x.merge(y, z).counts.tolist() == [sum(three) for three in zip(a, b, c, strict=True)]
    assert x.merge(y).name == "x + y" and x.merge(y, name="all").name == "all"


@given(Counts, Counts)
def test_divergence_is_the_kl_divergence(a: list[int], b: list[int]) -> None:
    x, y = FrequencyTable(torch.tensor(a)), FrequencyTable(torch.tensor(b))
    assert x.divergence(y) >= -1e-12 and x.divergence(x) == 0
    p, q = ([max(n, 1) / sum(max(m, 1) for m in counts) for n in counts] for counts in (a, b))
    assert x.divergence(y) == pytest.approx(sum(u * math.log(u / v) for u, v in zip(p, q, strict=True)), abs=1e-9)


def test_merging_adds_what_is_known() -> None:
    other = dataclasses.replace(MADE, corpus="maths", files=("c.txt",), date="2026-12-01")
    both = (
        FrequencyTable(torch.tensor([1]), "a", (), MADE).merge(FrequencyTable(torch.tensor([2]), "b", (), other)).made
    )
    assert both.corpus == "books + maths" and both.files == ("a.txt", "b.txt", "c.txt") and both.bytes == 20
    assert (both.documents, both.tokens, both.bad, both.date) == (4, 16, 2, "2026-12-01")
    assert both.tokenizer == "tok" and both.fingerprint == "1234"


def test_tables_of_two_tokenizers_do_not_mix() -> None:
    mine = FrequencyTable(torch.tensor([1, 2]), "mine", (), Provenance(fingerprint="aaaa"))
    theirs = FrequencyTable(torch.tensor([1, 2]), "theirs", (), Provenance(fingerprint="bbbb"))
    for use in (mine.merge, mine.divergence, lambda other: compare(mine, other)):
        with pytest.raises(UncodeError, match="aaaa and bbbb"):
            use(theirs)
    with pytest.raises(UncodeError, match="probabilities cannot be added"):
        mine.merge(FrequencyTable(torch.tensor([0.5, 0.5])))
    longer = FrequencyTable(torch.tensor([1, 2, 3]), "longer", (), Provenance(fingerprint="aaaa"))
    assert mine.merge(longer).counts.tolist() == [2, 4, 3] == longer.merge(mine).counts.tolist()


def test_another_tokenizer_is_an_error_that_names_both(tmp_path: Path) -> None:
    mine, other = TOKENIZERS["byte-level"](), TOKENIZERS["wordpiece"]()
    made = Provenance(fingerprint=fingerprint(mine))
    path = tmp_path / "t.safetensors"
    FrequencyTable(torch.ones(len(mine), dtype=torch.int64), "t", (), made).save(path)
    assert FrequencyTable.load(path, mine).name == "t"
    with pytest.raises(UncodeError, match=f"{fingerprint(mine)}.*{fingerprint(other)}"):
        FrequencyTable.load(path, other)


def test_a_model_refuses_the_table_of_another_tokenizer() -> None:
    model = uncode.FunctionDenoiser(lambda t: torch.zeros(*t.shape, 6), mask_id=0, vocab_size=6)
    model.about["tokenizer"] = "aaaa"
    canvas = uncode.Canvas.after_prompt([[1]], length=2, mask_id=0)

    def decode(table: FrequencyTable) -> object:
        return uncode.decode(model, canvas, uncode.presets.uncode(frequency=table))

    counts = torch.tensor([1, 2, 3, 4])
    assert decode(FrequencyTable(counts, "same", (), Provenance(fingerprint="aaaa")))
    with pytest.raises(UncodeError, match=r"fingerprint bbbb.*fingerprint aaaa"):
        decode(FrequencyTable(torch.ones(6), "other", (), Provenance(fingerprint="bbbb")))
    with pytest.raises(UncodeError, match="covers 4 tokens but the model has 6"):
        decode(FrequencyTable(counts, "unknown"))
    with pytest.raises(UncodeError, match="covers 9 tokens but the model has 6"):
        decode(FrequencyTable(torch.ones(9), "long", (), Provenance(fingerprint="aaaa")))


def test_the_top_tokens_are_decoded() -> None:
    tokenizer = TOKENIZERS["byte-level"]()
    counts = torch.zeros(len(tokenizer), dtype=torch.int64)
    letter, part = tokenizer.convert_tokens_to_ids("e"), tokenizer.convert_tokens_to_ids("Ã")
    counts[letter], counts[part] = 6, 6
    first, second, third = FrequencyTable(counts).top(3, tokenizer)
    assert [first.id, second.id] == sorted([letter, part]) and {first.token, second.token} == {"e", "Ã"}
    assert (first.count, first.share, first.surprisal) == (6, 0.5, pytest.approx(math.log(2)))
    assert third.count == 0 and third.surprisal == pytest.approx(math.log(12))
    assert FrequencyTable(counts).top(1)[0].token == ""


def test_comparing_says_how_s_changes() -> None:
    a, b = FrequencyTable(torch.tensor([90, 9, 1, 0])), FrequencyTable(torch.tensor([9, 90, 0, 1]))
    same, c = compare(a, a), compare(a, b, clip=3.0)
    assert (
        same.divergence == (0, 0)
        and same.change == (0, 0)
        and same.correlation == pytest.approx(1)
        and same.moved(3) == []
    )
    assert c.seen == (3, 3, 2) and c.below == (2, 2, 2) and c.moved(9) == [0, 1] and c.correlation == pytest.approx(-1)
    s = [min(-math.log(p), 3.0) for p in (0.9, 0.09)]
    read = [n / 101 for n in (90, 9)]
    assert c.change[0] == pytest.approx(sum(read) * (s[1] - s[0]))
    assert c.divergence[0] == pytest.approx(c.divergence[1]) and c.divergence[0] > 1
