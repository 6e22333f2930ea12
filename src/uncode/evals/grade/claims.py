r"""Detects whether a text asserts a value, or denies, bounds or retracts it.

"not 18", "18 is wrong" and "\neq 18" are denials. "> 18", "at least 18" and "18 or more" are bounds. "18? No." is a
retraction. None of them is an answer. All graders use this module, so a phrase counts the same in every task.
"""

from __future__ import annotations

import re

from .pattern import lazy_pattern

UNEQUAL = r"\\neq?\b|\u2260|(?<![\d)}])!=|\\not\s?="
"""Signs for "not equal"."""
CONTEXT_CHARACTERS = 100
"""The number of characters before and after a place that are read."""

_TAG = r"</?[A-Za-z]\w{0,20}>|</\w{1,20}|<\|\w{1,20}\|>|<<|>>"
_WRAPPING = lazy_pattern(
    rf"\\(?:text|math)[a-z]*|\\(?:boxed|fbox|framebox|left|right|displaystyle|q?quad|bf|rm|it)\b|\\[,;:!()\[\] $]"
    rf"|{_TAG}|(?<![A-Za-z])'|[${{}}*_`\"\u201c\u201d~()\[\]]"
)
_SENTENCE_END = lazy_pattern(r"[.!?](?=\s)|\n")

_FILLER = (
    r"(?:be|been|equal|equals|is|as|to|the|an?|answer|number|value|solution|grid|expression|correct|right|final|choice|"
    r"option|letter|exactly|just|simply|actually|necessarily|really|quite|even|have|choose|pick|select|go|with|it"
    r"|think|"
    r"believe|say|claim|true|case|that|this)"
)
_NEGATION = (
    r"(?:\b(?:not|never|cannot|neither|nor|rather than|other than|instead of|differs? from|different from|unequal to|"
    r"anything but|(?<!no )doubt|ruled? out|reject(?:s|ed)?|exclud(?:e|es|ed)|discard(?:ed)?)"
    r"|\b\w+n't)(?!\w)"
)
_DENIED_BEFORE = lazy_pattern(
    rf"{_NEGATION}(?:(?:\s+{_FILLER}\b){{0,6}}|(?:\s+(?:be|equal|this|the following))?\s*:)\s*$|\b(?:wrong"
    rf"|incorrect):\s*$"
    rf"|(?:{UNEQUAL})\s*$",
    re.I,
)
_NO_ANSWER = (
    r"(?:the |an? |our |my |any )?(?:right|correct|valid|true|possible|final|actual|allowed|it\b|so\b|answer|solution|"
    r"choice|option|result|expression|equal|-?\d)"
)
_DENIED_AFTER = lazy_pattern(
    rf"(?:[^\w,;]{{0,8}}(?-i:(?:[a-z%]{{1,12}}\s+){{0,2}}?)|,\s*(?=which|was (?:wrong|incorrect)))(?:"
    rf"(?:which )?(?:is|are|was|were|would be|seems|'s)\s+(?:also |clearly |obviously |simply )?(?:an? )?"
    rf"(?:wrong|incorrect|false|invalid|impossible|mistaken|mistake\b|error\b|ruled out|(?:not|never)\s+{_NO_ANSWER})"
    rf"|(?:isn't|aren't|wasn't|can't be|cannot be|could not be|couldn't be)\s+{_NO_ANSWER}"
    r"|(?:does not|doesn't|do not|don't|cannot|can't|will not|won't|did not|didn't|fails? to)\s*"
    r"(?:(?:work|hold|fit|equal|reach|give|make|yield|solve)\b|$)"
    r"|fails\b)",
    re.I,
)

_FALLS_SHORT = lazy_pattern(
    r"\W{0,8}(?:which |that |this |it )?(?:(?:is|are|was) not|isn't|(?:does not|doesn't|do not|don't|did not|didn't|"
    r"cannot|can't) (?:equal|reach|give|make|yield))\s+(?:equal to )?(?:the target|-?\d+(?!\s*[-+*/(\u00d7\d]))",
    re.I,
)

