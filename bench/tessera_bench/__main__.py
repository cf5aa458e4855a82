"""bench/compare: the command line."""

import argparse
import pathlib
import sys

from . import cases, machine, onnx_files, ours, peer, photographs, report, run, token_shards

EPILOG = """
Prints one line per case on stdout: CASE ratio R ours X peer Y NAME. The ratio is speed, ours to the best peer: above 1 we are faster.
X and Y are samples/s; seconds, milliseconds or bytes where --list says so. Details go to stderr; everything, with every sample, as
one JSON line per case to bench/results/. The exit status is 1 when ours or a peer failed or their outputs differ.
"""


PEERS = cases.INFERENCE + (cases.RESIDENT,) + cases.GPU_PIPELINES
BUSY = 0.1  # Of all cores, before a case starts.


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="bench/compare", description="Runs Tessera and its peers in turn and compares their speed.", epilog=EPILOG
    )
    parser.add_argument("cases", nargs="*", metavar="CASE", help="a name or a pattern such as 'cpu/resnet18-*'; --list shows them")
    parser.add_argument("--list", action="store_true", help="list the cases and end")
    parser.add_argument("--threads", type=int, default=0, help="threads of each, and cores for them (2; on a GPU all there are)")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each (%(default)s)")
    parser.add_argument("--turn-seconds", type=float, default=5.0, help="how long a turn takes, about (%(default)s)")
    parser.add_argument("--iterations", type=int, default=0, help="iterations in a turn, instead of --turn-seconds")
    parser.add_argument("--warmup", type=int, default=2, help="iterations before a measurement (%(default)s)")
    parser.add_argument("--settle-seconds", type=float, default=0.3, help="pause before each turn (%(default)s)")
    parser.add_argument("--peers", default=",".join(PEERS), help="which peers (%(default)s)")
    parser.add_argument("--no-ours", dest="ours", action="store_false", help="run the peers only")
    parser.add_argument("--program", type=pathlib.Path, default=ours.PROGRAM, help="our program (build/release/bin/tessera)")
    parser.add_argument("--before", type=pathlib.Path, help="another build of our program, from before a change: one more peer")
    parser.add_argument("--before-commit", help="what that build was made of, for the record")
    parser.add_argument("--python", type=pathlib.Path, default=peer.PYTHON, help="the peers' Python (bench/.venv, made on demand)")
    parser.add_argument("--bench-command", default=ours.BENCH, help="how to start it (%(default)s)")
    parser.add_argument("--check-command", default=ours.CHECK, help="how to ask for its outputs (%(default)s)")
    parser.add_argument("--results", type=pathlib.Path, help="file to append to (bench/results/DATE.jsonl)")
    parser.add_argument("--photographs", type=pathlib.Path, default=photographs.FOLDER, help="for the cases data/ (made on demand)")
    options = parser.parse_args(arguments)
    options.peers = [name for name in options.peers.split(",") if name]
    unknown = [name for name in options.peers if name not in PEERS]
    if unknown:
        parser.error(f"unknown peer '{unknown[0]}'; peers: {', '.join(PEERS)}")
    if options.threads < 0 or options.rounds < 1 or options.warmup < 0 or options.iterations < 0:
        parser.error("--rounds is at least 1, --threads, --warmup and --iterations are not negative")
    if options.before and not options.before_commit:
        parser.error("--before needs --before-commit, the commit that it was built from")
    if not options.list and not options.cases:
        parser.error("name a case, or --list")
    return parser, options


def main(arguments=None):
    parser, options = parse(arguments)
    if options.list:
        width = max(len(case.name) for case in cases.CASES)
        for case in cases.CASES:
            peers = f" ({', '.join(case.peers)})" if case.peers else ""
            print(f"{case.name:{width}}  {case.summary}{peers}")
        return 0
    try:
        chosen = cases.find(options.cases)
    except KeyError as error:
        parser.error(f"no case is called '{error.args[0]}'; bench/compare --list shows them")
    if any(name in options.peers and name != cases.RESIDENT for case in chosen for name in case.peers):
        peer.ensure_environment(options.python)
    if any(case.photographs or case.files for case in chosen):
        photographs.ensure(options.photographs, options.python)
    for case in chosen:
        if case.onnx or "onnxruntime" in set(case.peers) & set(options.peers):
            onnx_files.ensure(case, options.python)
        if case.recipe and options.ours:
            token_shards.ensure(case, options.program)
    status, wanted_threads = 0, options.threads
    for case in chosen:
        run.say(case.name)
        options.threads = machine.threads_of(case, wanted_threads)
        machine.limit_cores(options.threads)
        moment, busy = report.now(), machine.busy_fraction()
        if busy > BUSY:
            run.say(f"  warning: others use {100 * busy:.0f} % of this machine; threads that wait for each other suffer most")
        summary = report.summarise(case, run.run(case, options), options, moment, busy)
        report.append(summary, options.results or machine.ROOT / "bench" / "results" / f"{moment[:10]}.jsonl")
        for text in report.details(summary):
            run.say(text)
        print(report.line(summary), flush=True)
        status |= report.failed(summary)
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
