"""The page in a real browser: every control, keys, themes, hostile tokens, accessibility, speed."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

import uncode
from tests.view.browser import Tab, started
from tests.view.test_page import long_row, row_of
from uncode.generation.generate import start_decode
from uncode.generation.prompt import read_prompts
from uncode.view.page import Trajectory, Verdict, write_page

pytestmark = pytest.mark.xdist_group("browser")
Open = Callable[..., Tab]
FRAME_MS = 12.0
"""Script and layout of a frame, at most."""
MAX_DROPPED = 2
"""Frames of 200 that the browser may drop: one in a hundred, because other work runs on the machine too."""
HOSTILE = [
    "<img src=x onerror=\"document.title='run'\">",
    "</script><script>document.title='run'</script>",
    "\u202edlrow",
    "\u2066a\u2069",
    "\x00\x1b[31m",
    "{{script}}",
    "javascript:alert(1)",
    "\u05d0\u05d1",
    "Z\u0351\u0352\u0353" * 9,
    "w" * 3000,
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with started() as found:
        yield found


@pytest.fixture
def tab(browser: Any, tmp_path: Path) -> Iterator[Open]:
    """Opens trajectories as a page. At the end no page may have reported an error or asked for another file."""
    tabs: list[Tab] = []

    def opened(*trajectories: Trajectory, **settings: Any) -> Tab:
        file = tmp_path / f"{len(tabs)}.html"
        write_page(file, trajectories, "A page")
        tabs.append(Tab(browser, file, **settings))
        return tabs[-1]

    yield opened
    for each in tabs:
        assert each.errors == [] and len(each.requests) == 1
        each.close()


def one(**notes: Any) -> Trajectory:
    return Trajectory("left to right", row_of(uncode.presets.left_to_right(), **notes), Verdict(True, "8 is 8"))


def two() -> list[Trajectory]:
    other = row_of(uncode.presets.confidence())
    other["generated_texts"][4] = " other"
    return [one(), Trajectory("confidence", other, Verdict(False))]


def test_buttons_and_scrubber(tab: Open) -> None:
    shown = tab(one())
    page, last = shown.page, 21
    assert shown.position == last and shown.masked() == 0
    page.get_by_label("First step").click()
    assert shown.position == 0 and shown.masked() == 24
    page.get_by_label("Step forward").click()
    assert shown.position == 1 and shown.written() == ["first"]
    page.get_by_label("Step forward").click()
    page.get_by_label("Step back").click()
    assert shown.written() == ["first"]
    assert page.locator(".status").inner_text().startswith("after step 0 · 1 of 24 committed · 0 % trivial")
    page.get_by_label("Last step").click()
    assert shown.position == last and len(shown.written()) == 20 + 1
    shown.seek(7)
    assert len(shown.written()) == 7 and page.locator(".readout").inner_text() == "7 of 21"
    assert "3 filled" not in page.locator(".status").inner_text()


def test_play_pause_and_speed(tab: Open) -> None:
    shown = tab(one())
    page = shown.page
    page.get_by_label("Speed", exact=True).select_option("0.25")
    page.get_by_label("Play", exact=True).click()
    page.get_by_label("Pause", exact=True).click()
    paused = shown.position
    assert paused < 5
    page.wait_for_timeout(400)
    assert shown.position == paused
    page.get_by_label("Speed", exact=True).select_option("16")
    page.get_by_label("Play", exact=True).click()
    for _ in range(50):
        if shown.position == 21:
            break
        page.wait_for_timeout(50)
    assert page.get_by_label("Play", exact=True).count() == 1, "it pauses at the end"


def test_keys(tab: Open) -> None:
    shown = tab(one())
    shown.press("Home")
    assert shown.position == 0
    shown.press("ArrowRight", "ArrowRight", ".", "ArrowLeft")
    assert shown.position == 2
    shown.press("End", ",")
    assert shown.position == 20
    shown.press("+", "+", "-")
    assert shown.page.get_by_label("Speed", exact=True).input_value() == "2"
    shown.press(" ")
    assert shown.count("button[aria-label=Pause]") == 1
    shown.press(" ")
    assert shown.count("button[aria-label=Pause]") == 0
    shown.press("5")
    assert shown.page.get_by_label("Colour by").input_value() == "trivial"
    shown.press("?")
    assert shown.page.get_by_role("dialog").is_visible()
    shown.press("Escape")
    assert not shown.page.locator("dialog").is_visible()


def test_every_colour_has_a_legend(tab: Open) -> None:
    shown = tab(one())
    seen = set()
    for name in ("time", "confidence", "entropy", "score", "trivial"):
        shown.page.get_by_label("Colour by").select_option(name)
        assert shown.count(".legend .swatch") == (2 if name == "trivial" else 7)
        seen.add(tuple(shown.page.locator(".canvas .t").evaluate_all("all => all.map(each => each.className)")))
    assert len(seen) >= 4, "left to right, entropy and confidence may agree"


def test_details_under_the_mouse_and_by_keyboard(tab: Open) -> None:
    shown = tab(one(answer_span=[1, 9]))
    page, card = shown.page, shown.page.locator(".details")
    page.locator(".canvas .t").nth(2).hover()
    text = card.inner_text()
    for word in ("“␣+”", "offset 2", "step 2", "probability", "entropy", "margin", "score", "It beat offset 3"):
        assert word in text, text
    page.mouse.move(2, 2)
    assert not card.is_visible()
    page.locator(".canvas").focus()
    shown.press("Home", "ArrowRight", "ArrowRight")
    assert card.is_visible() and "offset 2" in card.inner_text() and shown.count(".t.active") == 1
    active = page.locator(".canvas").get_attribute("aria-activedescendant")
    assert page.locator(f"[id='{active}']").inner_text() == "+"
    shown.press("End")
    assert "filled by the stop rule" in card.inner_text()
    shown.press("ArrowUp", "Escape")
    assert not card.is_visible() and shown.position == 21, "arrows in the canvas move between tokens"
    assert shown.count(".canvas .answer") > 0 and "answer" in page.locator(".signs").inner_text()


def test_two_traces_run_in_step(tab: Open) -> None:
    shown = tab(*two())
    first, second = ".trace:nth-child(1)", ".trace:nth-child(2)"
    shown.seek(10)
    assert len(shown.written(first)) == 10 and len(shown.written(second)) == 10
    shown.page.get_by_label("Keep in step by").select_option("fraction")
    shown.seek(24)
    assert shown.masked() == 0
    shown.seek(12)
    assert len(shown.written(first)) == 11 and len(shown.written(second)) == 12
    assert shown.count(".canvas .divergence") == 2
    note = shown.page.locator(".difference").inner_text()
    assert note.startswith("First difference at offset ") and "left to right has" in note
    assert shown.count(".entropy .line") == 2 and "M" in (shown.page.locator(".ticks").get_attribute("d") or "")


@pytest.mark.slow
def test_erased_given_and_drafted_tokens(tab: Open) -> None:
    remasked = row_of(uncode.presets.remdm())
    step = next(step for step, _, token in remasked["events"] if token < 0)
    shown = tab(Trajectory("remdm", remasked))
    shown.seek(step + 1)
    assert shown.count(".canvas .erased") > 0 and "erased" in shown.page.locator(".signs").inner_text()
    gaps = row_of(uncode.presets.confidence(), "add 3 4 5 first 3 + <mask:1> = <mask:1> , then", None)
    shown = tab(Trajectory("gaps", gaps))
    shown.press("Home")
    assert shown.texts(".canvas .given") == ["=", ",", "then"] and shown.masked() == 2
    plain = row_of(uncode.presets.confidence())
    drafts = [plain["generated_ids"]] * plain["forwards"]
    shown = tab(Trajectory("plain", plain | {"drafts": drafts}))
    shown.seek(3)
    shown.page.get_by_label("drafts").check()
    assert shown.count(".canvas .draft") == 21 and shown.count(".canvas .masked") == 0


def test_masked_tokens_are_hidden(tab: Open) -> None:
    """No pixel of the canvas has the colour of a letter; the text does not move when the tokens appear."""
    row = one(answer_span=[0, 9]).row
    row["generated_texts"][3] = " Z\u0351\u0352\u0353" * 3
    shown = tab(Trajectory("mine", row))
    canvas = shown.page.locator(".canvas")
    boxes = "all => all.map(each => JSON.stringify(each.getBoundingClientRect()))"
    places = shown.page.locator(".canvas .t").evaluate_all(boxes)
    for width in (1280, 700):
        shown.page.set_viewport_size({"width": width, "height": 800})
        shown.seek(21)
        assert darkest(canvas.screenshot()) < 60
        shown.seek(0)
        shown.page.mouse.move(1, 1)
        assert darkest(canvas.screenshot()) > 90, "the mark of the answer is the darkest"
    shown.page.set_viewport_size({"width": 1280, "height": 800})
    assert shown.page.locator(".canvas .t").evaluate_all(boxes) == places


def darkest(png: bytes) -> int:
    image = pytest.importorskip("PIL.Image").open(io.BytesIO(png))
    return int(image.convert("L").getextrema()[0])


def test_hostile_tokens_are_text(tab: Open) -> None:
    row = one().row
    row["generated_texts"][: len(HOSTILE)] = HOSTILE
    row["prompt_text"] = "".join(HOSTILE)
    shown = tab(Trajectory(HOSTILE[0], row, Verdict(False, HOSTILE[1]), HOSTILE[2]), Trajectory("x", one().row))
    texts = shown.texts(".canvas .t")
    assert texts[0] == HOSTILE[0] and texts[1] == HOSTILE[1] and texts[2] == "\\u202edlrow"
    assert texts[3] == "\\u2066a\\u2069" and texts[4] == "\\u0000\\u001b[31m"
    shown.page.locator(".canvas").focus()
    for at in range(len(HOSTILE)):
        assert f"offset {at}, id" in shown.page.locator(".details").inner_text()
        shown.press("ArrowRight")
    assert shown.page.title() == "A page" and shown.count("main img, main script") == 0
    assert shown.page.evaluate("document.documentElement.scrollWidth") <= 1280
    everything = shown.page.locator("body").inner_text()
    assert not set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\x00\x1b") & set(everything)


def test_problems_are_chosen_by_name(tab: Open) -> None:
    other = Trajectory("confidence", row_of(uncode.presets.confidence(), "add 2 2 2"), problem="second")
    shown = tab(Trajectory("a", one().row, problem="first"), other)
    assert shown.texts("nav button") == ["first", "second"] and shown.count(".trace") == 1
    shown.page.get_by_role("button", name="second").click()
    assert shown.texts(".trace h2") == ["confidence"] and "add 2 2 2" in shown.page.locator(".prompt").inner_text()


LIVE = """(length) => {
    const { TraceView, TraceModel } = window.uncode;
    const models = [new TraceModel({ length, title: "live", prompt: "the prompt", eosIds: [1] })];
    window.live = new TraceView({ models });
    document.querySelector(".slot").replaceChildren(live.element);
}"""


def test_a_stream_of_steps(tab: Open) -> None:
    shown = tab(one())
    shown.page.evaluate(LIVE, 4)
    assert shown.count(".canvas .masked") == 4 and "the prompt" in shown.page.locator(".prompt").inner_text()
    assert shown.position == 0 and shown.page.locator(".trace").get_attribute("aria-busy") == "true"
    shown.page.evaluate(
        """() => {
            live.append({ step: 0, commits: [{ offset: 1, token: 5, text: " b\\n", logp: -0.1, entropy: 0.4 }] });
            live.append({ step: 1, commits: [{ offset: 0, token: 6, text: "a", logp: -0.2 }], mean_entropy: 0.3 });
        }"""
    )
    assert shown.texts(".canvas .written") == ["a", "b↵"] and shown.count(".canvas .masked") == 2
    assert shown.page.locator(".canvas").inner_text().startswith("a b↵\n"), "blanks and breaks come with the token"
    shown.seek(1)
    shown.page.evaluate("live.append({ commits: [{ offset: 2, token: 7, text: 'c' }], erased: [0] })")
    assert shown.position == 1, "a reader who has moved back stays there"
    shown.seek(3)
    assert shown.texts(".canvas .erased") == ["a"] and "erased" in shown.page.locator(".signs").inner_text()
    shown.page.evaluate("live.append({ commits: [{ offset: 0, token: 8, text: 'd' }] })")
    shown.page.evaluate("live.describe({ summary: ['4 forwards', '12 ms'], verdict: { right: true, reason: '' } })")
    shown.page.evaluate("live.finish([{ offset: 3, token: 1, text: '' }])")
    assert shown.texts(".canvas .t") == ["d", "b↵", "c", "∎"] and shown.count(".canvas .filled") == 1
    assert shown.texts(".summary") == ["4 forwards · 12 ms"] and shown.texts(".verdict") == ["✓ right"]
    assert shown.page.locator(".trace").get_attribute("aria-busy") == "false"
    assert shown.page.locator(".status").inner_text().startswith("after step 3 · 3 of 4 committed, 1 filled")


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ("live.cancel()", "Cancelled: the rest stays masked."),
        ("live.fail('no \u202e room')", "Failed: no \\u202e room"),
    ],
)
def test_a_stream_that_is_cancelled_or_fails(tab: Open, call: str, text: str) -> None:
    shown = tab(one())
    shown.page.evaluate(LIVE, 4)
    shown.page.evaluate("live.append({ commits: [{ offset: 1, token: 5, text: ' b' }] })")
    shown.page.evaluate(call)
    assert shown.page.locator(".state").inner_text() == text
    assert shown.count(".canvas .masked") == 3 and shown.texts(".canvas .written") == ["b"]
    shown.seek(0)
    assert shown.count(".canvas .masked") == 4, "what was decoded is replayed"
    assert shown.violations() == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_themes_and_accessibility(tab: Open, scheme: str) -> None:
    shown = tab(*two(), scheme=scheme)
    back = "getComputedStyle(document.body).backgroundColor"
    first = shown.page.evaluate(back)
    assert (first == "rgb(251, 251, 249)") is (scheme == "light")
    shown.seek(12)
    shown.page.locator(".canvas .written").nth(2).hover()
    assert shown.violations() == []
    shown.press("t")
    assert shown.page.evaluate(back) != first
    shown.page.get_by_label("Colour by").select_option("confidence")
    assert shown.violations() == []
    shown.page.get_by_label("Light or dark").click()
    assert shown.page.evaluate(back) == first


def test_a_phone(tab: Open) -> None:
    shown = tab(*two(), width=360)
    shown.page.locator(".canvas .t").nth(3).click()
    assert shown.page.evaluate("document.documentElement.scrollWidth") == 360
    assert shown.page.locator(".details").bounding_box()["width"] > 300
    assert shown.violations() == []


def test_everything_is_reached_by_tab(tab: Open) -> None:
    shown = tab(*two())
    seen = set()
    for _ in range(20):
        shown.press("Tab")
        seen.add(shown.page.evaluate("document.activeElement.ariaLabel ?? document.activeElement.tagName"))
    assert {
        "Step",
        "Play",
        "First step",
        "Speed",
        "Colour by",
        "Keep in step by",
        "Help",
        "Canvas of confidence",
    } <= seen


@pytest.mark.slow
def test_in_a_notebook(browser: Any, tmp_path: Path) -> None:
    """A cell's output: the viewer where frames are allowed, else the static tokens."""
    model = uncode.load("toy")
    run = start_decode(model, read_prompts(model, ["add 1 3 4"], 24), uncode.presets.left_to_right(), 0, True)
    shown = run.trace().to_html(model.tokenizer)
    without = re.sub(r"<iframe.*</iframe>|<style>.*?</style>", "", shown, flags=re.S)
    for text, has_frame in ((shown, True), (without, False)):
        (tmp_path / "cell.html").write_text(f"<!DOCTYPE html><body>{text}</body>")
        tab = Tab(browser, tmp_path / "cell.html")
        assert tab.page.locator(".uncode-static").is_visible() is not has_frame
        if has_frame:
            frame = tab.page.frame_locator("iframe")
            frame.get_by_label("First step").click()
            assert frame.locator(".readout").inner_text() == "0 of 21"
            assert frame.locator(".trace h2").inner_text() == "left_to_right"
        assert tab.errors == []
        tab.close()


