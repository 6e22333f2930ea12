"""The live page in a real browser, on a real server."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import quote

import pytest

import uncode
from tests.cli.running import run
from tests.server.running import SETTINGS, STORY, TINY, QuickModel, Running, running
from tests.view.browser import Tab, started
from tests.view.test_browser import HOSTILE
from uncode.server.settings import Origin

pytestmark = pytest.mark.xdist_group("browser")
Open = Callable[..., Tab]
LIVE = replace(SETTINGS, origin=Origin("tiny", dtype="float32"), example=STORY, length=12)
KEY = "a key of this test"
SLOW = 0.25
"""Seconds of a forward that a test interrupts. A busy machine needs some of them for a click."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with started() as found:
        yield found


@pytest.fixture(scope="module")
def quick() -> Iterator[Running]:
    with running(QuickModel(), LIVE) as server:
        yield server


@pytest.fixture
def tab(browser: Any) -> Iterator[Open]:
    """Opens the page. At the end none may have reported an error, or asked another server."""
    tabs: list[tuple[Tab, str, int]] = []

    def opened(server: Running, errors: int = 0, ready: str = ".bench", **settings: Any) -> Tab:
        """`errors` are answers with an error status: the browser itself writes them to the console."""
        found = Tab(browser, server.address, **settings)
        found.context.grant_permissions(["clipboard-read", "clipboard-write"])
        found.page.locator(ready).wait_for()
        tabs.append((found, server.address, errors))
        return found

    yield opened
    for each, address, errors in tabs:
        unexpected = [text for text in each.errors if not text.startswith("Failed to load resource")]
        assert unexpected == [] and len(each.errors) == errors
        assert all(url.startswith((address, "blob:")) for url in each.requests)
        each.close()


def button(tab: Tab, name: str) -> Any:
    return tab.page.get_by_role("button", name=name, exact=True)


def decode(tab: Tab, outcome: str = "Finished.") -> None:
    button(tab, "Decode").click()
    tab.page.locator(".progress", has_text=outcome).wait_for()


def copied(tab: Tab, name: str) -> str:
    button(tab, name).click()
    found: str = tab.page.evaluate("navigator.clipboard.readText()")
    return found


def set_prompt(tab: Tab, text: str) -> None:
    tab.page.get_by_label("Prompt", exact=True).last.fill(text)


def test_decode_streams_the_commits(tab: Open, quick: Running) -> None:
    shown, model = tab(quick), quick.service.denoiser
    assert isinstance(model, QuickModel)
    model.seconds = SLOW
    assert shown.page.title() == "uncode · tiny" and "context 192" in shown.page.locator("h1").inner_text()
    button(shown, "Decode").click()
    shown.page.locator(".canvas .written").first.wait_for()
    assert button(shown, "Stop").count() == 1, "it is drawn while it runs"
    model.seconds = 0.0
    shown.page.locator(".progress", has_text="Finished.").wait_for()
    answer = quick.post("/v1/completions", prompt=STORY, max_tokens=12, seed=0).json()
    assert copied(shown, "Copy the text") == answer["choices"][0]["text"]
    forwards = answer["usage"]["completion_tokens_details"]["forwards"]
    assert shown.page.locator(".summary").inner_text().startswith(f"{forwards} forwards")
    assert shown.page.locator(".readout").inner_text() == f"{forwards} of {forwards}"
    shown.page.locator(".canvas .t").first.click()
    assert "informativeness" in shown.page.locator(".details").inner_text().lower(), "the trace has each term"


def test_stop_drops_the_row(tab: Open) -> None:
    model = QuickModel(SLOW)
    with running(model, replace(LIVE, length=100)) as slow:
        shown = tab(slow)
        button(shown, "Decode").click()
        shown.page.locator(".canvas .written").nth(2).wait_for()
        button(shown, "Stop").click()
        shown.page.locator(".progress", has_text="Stopped.").wait_for()
        slow.wait_until_idle()
        assert slow.ended("client_gone") == 1
        assert shown.page.locator(".state").inner_text() == "Cancelled: the rest stays masked."
        assert shown.masked() > 50 and shown.count(".actions:visible") == 0
        shown.page.get_by_label("length", exact=True).fill("4")
        model.seconds = 0.0
        decode(shown)
        assert shown.count(".canvas .t") == 4


