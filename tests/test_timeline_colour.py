"""Colours of the pictures in both themes, measured: states differ for colour-blind readers too, text can be read."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest

from wsformat.viewers.panels import written_on
from wsformat.viewers.theme import both_themes, counterparts, lighten, on_dark, variables
from wsformat.viewers.timeline_layout import SHADES, luminance, palette, shade

# Severity 1.0 of G. M. Machado, M. M. Oliveira, L. A. F. Fernandes, "A physiologically-based model for simulation of
# color vision deficiency", 2009: linear RGB to linear RGB.
SIMULATED = {
    "normal": np.eye(3),
    "protanopia": np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
                            [-0.003882, -0.048116, 1.051998]]),
    "deuteranopia": np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
                              [-0.011820, 0.042940, 0.968881]]),
    "tritanopia": np.array([[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
                            [0.004733, 0.691367, 0.303900]]),
    "greyscale": np.tile([0.2126, 0.7152, 0.0722], (3, 1)),
}  # fmt: skip
HATCHED = 2**0.5 / 4  # share of a 4 x 4 tile that a diagonal line of width 1 covers


def linear(colour: str) -> np.ndarray:
    part = np.frombuffer(bytes.fromhex(colour[1:]), dtype=np.uint8) / 255
    return np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    """CIE L*a*b* (D65) of linear RGB."""
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    xyz = to_xyz @ np.clip(rgb, 0, 1) / [0.9505, 1.0, 1.089]
    f = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def distance(a: np.ndarray, b: np.ndarray, view: str) -> float:
    return float(np.linalg.norm(lab(SIMULATED[view] @ a) - lab(SIMULATED[view] @ b)))


def contrast(a: float, b: float) -> float:
    """Contrast ratio of two relative luminances (WCAG 2)."""
    return (max(a, b) + 0.05) / (min(a, b) + 0.05)


THEMES = both_themes()


def stall_tone(theme: str) -> np.ndarray:
    """What the hatch looks like from so far that its lines blur."""
    stall = THEMES[theme]["stall"]
    return HATCHED * linear(stall["line"]) + (1 - HATCHED) * linear(stall["base"])


ACTIVE = {
    "light": [shade(colour, step) for colour in palette()["active"] for step in range(len(SHADES))],
    "dark": [lighten(colour, step) for colour in THEMES["dark"]["active"] for step in range(len(SHADES))],
}
BY_THEME = [(theme, colour) for theme, colours in ACTIVE.items() for colour in colours]


def test_lab_of_known_colours() -> None:
    assert lab(linear("#ffffff")) == pytest.approx([100, 0, 0], abs=0.1)
    assert lab(linear("#ff0000")) == pytest.approx([53.24, 80.09, 67.20], abs=0.1)
    assert luminance("#777777") == pytest.approx(0.1845, abs=1e-3)
    # Confused by a deuteranope, not by others: the simulation simulates.
    red, green = linear("#a54b00"), linear("#6b6b00")
    assert distance(red, green, "normal") > 3 * distance(red, green, "deuteranopia")


@pytest.mark.parametrize("view", SIMULATED)
@pytest.mark.parametrize(("theme", "colour"), BY_THEME)
def test_active_never_looks_like_stall_or_untracked(theme: str, colour: str, view: str) -> None:
    assert distance(linear(colour), stall_tone(theme), view) > 20
    assert distance(linear(colour), linear(THEMES[theme]["untracked"]), view) > 35


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("view", SIMULATED)
def test_stall_untracked_and_paper_differ(theme: str, view: str) -> None:
    untracked, paper = linear(THEMES[theme]["untracked"]), linear(THEMES[theme]["paper"])
    assert distance(stall_tone(theme), untracked, view) > 15
    assert distance(untracked, paper, view) > 5  # faint, and still there


@pytest.mark.parametrize("theme", THEMES)
def test_hatch_lines_stand_out_from_their_ground(theme: str) -> None:
    ink = THEMES[theme]
    assert contrast(luminance(ink["stall"]["line"]), luminance(ink["stall"]["base"])) > 4.5
    # Satisfied waits have the ground of a stall without its lines: the hatch and its edge carry the difference.
    assert contrast(luminance(ink["stall"]["edge"]), luminance(ink["paper"])) > 3
    assert contrast(luminance(ink["stall"]["edge"]), luminance(ink["satisfied"])) > 1.8


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("view", [view for view in SIMULATED if view != "greyscale"])
def test_the_first_roles_keep_apart(theme: str, view: str) -> None:
    """Beyond four, and in greyscale, names beside the rows tell roles apart."""
    for a, b in combinations(THEMES[theme]["active"][:4], 2):
        assert distance(linear(a), linear(b), view) > 10, (a, b)


@pytest.mark.parametrize("theme", THEMES)
def test_text_and_marks_have_contrast(theme: str) -> None:
    """WCAG 2 level AA: 4.5 for text, 3 for marks."""
    ink = THEMES[theme]
    paper = luminance(ink["paper"])
    for name in ("ink", "quiet", "warning"):
        assert contrast(luminance(ink[name]), paper) > 4.5, name
    for name in ("ink", "quiet"):
        assert contrast(luminance(ink[name]), luminance(ink["untracked"])) > 4.5, name
    for colour in ink["active"]:
        assert contrast(luminance(colour), paper) > 4.5, colour  # names of roles are text in this colour
    for colour in ACTIVE[theme]:
        assert contrast(luminance(colour), paper) > 3, colour


@pytest.mark.parametrize("colour", [c for c in counterparts() if c in ACTIVE["light"] or c in palette()["heat"]])
def test_text_on_marks_can_be_read_in_both_themes(colour: str) -> None:
    written = written_on(colour)
    assert contrast(luminance(written), luminance(colour)) > 4.5
    assert contrast(luminance(on_dark(written)), luminance(on_dark(colour))) > 4.5


@pytest.mark.parametrize("view", SIMULATED)
@pytest.mark.parametrize("theme", THEMES)
def test_more_is_always_further_from_the_paper(theme: str, view: str) -> None:
    paper = linear(THEMES[theme]["paper"])
    steps = [distance(linear(colour), paper, view) for colour in THEMES[theme]["heat"]]
    assert steps == sorted(steps)
    assert min(b - a for a, b in pairwise(steps)) > 3


def test_every_colour_has_one_counterpart() -> None:
    known = counterparts()
    assert set(ACTIVE["light"]) <= set(known)
    assert [known[colour] for colour in palette()["active"]] == THEMES["dark"]["active"]
    assert on_dark("#000000") != "#000000"  # a stored colour that would vanish is lightened
    assert contrast(luminance(on_dark("#101040")), luminance(THEMES["dark"]["paper"])) > 3
    assert on_dark("#ffeecc") == "#ffeecc"
    assert f"--paper:light-dark({palette()['paper']},{THEMES['dark']['paper']})" in variables()
