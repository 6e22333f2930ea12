"""Training: what is hidden, what is learnt from, and that a run goes on where it was killed."""

from __future__ import annotations

import json
import re
import signal
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from studies.trainings import TINY_CONFIG
from torch import Tensor

import uncode
from tests.cli.running import call
from tests.forked import Forked
from uncode import UncodeError
from uncode.cli.verbs.train import complete_config
from uncode.evals.suite.families import FAMILIES
from uncode.models import TINY
from uncode.train import run as running
from uncode.train.checkpoint import check_same_config
from uncode.train.config import TrainConfig, package_configs
from uncode.train.examples.batches import Batches, TrainBatch
from uncode.train.examples.curriculum import curriculum, draw
from uncode.train.examples.prepare import TEXTS_FILE, load_examples, prepare
from uncode.train.examples.shards import EXAMPLES_FILE, Shards
from uncode.train.export import export
from uncode.train.muon import UPDATE_RMS, Muon, orthogonalize
from uncode.train.objective import loss_of, mask_answers
from uncode.train.run import EOS_ID, MASK_ID, Run, learning_rate, shape_of

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def config() -> TrainConfig:
    """The smoke config, smaller still."""
    found = TrainConfig.load("smoke")
    examples = replace(found.examples, rows=(20, 20, 0, 40, 40, 40, 20))
    network = replace(found.network, width=32, hidden=48, vocab=320)
    return replace(found, examples=examples, network=network, schedule=replace(found.schedule, steps=12, tokens=624))


@pytest.fixture(scope="module")
def folder(config: TrainConfig, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("examples")
    prepare(config, made, lambda name, count: None, workers=1)
    return made


def test_the_configs_of_the_repository() -> None:
    tiny, smoke = TrainConfig.load(TINY_CONFIG), TrainConfig.load("smoke")
    assert shape_of(tiny).parameters * 2 <= 16e6
    assert len(tiny.examples.rows) == len(smoke.examples.rows) == len(FAMILIES)
    assert min(tiny.examples.rows) > 0 and tiny.examples.suffixes > 0
    assert learning_rate(0, tiny) < learning_rate(tiny.schedule.warmup, tiny) == tiny.schedule.peak
    assert learning_rate(tiny.schedule.steps - 1, tiny) < 1e-4 * tiny.schedule.peak


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("width", "wdith"), "did you mean 'width'"),
        (("suffixes = 0.25", "suffixes = 2.0"), "a share, from 0 to 1"),
        (("steps = 100\n", ""), r"\[schedule\] needs a value for steps"),
        (("layers = 2", 'layers = "two"'), "network.layers must be a whole number"),
        (("heads = 2", "heads = 5"), "even multiple of network.heads"),
        (("heads = 2", "heads = 0"), "network.heads is 0: it must be above 0"),
        (("heads = 2", "heads = 64"), "even multiple"),
        (("steps = 100", "steps = 0"), "schedule.steps is 0: it must be above 0"),
        (("seed = 0", "seed = -1"), "0 or more"),
        (("lengths = [144, 208]", "lengths = [208, 144]"), "the shorter ones first"),
        (("rows = [100, 100, 0,", "rows = [0, 100, 0,"), "or neither"),
        (("shares = [0.1, 0.1, 0.0,", "shares = [0.1, 0.1, 0.2,"), "or neither"),
        (("seed = 0", "sed = 0"), "the top level has no setting 'sed': did you mean 'seed'"),
        (("seed = 0", 'seed = "x"'), ", seed must be a whole number"),
        (("[network]", "[network"), "not a TOML file"),
    ],
)
def test_a_wrong_config_is_one_sentence(change: tuple[str, str], message: str, tmp_path: Path) -> None:
    text = package_configs()["smoke"].read_text()
    assert change[0] in text
    (tmp_path / "wrong.toml").write_text(text.replace(*change, 1))
    with pytest.raises(UncodeError, match=message) as caught:
        TrainConfig.load(tmp_path / "wrong.toml")
    assert f"training config '{tmp_path / 'wrong.toml'}'" in str(caught.value) and "recipe" not in str(caught.value)


