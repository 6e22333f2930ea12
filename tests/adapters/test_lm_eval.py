"""Our model, tasks and metric inside lm-evaluation-harness."""

from __future__ import annotations

import copy
import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import uncode
from uncode.core.errors import UncodeError
from uncode.evals.names import TASK_NAMES
from uncode.evals.run.models.model import Question
from uncode.evals.task import Example
from uncode.evals.tasks import find_task

if TYPE_CHECKING:
    import evaluate
    from lm_eval.api.instance import Instance
    from lm_eval.api.model import CachingLM
    from lm_eval.tasks._index import TaskIndex

    from uncode.adapters.lm_eval import launch, tasks
    from uncode.adapters.lm_eval.code_eval import SandboxCodeEval, code_eval_in_sandbox
    from uncode.adapters.lm_eval.model import UncodeLM


@pytest.fixture(scope="module", autouse=True)
def _lm_eval() -> None:
    """Imports the names above. It takes many seconds, which every worker that collects this file would spend."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("lm_eval", minversion="0.4.13")
        import evaluate  # noqa: F401
        from lm_eval.api.instance import Instance  # noqa: F401
        from lm_eval.api.model import CachingLM  # noqa: F401
        from lm_eval.tasks._index import TaskIndex  # noqa: F401

        from uncode.adapters.lm_eval import launch, tasks  # noqa: F401
        from uncode.adapters.lm_eval.code_eval import SandboxCodeEval, code_eval_in_sandbox  # noqa: F401
        from uncode.adapters.lm_eval.model import UncodeLM  # noqa: F401

        globals().update(locals())  # as if they had been imported above


pytestmark = pytest.mark.filterwarnings("ignore")  # lm-eval's own

Asked = Callable[..., list[Any]]


@pytest.fixture(scope="module")
def tiny() -> uncode.core.denoiser.Denoiser:
    return uncode.load("tiny", device="cpu")


@pytest.fixture(scope="module")
def toy() -> uncode.core.denoiser.Denoiser:
    return uncode.load("toy")


def asks(*arguments: tuple[Any, ...], kind: str = "generate_until") -> list[Any]:
    return [Instance(kind, {}, one, 0, ("t", number, 1)) for number, one in enumerate(arguments)]


@pytest.fixture
def few_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """lm-eval reads ten thousand task files, which takes half a minute; here it reads these."""
    real = TaskIndex._iter_yaml_files
    folders = ("gsm8k", "humaneval", "cruxeval")

    def some(root: Path) -> Iterator[Path]:
        yield from real(root) if root.name != "tasks" else (f for name in folders for f in real(root / name))

    monkeypatch.setattr(TaskIndex, "_iter_yaml_files", staticmethod(some))


def local_dataset(folder: Path, config: str, **splits: list[dict[str, str]]) -> None:
    """A dataset in the working directory, which lm-eval finds under the name of the hub's."""
    folder.mkdir(parents=True)
    files = "".join(f"  - split: {name}\n    path: {name}.jsonl\n" for name in splits)
    (folder / "README.md").write_text(f"---\nconfigs:\n- config_name: {config}\n  data_files:\n{files}---\n")
    for name, rows in splits.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


GSM8K = [
    {"question": "Ann has 3 apples and buys 4. How many has she?", "answer": "3+4=7\n#### 7"},
    {"question": "What is 2 * 6?", "answer": "2*6=12\n#### 12"},
    {"question": "Tom is 9. How old is he in 2 years?", "answer": "9+2=11\n#### 11"},
]
HUMANEVAL = {
    "task_id": "HumanEval/0", "prompt": "def one():\n", "entry_point": "one", "canonical_solution": "    return 1\n",
    "test": "def check(candidate):\n    assert candidate() == 1\n",
}  # fmt: skip


# -- the whole -----------------------------------------------------------------------------------


