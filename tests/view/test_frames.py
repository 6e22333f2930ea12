"""Data frames of traces and of runs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import uncode
from tests.cli.running import TOY, call
from tests.evals.test_eval import EchoModel, config, runner
from uncode.evals.run.folder import RunFolder

pandas = pytest.importorskip("pandas", reason="pip install 'uncode[frames]'")


def traced() -> tuple[uncode.Trace, uncode.Denoiser]:
    model = uncode.load("toy")
    prompts = [model.tokenizer.encode(text) for text in ("add 1 3 4", "add 2 2 5")]
    canvas = uncode.Canvas.after_prompt(prompts, length=24, mask_id=model.mask_id)
    return uncode.decode(model, canvas, uncode.presets.confidence()), model


def test_a_trace_as_a_frame() -> None:
    trace, model = traced()
    frame = trace.to_frame(model.tokenizer)
    assert len(frame) == 48 and list(frame["row"].unique()) == [0, 1]
    second = frame[frame["row"] == 1]
    assert second["offset"].tolist() == list(range(24)) and second["token"].tolist() == trace.generated[1].tolist()
    assert second["step"].tolist() == trace.commit_step[1].tolist() and set(second["state"]) == {"committed"}
    assert second["entropy"].tolist() == pytest.approx(trace.entropy[1].tolist())
    assert "term_Confidence" in frame and "text" not in trace.to_frame()


def test_given_tokens_have_no_step() -> None:
    model = uncode.load("toy")
    canvas = uncode.Canvas.after_prompt([model.tokenizer.encode("add 1 3 4")], length=24, mask_id=model.mask_id)
    canvas.tokens[0, -1] = 1
    frame = uncode.decode(model, canvas, uncode.presets.confidence()).to_frame()
    assert frame["state"].tolist()[-1] == "given" and frame["step"].isna().tolist() == [False] * 23 + [True]


def test_a_run_as_a_frame(tmp_path: Path) -> None:
    runner(tmp_path / "run", EchoModel(), config()).run()
    frame = RunFolder(tmp_path / "run").to_frame()
    assert len(frame) == 10 and set(frame["sampler"]) == {"confidence", "uncode"}
    assert frame["correct"].dtype == bool and frame["forwards"].min() > 0


def test_without_pandas_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(uncode.UncodeError, match=r"a data frame needs pandas: pip install 'uncode\[frames\]'"):
        traced()[0].to_frame()


def test_the_file_of_a_comparison_is_a_frame(tmp_path: Path) -> None:
    source, out = tmp_path / "prompts.txt", tmp_path / "compared.jsonl"
    source.write_text("add 1 3 4\nadd 2 2 5\n")
    call("compare", *TOY, "--input", str(source), "--samplers", "confidence,semi_ar", "--out", str(out))
    frame = pandas.read_json(out, lines=True)
    assert frame.groupby("sampler")["forwards"].mean()["confidence"] == 24 and len(frame) == 4
