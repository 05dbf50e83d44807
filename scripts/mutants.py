"""Small mutants of a source file: one operator, constant, condition or statement changed."""

from __future__ import annotations

import ast
import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.BitXor: ast.BitOr,
    ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.MatMult: ast.MatMult,
}  # fmt: skip
_COMPARISON: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_COUNTERPARTS = (
    ("min", "max"), ("minimum", "maximum"), ("argmin", "argmax"), ("nanmin", "nanmax"),
    ("any", "all"), ("floor", "ceil"), ("zeros", "ones"), ("zeros_like", "ones_like"),
)  # fmt: skip
_SWAPPED_NAMES = {a: b for pair in _COUNTERPARTS for a, b in (pair, pair[::-1])}


@dataclass(frozen=True)
class Mutant:
    """One change of a file.

    Attributes:
        path: The file, relative to the root of the project.
        kind: What was changed, in a word.
        start: Offset of the first byte that is replaced.
        end: Offset after the last.
        text: What stands there instead.
        first_line: First line of the statement, or of its head, counted from 1.
        last_line: Its last line.
        is_run_at_import: Whether the code runs when the module is imported, and not when it is
            called.
    """

    path: str
    kind: str
    start: int
    end: int
    text: str
    first_line: int
    last_line: int
    is_run_at_import: bool

    def applied(self, source: bytes) -> bytes:
        """The file with the change."""
        return source[: self.start] + self.text.encode() + source[self.end :]

    def described(self, source: bytes) -> str:
        """Place, kind and change in one line."""
        line = source[: self.start].count(b"\n") + 1
        before = " ".join(source[self.start : self.end].decode().split())
        return f"{self.path}:{line}  {self.kind}: {before}  ->  {self.text}"


def mutants_of(source: bytes, path: str) -> list[Mutant]:
    """All mutants of a file, in the order of its text.

    Left out are annotations, decorators, docstrings, imports, error messages, and what stands under
    `if TYPE_CHECKING`.
    """
    found = _Finder(source, path)
    found.visit(ast.parse(source))
    return sorted(found.mutants, key=lambda m: (m.start, m.end, m.text))


class _Finder(ast.NodeVisitor):
    def __init__(self, source: bytes, path: str) -> None:
        self.mutants: list[Mutant] = []
        self._path = path
        lines = source.splitlines(keepends=True)
        self._starts = [sum(map(len, lines[:i])) for i in range(len(lines))]
        self._lines = (1, 1)
        self._depth = 0

    def visit(self, node: ast.AST) -> None:
        """Mutates a node, then what is inside."""
        if isinstance(node, ast.JoinedStr) or getattr(node, "arg", "") == "strict":
            return  # a text for people; a check of zip that no valid call fails
        if isinstance(node, ast.stmt):
            self._statement(node)
            return
        if isinstance(node, ast.expr):
            for kind, changed in _changed(node):
                self._add(node, kind, f"({ast.unparse(changed)})")
        is_lambda = isinstance(node, ast.Lambda)
        self._depth += is_lambda
        self.generic_visit(node)
        self._depth -= is_lambda

    def _statement(self, node: ast.stmt) -> None:
        outer = self._lines
        body = getattr(node, "body", None)
        head_end = body[0].lineno - 1 if body else node.end_lineno or node.lineno
        self._lines = (node.lineno, max(node.lineno, head_end))
        if _is_removable(node):
            self._add(node, "removed", "pass")
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            self._lines = outer
            self.generic_visit_all([*node.args.defaults, *filter(None, node.args.kw_defaults)])
            self._depth += 1
            self.generic_visit_all(node.body)
            self._depth -= 1
        elif isinstance(node, ast.ClassDef):
            self.generic_visit_all(node.body)
        elif isinstance(node, ast.AnnAssign):
            self.generic_visit_all([node.value] if node.value else [])
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            self.generic_visit_all(node.orelse)
        elif not (isinstance(node, (ast.Raise, ast.Import, ast.ImportFrom)) or _is_text(node)):
            if isinstance(node, (ast.If, ast.While, ast.Assert)):
                self._add(node.test, "inverted", f"(not ({ast.unparse(node.test)}))")
            self.generic_visit(node)
        self._lines = outer

    def generic_visit_all(self, nodes: list[ast.stmt] | list[ast.expr]) -> None:
        """Visits a list of nodes."""
        for node in nodes:
            self.visit(node)

    def _add(self, node: ast.stmt | ast.expr, kind: str, text: str) -> None:
        start = self._starts[node.lineno - 1] + node.col_offset
        end = self._starts[(node.end_lineno or 1) - 1] + (node.end_col_offset or 0)
        mutant = Mutant(self._path, kind, start, end, text, *self._lines, self._depth == 0)
        self.mutants.append(mutant)


