"""``lara latency``: measuring an endpoint, and what its file says."""

from __future__ import annotations

from pathlib import Path

import pytest
from chat_server import Chat, ChatServer
from command_line import Lara

from lara_plugins import CalibratedLatency, Observation


def test_probe_then_show(lara: Lara, tmp_path: Path) -> None:
    file = tmp_path / "latency.json"
    with ChatServer(lambda request: Chat(text="It is a number. " * 20, usage=(400, 80))) as server:
        ran = lara("latency", "probe", "--url", server.url, "--model", "test", "--out", str(file))
        assert ran.code == 0, ran.err
        assert len(server.requests) == 30
        assert all(request["stream"] and request["max_tokens"] == 150 for request in server.requests)
    loaded = CalibratedLatency.load(file)
    assert (loaded.state, loaded.learned.observed) == ("calibrated", 30)
    assert {residual.tokens for residual in loaded.learned.residuals} == {80.0}
    shown = lara("latency", "show", str(file))
    assert shown.code == 0, shown.err
    assert "calibrated, 30 calls" in shown.out
    assert "Predicted at most:" in shown.out
    assert shown.out in ran.out


def test_show_says_when_the_prior_predicts(lara: Lara, tmp_path: Path) -> None:
    latency = CalibratedLatency("mine")
    latency.observe(Observation(1000, 1.0, 0.5, 50))
    latency.save(tmp_path / "latency.json")
    shown = lara("latency", "show", str(tmp_path / "latency.json"))
    assert "mine: warming up, 1 calls" in shown.out
    assert "Predicted by the prior:" in shown.out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["show", "{tmp}/none.json"], "No such file"),
        (["show", "{tmp}/damaged.json"], "no latency file of this version"),
        (["probe", "--url", "ftp://host", "--model", "m", "--out", "{tmp}/x"], "--url='ftp://host'"),
        (["probe", "--url", "{url}", "--model", "m", "--out", "{tmp}/no/x"], "--out="),
        (["probe", "--url", "{url}", "--model", "m", "--out", "{tmp}/x", "--calls", "0"], "--calls=0"),
        (["probe", "--url", "{url}", "--model", "m", "--out", "{tmp}/x"], "HTTP Error 401"),
    ],
)
def test_errors_are_one_sentence(lara: Lara, tmp_path: Path, arguments: list[str], sentence: str) -> None:
    (tmp_path / "damaged.json").write_text('{"format": 9}')
    with ChatServer(lambda request: Chat(status=401)) as server:
        filled = [argument.format(tmp=tmp_path, url=server.url) for argument in arguments]
        ran = lara("latency", *filled)
    assert ran.code == 2
    assert sentence in ran.err
    assert ran.err.count("\n") == 1
    assert not (tmp_path / "x").exists()


def test_what_is_no_stream_is_refused(lara: Lara, tmp_path: Path) -> None:
    with ChatServer(lambda request: Chat(body="<html></html>")) as server:
        ran = lara("latency", "probe", "--url", server.url, "--model", "m", "--out", str(tmp_path / "x"))
    assert ran.code == 2
    assert "sent no text" in ran.err
