"""A number is the same with a unit, as a fraction, as a power of ten, in words, and in digits of other scripts."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evals.test_graders_adversarial import graded, task_of
from uncode.evals.grade.find import everything, readable
from uncode.evals.grade.numbers import number_words, only_number

NUMBERS = ("18", "7", "2500")


@pytest.fixture(autouse=True, scope="module")
def _closed() -> Iterator[None]:
    yield
    task_of("math500").formulas.close()


SPELLINGS = (
    "{n}^\\circ",
    "{n}^{{\\circ}}",
    "{n}^\\circ\\text{{F}}",
    "{n}^{{\\circ}}\\mathrm{{C}}",
    "{n}\\,^\\circ\\text{{C}}",
    "{n}\u00b0F",
    "{n}\\text{{ cm}}^2",
    "{n}\\,\\mathrm{{m}}^{{3}}",
    "{n} \\text{{ km/h}}",
    "\\${n}",
    "\\${n}.00",
    "{n}\\%",
    "{n} \\text{{ percent}}",
    "{n}e0",
    "{n}E+0",
    "{n}0e-1",
    "{n} \\times 10^0",
    "{n}0 \\cdot 10^{{-1}}",
    "\\frac{{{n}}}{{1}}",
    "\\frac{{-{n}}}{{-1}}",
    "-\\frac{{-{n}}}{{1}}",
    "-\\frac{{{n}}}{{-1}}",
    "\\dfrac{{{n}0}}{{10}}",
)


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("task", ["gsm8k", "math500"])
def test_a_number_is_the_same_however_it_is_spelt(task: str, spelling: str) -> None:
    for number in NUMBERS:
        text = f"\\boxed{{{spelling.format(n=number)}}}"
        assert graded(task, number, text).correct, text
        assert not graded(task, str(int(number) * 10), text).correct, text


@given(st.integers(-999, 999), st.integers(-99, 99).filter(bool))
def test_a_fraction_may_have_signs_anywhere(over: int, under: int) -> None:
    found = only_number(everything(f"\\frac{{{over}}}{{{under}}}"))
    assert found is not None and found[0] == Fraction(over, under)


@given(st.integers(1, 9999), st.integers(-9, 9), st.sampled_from(["e", "E", " \\times 10^", "\\cdot 10^"]))
def test_powers_of_ten(digits: int, power: int, between: str) -> None:
    exponent = str(power) if between in "eE" else f"{{{power}}}"
    found = only_number(everything(f"{digits}{between}{exponent}"))
    assert found is not None and found[0] == digits * Fraction(10) ** power


UNITS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
TENS = "twenty thirty forty fifty sixty seventy eighty ninety"


def spelt(number: int, conjunction: str) -> str:
    if number < 20:
        return UNITS.split(" ")[number]
    if number < 100:
        return TENS.split(" ")[number // 10 - 2] + (f"-{spelt(number % 10, '')}" if number % 10 else "")
    scale, name = (100, "hundred") if number < 1000 else (1000, "thousand")
    rest = f"{conjunction}{spelt(number % scale, conjunction)}" if number % scale else ""
    return f"{spelt(number // scale, conjunction)} {name}{rest}"


@given(st.integers(0, 999_999), st.sampled_from([" ", " and "]))
def test_number_words(number: int, conjunction: str) -> None:
    words = spelt(number, conjunction)
    for text in (words, words.capitalize(), words.replace("-", " ")):
        assert [value for value, _ in number_words(everything(text))] == [number], text


@pytest.mark.parametrize("number", [1, 5, 18, 25, 60, 105, 340, 1200, 7016])
@pytest.mark.parametrize("task", ["gsm8k", "math500"])
def test_an_answer_may_be_a_word(task: str, number: int) -> None:
    words = spelt(number, " and ")
    for text in (f"The answer is {words}.", f"\\boxed{{\\text{{{words}}}}}", f"<answer>{words.capitalize()}</answer>"):
        assert graded(task, str(number), text).correct, text
        assert not graded(task, str(number + 1), text).correct, text
    for text in (f"The answer is not {words}.", f"\\boxed{{\\text{{more than {words}}}}}"):
        assert not graded(task, str(number), text).correct, text


@pytest.mark.parametrize("gap", [" ", "\\ ", "~", "\\,", "\\;", "\\quad ", "\\quad"])
def test_two_numbers_side_by_side_are_not_one(gap: str) -> None:
    for first, second in (("1", "2"), ("5", "5"), ("12", "34")):
        assert not graded("math500", first + second, f"\\boxed{{{first}{gap}{second}}}").correct
        assert not graded("gsm8k", first + second, f"\\boxed{{{first}{gap}{second}}}").correct


@given(st.text(alphabet=[*map(chr, range(0xFF01, 0xFF5F)), "\u0663", "\u096d", "x", " "], max_size=40))
def test_every_character_keeps_its_place(text: str) -> None:
    found = readable(text)
    assert len(found.text) == len(text) and found.text.isascii()


@pytest.mark.parametrize("task", ["gsm8k", "math500"])
@pytest.mark.parametrize("number", NUMBERS)
def test_an_equation_that_breaks_off_has_no_result(task: str, number: str) -> None:
    """Its numbers are operands: an answer that was cut there is not right because one of them happens to be gold."""
    for cut in (f"Add: 0 + {number} =", f"First 2 + 1 = 3. Then 0 + {number} = ", f"So we get 1 * {number} =\n"):
        assert not graded(task, number, cut).correct, cut
    for whole in (f"Add: 0 + {number} = {number}", f"The answer is {number}. Check: 0 + {number} ="):
        assert graded(task, number, whole).correct, whole
