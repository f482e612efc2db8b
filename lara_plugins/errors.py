"""Everything that LARA raises.

* LaraError
  x InvalidArgument (ValueError)     an argument is out of its range; names it, its value and the remedy
    · UnstorablePassages             passages that an index cannot store; says which, and why
  x MissingExtra (ImportError)       an optional dependency is not installed; says what to install
  x PackageConflict (ImportError)    an installed package is of a version that cannot be worked with
  x ScoreError (ValueError)          a scorer returned something that is not a score
  x NothingKept                      the gate kept nothing and was told to raise
  x CalibrationError
    · CalibrationMismatch            theta was calibrated for another scorer
    · CalibrationUnreadable          no calibration file, a damaged one or another version's
  x BudgetError
    · BudgetExhausted                the governor may send nothing and was told to raise
    · TooManyAbandonedCalls          too many calls that outlived their deadline are still running
    · LatencyUnreadable              no file of a latency model, a damaged one or another version's
  x ReplyError (ValueError)          a reply of the LLM is not the typed reply that was asked for
  x HybridIndexError
    · IndexInUse                     another process holds the index
    · IndexUnreadable                another version's, half written or damaged
    · EmbeddingMismatch              filled by other encoders than those that query it
    · IndexUnsuitable                its metric, dimension or sparse ability is not what is needed
    · PartialUpsert                  some passages were written and some were not
    · NotYetVisible                  what was written is not found in time
  x IngestError                      a file or folder that cannot be ingested
  x NotSerializable (TypeError)      an object that has no name cannot be saved

Errors of the LLM, of the framework and of the operating system are never wrapped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

LONGEST_VALUE = 120
"""Characters of a value that an error's sentence shows."""


class LaraError(Exception):
    """The base of every error that LARA raises itself."""


class InvalidArgument(LaraError, ValueError):
    """An argument is out of its range.

    Args:
        argument: the argument's name as the caller wrote it.
        value: the value that was given.
        remedy: what to give instead, as the end of "argument=value: ...".
    """

    def __init__(self, argument: str, value: object, remedy: str) -> None:
        shown = repr(value)
        if len(shown) > LONGEST_VALUE:
            # The end of a long value, such as a path, tells as much as its beginning.
            half = LONGEST_VALUE // 2
            shown = f"{shown[:half]}...{shown[-half:]}"
        super().__init__(f"{argument}={shown}: {remedy}")
        self.argument = argument
        self.value = value
        self.remedy = remedy

    def __reduce__(self) -> tuple[type[InvalidArgument], tuple[object, ...]]:
        return (type(self), (self.argument, self.value, self.remedy))


class UnstorablePassages(InvalidArgument):
    """An index cannot store some of the passages that it was given; none of them has been written.

    Args:
        reasons: by passage id, why not; the first one gives this error its sentence.
    """

    def __init__(self, reasons: Mapping[str, InvalidArgument]) -> None:
        first = next(iter(reasons.values()))
        others = f"; {len(reasons) - 1} more stand in this error's reasons" if len(reasons) > 1 else ""
        super().__init__(first.argument, first.value, first.remedy + others)
        self.reasons = dict(reasons)

    def __reduce__(self) -> tuple[type[InvalidArgument], tuple[object, ...]]:
        return (type(self), (self.reasons,))


class MissingExtra(LaraError, ImportError):
    """An optional dependency is not installed.

    Args:
        package: the package that could not be imported.
        install: the requirement that brings it, such as ``lara-plugins[embedded]``.
    """

    def __init__(self, package: str, install: str) -> None:
        super().__init__(f"{package} is not installed: pip install '{install}'")
        self.package = package
        self.install = install

    def __reduce__(self) -> tuple[type[MissingExtra], tuple[str, str]]:
        return (type(self), (self.package, self.install))


class PackageConflict(LaraError, ImportError):
    """An installed package is of a version that cannot be worked with, or overwrites another."""


class ScoreError(LaraError, ValueError):
    """A scorer returned NaN, infinity, a wrong count, or a probability outside 0..1."""


class NothingKept(LaraError):
    """No passage reached theta and the gate was told to raise (``on_empty="raise"``)."""


class CalibrationError(LaraError):
    """A calibrated theta cannot be used."""


class CalibrationMismatch(CalibrationError):
    """Theta was calibrated for another scorer than the one that scores."""


class CalibrationUnreadable(CalibrationError):
    """The file is no calibration, damaged, or of another version."""


class BudgetError(LaraError):
    """The latency budget cannot be kept."""


class BudgetExhausted(BudgetError):
    """Not one passage fits the time left and the governor was told to raise."""


class TooManyAbandonedCalls(BudgetError):
    """Too many synchronous calls that outlived their deadline are still running."""


class LatencyUnreadable(BudgetError):
    """The file is no latency model's, damaged, or of another version."""


class ReplyError(LaraError, ValueError):
    """A reply of the LLM is not the typed reply that was asked for."""


class HybridIndexError(LaraError):
    """A hybrid index cannot be used."""


class IndexInUse(HybridIndexError):
    """The index folder is open in another process."""


class IndexUnreadable(HybridIndexError):
    """The index folder is of another version, half written or damaged."""


class EmbeddingMismatch(HybridIndexError):
    """The index was filled by other encoders than those that query it."""


class IndexUnsuitable(HybridIndexError):
    """An index's metric, dimension or sparse ability is not what the encoders need."""


class PartialUpsert(HybridIndexError):
    """Some passages were written and some were not.

    Args:
        written: how many were.
        unwritten: the ids of those that were not, or not whole.
        cause: why.
    """

    def __init__(self, written: int, unwritten: Sequence[str], cause: Exception) -> None:
        super().__init__(
            f"{written} of {written + len(unwritten)} passages are written, then Pinecone failed ({cause}): "
            "upsert those whose ids stand in this error's unwritten again"
        )
        self.written = written
        self.unwritten = tuple(unwritten)
        self.cause = cause

    def __reduce__(self) -> tuple[type[PartialUpsert], tuple[int, Sequence[str], Exception]]:
        return (type(self), (self.written, self.unwritten, self.cause))


class NotYetVisible(HybridIndexError):
    """What was written to an index is not found in the time that was given; it is told once."""


class IngestError(LaraError):
    """A file or folder cannot be ingested."""


class NotSerializable(LaraError, TypeError):
    """An object without a name cannot be saved; give its name instead."""