def test_without_javascript(browser: Any, tmp_path: Path) -> None:
    write_page(tmp_path / "page.html", two(), "A page")
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((tmp_path / "page.html").as_uri())
    assert "first 1 + 3" in page.locator(".canvas").first.inner_text()
    context.close()


FRAMES = """async (stride) => {
    const range = document.querySelector("input[type=range]");
    const times = [];
    for (let at = 0; at < 400; at += 1) {
        const place = (at * stride) % 2048;
        range.value = place < 1024 ? place : 2048 - place;
        const began = performance.now();
        range.dispatchEvent(new Event("input", { bubbles: true }));
        document.body.getBoundingClientRect();
        times.push(performance.now() - began);
        if (at % 20 === 0) await new Promise(requestAnimationFrame);
    }
    return times.sort((a, b) => a - b)[Math.floor(0.95 * times.length)];
}"""
DROPPED = """async (stride) => {
    const range = document.querySelector("input[type=range]");
    const play = document.querySelector(".play");
    if (!stride) play.click();
    let dropped = 0;
    let before = await new Promise(requestAnimationFrame);
    for (let at = 0; at < 200; at += 1) {
        const place = (at * stride) % 2048;
        if (stride) {
            range.value = place < 1024 ? place : 2048 - place;
            range.dispatchEvent(new Event("input", { bubbles: true }));
        }
        const now = await new Promise(requestAnimationFrame);
        if (now - before > 25) dropped += 1;
        before = now;
    }
    if (!stride) play.click();
    return dropped;
}"""
"""Frames of 200 that took more than one and a half of 60 a second. Stride 0 plays."""


