"""`model.generate(custom_generate=...)` of transformers, on a small random BERT: as a callable and as a folder."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import BertConfig, BertForMaskedLM, GenerationMixin

import uncode
from uncode import presets
from uncode.adapters import transformers as adapter

MASK, LENGTH = 39, 12
IDS = torch.tensor([[0, 0, 5, 6, 7], [8, 9, 10, 11, 12]])
SEEN = torch.tensor([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]])


class Bert(BertForMaskedLM, GenerationMixin):
    def prepare_inputs_for_generation(self, input_ids: torch.Tensor, **kwargs: Any) -> dict[str, Any]:
        return {"input_ids": input_ids}


class Streamer:
    def __init__(self) -> None:
        self.parts: list[list[int]] = []
        self.has_ended = False

    def put(self, value: torch.Tensor) -> None:
        self.parts.append(value.flatten().tolist())

    def end(self) -> None:
        self.has_ended = True


@pytest.fixture(scope="module")
def model() -> Bert:
    torch.manual_seed(0)
    sizes = {"vocab_size": 40, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    return Bert(BertConfig(**sizes, intermediate_size=32, max_position_embeddings=64, initializer_range=0.6)).eval()


@pytest.fixture(autouse=True)
def _modules_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where transformers copies the code of a folder that it runs."""
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path))


def generate(model: Bert, ids: torch.Tensor, seen: torch.Tensor, **options: Any) -> torch.Tensor:
    defaults = {"custom_generate": adapter.generate, "max_new_tokens": LENGTH, "mask_id": MASK, "pad_token_id": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found: torch.Tensor = model.generate(ids, attention_mask=seen, **(defaults | options))
    return found


AS_FOLDER = {"custom_generate": adapter.FOLDER, "trust_remote_code": True}


@pytest.mark.parametrize("way", [{}, AS_FOLDER], ids=["callable", "folder"])
@pytest.mark.parametrize("sampler", ["confidence", presets.uniform(temperature=0.5), presets.remdm(steps=12)], ids=str)
def test_it_writes_what_decode_writes(model: Bert, sampler: Any, way: dict[str, Any]) -> None:
    """Prompts of unequal length, padded on the left."""
    canvas = uncode.Canvas.after_prompt([[5, 6, 7], [8, 9, 10, 11, 12]], LENGTH, MASK)
    want = uncode.decode(uncode.wrap(model, mask_id=MASK), canvas, sampler, 3)
    found = generate(model, IDS, SEEN, sampler=sampler, seed=3, **way)
    assert found.equal(torch.cat((IDS, want.generated), 1))


@pytest.mark.parametrize("sampler", ["confidence", presets.remdm(steps=12)], ids=str)
def test_a_streamer_gets_the_answer_up_to_its_eos(model: Bert, sampler: Any) -> None:
    whole = generate(model, IDS[1:], SEEN[1:], sampler=sampler)[0].tolist()
    for end in {whole[9], whole[12]}:
        streamer = Streamer()
        options = {"sampler": sampler, "eos_token_id": end, "streamer": streamer}
        found = generate(model, IDS[1:], SEEN[1:], **options, **AS_FOLDER)[0].tolist()
        assert found == whole[: whole.index(end, 5) + 1]
        assert streamer.parts[0] == IDS[1].tolist() and streamer.has_ended
        assert [token for part in streamer.parts for token in part] == found
    streamer = Streamer()
    generate(model, IDS[1:], SEEN[1:], sampler="left_to_right", stream_to=streamer)
    assert [len(part) for part in streamer.parts] == [5, *[1] * LENGTH]  # as tokens are written


def test_rows_end_with_padding(model: Bert) -> None:
    whole = generate(model, IDS, SEEN, sampler="confidence")
    end = int(whole[0, 8])
    found = generate(model, IDS, SEEN, sampler="confidence", eos_token_id=end)
    first = int((whole[0, 5:] == end).nonzero()[0]) + 6
    assert found[0, :first].equal(whole[0, :first]) and not found[0, first:].any()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"do_sample": True}, "do_sample must be False, not True"),
        ({"num_beams": 2}, "num_beams must be 1, not 2"),
        ({"return_dict_in_generate": True}, "return_dict_in_generate must be False"),
        ({"repetition_penalty": 1.3}, "RepetitionPenaltyLogitsProcessor cannot change what a sampler writes"),
        ({"sampler": "confidense"}, "did you mean 'confidence'?"),
        ({"stream_to": Streamer()}, "a streamer takes one prompt"),
    ],
)
def test_what_it_cannot_carry_is_refused(model: Bert, options: dict[str, Any], message: str) -> None:
    with pytest.raises(uncode.UncodeError, match=re.escape(message)):
        generate(model, IDS, SEEN, **options)
    with pytest.raises(ValueError, match="model_kwargs"):
        generate(model, IDS, SEEN, sampler="confidence", sead=1)
