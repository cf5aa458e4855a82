"""Token shards for the cases of language: documents of synthetic words, drawn evenly, so long that they fill their rows, or
of lengths that fill half of them.

A vocabulary has as many tokens as the network's own is known for, one a word. What a step takes does not depend on the words.
"""

import random
import shutil
import subprocess

from . import machine

FOLDER = machine.ROOT / "build" / "bench" / "tokens"
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
ROWS = 4  # batches that there are of each


MARKS = 3  # of a row of BERT: its beginning, and the ends of both texts
SHORTEST = 8


def path_of(case):
    return FOLDER / f"{case.recipe}-b{case.batch}-s{case.tokens}{'-packed' if case.packed else ''}" / "shards"


def drawn_length(draw, tokens):
    """Of a row with its marks: by an exponential law that is cut off, of a mean of half a row, as Wikipedia's documents nearly have."""
    scale = 0.63  # of a row; 0.63 (1 - exp(-1 / 0.63)) is a half
    return int(min(max(draw.expovariate(1 / (scale * tokens)), SHORTEST), tokens))


def write_lines(path, lines):
    path.write_text("".join(line + "\n" for line in lines))


def documents(case, words):
    """Lines of a text, and of its translation where the case has one. Each row keeps a place for the token that ends it."""
    draw = random.Random(case.tokens)
    rows = ROWS * case.batch
    if case.parallel:
        return [[" ".join(draw.choices(words, k=case.tokens - 1)) for _ in range(rows)] for _ in range(2)]
    if case.packed:
        # More than rows hold on average, so that there are enough.
        lengths = [drawn_length(draw, case.tokens) - MARKS for _ in range(3 * rows)]
        return [[" ".join(draw.choices(words, k=length)) for length in lengths]]
    long = 64 * case.tokens
    return [[" ".join(draw.choices(words, k=long)) for _ in range(max(2, rows * case.tokens // long))]]


def ensure(case, program):
    """Makes the shards of a case where they are not there yet."""
    path = path_of(case)
    if path.exists():
        return
    part = path.parent.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    words = [f"w{number}" for number in range(case.vocabulary - len(SPECIAL))]
    write_lines(part / "vocab.txt", [*SPECIAL, *words])
    files = []
    for number, lines in enumerate(documents(case, words)):
        files.append(part / f"text{number}.txt")
        write_lines(files[-1], lines)
    kind = "parallel" if case.parallel else "line"
    command = [program, "data", "tokenize", "--tokenizer", part / "vocab.txt", "--documents", kind, *files, "-o", part / path.name, "--quiet"]
    subprocess.run(list(map(str, command)), check=True, stdout=subprocess.DEVNULL)
    part.rename(path.parent)
