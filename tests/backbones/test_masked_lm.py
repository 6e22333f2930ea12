"""Masked language models of transformers, saved and loaded by folder, decoded and infilled."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import transformers as hf
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

import uncode
from uncode import Canvas, FrequencyTable, UncodeError, decode, generate, presets, wrap
from uncode.core.denoiser import Layout
from uncode.core.pieces.cache import NoCache, Place, Span

WORDS = (
    "the cat sat on a mat and then it ran off to see what was new in town . , ? one two three four five".split()  # noqa: SIM905
)
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
VOCAB = len(SPECIAL) + len(WORDS)


def tokenizer() -> hf.PreTrainedTokenizerFast:
    vocab = {word: number for number, word in enumerate(SPECIAL + WORDS)}
    made = Tokenizer(models.WordLevel(vocab, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.decoder = decoders.WordPiece(cleanup=False)
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return hf.PreTrainedTokenizerFast(
        tokenizer_object=made,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    )


SMALL: dict[str, Any] = {
    "vocab_size": VOCAB,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "initializer_range": 0.6,
}
ARCHITECTURES: dict[str, Callable[[], Any]] = {
    "bert": lambda: hf.BertForMaskedLM(hf.BertConfig(**SMALL)),
    "roberta": lambda: hf.RobertaForMaskedLM(hf.RobertaConfig(**SMALL)),
    "albert": lambda: hf.AlbertForMaskedLM(hf.AlbertConfig(**SMALL, embedding_size=16)),
    "modernbert": lambda: hf.ModernBertForMaskedLM(
        hf.ModernBertConfig(**SMALL, cls_token_id=2, sep_token_id=3, bos_token_id=2, eos_token_id=3, local_attention=8)
    ),
    "esm": lambda: hf.EsmForMaskedLM(hf.EsmConfig(**SMALL, mask_token_id=4, position_embedding_type="rotary")),
}
TABLE = FrequencyTable(torch.arange(1, VOCAB + 1), "counting", tuple(range(len(SPECIAL))))
SAMPLERS = {
    "confidence": presets.confidence(steps=4),
    "uncode": presets.uncode(frequency=TABLE, rate=0.25),
    "entropy budget": presets.eb(gamma=0.5),
    "blocks": presets.fast_dllm(threshold=0.3, block_length=4),
    "random": presets.uniform(),
    "remasking": presets.remdm(block_length=4),
}


@pytest.fixture(scope="module", params=ARCHITECTURES)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(7)
    made: Path = tmp_path_factory.mktemp(request.param)
    ARCHITECTURES[request.param]().save_pretrained(made)
    tokenizer().save_pretrained(made)
    return made


@pytest.fixture(scope="module")
def model(folder: Path) -> Any:
    return uncode.load(folder, dtype="float64")


def test_a_masked_lm_takes_no_format_of_weights(folder: Path) -> None:
    with pytest.raises(UncodeError, match="`weights=` is for diffusion models"):
        uncode.load(folder, weights="int8")


def test_special_ids_and_dtype_of_a_masked_lm(model: Any) -> None:
    assert (model.mask_id, model.vocab_size, model.eos_ids) == (4, VOCAB, (3,))
    assert model.frame == ((2,), (3,)) and len(model.about["tokenizer"]) == 16
    assert model.dtype == torch.float64 and model.device.type == "cpu"


def test_logits_are_the_models_own(model: Any) -> None:
    """Row i predicts position i, in padded rows as in a row alone; mask and padding are never proposed."""
    rows = [[2, 8, 9, 4, 11, 4, 3], [2, 4, 4, 3], [2, 7, 4, 12, 13, 4, 4, 14, 3]]
    canvas = Canvas.infill(rows, mask_id=4)
    length = canvas.tokens.shape[1]
    whole, none = Span(*(torch.full((3,), n).numpy() for n in (0, length))), torch.zeros(3, dtype=torch.long).numpy()
    plan = NoCache()(Place(whole, none, whole, length, none))
    with torch.inference_mode():
        found = model.open(3, length).logits(canvas.tokens, Layout(canvas.valid, canvas.given), plan)
        for row, ids in enumerate(rows):
            alone = model.model(input_ids=torch.tensor([ids])).logits[0]
            alone[:, [0, 4]] = -torch.inf
            torch.testing.assert_close(found[row][canvas.valid[row]], alone, atol=1e-10, rtol=0)


MIXERS: dict[str, Callable[[], Any]] = {
    "fnet": lambda: hf.FNetForMaskedLM(hf.FNetConfig(**{k: v for k, v in SMALL.items() if k != "num_attention_heads"})),
    "convbert": lambda: hf.ConvBertForMaskedLM(hf.ConvBertConfig(**SMALL, embedding_size=32)),
}


@pytest.mark.parametrize("kind", MIXERS)
def test_padding_never_shows_even_where_a_model_mixes_it_in(kind: str) -> None:
    """Some architectures take no notice of the attention mask: rows of one length are then run together."""
    torch.manual_seed(3)
    model = wrap(MIXERS[kind]().double(), tokenizer())
    assert not model.pads and wrap(ARCHITECTURES["bert"]().double(), tokenizer()).pads
    prompts, lengths = ["the cat", "one two three four", "it ran", "two"], [5, 8, 5, 3]
    settings: Any = {"sampler": presets.confidence(), "stop_at_eos": False}
    together = generate(model, prompts, length=lengths, **settings)
    alone = [generate(model, p, length=n, **settings) for p, n in zip(prompts, lengths, strict=True)]
    assert together == alone


def test_the_longest_row_a_model_can_see() -> None:
    """Learned positions end somewhere, and RoBERTa's family counts them from the padding id on."""
    lengths = {name: wrap(make(), tokenizer()).context for name, make in ARCHITECTURES.items()}
    assert lengths == {"bert": 64, "roberta": 63, "albert": 64, "modernbert": None, "esm": None}
    model = wrap(ARCHITECTURES["roberta"](), tokenizer())
    full = Canvas.after_prompt([[2, 8]], length=61, mask_id=4)
    assert not (decode(model, full, presets.confidence(steps=1)).tokens == 4).any()


