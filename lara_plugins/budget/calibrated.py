"""A latency model that learns from the calls it sees."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple

from lara_plugins.arguments import check_count
from lara_plugins.budget.latency import Call, LatencyModel, PerChunkLatency
from lara_plugins.budget.learned import AIM, RISK, Learned
from lara_plugins.budget.observations import Observation
from lara_plugins.budget.settled import Settled
from lara_plugins.errors import InvalidArgument, LatencyUnreadable
from lara_plugins.saving import save_text

WARM_UP = 30
"""Calls before the prior gives way: an upper quantile of 3 % needs so many to say anything."""

State = Literal["warming up", "calibrated"]


class _Knobs(NamedTuple):
    name: str
    risk: float
    prior: LatencyModel
    warm_up: int


class CalibratedLatency(LatencyModel):
    """Predicts what a call to one LLM takes at most, as learned from the calls before.

    The prediction is an upper quantile: at most a share ``risk`` of the calls takes longer,
    overall and in nearly every window of 250 calls, also after the LLM has become slower (see
    ``lara_plugins.budget.learned`` for how). Until ``warm_up`` calls were seen, ``prior``
    predicts.

    One instance stands for one LLM at one endpoint and may serve many threads; a lock is held
    for the microseconds of an update only. A deep copy is the same instance, so that the copies
    that frameworks make of their components learn together; a pickled one begins where the
    original stood and then learns for itself.

    Args:
        name: which LLM it is, for people.
        risk: share of calls that may take longer than predicted, within 0..0.5.
        prior: predicts until enough calls were seen; choose it rather too slow.
        warm_up: calls until then, 20 or more.
        overhead: tokens of a prompt besides its passages: question, template, reply contract; by
            default as many as LARA's own prompts have at most.

    Raises:
        InvalidArgument: an argument is out of its range.
    """

    def __init__(
        self,
        name: str = "",
        risk: float = RISK,
        prior: LatencyModel | None = None,
        warm_up: int = WARM_UP,
        overhead: int = 600,
    ) -> None:
        if isinstance(risk, bool) or not 0 < risk < 0.5:
            raise InvalidArgument("risk", risk, "give a share between 0 and 0.5, such as 0.05")
        check_count("warm_up", warm_up, "give the calls until the prior gives way, 20 or more", least=20)
        check_count("overhead", overhead, "give the prompt's tokens besides its passages", least=0)
        if prior is not None and not isinstance(prior, LatencyModel):
            raise InvalidArgument("prior", prior, "give a LatencyModel, such as PerChunkLatency(0.1)")
        self._knobs = _Knobs(name, risk, prior or PerChunkLatency(), warm_up)
        self._learned = Learned(overhead=overhead, aim=AIM * risk)
        self._settled = Settled.of(self._learned)
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """Which LLM it is."""
        return self._knobs.name

    @property
    def learned(self) -> Learned:
        """What is known now."""
        return self._learned

    @property
    def state(self) -> State:
        """Whether the prior predicts yet, or what was learned."""
        return "calibrated" if self._learned.observed >= self._knobs.warm_up else "warming up"

    def settled(self) -> LatencyModel:
        settled = self._settled
        if settled.learned is not self._learned:
            # Two threads may both do it; either result is right.
            self._settled = settled = Settled.of(self._learned)
        return settled if settled.learned.observed >= self._knobs.warm_up else self._knobs.prior

    def predict(self, calls: Sequence[Call]) -> float:
        """The seconds that ``calls`` together take at most, up to the risk."""
        return self.settled().predict(calls)

    def output_cap(self, call: Call, seconds: float) -> int | None:
        return self.settled().output_cap(call, seconds)

    def observe(self, observation: Observation) -> None:
        """Learn from one call, completed or cut."""
        with self._lock:
            self._learned = self._learned.after(observation)

    def refused(self) -> None:
        with self._lock:
            self._learned = self._learned.after_refusal()

    def merge(self, other: CalibratedLatency) -> None:
        """Learn what another worker's model of the same LLM knows.

        Raises:
            InvalidArgument: it is this very model.
        """
        if other is self:
            raise InvalidArgument("other", other, "give another worker's model")
        theirs = other.learned
        with self._lock:
            self._learned = self._learned.together(theirs)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write what is known to a JSON file; an older one is replaced whole or not at all.

        Raises:
            OSError: the file cannot be written.
        """
        from lara_plugins.budget.latency_file import LatencyFile  # noqa: PLC0415 - pydantic

        content = LatencyFile(name=self.name, risk=self._knobs.risk, learned=self._learned)
        save_text(path, content.model_dump_json(indent=1) + "\n")

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], prior: LatencyModel | None = None, warm_up: int = WARM_UP
    ) -> CalibratedLatency:
        """Read what ``save`` wrote.

        Raises:
            LatencyUnreadable: the file is damaged, something else, or of another version.
            OSError: there is no such file, or it cannot be read.
        """
        from pydantic import ValidationError  # noqa: PLC0415

        from lara_plugins.budget.latency_file import LatencyFile  # noqa: PLC0415

        data = Path(path).read_bytes()
        try:
            content = LatencyFile.model_validate_json(data)
        except ValidationError as error:
            raise LatencyUnreadable(
                f"{os.fspath(path)} is no latency file of this version, or a damaged one: "
                "measure again with lara latency probe"
            ) from error
        model = cls(content.name, content.risk, prior, warm_up, content.learned.overhead)
        model._learned = replace(content.learned, aim=AIM * content.risk)
        return model

    def __deepcopy__(self, memo: object) -> CalibratedLatency:
        return self

    def __copy__(self) -> CalibratedLatency:
        return self

    def __getstate__(self) -> tuple[_Knobs, Learned]:
        return self._knobs, self._learned

    def __setstate__(self, state: tuple[_Knobs, Learned]) -> None:
        self._knobs, self._learned = state
        self._settled = Settled.of(self._learned)
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        learned = self._learned
        missed = f"{learned.missed / learned.observed:.1%}" if learned.observed else "none"
        return f"CalibratedLatency({self.name!r}, {self.state}, {learned.observed} calls, {missed} missed)"
