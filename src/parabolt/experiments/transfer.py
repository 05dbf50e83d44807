"""Transfer between instances: which trials of others an optimizer is given beforehand.

A split names them. It takes tables from a pool, and never that of the asked instance: one of the
same model, cluster and workload is left out, whatever its name is.

- `leave-one-instance-out`: every other instance.
- `leave-one-model-out`: every instance of another model.
- `small-to-large`: the instances of the same model on at most `SMALL_HOSTS` hosts; only an instance
  on more hosts may be asked for.

The trials are all rows of these tables, without noise, in the order of the pool.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from parabolt.costmodel.calibration.evidence import Evidence
from parabolt.errors import OptionError
from parabolt.planner.past_trials import optimizer_options
from parabolt.problems.suites import problems_of
from parabolt.tables.sources import EMBEDDED, load_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from parabolt.experiments.protocol import Protocol
    from parabolt.instances.specs import Instance

#: Most hosts of an instance that is known beforehand in `small-to-large`.
SMALL_HOSTS = 4


@dataclass(frozen=True, eq=False)
class PastTrials:
    """Trials of other instances, as a protocol gives them to an optimizer.

    Attributes:
        evidence: One item per instance.
        content_hash: SHA-256 (hex) of the tables that they are of; empty where there are none.
    """

    evidence: tuple[Evidence, ...] = ()
    content_hash: str = ""


def past_trials(instance: Instance, protocol: Protocol) -> PastTrials:
    """What the protocol's split gives for an instance; nothing without a split.

    Raises:
        OptionError: If the pool has no table for it.
        UnknownNameError: For a name in the pool that no table has.
        TableError: For a file in the pool that can't be read.
    """
    if protocol.history == "none":
        return PastTrials()
    names = problems_of(protocol.history_from)
    pool = [_published(name) if name in EMBEDDED else _read(name) for name in names]
    known = [past for past in pool if _is_known(past.evidence[0].instance, instance, protocol)]
    if not known:
        raise OptionError(
            f"history: expected tables that {protocol.history} gives for {instance.name}, got none "
            f"in {', '.join(protocol.history_from)}; try other names in history_from"
        )
    hashes = " ".join(past.content_hash for past in known)
    return PastTrials(
        tuple(evidence for past in known for evidence in past.evidence),
        sha256(hashes.encode()).hexdigest(),
    )


def options_of_run(
    instance: Instance, protocol: Protocol, options: Mapping[str, Any]
) -> dict[str, Any]:
    """The options that an optimizer is made with: its own, and what the protocol's split gives.

    A `history` of its own takes the split's place. Raises as `past_trials` and `optimizer_options`.
    """
    evidence = past_trials(instance, protocol).evidence
    given = {"history": evidence} if evidence else {}
    return {**given, **optimizer_options(options)}


def _is_known(other: Instance, asked: Instance, protocol: Protocol) -> bool:
    """Whether the trials of `other` are given where `asked` is searched."""
    sections = ("model", "cluster", "workload")
    if other.name == asked.name or all(getattr(other, s) == getattr(asked, s) for s in sections):
        return False
    if protocol.history == "leave-one-model-out":
        return other.model != asked.model
    if protocol.history == "small-to-large":
        is_smaller = other.cluster.n_hosts <= SMALL_HOSTS < asked.cluster.n_hosts
        return other.model == asked.model and is_smaller
    return True


@cache
def _published(name: str) -> PastTrials:
    """Of an embedded table, which does not change."""
    return _read(name)


def _read(name: str) -> PastTrials:
    table = load_table(name)
    evidence = Evidence(table.instance, table.space.encoded, table.outcomes)
    return PastTrials((evidence,), table.content_hash)