MOVE = """(place) => {
    const range = document.querySelector("input[type=range]");
    range.value = place < 1024 ? place : 2048 - place;
    range.dispatchEvent(new Event("input", { bubbles: true }));
    document.body.getBoundingClientRect();
}"""


def processor_times(shown: Tab, stride: int) -> list[float]:
    """Processor time of script, style and layout, in ms, for each of 100 frames. Other load does not count in it."""
    session = shown.context.new_cdp_session(shown.page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def spent() -> float:
        metrics = {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}
        return 1000 * sum(metrics[name] for name in ("ScriptDuration", "RecalcStyleDuration", "LayoutDuration"))

    found = []
    for at in range(100):
        before = spent()
        shown.page.evaluate(MOVE, (at * stride) % 2048)
        found.append(spent() - before)
    return sorted(found)


@pytest.mark.slow
@pytest.mark.parametrize(("frame", "stride"), [("playing", 1), ("scrubbing", 17), ("jumping", 701)])
def test_a_frame_of_a_long_trace_is_quick(tab: Open, frame: str, stride: int) -> None:
    """1,024 tokens in 1,024 steps. Scrubbing crosses the decode in a second; a jump crosses most of it in a frame."""
    shown = tab(Trajectory("long", long_row(1024)))
    processor = processor_times(shown, stride)[95]
    found = min(shown.page.evaluate(FRAMES, stride) for _ in range(3))
    dropped = min(shown.page.evaluate(DROPPED, 0 if frame == "playing" else stride) for _ in range(3))
    text = f"p95 of a frame, {frame}: {processor:.1f} ms of a processor, {found:.1f} ms, {dropped} of 200 dropped"
    print(text)
    assert processor < FRAME_MS
    if os.getloadavg()[0] > (os.cpu_count() or 1) and (dropped or found > FRAME_MS):
        pytest.skip(f"{text}: this machine is busy with other work, run it alone")
    assert found < FRAME_MS and dropped <= MAX_DROPPED


def many(problems: int) -> list[Trajectory]:
    """Two graded traces of each problem."""
    right, wrong = one().row, row_of(uncode.presets.confidence())
    found = []
    for number in range(problems):
        task = "sums" if number % 2 else "more sums"
        notes = {"task": task, "prompt_text": f"add p{number} 3 4"}
        name = f"{task} {number}"
        found.append(Trajectory("confidence", wrong | notes, Verdict(number % 5 == 0), name))
        found.append(Trajectory("uncode", right | notes, Verdict(number % 3 == 0), name))
    return found


@pytest.mark.slow
def test_a_list_of_many_problems(tab: Open) -> None:
    shown = tab(*many(30))
    page, names = shown.page, ".gallery-list li strong"
    page.locator(".trace").first.wait_for()
    assert shown.count(names) == 30 and shown.count(".trace") == 2
    page.get_by_label("Search problems").fill("add p7")
    assert shown.texts(names) == ["sums 7"]
    page.locator(names).click()
    page.locator(".prompt", has_text="add p7 3 4").wait_for()
    page.get_by_label("Search problems").fill("")
    page.get_by_role("button", name="confidence wrong, uncode right").click()
    numbers = [int(name.split()[-1]) for name in shown.texts(names)]
    assert numbers == [number for number in range(30) if number % 5 and number % 3 == 0]
    assert page.locator(".found").inner_text() == f"{len(numbers)} of 30 problems"
    page.locator(".prompt", has_text="add p3 3 4").wait_for()  # the first that matches
    page.get_by_label("Task").select_option("sums")
    assert all(name.startswith("sums") for name in shown.texts(names))
    page.get_by_role("button", name="confidence wrong, uncode right").click()
    page.get_by_label("Order", exact=True).select_option("fewest right")
    assert shown.texts(names)[-1] == "sums 15" and shown.count(names) == 15
    page.get_by_label("Verdict").select_option("uncode right")
    assert shown.count(names) == 5
    assert shown.violations() == []


@pytest.mark.slow
def test_of_many_samplers_few_are_shown(tab: Open) -> None:
    row = one().row
    names = ["uniform", "confidence", "entropy", "margin", "eb", "uncode 0.1"]
    shown = tab(*[Trajectory(name, row, Verdict(name.startswith("u"))) for name in names])
    page, chips = shown.page, shown.page.get_by_role("group", name="Samplers")
    assert shown.texts(".trace h2") == ["confidence", "uncode 0.1"]
    shown.seek(5)
    page.get_by_label("Colour by").select_option("entropy")
    chips.get_by_role("button", name="right: uniform").click()
    assert shown.texts(".trace h2") == ["uniform", "confidence", "uncode 0.1"]
    assert shown.position == 5 and page.get_by_label("Colour by").input_value() == "entropy"
    for name in ("uniform", "confidence", "uncode 0.1"):
        chips.get_by_role("button", name=name).click()
    assert shown.texts(".trace h2") == ["uncode 0.1"], "the last one stays"
    chips.get_by_role("button", name="show all").click()
    assert shown.texts(".trace h2") == names
    assert shown.violations() == []
    chips.get_by_role("button", name="show few").click()
    assert shown.texts(".trace h2") == ["confidence", "uncode 0.1"]


def test_a_list_on_a_phone(tab: Open) -> None:
    shown = tab(*many(30), width=360)
    assert shown.page.evaluate("document.documentElement.scrollWidth") == 360


def real_traces(count: int) -> list[Trajectory]:
    """Decodes of the toy model: two samplers on each of the problems, graded by the sum that they end with."""
    model, rng = uncode.load("toy"), Random(0)
    numbers = [[rng.randrange(1, 10) for _ in range(3)] for _ in range(count // 2)]
    prompts = read_prompts(model, ["add " + " ".join(map(str, three)) for three in numbers], 24)
    found = []
    for sampler in (uncode.presets.confidence(), uncode.presets.margin()):
        trace = start_decode(model, prompts, [sampler] * len(prompts), [0] * len(prompts), True).trace()
        for at, three in enumerate(numbers):
            row = trace.row(at, model.tokenizer)
            right = f" {sum(three)} " in "".join(row["generated_texts"])
            found.append(Trajectory(sampler.name, row, Verdict(right), f"sum {at}"))
    return found


SEARCH = """async () => {
    const box = document.querySelector("input[type=search]");
    const times = [];
    for (const word of ["s", "su", "sum", "sum 4", "sum 49", "sum 499", "sum", "", "add 1", "add 1 2", ""]) {
        box.value = word;
        const began = performance.now();
        box.dispatchEvent(new Event("input", { bubbles: true }));
        document.body.getBoundingClientRect();
        times.push(performance.now() - began);
        await new Promise(requestAnimationFrame);
    }
    return Math.max(...times);
}"""


@pytest.mark.slow
def test_a_thousand_traces_open_at_once_and_are_searched(browser: Any, tmp_path: Path) -> None:
    write_page(tmp_path / "page.html", real_traces(1000), "Many")
    shown = Tab(browser, tmp_path / "page.html")
    shown.page.locator(".trace").first.wait_for()
    took = shown.page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd")
    key = min(shown.page.evaluate(SEARCH) for _ in range(5))
    size = (tmp_path / "page.html").stat().st_size / 1e6
    print(f"{size:.1f} MB, open after {took:.0f} ms, a key of the search takes at most {key:.0f} ms")
    assert shown.texts(".found") == ["500 of 500 problems"] and shown.errors == []
    assert took < 2000 and key < 50
    shown.page.locator(".gallery-list ul").evaluate("list => list.scrollTo(0, 1e6)")
    shown.page.locator(".gallery-list li").nth(60).wait_for(state="attached")
    shown.close()