def test_stock_tasks_and_ours_give_what_our_own_path_gives(
    tiny: Any, few_tasks: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """lm-eval's gsm8k and humaneval over local data, and a task of ours, by its own command line."""
    import datasets

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.delenv("HF_ALLOW_CODE_EVAL", raising=False)
    local_dataset(tmp_path / "openai" / "gsm8k", "main", train=GSM8K[2:], test=GSM8K[:2])
    local_dataset(tmp_path / "openai" / "openai_humaneval", "openai_humaneval", test=[HUMANEVAL])
    model = "pretrained=tiny,sampler=uncode,rate=0.25,length=8,seed=5,journal=run,device=cpu"
    words = ["--model", "uncode", "--model_args", model, "--tasks", "gsm8k,humaneval,uncode_mini_story"]
    launch.run([*words, "--num_fewshot", "1", "--limit", "2", "--output_path", "out", "--log_samples"])

    own = UncodeLM(tiny, "uncode", rate=0.25, length=8)
    stock = find_prompts(tmp_path / "out", "gsm8k")
    assert len(stock) == 2 * 2 and all(prompt.startswith("Question: Tom is 9.") for _, prompt, _, _ in stock)
    for number, prompt, text, _ in stock:
        ((_, answer),) = own.model.answers(
            own.sampler, [Question(Example("x"), own.model.encode(prompt, chat=False), 8, 5 + number)], 1
        )
        assert text == answer.text
        assert text == uncode.generate(tiny, prompt, sampler=own.sampler.sampler, length=8, seed=5 + number)
    task: Any = find_task("mini_story")
    examples = task.examples()
    for number, prompt, text, grades in find_prompts(tmp_path / "out", "uncode_mini_story"):
        assert prompt == task.prompt(examples[number])
        assert grades == {name: float(task.grade(examples[number], text, name).correct) for name in task.graders}
    (result,) = (tmp_path / "out").rglob("results*.json")
    config = json.loads(result.read_text())["config"]
    assert config["sampler"] == own.sampler.definition and config["model_sha"] == own.model.fingerprint
    assert json.loads(result.read_text())["results"]["humaneval"]["pass@1,create_test"] == 0
    lines = [json.loads(line) for line in (tmp_path / "run" / "answers.0.jsonl").read_text().splitlines()]
    assert sorted(line["id"] for line in lines) == [
        "gsm8k/0", "gsm8k/1", "humaneval/0", "uncode_mini_story/0", "uncode_mini_story/1"
    ]  # fmt: skip


def find_prompts(folder: Path, task: str) -> list[tuple[int, str, str, dict[str, float]]]:
    """The logged samples of a task: the number of the example, prompt, text and grades."""
    (file,) = folder.rglob(f"samples_{task}_*.jsonl")
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    return [
        (
            row["doc_id"],
            row["arguments"]["gen_args_0"]["arg_0"],
            row["resps"][0][0],
            {m: row[m] for m in row["metrics"]},
        )
        for row in rows
    ]


def test_another_way_to_run_code_is_refused(few_tasks: None) -> None:
    class Config:
        metric_list = ({"metric": lambda: 0},)
        process_results = None

    class Task:
        UNSAFE_CODE, config = True, Config()

    with code_eval_in_sandbox():
        from lm_eval import evaluator

        with pytest.raises(UncodeError, match="outside the sandbox"):
            evaluator.evaluate(None, {"tasks": {"cruxeval": Task()}}, confirm_run_unsafe_code=True)


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UncodeError, match=r"needs lm_eval: pip install 'uncode\[lm-eval\]'"):
        launch.run(["--tasks", "gsm8k"])


def test_an_error_of_lm_eval_is_one_sentence(few_tasks: None) -> None:
    with pytest.raises(UncodeError, match=r"^lm-eval stopped with ValueError: .*nothing"):
        launch.run(["--model", "uncode", "--tasks", "nothing"])


# -- generation ----------------------------------------------------------------------------------


