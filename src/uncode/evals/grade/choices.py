"""Finds which of four letters a text chooses.

A letter counts if it is written as a choice: in brackets, quotes or bold, alone, or after a word such as "is" or
"option". It does not count in "vitamin D", "5 C" or "D-glucose". A place that names two choices names none.
"""

from __future__ import annotations

import itertools
import re

from .find import Found, boxed, everything, first_of, tagged
from .pattern import lazy_pattern

_STANDS = lazy_pattern(
    r"(?<![A-Za-z0-9_.=+\u00b0\u2019-])(?<![A-Za-z]')([A-Da-d])(?![A-Za-z0-9_\u00b0+\u2019]|'[a-z]|-[A-Za-z0-9]"
    r"|\s?[+]|\s?=(?!>))"
)
_BEFORE = lazy_pattern(
    r"(?:^"
    r"|[\n(\[{*\"`$:,;&/_)'>|\u2018\u201c\u2192是为為选選或和とは、か]|\b(?:is|be|was|are|options?|choices?|answers?|letters?|select|"
    r"choose|chose|pick|or|and|not|nor|either|both|than|of|with|possibly|maybe|perhaps|but|so|it's|only|say|for"
    r"|therefore|"
    r"hence|thus|then|clearly|definitely|probably|likely|simply|just|indeed|indicates|o|ou|oder|y|e|et|und|или|и"
    r"|[A-D])\b)[\s*_(\[{}\"'`:$\\>]{0,6}$",
    re.I,
)
_JOINS = lazy_pattern(
    r"[\W_]*(?:(?:\b(?:or|and|possibly|maybe|perhaps|either|both|option|choice|but|not|rather|than|o|ou|oder|y|e|et"
    r"|und|или|и)\b|[或和とか]|또는)[\W_]*)*",
    re.I,
)
_GAP = r"[\s()\[\]*_\"']*"
_LISTS = lazy_pattern(rf"{_GAP}(?:,|,?\s*(?:or|nor)\b){_GAP}(?:options?\s)?{_GAP}", re.I)
_LISTS_ALL = lazy_pattern(rf"{_GAP}(?:[,&/]|,?\s*(?:or|nor|and)\b){_GAP}(?:options?\s)?{_GAP}", re.I)
"""The text between letters that share a denial: "not A, B or C", "A, B and C are wrong"."""
_DENIES = lazy_pattern(
    r"\bthan\b[^A-Za-z]{0,6}(?:option |choice )?[^A-Za-z]{0,3}$"
    r"|\b(?:nicht|pas|no|non|não|не|niet)\s+(?:(?:es|é|è|est|la|die|a|le|l')\s+){0,2}\W{0,3}$|不是\W{0,3}$",
    re.I,
)
_REJECTS = lazy_pattern(
    r"\b(?:(?:eliminat|exclud|discard|reject|dismiss|remov)(?:es?|ed?|ing|s)?|rul(?:es?|ed|ing) out|cross(?:ed"
    r"|ing)? out|unlike|except(?: for)?|besides|apart from|(?:incorrect|wrong|false)(?: \w+)?:)"
    r"[\s:(*]{0,4}(?:(?:both|all|the)\s)?(?:(?:options?|choices?|answers?|letters?)\s)?\W{0,4}$",
    re.I,
)
_WRONG = (
    r"(?:[\u2717\u2718\u274c\u2716\u2612]|(?:incorrect|wrong|false|falsch|not (?:correct|right|true))\b"
    r"|no\b(?=\s*(?:[.,;|\n]|$)))"
)
_RIGHTLY = r"(?:[\u2713\u2714\u2705\u2611]|(?:correct|right|true|yes|richtig)\b)"
_DENIED = lazy_pattern(
    r"[\W_]{0,4}(?:(?P<many>are|were|have been|can be|could be|may be|must be|should be)|is|was|would be|has been"
    r"|seems)\s+"
    r"(?:(?:\w+ly|all|both|also|then|thus|therefore|thereby)\s+){0,2}(?:not\b|exclu|elimin|ruled out|discard|reject"
    r"|dismiss|out\b|wrong|incorrect|false|invalid|imp|unlikely|inconsistent|too\b|mistaken|untrue|un)"
    r"|[\W_]{0,4}(?:all |both |also )?(?:(?P<plural>fail|violate|contradict|do not|don't|drop out)|fails|violates"
    r"|contradicts|"
    rf"does not|doesn't|cannot|can't)\b|[\W_]{{0,4}}{_WRONG}"
    r"|\s?(?:では|じゃ|で)な|\s?[가이은]\s?아니|\s?(?:不|是错|错)"
    r"|\s(?:no es|n'est pas|ist (?:nicht|falsch)|não é|non è|неверн|не )",
    re.I,
)
"""Denials that `Found.is_denied` does not know: "more likely than B", "excluding A and B", "A and B are ruled out"."""
_ALSO_BEFORE = lazy_pattern(
    r"\b(?:(?:so|as|nor|neither) (?:is|are|does|do|can)|likewise|same (?:goes )?(?:for|with))\W{0,3}$", re.I
)
_ALSO_AFTER = lazy_pattern(r"[\W_]{0,3}(?:too|as well|also|likewise)\b", re.I)
"""What is said of the letter before holds of this one too."""
_EXPLAINS = lazy_pattern(r"\b(?:because|since|as|whereas|while|unlike|which|where|so)\b|\.(?=\s)|\u2014")
_NAMES = lazy_pattern(
    r" (?!(?:and|or|nor|is|are|was|were|can|cannot|could|may|must|should|would|seems|fails|does|as|because|since"
    r"|but|over|instead|rather|only|too|also|it|fits|looks|works|holds|wins|remains|oder|ou|o|y|e)\b)[a-z]"
)
"""A word after a letter that makes it an article or a part of a name: "A ketone", "B fields"."""
_WRAPPING = lazy_pattern(r"\\(?:text|math|bf|rm|it)\w*\s?\{|\\left|\\right|\\[()\[\]]")
_MARKUP = lazy_pattern(
    r"</?(?:b|i|em|strong|u|p|code|span|mark)>|(?<!\w)(?:\*{1,3}|_{1,3}|`)(?P<letter>[A-D])(?:\*{1,3}|_{1,3}|`)(?!\w)",
    re.I,
)
_ARROW = r"(?:\u2192|\u21d2|\u27a1\ufe0f?|[-=]+>|\\(?:to|(?:long)?rightarrow)\b)"
_ENDS = (
    r"(?=[\s*(\[]*(?-i:[A-D])[)\]*]*\s*(?:$|[.,;!\n\u2013\u2014]|-\s|\(|it (?:is|must)\b|because\b|since\b|as\b"
    r"|and not\b))"
)
_STATES = lazy_pattern(
    rf"\b(?:answer|option|choice|pick|(?:correct|right|best) one)\b[^.\n]{{0,40}}?"
    rf"(?:\b(?:is|be)\b|[:=](?!>)|{_ARROW}|\s[-\u2013\u2014]\s)"
    rf"|^\W{{0,9}}(?:final |correct )?answer\W{{0,6}}\n|\banswer{_ENDS}"
    r"|\b(?:i|we)(?:'ll|'d| will| would| must| should| can| have to)? (?:choose|pick|select|go (?:with|for)|opt for"
    r"|settle on|say)\b"
    r"|(?<!not )\b(?:correct|right)(?: one)?\s?:|\bleav(?:es?|ing)\b(?: us with| only| just| me with)*|\bleft with\b"
    rf"|(?:\b(?:therefore|hence|thus|so|consequently|accordingly|ergo|finally|conclusion|correction|rather|it(?:'s"
    rf"| is| must be| "
    rf"has to be| should be| can only be))\b|(?:^|[.;!?]\s){_ARROW})[\s,:]*(?:it (?:is|must be)\s)?(?:(?:option"
    rf"|choice|letter)\s)?{_ENDS}"
    r"|^[ \t]*#{1,6}(?=\W*(?-i:[A-D])\W*(?:(?:or|and)?\W*(?-i:[A-D])\W*)*$)",
    re.I | re.M,
)
_ABROAD = lazy_pattern(
    r"(?:\b(?:(?:respuesta|resposta|risposta|opción|opção|alternativa|opzione)\b"
    rf"(?:[^.\n]{{0,40}}?(?:\b(?:es|sería|será|é|seria|è|sarebbe)\b|:)|{_ENDS})"
    rf"|(?:réponse|option|choix)\b(?:[^.\n]{{0,40}}?(?:est\b|:)|{_ENDS})"
    rf"|(?:antwort|lösung|option)\b(?:[^.\n]{{0,40}}?(?:\b(?:ist|lautet|wäre)\b|:)|{_ENDS})"
    r"|(?:antwoord|svaret|odpowiedź|đáp án|cevap)\b[^.\n]{0,40}?(?:\b(?:is|är|to|là)\b|:)"
    r"|(?:ответ(?:ом)?|вариант)\b[^.\n]{0,40}?(?:[:\u2013\u2014-]|\b(?:это|является)\b|(?=\s[A-D]\b)))"
    r"|(?:答案|选项|選項)[^。\n]{0,12}?[是为為:]|(?:选|選)(?:择|擇)?(?!项|項)"
    r"|(?:答え|正解|解答|回答|選択肢|答)[^。\n]{0,12}?[は:]|답[^.\n]{0,12}?[은는:])"
    r"(?:\s*(?:(?-i:la|le|el|die|der|das|a|o)\s|l'|(?:letra|lettre|lettera|buchstabe|opción|option|opção|opzione"
    r"|alternativa|вариант|буква|donc|also|daher|somit|entonces|portanto|então|quindi|dunque)\s|选项|選項))*",
    re.I,
)
"""Statements of the answer in other languages."""
_NEGATES = lazy_pattern(r"\b(?:no|non|não|nicht|pas|не|niet|inte|nie)\b|\bn'|[不没非]|아니", re.I)
_RUN = rf"(?P<run>(?:[(\[]?[A-D][)\]]?{_GAP}(?:[,&/]|,?\s*(?:or|and)\b){_GAP}){{0,3}}[A-D])"
_RIGHT = lazy_pattern(
    rf"(?<![A-Za-z0-9]){_RUN}\b[)\]*\"'`.]{{0,3}}(?:\s+(?:is|are|would be|must be|seems)\s+(?:both\s+"
    rf"|all\s+)?(?:the\s+)?"
    r"(?:correct|right|best|true|(?:only|final|(?:my|our) \w+|answer|one)\b(?! (?:not|wrong)))|\s+(?:it is|wins"
    r"|remains)\b"
    r"|\s*(?:es|est|ist|é|è|\u2014|是|が|[은는이가])\s*(?:(?:la|die|a|le|o)\s)?(?:\w+\s)?(?:corre|richtig|korrekt|bonne"
    r"|正确|正解|정답|верн|правильн)|\s+(?:richtig|korrekt)\b)"
    r"|\bonly (?:option |choice )?\W?(?P<only>[A-D])\W?\s+(?:remains|fits|works|matches|satisfies|holds|survives"
    r"|is (?:left|correct))"
)
_VERDICT = lazy_pattern(
    rf"(?:^|(?<=[\s(\[*]))(?P<letter>[A-D])(?:[)\].*]{{0,3}}\s*[|:\u2013\u2014-]+\s*|[)\].]+\s+"
    rf"|[)\]*]{{0,3}}\s*{_ARROW}\s*|[)\]]?\s?(?=[\u2713\u2714\u2705\u2611])){_RIGHTLY}|^[ \t*-]*(?:\[[xX\u2713]\]"
    rf"|[\u2611\u2705\u2713\u2714])\s*[(\[*]*(?P<checked>[A-D])\b",
    re.M | re.I,
)
"""A letter that is marked as right: "B: correct", "(B) ✓", "- [x] B"."""
_LISTED = lazy_pattern(r"^[ \t]*[(\[*]{0,3}([A-D])[)\].:][^\n]{0,400}$", re.M)
_LONE = lazy_pattern(
    r"[\s*(\[{:$\"'`_]*(?:[Oo]ption\s|[Cc]hoice\s)?([a-d])[)\]}*$\"'`_]*(?:[).:](?:\s|$)|[\s*$.]*$|\s*\n)"
)
"""A lower-case letter that is the whole place, or begins it as in "b)" or "b."."""
MAX_SENTENCE_CHARACTERS, MAX_SENTENCES = 500, 20
"""Sentences are cut at this length, and only the last ones are read."""
CHOICE_CHARACTERS, SENTENCE_CHARACTERS = 12, 60
"""A text of at most this length is a choice alone, or one sentence."""


