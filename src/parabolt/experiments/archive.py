"""ZIP archives that know the hashes of their files."""

from __future__ import annotations

import zipfile
from hashlib import sha256
from io import BytesIO
from typing import TYPE_CHECKING

from parabolt.errors import StudyError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_SUMS = "SHA256SUMS"


def packed_archive(contents: Mapping[str, bytes]) -> bytes:
    """A ZIP archive of named files and `SHA256SUMS` of them; the same files give the same bytes."""
    sums = "".join(f"{sha256(c).hexdigest()}  {name}\n" for name, c in contents.items())
    sink = BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in {**contents, _SUMS: sums.encode()}.items():
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return sink.getvalue()


def unpack_archive(path: Path, folder: Path) -> None:
    """Unpacks an archive into a folder.

    Raises:
        StudyError: If it is none, or its files are not those that its `SHA256SUMS` names.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            sums = archive.read(_SUMS).decode().splitlines()
            wanted = {name: digest for digest, _, name in (s.partition("  ") for s in sums)}
            if set(archive.namelist()) != {*wanted, _SUMS}:
                raise StudyError(f"{path}: its files are not those that {_SUMS} names")
            for name, digest in wanted.items():
                if sha256(archive.read(name)).hexdigest() != digest:
                    raise StudyError(f"{path}: {name} is not what was bundled")
                archive.extract(name, folder)
    except (OSError, zipfile.BadZipFile, KeyError, UnicodeDecodeError) as error:
        raise StudyError(f"{path} is no bundle of a study: {error}") from error