def _is_text(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _is_removable(node: ast.stmt) -> bool:
    """A statement without which the rest can still run."""
    if isinstance(node, ast.Assign):
        return all(isinstance(target, (ast.Attribute, ast.Subscript)) for target in node.targets)
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Call)
    return isinstance(node, (ast.AugAssign, ast.Raise, ast.Continue, ast.Break))


def _changed(node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """Mutants of one expression, its parts left as they are."""
    new = copy.deepcopy(node)
    if isinstance(new, ast.BinOp) and not _is_of_text(new):
        new.op = _ARITHMETIC[type(new.op)]()
        if isinstance(new.op, ast.MatMult):
            new.left, new.right = new.right, new.left
        yield "arithmetic", new
    elif isinstance(new, ast.Compare):
        new.ops[0] = _COMPARISON[type(new.ops[0])]()
        yield "comparison", new
    elif isinstance(new, ast.BoolOp):
        new.op = ast.Or() if isinstance(new.op, ast.And) else ast.And()
        yield "boolean", new
    elif isinstance(new, ast.UnaryOp):
        yield "sign", new.operand
    elif isinstance(new, ast.IfExp):
        new.test = ast.UnaryOp(ast.Not(), new.test)
        yield "inverted", new
    elif isinstance(new, ast.Constant):
        yield from _constants(new.value)
    elif isinstance(new, ast.Subscript) and isinstance(new.slice, ast.Slice):
        yield from _slices(new, new.slice)
    elif isinstance(new, ast.Call):
        yield from _calls(new)


def _constants(value: object) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(value, bool):
        yield "constant", ast.Constant(not value)
    elif isinstance(value, int):
        yield "constant", ast.Constant(value + 1)
    elif isinstance(value, float):
        yield "constant", ast.Constant(2.0 * value or 1.0)


def _slices(node: ast.Subscript, part: ast.Slice) -> Iterator[tuple[str, ast.expr]]:
    bound = part.upper or part.lower
    if bound is not None and not isinstance(bound, ast.Constant):
        shifted = ast.BinOp(bound, ast.Add(), ast.Constant(1))
        part.upper, part.lower = (shifted, part.lower) if part.upper else (None, shifted)
        yield "off by one", node


def _calls(node: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
    plain = [arg for arg in node.args if not isinstance(arg, ast.Starred)]
    if name == "range" and plain:
        last = node.args[min(1, len(plain) - 1)]
        if not isinstance(last, ast.Constant):
            changed = copy.deepcopy(node)
            shifted = ast.BinOp(last, ast.Add(), ast.Constant(1))
            changed.args[min(1, len(plain) - 1)] = shifted
            yield "off by one", changed
    elif name in _SWAPPED_NAMES:
        changed = copy.deepcopy(node)
        if isinstance(changed.func, ast.Name):
            changed.func.id = _SWAPPED_NAMES[name]
        elif isinstance(changed.func, ast.Attribute):
            changed.func.attr = _SWAPPED_NAMES[name]
        yield "extremum", changed
    elif len(plain) > 1 and plain[:2] == node.args[:2] and name not in ("isinstance", "cast"):
        changed = copy.deepcopy(node)
        changed.args[:2] = changed.args[1::-1]
        yield "swapped arguments", changed


def _is_of_text(node: ast.BinOp) -> bool:
    parts = (node.left, node.right)
    return any(
        isinstance(part, ast.JoinedStr)
        or (isinstance(part, ast.Constant) and isinstance(part.value, (str, bytes)))
        for part in parts
    )
