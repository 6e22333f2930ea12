"""The structure of the package: imports point one way, core names no model, and the public names are fixed."""

from __future__ import annotations

import ast
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import uncode

SRC = Path(uncode.__file__).parent
FILES = sorted(SRC.rglob("*.py"))
MODULES = {
    ".".join(file.relative_to(SRC.parent).with_suffix("").parts).removesuffix(".__init__"): file for file in FILES
}
"""Every file by the name that imports give it."""
TABLE = (SRC.parents[1] / "CONTRIBUTING.md").read_text().partition("## Where things go\n")[2].partition("\n## ")[0]
ALLOWED_IMPORTS = {
    name: {word.strip("`") for word in uses.split(", ")} - {"-"}
    for name, uses in re.findall(r"^\| `(\w+)` \|.*\| ([^|]*) \|$", TABLE, flags=re.M)
}
"""What each room may import, by the table of CONTRIBUTING.md."""
DOOR = {"__init__", "__main__"}
"""The public names and the command: they may import any room."""


def imported(file: Path) -> set[str]:
    """The modules that a file imports, at any depth, whether at once, later, or for the type checker alone."""
    found: set[str] = set()
    inside = ("uncode", *file.relative_to(SRC).parts[:-1])
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = ".".join([*inside[: len(inside) - node.level + 1], *([node.module] if node.module else [])])
            base = base if node.level else str(node.module)
            inner = {alias.name: f"{base}.{alias.name}" for alias in node.names}
            found |= {whole if whole in MODULES else base for whole in inner.values()}
    return found


def room(module: str) -> str:
    """The child of the package that a module lies in."""
    return module.split(".")[1] if "." in module else "__init__"


def test_the_table_lists_every_room() -> None:
    rooms = {path.stem for path in SRC.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
    assert set(ALLOWED_IMPORTS) == rooms - DOOR


@pytest.mark.parametrize("name", ALLOWED_IMPORTS)
def test_rooms_import_only_what_is_below_them(name: str) -> None:
    for module, file in MODULES.items():
        if room(module) == name:
            used = {room(each) for each in imported(file) if each in MODULES}
            assert used <= ALLOWED_IMPORTS[name] | {name}, f"{module} imports {used - ALLOWED_IMPORTS[name]}"


def test_no_imports_go_in_a_circle() -> None:
    """Of all modules; what only the type checker imports counts too."""
    uses = {module: imported(file) & set(MODULES) - {module, "uncode"} for module, file in MODULES.items()}
    while free := {module for module, used in uses.items() if not used & set(uses)}:
        uses = {module: used for module, used in uses.items() if module not in free}
    while unused := set(uses) - set().union(*uses.values()):
        uses = {module: used for module, used in uses.items() if module not in unused}
    assert not uses, f"these import each other: {sorted(uses)}"


def test_no_package_is_crowded() -> None:
    """A package of more than a dozen files is divided into subpackages."""
    for package in {file.parent for file in FILES}:
        files = [file for file in package.glob("*.py") if not file.name.startswith("__")]
        inner = [child for child in package.iterdir() if (child / "__init__.py").is_file()]
        assert len(files) <= 12 or inner, f"{package.name} holds {len(files)} files"


def test_core_needs_torch_and_numpy_alone() -> None:
    for file in (SRC / "core").rglob("*.py"):
        outside = {module.split(".")[0] for module in imported(file)} - set(sys.stdlib_module_names) - {"uncode"}
        kernels = {"triton"} if file.name.endswith("_triton.py") else set()  # imported where logits lie on a GPU
        assert outside <= {"torch", "numpy"} | kernels, f"{file.name} imports {outside}"


def test_core_names_no_model_and_holds_no_ids() -> None:
    for file in (SRC / "core").rglob("*.py"):
        code = re.sub(r'""".*?"""|#[^\n]*', "", file.read_text(), flags=re.S)
        assert not re.search(r"llada|dream|126\d{3}|1516\d\d", code, flags=re.I), file.name


def test_importing_uncode_is_light() -> None:
    """Extras and slow packages are imported where they are used, not at the door."""
    script = "import sys, uncode; print(*sorted(m for m in sys.modules if '.' not in m))"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert not {"transformers", "matplotlib", "ray", "fastapi", "lm_eval", "datasets", "rich", "typer"} & set(loaded)


def test_the_public_names() -> None:
    assert uncode.__all__ == sorted(uncode.__all__)
    assert uncode.__all__ == [
        "Canvas", "Decider", "FrequencyTable", "FunctionDenoiser", "Guided", "Policy", "Rollout", "Sampler", "Stalled",
        "Step", "Trace", "UncodeError",
        "__version__", "canvas_from_texts", "choose_threshold", "constraint", "decode", "generate", "interventions",
        "legacy", "load", "log_likelihood", "presets", "rollout", "steps", "two_orders", "wrap",
    ]  # fmt: skip
    assert all(hasattr(uncode, name) for name in uncode.__all__)
    modules = {module.name for module in pkgutil.iter_modules(uncode.__path__)}
    assert not modules & set(uncode.__all__), "importing such a module would replace the public name"


def test_no_six_lines_are_repeated() -> None:
    """Runs of six code lines that occur again, in this file or another. Commands that share options name them each."""
    seen: dict[tuple[str, ...], str] = {}
    for file in FILES:
        tree = ast.parse(file.read_text())
        prose = {
            line
            for node in ast.walk(tree)
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
            for line in range(node.lineno, (node.end_lineno or 0) + 1)
        }
        lines = [
            (number, line.strip())
            for number, line in enumerate(file.read_text().splitlines(), 1)
            if number not in prose
            and line.strip()
            and not line.strip().startswith(("#", "from ", "import ", ")", "]"))
            and not re.fullmatch(r"\w+: shared\.\w+ = .*,", line.strip())
        ]
        for start in range(len(lines) - 5):
            run = tuple(text for _, text in lines[start : start + 6])
            where = f"{file.name}:{lines[start][0]}"
            assert seen.setdefault(run, where) == where, f"{where} repeats {seen[run]}"


def test_every_path_to_a_model_goes_through_advance(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stepper is the only place that asks a session for logits; `testing` checks sessions."""
    others = [file for file in FILES if file.parent.name != "testing"]
    calls = [file.name for file in others if re.search(r"session\.logits\(", file.read_text())]
    # drafts and probes run within a step of `advance`; likelihood measures, it does not decode
    assert sorted(calls) == ["advance.py", "draft_steps.py", "likelihood.py", "probes.py"]
    from uncode.core.stepper import decode as stepper

    counted, real = [], stepper.advance
    monkeypatch.setattr(stepper, "advance", lambda state: (counted.append(1), real(state))[1])
    model = uncode.load("toy")
    text = uncode.generate(model, "add 2 3 4", sampler=uncode.presets.left_to_right(), length=24)
    assert text.endswith("9 .") and len(counted) == 21