ESSENCE = {
    "mini_docstring": r'Return the (.*)\."""',
    "mini_sentence": r"find the (.*)\.\n",
    "mini_algebra": r"(.*)\n",
    "mini_choice": r"Question: (.*)\n",
    "mini_countdown": r"(.*\n.*)\n",
}
"""What makes the problem, in its prompt; of sudoku, its answer."""


def essence(name: str, prompt: str, answer: str) -> str:
    if name == "mini_sudoku":
        return re.sub(r"\D", "", answer)[-16:]
    found = re.search(ESSENCE[name], prompt)
    assert found is not None
    return found[1]


@pytest.mark.parametrize("name", [name for name in FAMILIES if name != "mini_story"])
def test_no_training_example_is_of_a_problem_that_is_held_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the split, some are found in the families with few problems. Stories: see test_families."""
    family = FAMILIES[name]
    problems = family.examples() + family.unlabelled()
    tested = {essence(name, family.prompt(e), getattr(e, "solution", "")) for e in problems}
    taught = {essence(name, *example) for example in draw(name, 0, 0, 3000)}
    assert not tested & taught
    if name in ("mini_docstring", "mini_sentence", "mini_sudoku"):
        monkeypatch.setattr(type(family), "held_out", lambda self, example: False)
        assert tested & {essence(name, *example) for example in draw(name, 0, 0, 3000)}


def test_training_examples_do_not_depend_on_the_number_of_workers() -> None:
    rows = (3, 0, 0, 700, 0, 0, 2)
    reported: list[tuple[str, int]] = []
    one, two = (
        list(curriculum(rows, 0, workers, lambda name, count: reported.append((name, count)))) for workers in (1, 2)
    )
    assert one == two and len(one) == 705
    assert reported[:3] == [("mini_docstring", 3), ("mini_algebra", 500), ("mini_algebra", 200)]


def rows_of(shards: Shards) -> list[tuple[int, list[int], list[int]]]:
    found, at = [], 0
    for prompt, answer, family in zip(shards.prompts, shards.answers, shards.families, strict=True):
        found.append((int(family), shards.tokens[at : at + prompt].tolist(), []))
        found[-1][2].extend(shards.tokens[at + prompt : at + prompt + answer].tolist())
        at += int(prompt) + int(answer)
    assert at == len(shards.tokens)
    return found


def test_shards_hold_the_training_examples(config: TrainConfig, folder: Path) -> None:
    from uncode.backbones.loading.tokenizer import tokenizer_of

    tokenizer = tokenizer_of(folder)
    shards = Shards.load(folder / EXAMPLES_FILE)
    wanted = list(curriculum(config.examples.rows, 0, 1, lambda name, count: None))
    texts = [(f, tokenizer.decode(p), tokenizer.decode(a)) for f, p, a in rows_of(shards)]
    longest = max(config.examples.lengths) - config.examples.spare
    most = [family.length - config.examples.spare for family in FAMILIES.values()]
    short = [
        (f, n)
        for f, n in wanted
        if sum(len(tokenizer.encode(text)) for text in n) <= longest and len(tokenizer.encode(n.response)) <= most[f]
    ]
    assert texts == [(f, example.prompt, example.response) for f, example in short]
    assert 0.5 * len(wanted) < len(short) < len(wanted), "a small vocabulary makes long texts"
    assert tokenizer.mask_token_id == MASK_ID and tokenizer.eos_token_id == EOS_ID
    assert (folder / TEXTS_FILE).read_text().count("\n") == len(wanted)


def test_a_batch_is_training_examples_padded_with_eos(config: TrainConfig, folder: Path) -> None:
    shards = Shards.load(folder / EXAMPLES_FILE)
    known = {tuple(prompt + answer): len(prompt) for _, prompt, answer in rows_of(shards)}
    batches = Batches(shards, config, EOS_ID, CPU)
    for step in range(4):
        batch = batches.batch(step)
        length = batch.tokens.shape[1]
        assert length in config.examples.lengths and len(batch.tokens) == config.schedule.tokens // length
        for row, answer in zip(batch.tokens.tolist(), batch.answer.tolist(), strict=True):
            text = tuple(row[: row.index(EOS_ID)])
            assert set(row[len(text) :]) == {EOS_ID} and length - len(text) >= config.examples.spare
            assert answer.index(True) == known[text] and all(answer[known[text] :])
        assert torch.equal(batch.text, batch.answer & (batch.tokens != EOS_ID))
        assert torch.equal(batch.tokens, Batches(shards, config, EOS_ID, CPU).batch(step).tokens)
    other = Batches(shards, replace(config, seed=1), EOS_ID, CPU).batch(0)
    same = batches.batch(0)
    assert other.tokens.shape != same.tokens.shape or not torch.equal(other.tokens, same.tokens)


def test_every_example_of_a_family_is_drawn_equally_often(folder: Path, config: TrainConfig) -> None:
    """How long a row is tells nothing about the answer, and short answers are not taught more often than drawn."""
    shards = Shards.load(folder / EXAMPLES_FILE)
    many = replace(config, schedule=replace(config.schedule, tokens=14976))
    batches = Batches(shards, many, EOS_ID, CPU)
    taught = [Counter[int](), Counter[int]()]
    answers: dict[int, list[float]] = {length: [] for length in config.examples.lengths}
    prompts = {tuple(prompt): family for family, prompt, _ in rows_of(shards)}
    for step in range(60):
        batch = batches.batch(step)
        sizes = batch.text.sum(1).tolist()
        answers[batch.tokens.shape[1]] += sizes
        for row, start, size in zip(batch.tokens.tolist(), batch.answer.int().argmax(1).tolist(), sizes, strict=True):
            family = prompts[tuple(row[:start])]
            taught[0][family] += 1
            taught[1][family] += size
    total = sum(taught[0].values())
    for family, share in enumerate(config.examples.shares):
        assert abs(taught[0][family] / total - share) < 0.03
        drawn = shards.answers[shards.families == family]
        if share:
            assert abs(taught[1][family] / taught[0][family] / drawn.mean() - 1) < 0.1


def some_batch(rows: int = 4000, length: int = 40, prompt: int = 10, text: int = 30) -> TrainBatch:
    tokens = torch.arange(rows * length).view(rows, length) % 50 + 2
    places = torch.arange(length)
    return TrainBatch(
        tokens, (places >= prompt).expand(rows, length), ((places >= prompt) & (places < text)).expand(rows, length)
    )


def test_prompts_are_never_hidden_and_the_share_is_uniform() -> None:
    batch = some_batch()
    masked = mask_answers(batch, MASK_ID, 0.0, torch.Generator().manual_seed(0))
    assert not masked.masked[:, :10].any()
    assert torch.equal(masked.tokens == MASK_ID, masked.masked)
    assert torch.equal(masked.tokens[~masked.masked], batch.tokens[~masked.masked])
    share = 1 / masked.weight
    spread = share.flatten().sort().values
    assert (spread - torch.linspace(0, 1, len(spread))).abs().max() < 2e-3
    found = masked.masked[:, 10:].float().mean(1)
    assert (found - share[:, 0]).abs().mean() < 0.08
    assert abs(float((found - share[:, 0]).mean())) < 0.01
    weight = (masked.masked * masked.weight)[:, 10:].mean(0)
    assert (weight - 1).abs().max() < 0.6  # every token counts one on the average: Eq. 1
    assert masked.masked[:, 10:].float().mean(0).std() < 0.02  # every place alike, the EOS tokens too


def test_a_share_of_the_rows_hides_a_suffix() -> None:
    found = mask_answers(some_batch(), MASK_ID, 0.25, torch.Generator().manual_seed(1))
    whole = (found.weight == 1)[:, 0]
    assert abs(float(whole.float().mean()) - 0.25) < 0.03
    hidden = found.masked[whole][:, 10:].int()
    assert (hidden.diff(dim=1) >= 0).all() and hidden[:, -10:].all()  # the EOS tokens always
    starts = torch.bincount(30 - hidden.sum(1), minlength=21) / len(hidden)
    assert len(starts) == 21 and (starts - 1 / 21).abs().max() < 0.03  # any place of the text alike, and its end


def test_a_suffix_teaches_nothing_about_the_length_of_answers() -> None:
    """Short and long texts are cut at a place of both equally often, by weight."""
    short, long = some_batch(rows=20000, text=14), some_batch(rows=20000, text=34)
    both = TrainBatch(*(torch.cat(parts) for parts in zip(vars(short).values(), vars(long).values(), strict=True)))
    found = mask_answers(both, MASK_ID, 1.0, torch.Generator().manual_seed(2))
    assert float(found.weight.mean()) == pytest.approx(1.0)
    for cut in range(4):
        here = found.weight[:, 0] * (found.masked.sum(1) == 30 - cut)
        assert float(here[:20000].sum() / here[20000:].sum()) == pytest.approx(1.0, abs=0.2)


def test_the_loss_is_the_papers() -> None:
    tokens = torch.tensor([[5, 2, 3, 4]])
    answer, hidden = torch.tensor([[False, True, True, True]]), torch.tensor([[False, True, False, True]])
    logits = torch.randn(1, 4, 6, generator=torch.Generator().manual_seed(0))
    expected = -(logits[0, 1].log_softmax(0)[2] + logits[0, 3].log_softmax(0)[4]) / 0.4 / 3
    assert loss_of(logits, tokens, answer, hidden, torch.tensor([[1 / 0.4]])) == pytest.approx(float(expected))


def weights(run: Run) -> dict[str, Tensor]:
    return {name: parameter.detach().clone() for name, parameter in run.network.named_parameters()}


def test_it_learns_and_resumes_after_an_interruption(config: TrainConfig, folder: Path, tmp_path: Path) -> None:
    shards, reported = Shards.load(folder / EXAMPLES_FILE), list[int]()
    whole = Run(config, shards, CPU)
    whole.train(tmp_path, lambda progress: reported.append(progress.step))
    (tmp_path / running.CHECKPOINT_FILE).unlink()
    first = Run(config, shards, CPU)
    assert not first.resume(tmp_path)
    first.train(tmp_path, lambda progress: None, until=5)
    second = Run(config, shards, CPU)
    assert second.resume(tmp_path) and second.progress.step == 5
    second.train(tmp_path, lambda progress: None)
    assert all(torch.equal(a, b) for a, b in zip(weights(whole).values(), weights(second).values(), strict=True))
    assert whole.progress.tokens == second.progress.tokens and reported == [12]
    early = float(torch.stack([Run(config, shards, CPU).step(step) for step in range(4)]).mean())
    late = float(torch.stack([second.step(step) for step in range(4)]).mean())
    assert late < early - 0.5
    with pytest.raises(UncodeError, match=r"begun with seed 0, not 7: choose another `out=`"):
        Run(replace(config, seed=7), shards, CPU).resume(tmp_path)
    network, schedule = replace(config.network, layers=3), replace(config.schedule, steps=13)
    with pytest.raises(UncodeError, match=r"begun with network.layers 2, not 3; schedule.steps 12, not 13: "):
        check_same_config(tmp_path / running.CHECKPOINT_FILE, replace(config, network=network, schedule=schedule))
    assert len(load_examples(config, folder)) == len(shards)
    with pytest.raises(UncodeError, match="another config, tokenizer or version"):
        load_examples(replace(config, network=replace(config.network, vocab=321)), folder)


def test_kill_9_loses_no_checkpoint(
    folder: Path, tmp_path: Path, config: TrainConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed while it saves after every step; a second run ends with the weights of one that was never killed."""
    made = tmp_path / "config.toml"
    made.write_text(as_toml(config))
    assert TrainConfig.load(made) == config

    def train() -> None:
        run = Run(TrainConfig.load(made), Shards.load(folder / EXAMPLES_FILE), CPU)
        run.resume(tmp_path)
        run.train(tmp_path, lambda progress: print(progress.step, flush=True))

    with monkeypatch.context() as patch:
        patch.setattr(running, "SAVE_SECONDS", 0.0)
        patch.setattr(running, "REPORT_STEPS", 1)
        with Forked(train) as process:
            for line in process.stdout:
                if int(line) >= 4:
                    time.sleep(0.01)
                    process.kill()
            assert process.wait() == -signal.SIGKILL
        with Forked(train) as process:
            again = process.communicate()[0].split()
    assert int(again[0]) >= 4 and again[-1] == "12"  # a step is reported before it is saved: the third surely was
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    whole = Run(config, Shards.load(folder / EXAMPLES_FILE), CPU)
    whole.train(folder, lambda progress: None)
    torch.set_num_threads(threads)
    second = Run(config, Shards.load(folder / EXAMPLES_FILE), CPU)
    assert second.resume(tmp_path)
    assert all(torch.equal(a, b) for a, b in zip(weights(whole).values(), weights(second).values(), strict=True))


