"""The file in which a calibrated latency is kept."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from lara_plugins.budget.learned import WINDOW, Learned


class LatencyFile(BaseModel):
    """What was learned of an LLM, and which LLM it is.

    Args:
        format: the version of the file.
        name: the LLM, for people.
        risk: share of calls that may take longer than predicted.
        learned: coefficients, load, margin and the residuals of the latest calls.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    format: Literal[1] = 1
    name: str = ""
    risk: Annotated[float, Field(gt=0, lt=0.5)]
    learned: Learned

    @model_validator(mode="after")
    def _in_range(self) -> LatencyFile:
        known = self.learned
        fit = known.fit
        if min(fit.start, fit.per_input, fit.per_output, known.overhead, known.typical_tokens) < 0:
            raise ValueError("seconds and tokens are not negative")
        if not known.load > 0 or not 0 <= known.missed <= known.observed or len(known.residuals) > WINDOW:
            raise ValueError("the load is positive, and no more calls missed than were seen")
        if known.refusals < 0:
            raise ValueError("refused queries are counted from 0")
        if any(min(one.reading, one.writing, one.tokens) < 0 for one in known.residuals):
            raise ValueError("residuals are not negative")
        if known.observed and not known.residuals:
            raise ValueError("calls that were seen left residuals")
        return self