def test_esm_as_it_is_released() -> None:
    """ESM-2 scales its embeddings by the share of masks it sees."""
    torch.manual_seed(5)
    config = hf.EsmConfig(**SMALL, mask_token_id=4, position_embedding_type="rotary", token_dropout=True)
    model = wrap(hf.EsmForMaskedLM(config).double(), tokenizer())
    prompts = ["the cat sat", "one"]
    together = generate(model, prompts, length=[3, 6], sampler=presets.confidence(), stop_at_eos=False)
    for row, (prompt, length) in enumerate(zip(prompts, [3, 6], strict=True)):
        assert generate(model, prompt, length=length, sampler=presets.confidence(), stop_at_eos=False) == together[row]


@pytest.mark.parametrize("name", SAMPLERS)
def test_it_answers_and_a_row_alone_is_the_row_in_a_batch(model: Any, name: str) -> None:
    prompts = ["the cat", "one two three four", "it ran off to see ."]
    settings: Any = {"sampler": SAMPLERS[name], "stop_at_eos": False}
    together = generate(model, prompts, length=[5, 8, 3], **settings)
    for row, (prompt, length) in enumerate(zip(prompts, [5, 8, 3], strict=True)):
        alone = generate(model, prompt, length=length, seed=row, **settings)
        assert alone == together[row]


@pytest.mark.parametrize("name", SAMPLERS)
def test_it_fills_gaps_and_leaves_the_text_around_them(model: Any, name: str) -> None:
    texts = ["the <mask:2> sat on a <mask:1> .", "one [MASK] three", "<mask:3> and then <mask:4>"]
    filled = generate(model, texts, sampler=SAMPLERS[name])
    assert filled[0].startswith("the ") and " sat on a " in filled[0] and filled[0].endswith(" .")
    assert filled[1].startswith("one ") and filled[1].endswith(" three") and " and then " in filled[2]
    assert all("[MASK]" not in text and "<mask" not in text and "[CLS]" not in text for text in filled)
    for row, text in enumerate(texts):
        assert generate(model, text, sampler=SAMPLERS[name], seed=row) == filled[row]


