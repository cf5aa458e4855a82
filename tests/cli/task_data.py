"""Small data of the kinds that the recipes read."""

import random

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


def write_pictures(folder):
    """Images of 28x28 pixels with noise in their middle, all of one class."""
    source = random.Random(1)
    folder.mkdir()
    for prefix, count in (("train", 400), ("t10k", 100)):
        pixels = bytes(source.randrange(256) if 200 < i % 784 < 500 else 0 for i in range(count * 784))
        (folder / f"{prefix}-images-idx3-ubyte").write_bytes(idx((count, 28, 28), pixels))
        (folder / f"{prefix}-labels-idx1-ubyte").write_bytes(idx((count,), [0] * count))
