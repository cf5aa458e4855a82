"""bench/first_start: how long the first start of a training on a GPU takes, with kernels tuned and none of our files kept.

Three processes, one after another: the first of a machine, for which the disk gives NVIDIA's libraries, if nothing has read them
since it was started; another that finds none of our files; and one that finds those of the second. What counts is the time from the
device to the first step ("ready" of tessera bench): compilation, tuning, starting values and data. A line of JSON for each goes to
bench/results/DATE-first-start.jsonl.
"""

import argparse
import json
import pathlib
import shlex
import statistics
import subprocess
import sys
import tempfile

from . import cases, ours, report, token_shards
from .several_gpus import say

COMMAND = (
    "{program} bench {network} --batch {batch} --train --precision {precision} --nondeterministic --device {device} "
    "--tune --tuning-file {folder}/tuning --json --iterations 30 --warmup 10"
)
STARTS = (("none, the first start of the machine", "first"), ("none", "second"), ("kept", "second"))


def subject(options):
    """What the command says of it, and the case's name: of a network by name, or of a recipe that a case of bench/compare trains."""
    if "/" not in options.network:
        name = f"{options.device}/{options.network}-train-b{options.batch}-fp16"
        return {"network": options.network, "batch": options.batch, "precision": "fp16"}, name
    try:
        case = cases.find([options.network])[0]
    except KeyError:
        raise ValueError(f"there is no case {options.network}: bench/compare --list shows them") from None
    if not case.recipe:
        raise ValueError(f"{case.name} trains no recipe: give its network by name")
    token_shards.ensure(case, options.program)
    return {"network": ours.recipe_words(case), "batch": case.batch, "precision": case.precision}, case.name


def run(options, fields, name, folder, caches):
    command = shlex.split(
        COMMAND.format(**fields, program=shlex.quote(str(options.program)), device=options.device, folder=shlex.quote(str(folder)))
    )
    text, peak, seconds = ours.execute(command, options.threads, environment={"TESSERA_CUDA_CACHE": str(folder / "cache")})
    told = json.loads(text)
    line = {
        "kind": "alone",
        "case": name,
        "precision": fields["precision"],
        "deterministic": False,
        "options": f"--tune --tuning-file ({'known' if caches == 'kept' else 'new'})",
        "caches": caches,
        "process_seconds": seconds,
        "process_peak_bytes": peak,
    }
    return told | line | {"milliseconds": statistics.median(told["milliseconds"])}


def measure(options):
    """A line for each start, as it ends."""
    fields, name = subject(options)
    with tempfile.TemporaryDirectory(prefix="tessera-first-start-") as root:
        for caches, place in STARTS:
            folder = pathlib.Path(root) / place
            folder.mkdir(exist_ok=True)
            yield run(options, fields, name, folder, caches)


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="bench/first_start", description=__doc__.partition(": ")[2],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    ours.add_options(parser, batch=256)
    options = parser.parse_args(arguments)
    moment = report.now()
    origin = ours.origin(options, moment)
    try:
        for line in measure(options):
            say(f"{line['case']}, our files {line['caches']}: ready in {line['ready_seconds']:.1f} s, of which compiled in "
                f"{line['compile_seconds']:.1f} s, {line['milliseconds']:.3f} ms")
            report.append(line | origin, options.results / f"{moment[:10]}-first-start.jsonl")
    except (ours.OursError, OSError, ValueError, KeyError, subprocess.CalledProcessError) as error:
        say(f"first_start: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
