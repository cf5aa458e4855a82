"""bench/at_once: in how much of the time several executables of one network work at once on one device.

`tessera profile --copies` starts each from a thread of its own and has the device's own clock. A line of JSON goes to
bench/results/DATE-at-once.jsonl.
"""

import argparse
import json
import pathlib
import shlex
import sys
import tempfile

from . import ours, report
from .several_gpus import say

COMMAND = (
    "{program} profile {network} --batch {batch} --precision {precision} --device {device} --copies {copies} "
    "--iterations {iterations} --out {trace}"
)


def run(options, trace):
    fields = {name: shlex.quote(str(value)) for name, value in vars(options).items()}
    ours.execute(shlex.split(COMMAND.format(**fields, trace=shlex.quote(str(trace)))), options.threads)
    told = json.loads(trace.read_text(encoding="utf-8"))["otherData"]
    return {
        "kind": "at once",
        "case": f"{options.device}/{options.network}-infer-b{options.batch}-{options.precision}",
        "iterations": options.iterations,
        **{name: told[name] for name in ("copies", "shared_time", "device_model")},
    }


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="bench/at_once", description=__doc__.partition(": ")[2],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    ours.add_options(parser, batch=1)
    parser.add_argument("--precision", default="fp16", help="%(default)s")
    parser.add_argument("--copies", type=int, default=2, help="executables (%(default)s)")
    parser.add_argument("--iterations", type=int, default=100, help="of each (%(default)s)")
    options = parser.parse_args(arguments)
    moment = report.now()
    origin = ours.origin(options, moment)
    with tempfile.TemporaryDirectory(prefix="tessera-at-once-") as folder:
        try:
            line = run(options, pathlib.Path(folder) / "trace.json")
        except (ours.OursError, OSError, ValueError, KeyError) as error:
            say(f"at_once: {error}")
            return 1
    say(f"{line['case']}: {line['copies']} at once, at least two of which worked in {100 * line['shared_time']:.0f} % of the time")
    report.append(line | origin, options.results / f"{moment[:10]}-at-once.jsonl")
    return 0


if __name__ == "__main__":
    sys.exit(main())
