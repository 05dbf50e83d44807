"""A hash of the code that an optimizer from elsewhere consists of.

Its class says in which module it stands. If that is part of a package, the whole package counts. If
it is a single file, that file counts, and every own module that it imports, directly or through
others. An own module is one that is neither of Python, nor of this package, nor installed among the
site packages. What has no file (a notebook, a prompt) counts by its compiled code and by what that
names.
"""

from __future__ import annotations

import ast
import importlib.util
import site
import sys
import sysconfig
from functools import partial
from hashlib import sha256
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from parabolt.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from importlib.machinery import ModuleSpec

#: Attributes of a class that say nothing of what it does.
_SILENT = frozenset(
    ("__dict__", "__weakref__", "__module__", "__doc__", "__annotations__", "__firstlineno__",
     "__static_attributes__", "__abstractmethods__", "_abc_impl", "__annotate_func__",
     "__annotations_cache__", "__annotate__", "__orig_bases__", "__parameters__", "__qualname__")
)  # fmt: skip


def code_hash(optimizer: object) -> str:
    """SHA-256 (hex) of the code of a class, a function or an object; empty for those of parabolt.

    Raises:
        OptionError: If a source file can't be read.
    """
    if isinstance(optimizer, partial):
        return _joined(optimizer.func, [optimizer.args, optimizer.keywords])
    if isinstance(optimizer, MethodType):
        return _joined(optimizer.__func__, optimizer.__self__)
    described = optimizer if hasattr(optimizer, "__qualname__") else type(optimizer)
    module = str(getattr(described, "__module__", ""))
    if _top(module) == "parabolt":
        return ""
    digest = sha256()
    roots = {module}
    if not _has_file(module):
        lines, roots = _Interactive(module).describe(optimizer)
        digest.update("\n".join(lines).encode())
    elif described is not optimizer:
        digest.update("\n".join(_Interactive(module).values(vars(optimizer))).encode())
    for name, content in _sources(roots):
        digest.update(f"{name}:{len(content)}:".encode())
        digest.update(content)
    return digest.hexdigest()


def _joined(function: object, bound: object) -> str:
    """The hash of a function with what is bound to it."""
    values = _Interactive("").values(bound)
    return sha256("\n".join([code_hash(function), *values]).encode()).hexdigest()


def _has_file(module: str) -> bool:
    found = getattr(sys.modules.get(module), "__file__", None)
    return found is not None and Path(found).is_file()


def _sources(roots: Iterable[str]) -> list[tuple[str, bytes]]:
    """Name and content of every file of the modules `roots` and of the own ones they import."""
    found: dict[str, bytes] = {}
    waiting, seen = [_top(name) for name in roots], set[str]()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        for label, path in _files(name):
            try:
                content = path.read_bytes()
            except OSError as error:
                raise OptionError(f"cannot read {path}, code of an optimizer: {error}") from error
            found[label] = content
            if path.suffix == ".py":
                waiting += [other for other in _imports(content) if _is_own(other)]
    return sorted(found.items())


def _top(module: str) -> str:
    return module.partition(".")[0]


def _files(top: str) -> Iterator[tuple[str, Path]]:
    """Every file of a package, bytecode and hidden ones left out, or the file of a module."""
    module = sys.modules.get(top)
    spec = getattr(module, "__spec__", None) or _spec(top)
    folders = getattr(module, "__path__", None) or getattr(spec, "submodule_search_locations", None)
    if not folders:
        origin = getattr(module, "__file__", None) or getattr(spec, "origin", None)
        if origin:
            yield f"{top}.py", Path(origin)
        return
    for folder in map(Path, folders):
        for path in sorted(folder.rglob("*")):
            inner = path.relative_to(folder)
            is_hidden = any(part.startswith(".") or part == "__pycache__" for part in inner.parts)
            if path.is_file() and not is_hidden:
                yield f"{top}/{inner.as_posix()}", path