def test_an_interruption_keeps_what_is_done(folder: Path, tmp_path: Path, config: TrainConfig) -> None:
    run = Run(config, Shards.load(folder / EXAMPLES_FILE), CPU)
    real, reported = run.step, list[int]()

    def step(number: int) -> Tensor:
        if number == 3:
            signal.raise_signal(signal.SIGINT)
        return real(number)

    run.step = step  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        run.train(tmp_path, lambda progress: reported.append(progress.step))
    again = Run(config, Shards.load(folder / EXAMPLES_FILE), CPU)
    assert again.resume(tmp_path) and again.progress.step == 4 and reported == [4]


def as_toml(config: TrainConfig) -> str:
    def lines(values: dict[str, Any]) -> str:
        return "".join(f"{key} = {list(v) if isinstance(v, tuple) else v!r}\n" for key, v in values.items())

    text = f'name = "{config.name}"\nseed = {config.seed}\n'
    for part in ("network", "examples", "schedule"):
        text += f"[{part}]\n{lines(vars(getattr(config, part)))}"
    return text


def test_muon_makes_its_updates_orthogonal_whatever_their_shape() -> None:
    random = torch.Generator().manual_seed(0)
    wide = torch.randn(3, 16, 40, generator=random)
    values = torch.linalg.svdvals(orthogonalize(wide))
    assert values.min() > 0.6 and values.max() < 1.3
    matrices = [torch.nn.Parameter(torch.randn(shape, generator=random)) for shape in ((16, 40), (40, 16), (16, 16))]
    before = [p.detach().clone() for p in matrices]
    for parameter in matrices:
        parameter.grad = torch.randn(parameter.shape, generator=random)
    Muon(matrices, lr=0.1, decay=0.0).step()
    for parameter, old in zip(matrices, before, strict=True):
        assert parameter.grad is not None
        change = (old - parameter.detach()) / (0.1 * UPDATE_RMS * max(parameter.shape) ** 0.5)
        values = torch.linalg.svdvals(change)
        assert values.min() > 0.6 and values.max() < 1.3
        assert float((change * parameter.grad).sum()) > 0  # downhill