@pytest.mark.slow
def test_compare_and_save(tab: Open, quick: Running, tmp_path: Path) -> None:
    shown = tab(quick)
    button(shown, "Compare with another sampler").click()
    shown.page.get_by_label("Sampler A").select_option("remdm")
    shown.page.get_by_label("Sampler B").select_option("semi_ar")
    shown.page.get_by_label("blocks", exact=True).fill("3")
    decode(shown)
    assert shown.texts(".trace h2") == ["remdm", "semi_ar · blocks 3"]
    assert "erasures" in shown.page.locator(".order svg").first.get_attribute("aria-label")
    boxes = [shown.page.locator(".trace").nth(at).bounding_box() for at in (0, 1)]
    assert boxes[0]["y"] == boxes[1]["y"], "they stand side by side"
    assert shown.page.locator(".difference").inner_text() != ""
    with shown.page.expect_download() as download:
        button(shown, "Save the trace").click()
    trace = tmp_path / "trace.jsonl"
    download.value.save_as(trace)
    rows = [json.loads(line) for line in trace.read_text().splitlines()]
    assert [len(row["generated_ids"]) for row in rows] == [12, 12] and rows[0]["events"]
    done = run("view", str(trace), "--out", str(tmp_path / "page.html"))
    assert done.returncode == 0 and "2 traces" in done.stdout, done.stderr
    assert done.stderr == ""
    button(shown, "Compare no longer").click()
    decode(shown)
    assert shown.count(".trace") == 1


@pytest.fixture(scope="module")
def tiny() -> Iterator[Running]:
    with running(TINY(), replace(LIVE, length=24)) as server:
        yield server


