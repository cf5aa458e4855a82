"""bench/generation: how fast `tessera generate` goes on with a text, beside transformers, always by the likeliest token.

The networks have random weights of a seed. Tokens each second are those after the first one, by when they arrive, so that neither
starting nor the prompt counts; of transformers, which stays in its process, they are those of whole calls. The texts are compared:
they may part only where the likeliest token leads by no more than rounding. A line of JSON for each case goes to
bench/results/DATE-generation.jsonl.
"""

import argparse
import itertools
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from . import machine, ours, report
from .several_gpus import say

NETWORKS = ("gpt2-small", "gpt2-medium", "llama-1b")
PEERS = {"transformers": False, "transformers-static": True}
PROMPT = "def read(path):\n"
# Of a standard deviation of the logits, which are sums of thousands of rounded products: of 24 bits, 11 or 8.
LEAD = {"fp32": 1e-2, "fp16": 2e-2, "bf16": 0.1}
BYTES = {"fp32": 4, "fp16": 2, "bf16": 2}  # of a weight


def call(words):
    """Pieces of stdout, each with the seconds after which it came."""
    begin, pieces = time.perf_counter(), []
    with tempfile.TemporaryFile() as errors, subprocess.Popen(list(map(str, words)), stdout=subprocess.PIPE, stderr=errors) as process:
        while piece := process.stdout.read1():
            pieces.append((time.perf_counter() - begin, piece))
        if process.wait() != 0:
            errors.seek(0)
            said = errors.read().decode(errors="replace")[-500:]
            raise RuntimeError(f"`{' '.join(map(str, words[:3]))} ...` ended with {process.returncode}: {said}")
    return pieces


def text_of(pieces):
    return b"".join(piece for _, piece in pieces).decode(errors="replace")


def tessera(options, folder):
    words = [options.program, "generate", folder, "--prompt", PROMPT, "--temperature", 0, "--tokens", options.tokens]
    runs = [call([*words, "--device", options.device, "--precision", options.precision]) for _ in range(1 + options.rounds)][1:]  # the first keeps what it compiled
    rates, starts = [], []
    for pieces in runs:
        ends = itertools.accumulate(len(piece) for _, piece in pieces)
        first = next(seconds for (seconds, _), end in zip(pieces, ends) if end > len(PROMPT))
        starts.append(first)
        rates.append((options.tokens - 1) / (pieces[-1][0] - first))
    return {"tokens_per_second": statistics.median(rates), "start_seconds": statistics.median(starts), "text": text_of(runs[0]).removesuffix("\n")}


def peer(options, **told):
    pieces = call([options.python, "-m", "tessera_bench.transformers_peer", json.dumps(told)])
    return json.loads(text_of(pieces).splitlines()[-1])


def run_case(network, options, folder):
    line = {"case": f"{options.device}/generate-{network}-{options.precision}", "kind": "generation", "tokens": options.tokens, "sides": {}, "errors": []}
    line |= peer(options, do="make", network=network, folder=folder, vocabulary=options.vocabulary)
    own = tessera(options, folder)
    text = own.pop("text")
    # Each token reads all weights once, which bounds how fast it can come.
    own["weight_bytes_per_second"] = own["tokens_per_second"] * line["parameters"] * BYTES[options.precision]
    line["sides"]["tessera"] = own
    say(f"{line['case']} tessera: {own['tokens_per_second']:.0f} tokens/s")
    for name in filter(None, options.peers.split(",")):
        try:
            told = peer(options, do="generate", folder=folder, device=options.device, precision=options.precision, compiled=PEERS[name],
                        prompt=PROMPT, tokens=options.tokens, rounds=options.rounds, other=text)
        except (RuntimeError, ValueError) as error:
            line["errors"].append(f"{name}: {error}")
            say(f"{line['case']} {name} failed: {error}")
            continue
        rate = options.tokens / statistics.median(told["seconds"])
        line["sides"][name] = {"tokens_per_second": rate, "shared_tokens": told["shared"], "lead_where_they_part": told["lead"]}
        say(f"{line['case']} {name}: {rate:.0f} tokens/s, {told['shared']} tokens shared, lead there {told['lead']}")
        if told["shared"] == 0 or (told["lead"] or 0) > LEAD[options.precision]:
            line["errors"].append(f"{name}: the texts part after {told['shared']} tokens")
    rates = [side["tokens_per_second"] for name, side in line["sides"].items() if name != "tessera"]
    if rates:
        line["speed_ratio"] = own["tokens_per_second"] / max(rates)
        say(f"{line['case']} ratio {line['speed_ratio']:.2f}")
    return line


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="bench/generation", description=__doc__.partition(": ")[2],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", metavar="NETWORK", help=f"of {', '.join(NETWORKS)} (default: all)")
    parser.add_argument("--device", default="cuda", help="%(default)s; cpu")
    parser.add_argument("--precision", choices=LEAD, default="fp32", help="%(default)s")
    parser.add_argument("--tokens", type=int, default=400, help="%(default)s")
    parser.add_argument("--vocabulary", type=int, default=8192, help="%(default)s")
    parser.add_argument("--rounds", type=int, default=3, help="%(default)s, after one that does not count")
    parser.add_argument("--peers", default=",".join(PEERS), help="%(default)s")
    parser.add_argument("--program", type=pathlib.Path, default=ours.PROGRAM)
    parser.add_argument("--python", default=sys.executable, help="that has PyTorch and transformers")
    parser.add_argument("--threads", type=int, default=len(machine.CORES), help="of the program, to describe the machine")
    parser.add_argument("--results", type=pathlib.Path, default=machine.ROOT / "bench" / "results", help="folder")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.networks if name not in NETWORKS] + [p for p in filter(None, options.peers.split(",")) if p not in PEERS]
    if unknown:
        parser.error(f"there is no {unknown[0]} (there are: {', '.join((*NETWORKS, *PEERS))})")
    failed = False
    for network in options.networks or NETWORKS:
        moment = report.now()
        with tempfile.TemporaryDirectory(prefix="tessera-generation-") as folder:
            line = run_case(network, options, folder)
        line |= ours.origin(options, moment)
        report.append(line, options.results / f"{moment[:10]}-generation.jsonl")
        failed = failed or bool(line["errors"])
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
