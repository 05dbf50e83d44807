"""Everything that can be checked of a table: schema, agreement of its columns, and its card."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from parabolt.tables.checks.consistency import check_consistency
from parabolt.tables.checks.coverage import Coverage
from parabolt.tables.checks.findings import FindingGroup, TableFindings
from parabolt.tables.checks.validation import Validator
from parabolt.tables.publishing.card import card_columns, size_category
from parabolt.tables.publishing.facts import TableFacts
from parabolt.tables.reading.conversion import convert
from parabolt.tables.schema import known_context, meaning_of_absence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from parabolt.instances.specs import Instance
    from parabolt.outcome import IntArray
    from parabolt.tables.publishing.card import Card
    from parabolt.tables.reading.conversion import Block
    from parabolt.tables.reading.reader import RawTable


@dataclass(frozen=True, eq=False)
class Verification:
    """What a verification saw.

    Attributes:
        instance: The instance that the table was checked against.
        facts: Counts, best row and largest peak memory.
        columns: Names of the columns.
        findings: Everything that is wrong.
        has_card: Whether there was a card to compare with.
        codes: Codes (n,) int64 of the valid configurations among the rows.
    """

    instance: Instance
    facts: TableFacts
    columns: tuple[str, ...]
    findings: TableFindings
    has_card: bool
    codes: IntArray

    @cached_property
    def coverage(self) -> Coverage:
        """Which of the valid configurations have a row."""
        return Coverage.of(self.instance, self.codes)

    @property
    def extra_columns(self) -> list[str]:
        """Columns that the schema doesn't know; they are kept as they are."""
        stated = card_columns(self.instance, self.columns)
        return [name for name, role, _ in stated if role == "extra"]


def verify(
    raw: RawTable,
    instance: Instance,
    *,
    card: Card | None = None,
    keep: Callable[[Block], None] | None = None,
) -> Verification:
    """Checks a whole table block by block and collects all findings.

    Args:
        raw: The table.
        instance: The instance that it should be about.
        card: Its card, if there is one.
        keep: Called with every converted block, in order.

    Raises:
        TableError: If the file can't be read to its end, or has far more rows than there are
            configurations.
    """
    raw.check_length(instance)
    validator = Validator(raw.schema, instance)
    groups = list(validator.of_file())
    facts = TableFacts()
    if len(set(raw.schema.names)) == len(raw.schema.names):
        for batch in raw.batches():
            block = convert(batch.data, batch.rows, instance)
            groups += [*batch.findings, *block.findings]
            groups += validator.of_block(block)
            groups += check_consistency(block)
            facts = facts.joined(TableFacts.of(block, instance))
            if keep:
                keep(block)
        groups += validator.of_whole()
    columns = tuple(raw.schema.names)
    if card:
        groups += check_card(card, facts, columns, instance)
        groups += check_coverage(card, instance, validator.codes)
    findings = TableFindings(groups)
    return Verification(instance, facts, columns, findings, card is not None, validator.codes)


def check_card(
    card: Card, facts: TableFacts, columns: tuple[str, ...], instance: Instance
) -> Iterator[FindingGroup]:
    """What a card says that the table, with its digits, does not."""
    best, unsaid = dict(facts.best_settings), meaning_of_absence(instance)
    peak, best_peak = card.largest_peak_mem, card.best_peak_mem
    rows = (
        ("name", "", instance.name, card.name),
        ("gpus", "log2_num_gpus", instance.cluster.n_gpus, card.n_gpus),
        ("hosts", "log2_num_hosts", instance.cluster.n_hosts, card.n_hosts),
        ("rows", "", facts.n_rows, card.n_rows),
        ("size", "", size_category(facts.n_rows), card.size_category),
        ("feasible", "ran_successfully", facts.n_feasible, card.n_feasible),
        ("largest_peak", "peak_mem", _as(peak, facts.largest_peak_mem), peak),
        (
            "best", "throughput_mean",
            _as(card.best_throughput, facts.best_throughput), card.best_throughput,
        ),
        ("best", "peak_mem", _as(best_peak, facts.best_peak_mem), best_peak),
        *(("best", name, best.get(name, "none"), card.best_settings.get(name, "none"))
          for name in dict.fromkeys([*best, *card.best_settings])),
        *(("context", name, value, card.context.get(name, unsaid.get(name, "none")))
          for name, value in known_context(instance).items()),
    )  # fmt: skip
    for rule, column, of_table, of_card in rows:
        if str(of_table) != str(of_card):
            yield _stated(rule, column, of_table, of_card)
    listed = {name for name, _, _ in card.columns}
    held = {name for name, _, _ in card_columns(instance, columns)}
    for name in sorted(listed ^ held):
        of_table, of_card = ("a column" if name in names else "none" for names in (held, listed))
        yield _stated("columns", name, of_table, of_card)
    if card.threshold_separates and facts.n_infeasible:
        yield _stated("threshold", "peak_mem", "no memory threshold", "a memory threshold")


def check_coverage(card: Card, instance: Instance, codes: IntArray) -> Iterator[FindingGroup]:
    """Whether a card that states the number of valid configurations states the right one."""
    if card.n_valid is not None:
        coverage = Coverage.of(instance, codes)
        if card.n_valid != coverage.n_valid:
            yield _stated("coverage", "", coverage.n_valid, card.n_valid)


def _stated(rule: str, column: str, of_table: Any, of_card: Any) -> FindingGroup:
    return FindingGroup.of_file(
        f"card_{rule}", column, f"{of_table} on the card, as the table has it", str(of_card)
    )


def _as(stated: str, value: float) -> str:
    """A figure with as many decimals as the card gives; nothing where there is no figure."""
    if math.isnan(value):
        return ""
    return f"{value:.{len(stated.partition('.')[2])}f}"