_LEAVES_OPEN = lazy_pattern(
    r"\?|\b(?:if|unless|whether|suppos\w+|assum\w+|none|all four|(?:may|might|could) be)\b"
    r"|(?:\b(?:not|never|cannot|hardly)|n't)\s+(?:be\s+)?(?:wrong|incorrect|false|mistaken|unlikely|impossible|elimin"
    r"|exclu|reject|rul|discard|dismiss|remov|cross)",
    re.I,
)
"""A sentence with one of these may name three letters beside a denial, and rejects none."""


def chosen_letter(text: Found) -> Found | None:
    """The letter that a text gives as its answer; None if it gives none or several."""
    text = _plain(text)
    for finder in (tagged, boxed):
        region = first_of([finder], text)
        if region is not None:
            return _single(_letters(region, alone=True))
    for letters in _statements(text):
        if letters:
            return _single(letters)
    if len(text.text.strip()) <= CHOICE_CHARACTERS:
        return _single(_letters(text, alone=True))
    named = _last_named(text)
    return _single(_letters(text)) if named is None and len(text.text.strip()) <= SENTENCE_CHARACTERS else named


def left_letter(text: Found) -> tuple[str, Found] | None:
    """The letter that is left, and the list that rejects the three others: "Options A, B, and D are wrong."

    None if the text names the fourth letter at all, or any letter without rejecting it.
    """
    text = _plain(text)
    standing = [match for match in _STANDS.finditer(text.text) if _is_letter(text.text, match, alone=False)]
    last, named = standing[-3:], {match[1].upper() for match in standing}
    if len(named) != 3 or len({match[1].upper() for match in last}) != 3 or len(standing) > MAX_SENTENCES:
        return None
    if not all(_LISTS_ALL.fullmatch(text.text, a.end(), b.start()) for a, b in itertools.pairwise(last)):
        return None
    start, end = last[0].start(), last[-1].end()
    before, after = re.split(r"[.!?\n]", text.text[:start])[-1], re.match(r"[^.!?\n]*\??", text.text[end:])
    if _LEAVES_OPEN.search(before + (after[0] if after else "")) or not all(_denied(text, text.text, standing)):
        return None
    return min({*"ABCD"} - named), text.part(start, end)


