"""Tables on the Hugging Face Hub: fetched at a pinned revision, and pushed.

`huggingface_hub` does the transport: cache, offline mode (`HF_HUB_OFFLINE`), endpoint
(`HF_ENDPOINT`) and token are its own. It is imported when first used (extra `hub`).
"""

from __future__ import annotations

import hashlib
import re
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from parabolt.errors import MissingDependencyError, OptionError, TableError

if TYPE_CHECKING:
    from collections.abc import Iterator

PREFIX = "hub:"
_ADDRESS = re.compile(r"hub:([\w.-]+/[\w.-]+)@([\w./-]+)")


@dataclass(frozen=True)
class HubAddress:
    """A data set on the Hub at one revision.

    Attributes:
        repo: `ORG/NAME`.
        revision: Tag, branch or commit.
    """

    repo: str
    revision: str

    def __str__(self) -> str:
        return f"{PREFIX}{self.repo}@{self.revision}"

    @classmethod
    def parse(cls, text: str) -> HubAddress:
        """Reads `hub:ORG/NAME@REVISION`.

        Raises:
            OptionError: If it is of another form; the revision must be there, since the data behind
                a name alone may change.
        """
        match = _ADDRESS.fullmatch(text)
        if match is None:
            raise OptionError(
                f"expected hub:ORG/NAME@REVISION, got {text!r}; "
                "try hub:Glow-AI/pco32_tabular_data@v0.1.0"
            )
        return cls(*match.groups())


#: Where the tables of built-in instances are published.
PUBLISHED: dict[str, HubAddress] = {
    name: HubAddress(f"Glow-AI/{name}_tabular_data", "v0.1.0")
    for name in ("pco16", "pco32", "pco64")
}


@dataclass(frozen=True)
class Snapshot:
    """A data set in the local cache.

    Attributes:
        address: What was asked for.
        commit: Commit that the revision stood for.
        folder: Its files.
    """

    address: HubAddress
    commit: str
    folder: Path

    @property
    def version(self) -> str:
        """Version of the data: repository, revision and commit."""
        return f"{self.address.repo}@{self.address.revision} ({self.commit[:12]})"


def fetch(
    address: HubAddress, *, endpoint: str | None = None, cache: Path | None = None
) -> Snapshot:
    """Downloads table and card, unless they are in the cache.

    Args:
        address: Data set and revision.
        endpoint: Address of the Hub; None for huggingface_hub's own.
        cache: Cache folder; None for huggingface_hub's own.

    Raises:
        TableError: If the data set or revision doesn't exist, can't be reached, or doesn't arrive
            whole.
        MissingDependencyError: If huggingface_hub isn't installed.
    """
    hub = _import_hub()
    with _talking(f"fetch {address}"):
        folder = hub.snapshot_download(
            address.repo,
            repo_type="dataset",
            revision=address.revision,
            allow_patterns=["*.parquet", "README.md", "instance.toml"],
            endpoint=endpoint,
            cache_dir=cache,
            library_name="parabolt",
        )
    return Snapshot(address, Path(folder).name, Path(folder))


@dataclass(frozen=True)
class Upload:
    """One file of a push.

    Attributes:
        path: The file here.
        name: Its name in the repository.
        n_bytes: Size.
        sha256: SHA-256 in hex.
    """

    path: Path
    name: str
    n_bytes: int
    sha256: str

    @classmethod
    def of(cls, path: Path) -> Upload:
        """The upload of a file under its own name.

        Raises:
            TableError: If it can't be read.
        """
        try:
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256")
            return cls(path, path.name, path.stat().st_size, digest.hexdigest())
        except OSError as error:
            raise TableError(f"cannot read {path}: {error}") from error


def push(uploads: list[Upload], repo: str, *, message: str, endpoint: str | None = None) -> str:
    """Uploads files as one commit to a data set, which is made if it isn't there.

    Args:
        uploads: The files.
        repo: `ORG/NAME`.
        message: Message of the commit.
        endpoint: Address of the Hub; None for huggingface_hub's own.

    Returns:
        Address of the commit.

    Raises:
        TableError: If the Hub can't be reached or refuses.
        MissingDependencyError: If huggingface_hub isn't installed.
    """
    hub = _import_hub()
    api = hub.HfApi(endpoint=endpoint, library_name="parabolt")
    with _talking(f"push to {repo}"):
        api.create_repo(repo, repo_type="dataset", exist_ok=True)
        commit = api.create_commit(
            repo,
            [hub.CommitOperationAdd(upload.name, upload.path) for upload in uploads],
            commit_message=message,
            repo_type="dataset",
        )
    return str(commit.commit_url)


def _import_hub() -> Any:
    try:
        import huggingface_hub
    except ImportError as error:
        raise MissingDependencyError.of("huggingface_hub", "hub") from error
    return huggingface_hub


@contextmanager
def _talking(what: str) -> Iterator[None]:
    """Turns what huggingface_hub raises into one line: its own errors are OSError or ValueError."""
    try:
        yield
    except (OSError, ValueError, RuntimeError) as error:
        raise TableError(f"cannot {what}: {_reason(error)}") from error
    except Exception as error:  # only what a transfer raises is told, see below
        if type(error).__module__.split(".")[0] not in _TRANSPORT:
            raise
        raise TableError(f"cannot {what}: {_reason(error)}") from error


#: Libraries whose errors mean that the transfer failed.
_TRANSPORT = ("huggingface_hub", "httpx", "httpx2", "requests")


def _reason(error: BaseException) -> str:
    """The first line that says something, with the cause's where the library hides it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join(lines[:2]) or type(error).__name__
