"""Progress bars as tqdm draws them, and Rich: programs that print no other times.

A bar's rate is smoothed over the last steps, and has three digits: better than nothing, and worse
than a report of one's own. Lightning's bar counts batches, which are steps where none accumulate.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from parabolt.frameworks.framework import Framework
from parabolt.frameworks.log_format import LogFormat, LogReader, StepRecord
from parabolt.frameworks.quantities import quantity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from parabolt.frameworks.log_line import LogLine
    from parabolt.instances.specs import Instance

#: `10%|#   | 10/100 [00:10<01:30,  1.00s/it`, or `10it [00:10, 1.00s/it` where the end isn't known.
_TQDM = re.compile(
    r"(?P<label>[^|%]{0,200}?)(?:\d{1,3}%\|[^|]{0,400}\|)?\s{0,4}\b(?P<n>\d{1,12})"
    r"(?:/(?P<total>\d{1,12})|it) \[[\d:?]{1,16}(?:<[\d:?]{1,16})?,\s{1,8}(?P<rate>[^\s,\]]{1,24})"
)
#: Rich, as Lightning draws it: `Epoch 0/0 --- 10/100 0:00:10 - 0:01:30 1.00it/s`.
_RICH = re.compile(
    r"(?P<label>[A-Za-z]{1,20} \d{1,6}/\d{1,6}) {1,8}[^\d\s]{1,200} (?P<n>\d{1,12})/"
    r"(?P<total>\d{1,12}) [\d:]{1,12} \S [-\d:]{1,12} (?P<rate>[\d.]{1,12}(?:it/s|s/it))"
)
_TRAINING = re.compile(
    r"\s*(?:$|(?:train|training|epoch|steps?|iter|iterations?)\b)", re.IGNORECASE
)
_OTHER = re.compile(r"\b(?:val|valid|validation|eval|evaluation|test|sanity)\b", re.IGNORECASE)
_RATE = re.compile(r"(?P<per_s>[\d.]{1,12}[kM]?)(?:it|ba|batch|step)/s|(?P<s_per>[\d.]{1,12})s/\w")


class ProgressBarReader(LogReader):
    """The bar of the training steps: the first one without a label, or with a training's.

    A bar that begins anew under another label is the next epoch, whose steps follow on. Bars of
    data, check points, and evaluation are left out.
    """

    words = ("it/s", "s/it", "ba/s", "s/ba", "step/s", "s/step", "batch/s", "s/batch")

    def __init__(self, instance: Instance) -> None:
        super().__init__(instance)
        self._label: str | None = None
        self._total: str | None = None
        self._n = self._offset = 0

    def read(self, line: LogLine) -> Iterator[StepRecord]:
        """See `LogReader.read`."""
        found = _TQDM.match(line.text) or _RICH.search(line.text)
        rate = _RATE.match(found["rate"]) if found else None
        if found is None or rate is None or not self._is_training(found["label"], found["total"]):
            return
        n = int(found["n"])
        label = re.sub(r"[\s:]+", " ", found["label"]).strip()
        if self._label not in (None, label) and n <= self._n:
            self._offset += self._n
        elif n == self._n:
            return  # drawn again
        self._label, self._n = label, n
        yield StepRecord(self._offset + n, self._seconds(rate))

    def _is_training(self, label: str, total: str | None) -> bool:
        if not _TRAINING.match(label) or _OTHER.search(label):
            return False
        if self._total is None:
            self._total = total
        return total == self._total

    def _seconds(self, rate: re.Match[str]) -> float:
        if rate["s_per"]:
            return quantity(rate["s_per"])
        return self.iterations_seconds(quantity(rate["per_s"], {"": 1.0, "k": 1e3, "M": 1e6}))


PROGRESS_BAR = Framework(
    name="progress-bar",
    title="progress bar",
    version="",
    documentation="https://tqdm.github.io/",
    log=LogFormat(ProgressBarReader, has_memory=False),
)
