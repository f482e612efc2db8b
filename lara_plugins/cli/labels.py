"""The file of questions that ``lara calibrate`` reads."""

from __future__ import annotations

from codecs import BOM_UTF8
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lara_plugins.errors import InvalidArgument


class Labels(BaseModel):
    """What a line of the file holds.

    Args:
        question: as a person asks it.
        passages: ids of the passages that answer it, all of them needed.
        answers: any of them is a right answer; used where no passages are named.
    """

    model_config = ConfigDict(frozen=True, strict=True)

    question: str = Field(pattern=r"\S")
    passages: list[str] = []
    answers: list[str] = []


class Row(Labels):
    """A line of the file and its number, from 1."""

    line: int


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
                rows.append(Row(**Labels.model_validate_json(line).model_dump(), line=number))
            except ValidationError as error:
                first = error.errors(include_url=False)[0]
                place = ".".join(map(str, first["loc"]))
                remedy = f"line {number} is not as it has to be: {place} {first['msg']}".rstrip()
                raise InvalidArgument("--questions", str(path), remedy) from error
    if not rows:
        raise InvalidArgument(
            "--questions", str(path), 'it holds no question: write {"question": ...} a line'
        )
    return rows
