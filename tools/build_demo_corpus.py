"""Convert pages of SQLite's documentation into the Markdown files of the demo corpus.

The pages are those of Debian's package ``sqlite3-doc``::

    python tools/build_demo_corpus.py /usr/share/doc/sqlite3 lara_plugins/cli/demo_corpus/pages
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path

PAGES = """
    about atomiccommit autoinc backup cli datatype3 different eqp expridx faq foreignkeys fts5 gencol
    howtocorrupt inmemorydb isolation json1 lang_altertable lang_analyze lang_attach lang_conflict
    lang_createindex lang_createtable lang_createtrigger lang_createview lang_datefunc lang_delete
    lang_dropindex lang_droptable lang_insert lang_returning lang_savepoint lang_transaction lang_upsert
    lang_vacuum lang_with limits lockingv3 mmap nulls partialindex pragma queryplanner quirks rowidtable
    security sharedcache stricttables tempfiles threadsafe uri wal whentouse withoutrowid
""".split()  # noqa: SIM905  one page a line would be a longer list, not a clearer one

SKIPPED = {"script", "style", "svg", "select", "title"}
SKIPPED_CLASSES = {"nosearch", "imgcontainer"}
HEADINGS = {"h1": "## ", "h2": "### ", "h3": "#### ", "h4": "##### ", "h": "#### "}
BLOCKS = {*HEADINGS, "p", "div", "blockquote", "center", "pre", "br", "hr"}
BLOCKS |= {"table", "tr", "dl", "dt", "dd", "ul", "ol", "li"}
INSIDE_A_CELL = {"br", "p", "div", "center"}
LIST_ITEM = re.compile(r" *(-|\d+\.) (?!\|)")  # not a row of a table whose first cell is a number
VOID = {"br", "hr", "img", "input", "link", "meta"}


class MarkdownWriter(HTMLParser):
    """Gathers the blocks of one page; markup inside a line is dropped, its words are kept."""

    def __init__(self) -> None:
        super().__init__()
        self.title = ""
        self.blocks: list[str] = []
        self.text = ""
        self.prefix = ""
        self.lists: list[int | None] = []  # the last number of each open list, None where it has bullets
        self.in_pre = False
        self.in_title = False
        self.in_cell = False
        self.bold = ""
        self.in_bold = False
        self.only_a_diagram = False
        self.skipping: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Open a block, or begin to skip what is no text."""
        attributes = dict(attrs)
        classes = set((attributes.get("class") or "").split())
        self.in_title = tag == "title"
        if self.skipping or tag in SKIPPED or classes & SKIPPED_CLASSES:
            if tag not in VOID and (not self.skipping or tag == self.skipping[0]):
                self.skipping.append(tag)
            return
        if tag == "button":  # the switch above a syntax diagram, in a paragraph of its own
            self.only_a_diagram = True
        if tag in {"td", "th"}:
            self.in_cell = True
            self.text += " | " if self.text.strip(" |\n") else ""
        elif tag == "sup":  # 2^31
            self.text += "^"
        elif tag == "b":
            self.in_bold = True
        elif tag in INSIDE_A_CELL and (self.in_cell or self.in_pre):
            self.text += "\n"
        elif tag in BLOCKS:
            self.flush()
        if tag in {"ul", "ol"}:
            self.lists.append(0 if tag == "ol" else None)
        elif tag == "li":
            self.prefix = "  " * (len(self.lists) - 1) + self.next_marker(attributes.get("value"))
        elif tag in HEADINGS:
            self.prefix = HEADINGS[tag]
        elif tag == "pre":
            self.in_pre = True

    def handle_endtag(self, tag: str) -> None:
        """Close a block, or end the skipping."""
        self.in_title = False
        if self.skipping:
            if tag == self.skipping[0]:
                self.skipping.pop()
            return
        if tag == "b":
            self.in_bold = False
        elif tag in INSIDE_A_CELL and (self.in_cell or self.in_pre):
            self.text += "\n"
        elif tag in BLOCKS:
            self.flush()
        if tag in {"ul", "ol"} and self.lists:
            self.lists.pop()
        elif tag == "pre":
            self.in_pre = False

    def handle_data(self, data: str) -> None:
        """Add to the block."""
        if self.in_title:
            self.title += data
        elif not self.skipping:
            self.text += data
            self.bold += data if self.in_bold else ""

    def next_marker(self, number: str | None) -> str:
        """What the next item of the innermost list begins with; ``number`` where the page sets one."""
        last = self.lists[-1] if self.lists else None
        if last is None:
            return "- "
        self.lists[-1] = last + 1 if number is None else int(number)
        return f"{self.lists[-1]}. "

    def flush(self) -> None:
        """End the block."""
        text, bold = self.text, " ".join(self.bold.split())
        self.text = self.bold = ""
        self.in_cell = False
        words = " ".join(text.split()).replace("| | ", "| ")  # a spacer column
        if self.only_a_diagram or not words or words.startswith("This page last modified"):
            self.only_a_diagram = False
            return
        above = self.blocks[-1].split("\n")[-1] if self.blocks else ""
        if self.in_pre:
            lines = [line.rstrip() for line in text.expandtabs().strip("\n").splitlines()]
            words = "\n".join(["```", *lines, "```"])
        elif self.prefix.startswith("#"):
            number, _, rest = words.partition(" ")  # "1.2. Summary"
            words = self.prefix + (rest if rest and number.replace(".", "").isdigit() else words)
        elif words == bold and not above.startswith("#"):
            words = f"#### {words}"  # the title of what follows, in all but its tag
        else:
            words = self.prefix + words
        if LIST_ITEM.match(above) and LIST_ITEM.match(words):
            self.blocks[-1] += f"\n{words}"
        elif words.lstrip("# ") != " ".join(self.title.split()):
            self.blocks.append(words)
        self.prefix = ""


def convert(html: str) -> str:
    """The page as Markdown: its title, then its blocks, one empty line between them."""
    writer = MarkdownWriter()
    writer.feed(html)
    writer.close()
    writer.flush()
    return "\n\n".join([f"# {' '.join(writer.title.split())}", *writer.blocks]) + "\n"


def main() -> None:
    """Convert every page of the list."""
    source, target = Path(sys.argv[1]), Path(sys.argv[2])
    target.mkdir(parents=True, exist_ok=True)
    for page in PAGES:
        markdown = convert((source / f"{page}.html").read_text(encoding="utf-8"))
        (target / f"{page}.md").write_text(markdown, encoding="utf-8")


if __name__ == "__main__":
    main()
