"""Small random checkpoints of LLaDA's and Dream's shape with a tokenizer that reads any text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from tests.checkpoints import DIALECTS, save

SPECIAL = {
    "llada": ("<|endoftext|>", "<|startoftext|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"),
    "dream": ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|beginoftext|>"),
}
DATA = Path(__file__).parents[3] / "shared" / "data"
MASKS = {"llada": "<|mdm_mask|>", "dream": "<|mask|>"}


def byte_tokenizer(special: tuple[str, ...]) -> Tokenizer:
    """One token for each byte, and the special ones behind them."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({letter: number for number, letter in enumerate(letters)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(list(special))
    return tokenizer


def small_model(folder: Path, dialect: str = "llada", seed: int = 0) -> Path:
    """A checkpoint folder with random weights: 2 layers, a vocabulary of bytes, a chat template."""
    special = (*SPECIAL[dialect], MASKS[dialect])
    tokenizer = byte_tokenizer(special)
    make_config, make_weights = DIALECTS[dialect]
    config, size = make_config(0), tokenizer.get_vocab_size()
    ids = {"eos_token_id": 256, "pad_token_id": 256, "mask_token_id": size - 1, "vocab_size": size}
    config |= ids | {"max_sequence_length": 8192, "max_position_embeddings": 8192}
    if dialect == "llada":
        config["embedding_size"] = size
    save(folder, config, make_weights(config, seed))
    fast = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer, eos_token="<|endoftext|>", pad_token="<|endoftext|>"
    )
    fast.save_pretrained(folder)
    return folder


def write_gpqa(folder: Path, rows: int = 2) -> None:
    """A file like GPQA's, whose real one may not be republished."""
    lines = []
    for number in range(rows):
        lines.append({"Question": f"Which number is {number}?", "Correct Answer": str(number)})
        lines[-1] |= {f"Incorrect Answer {wrong}": str(number + wrong) for wrong in (1, 2, 3)}
    (folder / "gpqa.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def benchmark_files(folder: Path) -> Path:
    """A folder with the benchmarks' files, and a GPQA of two rows. Skips the test where the files are not here."""
    if not DATA.is_dir():
        pytest.skip("../shared/data is not here")
    folder.mkdir()
    for file in DATA.glob("*.*"):
        (folder / file.name).symlink_to(file)
    write_gpqa(folder)
    return folder
