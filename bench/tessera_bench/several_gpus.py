"""Several GPUs that train together, beside as many that train alone at the same time.

Scaling is the speed of all ranks together over the sum of what each GPU makes alone, while the others work too; the ratio is
ours together over the faster peer's. Every rank has the same batch by the formula, so that the losses of the first two steps are
those of one GPU, and of the peers: that is checked where no dropout is random. A line of JSON for each case goes to
bench/results/DATE-several-gpus.jsonl.
"""

import argparse
import fnmatch
import json
import os
import pathlib
import re
import shlex
import statistics
import subprocess
import sys
import tempfile

from . import machine, ours, report

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

    def command(self, case, device):
        model, batch, precision = case
        words = [str(self.options.program), "bench", model, "--batch", str(batch), "--train", "--device", device, "--precision", precision]
        return words + ["--nondeterministic", "--json", *self.options.words]

    def timed(self, tuning):
        words = ["--tune", "--tuning-file", f"{self.folder}/{tuning}"]
        return words + ["--iterations", str(self.options.iterations), "--warmup", str(self.options.warmup)]

    def run(self, *commands):
        return run_together(commands, [machine.environment(self.options.threads)] * len(commands), self.options.timeout)

    def launched(self, case, gpus, words):
        command = self.command(case, "cuda")
        (answer,) = self.run([command[0], "launch", "--ranks", str(gpus), "--", *command[1:], *words])
        return answer

    def alone(self, case, gpus):
        return self.run(*(self.command(case, f"cuda:{gpu}") + self.timed(gpu) for gpu in range(gpus)))

    def together(self, case, gpus):
        return self.launched(case, gpus, self.timed(0))

    def losses(self, case, gpus):
        """Of a start of their own: times are of images and weights of other numbers."""
        (alone,) = self.run([*self.command(case, "cuda:0"), "--check"])
        return {"alone": alone["losses"], "together": self.launched(case, gpus, ["--check"])["losses"]}


class Ddp:
    def __init__(self, options, compiled):
        self.options, self.compiled, self.told = options, compiled, {}
        self.name = "ddp-compile" if compiled else "ddp"

    def words(self, case):
        model, batch, precision = case
        fields = {"model": model, "batch": batch, "precision": precision, "device": "cuda", "image_size": 0, "batches": 1}
        fields |= {"learning_rate": 1e-4, "train": True, "compiled": self.compiled}
        fields |= {"iterations": self.options.iterations, "warmup": self.options.warmup}
        return ["-m", "tessera_bench.ddp_peer", json.dumps(fields)]

    def alone(self, case, gpus):
        answers = run_together(
            [[self.options.python, *self.words(case)] for _ in range(gpus)],
            [{"CUDA_VISIBLE_DEVICES": str(gpu)} for gpu in range(gpus)],
            self.options.timeout,
        )
        self.told["alone"] = answers[0]["losses"]
        return answers

    def together(self, case, gpus):
        launcher = [self.options.python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(gpus)]
        (answer,) = run_together([launcher + self.words(case)], [{}], self.options.timeout)
        self.told["together"] = answer["losses"]
        return answer

    def losses(self, case, gpus):
        """Of the first steps of what was timed; none where dropout is random."""
        return self.told if all(self.told.values()) else {}


def measure(runner, case, gpus):
    _, batch, _ = case
    alone = [rate(answer, batch) for answer in runner.alone(case, gpus)]
    together = rate(runner.together(case, gpus), gpus * batch)
    return {"alone": alone, "together": together, "scaling": together / sum(alone)}


def check(runners, case, gpus):
    """The losses of each, alone and together, beside those of the first peer alone; nothing where a peer has none to compare."""
    peers = {runner.name: runner.losses(case, gpus) for runner in runners[1:]}
    if not peers or not all(peers.values()):
        return None
    tolerance = report.TOLERANCES[case[2]]
    reference = next(iter(peers.values()))["alone"]
    found = {f"{name} {way}": report.difference(losses, reference)
             for name, ways in {runners[0].name: runners[0].losses(case, gpus), **peers}.items() for way, losses in ways.items()}
    return {"tolerance": tolerance, "ok": all(value is not None and value <= tolerance for value in found.values()), "differences": found}


def runners_of(options, folder):
    known = {"ddp": lambda: Ddp(options, False), "ddp-compile": lambda: Ddp(options, True)}
    return [Tessera(options, folder)] + [known[name]() for name in filter(None, options.peers.split(","))]


def run_case(name, gpus, options, folder):
    line = {"case": f"cuda-x{gpus}/{name}", "gpus": gpus, "words": options.words, "sides": {}, "errors": []}
    runners, case = runners_of(options, folder), CASES[name]
    for runner in runners:
        try:
            side = line["sides"][runner.name] = measure(runner, case, gpus)
        except (RuntimeError, ValueError, KeyError, IndexError, OSError) as error:
            line["errors"].append(f"{runner.name}: {error}")
            say(f"{line['case']} {runner.name} failed: {error}")
            continue
        alone = " + ".join(f"{value:.0f}" for value in side["alone"])
        say(f"{line['case']} {runner.name}: {side['together']:.0f} images/s together, {alone} alone, scaling {100 * side['scaling']:.1f} %")
    peers = {peer: side["together"] for peer, side in line["sides"].items() if peer != "tessera"}
    if not line["errors"] and peers:
        line["scaling"] = line["sides"]["tessera"]["scaling"]
        line["speed_ratio"] = line["sides"]["tessera"]["together"] / max(peers.values())
        say(f"{line['case']} scaling {100 * line['scaling']:.1f} %, ratio {line['speed_ratio']:.3f} to {max(peers, key=peers.get)}")
        try:
            line["check"] = check(runners, case, gpus)
        except (RuntimeError, ValueError, KeyError, IndexError, OSError) as error:
            line["errors"].append(f"check: {error}")
    if line.get("check"):
        verdict = "equal" if line["check"]["ok"] else "DIFFERENT"
        say(f"{line['case']} losses {verdict}: {line['check']['differences']}, relative to the first peer's alone")
        if not line["check"]["ok"]:
            line["errors"].append("check: the losses differ")
    return line


def find(patterns, gpus):
    """(name, GPUs) of each: NAME, or cuda-xN/NAME for N of them; shell patterns, too. Raises KeyError with what matches nothing."""
    chosen = []
    for pattern in patterns:
        told = re.fullmatch(r"(?:cuda-x(\d+)/)?([^/]+)", pattern)
        names = fnmatch.filter(CASES, told.group(2)) if told else []
        if not names:
            raise KeyError(pattern)
        chosen += [(name, int(told.group(1) or gpus)) for name in names]
    return chosen


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(CASES)} (default: all), or cuda-xN/CASE")
    parser.add_argument("--gpus", type=int, default=2, help="where the case does not say it (%(default)s)")
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
    try:
        chosen = find(options.cases or ["*"], options.gpus)
    except KeyError as error:
        parser.error(f"there is no case {error.args[0]} (there are: {', '.join(CASES)})")
    failed = False
    with tempfile.TemporaryDirectory(prefix="tessera-tuning-") as folder:
        for name, gpus in chosen:
            line = run_case(name, gpus, options, folder)
            failed = failed or bool(line["errors"])
            print(json.dumps(line), flush=True)
            line |= ours.origin(options, report.now())
            report.append(line, options.results / f"{line['time'][:10]}-several-gpus.jsonl")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
