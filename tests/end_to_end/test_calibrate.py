"""``lara calibrate`` as a user runs it: its file, the tier that it says, and ``lara ask`` with the file."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import pytest
from command_line import Lara

from lara_plugins import Calibration, load_scorer

DATA = Path(os.environ.get("LARA_DATA", Path(__file__).parents[3] / "shared" / "data"))
NAMES = (
    *(
        "Alder",
        "Birch",
        "Cedar",
        "Damson",
        "Elm",
        "Fir",
        "Gorse",
        "Hazel",
        "Ivy",
        "Juniper",
        "Kapok",
        "Larch",
    ),
    *(
        "Maple",
        "Nutmeg",
        "Oak",
        "Pine",
        "Quince",
        "Rowan",
        "Spruce",
        "Teak",
        "Upas",
        "Viburnum",
        "Willow",
        "Yew",
    ),
)
YEARS = [1804 + 7 * n for n in range(len(NAMES))]


@pytest.fixture
def index(lara: Lara, tmp_path: Path) -> Path:
    """An index of records with ids of their own."""
    docs = tmp_path / "docs"
    docs.mkdir()
    records = [
        {
            "_id": f"r{n}",
            "title": f"{name} Bridge",
            "text": f"The {name} Bridge crosses the river near the mill. It was opened to traffic in {year}.",
        }
        for n, (name, year) in enumerate(zip(NAMES, YEARS, strict=True))
    ]
    (docs / "bridges.jsonl").write_text("\n".join(map(json.dumps, records)))
    assert lara("ingest", docs, "--index", tmp_path / "index").code == 0
    return tmp_path / "index"


def questions(tmp_path: Path, count: int = len(NAMES), **label: Callable[[int], list[str]]) -> Path:
    rows = [
        {"question": f"When was the {name} Bridge opened?", **{key: of(n) for key, of in label.items()}}
        for n, name in enumerate(NAMES[:count])
    ]
    file = tmp_path / "questions.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    return file


def answers(n: int) -> list[str]:
    return [str(YEARS[n])]


def test_labelled_by_answers_and_used(lara: Lara, index: Path, tmp_path: Path) -> None:
    out = tmp_path / "theta.json"
    ran = lara(
        "calibrate", "--index", index, "--questions", questions(tmp_path, answers=answers), "--out", out
    )
    assert (ran.code, ran.err) == (0, "")
    calibration = Calibration.load(out)
    assert (calibration.tier, calibration.n, calibration.recall) == ("labelled", len(NAMES), 0.95)
    assert calibration.fingerprint == load_scorer("embedded").fingerprint
    assert ran.out.startswith(f"theta {calibration.theta:.3g}, labelled, n = {len(NAMES)}: ")
    asked = lara(
        "ask",
        "When was the Elm Bridge opened?",
        "--index",
        index,
        "--calibration",
        out,
        "--afford=600",
        "--json",
    )
    told = json.loads(asked.out)
    gate = next(phase for phase in told["trace"]["phases"] if phase["phase"] == "gate")
    assert (gate["theta"], gate["calibrated"]) == (calibration.theta, "labelled")
    assert str(YEARS[NAMES.index("Elm")]) in told["answer"]


def test_labelled_by_passages_is_the_same_evidence(lara: Lara, index: Path, tmp_path: Path) -> None:
    thetas = []
    for label in ({"answers": answers}, {"passages": lambda n: [f"r{n}"]}):
        file = questions(tmp_path, **label)
        assert (
            lara("calibrate", "--index", index, "--questions", file, "--out", tmp_path / "t.json").code == 0
        )
        thetas.append(Calibration.load(tmp_path / "t.json").theta)
    assert thetas[0] == pytest.approx(thetas[1], abs=1e-4)


def test_other_fields_and_repeated_ids_are_no_matter(lara: Lara, index: Path, tmp_path: Path) -> None:
    plain = questions(tmp_path, passages=lambda n: [f"r{n}"])
    rows = [json.loads(line) for line in plain.read_text().splitlines()]
    thetas = []
    for number, more in enumerate([{}, {"line": "12b", "id": 7, "tags": None}]):
        file = tmp_path / f"rows{number}.jsonl"
        repeated = [{**row, **more, "passages": row["passages"] * (number + 1)} for row in rows]
        file.write_text("".join(f"{json.dumps(row)}\n" for row in repeated))
        out = tmp_path / f"theta{number}.json"
        assert lara("calibrate", "--index", index, "--questions", file, "--out", out).code == 0
        thetas.append(Calibration.load(out).theta)
    assert thetas[0] == thetas[1]


def test_too_few_labels_write_nothing_and_say_how_many_it_takes(
    lara: Lara, index: Path, tmp_path: Path
) -> None:
    file, out = questions(tmp_path, 9, answers=answers), tmp_path / "theta.json"
    ran = lara("calibrate", "--index", index, "--questions", file, "--out", out)
    assert ran.code == 1
    assert ran.out.startswith("Not attainable (labelled, n = 9): a recall of 0.95 needs 19 questions")
    assert not out.exists()
    assert lara("calibrate", "--index", index, "--questions", file, "--recall=0.9", "--out", out).code == 0


def test_another_scorer_gives_a_file_for_that_scorer(lara: Lara, index: Path, tmp_path: Path) -> None:
    name = f"onnx:{files('lara_plugins.gate') / 'embedded_model'}"
    file, out = questions(tmp_path, answers=answers), tmp_path / "theta.json"
    ran = lara(
        "calibrate", "--index", index, "--questions", file, "--recall=0.5", "--scorer", name, "--out", out
    )
    assert ran.code == 0
    assert f"Use it: ThresholdGate(scorer={name!r}, theta=Calibration.load({str(out)!r}))" in ran.out
    assert Calibration.load(out).fingerprint == load_scorer(name).fingerprint
    assert (
        "calibrated for the scorer onnx/" in lara("ask", "Why?", "--index", index, "--calibration", out).err
    )


def test_without_questions_they_are_made(lara: Lara, index: Path, tmp_path: Path) -> None:
    ran = lara("calibrate", "--index", index, "--out", tmp_path / "theta.json")
    # The bridges' texts are all alike: whether they can be told apart is the scorer's affair.
    assert "pseudo, n = 24" in ran.out
    assert ran.code == (0 if (tmp_path / "theta.json").exists() else 1)


def test_questions_alone_are_the_unlabelled_tier(lara: Lara, index: Path, tmp_path: Path) -> None:
    ran = lara(
        "calibrate", "--index", index, "--questions", questions(tmp_path), "--out", tmp_path / "t.json"
    )
    assert "unlabelled, n = 24" in ran.out


def test_what_has_no_label_is_left_out_and_said(lara: Lara, index: Path, tmp_path: Path) -> None:
    file = questions(tmp_path, answers=answers)
    file.write_text(file.read_text() + '\n\n{"question": "Who built them?", "answers": ["Nobody Special"]}\n')
    ran = lara("calibrate", "--index", index, "--questions", file, "--out", tmp_path / "theta.json")
    assert ran.code == 0
    assert ran.err.startswith("Left out 1 of 25 questions: ")


@pytest.mark.parametrize(
    ("rows", "arguments", "sentence"),
    [
        ("", [], "it holds no question"),
        ("{", [], "line 1 is not as it has to be"),
        ('\n{"answers": ["a"]}', [], "line 2 is not as it has to be: question"),
        ('{"question": "Why?", "answers": "a"}', [], "answers"),
        ('{"question": "Why?", "passages": ["r99"]}', [], "no passage has it"),
        ('{"question": "Why?", "answers": ["unheard of"]}', [], "is it about this index?"),
        ('{"question": "Why?", "passages": ["r1"]}', ["--recall=95"], "recall=95"),
        ('{"question": "Why?", "passages": ["r1"]}', ["--out", "absent/theta.json"], "a folder that exists"),
        ('{"question": "Why?", "passages": ["r1"]}', ["--index", "absent"], "there is no index here"),
        ('{"question": "Why?", "passages": ["r1"]}', ["--questions", "absent.jsonl"], "absent.jsonl"),
        ('{"question": "Why?", "passages": ["r1"]}', ["--scorer", "onnx:absent"], "no such folder"),
    ],
)
def test_an_error_is_one_line_and_exit_code_2(
    lara: Lara,
    index: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    rows: str,
    arguments: list[str],
    sentence: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rows.jsonl").write_text(rows)
    given = ["--index", index, "--questions", "rows.jsonl", "--out", "theta.json", *arguments]
    ran = lara("calibrate", *given)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert ran.err.startswith("error: ")
    assert sentence in ran.err
    assert not Path("theta.json").exists()


def test_help_shows_what_a_line_of_the_questions_looks_like(lara: Lara) -> None:
    told = " ".join(lara("calibrate", "--help").out.replace("│", " ").split())
    for field in ('{"question": ...}', '"answers": [...]', '"passages": [...]'):
        assert field in told


def test_ask_refuses_what_it_cannot_use(lara: Lara, index: Path, tmp_path: Path) -> None:
    file = tmp_path / "theta.json"
    Calibration(
        theta=0.4,
        tier="pseudo",
        fingerprint="another",
        n=19,
        recall=0.95,
        kept=1.0,
        unrelated=9,
        unrelated_kept=0.0,
    ).save(file)
    for arguments, sentence in (
        (["--calibration", file], "calibrated for the scorer another"),
        (["--calibration", file, "--theta=0.3"], "give it or --calibration, not both"),
        (["--calibration", tmp_path / "questions"], "questions"),
        (["--on-empty=give_up"], "on_empty='give_up'"),
    ):
        ran = lara("ask", "Why?", "--index", index, *arguments)
        assert (ran.code, ran.out) == (2, "")
        assert sentence in ran.err


def test_keep_best_is_the_other_remedy(lara: Lara, index: Path) -> None:
    question = "Who painted the ceiling of the Sistine Chapel?"
    ran = lara("ask", question, "--index", index, "--theta=1", "--afford=600")
    assert (
        "calibrate theta for this scorer and corpus (lara calibrate), or set on_empty='keep_best'" in ran.out
    )
    ran = lara("ask", question, "--index", index, "--theta=1", "--on-empty=keep_best", "--afford=600")
    assert "1 kept, 24 below theta 1" in ran.out


@pytest.mark.data
@pytest.mark.skipif(not (DATA / "nq").is_dir(), reason="the shared data sets are not here; set LARA_DATA")
def test_the_tiers_keep_what_they_promise_on_held_out_questions() -> None:
    from lara_plugins import Example, Score, calibrate
    from lara_plugins.evaluation import load_dataset

    data = load_dataset(DATA / "nq")
    scorer = load_scorer("embedded")
    examples = [
        Example(question.text, tuple(data.passages[name] for name in question.relevant))
        for question in sorted(data.questions, key=lambda question: question.id)
    ]
    held_out = [
        Score.from_logit(logit).value
        for example in examples[100:200]
        for logit in scorer.score(example.question, [passage.content for passage in example.relevant])
    ]
    for given in (examples[:100], []):
        outcome = calibrate(scorer, list(data.passages.values()), given)
        assert isinstance(outcome, Calibration)
        # 95 %, less what a hundred questions on either side leave to chance.
        assert sum(value >= outcome.theta for value in held_out) / len(held_out) >= 0.9
