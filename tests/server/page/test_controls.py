"""What the live page is made from: the list of samplers, the page itself, and the opening of a stream."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.cli.running import run
from tests.server.running import SETTINGS, QuickModel, running
from uncode.cli.verbs.serve import EXAMPLES
from uncode.samplers.catalog import catalog
from uncode.samplers.options import OPTIONS
from uncode.server.api.fields import SamplerFields
from uncode.server.api.sampler_list import sampler_list
from uncode.server.decoding.samplers import Samplers
from uncode.server.page.route import live_page


@pytest.fixture(scope="module")
def samplers() -> list[dict[str, Any]]:
    return sampler_list(Samplers(QuickModel(), "uncode", {}))


def test_every_sampler_and_option_is_listed(samplers: list[dict[str, Any]]) -> None:
    listed = {one["id"]: {option["name"] for option in one["options"]} for one in samplers}
    for name, entry in catalog().items():
        assert listed[name] == {option.name for option in entry.options} - {"frequency"}
    assert "story" in listed, "the model's own samplers are listed too"


def test_every_number_has_a_slider_in_its_range(samplers: list[dict[str, Any]]) -> None:
    for option in OPTIONS.values():
        if option.range is not None and option.slider is not None:
            (fits, _), (first, last, _) = option.range, option.slider
            assert fits(first) and (last is None or fits(last)), option.name
    for sent in [option for one in samplers for option in one["options"]]:
        slider, value = sent.get("slider"), sent["default"]
        assert (slider is None) == (sent["kind"] in ("bool", "choice"))
        if slider and value is not None and slider["max"] is not None:
            assert slider["min"] <= value <= slider["max"], sent
        if sent["kind"] == "choice":
            assert value in sent["choices"]


def test_every_option_can_be_sent(samplers: list[dict[str, Any]]) -> None:
    known = set(SamplerFields.model_fields)
    assert {option["name"] for one in samplers for option in one["options"]} <= known


def test_which_samplers_take_a_table(samplers: list[dict[str, Any]]) -> None:
    found = {one["id"]: (one["takes_table"], one["needs_table"]) for one in samplers}
    assert found["uncode"] == (True, False) and found["legacy.uncode_release"] == (True, True)
    assert found["confidence"] == found["story"] == (False, False)


def test_the_example_of_tiny_is_one_of_its_problems() -> None:
    assert run("tasks", "mini_story", "--example", "347").stdout.strip() == EXAMPLES["tiny"]


def test_the_page_runs_its_own_script_alone() -> None:
    text, policy = live_page()
    assert text.count("<script>") == 1 and "import " not in text.partition("<script>")[2].partition("\n}")[0]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "connect-src 'self'" in policy
    assert not re.search(r"\{\{\w+\}\}", text)
    with running(settings=SETTINGS) as server, server.http() as client:
        found = client.get("/")
    assert found.status_code == 200 and found.headers["content-type"].startswith("text/html")
    assert "frame-ancestors 'none'" in found.headers["content-security-policy"]


@pytest.mark.parametrize("commits", [True, False])
def test_a_stream_of_commits_opens_with_its_canvas(commits: bool) -> None:
    body = {"infill": ["The", 2, " eggs cost", 1, " coins."], "stream": True, "commits": commits}
    with running() as server, server.http() as client:
        lines = client.post("/v1/completions", json=body).text.splitlines()
    chunks = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
    opened = [chunk["choices"][0]["canvas"] for chunk in chunks if "canvas" in chunk["choices"][0]]
    if not commits:
        assert opened == []
        return
    (canvas,) = opened
    assert "canvas" in chunks[0]["choices"][0]
    assert "".join(one["text"] for one in canvas["given"]) == " eggs cost coins."
    assert canvas["length"] == len(canvas["given"]) + 3 and canvas["given"][0]["offset"] == 2
    written = [commit["offset"] for chunk in chunks for commit in chunk["choices"][0].get("commits", [])]
    assert sorted(written) == sorted(set(range(canvas["length"])) - {one["offset"] for one in canvas["given"]})


def test_a_stream_tells_the_numbers_of_the_trace() -> None:
    body = {"prompt": "one two", "max_tokens": 9, "stream": True, "commits": True, "trace": True, "sampler": "semi_ar"}
    with running() as server, server.http() as client:
        lines = client.post("/v1/completions", json=body | {"blocks": 3}).text.splitlines()
    choices = [json.loads(line[6:])["choices"][0] for line in lines if line.startswith("data: {")]
    trace = choices[-1]["trace"]
    steps = [choice for choice in choices if "commits" in choice]
    assert [step["mean_entropy"] for step in steps] == pytest.approx(trace["mean_entropy"])
    commits = sorted((one for step in steps for one in step["commits"]), key=lambda one: one["offset"])
    for name in ("logp", "entropy"):
        assert [one[name] for one in commits] == pytest.approx(trace[name])
