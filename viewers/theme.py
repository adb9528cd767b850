"""One set of colours for light and dark: the palette of ``palette.json`` and the CSS that turns a picture dark."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from wsformat.viewers.timeline_layout import SHADES, luminance, palette, shade

HEX = re.compile(r"(?:fill|stroke)=\"(#[0-9a-fA-F]{6})\"")
NAMES = ("ink", "quiet", "rule", "paper", "untracked", "warning", "satisfied")
LIGHTEST = 0.62
"""How far the shades of a role go towards white on dark paper, as a share of what they go towards black on light."""


def lighten(colour: str, step: int) -> str:
    """The counterpart of :func:`shade` on dark paper: the colour itself for step 0, then lighter ones."""
    light = SHADES[step % len(SHADES)] * LIGHTEST
    return "#" + "".join(f"{round(part + (255 - part) * light):02x}" for part in bytes.fromhex(colour[1:]))


@cache
def counterparts() -> dict[str, str]:
    """For every colour of the light palette, shades included, the one on dark paper."""
    light = palette()
    dark = light["dark"]
    found = {light[name]: dark[name] for name in NAMES}
    found |= {light["stall"][part]: dark["stall"][part] for part in ("base", "line", "edge")}
    found |= dict(zip(light["heat"], dark["heat"], strict=True))
    for own, other in zip(light["active"], dark["active"], strict=True):
        found |= {shade(own, step): lighten(other, step) for step in range(len(SHADES))}
    return found


def on_dark(colour: str) -> str:
    """A colour's counterpart on dark paper; one that the palette does not know is lightened until it shows there."""
    known = counterparts().get(colour.lower())
    if known is not None:
        return known
    parts = [int(part) for part in bytes.fromhex(colour[1:])]
    for _ in range(20):
        made = "#" + "".join(f"{part:02x}" for part in parts)
        if luminance(made) >= 0.2:
            return made
        parts = [round(part + (255 - part) * 0.12) for part in parts]
    return made


def recolour(svg: str, scope: str) -> str:
    """CSS that gives the marks of an SVG under the selector ``scope`` their colours on dark paper."""
    colours = sorted({colour.lower() for colour in HEX.findall(svg)})
    return "".join(
        f'{scope} [{part}="{colour}" i]{{{part}:light-dark({colour},{on_dark(colour)})}}'
        for colour in colours
        for part in ("fill", "stroke")
        if f'{part}="{colour}"' in svg.lower()
    )


def variables() -> str:
    """CSS variables of both themes: ``--ink``, ``--paper``, ``--role-0`` ...; light-dark() picks one."""
    light: dict[str, Any] = palette()
    dark: dict[str, Any] = light["dark"]
    pairs = {name: (light[name], dark[name]) for name in NAMES}
    pairs |= {f"stall-{part}": (light["stall"][part], dark["stall"][part]) for part in ("base", "line", "edge")}
    pairs |= {f"role-{n}": pair for n, pair in enumerate(zip(light["active"], dark["active"], strict=True))}
    body = ";".join(f"--{name}:light-dark({a},{b})" for name, (a, b) in pairs.items())
    return (
        f":root{{color-scheme:light dark;{body}}}"
        ":root[data-theme=light]{color-scheme:light}:root[data-theme=dark]{color-scheme:dark}"
        "@media print{:root,:root[data-theme]{color-scheme:light}}"
    )


def both_themes() -> dict[str, dict[str, Any]]:
    """The palettes by theme, for scripts that paint for themselves."""
    light = {name: value for name, value in palette().items() if name not in ("about", "dark")}
    return {"light": light, "dark": palette()["dark"]}