def run_python(code: str, load: Callable[..., Any] = lambda name, dtype: TINY()) -> str:
    """What a program prints. To load tiny again takes a second, so most tests take the one that is there."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), patch.object(uncode, "load", load):
        exec(compile(code, "copied", "exec"), {})
    return printed.getvalue().removesuffix("\n")


def test_what_is_copied_repeats_the_decode(tab: Open, tiny: Running) -> None:
    shown = tab(tiny)
    page = shown.page
    page.get_by_label("rate", exact=True).fill("0.5")
    page.get_by_label("temperature", exact=True).fill("0.8")
    page.get_by_label("steps, slider", exact=True).fill("16")
    page.get_by_label("proxy").select_option("entropy")
    page.get_by_label("seed").fill("7")
    page.get_by_label("stop at EOS").uncheck()
    decode(shown)
    text = copied(shown, "Copy the text")
    assert shown.texts(".trace h2") == ["uncode · steps 16 · rate 0.5 · proxy entropy · temperature 0.8"]
    assert run_python(copied(shown, "Copy: Python"), uncode.load) == text
    words = shlex.split(copied(shown, "Copy: Command line"))
    assert words[0] == "uncode"
    done = run(*words[1:])
    assert done.returncode == 0 and done.stdout.removesuffix("\n") == text


@pytest.mark.slow
def test_a_sampler_of_the_model_is_repeated_by_name(tab: Open, tiny: Running) -> None:
    shown = tab(tiny)
    shown.page.get_by_label("Sampler").select_option("story")
    assert shown.count(".card .control") == 0
    decode(shown)
    assert 'sampler="story"' in copied(shown, "Copy: Python")
    assert run_python(copied(shown, "Copy: Python")) == copied(shown, "Copy the text")


def test_text_with_gaps(tab: Open, tiny: Running) -> None:
    shown = tab(tiny)
    set_prompt(shown, "The eggs cost 6 * 3 = coins. <mask:3> is text.")
    shown.page.locator("textarea").evaluate("area => area.setSelectionRange(21, 21)")
    shown.press("Control+g")
    shown.page.keyboard.type("2")
    assert shown.page.locator("textarea").nth(1).input_value() == " coins. <mask:3> is text."
    assert shown.page.get_by_label("length", exact=True).is_hidden(), "gaps have their sizes"
    with shown.page.expect_request("**/v1/completions") as sent:
        decode(shown)
    body = sent.value.post_data_json
    assert body["infill"] == ["The eggs cost 6 * 3 =", 2, " coins. <mask:3> is text."] and "max_tokens" not in body
    text = copied(shown, "Copy the text")
    assert text.startswith("The eggs cost 6 * 3 =") and text.endswith(" coins. <mask:3> is text.")
    assert shown.count(".canvas .given") > 3 and shown.count(".canvas .written") == 2
    assert run_python(copied(shown, "Copy: Python")) == text, "the marker is repeated as text"
    button(shown, "Remove gap 1").click()
    assert shown.page.locator("textarea").input_value() == "The eggs cost 6 * 3 = coins. <mask:3> is text."


@pytest.mark.slow
def test_a_chat_model_gets_a_message(tab: Open) -> None:
    model = QuickModel()
    model.tokenizer = copy.copy(model.tokenizer)
    model.tokenizer.chat_template = "{% for one in messages %}{{ one.content }}{% endfor %}"
    with running(model, LIVE) as server:
        shown = tab(server)
        with shown.page.expect_request("**/v1/chat/completions") as sent:
            decode(shown)
        assert sent.value.post_data_json["messages"] == [{"role": "user", "content": STORY}]
        assert " --chat " in copied(shown, "Copy: Command line")
        answer = server.post("/v1/chat/completions", messages=[{"role": "user", "content": STORY}], seed=0).json()
        assert copied(shown, "Copy the text") == answer["choices"][0]["message"]["content"]
        shown.page.get_by_label("chat").uncheck()
        with shown.page.expect_request("**/v1/completions"):
            decode(shown)


@pytest.mark.slow
def test_gaps_are_repeated_as_markers(tab: Open, tiny: Running) -> None:
    shown = tab(tiny)
    set_prompt(shown, "6 * 3 = ")
    button(shown, "Insert a gap").click()
    decode(shown)
    assert 'prompt = "6 * 3 = <mask:4>"' in copied(shown, "Copy: Python")
    assert run_python(copied(shown, "Copy: Python")) == copied(shown, "Copy the text")
    shown.page.locator("textarea").nth(1).press("Backspace")
    assert shown.count("textarea") == 1, "Backspace after a gap removes it"


def test_keys(tab: Open) -> None:
    with running(QuickModel(SLOW), replace(LIVE, length=100)) as slow:
        shown = tab(slow)
        shown.page.get_by_label("Prompt", exact=True).last.focus()
        shown.press("Control+Enter")
        shown.page.locator(".canvas .written").first.wait_for()
        shown.press("Escape")
        shown.page.locator(".progress", has_text="Stopped.").wait_for()
        shown.page.locator(".canvas").focus()
        shown.press("t", "?")
        assert shown.page.locator("html").get_attribute("data-theme") == "dark"
        assert shown.count("dialog[open]") == 1


def stream_of(texts: list[str]) -> str:
    """What a server sends of these tokens."""
    canvas = {"length": len(texts), "given": [], "eos_ids": [1]}
    chunks: list[dict[str, Any]] = [{"choices": [{"index": 0, "text": "", "canvas": canvas}]}]
    for step, text in enumerate(texts):
        commit = {"step": step, "offset": step, "token": 9, "text": text, "logp": -1.0}
        chunks.append({"choices": [{"index": 0, "text": text, "commits": [commit]}]})
    return "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"


def test_nothing_that_a_model_wrote_can_run(tab: Open, quick: Running) -> None:
    shown = tab(quick)
    stream = {"content_type": "text/event-stream", "body": stream_of(HOSTILE)}
    shown.page.route("**/v1/completions", lambda route: route.fulfill(**stream))
    decode(shown)
    assert shown.page.title() == "uncode · tiny" and shown.count(".canvas img, .canvas script") == 0
    assert "\\u202e" in shown.page.locator(".canvas").inner_text()
    error = {"error": {"message": "<img src=x onerror=\"document.title='run'\"> \u202e"}}
    failing = f"data: {json.dumps(error)}\n\n"
    shown.page.unroute("**/v1/completions")
    shown.page.route("**/v1/completions", lambda route: route.fulfill(content_type="text/event-stream", body=failing))
    button(shown, "Decode").click()
    shown.page.locator(".problem", has_text="<img").wait_for()
    assert shown.page.title() == "uncode · tiny"


def test_an_error_is_one_sentence(tab: Open, quick: Running) -> None:
    shown = tab(quick, errors=3)
    shown.page.get_by_label("length", exact=True).fill("5000")
    button(shown, "Decode").click()
    problem = shown.page.locator(".problem", has_text="5000")
    problem.wait_for()
    assert re.fullmatch(r"5000 tokens are too many: .*\.", problem.inner_text())
    shown.page.get_by_label("length", exact=True).fill("4")
    button(shown, "Compare with another sampler").click()
    shown.page.get_by_label("rate", exact=True).fill("-1")
    button(shown, "Decode").click()
    shown.page.locator(".problem", has_text="Sampler A: ").wait_for()
    shown.page.get_by_label("rate", exact=True).fill("0.1")
    decode(shown)
    assert shown.page.locator(".problem").inner_text() == ""
    button(shown, "Compare no longer").click()
    shown.context.set_offline(True)
    button(shown, "Decode").click()
    shown.page.locator(".problem", has_text="The server cannot be reached: check that it runs.").wait_for()


@pytest.mark.slow
def test_the_text_before_the_first_gap_is_on_the_canvas(tab: Open, quick: Running) -> None:
    shown = tab(quick)
    set_prompt(shown, "Ada <b>has</b>\nnow \u202e coins.")
    shown.page.locator("textarea").evaluate("area => area.setSelectionRange(19, 19)")
    button(shown, "Insert a gap").click()
    decode(shown)
    assert shown.texts(".canvas .lead") == ["Ada <b>has</b>\nnow "]
    text = shown.page.locator(".canvas").inner_text()
    assert text.startswith("Ada <b>has</b>\nnow ") and text.rstrip().endswith(".") and "\\u202e" in text
    button(shown, "Remove gap 1").click()
    decode(shown)
    assert shown.count(".canvas .lead") == 0, "an answer begins after the prompt"


@pytest.mark.slow
def test_a_refused_decode_leaves_no_result(tab: Open, quick: Running) -> None:
    """Beside another prompt the old result would be taken for its answer."""
    shown = tab(quick, errors=1)
    decode(shown)
    shown.page.get_by_label("length", exact=True).fill("5000")
    button(shown, "Decode").click()
    shown.page.locator(".problem", has_text="5000").wait_for()
    assert shown.count(".results .trace") == shown.count(".actions:visible") == 0
    assert shown.count(".results .empty") == 1 and shown.count(".results.old") == 0
    shown.page.get_by_label("length", exact=True).fill("4")
    decode(shown)
    assert shown.count(".canvas .t") == 4


@pytest.mark.slow
def test_an_old_result_is_faint_while_the_next_decode_waits(tab: Open) -> None:
    model = QuickModel()
    with running(model, replace(LIVE, length=6)) as server:
        shown = tab(server)
        decode(shown)
        model.seconds = 1.5
        button(shown, "Decode").click()
        shown.page.locator(".results.old[aria-busy=true] .trace").wait_for()
        shown.page.locator(".results:not(.old) .canvas .masked").first.wait_for()
        model.seconds = 0.0
        shown.page.locator(".progress", has_text="Finished.").wait_for()


@pytest.mark.slow
def test_a_commit_without_a_log_probability_is_drawn(tab: Open, quick: Running) -> None:
    shown = tab(quick)
    stream = {"content_type": "text/event-stream", "body": stream_of(["a", "b"]).replace("-1.0", "null")}
    shown.page.route("**/v1/completions", lambda route: route.fulfill(**stream))
    decode(shown)
    assert shown.written() == ["a", "b"]
    shown.page.get_by_label("Colour by").select_option("confidence")
    shown.page.locator(".canvas .t").first.click()
    assert "probability\n\u2013" in shown.page.locator(".details").inner_text()


def test_a_constraint_holds_and_what_it_fixes_is_grey(tab: Open, tiny: Running) -> None:
    """It is in the link too, and in what is copied."""
    shown = tab(tiny)
    field = shown.page.get_by_label("text of the constraint")
    assert field.is_hidden()
    shown.page.get_by_label("constraint", exact=True).select_option("regex")
    field.fill("Mia has [0-9]{1,2} shells")
    decode(shown)
    text = copied(shown, "Copy the text")
    assert re.fullmatch("Mia has [0-9]{1,2} shells", text)
    grey = "".join(shown.texts(".canvas .forced"))
    assert (
        "shells" in grey and not re.search("[0-9]", grey) and "that the constraint allows" in shown.texts(".signs")[0]
    )
    assert run_python(copied(shown, "Copy: Python")) == text
    assert "--regex 'Mia has [0-9]{1,2} shells'" in copied(shown, "Copy: Command line")
    with running(tiny.service.denoiser, replace(LIVE, length=24)) as server:
        other = tab(server)
        other.page.evaluate("fragment => (location.hash = fragment)", shown.page.url.partition("#")[2])
        other.page.wait_for_function("document.querySelector('.constraint select').value === 'regex'")
        assert other.page.get_by_label("text of the constraint").input_value() == "Mia has [0-9]{1,2} shells"
        other.page.get_by_label("constraint", exact=True).select_option("json_schema")
        button(other, "Decode").click()
        other.page.locator(".problem", has_text="The JSON schema is no JSON").wait_for()
        other.page.get_by_label("text of the constraint").fill('{"const": 9007199254740993}')
        button(other, "Decode").click()
        other.page.locator(".problem", has_text="a browser would round").wait_for()
        button(other, "Insert a gap").click()
        assert other.page.get_by_label("constraint", exact=True).is_hidden()


@pytest.mark.slow
def test_a_reload_and_a_link_keep_the_settings(tab: Open, quick: Running) -> None:
    shown = tab(quick)
    assert shown.page.url == f"{quick.address}/", "an untouched page has no settings in its address"
    set_prompt(shown, "Ada has & <mask:3> coins. ü")
    shown.page.locator("textarea").evaluate("area => area.setSelectionRange(8, 8)")
    button(shown, "Insert a gap").click()
    button(shown, "Compare with another sampler").click()
    shown.page.get_by_label("Sampler A").select_option("fast_dllm")
    shown.page.get_by_label("threshold", exact=True).fill("0.35")
    shown.page.get_by_role("group", name="Sampler A").get_by_label("cache").select_option("dual")
    shown.page.get_by_label("Sampler B").select_option("legacy.llada_eos")
    shown.page.get_by_label("seed", exact=True).fill("7")
    link = copied(shown, "Copy a link")
    decode(shown)
    assert shown.page.url == link
    for again in (shown, tab(quick)):
        if again is shown:
            again.page.reload()
        else:
            again.page.goto(link)
        again.page.locator(".bench").wait_for()
        assert [one.input_value() for one in again.page.locator("textarea").all()] == [
            "Ada has ",
            "& <mask:3> coins. ü",
        ]
        assert again.page.get_by_label("Tokens of gap 1").input_value() == "4"
        assert again.page.get_by_label("Sampler A").input_value() == "fast_dllm"
        assert again.page.get_by_label("threshold", exact=True).input_value() == "0.35"
        assert again.page.get_by_role("group", name="Sampler A").get_by_label("cache").input_value() == "dual"
        assert again.page.get_by_label("Sampler B").input_value() == "legacy.llada_eos"
        assert again.page.get_by_label("seed", exact=True).input_value() == "7"
        assert again.page.locator(".problem").inner_text() == "" and again.count(".trace") == 0, "nothing is decoded"
    assert all("coins" not in json.dumps(line) for line in quick.log), "a fragment is not sent"


HOSTILE_LINKS = {
    "#%7B": "cannot be read",
    "#top": "cannot be read",
    "sampler": "is of another server",
    "option": "is of another server",
    "value": "is of another server",
}


@pytest.mark.parametrize("wrong", HOSTILE_LINKS)
def test_a_link_is_a_text_of_someone_else(tab: Open, quick: Running, wrong: str) -> None:
    shown = tab(quick)
    markup = "<img src=x onerror=\"document.title='run'\"> \u202e"
    options: dict[str, Any] = {"steps": None, "temperature": 0}
    settings = {
        "parts": [markup, 2, markup],
        "shared": {"length": 8, "seed": markup if wrong == "value" else 1, "stop_at_eos": True},
        "samplers": [{"id": markup if wrong == "sampler" else "confidence", "options": options}],
    }
    if wrong == "option":
        options |= {markup: 1, "__proto__": {"temperature": 2}}
    fragment = wrong if wrong.startswith("#") else "#" + quote(json.dumps(settings))
    shown.page.evaluate("fragment => (location.hash = fragment)", fragment)
    shown.page.locator(".problem", has_text=HOSTILE_LINKS[wrong]).wait_for()
    assert shown.page.title() == "uncode · tiny" and shown.count(".bench img") == 0
    if not wrong.startswith("#"):
        assert shown.page.locator("textarea").first.input_value() == markup
        decode(shown)
        assert shown.page.title() == "uncode · tiny" and shown.count(".bench img") == 0


@pytest.mark.slow
def test_a_prompt_that_is_too_long_for_a_link_is_said(tab: Open, quick: Running) -> None:
    shown = tab(quick)
    set_prompt(shown, "a " * 40_000)
    shown.page.locator("button:disabled", has_text="Copy a link").wait_for()
    assert "#" not in shown.page.url
    set_prompt(shown, "a b")
    shown.page.locator("button:enabled", has_text="Copy a link").wait_for()


@pytest.mark.slow
def test_help_says_what_the_words_mean(tab: Open, quick: Running) -> None:
    shown = tab(quick)
    button(shown, "Help").click()
    text = shown.page.locator("dialog[open]").inner_text()
    for word in ("sampler\t", "trivial\t", "entropy\t", "confidence\t", "score\t", "legacy.llada_eos\t", "Space"):
        assert word in text, word
    assert shown.page.locator("dialog[open]").evaluate("dialog => dialog.scrollTop") == 0, "it opens at its top"
    assert shown.violations() == []


@pytest.mark.slow
def test_a_failed_forward_is_told(tab: Open) -> None:
    model = QuickModel(SLOW)
    with running(model, replace(LIVE, length=60)) as server:
        shown = tab(server)
        button(shown, "Decode").click()
        shown.page.locator(".canvas .written").first.wait_for()
        model.failure.append(ValueError("broken"))
        shown.page.locator(".progress", has_text="Failed.").wait_for()
        assert shown.page.locator(".state").inner_text().startswith("Failed: ")
        model.seconds = 0.0
        decode(shown)


def test_the_key_stays_in_memory(tab: Open) -> None:
    with running(QuickModel(), replace(LIVE, api_key=KEY)) as server:
        shown = tab(server, errors=4, ready="dialog[open]")
        for key in ("wrong", KEY):
            shown.page.get_by_label("API key").last.fill(key)
            with shown.page.expect_response("**/v1/samplers"):
                button(shown, "Open").click()
        shown.page.locator(".bench").wait_for()
        decode(shown)
        stored = shown.page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])")
        assert KEY not in stored and KEY not in shown.page.url
        assert all(KEY not in url for url in shown.requests)


@pytest.mark.parametrize(
    ("scheme", "width"),
    [
        pytest.param("light", 1280, marks=pytest.mark.slow),
        pytest.param("dark", 1280, marks=pytest.mark.slow),
        ("dark", 390),
    ],
)
def test_accessible_in_both_themes_and_on_a_phone(tab: Open, quick: Running, scheme: str, width: int) -> None:
    shown = tab(quick, scheme=scheme, width=width)
    if (scheme, width) == ("light", 1280):
        assert shown.violations() == []
    set_prompt(shown, "one two")
    button(shown, "Insert a gap").click()
    button(shown, "Compare with another sampler").click()
    decode(shown)
    assert shown.violations() == []
    assert shown.page.evaluate("document.documentElement.scrollWidth") <= width
    if width < 500:
        assert shown.page.locator(".transport").is_visible()
        assert shown.page.locator(".transport").bounding_box()["y"] < 800, "the canvas is in sight"
        assert button(shown, "Decode").bounding_box()["y"] > 600, "the button stays in reach"
