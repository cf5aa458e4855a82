"""bench/exchanges: what an all-reduce takes by its size, in Tessera and in PyTorch, as nccl-tests computes it.

Each runs a chain of all-reduces in fp32, of which each takes the result of the one before: Tessera on the lane of its queue, in
one recording, PyTorch in one too. Bus bandwidth is bytes / seconds x 2 (n - 1) / n. A line of JSON goes to
bench/results/DATE-exchanges.jsonl, which bench/simulate_scaling reads.
"""

import argparse
import json
import pathlib
import statistics
import sys
import tempfile

from . import exchange_model, machine, ours, report, several_gpus

MEBIBYTES = (0.0625, 1, 2, 4, 8, 16, 25, 32, 50, 64, 100, 128)


def chain(elements, length, ranks):
    """A graph that copies one number to the host, as little as possible beside what it exchanges."""
    lines = [f"graph exchanges(input %x0: fp32[{elements}]) {{"]
    lines += [f"  %x{i + 1} = all_reduce(%x{i}) {{ranks = {ranks}}}" for i in range(length)]
    lines += [f"  %one = slice(%x{length}) {{starts = [0], limits = [1], strides = [1]}}", "  output one = %one", "}"]
    return "\n".join(lines) + "\n"


def elements_of(mebibytes):
    return max(int(mebibytes * 2**20) // 4, 1)


def tessera(options):
    """Milliseconds of an all-reduce of each size."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "exchanges.graph")
        for mebibytes in options.mebibytes:
            path.write_text(chain(elements_of(mebibytes), options.chain, options.gpus))
            words = [str(options.program), "launch", "--ranks", str(options.gpus), "--", "bench", str(path), "--device", options.device]
            words += ["--json", "--iterations", str(options.iterations), "--warmup", str(options.warmup)]
            (answer,) = several_gpus.run_together([words], [machine.environment(options.threads)], options.timeout)
            found.append(statistics.median(answer["milliseconds"]) / options.chain)
    return found


def torch(options):
    told = {"elements": [elements_of(mebibytes) for mebibytes in options.mebibytes], "device": options.device}
    told |= {"chain": options.chain, "iterations": options.iterations, "warmup": options.warmup}
    words = [options.python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(options.gpus)]
    words += ["-m", "tessera_bench.torch_exchanges", json.dumps(told)]
    (answer,) = several_gpus.run_together([words], [machine.environment(options.threads)], options.timeout)
    return [milliseconds / options.chain for milliseconds in answer["milliseconds"]]


SIDES = {"tessera": tessera, "torch": torch}


def measured(options, milliseconds):
    sizes = [4 * elements_of(mebibytes) for mebibytes in options.mebibytes]
    share = exchange_model.bus_share(options.gpus)
    return [{"bytes": size, "milliseconds": time, "bus_gigabytes_per_second": size / time * 1e-6 * share}
            for size, time in zip(sizes, milliseconds)]


def parse(arguments):
    parser = argparse.ArgumentParser(prog="bench/exchanges", description=__doc__.partition(": ")[2],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpus", type=int, default=2, help="%(default)s")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="%(default)s; cpu: so many processes")
    parser.add_argument("--mebibytes", type=lambda text: [float(word) for word in text.split(",")], default=MEBIBYTES,
                        help=",".join(map(str, MEBIBYTES)))
    parser.add_argument("--chain", type=int, default=20, help="all-reduces of a run (%(default)s)")
    parser.add_argument("--iterations", type=int, default=20, help="runs (%(default)s)")
    parser.add_argument("--warmup", type=int, default=5, help="runs before (%(default)s)")
    parser.add_argument("--peers", default="torch", help="'' for none")
    parser.add_argument("--program", type=pathlib.Path, default=ours.PROGRAM, help="build/release/bin/tessera unless said")
    parser.add_argument("--python", default=sys.executable, help="that has PyTorch")
    parser.add_argument("--threads", type=int, default=max(1, len(machine.CORES) // 2), help="of each process")
    parser.add_argument("--timeout", type=int, default=300, help="seconds for each start")
    parser.add_argument("--results", type=pathlib.Path, default=machine.ROOT / "bench" / "results", help="folder")
    return parser.parse_args(arguments)


def main(arguments=None):
    options = parse(arguments)
    moment = report.now()
    place = "cuda-x" if options.device == "cuda" else "cpu-x"
    line = {"case": f"{place}{options.gpus}/all-reduce-fp32", "gpus": options.gpus, "chain": options.chain, "sides": {}, "errors": []}
    for name in ["tessera", *filter(None, options.peers.split(","))]:
        try:
            line["sides"][name] = measured(options, SIDES[name](options))
        except (RuntimeError, ValueError, IndexError, KeyError, OSError) as error:
            line["errors"].append(f"{name}: {error}")
            several_gpus.say(f"{line['case']} {name} failed: {error}")
    print("MiB      " + "".join(f"{name + ', ms':>14}{'bus, GB/s':>12}" for name in line["sides"]))
    for i, mebibytes in enumerate(options.mebibytes):
        rows = [side[i] for side in line["sides"].values()]
        print(f"{mebibytes:<9g}" + "".join(f"{row['milliseconds']:>14.4f}{row['bus_gigabytes_per_second']:>12.1f}" for row in rows))
    line |= ours.origin(options, moment)
    report.append(line, options.results / f"{moment[:10]}-exchanges.jsonl")
    return int(bool(line["errors"]))


if __name__ == "__main__":
    sys.exit(main())
