"""Which of the valid configurations of an instance a table has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from parabolt.space.lattice import enumerate_lattice

if TYPE_CHECKING:
    from parabolt.instances.specs import Instance
    from parabolt.outcome import IntArray
    from parabolt.space.configurations import Configurations

#: Missing configurations that a description names.
_N_NAMED = 12


@dataclass(frozen=True, eq=False)
class Coverage:
    """How many of the valid configurations of an instance have a row.

    Attributes:
        instance: The instance.
        n_valid: Valid configurations.
        missing_codes: Codes (k,) int64 of those that have no row, ascending.
    """

    instance: Instance
    n_valid: int
    missing_codes: IntArray

    @classmethod
    def of(cls, instance: Instance, codes: IntArray) -> Coverage:
        """The coverage of a table with rows of these codes (n,); others than valid don't count."""
        encoding, levels = instance.encoding, dict(instance.levels)
        n_valid, missing = 0, []
        for size in levels["dp"]:  # in parts, since a lattice may be larger than its table
            part = enumerate_lattice({**levels, "dp": [size]}, instance.rules)
            valid = encoding.codes_of(part)
            n_valid += len(valid)
            missing.append(np.setdiff1d(valid, codes))
        return cls(instance, n_valid, np.sort(np.concatenate(missing)))

    @property
    def n_covered(self) -> int:
        """Valid configurations that have a row."""
        return self.n_valid - len(self.missing_codes)

    @property
    def is_whole(self) -> bool:
        """Whether every valid configuration has a row."""
        return len(self.missing_codes) == 0

    @property
    def missing(self) -> Configurations:
        """The configurations that have no row."""
        return self.instance.encoding.from_codes(self.missing_codes)

    @property
    def description(self) -> str:
        """Such as `13 of 18 valid configurations; missing: dp2 tp1 ..., dp4 tp2 ...`."""
        text = f"{self.n_covered} of {self.n_valid} valid configurations"
        if self.is_whole:
            return text
        names = ", ".join(map(str, self.missing[:_N_NAMED]))
        more = len(self.missing_codes) - _N_NAMED
        return f"{text}; missing: {names}{f', and {more} more' if more > 0 else ''}"
