"""The gate: a cross-encoder scores, a threshold decides."""

from lara_plugins.gate.calibrating import DEFAULT_RECALL, Example, calibrate, check_recall
from lara_plugins.gate.calibration import Calibration, NotCalibrated, theta_of
from lara_plugins.gate.loading import DEFAULT_SCORER, load_scorer, scorer_of, serializable_name
from lara_plugins.gate.scorer import BLOCK_SIZE, Block, ScoreKind, Scorer
from lara_plugins.gate.scoring import GATE_SHARE, Scored, checked_question, score_in_time, to_scores
from lara_plugins.gate.threshold import DEFAULT_THETA, FEW_CANDIDATES, GateDecision, OnEmpty, ThresholdGate

__all__ = [
    "BLOCK_SIZE",
    "DEFAULT_RECALL",
    "DEFAULT_SCORER",
    "DEFAULT_THETA",
    "FEW_CANDIDATES",
    "GATE_SHARE",
    "Block",
    "Calibration",
    "Example",
    "GateDecision",
    "NotCalibrated",
    "OnEmpty",
    "ScoreKind",
    "Scored",
    "Scorer",
    "ThresholdGate",
    "calibrate",
    "check_recall",
    "checked_question",
    "load_scorer",
    "score_in_time",
    "scorer_of",
    "serializable_name",
    "theta_of",
    "to_scores",
]