_FALSE = (
    r"(?:all |clearly |obviously )?(?:wrong|incorrect|false|invalid|impossible|a mistake|an error|"
    r"not (?:right|correct|it\b|so\b|possible|allowed|valid|true|a solution|the (?:right |correct )?"
    r"(?:answer|solution)))"
    r"(?!\s+(?:that|to|if|for)\b)"
)
_TAKES_BACK = (
    r"(?:(?:oh|hmm+|but|oops|sorry|well|so|wait|hold on|actually|however)\b\W{0,4}){0,3}(?:"
    r"no(?=\s*(?:$|[.,;:!\u2014-]|wait\b|that\b|this\b|it\b|actually\b|on (?:reflection|second)))"
    rf"|(?:that|this|it)(?:'s| is| was)\s+{_FALSE}|(?:that|this|it) (?:isn't|wasn't) (?:right|correct|it\b|so\b)"
    r"|(?:that|this|it) (?:does not|doesn't|did not|didn't|will not|won't) work\b(?! (?:for|on|with|if))"
    r"|(?:that|this|it) (?:cannot|can't) (?:work|be (?:right|correct|so|it))\b"
    r"|(?:that|this) fails\b|i (?:do not|don't) think so"
    r"|i (?:was wrong|made an? (?:mistake|error))|scratch that|strike that|never ?mind|"
    r"on (?:second thoughts?|reflection)|correction\b|or rather\b|make that\b|i mean(?:t)?\b|my mistake"
    r"|let(?:'s| me| us) (?:try again|start (?:over|again)|correct)"
    r"|actually\b\W{0,2}(?:it|that|this|the answer)(?:'s| is| should be| must be| would be)\b)"
)
_RETRACTED_AFTER = lazy_pattern(
    rf"(?-i:(?:\s?[a-z%]{{1,12}}){{0,3}})[\s.!?;,:\u2014-]{{0,8}}(?<![A-Za-z0-9])(?:{_TAKES_BACK})", re.I
)
_ABANDONS = lazy_pattern(
    rf"(?:^|[.!?;,:\n\u2014-]\s*)(?:{_TAKES_BACK})"
    r"|\b(?:try|start|begin) (?:again|over|another|something else|a different|anew)\b"
    r"|\b(?:another|second|third|next|new|different) (?:try|attempt|approach)\b|\b(?:attempt|try) [2-9]\b"
    r"|\b(?:does|did|do|will) not work\b|\b(?:doesn't|didn't|don't|won't) work\b",
    re.I,
)
_NO_SOLUTION = lazy_pattern(
    r"\bno (?:valid |possible |such |real |known )?(?:solutions?|way|expressions?|combinations?|answers?)\b"
    r"|\bunsolvable\b|\bnot solvable\b|\b(?:is|are|it's) (?:not possible|impossible|never possible)\b"
    r"|\b(?:cannot|can't|can not|can never) be (?:solved|reached|made|done|found|obtained|achieved|completed)\b"
    r"|\bnone exists\b|\b(?:solution|answer)s? (?:does not|doesn't|do not|don't|cannot) exist\b",
    re.I,
)

