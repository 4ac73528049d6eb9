"""How pages and figures write numbers and settings: three digits, and the unit that keeps them short."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

#: What stands where there is nothing to say.
NOTHING = "–"


def digits(value: float) -> str:
    """Return three digits, without an exponent where it is not needed."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    if 1e-4 <= abs(value) < 1e6:
        whole = math.floor(math.log10(abs(float(f"{value:.2e}")))) + 1
        return f"{value:,.{max(3 - whole, 0)}f}" if whole <= 3 else f"{float(f'{value:.2e}'):,.0f}"
    return f"{value:.2e}"


def seconds_text(value: float | None) -> str:
    """Return seconds in s, ms or µs; `NOTHING` for None and NaN."""
    if value is None or not value >= 0:
        return NOTHING
    scale, unit = (1.0, "s") if value >= 0.9995 or not value else (1e3, "ms") if value >= 0.9995e-3 else (1e6, "µs")
    return f"{digits(value * scale)}\u00a0{unit}"


def bytes_text(value: float | None) -> str:
    """Return bytes in MB or GB, of 10^6 and 10^9; `NOTHING` for None and NaN."""
    if value is None or math.isnan(value):
        return NOTHING
    return f"{digits(value / 1e9)}\u00a0GB" if value >= 0.9995e9 else f"{digits(value / 1e6)}\u00a0MB"


def tiny_text(value: float | None) -> str:
    """Return a number that should be close to 0, such as 1.2e-09; `NOTHING` for None and NaN."""
    if value is None or math.isnan(value):
        return NOTHING
    return f"{value:.1e}" if value else "0"


def factor_text(value: float) -> str:
    """Return a factor, such as 3.10×; `NOTHING` for NaN."""
    return NOTHING if math.isnan(value) else f"{digits(value)}×"


def power_text(value: float) -> str:
    """Return an exponent with two digits behind the point."""
    return f"{value:z.2f}"


def part_text(value: float) -> str:
    """Return a part of one in percent."""
    return f"{100 * value:.3g}\u00a0%"


def thousands(number: float) -> str:
    """Return a number with commas between the thousands."""
    return f"{number:,}" if isinstance(number, int) else f"{number:,g}"


def plain(value: Any) -> str:
    """Return a setting as text; words stand without quotes."""
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)


def settings_text(settings: Iterable[tuple[str, Any]]) -> str:
    """Return settings or parameters such as "delay=0.5, mode=plain"; `NOTHING` where there are none."""
    return ", ".join(f"{name}={plain(value)}" for name, value in settings) or NOTHING


def versions_text(versions: Mapping[str, str]) -> str:
    """Return names with their versions; `NOTHING` where there are none."""
    return ", ".join(f"{name} {version}" for name, version in sorted(versions.items())) or NOTHING