def _plain(text: Found) -> Found:
    """A text with brackets for the markup of a letter: _B_ is (B). Positions do not change."""

    def brackets(match: re.Match[str]) -> str:
        at = match.start("letter") - match.start()
        return " " * len(match[0]) if at < 0 else f"({match['letter']})".rjust(at + 2).ljust(len(match[0]))

    return everything(_MARKUP.sub(brackets, text.whole)).part(*text.span)


def _statements(text: Found) -> list[list[Found]]:
    """The letters of each statement of the answer, the last statement first. All verdicts "right" are one statement."""
    begins = list(_STATES.finditer(text.text))[-MAX_SENTENCES:]
    begins += [m for m in list(_ABROAD.finditer(text.text))[-MAX_SENTENCES:] if not _NEGATES.search(m[0])]
    places = []
    for begin in begins:
        rest = text.text[begin.end() : begin.end() + MAX_SENTENCE_CHARACTERS]
        line = re.match(r"[^\n]*" if rest.split("\n")[0].strip(" *:$") else r"(?:.|\n(?!\n\w))*", rest)
        places.append(text.part(begin.end(), begin.end() + (line.end() if line else 0)))
    for right in list(_RIGHT.finditer(text.text))[-MAX_SENTENCES:]:
        places.append(text.part(*right.span("run" if right["run"] else "only")))
    found = [(place.start, _letters(place, alone=True)) for place in places]
    verdicts = [
        text.part(*m.span("letter" if m["letter"] else "checked"))
        for m in list(_VERDICT.finditer(text.text))[-MAX_SENTENCES:]
    ]
    verdicts = [verdict for verdict in verdicts if not verdict.is_denied]
    if verdicts:
        found.append((verdicts[-1].start, verdicts))
    return [letters for _, letters in sorted(found, key=lambda one: one[0], reverse=True)]


