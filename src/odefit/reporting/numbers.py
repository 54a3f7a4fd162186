"""Numbers as people read them."""

from __future__ import annotations

import math


def significant(value: float, digits: int = 5, *, keep_zeros: bool = False) -> str:
    """Return `value` with `digits` significant digits, e.g. ``"5.9258e-05"``; empty for NaN.

    Trailing zeros are dropped, unless `keep_zeros` marks them as significant.
    """
    if math.isnan(value):
        return ""
    if value == 0 or math.isinf(value):
        return f"{abs(value) if value == 0 else value:g}"
    scientific = f"{value:.{digits - 1}e}"
    mantissa, _, power = scientific.partition("e")
    exponent = int(power)
    if -3 <= exponent < max(digits, 6):
        text = f"{float(scientific):.{max(digits - 1 - exponent, 0)}f}"
        return text if keep_zeros else _without_zeros(text)
    return f"{mantissa if keep_zeros else _without_zeros(mantissa)}e{exponent:+03d}"


def to_units(value: float, digits: int = 5) -> str:
    """Return `value` with `digits` significant digits, and a number below 1e9 in full units.

    >>> to_units(224406.8), to_units(328.7962)
    ('224407', '328.8')
    """
    whole = len(f"{abs(value):.0f}") if abs(value) < 1e9 else 0
    return significant(value, max(digits, whole))


def _without_zeros(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def decade_for(value: float, error: float) -> int | None:
    """Return the power of ten of the last digit of `value` that its standard error allows.

    This is the second digit of the error, with three to eight digits of the value; None without a
    standard error.
    """
    if not (math.isfinite(value) and math.isfinite(error)) or error <= 0:
        return None
    last = math.floor(math.log10(error)) - 1
    if value == 0:
        return last
    first = math.floor(math.log10(abs(value)))
    return min(max(last, first - 7), first - 2)


def to_decade(value: float, decade: int | None) -> str:
    """Return `value` rounded to 10**`decade`; for None, to five significant digits."""
    if decade is None or not math.isfinite(value):
        return significant(value)
    if value == 0 or abs(value) < 0.5 * 10.0**decade:
        return "0"
    digits = max(math.floor(math.log10(abs(value))) - decade + 1, 1)
    return significant(value, min(digits, 15), keep_zeros=True)


def duration(seconds: float) -> str:
    """Return a wall time in words, e.g. ``"3.2 s"`` or ``"2 h 05 min"``."""
    if not math.isfinite(seconds):
        return "unknown time"
    if seconds < 0.01:
        return f"{1000 * seconds:.2g} ms"
    if seconds < 120:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60:02d} min"


def percent(fraction: float) -> str:
    """Return a fraction in per cent with two significant digits, e.g. ``"2.1 %"``."""
    if not math.isfinite(fraction):
        return "unknown"
    value = 100 * fraction
    return f"{value:.0f} %" if abs(value) >= 99.5 else f"{value:.2g} %"


def level_words(level: float) -> str:
    """Return a confidence level in words, e.g. ``"95 %"``."""
    return f"{100 * level:.4g} %"