def test_requests_of_unequal_lengths_are_cut_at_their_stop_strings(toy: Any) -> None:
    lm = UncodeLM(toy, "left_to_right", length=20, batch_size="auto")
    whole, short, cut = lm.generate_until(
        asks(("add 2 3 4", {}), ("add 2 3 4", {"max_gen_toks": 3}), ("add 2 3 4", {"until": ["=", "nothing", ""]}))
    )
    assert whole == uncode.generate(toy, "add 2 3 4", sampler="left_to_right", length=20)
    assert short == uncode.generate(toy, "add 2 3 4", sampler="left_to_right", length=3)
    assert "=" in whole and cut == whole[: whole.index("=")]


def test_length_and_max_gen_toks_bound_each_other(toy: Any) -> None:
    from uncode.adapters.lm_eval.requests import read_generations

    def lengths(length: int | None, *kwargs: dict[str, Any]) -> list[int]:
        return [one.length for one in read_generations(asks(*(("x", one) for one in kwargs)), length, 0)]

    assert lengths(96, {}, {"max_gen_toks": 1024}, {"max_new_tokens": 32}) == [96, 96, 32]
    assert lengths(None, {}, {"max_gen_toks": 1024}) == [256, 1024]
    with pytest.raises(UncodeError, match="at least 1, not 0"):
        lengths(8, {"max_gen_toks": 0})


def test_examples_and_repeats_have_seeds_of_their_own() -> None:
    from uncode.adapters.lm_eval.requests import read_generations

    one, two = asks(("x", {}), ("y", {}))
    one.repeats = 2
    seeds = [asked.seed for asked in read_generations([one, one, two, two], 8, 7)]
    assert seeds == [7, 7 + (1 << 32), 8, 8], "the last one fills a process's share"


def test_a_marker_in_a_prompt_is_ordinary_text(tiny: Any) -> None:
    lm = UncodeLM(tiny, "confidence", length=4)
    (text,) = lm.generate_until(asks(("a <mask:3> b", {})))
    ids = lm.model.encode("a <mask:3> b", chat=False)
    assert tiny.mask_id not in ids and "<mask:3>" not in text
    assert tiny.tokenizer.decode(ids) == "a <mask:3> b"


def test_arguments_that_nobody_knows_are_refused(toy: Any) -> None:
    with pytest.raises(UncodeError, match="no 'ratee', and the sampler 'uncode' neither: did you mean 'rate'"):
        UncodeLM(toy, "uncode", ratee=1)
    with pytest.raises(UncodeError, match="check_greedy in --model_args must be true or false, not 'no'"):
        UncodeLM(toy, check_greedy="no")  # type: ignore[arg-type]
    with pytest.raises(UncodeError, match="'confidence' takes no frequency table"):
        UncodeLM(toy, "confidence", frequency="llada")
    with pytest.raises(UncodeError, match="rate of the sampler 'uncode' must be a number"):
        UncodeLM(toy, "uncode", rate="high")
    with pytest.raises(UncodeError, match=r"length in --model_args must be a whole number of at least 1, not 1\.5"):
        UncodeLM(toy, length=1.5)  # type: ignore[arg-type]


def test_a_wrong_sampler_is_refused_before_the_model_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uncode.adapters.lm_eval.model.load", lambda *_, **__: pytest.fail("loaded"))
    with pytest.raises(UncodeError, match="did you mean 'confidence'"):
        UncodeLM("GSAI-ML/LLaDA-8B-Base", "confidense")
    with pytest.raises(UncodeError, match=r"the sampler 'story' is complete and takes .* leave rate out"):
        UncodeLM("tiny", "story", rate=1)


def test_a_cache_of_none_is_a_choice(tiny: Any) -> None:
    """It was refused with "did you mean 'none'?"."""
    found = UncodeLM(tiny, "uncode_fast_dllm", cache="none").generate_until(asks(("2 + 3 =", {"max_gen_toks": 4})))
    sampler = uncode.presets.uncode_fast_dllm(frequency=tiny.frequency, cache="none")
    assert found == [uncode.generate(tiny, "2 + 3 =", sampler=sampler, length=4)]


