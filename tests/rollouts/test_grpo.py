"""The worked example of docs/rollouts.md, at toy size."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

import uncode

FILE = Path(__file__).parents[2] / "docs" / "examples" / "grpo.py"
SMALL = ("--family", "mini_sudoku", "--forwards", "1", "--prompts", "2", "--samples", "4", "--tested", "2")


@pytest.fixture
def grpo() -> ModuleType:
    spec = importlib.util.spec_from_file_location("grpo_example", FILE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_example_is_short(grpo: ModuleType) -> None:
    lines = FILE.read_text().splitlines()
    imports = {line.split()[1].split(".")[0] for line in lines if line.startswith(("import ", "from "))}
    assert len(lines) < 150
    assert imports == {"__future__", "argparse", "collections", "json", "pathlib", "random", "time", "torch", "uncode"}


def test_the_example_runs(grpo: ModuleType, tmp_path: Path) -> None:
    out, picture = tmp_path / "rewards.jsonl", tmp_path / "grpo.svg"
    history = grpo.main([*SMALL, "--updates", "1", "--out", str(out), "--picture", str(picture)])
    assert [row["update"] for row in history] == [0, 1]
    assert [json.loads(line) for line in out.read_text().splitlines()] == history
    assert all(0 <= row["held_out"] <= 1 for row in history) and 0 <= history[1]["reward"] <= 1
    assert "<svg" in picture.read_text()


@pytest.mark.slow
def test_its_reward_rises(grpo: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reward that a few updates teach: the share of one token."""
    wanted = int(uncode.load("tiny").tokenizer.encode("1")[-1])

    def rewards(self: Any, denoiser: Any, rollout: uncode.Rollout, problems: Any) -> torch.Tensor:
        return (rollout.generated == wanted).double().mean(1).float()

    monkeypatch.setattr(grpo.Problems, "rewards", rewards)
    words = ("--family", "mini_countdown", "--updates", "6", "--warm-up", "1", "--rate", "5e-4")
    history = grpo.main([*SMALL, *words])
    first, last = (row["held_out"] for row in history if "held_out" in row)
    assert last > 2 * first > 0
