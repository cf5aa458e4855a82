"""Several GPUs that train together, beside as many that train alone at the same time.

Scaling is the speed of all ranks together over the sum of what each GPU makes alone, while the others work too. A line of
JSON for each case goes to bench/results/DATE-several-gpus.jsonl.
"""

import argparse
import datetime
import json
import os
import pathlib
import shlex
import statistics
import subprocess
import sys
import tempfile

from . import machine, ours

CASES = {
    "resnet50-train-b256-fp16": ("resnet50", 256, "fp16"),
    "resnet101-train-b128-fp16": ("resnet101", 128, "fp16"),
    "alexnet-train-b512-fp16": ("alexnet", 512, "fp16"),
}


def say(text):
    print(text, file=sys.stderr, flush=True)


def run_together(commands, environments, seconds):
    """Starts all at once; the last line of each one's stdout as JSON."""
    processes = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | environment)
        for command, environment in zip(commands, environments)
    ]
    answers, failures = [], []
    for process, command in zip(processes, commands):
        try:
            output, errors = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            output, errors = process.communicate()
            failures.append(f"{command[0]} took more than {seconds} s")
        for line in errors.splitlines()[-20:]:
            say(f"  {line}")
        if process.returncode != 0:
            failures.append(f"`{' '.join(command)}` ended with {process.returncode}")
        else:
            answers.append(json.loads(output.strip().splitlines()[-1]))
    if failures:
        raise RuntimeError("; ".join(failures))
    return answers


def rate(answer, samples):
    return samples / statistics.median(answer["milliseconds"]) * 1e3


class Tessera:
    name = "tessera"

    def __init__(self, options, folder):
        self.options, self.folder = options, folder

    def command(self, case, device, tuning):
        model, batch, precision = case
        words = [str(self.options.program), "bench", model, "--batch", str(batch), "--train", "--device", device, "--precision", precision]
        words += ["--nondeterministic", "--tune", "--tuning-file", f"{self.folder}/{tuning}", "--json"]
        words += ["--iterations", str(self.options.iterations), "--warmup", str(self.options.warmup)]
        return words + self.options.words

    def alone(self, case, gpus):
        return run_together(
            [self.command(case, f"cuda:{gpu}", f"{gpu}") for gpu in range(gpus)],
            [machine.environment(self.options.threads)] * gpus,
            self.options.timeout,
        )

    def together(self, case, gpus):
        command = self.command(case, "cuda", "0")
        launched = [command[0], "launch", "--ranks", str(gpus), "--", *command[1:]]
        return run_together([launched], [machine.environment(self.options.threads)], self.options.timeout)[0]


class Ddp:
    def __init__(self, options, compiled):
        self.options, self.compiled = options, compiled
        self.name = "ddp-compile" if compiled else "ddp"

    def words(self, case):
        model, batch, precision = case
        fields = {"model": model, "batch": batch, "precision": precision, "device": "cuda", "image_size": 0, "batches": 1}
        fields |= {"learning_rate": 1e-4, "train": True, "compiled": self.compiled}
        fields |= {"iterations": self.options.iterations, "warmup": self.options.warmup}
        return ["-m", "tessera_bench.ddp_peer", json.dumps(fields)]

    def alone(self, case, gpus):
        return run_together(
            [[self.options.python, *self.words(case)] for _ in range(gpus)],
            [{"CUDA_VISIBLE_DEVICES": str(gpu)} for gpu in range(gpus)],
            self.options.timeout,
        )

    def together(self, case, gpus):
        launcher = [self.options.python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(gpus)]
        return run_together([launcher + self.words(case)], [{}], self.options.timeout)[0]


def measure(runner, case, gpus):
    _, batch, _ = case
    alone = [rate(answer, batch) for answer in runner.alone(case, gpus)]
    together = rate(runner.together(case, gpus), gpus * batch)
    return {"alone": alone, "together": together, "scaling": together / sum(alone)}


def runners_of(options, folder):
    known = {"ddp": lambda: Ddp(options, False), "ddp-compile": lambda: Ddp(options, True)}
    return [Tessera(options, folder)] + [known[name]() for name in filter(None, options.peers.split(","))]


def run_case(name, options, folder):
    line = {"case": f"cuda-x{options.gpus}/{name}", "gpus": options.gpus, "words": options.words, "sides": {}, "errors": []}
    for runner in runners_of(options, folder):
        try:
            side = line["sides"][runner.name] = measure(runner, CASES[name], options.gpus)
        except (RuntimeError, ValueError, IndexError, OSError) as error:
            line["errors"].append(f"{runner.name}: {error}")
            say(f"{line['case']} {runner.name} failed: {error}")
            continue
        alone = " + ".join(f"{value:.0f}" for value in side["alone"])
        say(f"{line['case']} {runner.name}: {side['together']:.0f} images/s together, {alone} alone, scaling {100 * side['scaling']:.1f} %")
    peers = [side["together"] for peer, side in line["sides"].items() if peer != "tessera"]
    if peers and "tessera" in line["sides"]:
        line["scaling"] = line["sides"]["tessera"]["scaling"]
        line["speed_ratio"] = line["sides"]["tessera"]["together"] / max(peers)
    return line


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(CASES)} (default: all)")
    parser.add_argument("--gpus", type=int, default=2)
    parser.add_argument("--program", type=pathlib.Path, default=ours.PROGRAM)
    parser.add_argument("--python", default=sys.executable, help="that has PyTorch")
    parser.add_argument("--peers", default="ddp,ddp-compile", help="separated by commas; '' for none")
    parser.add_argument("--iterations", type=int, default=60)
    parser.add_argument("--warmup", type=int, default=15)
    parser.add_argument("--threads", type=int, default=max(1, len(machine.CORES) // 2), help="of each process")
    parser.add_argument("--timeout", type=int, default=300, help="seconds for each start")
    parser.add_argument("--options", default="", help="further ones of `tessera bench`, such as '--bucket-mib 10 --collective-blocks 8'")
    parser.add_argument("--results", type=pathlib.Path, default=machine.ROOT / "bench" / "results", help="folder")
    options = parser.parse_args(arguments)
    options.words = shlex.split(options.options)
    unknown = [name for name in options.cases if name not in CASES]
    if unknown:
        parser.error(f"there is no case {unknown[0]} (there are: {', '.join(CASES)})")
    failed = False
    with tempfile.TemporaryDirectory(prefix="tessera-tuning-") as folder:
        for name in options.cases or CASES:
            line = run_case(name, options, folder)
            failed = failed or bool(line["errors"])
            moment = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
            line |= {"time": moment, "commit": machine.commit(), "machine": machine.describe(options.threads), "versions": ours.versions(options)}
            with (options.results / f"{moment[:10]}-several-gpus.jsonl").open("a") as file:
                file.write(json.dumps(line) + "\n")
            print(json.dumps({key: line[key] for key in ("case", "sides", "errors")}), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
