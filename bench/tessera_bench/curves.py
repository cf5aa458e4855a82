"""bench/curves: the losses of many training steps, ours and PyTorch's, from the same weights and the same data."""

import argparse
import json
import math
import os
import pathlib
import shlex
import sys

from . import cases, machine, ours, peer, picture, report, run

EPILOG = """
Prints one line per precision: its name, the largest relative difference of any step and the last losses. Weights, images and labels come
from the formula of tests/golden/README.md; the optimizer is SGD with momentum 0.9 and weight decay 5e-5; fp16 and bf16 are mixed
precision on both sides, fp16 with a loss scale that starts at 65536. All losses, with versions, commit and machine, go as one JSON line
to bench/results/. The exit status is 1 when a run failed, a loss is not finite, or fp32 misses its goal.
"""
GOAL = 1e-3  # Relative, at every step of fp32.
COMMAND = (
    "{program} bench {model} --batch {batch} {size} --train --check --steps {steps} --batches {batches} --learning-rate {rate}"
    " --device {device} --precision {precision} --json"
)


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="bench/curves", description="Trains a network in Tessera and in PyTorch and compares the loss of every step.", epilog=EPILOG
    )
    parser.add_argument("--model", default="resnet18", help="network, without dropout (%(default)s)")
    parser.add_argument("--image-size", type=int, default=None, help="pixels (64; mlp: its own)")
    parser.add_argument("--batch", type=int, default=64, help="images of a step (%(default)s)")
    parser.add_argument("--batches", type=int, default=8, help="batches that take turns (%(default)s)")
    parser.add_argument("--steps", type=int, default=100, help="%(default)s")
    parser.add_argument("--learning-rate", type=float, default=0.003, help="%(default)s: with more, rounding grows over 100 steps")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"), help="of both (%(default)s)")
    parser.add_argument("--precisions", default="fp32,tf32,fp16,bf16", help="%(default)s")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="threads of each (%(default)s)")
    parser.add_argument("--program", type=pathlib.Path, default=ours.PROGRAM, help="our program (build/release/bin/tessera)")
    parser.add_argument("--python", type=pathlib.Path, default=peer.PYTHON, help="PyTorch's Python (bench/.venv, made on demand)")
    parser.add_argument("--results", type=pathlib.Path, help="file to append to (bench/results/DATE-curves.jsonl)")
    parser.add_argument("--picture", type=pathlib.Path, help="SVG file to draw the curves in")
    options = parser.parse_args(arguments)
    options.precisions = options.precisions.split(",")
    unknown = [name for name in options.precisions if name not in report.TOLERANCES]
    if unknown:
        parser.error(f"unknown precision '{unknown[0]}'; precisions: {', '.join(report.TOLERANCES)}")
    if min(options.batch, options.batches, options.steps, options.threads) < 1:
        parser.error("--batch, --batches, --steps and --threads are at least 1")
    if options.model == "mlp" and options.image_size:
        parser.error("mlp has images of one size only")
    if options.picture and not options.picture.parent.is_dir():
        parser.error(f"--picture: there is no folder {options.picture.parent}")
    if options.image_size is None:
        options.image_size = 0 if options.model == "mlp" else 64
    return options


def make_case(options, precision):
    return cases.Case(
        name=f"{options.device}/{options.model}-curves-b{options.batch}-{precision}",
        kind="curves",
        device=options.device,
        model=options.model,
        batch=options.batch,
        train=True,
        precision=precision,
        image_size=options.image_size,
        batches=min(options.batches, options.steps),
        learning_rate=options.learning_rate,
    )


def answer(command, options, environment=None):
    text, _, _ = ours.execute(command, options.threads, environment=environment)
    try:
        found = json.loads(text)
        losses = [float(value) for value in found["losses"]]
    except (ValueError, KeyError, TypeError) as error:
        raise ours.OursError(f"`{shlex.join(command)}` did not print the agreed JSON: {error}") from error
    if len(losses) != options.steps:
        raise ours.OursError(f"`{shlex.join(command)}` printed {len(losses)} losses, not {options.steps}")
    wild = next((step for step, loss in enumerate(losses, 1) if not math.isfinite(loss)), None)
    if wild:
        raise ours.OursError(f"the loss of step {wild} is not finite")
    return found


def our_losses(case, options):
    fields = {
        "program": shlex.quote(str(options.program)),
        "size": f"--image-size {case.image_size}" if case.image_size else "",
        "steps": options.steps,
        "rate": case.learning_rate,
    }
    return answer(shlex.split(COMMAND.format(**vars(case), **fields)), options)


def torch_losses(case, options):
    words = [json.dumps(vars(case)), str(options.threads), str(options.steps)]
    command = [str(options.python), "-m", "tessera_bench.torch_curves", *words]
    return answer(command, options, {"PYTHONPATH": str(machine.ROOT / "bench")})


def difference(mine, peers):
    """The largest relative difference of any step."""
    return max(abs(a - b) / max(abs(b), 1e-30) for a, b in zip(mine, peers))


def compare(case, options):
    """{"tessera": [...], "torch": [...], "difference": ...} or {"error": text}, and PyTorch's versions."""
    mine, error = run.attempt(lambda: our_losses(case, options), ours.OursError, OSError)
    if error:
        return {"error": f"tessera: {error}"}, None
    theirs, error = run.attempt(lambda: torch_losses(case, options), ours.OursError, OSError)
    if error:
        return {"error": f"torch: {error}"}, None
    losses = {"tessera": mine["losses"], "torch": theirs["losses"]}
    return losses | {"difference": difference(losses["tessera"], losses["torch"])}, theirs["versions"]


def line(precision, curve):
    if "error" in curve:
        return f"{precision} error: {curve['error']}"
    text = f"{precision} largest relative difference {curve['difference']:.1e}"
    if precision == "fp32":
        text += f", goal {GOAL:.0e} {'met' if curve['difference'] <= GOAL else 'MISSED'}"
    return text + f"; last losses {curve['tessera'][-1]:.4f} and {curve['torch'][-1]:.4f}"


def failed(precision, curve):
    return "error" in curve or (precision == "fp32" and curve["difference"] > GOAL)


def main(arguments=None):
    options = parse(arguments)
    peer.ensure_environment(options.python)
    moment, curves, versions = report.now(), {}, {"tessera": ours.versions(options)}
    for precision in options.precisions:
        curves[precision], found = compare(make_case(options, precision), options)
        if found:
            versions["torch-eager"] = found
        print(line(precision, curves[precision]), flush=True)
    settings = ("model", "image_size", "batch", "batches", "steps", "learning_rate")
    record = {
        "case": f"{options.device}/{options.model}-curves-b{options.batch}",
        "kind": "curves",
        "device": options.device,
        "time": moment,
        "goal": {"fp32": GOAL},
        "versions": versions,
        "commit": machine.commit(),
        "machine": machine.describe(options.threads),
        "settings": {name: getattr(options, name) for name in settings},
        "curves": curves,
    }
    report.append(record, options.results or machine.ROOT / "bench" / "results" / f"{moment[:10]}-curves.jsonl")
    if options.picture:
        options.picture.write_text(picture.draw_record(record))
    return int(any(failed(precision, curve) for precision, curve in curves.items()))


if __name__ == "__main__":
    sys.exit(main())
