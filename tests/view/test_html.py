"""Traces and samplers as HTML, which notebooks draw."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from inspect import signature
from typing import Any

import pytest
import torch

from tests import grid
from tests.toy import EOS, MASK, ToyDenoiser
from uncode import Canvas, FrequencyTable, FunctionDenoiser, Policy, Sampler, Trace, decode, legacy, presets
from uncode.core.pieces.score import Confidence, Informativeness
from uncode.core.pieces.stop import AfterEos
from uncode.samplers.interventions import reject_trivial
from uncode.view.notebook import MAX_ROWS, MAX_TOKENS, STYLES, trace_html

HOSTILE = "<script>alert('1')</script>&\" onclick=\"x"
"""Text that is markup where it is not escaped."""


class Page(HTMLParser):
    """What a browser sees: the text, and each span with its style. Elements must be closed in order."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.text, self.open, self.spans = "", list[tuple[str, dict[str, Any]]](), list[tuple[str, dict[str, Any]]]()
        self.feed(source)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in {"div", "span", "b", "ul", "li", "code"} and {name for name, _ in attrs} <= {"style", "title"}
        assert not any("url(" in (value or "") for _, value in attrs)
        self.open.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        if self.open[-1][0] == "span" and "title" in self.open[-1][1]:
            self.spans.append((data, self.open[-1][1]))


class Tokenizer:
    """Writes each id as one text."""

    def __init__(self, texts: dict[int, str] | None = None) -> None:
        self.texts = texts or {}

    def decode(self, ids: Any) -> str:
        return "".join(self.texts.get(int(token), f" w{int(token)}") for token in ids)


def shaped(rows: int, length: int) -> Trace:
    """The trace of a model that knows nothing, in four steps."""
    model = FunctionDenoiser(lambda tokens: torch.arange(5.0).expand(*tokens.shape, 5), mask_id=0, vocab_size=5)
    return decode(model, Canvas.after_prompt([[1]] * rows, length, mask_id=0), presets.confidence(steps=4))


def toy_trace() -> Trace:
    """Two rows: one with a given token, one that ends early."""
    canvas = Canvas.after_prompt([[1, 2, 3], [4]], length=[12, 9], mask_id=MASK)
    canvas.tokens[0, -2] = 7
    return decode(ToyDenoiser(1), canvas, presets.confidence())