def test_a_sampler_file_of_the_model_goes_by_its_name(tiny: Any) -> None:
    assert UncodeLM(tiny, "story").generate_until(asks(("2 + 3 =", {"max_gen_toks": 4}))) == [
        uncode.generate(tiny, "2 + 3 =", sampler="story", length=4)
    ]


TEMPLATE = (
    "{% for m in messages %}{% if m.role == 'system' and strict %}{{ raise_exception('no system') }}{% endif %}"
    "<{{ m.role }}>{{ m.content }}{% if not loop.last or m.role != 'assistant' %}</>{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)
CHAT = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]


@pytest.mark.parametrize(
    ("strict", "expected"),
    [
        ("false", "<system>Be brief.</><user>Hi</><assistant>"),
        ("true", "<user>Be brief.\n\nHi</><assistant>"),
    ],
)
def test_a_system_message_is_never_lost(tiny: Any, strict: str, expected: str) -> None:
    lm = UncodeLM(tiny, "confidence")
    with pytest.raises(UncodeError, match="has no chat template: leave --apply_chat_template out"):
        lm.apply_chat_template(CHAT)
    lm.tokenizer = copy.deepcopy(tiny.tokenizer)
    lm.tokenizer.chat_template = f"{{% set strict = {strict} %}}{TEMPLATE}"
    assert lm.apply_chat_template(CHAT) == expected
    assert lm.apply_chat_template(CHAT[1:]) == "<user>Hi</><assistant>"
    begun = [*CHAT[1:], {"role": "assistant", "content": "Hello, "}]  # a task's gen_prefix
    assert lm.apply_chat_template(begun, add_generation_prompt=False) == "<user>Hi</><assistant>Hello, "


# -- the journal ---------------------------------------------------------------------------------


