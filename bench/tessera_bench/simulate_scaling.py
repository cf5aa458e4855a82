"""bench/simulate_scaling: what many GPUs reach together, from what one and two of them do.

Prints a table in Markdown, or JSON. Each figure that goes in is told with its source: measured here, published, or assumed.
"""

import argparse
import dataclasses
import json
import pathlib
import statistics
import subprocess
import sys

from . import exchange_model, machine, ours, report, step_model

LEAST_BYTES = 2**20  # of an exchange that the links' model is fitted to: smaller ones go by another protocol
# Steps of two GPUs by the MiB of a bucket, 0 for all at once, in ms: by what they differ says what an exchange costs that goes
# on beside the step. 048 (256 images on each of two H100s) and 055 (on two H200s).
STEPS_BY_BUCKET = (
    {25: 512 / 17.939, 10: 512 / 17.751, 50: 512 / 17.970, 100: 512 / 17.957, 0: 512 / 18.020},
    {25: 24.63, 0: 24.62},
)
SCALING_INTO_BUCKETS = 0.1e-3  # seconds by which the graph of several ranks alone is longer: docs/experiments/054-peer-copies.md
TUNER = "NCCL's own model, src/graph/tuning.cc of 2.30.7, protocol Simple"
INSIDE_STEP, BETWEEN_STEP = 4.0e-6, 14.0e-6
NETWORKS = {  # bytes/s of all adapters of a host of eight GPUs
    "ndr": (8 * 50e9, "InfiniBand NDR, an adapter of 400 Gb/s for each GPU (ConnectX-7; DGX H100's user guide)"),
    "hdr": (8 * 25e9, "InfiniBand HDR, an adapter of 200 Gb/s for each GPU (ConnectX-6; DGX A100's user guide)"),
    "ndr-1": (50e9, "one adapter of 400 Gb/s for the whole host"),
}


@dataclasses.dataclass(frozen=True)
class Case:
    words: tuple  # of `tessera explain`
    samples: int  # of a GPU's step
    milliseconds: float = 0  # of a step alone; 0: as bench/several_gpus measured it, in the case of this name
    source: str = ""


def encoder(size):
    return ("recipes/bert_tiny.toml", "--set", f"model.size={size}", "--set", "data.tokens=128", "--batch", "64")


CASES = {
    "resnet50-train-b256-fp16": Case(("resnet50", "--batch", "256"), 256),
    "resnet50-train-b64-fp16": Case(
        ("resnet50", "--batch", "64"), 64, 64 / 8.821, "measured: an H200, bench/results/2026-11-22-h200.jsonl"),
    "bert-base-train-b64-fp16": Case(
        encoder("base"), 64, 15.6, "measured: an H100, rows of 128 tokens, docs/experiments/051-an-encoders-step.md"),
    "bert-large-train-b64-fp16": Case(
        encoder("large"), 64, 15.6 * 30.3 / 9.6, "assumed: as far above its nodes' limits, 30.3 ms, as BERT-base's step (9.6, 15.6)"),
}


@dataclasses.dataclass
class Model:
    case: Case
    alone: float  # seconds of the step of one GPU
    nodes: list  # step_model.Node
    cluster: exchange_model.Cluster
    interference: float
    spread: float  # of the GPUs' speeds: their standard deviation, as a share
    waiting: float = 0  # seconds that two GPUs lose beyond all that is modeled
    gradient_bits: int = 32

    def timeline(self, gpus, alone):
        """Of a step that takes so long on one GPU."""
        share = self.gradient_bits / 32
        return step_model.simulate(
            self.nodes, alone + SCALING_INTO_BUCKETS,
            lambda size: exchange_model.all_reduce(size * share, gpus, self.cluster)[1], self.interference)

    def row(self, gpus):
        slowest = self.alone * self.spread * exchange_model.expected_largest(gpus)
        linked, timeline = self.timeline(gpus, self.alone), self.timeline(gpus, self.alone + slowest)
        # All ranks wait for whichever comes last, of however many there are.
        waiting = self.waiting * exchange_model.expected_largest(gpus) / exchange_model.expected_largest(2)
        sizes = [size * self.gradient_bits / 32 for size in step_model.exchanged_bytes(self.nodes)]
        seconds = timeline.seconds + waiting
        return {
            "gpus": gpus,
            "algorithm": exchange_model.all_reduce(max(sizes), gpus, self.cluster)[0],
            "exchange_milliseconds": 1e3 * sum(exchange_model.all_reduce(size, gpus, self.cluster)[1] for size in sizes),
            "lost_to_exchange_milliseconds": 1e3 * (linked.seconds - self.alone),
            "of_that_waited_milliseconds": 1e3 * linked.waited,
            "slowest_milliseconds": 1e3 * slowest,
            "waiting_milliseconds": 1e3 * waiting,
            "step_milliseconds": 1e3 * seconds,
            "scaling_by_links": self.alone / linked.seconds,
            "scaling": self.alone / seconds,
            "samples_per_second": gpus * self.case.samples / seconds,
        }


