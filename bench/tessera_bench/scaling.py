"""bench/scaling: how long a graph of 20,000 nodes compiles for a GPU, and what a step over a large table costs beside one
over a small table."""

import argparse
import json
import pathlib
import random
import resource
import statistics
import subprocess
import sys
import tempfile

from . import machine, ours, report

PARAMETERS = 390  # of an optimizer's step (tests/support/optimizer_graph.h): 20,287 nodes
CARD = "h100"
COMPILE_SECONDS = 2.0
ENTRIES = (1000, 1_000_000)
BATCH = 512
STEP_RATIO = 1.25  # the rows of the large table lie in memory, those of the small one in the cache


def parse(arguments):
    parser = argparse.ArgumentParser(prog="bench/scaling", description=__doc__.partition(": ")[2])
    parser.add_argument("parts", nargs="*", metavar="PART", help="graph, table (both)")
    parser.add_argument("--runs", type=int, default=5, help="%(default)s")
    parser.add_argument("--program", type=pathlib.Path, default=ours.PROGRAM, help="build/release/bin/tessera unless said")
    parser.add_argument("--printer", type=pathlib.Path, default=machine.ROOT / "build/dev/bin/large_graph",
                        help="prints the graph (build/dev/bin/large_graph)")
    parser.add_argument("--results", type=pathlib.Path, help="file to append to (bench/results/DATE-scaling.jsonl)")
    options = parser.parse_args(arguments)
    for part in options.parts:
        if part not in PARTS:
            parser.error(f"there is no part '{part}'")
    return options


def explain(options, *words):
    """What `tessera explain --json` says, on one thread, and the processor's seconds that all of it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [options.program, "explain", *map(str, words), "--json"]
    told = subprocess.run(command, cwd=machine.ROOT, env=machine.environment(1), stdin=subprocess.DEVNULL, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return json.loads(told.stdout), seconds


def large_graph(options, folder):
    """The least of some compilations: what others do on the machine makes them longer, never shorter."""
    path = pathlib.Path(folder, "large.graph")
    with path.open("w") as file:
        subprocess.run([options.printer, str(PARAMETERS)], stdout=file, check=True)
    compiled = [explain(options, path, "--plan-for", CARD) for _ in range(options.runs)]
    seconds = [told["compile_seconds"] for told, _ in compiled]
    return {
        "case": f"cuda/large-graph-{CARD}",
        "nodes": path.read_text().count(" = "),
        "compile_seconds": seconds,
        "processor_seconds": [processor for _, processor in compiled],
        "reached": min(seconds),
        "allowed": COMPILE_SECONDS,
    }


def write_table(path, entries):
    """A category of so many values, in an order in which neighbors are not read together, and one of 16."""
    source = random.Random(1)
    keys = list(range(max(entries, 20 * BATCH)))
    source.shuffle(keys)
    with path.open("w") as file:
        file.write("key,kind,number,label\n")
        for key in keys:
            file.write(f"{key % entries},{key % 16},{source.randrange(1000)},{source.randrange(2)}\n")


def large_table(options, folder):
    """Steps over both tables in turn, so that both meet the same machine; medians of the sums of their nodes' times."""
    columns = ("data.categories=['key', 'kind']", "data.numbers=['number']", "data.label=label", "data.above=0.5")
    words = ["recipes/flights.toml", "--train", "--device", "cpu", "--times", "--batch", BATCH]
    words += [word for column in columns for word in ("--set", column)]
    milliseconds, traffic = {entries: [] for entries in ENTRIES}, {}
    for entries in ENTRIES:
        write_table(pathlib.Path(folder, f"{entries}.csv"), entries)
    for _ in range(options.runs):
        for entries in ENTRIES:
            told, _ = explain(options, *words, "--set", f"data.path={folder}/{entries}.csv")
            milliseconds[entries].append(told["total"]["microseconds"] / 1e3)
            traffic[entries] = sum(node["bytes"] for node in told["nodes"])
    small, large = (statistics.median(milliseconds[entries]) for entries in ENTRIES)
    return {
        "case": f"cpu/click-through-b{BATCH}",
        "entries": ENTRIES,
        "milliseconds": list(milliseconds.values()),
        "bytes": list(traffic.values()),
        "medians": [small, large],
        "reached": large / small,
        "allowed": STEP_RATIO,
    }


PARTS = {"graph": large_graph, "table": large_table}


def main(arguments=None):
    options = parse(arguments)
    missed = False
    for part in options.parts or PARTS:
        common = {"kind": "scaling", "part": part, "time": report.now(), "commit": machine.commit()}
        common |= {"machine": machine.describe(1), "busy_before": machine.busy_fraction()}
        with tempfile.TemporaryDirectory() as folder:
            record = common | PARTS[part](options, folder)
        ok = record["reached"] <= record["allowed"]
        print(f"{record['case']} {record['reached']:.3g}, at most {record['allowed']:g}: {'ok' if ok else 'MISSED'}", flush=True)
        report.append(record, options.results or machine.ROOT / "bench/results" / f"{record['time'][:10]}-scaling.jsonl")
        missed = missed or not ok
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
