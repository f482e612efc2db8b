"""A calibration's file, and the gate that it is given to."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from towers import LOOKUP

from lara_plugins import (
    Calibration,
    CalibrationMismatch,
    CalibrationUnreadable,
    CallableScorer,
    Passage,
    QueryState,
    Score,
    Scorer,
    ThresholdGate,
)
from lara_plugins.phases import run_gate

CALIBRATION = Calibration(
    theta=0.4,
    tier="labelled",
    fingerprint="a",
    n=19,
    recall=0.95,
    kept=1.0,
    unrelated=100,
    unrelated_kept=0.0,
)


@given(st.floats(0, 1), st.sampled_from(["labelled", "pseudo", "unlabelled"]), st.text(max_size=20))
def test_a_file_gives_back_what_was_saved(
    tmp_path_factory: pytest.TempPathFactory, theta: float, tier: str, source: str
) -> None:
    assume(source.isprintable())
    changed = {"theta": theta, "tier": tier, "source": source}
    recall = None if tier == "unlabelled" else 0.95
    saved = Calibration.model_validate({**CALIBRATION.model_dump(), **changed, "recall": recall})
    path = tmp_path_factory.mktemp("calibration") / "theta.json"
    for _ in range(2):
        saved.save(path)
    assert Calibration.load(path) == saved
    assert [file.name for file in path.parent.iterdir()] == ["theta.json"]


def test_a_file_that_many_save_at_once_is_one_of_theirs(tmp_path: Path) -> None:
    path = tmp_path / "theta.json"
    saved = [CALIBRATION.model_copy(update={"n": n}) for n in range(1, 201)]

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda calibration: calibration.save(path), saved))

    assert Calibration.load(path) in saved
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_cannot_be_replaced_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "theta.json"
    path.mkdir()

    with pytest.raises(OSError, match=r"theta\.json"):
        CALIBRATION.save(path)

    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[]",
        b"{}",
        json.dumps(CALIBRATION.model_dump()).encode(),
        json.dumps({"format": 1, **CALIBRATION.model_dump(), "theta": 1.5}).encode(),
        json.dumps({"format": 1, **CALIBRATION.model_dump(), "theta": "0.4"}).encode(),
        json.dumps({"format": 1, **CALIBRATION.model_dump(), "theta": math.nan}).encode(),
        json.dumps({"format": 1, "theta": 0.4}).encode(),
        json.dumps({"format": 1, **CALIBRATION.model_dump(), "recall": None}).encode(),
        json.dumps({"format": 1, **CALIBRATION.model_dump(), "tier": "unlabelled"}).encode(),
        json.dumps({"format": 1, **CALIBRATION.model_dump(), "note": "edited"}).encode(),
        b'{"format": ' + b"9" * 5_000 + b"}",
        b"[" * 100_000,
    ],
)
def test_a_damaged_file_is_refused(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "theta.json"
    path.write_bytes(damage)
    with pytest.raises(CalibrationUnreadable, match="make it with lara calibrate"):
        Calibration.load(path)


def test_a_file_of_another_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "theta.json"
    path.write_text(json.dumps({"format": 2, "something": "new"}))
    with pytest.raises(CalibrationUnreadable, match="format 2 and this version reads 1"):
        Calibration.load(path)
    with pytest.raises(FileNotFoundError):
        Calibration.load(tmp_path / "absent.json")


def scorer_of(fingerprint: str, *scores: float, known: bool = False) -> Scorer:
    return CallableScorer(
        lambda q, texts: list(scores), "probability", fingerprint=fingerprint, scale_known=known
    )


def some(count: int) -> list[Passage]:
    return [Passage(f"p{n}", f"passage {n}") for n in range(count)]


def test_a_gate_takes_the_calibrated_theta() -> None:
    scores = [Score.from_probability(p) for p in (0.39, 0.4, 0.9)]
    decision = ThresholdGate(CALIBRATION).admit(scores)
    assert (decision.kept, decision.theta) == ((2, 1), 0.4)


def test_a_calibrated_theta_abstains_on_an_unknown_scale() -> None:
    assert ThresholdGate(CALIBRATION).admit([Score.from_probability(0.1)], scale_known=False).kept == ()


def test_another_scorer_is_refused_before_it_scores() -> None:
    def never(query: str, texts: Sequence[str]) -> list[float]:
        raise AssertionError("it must not score")

    other = CallableScorer(never, "probability", fingerprint="b")
    with pytest.raises(CalibrationMismatch, match="calibrated for the scorer a and this one is b"):
        run_gate(QueryState(), LOOKUP, some(3), other, ThresholdGate(CALIBRATION))


def test_the_trace_says_that_theta_is_calibrated() -> None:
    state = QueryState()
    run_gate(state, LOOKUP, some(2), scorer_of("a", 0.5, 0.3), ThresholdGate(CALIBRATION))
    gate = state.trace.last("gate")
    assert gate is not None
    assert (gate.facts["theta"], gate.facts["calibrated"], gate.facts["kept"]) == (0.4, "labelled", 1)
    assert not any("scale" in note for note in state.trace.notes)


@pytest.mark.parametrize(
    ("gate", "remedy"),
    [
        (
            ThresholdGate(),
            "calibrate theta for this scorer and corpus (lara calibrate), or set on_empty='keep_best'",
        ),
        (
            ThresholdGate(CALIBRATION),
            "calibrate theta again, with a higher recall, or set on_empty='keep_best'",
        ),
    ],
)
def test_an_abstention_is_loud(gate: ThresholdGate, remedy: str) -> None:
    state = QueryState()
    run_gate(state, LOOKUP, some(2), scorer_of("a", 0.2, 0.1, known=True), gate)
    decided = state.trace.last("gate")
    assert decided is not None
    assert (decided.facts["best"], decided.facts["theta"]) == (0.2, gate.threshold)
    assert decided.facts["remedy"] == remedy
    assert state.empty_reason is not None
    assert remedy in state.empty_reason
    assert "the best has 0.2" in state.empty_reason


def test_the_default_theta_on_an_unknown_scale_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    def noted(scorer: Scorer, gate: ThresholdGate) -> bool:
        state = QueryState()
        run_gate(state, LOOKUP, some(1), scorer, gate)
        return any("scale of this scorer is unknown" in note for note in state.trace.notes)

    unknown = scorer_of("of an unknown scale", 0.9)
    assert noted(unknown, ThresholdGate())
    assert noted(unknown, ThresholdGate())
    assert [record.levelname for record in caplog.records if "lara calibrate" in record.message] == [
        "WARNING"
    ]
    assert not noted(scorer_of("of a known scale", 0.9, known=True), ThresholdGate())
    assert not noted(unknown, ThresholdGate(0.25))
    assert not noted(scorer_of("a", 0.9), ThresholdGate(CALIBRATION))