def test_wrapping_a_model_in_memory_is_loading_it(folder: Path, model: Any) -> None:
    wrapped = wrap(model.model, model.tokenizer)
    canvas = Canvas.after_prompt([[2, 8, 9], [2, 10]], length=6, mask_id=4)
    sampler = presets.margin()
    assert decode(wrapped, canvas, sampler).tokens.tolist() == decode(model, canvas, sampler).tokens.tolist()
    assert wrapped.about["tokenizer"] == model.about["tokenizer"]


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bert")
    ARCHITECTURES["bert"]().save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder


@cache
def strange() -> tuple[Any, Any]:
    """The config and the class of a model. The bases import for seconds, so they are made where a test needs them."""

    class StrangeConfig(hf.PreTrainedConfig):
        """Of a model that transformers does not know."""

        model_type = "strange"

    class StrangeForMaskedLM(hf.PreTrainedModel):
        """BERT under another name, as a model with code of its own is once the user has loaded it."""

        config_class = StrangeConfig

        def __init__(self, config: Any, causal: bool = False) -> None:
            super().__init__(config)
            self.inner = hf.BertForMaskedLM(hf.BertConfig(**SMALL)).eval()
            self.causal = causal
            self.post_init()

        def get_input_embeddings(self) -> Any:
            return self.inner.get_input_embeddings()

        def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> Any:
            if not self.causal:
                return self.inner(input_ids=input_ids, attention_mask=attention_mask)
            columns = [self.inner(input_ids=input_ids[:, : n + 1]).logits[:, -1] for n in range(input_ids.shape[1])]
            return SimpleNamespace(logits=torch.stack(columns, 1))

    return StrangeConfig, StrangeForMaskedLM


def test_a_masked_lm_is_known_by_its_class_whatever_its_model_type() -> None:
    torch.manual_seed(0)
    config, make = strange()
    made = make(config())
    model = wrap(made, tokenizer())
    bert = wrap(made.inner, tokenizer())
    answers = [generate(one, "the cat", sampler=presets.confidence(), length=5) for one in (model, bert)]
    assert answers[0] == answers[1]
    with pytest.raises(UncodeError, match=r"^StrangeForMaskedLM does not see what follows a position"):
        wrap(make(config(), causal=True), tokenizer())


def test_a_type_that_the_caller_registers_is_loaded_from_a_folder(tmp_path: Path) -> None:
    config, make = strange()
    hf.AutoConfig.register("strange", config, exist_ok=True)
    hf.AutoModelForMaskedLM.register(config, make, exist_ok=True)
    torch.manual_seed(0)
    made = make(config(vocab_size=VOCAB))
    made.save_pretrained(tmp_path)
    tokenizer().save_pretrained(tmp_path)
    loaded, there = (
        generate(one, "the cat", sampler=presets.confidence(), length=5)
        for one in (uncode.load(tmp_path), wrap(made, tokenizer()))
    )
    assert loaded == there


