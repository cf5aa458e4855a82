"""Parts of a page in Markdown that is made of results."""

import textwrap


def table(columns, rows):
    yield "| " + " | ".join(columns) + " |"
    yield "|" + "---|" * len(columns)
    for row in rows:
        yield "| " + " | ".join("" if cell is None else str(cell) for cell in row) + " |"


def section(title, text, columns, rows):
    """A heading, a paragraph and a table; nothing where the table has no rows."""
    rows = list(rows)
    if rows:
        paragraph = [*textwrap.wrap(text, 120, break_on_hyphens=False), ""] if text else []
        yield from ("", f"## {title}", "", *paragraph, *table(columns, rows))
