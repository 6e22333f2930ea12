"""Chooses from all samplers of a run those that a figure compares: those that differ in one setting."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import asdict

from ..core.errors import UncodeError, require, suggest
from .measures.anchors import AnchorRanks
from .measures.outcomes import ByTask, Outcomes
from .read_traces import Group

Groups = Mapping[Group, Outcomes]
BASE, UNCODE = "confidence", "uncode"
PRIORS = ("no prior", "informativeness", "position", "both priors")
EFFICIENT = {"tau_leaping": "uncode_tau", "eb": "uncode_eb", "fast_dllm": "uncode_fast_dllm"}
"""Samplers that write several tokens a forward, and the same with Uncode's order."""


def by_label(groups: Groups, label: str) -> dict[str, Outcomes]:
    """One sampler by its label, on every task."""
    found = {group.task: one for group, one in groups.items() if group.sampler == label}
    known = {group.sampler for group in groups}
    require(len(found) > 0, f"the traces hold no sampler '{label}': {suggest(label, known)}")
    return found


def varied(groups: Groups, setting: str, name: str) -> dict[Hashable, dict[str, Outcomes]]:
    """The samplers called `name` that differ in one setting only, on every task, by its value.

    If a task has several such sets, it is the largest one. Its values are sorted.
    """
    found: dict[Hashable, dict[str, Outcomes]] = {}
    for task in _tasks(groups):
        sets: dict[Hashable, dict[Hashable, Outcomes]] = {}
        for group, one in groups.items():
            if group.task == task and one.settings.name == name and not one.has_anchor:
                values = asdict(one.settings)
                value = values.pop(setting)
                sets.setdefault(tuple(values.values()), {})[value] = one
        for value, one in max(sets.values(), key=len, default={}).items():
            found.setdefault(value, {})[task] = one
    if len(found) < 2:
        raise UncodeError(f"the traces hold no two samplers '{name}' that differ in their {setting} alone.")
    return dict(sorted(found.items(), key=lambda item: str(item[0]) if setting == "table" else item[0]))  # type: ignore[arg-type,return-value]


def priors(groups: Groups) -> dict[str, ByTask]:
    """The ablation: no prior, each prior alone, and both, at the rate of the positional prior alone."""
    found: dict[str, dict[str, Outcomes]] = {name: {} for name in PRIORS}
    for task in _tasks(groups):
        ours = {group: one for group, one in groups.items() if group.task == task and _is_plain(one)}
        uncodes = [one for one in ours.values() if one.settings.name == UNCODE]
        position = next((one for one in uncodes if not one.settings.table), None)
        alone = next((one for one in uncodes if one.settings.table and one.settings.rate == 0), None)
        base = next((one for one in ours.values() if one.settings.name == BASE), None)
        both = position and alone and next((one for one in uncodes if _joins(one, position, alone)), None)
        if position and alone and base and both:
            for name, one in zip(PRIORS, (base, alone, position, both), strict=True):
                found[name][task] = one
    if not found[PRIORS[0]]:
        raise UncodeError(
            "the traces do not hold the four samplers of the ablation: confidence, uncode with rate=0, uncode with "
            "informativeness=False, and uncode with both."
        )
    return dict(found)


def efficient(groups: Groups) -> dict[str, ByTask]:
    """The samplers that write several tokens a forward, with the baseline first."""
    found: dict[str, ByTask] = {}
    for name in (BASE, *(one for pair in EFFICIENT.items() for one in pair)):
        ours = {group.task: one for group, one in groups.items() if one.settings.name == name and _is_plain(one)}
        if ours:
            found[name] = ours
    if BASE not in found or len(found) < 2:
        raise UncodeError(f"the traces do not hold '{BASE}' and a sampler that writes several tokens a forward.")
    return found


def anchored(groups: Mapping[Group, AnchorRanks]) -> dict[int, list[tuple[Group, AnchorRanks]]]:
    """The groups with an anchor, by its position."""
    found: dict[int, list[tuple[Group, AnchorRanks]]] = {}
    for group, one in groups.items():
        if one.anchor is not None:
            found.setdefault(one.anchor, []).append((group, one))
    return dict(sorted(found.items()))


def control_of(groups: Mapping[Group, AnchorRanks], group: Group) -> AnchorRanks:
    """The traces of the same model and task without an anchor. `analyze` makes sure that there are some."""
    return next(one for other, one in groups.items() if other[:2] == group[:2] and one.anchor is None)


def speed_up(sampler: ByTask, than: ByTask) -> float:
    """How many times fewer forwards a sampler needs, on the tasks of both."""
    tasks = [task for task in sampler if task in than]
    ours, theirs = (sum(float(one[task].forwards.mean()) for task in tasks) for one in (sampler, than))
    return theirs / ours


def only_model(groups: Iterable[Group]) -> str:
    """The model of the traces. Several are an error."""
    models = sorted({group.model for group in groups})
    require(len(models) == 1, f"this figure shows one model, and the traces have {', '.join(models)}: give one's.")
    return models[0]


def _tasks(groups: Groups) -> list[str]:
    return list(dict.fromkeys(group.task for group in groups))


def _is_plain(one: Outcomes) -> bool:
    return one.settings.rejection == 0 and not one.has_anchor


def _joins(one: Outcomes, position: Outcomes, alone: Outcomes) -> bool:
    ours, theirs = one.settings, alone.settings
    same_table = (ours.table, ours.clip, ours.special) == (theirs.table, theirs.clip, theirs.special)
    return same_table and ours.rate == position.settings.rate