class TestMistakes:
    """Each one sentence."""

    def test_no_cache(self, bert: Path) -> None:
        with pytest.raises(UncodeError, match="this model has no KV cache, and DualCache needs one"):
            generate(uncode.load(bert), "the cat", sampler=presets.semi_ar(blocks=2, cache="dual"), length=6)

    def test_too_long(self, bert: Path) -> None:
        with pytest.raises(UncodeError, match="have 84 tokens, and this model sees 64 at most"):
            generate(uncode.load(bert), "the cat", sampler=presets.confidence(), length=80)

    def test_a_checkpoint_without_a_language_model_head_is_refused(self, tmp_path: Path) -> None:
        """A random head would decode nonsense without a word."""
        ARCHITECTURES["bert"]().bert.save_pretrained(tmp_path)
        tokenizer().save_pretrained(tmp_path)
        with pytest.raises(UncodeError, match=r"missing: cls\.predictions"):
            uncode.load(tmp_path)

    def test_a_causal_lm_is_refused(self, tmp_path: Path) -> None:
        config = hf.LlamaConfig(
            vocab_size=40, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8
        )
        causal = hf.LlamaForCausalLM(config)
        causal.save_pretrained(tmp_path)
        with pytest.raises(UncodeError, match=r"is a 'llama' model, not a masked .* loads llada, Dream, .*illada"):
            uncode.load(tmp_path)
        with pytest.raises(UncodeError, match="is a 'llama' model"):
            wrap(causal, tokenizer())

    def test_a_model_with_code_of_its_own_is_refused(self, bert: Path, tmp_path: Path) -> None:
        shutil.copytree(bert, tmp_path / "lfm")
        config = {"model_type": "lfm2", "auto_map": {"AutoModelForMaskedLM": "modeling.Lfm2ForMaskedLM"}}
        (tmp_path / "lfm" / "config.json").write_text(json.dumps(config))
        with pytest.raises(UncodeError, match=r"is a 'lfm2' model with code of its own, .* pass it to uncode\.wrap"):
            uncode.load(tmp_path / "lfm")

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"vocab_size": VOCAB + 3}, r"of another shape: bert\.embeddings\.word_embeddings\.weight, cls"),
            ({"num_hidden_layers": 1}, r"unexpected: bert\.encoder\.layer\.1\."),
            ({"num_hidden_layers": 3}, r"missing: bert\.encoder\.layer\.2\."),
        ],
    )
    def test_a_configuration_of_another_model(
        self, bert: Path, tmp_path: Path, change: dict[str, int], message: str
    ) -> None:
        shutil.copytree(bert, tmp_path / "other")
        config = json.loads((bert / "config.json").read_text())
        (tmp_path / "other" / "config.json").write_text(json.dumps(config | change))
        with pytest.raises(UncodeError, match=message):
            uncode.load(tmp_path / "other")

    def test_integers_beside_the_weights_are_no_fault(self, bert: Path, tmp_path: Path) -> None:
        """Older checkpoints carry their position ids, and poolers nobody asks for."""
        shutil.copytree(bert, tmp_path / "older")
        file = tmp_path / "older" / "model.safetensors"
        extra = {"bert.embeddings.position_ids": torch.arange(64)[None], "bert.pooler.dense.bias": torch.zeros(32)}
        save_file(load_file(file) | extra, file, metadata={"format": "pt"})
        assert uncode.load(tmp_path / "older").dtype == torch.float32

    def test_a_tokenizer_that_is_a_name(self) -> None:
        with pytest.raises(UncodeError, match="takes a tokenizer of transformers, not 'bert-base'"):
            wrap(ARCHITECTURES["bert"](), "bert-base")

    def test_a_tokenizer_of_another_model(self, tmp_path: Path) -> None:
        small = {**SMALL, "vocab_size": VOCAB - 5}
        hf.BertForMaskedLM(hf.BertConfig(**small)).save_pretrained(tmp_path)
        tokenizer().save_pretrained(tmp_path)
        with pytest.raises(UncodeError, match="they do not belong together"):
            uncode.load(tmp_path)

    def test_no_mask_token(self, tmp_path: Path) -> None:
        bert = ARCHITECTURES["bert"]()
        bert.save_pretrained(tmp_path)
        with pytest.raises(UncodeError, match="names a mask token"):
            uncode.load(tmp_path)
        assert wrap(bert, mask_id=4).mask_id == 4
        with pytest.raises(UncodeError, match="inside the vocabulary"):
            wrap(bert, mask_id=VOCAB)

    def test_no_head_in_memory(self) -> None:
        with pytest.raises(UncodeError, match="no language model head"):
            wrap(ARCHITECTURES["bert"]().bert, tokenizer())

    def test_wrap_refuses_a_plain_function(self) -> None:
        with pytest.raises(UncodeError, match=r"uncode\.FunctionDenoiser"):
            wrap(lambda tokens: tokens)