def _last_named(text: Found) -> Found | None:
    """The letter in the last sentence that names one, in brackets or as an option. Lists of the choices are ignored."""
    listed = list(_LISTED.finditer(text.text))[-MAX_SENTENCES:]
    if len(listed) == 1:
        return _single(_letters(text.part(*listed[0].span())))
    named = re.finditer(r"[(\[][A-D][)\]]|\*\*[A-D]\*\*|\b(?:choice|option) [A-D]\b", text.text, re.I)
    outside = [
        m for m in list(named)[-MAX_SENTENCES:] if not any(line.start() <= m.start() < line.end() for line in listed)
    ]
    if not outside:
        return None
    start = max(text.text.rfind("\n", 0, outside[-1].start()), text.text.rfind(". ", 0, outside[-1].start())) + 1
    return _single(_letters(text.part(start, min(len(text.text), start + MAX_SENTENCE_CHARACTERS))))


def _letters(place: Found, alone: bool = False) -> list[Found]:
    """The letters that a place chooses, before any explanation. If `alone`, a single letter may be lower case."""
    text = _WRAPPING.sub(lambda m: " " * (len(m[0]) - 1) + "(", place.text[:MAX_SENTENCE_CHARACTERS])
    lone = _LONE.match(text) if alone else None
    if lone is not None and not place.part(*lone.span(1)).is_denied:
        return [place.part(*lone.span(1))]
    standing = [match for match in _STANDS.finditer(text) if _is_letter(text, match, alone)]
    found: list[tuple[int, int]] = []
    for match, denied in zip(standing, _denied(place, text, standing), strict=True):
        if found and _EXPLAINS.search(text, found[0][1] + 2, match.start()):
            break
        if denied or not _BEFORE.search(text[max(0, match.start() - 24) : match.start()]):
            continue
        marked = _is_bracketed(text, match) or text[match.end() : match.end() + 1] == ")"
        if not found or marked or _JOINS.fullmatch(text, found[-1][1], match.start()):
            found.append(match.span(1))
    return [place.part(*span) for span in found]


