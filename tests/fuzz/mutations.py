"""Hostile values, and mutations of documents, texts and bytes, as hypothesis draws them."""

import copy

from hypothesis import strategies as st


def nested(depth):
    found = []
    for _ in range(depth):
        found = [found]
    return found


#: What a key may hold in place of what it should.
HOSTILE = st.sampled_from(
    [
        None, True, False, 0, -1, 1, 2, 3, 7, 2**31, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), 10**400,
        0.0, -0.0, 0.5, 2.5, 1e-320, 1e308, float("inf"), float("-inf"), float("nan"),
        "", " ", "x", "x" * 300, "No", "null", "1e400", "9" * 400, "nan", "\ud800", "\x00",
        "a\nb", "\r\n", "\ufeff", "é🙂", "[red]x[/red]", "<!--<script>", "../../x", "/dev/zero",
        "a\x00.toml", "{tp}", "{memory_gb}", "%s", "pco32", "ok", [], [1], [None], ["x"], [1, 1],
        [-1], [2.5], {}, {"": 1}, {"x": {}}, nested(30), nested(300),
    ]
)  # fmt: skip
#: Names of keys that nobody expects, or that mean something elsewhere.
KEYS = st.sampled_from(
    ["", "x", "name", "format", "seed", "space", "history", "__class__", "x\ny", "é", "memory_gb"]
)


def paths(value, so_far=()):
    """The ways to all parts of a document."""
    yield so_far
    if isinstance(value, dict):
        for key, part in value.items():
            yield from paths(part, (*so_far, key))
    elif isinstance(value, list):
        for at, part in enumerate(value):
            yield from paths(part, (*so_far, at))


def part(value, path):
    for step in path:
        value = value[step]
    return value


@st.composite
def documents(draw, document, n_most=3):
    """A document with some parts replaced, removed, added, doubled or exchanged."""
    found = copy.deepcopy(document)
    for _ in range(draw(st.integers(1, n_most))):
        inner = [path for path in paths(found) if path]
        if not inner:
            return found
        path = draw(st.sampled_from(inner))
        owner, key = part(found, path[:-1]), path[-1]
        match draw(st.integers(0, 4)):
            case 0 | 1:
                owner[key] = copy.deepcopy(draw(HOSTILE))
            case 2:
                del owner[key]
            case 3 if isinstance(owner, dict):
                owner[draw(KEYS)] = copy.deepcopy(draw(HOSTILE))
            case 3:
                owner.append(copy.deepcopy(draw(st.sampled_from(owner))))
            case 4:
                owner[key] = copy.deepcopy(part(found, draw(st.sampled_from(inner))))
    return found


#: Pieces of texts that mean something to a parser.
PIECES = st.sampled_from(
    [
        "", ",", '"', "'", "\n", "\r\n", "\r", "\t", "\x00", "\ufeff", "\x1b[31m", "=", "[", "]",
        "{", "}", ":", "#", "nan", "inf", "-", "1e400", "9" * 400, "0x10", "1_000", "é🙂", "null",
        "true", " " * 50, "x" * 5_000, "[" * 200, "[" * 5_000,
    ]
)  # fmt: skip


@st.composite
def texts(draw, text, n_most=3):
    """A text with pieces put in, taken out, doubled or exchanged, or cut off."""
    for _ in range(draw(st.integers(1, n_most))):
        at = draw(st.integers(0, len(text)))
        end = min(at + draw(st.integers(0, 30)), len(text))
        match draw(st.integers(0, 5)):
            case 0 | 1:
                text = text[:at] + draw(PIECES) + text[at:]
            case 2:
                text = text[:at] + draw(PIECES) + text[end:]
            case 3:
                text = text[:end] + text[at:]
            case 4:
                lines = text.split("\n")
                line = draw(st.integers(0, len(lines) - 1))
                text = "\n".join([*lines[:line], *lines[line:][:1], *lines[line:]])
            case 5:
                text = text[:at]
    return text


def contents(content):
    """Bytes with some replaced, as a damaged disk leaves them."""
    return st.lists(
        st.tuples(st.integers(0, len(content) - 1), st.integers(0, 255)), min_size=1, max_size=4
    ).map(lambda changes: _changed(content, changes))


def _changed(content, changes):
    found = bytearray(content)
    for at, byte in changes:
        found[at] = byte
    return bytes(found)
