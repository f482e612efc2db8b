"""``lara latency show`` and ``lara latency probe``."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator
from http.client import HTTPResponse
from itertools import cycle, islice
from pathlib import Path
from urllib.request import Request, urlopen

from rich.progress import track
from rich.table import Table

from lara_plugins.arguments import check_count, check_seconds
from lara_plugins.budget import (
    IN_THREES,
    ONE_CALL,
    CalibratedLatency,
    LatencyModel,
    Observation,
    conservative_tokens,
)
from lara_plugins.cli.render import console
from lara_plugins.errors import BudgetError, InvalidArgument

PASSAGES = (1, 3, 6, 10, 20)
PASSAGE_TOKENS = 300
PROMPT_TOKENS = (400, 3000, 1000, 6000, 2000)
OUTPUT_TOKENS = 150


def show(file: Path) -> None:
    """Print what a latency file says."""
    print_latency(CalibratedLatency.load(file))


def probe(url: str, model: str, out: Path, calls: int, key_variable: str, timeout: float) -> None:
    """Measure an endpoint of OpenAI's protocol and write what was learned to a file."""
    if not url.startswith(("http://", "https://")):
        raise InvalidArgument("--url", url, "give the base URL, such as https://api.openai.com/v1")
    if not out.absolute().parent.is_dir() or out.is_dir():  # before any call is paid for
        raise InvalidArgument("--out", str(out), "give a file in a folder that exists")
    check_count("--calls", calls, "give the calls to make, 1 or more")
    check_seconds("--timeout", timeout, "give the seconds that a call may take, such as 60")
    latency = CalibratedLatency(f"{model} {url}")
    made = islice(cycle(PROMPT_TOKENS), calls)
    for tokens in track(list(made), "Measuring", console=console(), transient=True):
        latency.observe(measured(url, model, tokens, os.environ.get(key_variable), timeout))
    latency.save(out)
    print_latency(latency)
    console().print(f"Written to {out}. Use it: CalibratedLatency.load({str(out)!r})", soft_wrap=True)


def measured(url: str, model: str, tokens: int, key: str | None, timeout: float) -> Observation:
    """One streamed call with a prompt of about so many tokens.

    Raises:
        BudgetError: the reply is no stream of OpenAI's protocol.
        OSError: the endpoint cannot be reached or refuses the call.
    """
    prompt = f"Write about this number in 100 words: {time.time_ns()}.\n" + "latency " * (3 * tokens // 8)
    body = {
        "model": model,
        "messages": [{"role": "user", "content": prompt}],
        "max_tokens": OUTPUT_TOKENS,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
    endpoint = f"{url.rstrip('/')}/chat/completions"
    request = Request(endpoint, json.dumps(body).encode(), headers)  # noqa: S310 - http or https, checked
    began = time.monotonic()
    first: float | None = None
    written, counted = 0, None
    reply: HTTPResponse
    with urlopen(request, timeout=timeout) as reply:  # noqa: S310
        for chunk in _chunks(reply):
            choices = chunk.get("choices")
            delta = choices[0].get("delta", {}) if isinstance(choices, list) and choices else {}
            text = "".join(str(delta.get(part) or "") for part in ("content", "reasoning_content"))
            if text and first is None:
                first = time.monotonic() - began
            written += len(text)
            usage = chunk.get("usage")
            counted = usage.get("completion_tokens") if isinstance(usage, dict) else counted
    seconds = time.monotonic() - began
    if first is None:
        raise BudgetError(f"{url} sent no text: it is no endpoint of OpenAI's protocol, or refuses to stream")
    output = counted if isinstance(counted, int) else -(-written // 4)
    return Observation(conservative_tokens(prompt), seconds, first, output)


def _chunks(reply: Iterable[bytes]) -> Iterator[dict[str, object]]:
    """The objects of a stream of server-sent events."""
    for line in reply:
        data = line.decode(errors="replace").strip().removeprefix("data:").strip()
        if not data.startswith("{"):
            continue  # comments, blank lines and the end
        try:
            yield json.loads(data)
        except ValueError as error:
            raise BudgetError(f"the stream holds no JSON: {data[:60]}") from error


def print_latency(latency: CalibratedLatency) -> None:
    """What a model knows, and what it predicts."""
    known, out = latency.learned, console()
    missed = f"{known.missed / known.observed:.1%}" if known.observed else "none"
    fit = known.fit
    out.print(f"{latency.name or 'unnamed'}: {latency.state}, {known.observed} calls, {missed} missed")
    out.print(
        f"usual call: {known.load * fit.start:.3f} s + {1000 * known.load * fit.per_input:.2f} ms an input "
        f"token + {1000 * known.load * fit.per_output:.2f} ms an output token; "
        f"{known.typical_tokens:.0f} output tokens; load {known.load:.2f}",
        soft_wrap=True,
    )
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title in (f"passages of {PASSAGE_TOKENS} tokens", "in one call", "in threes"):
        table.add_column(title, justify="right")
    predicts: LatencyModel = latency.settled()
    for count in PASSAGES:
        tokens = [PASSAGE_TOKENS] * count
        seconds = [predicts.predict(calls(tokens)) for calls in (ONE_CALL, IN_THREES)]
        table.add_row(str(count), *(f"{one:.2f} s" for one in seconds))
    out.print("Predicted at most:" if latency.state == "calibrated" else "Predicted by the prior:")
    out.print(table)
