"""bench/language_curves: the losses of a hundred steps of small networks of language in each precision, ours and PyTorch's."""

import argparse
import json
import os
import pathlib
import sys
import tempfile

from . import curves, machine, ours, picture, report, run

EPILOG = """
The trainings are those of tests/tasks/language_golden_test.cpp, whose weights and batches come from the formula of
tests/golden/README.md; PyTorch's losses, in float64 (fp32 is held against those) and by autocast on a CPU, lie in tests/golden. Prints a
line for each network and precision, and adds a JSON line for each network to bench/results/. The exit status is 1 when the tests failed or
fp32 misses its goal.
"""
TESTS = ours.PROGRAM.parent / "tasks_tests"
ORDER = ("fp32", "bf16", "fp16")


def parse(arguments):
    parser = argparse.ArgumentParser(prog="bench/language_curves", description=__doc__.partition(": ")[2], epilog=EPILOG)
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"), help="whose losses (%(default)s)")
    parser.add_argument("--kept", type=pathlib.Path, help="folder that a run of the tests with TESSERA_CURVES has filled; else they run")
    parser.add_argument("--tests", type=pathlib.Path, default=TESTS, help="their program (build/release/bin/tasks_tests)")
    parser.add_argument("--program", type=pathlib.Path, default=ours.PROGRAM, help="whose versions are told (build/release/bin/tessera)")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="of the CPU (%(default)s)")
    parser.add_argument("--results", type=pathlib.Path, help="file to append to (bench/results/DATE-curves.jsonl)")
    parser.add_argument("--picture", type=pathlib.Path, help="SVG file to draw the curves in")
    options = parser.parse_args(arguments)
    if options.kept and not options.kept.is_dir():
        parser.error(f"--kept: there is no folder {options.kept}")
    if options.picture and not options.picture.parent.is_dir():
        parser.error(f"--picture: there is no folder {options.picture.parent}")
    return options


def run_tests(options, folder):
    """What they failed by, or None; what they kept lies in the folder."""
    command = [str(options.tests), "--gtest_filter=*LanguageCurves*", "--gtest_brief=1"]
    run_them = lambda: ours.execute(command, options.threads, environment={"TESSERA_CURVES": str(folder)})
    return run.attempt(run_them, ours.OursError, OSError)[1]


def read(folder, device):
    """{network: {precision: {"tessera": [...], "torch": [...], "difference": ...}}}."""
    found = {}
    for path in sorted(folder.glob("*.json")):
        kept = json.loads(path.read_text())
        if kept["device"] != device:
            continue
        mine, theirs = kept["tessera"], kept["torch"]
        curve = {"tessera": mine, "torch": theirs, "difference": curves.difference(mine, theirs)}
        found.setdefault(kept["network"], {})[kept["precision"]] = curve
    return {network: {name: of[name] for name in ORDER if name in of} for network, of in found.items()}


def record(network, of, options, moment):
    origin = ours.origin(options, moment)
    return origin | {
        "case": f"{options.device}/{network}-curves",
        "kind": "curves",
        "device": options.device,
        "goal": {"fp32": curves.GOAL},
        "versions": {"tessera": origin["versions"]},
        "settings": {"model": network, "steps": len(next(iter(of.values()))["tessera"])},
        "curves": of,
    }


def main(arguments=None):
    options = parse(arguments)
    failure = None
    with tempfile.TemporaryDirectory(prefix="tessera-curves-") as folder:
        if not options.kept:
            failure = run_tests(options, folder)
        found = read(options.kept or pathlib.Path(folder), options.device)
    if failure:
        print(f"bench/language_curves: {failure}", file=sys.stderr)
    if not found:
        print(f"bench/language_curves: the tests kept nothing of {options.device}", file=sys.stderr)
        return 1
    moment = report.now()
    for network, of in found.items():
        for precision, curve in of.items():
            print(f"{network} {curves.line(precision, curve)}")
        results = options.results or machine.ROOT / "bench" / "results" / f"{moment[:10]}-curves.jsonl"
        report.append(record(network, of, options, moment), results)
    if options.picture:
        rows = [{f"{network}, {precision}": curve for precision, curve in of.items()} for network, of in found.items()]
        options.picture.write_text(picture.draw(f"Training losses of small networks of language on {options.device}", rows))
    return int(bool(failure) or any(curves.failed(precision, curve) for of in found.values() for precision, curve in of.items()))


if __name__ == "__main__":
    sys.exit(main())
