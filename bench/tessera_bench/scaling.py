"""bench/scaling: how long a graph of 20,000 nodes compiles for a GPU, and what a step over a large table costs beside one
over a small table."""

import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile

from . import machine, ours, report

PARAMETERS = 400  # of an optimizer's step (tests/support/optimizer_graph.h), about 51 nodes for each
CARD = "h100"
COMPILE_SECONDS = 2.0
ENTRIES = (1000, 1_000_000)
BATCH = 512
STEP_RATIO = 1.25  # the rows of the large table and of its moments lie in memory, those of the small one in the cache


def parse(arguments):
    parser = argparse.ArgumentParser(prog="bench/scaling", description=__doc__.partition(": ")[2])
    parser.add_argument("parts", nargs="*", metavar="PART", help="graph, table (both)")
    parser.add_argument("--runs", type=int, default=5, help="%(default)s")
    parser.add_argument("--program", type=pathlib.Path, default=ours.PROGRAM, help="build/release/bin/tessera unless said")
    parser.add_argument("--printer", type=pathlib.Path, default=machine.ROOT / "build/release/bin/large_graph",
                        help="prints the graph (build/release/bin/large_graph, which ./test builds)")
    parser.add_argument("--results", type=pathlib.Path, help="file to append to (bench/results/DATE-scaling.jsonl)")
    options = parser.parse_args(arguments)
    for part in options.parts:
        if part not in PARTS:
            parser.error(f"there is no part '{part}'")
    return options


def run(options, *words):
    """What the program says, with threads that sleep while they wait: on a busy machine others get the processor, not us."""
    environment = machine.environment(1) | {"OMP_WAIT_POLICY": "passive"}
    command = [options.program, *map(str, words)]
    told = subprocess.run(command, cwd=machine.ROOT, env=environment, stdin=subprocess.DEVNULL, check=True, capture_output=True)
    return told.stdout


def large_graph(options, folder):
    """The least of some compilations: what others do on the machine makes them longer, never shorter."""
    path = pathlib.Path(folder, "large.graph")
    with path.open("w") as file:
        subprocess.run([options.printer, str(PARAMETERS)], stdout=file, check=True)
    compiled = [json.loads(run(options, "explain", path, "--plan-for", CARD, "--json")) for _ in range(options.runs)]
    seconds = [told["compile_seconds"] for told in compiled]
    return {
        "case": f"cuda/large-graph-{CARD}",
        "nodes": compiled[0]["passes"][0]["nodes_before"],
        "compile_seconds": seconds,
        "reached": min(seconds),
        "allowed": COMPILE_SECONDS,
    }


def write_table(path, rows, entries):
    """A category of so many values, in an order in which neighbors are not read together, and one of 16."""
    source = random.Random(1)
    keys = list(range(rows))
    source.shuffle(keys)
    with path.open("w") as file:
        file.write("key,kind,number,label\n")
        for key in keys:
            file.write(f"{key % entries},{key % 16},{source.randrange(1000)},{source.randrange(2)}\n")


def large_table(options, folder):
    """Trainings over both tables in turn, an epoch of as many rows each; of each the fastest, which others disturbed least."""
    columns = ("data.categories=['key', 'kind']", "data.numbers=['number']", "data.label=label", "data.above=0.5")
    training = ("train.epochs=1", "train.evaluate_every=0", "train.checkpoint_every=0", "train.threads=1")
    rates, traffic = {entries: [] for entries in ENTRIES}, {}

    def words(command, entries, *changes):
        changes = [*columns, *changes, f"data.path={folder}/{entries}.csv", f"train.batch={BATCH}"]
        return [command, "recipes/flights.toml", "--device", "cpu", *(word for change in changes for word in ("--set", change))]

    for entries in ENTRIES:
        write_table(pathlib.Path(folder, f"{entries}.csv"), ENTRIES[-1], entries)
        told = json.loads(run(options, *words("explain", entries), "--train", "--json"))
        traffic[entries] = sum(node["bytes"] for node in told["nodes"])
    for turn in range(options.runs):
        for entries in ENTRIES:
            out = pathlib.Path(folder, f"run-{entries}-{turn}")
            run(options, *words("train", entries, *training), "--out", out, "--quiet")
            rates[entries].append(json.loads((out / "summary.json").read_text())["samples_per_second"])
    small, large = (BATCH / max(rates[entries]) * 1e3 for entries in ENTRIES)
    return {
        "case": f"cpu/click-through-b{BATCH}",
        "entries": ENTRIES,
        "samples_per_second": list(rates.values()),
        "bytes": list(traffic.values()),
        "milliseconds": [small, large],
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