def test_the_exported_folder_loads_as_a_model(config: TrainConfig, folder: Path, tmp_path: Path) -> None:
    run = Run(config, Shards.load(folder / EXAMPLES_FILE), CPU)
    export(run, folder, tmp_path)
    model = uncode.load(tmp_path)
    assert (model.mask_id, model.eos_ids, model.vocab_size) == (MASK_ID, (EOS_ID,), config.network.vocab)
    text = uncode.generate(model, "Problem: Compute 3 + 4\nSolution:", sampler=uncode.presets.confidence(), length=8)
    assert isinstance(text, str)
    tokens = torch.randint(2, config.network.vocab, (1, 20), generator=torch.Generator().manual_seed(0))
    rope = run._rope(20)
    ours = run.network.logits(*run.network(tokens, rope))
    state = {name: parameter.detach() for name, parameter in model.network.named_parameters()}  # type: ignore[attr-defined]
    for name, parameter in run.network.named_parameters():
        assert torch.equal(state[name], parameter.detach().bfloat16().float())
    with torch.no_grad():
        theirs = model.network.logits(*model.network(tokens, rope))  # type: ignore[attr-defined]
    assert torch.allclose(ours, theirs, atol=0.05)


def test_examples_that_are_missing_or_damaged(tmp_path: Path) -> None:
    with pytest.raises(UncodeError, match="--prepare"):
        Shards.load(tmp_path / EXAMPLES_FILE)
    (tmp_path / EXAMPLES_FILE).write_bytes(b"PK\x03\x04 nothing")
    with pytest.raises(UncodeError, match="damaged"):
        Shards.load(tmp_path / EXAMPLES_FILE)
    np.savez(tmp_path / EXAMPLES_FILE, tokens=np.array([1]))
    with pytest.raises(UncodeError, match="damaged"):
        Shards.load(tmp_path / EXAMPLES_FILE)