_COMPARES = (
    r"(?:(?<![-=<>|])[<>](?![<>|])=?|[\u2264\u2265\u2a7d\u2a7e\u226a\u226b]"
    r"|\\(?:leq?|geq?|lt|gt|leqq|geqq|leqslant|geqslant|ll|gg|nleq|ngeq|nless|ngtr|lesssim|gtrsim)(?![A-Za-z]))"
)
_BOUND_WORDS = (
    r"(?:at (?:least|most|the (?:very )?(?:least|most))|(?:more|less|fewer|greater|larger|smaller|bigger|higher|lower|"
    r"better) than|up to|upwards? of|as (?:many|much|few|little) as|exceed(?:s|ing)?|over|under|above|below|beyond|"
    r"no (?:more|less|fewer) than|(?:minimum|maximum|lower bound|upper bound) of|between)"
)
_BOUND_BEFORE = lazy_pattern(
    rf"(?:{_COMPARES}|\b{_BOUND_WORDS}(?:\s+(?:or equal to|a total of|about|exactly|the|only|just)\b){{0,2}}"
    r"|\bbetween\s[^.;\n]{1,30}\sand)\s*[-\u2212]?\s*$",
    re.I,
)
_MORE = r"(?:more|fewer|less|greater|higher|lower|above|below|over|under|larger|smaller|up|upwards)\b"
_BOUND_AFTER = lazy_pattern(
    rf"\s*{_COMPARES}\s*[\w\\.(-]|\+\s*$|[^\w,;]{{0,6}}(?:[a-z]{{1,12}}\s+){{0,3}}?"
    rf"(?:(?:or|and) {_MORE}(?! (?:precisely|exactly|specifically|simply|accurately|\d))"
    r"|at (?:least|most|minimum|maximum|the (?:very )?(?:least|most))\s*(?:$|[,;]))",
    re.I,
)
_BOUND_IN_FORMULA = lazy_pattern(
    rf"{_COMPARES}\s*[\w\\.(+$\u2212-]|(?<!\\)\b{_BOUND_WORDS}\W{{0,12}}[\d\\]"
    rf"|\d\W{{0,4}}[a-z\s{{}}\\]{{0,24}}?\b(?:or|and) {_MORE}(?! (?:precisely|exactly))",
    re.I,
)
_DENIAL_IN_FORMULA = lazy_pattern(rf"{UNEQUAL}|\b(?:not|never|cannot|neither|\w+n't|wrong|incorrect)\b", re.I)


def is_denied(text: str, start: int, end: int) -> bool:
    """Whether the words around a place say that it is not the answer."""
    return bool(_DENIED_BEFORE.search(_before(text, start)) or _DENIED_AFTER.match(_after(text, end)))


def falls_short(text: str, end: int) -> bool:
    """Whether the words after an expression say that its value is not the target."""
    return _FALLS_SHORT.match(_after(text, end)) is not None


def is_retracted(text: str, end: int) -> bool:
    """Whether the words after a place retract it: "18? No." and "18. Wait, that is wrong."."""
    return _RETRACTED_AFTER.match(_unwrapped(text[end : end + CONTEXT_CHARACTERS])) is not None


def is_bound(text: str, start: int, end: int) -> bool:
    """Whether the words around a number make it a bound: "x > 18", "at least 18", "18 or more"."""
    return bool(_BOUND_BEFORE.search(_before(text, start)) or _BOUND_AFTER.match(_after(text, end)))


def abandons(text: str) -> bool:
    """Whether a text between two steps abandons the steps before it."""
    return _ABANDONS.search(_unwrapped(text)) is not None


def says_unsolvable(text: str) -> bool:
    """Whether a text says that there is no solution."""
    return _NO_SOLUTION.search(_unwrapped(text)) is not None


def bounds_formula(formula: str) -> bool:
    """Whether a formula is a bound rather than a value."""
    return _BOUND_IN_FORMULA.search(_last_side(re.sub(_TAG, " ", formula))) is not None


def denies_formula(formula: str) -> bool:
    """Whether a formula states what a value is not."""
    return _DENIAL_IN_FORMULA.search(_last_side(formula)) is not None


def _last_side(formula: str) -> str:
    """The formula after the last equals sign. The text before it names the quantity."""
    return re.split(r"(?<![<>!:=])(?<!\\not)(?<!\\not )=(?![<>=])", formula)[-1]


def _before(text: str, start: int) -> str:
    """The sentence before a place, without markup. A line break right before the place does not end the sentence."""
    return _SENTENCE_END.split(_unwrapped(text[max(0, start - CONTEXT_CHARACTERS) : start].rstrip()))[-1]


def _after(text: str, end: int) -> str:
    """The rest of the sentence after a place, without markup."""
    return _SENTENCE_END.split(_unwrapped(text[end : end + CONTEXT_CHARACTERS]))[0].rstrip(" .!?")


def _unwrapped(text: str) -> str:
    """A text with LaTeX wrappers, emphasis, quotes and tags replaced by blanks, so that words can be compared."""
    return _WRAPPING.sub(" ", text.replace("\u2019", "'"))
