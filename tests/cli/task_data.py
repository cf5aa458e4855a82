"""Small data of the kinds that the recipes read."""

import json
import math
import random
import struct
import wave

from program import idx


def write_table(path):
    """Flights whose lateness follows from the hour and the carrier, but for one in ten."""
    source = random.Random(1)
    rows = ["month,day,hour,carrier,origin,dest,tailnum,sched_dep_time,sched_arr_time,distance,arr_delay"]
    for _ in range(3000):
        month, hour, carrier = source.randrange(1, 13), source.randrange(6, 20), source.choice(["UA", "DL", "B6"])
        late = (hour > 15) != (carrier == "DL")
        delay = source.choice(["NA", -5, 30]) if source.random() < 0.1 else 40 if late else -3
        rows.append(f"{month},{source.randrange(1, 29)},{hour},{carrier},JFK,ATL,N1,{hour}00,{hour + 1}30,500,{delay}")
    path.write_text("\n".join(rows) + "\n")


def write_texts(folder):
    source = random.Random(1)
    folder.mkdir()
    words = ["one", "two", "three", "four", "five"]
    (folder / "numbers").write_text(" ".join(source.choice(words) for _ in range(8000)))


# The files of write_examples(), by task.
EXAMPLES = {"text_classification": "topics.tsv", "text_tagging": "authors.jsonl", "question_answering": "sources.jsonl"}


def write_examples(folder):
    """Sentences of a name and what somebody does: whether it is quiet, where the name stands, and questions for it."""
    source = random.Random(1)
    names, doings = ("Ada", "Grace Hopper", "Alan"), {"reads": "quiet", "sings": "loud", "sleeps": "quiet"}
    topics, authors, questions = ["text\tlabel"], [], []
    for _ in range(300):
        name, doing = source.choice(names), source.choice(list(doings))
        before = source.choice(("today ", "now and then ", ""))
        text = f"{before}{name} {doing} ."
        inside = [word in name.split() for word in text.split()]
        tags = ["O" if not is_inside else "I-name" if inside[i - 1] and i else "B-name" for i, is_inside in enumerate(inside)]
        topics.append(f"{text}\t{doings[doing]}")
        authors.append(json.dumps({"tokens": text.split(), "tags": tags}))
        questions.append(json.dumps({"question": f"who {doing} ?", "context": text,
                                     "answers": {"text": [name], "answer_start": [len(before)]}}))
    for file, lines in (("topics.tsv", topics), ("authors.jsonl", authors), ("sources.jsonl", questions),
                        ("words", [line.split("\t")[0] + " who ?" for line in topics])):
        (folder / file).write_text("\n".join(lines) + "\n")


def write_translations(folder):
    """Numbers in English and, in another order, in German: the files to make parallel shards of."""
    source = random.Random(1)
    words = {"one": "eins", "two": "zwei", "three": "drei", "four": "vier", "five": "fünf", "six": "sechs"}
    folder.mkdir()
    texts = [source.choices(list(words), k=source.randrange(1, 7)) for _ in range(600)]
    (folder / "en").write_text("".join(" ".join(text) + "\n" for text in texts))
    (folder / "de").write_text("".join(" ".join(words[word] for word in reversed(text)) + "\n" for text in texts))
    return folder / "en", folder / "de"


def write_pictures(folder, width=28):
    """Images of 28 rows with noise in their middle, all of one class."""
    source = random.Random(1)
    size = 28 * width
    folder.mkdir()
    for prefix, count in (("train", 400), ("t10k", 100)):
        pixels = bytes(source.randrange(256) if 0.25 < i % size / size < 0.64 else 0 for i in range(count * size))
        (folder / f"{prefix}-images-idx3-ubyte").write_bytes(idx((count, 28, width), pixels))
        (folder / f"{prefix}-labels-idx1-ubyte").write_bytes(idx((count,), [0] * count))


def write_sounds(folder, count=60):
    """Tones of a low and a high class, as WAV files at 8 kHz."""
    for number in range(count):
        kind, hertz = ("low", 300 + 5 * number) if number % 2 else ("high", 1500 + 5 * number)
        samples = [round(9000 * math.sin(2 * math.pi * hertz * i / 8000)) for i in range(4000 + 100 * (number % 9))]
        file = folder / kind / f"{number}.wav"
        file.parent.mkdir(parents=True, exist_ok=True)
        with wave.open(str(file), "wb") as out:
            out.setparams((1, 2, 8000, len(samples), "NONE", ""))
            out.writeframes(struct.pack(f"<{len(samples)}h", *samples))
