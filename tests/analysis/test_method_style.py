import pytest

from parabolt.analysis.method_style import COLORS, method_style, short_label
from parabolt.optimizers.registry import LIBRARY_OPTIMIZERS, OPTIMIZERS

NAMES = [*OPTIMIZERS, *LIBRARY_OPTIMIZERS]


def luminance(color):
    """Relative luminance of sRGB, WCAG 2."""
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("color", COLORS)
def test_colours_stand_out_on_the_light_and_on_the_dark_page(color):
    for page in ("#ffffff", "#15181c"):
        low, high = sorted((luminance(color), luminance(page)))
        assert (high + 0.05) / (low + 0.05) >= 3.0


def test_every_optimizer_of_the_registry_has_a_style_of_its_own():
    styles = {method_style(name) for name in NAMES}
    assert len(styles) == len(NAMES)
    patterns = {style.pattern for style in styles}
    assert all(len(pattern) <= 2 for pattern in patterns)  # longer ones are of own optimizers


def test_an_own_optimizer_keeps_its_style_and_takes_none_of_a_known_one():
    own = method_style("mine:Mine")
    assert own == method_style("mine:Mine")
    assert own not in {method_style(name) for name in NAMES}
    assert (own.color, own.pattern) == ("#ac3498", (8.0, 1.5, 1.0, 1.5, 1.0, 1.5))
    assert len({method_style(f"own-{n}") for n in range(200)}) == 21


def test_long_labels_are_cut():
    assert short_label("a" * 24) == "a" * 24
    assert short_label("a" * 25) == "a" * 23 + "…"
