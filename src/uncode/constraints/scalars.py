"""Expressions of JSON texts without parts: the characters of a string, its formats, and numbers between bounds."""

from __future__ import annotations

from collections.abc import Sequence

from .characters import Ranges, complement, merged

_NEEDS_ESCAPE: Ranges = merged([(0, 31), (34, 34), (92, 92)])
PLAIN = complement(_NEEDS_ESCAPE)
"""Characters that a JSON string has as they are."""
_ESCAPE = r'\\(?:["\\/bfnrt]|u(?:[0-9a-ce-fA-CE-F][0-9a-fA-F]|[dD][0-7])[0-9a-fA-F]{2})'
CHARACTER = rf'(?:[^"\\\x00-\x1f]|{_ESCAPE})'
INTEGER = r"-?(?:0|[1-9][0-9]*)"
NUMBER = rf"{INTEGER}(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{{1,2}})?"
_LONG_MONTH, _SHORT_MONTH = r"(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])", r"(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
_DAY = rf"(?:{_LONG_MONTH}|{_SHORT_MONTH}|02-(?:0[1-9]|1[0-9]|2[0-8]))"
_YEAR, _FOURTH = r"(?:[0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)", "(?:0[48]|[2468][048]|[13579][26])"
_DATE = rf"(?:{_YEAR}-{_DAY}|(?:[0-9]{{2}}{_FOURTH}|{_FOURTH}00)-02-29)"
_CLOCK = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]"
_TIME = rf"{_CLOCK}:[0-5][0-9](?:\.[0-9]{{1,6}})?(?:Z|[+-]{_CLOCK})"
_BYTE, _LABEL = r"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])", r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,30}[A-Za-z0-9])?"
FORMATS = {
    "date": _DATE,
    "time": _TIME,
    "date-time": f"{_DATE}T{_TIME}",
    "uuid": "-".join(f"[0-9a-f]{{{n}}}" for n in (8, 4, 4, 4, 12)),
    "email": rf"[A-Za-z0-9_+-]+(?:\.[A-Za-z0-9_+-]+)*@{_LABEL}(?:\.{_LABEL})+",
    "hostname": rf"{_LABEL}(?:\.{_LABEL})*",
    "ipv4": rf"{_BYTE}(?:\.{_BYTE}){{3}}",
    "uri": r"https?://[A-Za-z0-9.-]+(?::[0-9]{1,4})?(?:/[A-Za-z0-9._~!$&'()*+,;=:@-]*)*",
}


def either(found: Sequence[str]) -> str:
    return f"(?:{'|'.join(found)})"


def any_of(found: Sequence[str | None]) -> str | None:
    kept = list(dict.fromkeys(one for one in found if one is not None))
    return None if not kept else kept[0] if len(kept) == 1 else either(kept)


def whole_numbers(low: int | None, high: int | None) -> str | None:
    """The expression of the whole numbers from `low` to `high`; None is no bound."""
    if low is None and high is None:
        return INTEGER
    negative = _naturals(max(1, -high) if high is not None else 1, None if low is None else -low)
    natural = _naturals(max(low, 0) if low is not None else 0, high)
    return any_of([negative and f"-{negative}", natural])


def _naturals(low: int, high: int | None) -> str | None:
    """The natural numbers from `low` to `high`, without leading zeros."""
    if high is None:
        digits = len(str(low))
        same = _naturals(low, 10**digits - 1)
        return any_of([same, f"[1-9][0-9]{{{digits},}}"])
    if low > high:
        return None
    parts, at = list[str](), low
    while at <= high:
        step = 1  # the largest power of ten at which a run of numbers with free last digits begins here
        while at % (step * 10) == 0 and at + step * 10 - 1 <= high and at > 0:
            step *= 10
        head, free = at // step, len(str(step)) - 1
        last = min(head - head % 10 + 9, (high - step + 1) // step)
        digit = f"[{head % 10}-{last % 10}]" if last > head else str(head % 10)
        before = str(head // 10) if head >= 10 else ""
        parts.append(before + digit + (f"[0-9]{{{free}}}" if free else ""))
        at = (last + 1) * step
    return any_of(parts)


def decimals(low: int | None, high: int | None, above: bool, below: bool) -> str | None:
    """Numbers between two whole ones, which are excluded where `above` or `below` says so."""
    natural = negative = None
    if high is None or high >= 0:
        natural = _magnitudes(max(low or 0, 0), high, above and low is not None and low >= 0, below)
    if low is None or low < 0:
        least = 0 if high is None else max(-high, 0)
        negative = _magnitudes(least, None if low is None else -low, below and high is not None and high <= 0, above)
    return any_of([natural, negative and f"-{negative}"])


def _magnitudes(low: int, high: int | None, above: bool, below: bool) -> str | None:
    """The same without a sign; `low` is 0 or more."""
    inner = _naturals(low + above, None if high is None else high - 1)
    found = [inner and rf"{inner}(?:\.[0-9]+)?"]
    if above and (high is None or low < high):
        found.append(rf"{low}\.[0-9]*[1-9][0-9]*")
    if high is not None and not below and high >= low + above:
        found.append(rf"{high}(?:\.0+)?")
    return any_of(found)