def _is_letter(text: str, match: re.Match[str], alone: bool) -> bool:
    """Whether a letter is neither an article nor a name ("B fields"), nor in lower case without brackets."""
    if match[1].islower():
        return _is_bracketed(text, match)
    return (alone and match[1] != "A") or _NAMES.match(text, match.end()) is None


def _is_bracketed(text: str, match: re.Match[str]) -> bool:
    before, after = text[max(0, match.start() - 2) : match.start()], text[match.end() : match.end() + 2]
    within = before[:-1].isalnum() or after[1:].isalnum()  # cyclopenta[c]pyridine
    return before[-1:] in ("(", "[") and after[:1] in (")", "]") and not within


def _denied(place: Found, text: str, letters: list[re.Match[str]]) -> list[bool]:
    """For each letter of a place whether it is denied, alone or in a list: "not A, B or C", "A, B and C are wrong"."""
    found, rejects = list[bool](), False
    for n, match in enumerate(letters):
        before = text[max(0, match.start() - 40) : match.start()]
        gap = text[letters[n - 1].end() : match.start()] if n else ""
        listed = _LISTS_ALL.fullmatch(gap) is not None
        rejects = _REJECTS.search(before) is not None or (rejects and listed)
        also = _ALSO_BEFORE.search(before) or _ALSO_AFTER.match(text, match.end())
        inherits = n > 0 and found[-1] and (_LISTS.fullmatch(gap) or also)
        after = _DENIED.match(text, match.end())
        alone = _DENIES.search(before) or after or place.part(*match.span(1)).is_denied
        found.append(bool(rejects or inherits or alone))
        if after and listed and (after["plural"] or (after["many"] and _begins_clause(place, letters, n))):
            for k in range(n, 0, -1):
                if not _LISTS_ALL.fullmatch(text, letters[k - 1].end(), letters[k].start()):
                    break
                found[k - 1] = True
    return found


def _begins_clause(place: Found, letters: list[re.Match[str]], last: int) -> bool:
    """Whether no statement begins the list that ends here: "the answer is B and A can be excluded" excludes only A."""
    before = place.whole[max(0, place.start + letters[0].start() - 12) : place.start + letters[0].start()]
    return last > 0 and not re.search(r"(?:\b(?:is|be)\b|:)\W*$", before)


def _single(letters: list[Found]) -> Found | None:
    return letters[0] if len({letter.text.upper() for letter in letters}) == 1 else None
