"""The metric `code_eval` in our sandbox: pass@k of generated programs, which never run in this process.

Hugging Face's `code_eval`, which lm-eval's humaneval and mbpp load, runs a program by `exec` in a fork of this process,
with no jail. Here the program runs in the jail and its tests in a referee outside, as in our own tasks. So a program
cannot touch files or the network, and cannot pass by ending early or by replacing `assert`.
"""

from __future__ import annotations

import ast
import builtins
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from symtable import SymbolTable, symtable
from typing import Any

from ...core.errors import UncodeError, require
from ...sandbox import Judgement, Sandbox, Suite

NAME = "code_eval"
SHARED_MODULES = (
    *("bisect", "cmath", "collections", "copy", "datetime", "decimal", "fractions", "functools", "heapq"),
    *("itertools", "math", "operator", "random", "re", "statistics", "string", "sys", "typing"),
)
"""Modules that a program imports and its tests may rely on. The referee imports them itself."""


Completion = tuple[int, dict[str, Any]]
"""The number of a program of a problem, and what is said of it."""


class SandboxCodeEval:
    """`code_eval` with the interface of Hugging Face's metric."""

    name = NAME

    def __init__(self) -> None:
        self.sandbox = Sandbox()

    def compute(
        self,
        predictions: Sequence[Sequence[str]],
        references: Sequence[str],
        k: Sequence[int] = (1, 10, 100),
        num_workers: int = 4,
        timeout: float | None = None,
    ) -> tuple[dict[str, float], dict[int, list[Completion]]]:
        """pass@k over the problems, and the verdict on every program.

        `predictions` are the programs of each problem, `references` its tests. The sandbox has its own limits, so
        `timeout` has no effect.
        """
        jobs = [(p, c, text) for p, programs in enumerate(predictions) for c, text in enumerate(programs)]
        with ThreadPoolExecutor(num_workers) as pool:
            verdicts = list(pool.map(lambda job: self.judge(job[2], references[job[0]]), jobs))
        found: dict[int, list[Completion]] = {number: [] for number in range(len(predictions))}
        for (problem, completion, _), verdict in zip(jobs, verdicts, strict=True):
            about = {"task_id": problem, "completion_id": completion, "passed": verdict.passed, "result": verdict.why}
            found[problem].append((completion, about))
        counts = [(len(one), sum(about["passed"] for _, about in one)) for one in found.values()]
        rates = {
            f"pass@{n}": sum(pass_at_k(total, right, n) for total, right in counts) / len(counts)
            for n in k
            if counts and all(total >= n for total, _ in counts)
        }
        return rates, found

    def judge(self, program: str, tests: str) -> Judgement:
        """Whether a program passes its tests."""
        scopes = []
        for source, what in ((program, "the program is"), (tests, "its tests are")):
            try:
                scopes.append(symtable(source, "", "exec"))
            except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
                return Judgement(False, f"{what} not Python: {type(error).__name__}")
        defined, bound = _bound(scopes[0]), _bound(scopes[1])
        used = _used(scopes[1]) - bound
        unknown = used - defined - set(dir(builtins))
        if unknown:
            return Judgement(False, f"the program does not define {', '.join(sorted(unknown))}")
        called, imports = used & defined, _shared_imports(program)
        names = tuple(sorted(called - set(imports)))
        if not names:
            return Judgement(False, "the tests call no function of the program")
        suite = Suite(names, (tests,), setup="\n".join(imports[name] for name in sorted(called & set(imports))))
        try:
            return self.sandbox.judge(suite, program)
        except UncodeError as error:
            if "jail did not start" in str(error):
                raise
            return Judgement(False, str(error))  # these tests fail whatever the program does


def pass_at_k(total: int, right: int, k: int) -> float:
    """The chance that one of k programs is right, of `total` of which `right` are (Chen et al., 2021)."""
    return 1.0 - math.comb(total - right, k) / math.comb(total, k)


def _bound(scope: SymbolTable) -> set[str]:
    """The names that a scope binds: by assignment, import or definition."""
    return {one.get_name() for one in scope.get_symbols() if one.is_assigned() or one.is_imported()}


def _used(scope: SymbolTable) -> set[str]:
    """The global names that a module uses, in whatever scope."""
    is_module = scope.get_type() == "module"
    names = {one.get_name() for one in scope.get_symbols() if one.is_referenced() and (is_module or one.is_global())}
    return names.union(*map(_used, scope.get_children()))


def _shared_imports(program: str) -> dict[str, str]:
    """The imports of a program that the referee may repeat, by the name that each binds. Those inside functions and
    classes do not count."""
    found, nodes = dict[str, str](), list[ast.AST]([ast.parse(program)])
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                module = alias.name if isinstance(node, ast.Import) else node.module or ""
                if module in SHARED_MODULES and alias.name != "*":
                    alone = ast.Import([alias]) if isinstance(node, ast.Import) else ast.ImportFrom(module, [alias], 0)
                    found[alias.asname or alias.name.split(".")[0]] = ast.unparse(alone)
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.expr):
            nodes += ast.iter_child_nodes(node)
    return found


@contextmanager
def code_eval_in_sandbox() -> Iterator[SandboxCodeEval]:
    """While this is open, `evaluate.load("code_eval")` returns our metric, and lm-eval accepts the tasks that use it.

    Tasks load the metric when their module is imported. So modules that hold another one are forgotten before, and
    modules that hold ours afterwards. A task that runs generated code in any other way is refused: there is no option
    that lets it run.
    """
    import evaluate
    from lm_eval import evaluator

    metric, load, run = SandboxCodeEval(), evaluate.load, evaluator.evaluate

    def load_metric(path: str, *args: Any, **options: Any) -> Any:
        return metric if path == NAME else load(path, *args, **options)

    def run_checked(lm: Any, task_dict: Any, *args: Any, **options: Any) -> Any:
        require("tasks" in task_dict, "evaluate takes the tasks of TaskManager.load here, so that they can be checked.")
        for name, task in task_dict["tasks"].items():
            if getattr(task, "UNSAFE_CODE", False):
                _check_task(name, task, metric)
                task.UNSAFE_CODE = False  # its programs run in the sandbox
        return run(lm, task_dict, *args, **options)

    _forget_task_modules()
    evaluate.load, evaluator.evaluate = load_metric, run_checked
    try:
        yield metric
    finally:
        evaluate.load, evaluator.evaluate = load, run
        _forget_task_modules()


def _check_task(name: str, task: Any, metric: SandboxCodeEval) -> None:
    """Raise unless all functions that grade a task have our metric as a global of their module."""
    config = task.config
    graders: list[Callable[..., Any]] = [one["metric"] for one in config.metric_list or () if callable(one["metric"])]
    if callable(config.process_results):
        graders.append(config.process_results)
    safe = [any(value is metric for value in getattr(one, "__globals__", {}).values()) for one in graders]
    if not safe or not all(safe):
        raise UncodeError(
            f"the task '{name}' runs generated code by its own means, outside the sandbox: choose one that uses the "
            f"metric {NAME} (humaneval, mbpp), or one of ours (uncode_humaneval, uncode_mbpp)."
        )


def _forget_task_modules() -> None:
    """Forget the modules of tasks that hold a metric `code_eval`, so that they load it again."""
    held = [
        name
        for name, module in list(sys.modules.items())
        if name.startswith("lm_eval.tasks.")
        and any(getattr(value, "name", None) == NAME for value in list(vars(module).values()))
    ]
    for name in held:
        del sys.modules[name]