class Counted:
    """How many requests a model has decoded."""

    def __init__(self, lm: UncodeLM, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count, real = 0, lm.model.answers

        def answers(sampler: Any, questions: Any, batch: int, observe: bool = False) -> Any:
            self.count += len(questions)
            return real(sampler, questions, batch, observe)

        monkeypatch.setattr(lm.model, "answers", answers)


def adds() -> list[Any]:
    return asks(*((f"add 1 2 {n}", {"until": []}) for n in (3, 4, 5)))


def test_a_stopped_run_is_resumed_and_repeats_nothing(
    toy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = UncodeLM(toy, "confidence", length=20, journal=tmp_path / "run").generate_until(adds())
    file = tmp_path / "run" / "answers.0.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(lines[0] + lines[1][:30])  # as a kill leaves it
    lm = UncodeLM(toy, "confidence", length=20, journal=tmp_path / "run")
    counted = Counted(lm, monkeypatch)
    assert lm.generate_until(adds()) == first and counted.count == 2
    again = UncodeLM(toy, "confidence", length=20, journal=tmp_path / "run")
    counted = Counted(again, monkeypatch)
    assert again.generate_until(adds()) == first and counted.count == 0


@pytest.mark.parametrize(
    "other",
    [{"sampler": "left_to_right"}, {"length": 12}, {"seed": 1}, {"stop_at_eos": False}, {"guidance": 1.0}],
    ids=str,
)
def test_no_answer_is_taken_from_another_run(
    toy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: dict[str, Any]
) -> None:
    options: dict[str, Any] = {"sampler": "confidence", "length": 16}
    UncodeLM(toy, **options, journal=tmp_path).generate_until(adds()[:1])
    lm = UncodeLM(toy, **options | other, journal=tmp_path)
    counted = Counted(lm, monkeypatch)
    found = lm.generate_until(adds()[:1])
    assert counted.count == 1 and found == UncodeLM(toy, **options | other).generate_until(adds()[:1])


@pytest.mark.parametrize("words", [["--use_cache", "x"], ["--use_cache=x"], ["--use_c", "x"], ["-c", "x"]])
def test_the_response_cache_is_refused(words: list[str], few_tasks: None) -> None:
    with pytest.raises(UncodeError, match=r"^--use_cache is refused: .* use --model_args journal=DIR instead.$"):
        launch.run(["--model", "uncode", "--tasks", "gsm8k", *words])


def test_the_response_cache_is_refused_in_python_too(toy: Any, tmp_path: Path) -> None:
    with pytest.raises(UncodeError, match="--use_cache is refused"):
        CachingLM(UncodeLM(toy), str(tmp_path / "cache.db"))


# -- log-likelihoods -----------------------------------------------------------------------------

STEPS = "2 + 3 = 5 , then 5 + 4 = 9 ."


def test_log_likelihoods_rank_and_are_reproducible(toy: Any, tmp_path: Path) -> None:
    wrong = STEPS.replace("= 9", "= 8")
    pairs = asks(("add 2 3 4 ", STEPS), ("add 2 3 4 ", wrong), ("add 2 3 4 ", "9 ."), ("", "9"), kind="loglikelihood")
    lm = UncodeLM(toy, "left_to_right", likelihood_samples=16, journal=tmp_path)
    found = lm.loglikelihood(pairs)
    assert found[0][0] > found[1][0] and all(score < 0 for score, _ in found)
    assert found == UncodeLM(toy, "left_to_right", likelihood_samples=16).loglikelihood(pairs)
    assert found == UncodeLM(toy, "left_to_right", likelihood_samples=16, journal=tmp_path).loglikelihood(pairs)
    other = UncodeLM(toy, "left_to_right", likelihood_samples=16, seed=1, journal=tmp_path).loglikelihood(pairs)
    assert other[0][0] != found[0][0], "an estimate"
    assert other[2] == found[2], "exact, because the answer is short"
    ids = [toy.tokenizer.encode(text) for text in ("add 2 3 4", "9 .")]
    assert found[2][0] == uncode.log_likelihood(toy, *ids, method="exact")


def test_greedy_is_what_the_sampler_writes(toy: Any) -> None:
    lm = UncodeLM(toy, "left_to_right", likelihood_samples=4)
    written = uncode.generate(toy, "add 2 3 4", sampler="left_to_right", length=5, stop_at_eos=False)
    pairs = asks(("add 2 3 4 ", written), ("add 2 3 4 ", written + " 9"), kind="loglikelihood")
    assert [greedy for _, greedy in lm.loglikelihood(pairs)] == [True, False]


def test_rolling_windows_cover_every_token_once(toy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    lm = UncodeLM(toy, "confidence", likelihood_samples=8)
    monkeypatch.setattr(UncodeLM, "max_length", 6)
    ids = tuple(range(2, 19))
    windows = lm._windows(ids, ())
    assert sum((answer for _, answer in windows), ()) == ids
    assert windows[0][0] == () and all(context == (answer[0] - 1,) for context, answer in windows[1:])
    (score,) = lm.loglikelihood_rolling(asks((f"add 2 3 4 {STEPS}",), kind="loglikelihood_rolling"))
    parts = lm._windows(tuple(toy.tokenizer.encode(f"add 2 3 4 {STEPS}")), ())
    assert score == pytest.approx(sum(lm._log_likelihood(*part) for part in parts)) and score < 0


# -- our tasks -----------------------------------------------------------------------------------


def test_every_task_has_a_file_made_from_its_class() -> None:
    from lm_eval.tasks._yaml_loader import load_yaml

    with tasks.task_files() as folder:
        for name in TASK_NAMES:
            found, task = load_yaml(folder / f"uncode_{name}.yaml"), find_task(name)
            assert found["task"] == f"uncode_{name}" and found["process_results"] is tasks.grades
            assert found["generation_kwargs"] == {"until": [], "max_gen_toks": task.settings.length, "do_sample": False}
            assert [one["metric"] for one in found["metric_list"]] == list(task.graders)


@pytest.mark.parametrize("name", ["mini_story", "mini_algebra", "mini_choice"])
def test_grades_are_those_of_the_task(name: str) -> None:
    task: Any = find_task(name)
    docs = tasks.documents(name, sampler="uncode", version=1.0)["test"]
    for doc, example in zip(list(docs)[:3], task.examples(), strict=False):
        assert doc["prompt"] == task.prompt(example)
        right = task.response(example, task.styles[0][0])
        for text in (right, "Question: no idea", f"{right}\n\nQuestion: What is 1 + 1? 2"):
            expected = {metric: float(task.grade(example, text, metric).correct) for metric in task.graders}
            assert tasks.grades(doc, [text]) == expected
        assert tasks.grades(doc, [right])["correct"] == 1


# -- the metric ----------------------------------------------------------------------------------

ADD_TEST = "assert add(2, 3) == 5\nassert add(0, 0) == 0"


@pytest.mark.parametrize(
    ("program", "tests", "passes"),
    [
        ("def add(a, b):\n    return a + b", ADD_TEST, True),
        ("def add(a, b):\n    return a * b", ADD_TEST, False),
        ("import math\ndef root(x):\n    return math.sqrt(x)", "assert math.isclose(root(4), 2)", True),
        ("def one():\n    return 1", "def check(candidate):\n    assert candidate() == 1\n\ncheck(one)", True),
        ("def add(a, b:", ADD_TEST, False),
        ("def sub(a, b):\n    return a - b", ADD_TEST, False),
        ("import sys\nsys.exit(0)\ndef add(a, b): pass", ADD_TEST, False),
        ("import os\ndef add(a, b):\n    os._exit(0)", ADD_TEST, False),
        ("class Yes:\n    def __eq__(self, other): return True\ndef add(a, b):\n    return Yes()", ADD_TEST, False),
    ],
)
def test_programs_are_judged_by_their_tests(program: str, tests: str, passes: bool) -> None:
    rates, found = SandboxCodeEval().compute(references=[tests], predictions=[[program]], k=[1])
    assert rates == {"pass@1": float(passes)} and found[0][0][1]["passed"] is passes, found


def test_a_hostile_program_does_no_harm(tmp_path: Path) -> None:
    victim, made = tmp_path / "victim", tmp_path / "made"
    victim.write_text("here")
    program = (
        "import os, shutil\n"
        "def attack():\n"
        f"    for do in (lambda: os.remove({str(victim)!r}), lambda: shutil.rmtree({str(tmp_path)!r}),\n"
        f"               lambda: open({str(made)!r}, 'w'), lambda: os.system('touch {made}'), lambda: os.kill(1, 9)):\n"
        "        try: do()\n"
        "        except BaseException: pass\n"
        "attack()\n"
        "def add(a, b):\n    attack()\n    return a + b\n"
    )
    SandboxCodeEval().judge(program, ADD_TEST)
    assert victim.read_text() == "here" and not made.exists()


def test_pass_at_k_is_the_unbiased_estimate() -> None:
    right, wrong = "def one():\n    return 1", "def one():\n    return 2"
    rates, _ = SandboxCodeEval().compute([[right, wrong, wrong]], ["assert one() == 1"], k=[1, 2, 10])
    assert rates == {"pass@1": pytest.approx(1 / 3), "pass@2": pytest.approx(2 / 3)}


def test_the_metric_is_replaced_for_a_while_only() -> None:
    from lm_eval import evaluator

    before = evaluate.load, evaluator.evaluate
    with code_eval_in_sandbox() as metric:
        assert evaluate.load("code_eval") is metric
    assert (evaluate.load, evaluator.evaluate) == before