def test_tokens_are_shaded_by_commit_time() -> None:
    trace = toy_trace()
    page = Page(trace_html(trace, Tokenizer()))
    assert page.text.startswith("Trace 2 rows of 12 tokens, 11 forwards, confidence")
    assert "row 0: confidence, 11 forwards, prompt of 3 tokens" in page.text
    assert "row 1: confidence, 9 forwards, prompt of 1 token" in page.text
    assert len(page.spans) == 12 + 9
    steps = trace.commit_step[0].tolist()
    for offset, (text, attributes) in enumerate(page.spans[:12]):
        token = int(trace.generated[0, offset])
        assert text == ("∎" if token == EOS else f"w{token}")
        rank = sum(0 <= step < steps[offset] for step in steps)
        style = "" if offset == 10 else list(STYLES.values())[3 * rank // 11]
        assert attributes.get("style", "").startswith(style)
        shown = "given" if offset == 10 else f"step {steps[offset]}, entropy {trace.entropy[0, offset]:.2f}"
        assert attributes["title"] == f"offset {offset}, {shown}"


def test_eos_is_dim_and_a_fill_is_not_shaded() -> None:
    model = FunctionDenoiser(
        lambda tokens: torch.eye(5)[2].expand(*tokens.shape, 5) * 9, mask_id=0, vocab_size=5, eos_ids=(2,)
    )
    sampler = presets.left_to_right().stopping(AfterEos())
    trace = decode(model, Canvas.after_prompt([[1]], 6, mask_id=0), sampler)
    first, *rest = Page(trace_html(trace, Tokenizer())).spans
    assert first[0] == "∎" and first[1]["style"] == f"{STYLES['early']};opacity:.6"
    assert [(text, one["style"], one["title"]) for text, one in rest] == [
        ("∎", STYLES["filled"], f"offset {offset}, filled") for offset in range(1, 6)
    ]


def test_a_trace_alone_shows_ids() -> None:
    trace = toy_trace()
    page = Page(trace_html(trace))
    ids = [*trace.generated[0].tolist(), *trace.generated[1, :9].tolist()]
    assert [text for text, _ in page.spans] == ["∎" if token == EOS else str(token) for token in ids]
    assert "token ids" in page.text and "token ids" not in trace_html(trace, Tokenizer())
    again = Trace.from_json(trace.to_json(Tokenizer()))
    assert trace_html(again) == trace_html(trace)


def test_html_draws_itself() -> None:
    shown = shaped(1, 4).to_html()
    assert isinstance(shown, str) and shown._repr_html_() == shown


class Frame(HTMLParser):
    """The frame of the viewer: its attributes, and the page in it."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.attributes: dict[str, str | None] = {}
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes |= dict(attrs) if tag == "iframe" else {}


def test_the_viewer_is_in_a_sandboxed_frame() -> None:
    trace = toy_trace()
    source = trace.to_html(Tokenizer({7: HOSTILE}))
    assert trace_html(trace, Tokenizer({7: HOSTILE})) in source, "static tokens, for sites that remove frames"
    frame = Frame(source)
    assert frame.attributes["sandbox"] == "allow-scripts"
    page = frame.attributes["srcdoc"] or ""
    assert "default-src 'none'" in page and page.count("<script") == 4 and HOSTILE not in page
    assert "2 rows of 12 tokens, 11 forwards, confidence" in page
    ids = Frame(trace._repr_html_()).attributes["srcdoc"] or ""
    assert f'"generated_texts":[" {int(trace.generated[0, 0])}"' in ids


def test_rows_of_one_prompt_stand_side_by_side() -> None:
    page = Frame(shaped(3, 4).to_html()).attributes["srcdoc"] or ""
    (problem,) = json.loads(page.split('id="problems">')[1].split("</script>")[0])
    assert [one["sampler"] for one in problem["traces"]] == ["confidence", "confidence, row 1", "confidence, row 2"]


def test_large_traces_are_cut() -> None:
    page = Page(trace_html(shaped(MAX_ROWS + 3, MAX_TOKENS + 1)))
    assert len(page.spans) == MAX_ROWS * MAX_TOKENS
    assert page.text.count("… 1 token more, not drawn") == MAX_ROWS and "… 3 rows more, not drawn" in page.text
    assert "not drawn" not in Page(trace_html(shaped(MAX_ROWS, 16))).text
    assert len(Page(trace_html(shaped(1, MAX_TOKENS))).spans) == MAX_TOKENS


@pytest.mark.parametrize("text", [HOSTILE, "<b>", "&lt;", "' style='x"])
def test_texts_are_escaped(text: str) -> None:
    page = Page(trace_html(shaped(1, 4), Tokenizer({4: text})))
    assert text * 4 in page.text


def test_breaks_and_blanks_are_seen() -> None:
    source = trace_html(shaped(1, 2), Tokenizer({4: "  a\r\nb"}))
    assert [text for text, _ in Page(source).spans] == ["a↵\nb"] * 2 and ">  <span" in source
    assert [text for text, _ in Page(trace_html(shaped(1, 2), Tokenizer({4: " "}))).spans] == [" ", " "]


def test_a_sampler_shows_every_setting() -> None:
    text = Page(presets.uncode(frequency=grid.TABLE, rate=0.5)._repr_html_()).text
    for line in (
        "Sampler uncode", "policy Policy", "score Sum", "Confidence", f"table='grid' (sha256 {grid.TABLE.sha256[:12]})",
        "clip=10.0", "special='unseen'", "rate=0.5", "origin='span'", "select TopK", "quota Even steps=None",
        "blocks Blocks", "remask Never", "stop AtTheEnd", "propose Greedy", "cache NoCache", "limit=None",
    ):  # fmt: skip
        assert line in text


def test_default_settings_are_dim() -> None:
    source = presets.uncode(frequency=grid.TABLE, special="neutral")._repr_html_()
    dim = re.findall(r'<code style="opacity:.6">(.*?)</code>', source)
    assert "clip=10.0" in dim and "limit=None" in dim
    assert "<code>special=&#x27;neutral&#x27;</code>" in source and "<code>rate=0.25</code>" in source


def test_long_settings_of_a_sampler_are_cut() -> None:
    sampler = reject_trivial(presets.confidence(), tuple(range(50)), 0.5)
    assert "tokens=(0, 1, 2, 3, 4, 5, 6, 7, … 42 items more)" in Page(sampler._repr_html_()).text


def test_names_are_escaped() -> None:
    table = FrequencyTable(torch.tensor([3, 5]), HOSTILE)
    sampler = Sampler(Policy(Confidence() + Informativeness(table)), name=HOSTILE)
    page = Page(sampler._repr_html_())
    assert page.text.startswith(f"Sampler {HOSTILE}") and repr(HOSTILE) in page.text
    trace = decode(
        ToyDenoiser(1), Canvas.after_prompt([[1]], 4, mask_id=MASK), Sampler(Policy(Confidence()), name=HOSTILE)
    )
    assert Page(trace_html(trace)).text.count(HOSTILE) == 2


def test_every_preset_is_drawn() -> None:
    for preset in {**presets.PRESETS, **legacy.QUIRKS}.values():
        needs = {"frequency": grid.TABLE} if "frequency" in signature(preset).parameters else {}
        sampler = preset(**needs)
        text = Page(sampler._repr_html_()).text
        assert all(type(piece).__name__ in text for piece in sampler.pieces())


def test_html_is_imported_when_it_is_drawn() -> None:
    script = "import sys, uncode; uncode.Trace, uncode.Sampler; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert "uncode.core.trace.trace" in loaded
    assert "uncode.view.notebook" not in loaded