def test_the_verb_prepares_trains_and_resumes(config: TrainConfig, tmp_path: Path) -> None:
    made, out = tmp_path / "config.toml", tmp_path / "out"
    made.write_text(as_toml(replace(config, name="little", schedule=replace(config.schedule, steps=3))))
    words = ("train", str(made), "--out", str(out), "--device", "cpu")
    prepared = call(*words, "--prepare")
    assert prepared.exit_code == 0 and "examples" in prepared.stderr and not (out / "model").exists()
    first = call(*words)
    assert "3 steps" in first.stdout and "resuming" not in first.stderr
    (out / "model" / "training.json").rename(out / "model" / "moved")
    assert "resuming at step 3" in call(*words).stderr
    before = {file: file.stat().st_mtime_ns for file in out.rglob("*")}
    again = call(*words)
    assert again.exit_code == 0 and f"done after 3 steps, and the model is in '{out / 'model'}'" in again.stdout
    assert before == {file: file.stat().st_mtime_ns for file in out.rglob("*")}
    record = json.loads((out / "model" / "training.json").read_text())
    assert (record["config"], record["seed"], record["steps"], record["device"]) == ("little", 0, 3, "CPU")
    assert len(record["curve"]) == 1 and record["tokens"] > 0
    with pytest.raises(UncodeError, match="seed 0, not 5"):
        call(*words, "--seed", "5")
    with pytest.raises(UncodeError, match="0 or more"):
        call(*words, "--seed", "-1")
    (out / "examples" / "tokenizer.json").write_text("{}")
    (out / "training.safetensors").unlink()
    with pytest.raises(UncodeError, match="another config, tokenizer or version"):
        call(*words)
    with pytest.raises(UncodeError, match="no training config is named"):
        call("train", str(tmp_path / "none.toml"), "--out", str(out))


def test_the_verb_checks_before_it_writes(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(UncodeError, match="device"):
        call("train", "smoke", "--out", str(out), "--device", "nothing")
    assert not out.exists()
    out.write_text("mine")
    with pytest.raises(UncodeError, match=f"'{out}' is a file: choose another folder"):
        call("train", "smoke", "--out", str(out))
    assert complete_config("") == complete_config("s") == ["smoke"] and complete_config("t") == []


def test_the_page_names_what_the_package_holds() -> None:
    page = (Path(__file__).parents[2] / "docs" / "training.md").read_text()
    assert set(re.findall(r"uncode train (\w+) ", page)) == set(package_configs())
    tables = set(re.findall(r"TABLES/([\w.]+)", page))
    assert len(tables) == 2 and all((TINY / "tables" / name).is_file() for name in tables)