def _imports(source: bytes) -> Iterator[str]:
    """Top-level names of the modules that a source imports anywhere."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return  # a data file that ends in .py, or one for another version of Python
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (_top(alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield _top(node.module)


def _is_own(top: str) -> bool:
    if top == "parabolt" or top in sys.stdlib_module_names or top in sys.builtin_module_names:
        return False
    spec = _spec(top)
    if spec is None:
        return False
    places = [spec.origin] if spec.has_location else list(spec.submodule_search_locations or [])
    installed = _installed_places()
    return any(
        place and not any(Path(place).is_relative_to(folder) for folder in installed)
        for place in places
    )


def _spec(top: str) -> ModuleSpec | None:
    try:
        return importlib.util.find_spec(top)
    except (ImportError, ValueError):  # `__main__` has none
        return None


def _installed_places() -> list[str]:
    paths = sysconfig.get_paths()
    return [paths["purelib"], paths["platlib"], paths["stdlib"], site.getusersitepackages()]


class _Interactive:
    """Describes code that stands in no file, line by line.

    Args:
        module: The module without a file, such as `__main__` of a notebook.
    """

    def __init__(self, module: str) -> None:
        self._module = module
        # By id; the values are kept, as the id of one that is gone is used again.
        self._seen: dict[int, Any] = {}
        self._own_modules: set[str] = set()

    def describe(self, target: object) -> tuple[list[str], set[str]]:
        """Lines that describe `target`, and the own modules with files that it uses."""
        return list(self.values(target)), self._own_modules

    def values(self, value: Any) -> Iterator[str]:
        """Lines that describe a value: itself where it is plain, else what it consists of."""
        if id(value) in self._seen:
            return
        if isinstance(value, (type(None), bool, int, float, complex, str, bytes)):
            yield repr(value)
            return
        self._seen[id(value)] = value
        if isinstance(value, np.ndarray):
            yield f"{value.dtype}{value.shape}{sha256(value.tobytes()).hexdigest()}"
        elif isinstance(value, dict):
            yield from self._pairs(value.items())
        elif isinstance(value, (set, frozenset)):
            yield from sorted(map(repr, value))
        elif isinstance(value, (list, tuple)):
            for item in value:
                yield from self.values(item)
        elif isinstance(value, CodeType):
            yield from self._code(value)
        elif isinstance(value, ModuleType):
            self._note_module(value.__name__)
        elif isinstance(value, FunctionType):
            yield from self._function(value)
        elif isinstance(value, type):
            yield from self._class(value)
        elif isinstance(value, (staticmethod, classmethod)):
            yield from self.values(value.__func__)
        elif isinstance(value, property):
            yield from self.values([value.fget, value.fset])
        elif isinstance(value, np.random.Generator):
            yield repr(value.bit_generator.state)
        else:
            yield type(value).__qualname__
            yield from self.values(type(value))
            yield from self._pairs(getattr(value, "__dict__", {}).items())

    def _pairs(self, items: Iterable[tuple[Any, Any]]) -> Iterator[str]:
        for name, value in sorted(items, key=lambda item: repr(item[0])):
            yield repr(name)
            yield from self.values(value)

    def _class(self, found: type) -> Iterator[str]:
        yield found.__qualname__
        if not self._is_here(found):
            return
        for base in found.__bases__:
            yield from self.values(base)
        yield from self._pairs((k, v) for k, v in vars(found).items() if k not in _SILENT)

    def _function(self, function: FunctionType) -> Iterator[str]:
        yield function.__qualname__
        if not self._is_here(function):
            return
        yield from self.values([function.__defaults__, function.__kwdefaults__])
        yield from self.values([cell.cell_contents for cell in function.__closure__ or ()])
        yield from self._code(function.__code__)
        for name in sorted(_names(function.__code__)):
            if name in function.__globals__:
                yield name
                yield from self.values(function.__globals__[name])

    def _code(self, code: CodeType) -> Iterator[str]:
        yield code.co_code.hex()
        yield repr(code.co_names)
        yield from self.values(list(code.co_consts))

    def _is_here(self, found: type | FunctionType) -> bool:
        if found.__module__ == self._module:
            return True
        self._note_module(found.__module__)
        return False

    def _note_module(self, name: str) -> None:
        if _is_own(_top(name)):
            self._own_modules.add(name)


def _names(code: CodeType) -> set[str]:
    inner = [_names(const) for const in code.co_consts if isinstance(const, CodeType)]
    return set(code.co_names).union(*inner)
