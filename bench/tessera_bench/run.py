"""Runs a case: ours and each peer in turn, round after round, so that a busy moment hits all of them."""

import argparse
import dataclasses
import statistics
import sys
import time

from . import cases, ours, peer

FEWEST, MOST = 2, 1000  # Iterations in a turn.
BEFORE = "before"  # The peer that is another build of ours.


def say(text):
    print(text, file=sys.stderr, flush=True)


def attempt(action, *errors):
    """(result, None) or (None, message)."""
    try:
        return action(), None
    except errors as error:
        return None, str(error)


def errors_of(name):
    return (ours.OursError, OSError) if name in ("tessera", BEFORE, cases.RESIDENT) else (peer.PeerError, OSError)


def start(name, case, options):
    if name == "tessera":
        return ours.Ours(case, options)
    if name == cases.RESIDENT:
        return ours.Ours(dataclasses.replace(case, loader=0), options)
    if name == BEFORE:
        return ours.Ours(case, argparse.Namespace(**{**vars(options), "program": options.before}))
    return peer.Peer(name, case, options.threads, options.warmup, options.python)


def turn_length(runner, options):
    if options.iterations:
        return options.iterations
    wanted = options.turn_seconds / max(runner.ready["iteration_seconds"], 1e-6)
    return int(min(max(wanted, FEWEST), MOST))


def throughput(case, options):
    """{runner: {"milliseconds": [[per turn]], ...} or {"error": text}}."""
    names = (["tessera"] if options.ours else []) + ([BEFORE] if options.before else []) + [name for name in case.peers if name in options.peers]
    results, runners = {}, {}
    try:
        for name in names:
            say(f"  {name}: starting")
            begin = time.monotonic()
            runner, error = attempt(lambda: start(name, case, options), *errors_of(name))
            if error:
                results[name] = {"error": error}
                say(f"  {name}: {error}")
                continue
            say(f"  {name}: ready after {time.monotonic() - begin:.0f} s")
            runners[name] = runner
            results[name] = {"milliseconds": [], **runner.ready}
        for turn in range(options.rounds):
            order = list(runners)
            shift = turn % max(len(order), 1)
            for name in order[shift:] + order[:shift]:
                time.sleep(options.settle_seconds)  # The last one's threads stop spinning.
                runner = runners[name]
                sample, error = attempt(lambda: runner.run(turn_length(runner, options)), *errors_of(name))
                if error:
                    results[name] = {"error": error}
                    runners.pop(name).close()
                    say(f"  {name}: {error}")
                    continue
                results[name]["milliseconds"].append(sample)
        for name, runner in runners.items():
            memory, error = attempt(runner.memory, *errors_of(name))
            samples, lacking = attempt(runner.samples, *errors_of(name))
            results[name] |= {"error": lacking} if lacking else {"samples": samples}
            results[name]["memory"] = memory if error is None else {"error": error}
            results[name]["compile_seconds"] = runner.ready.get("compile_seconds", getattr(runner, "last", {}).get("compile_seconds"))
    finally:
        for runner in runners.values():
            runner.close()
    for result in results.values():
        if "error" not in result:
            result["value"] = result["samples"] * 1e3 / statistics.median(ms for turn in result["milliseconds"] for ms in turn)
    return results


def compile_time(case, options):
    results = {}
    if options.ours:

        def measure():
            runner = ours.Ours(case, options)
            samples = []
            for _ in range(options.rounds):
                runner.run(1)
                samples.append(float(runner.last["compile_seconds"]))
            return {"samples": samples, "value": statistics.median(samples)}

        result, error = attempt(measure, ours.OursError, OSError, KeyError, TypeError)
        results["tessera"] = result or {"error": error}
    for name in case.peers:
        if name not in options.peers:
            continue
        say(f"  {name}: starting")
        runner, error = attempt(lambda: start(name, case, options), *errors_of(name))
        if error:
            results[name] = {"error": error}
            continue
        results[name] = {"value": runner.ready["compile_seconds"], "versions": runner.ready["versions"]}
        runner.close()
    return results


def startup(case, options):
    samples, error = attempt(lambda: ours.startup_milliseconds(options), ours.OursError, OSError)
    found = {"error": error} if error else {"samples": samples, "value": statistics.median(samples)}
    return {"tessera": found, "allowed": {"value": case.allowed}}


def size(case, options):
    parts, error = attempt(lambda: ours.program_size(options), OSError, ours.subprocess.CalledProcessError)
    found = {"error": error} if error else {"parts": parts, "value": sum(part["bytes"] for part in parts.values())}
    return {"tessera": found, "allowed": {"value": case.allowed}}


KINDS = {"throughput": throughput, "compile": compile_time, "startup": startup, "size": size}


def run(case, options):
    return KINDS[case.kind](case, options)
