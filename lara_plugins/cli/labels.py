"""The file of questions that ``lara calibrate`` reads."""

from __future__ import annotations

from codecs import BOM_UTF8
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lara_plugins.errors import InvalidArgument


class Row(BaseModel):
    """One line of the file.

    Args:
        question: as a person asks it.
        passages: ids of the passages that answer it, all of them needed.
        answers: any of them is a right answer; used where no passages are named.
        line: its number in the file, from 1.
    """

    model_config = ConfigDict(frozen=True, strict=True)

    question: str = Field(pattern=r"\S")
    passages: list[str] = []
    answers: list[str] = []
    line: int = 0


def read_rows(path: Path) -> list[Row]:
    """Read JSON lines; blank lines are passed over and other fields are no matter.

    Raises:
        InvalidArgument: a line is not as it has to be, or there is none.
        OSError: there is no such file.
    """
    rows = []
    for number, line in enumerate(path.read_bytes().removeprefix(BOM_UTF8).splitlines(), start=1):
        if line.strip():
            try:
                rows.append(Row.model_validate_json(line).model_copy(update={"line": number}))
            except ValidationError as error:
                first = error.errors(include_url=False)[0]
                place = ".".join(map(str, first["loc"]))
                remedy = f"line {number} is not as it has to be: {place} {first['msg']}".rstrip()
                raise InvalidArgument("--labelled", str(path), remedy) from error
    if not rows:
        raise InvalidArgument("--labelled", str(path), 'it holds no question: write {"question": ...} a line')
    return rows