def explain(options, case, *words):
    """The plan of the step of one of two ranks. What depends on their number is how long an exchange takes, no node."""
    command = [options.program, "explain", *case.words, "--train", "--precision", "fp16", "--nondeterministic"]
    command += ["--plan-for", "h200", "--ranks", "2", "--json", *words]
    told = subprocess.run(list(map(str, command)), cwd=machine.ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if told.returncode:
        raise RuntimeError(told.stderr.strip())
    return step_model.read(json.loads(told.stdout))


def measured_runs(path, name):
    """Ours of bench/several_gpus without options: [(seconds of each GPU alone, seconds of all together)]"""
    runs = []
    for line in map(json.loads, path.read_text().splitlines()):
        side = line["sides"].get("tessera")
        if side and line["case"] == f"cuda-x2/{name}" and not line["words"]:
            samples = CASES[name].samples
            runs.append(([samples / rate for rate in side["alone"]], line["gpus"] * samples / side["together"]))
    return runs


def measured_exchanges(path):
    """Of the last run of bench/exchanges on two GPUs, ours if there: [(bytes, seconds)]"""
    lines = [line for line in map(json.loads, path.read_text().splitlines()) if line["case"].startswith("cuda-x2/")]
    if not lines:
        raise RuntimeError(f"{path} has no run of two GPUs")
    sides = lines[-1]["sides"]
    rows = sides.get("tessera") or next(iter(sides.values()))
    return [(row["bytes"], row["milliseconds"] / 1e3) for row in rows if row["bytes"] >= LEAST_BYTES]


def spread_of(runs):
    """The standard deviation of speeds, as a share: of two numbers half of their squared difference is their variance."""
    squares = [(2 * (first - second) / (first + second)) ** 2 / 2 for (first, second), _ in runs]
    return statistics.fmean(squares) ** 0.5


def fit_interference(plans, exchange, alone):
    """How much of the time of an exchange is lost that goes on beside the step: what steps of several sizes of buckets lose
    beyond what they wait for, over what they have beside them. Each machine loses a time of its own besides."""
    above = below = 0.0
    for steps in STEPS_BY_BUCKET:
        points = []
        for bucket, milliseconds in steps.items():
            timeline = step_model.simulate(plans[bucket], alone, exchange, 0)
            points.append((timeline.beside, milliseconds / 1e3 - timeline.waited))
        beside, lost = (statistics.fmean(values) for values in zip(*points))
        above += sum((b - beside) * (l - lost) for b, l in points)
        below += sum((b - beside) ** 2 for b, _ in points)
    return min(max(above / below, 0.0), 1.0)


def validate(model, runs):
    """Each measured step of two GPUs beside that of the model, which then takes what it lacks from the others alone."""
    lacking = [together - model.timeline(2, max(alone)).seconds for alone, together in runs]
    rows = []
    for i, (alone, together) in enumerate(runs):
        others = statistics.fmean(lacking[:i] + lacking[i + 1:]) if len(runs) > 1 else 0.0
        predicted = together - lacking[i] + others
        whole = statistics.harmonic_mean(alone)
        rows.append({
            "alone_milliseconds": [1e3 * seconds for seconds in alone],
            "measured_milliseconds": 1e3 * together,
            "by_links_milliseconds": 1e3 * (together - lacking[i]),
            "predicted_milliseconds": 1e3 * predicted,
            "measured_scaling": whole / together,
            "predicted_scaling": whole / predicted,
        })
    return rows, max(statistics.fmean(lacking), 0.0)


def simulate(options):
    case = CASES[options.case]
    basis = "resnet50-train-b256-fp16"  # whose two GPUs were measured
    intercept, rate = exchange_model.fit(measured_exchanges(options.exchanges), 2)
    host_rate, network = NETWORKS[options.network]
    cluster = exchange_model.Cluster(intercept - 2 * INSIDE_STEP, INSIDE_STEP, rate, BETWEEN_STEP, host_rate)
    runs = measured_runs(options.runs, basis)
    if not runs:
        raise RuntimeError(f"{options.runs} has no run of cuda-x2/{basis}")
    alone = statistics.fmean(seconds for each, _ in runs for seconds in each)
    plans = {bucket: explain(options, CASES[basis], "--bucket-mib", bucket) for steps in STEPS_BY_BUCKET for bucket in steps}
    interference = fit_interference(plans, lambda size: exchange_model.all_reduce(size, 2, cluster)[1], alone)
    if options.interference is not None:
        interference = options.interference
    measured = Model(CASES[basis], alone, plans[25], cluster, interference, spread_of(runs))
    validation, measured.waiting = validate(measured, runs)
    model = dataclasses.replace(
        measured, case=case, gradient_bits=options.gradient_bits, alone=case.milliseconds / 1e3 or alone,
        nodes=explain(options, case, *(["--bucket-mib", options.bucket_mib] if options.bucket_mib is not None else [])))
    source = f"{options.runs.name}, {len(runs)} runs of two GPUs"
    figures = [
        ("step of one GPU, ms", 1e3 * model.alone, case.source or f"measured: {source}"),
        ("gradients and the like, MiB", sum(step_model.exchanged_bytes(model.nodes)) / 2**20, "tessera explain"),
        ("exchanges of a step", len(step_model.exchanged_bytes(model.nodes)), "tessera explain"),
        ("call of an exchange, us", 1e6 * cluster.call, f"measured: fitted to {options.exchanges.name}"),
        ("bus of a GPU within a host, GB/s", 1e-9 * rate, "measured: the same; assumed: eight GPUs reach what two do"),
        ("step within a host, us", 1e6 * INSIDE_STEP, f"published: {TUNER}"),
        ("step between hosts, us", 1e6 * BETWEEN_STEP, f"published: {TUNER}"),
        ("all adapters of a host, GB/s", 1e-9 * host_rate, f"published: {network}; assumed: it is reached"),
        ("of an exchange beside the step, lost", interference,
         "given" if options.interference is not None else "measured: fitted to steps by size of bucket, 048 and 055"),
        ("the graph of several ranks alone, ms", 1e3 * SCALING_INTO_BUCKETS, "measured: docs/experiments/054-peer-copies.md"),
        ("spread of GPUs' speeds, %", 100 * model.spread, f"measured: {source}; assumed: normally distributed"),
        ("lost by two GPUs besides, ms", 1e3 * model.waiting, f"measured: {source}; assumed: waiting, for the last of all"),
    ]
    return {
        "case": options.case,
        "network": options.network,
        "figures": [dict(zip(("name", "value", "source"), figure)) for figure in figures],
        "validation": validation,
        "scaling": [model.row(gpus) for gpus in options.gpus],
    }


def table(columns, rows):
    yield "| " + " | ".join(columns) + " |"
    yield "|" + "---|" * len(columns)
    for row in rows:
        yield "| " + " | ".join(row) + " |"


def markdown(told):
    yield from table(("figure", "value", "where from"), ((f["name"], f"{f['value']:.3g}", f["source"]) for f in told["figures"]))
    yield ""
    yield from table(
        ("two GPUs alone, ms", "together, ms", "by links", "with what others lack", "scaling", "predicted"),
        ((" and ".join(f"{value:.2f}" for value in row["alone_milliseconds"]), f"{row['measured_milliseconds']:.2f}",
          f"{row['by_links_milliseconds']:.2f}", f"{row['predicted_milliseconds']:.2f}", f"{100 * row['measured_scaling']:.1f} %",
          f"{100 * row['predicted_scaling']:.1f} %") for row in told["validation"]))
    yield ""
    yield from table(
        ("GPUs", "algorithm", "exchanges, ms", "the step loses, ms", "slowest GPU, ms", "waiting, ms", "scaling by links", "in all", "samples/s"),
        ((f"{row['gpus']:,}", row["algorithm"], f"{row['exchange_milliseconds']:.2f}", f"{row['lost_to_exchange_milliseconds']:.2f}",
          f"{row['slowest_milliseconds']:.2f}", f"{row['waiting_milliseconds']:.2f}", f"{100 * row['scaling_by_links']:.1f} %",
          f"{100 * row['scaling']:.1f} %", f"{row['samples_per_second']:,.0f}") for row in told["scaling"]))


def newest(kind):
    return max((machine.ROOT / "bench" / "results").glob(f"*-{kind}.jsonl"))


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="bench/simulate_scaling", description=__doc__.partition(": ")[2])
    parser.add_argument("case", nargs="?", choices=CASES, default=next(iter(CASES)), help="%(default)s; there are: %(choices)s")
    parser.add_argument("--gpus", type=lambda text: [int(word) for word in text.split(",")], default=[2, 8, 64, 1024], help="2,8,64,1024")
    parser.add_argument("--network", choices=NETWORKS, default="ndr", help="between hosts of eight GPUs: %(choices)s")
    parser.add_argument("--interference", type=float, help="share of an exchange's time that a step beside it loses (as measured)")
    parser.add_argument("--bucket-mib", type=float, help="as `tessera bench` has it")
    parser.add_argument("--gradient-bits", type=int, choices=(16, 32), default=32, help="in which gradients travel: %(choices)s")
    parser.add_argument("--runs", type=pathlib.Path, default=newest("several-gpus"), help="of bench/several_gpus (the newest)")
    parser.add_argument("--exchanges", type=pathlib.Path, default=newest("exchanges"), help="of bench/exchanges (the newest)")
    parser.add_argument("--program", type=pathlib.Path, default=ours.PROGRAM, help="build/release/bin/tessera unless said")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    try:
        told = simulate(options)
    except (RuntimeError, ValueError, OSError) as error:
        print(f"simulate_scaling: {error}", file=sys.stderr)
        return 1
    print(json.dumps(told | {"commit": machine.commit(), "time": report.now()}) if options.json else "\n".join(markdown(told)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
