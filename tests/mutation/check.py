#!/usr/bin/env python3
"""Runs a program of tests with wrong results (TESSERA_TEST_MUTATION) and lists what no test noticed.

usage: check.py PROGRAM --device cpu|cuda [--filter GTEST_FILTER] [--complete] [--processes N]

Prints per family of kernels and mutation how many comparisons noticed of how many there were, and before that every ten
seconds how far it is; told to end (SIGTERM), the same of the parts that have ended. Exit codes: 0 every comparison noticed or is excused in excuses.toml, and every family that the
program's tests name as the device's was compared; 1 otherwise (with --complete also where an excuse matches nothing),
77 no test compared anything, for there is no such device.
"""

import argparse
import collections
import concurrent.futures
import fnmatch
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib

MUTATIONS = ["zeros", "left_out_row", "dropped_operand", "wrong_rounding"]
# A process takes the next part of the tests when it is done with one, for some tests take a hundred times as long as
# others.
PARTS_PER_PROCESS = 4
SECONDS_BETWEEN_LINES = 10
SLOWEST = 5


class EndedEarly(Exception):
    """SIGTERM."""


class Running:
    """The processes of the parts that are under way."""

    def __init__(self):
        self.processes = set()
        self.ends = False

    def run(self, command, environment):
        """Its exit code and what it wrote to stderr."""
        if self.ends:
            return 1, ""
        with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
            self.processes.add(process)
            if self.ends:  # meanwhile
                process.kill()
            _, errors = process.communicate()
            self.processes.discard(process)
        return process.returncode, errors.decode(errors="replace")

    def end(self):
        self.ends = True
        for process in list(self.processes):
            process.kill()


def gpus():
    """What CUDA_VISIBLE_DEVICES may be, one for each GPU; empty where there is none, or nobody to ask."""
    if named := os.environ.get("CUDA_VISIBLE_DEVICES"):
        return named.split(",")
    if not shutil.which("nvidia-smi"):
        return []
    query = ["nvidia-smi", "--query-gpu=index", "--format=csv,noheader"]
    found = subprocess.run(query, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    return found.stdout.split() if found.returncode == 0 else []


def run_part(running, program, tests, part, parts, cards):
    """GoogleTest's report of one part of the tests; None where it was not to go on."""
    environment = dict(
        os.environ, TESSERA_TEST_MUTATION=",".join(MUTATIONS), GTEST_TOTAL_SHARDS=str(parts), GTEST_SHARD_INDEX=str(part)
    )
    if cards:
        environment["CUDA_VISIBLE_DEVICES"] = cards[part % len(cards)]
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "report.json"
        command = [program, f"--gtest_filter={tests}", "--gtest_brief=1", f"--gtest_output=json:{path}"]
        status, errors = running.run(command, environment)
        # 1: tests failed, which they shall.
        if running.ends:
            return None
        if status not in (0, 1):
            sys.exit(f"{program} ended with {status}:\n{errors}")
        return json.loads(path.read_text()) if path.exists() else {"testsuites": []}


def run(program, tests, processes, cards):
    """The reports of the parts, and of how many: all, but where it was told to end."""
    parts = PARTS_PER_PROCESS * processes
    begin = last = time.monotonic()
    reports = []
    running = Running()

    def end(*_):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once is enough
        raise EndedEarly

    signal.signal(signal.SIGTERM, end)
    with concurrent.futures.ThreadPoolExecutor(processes) as pool:
        futures = [pool.submit(run_part, running, program, tests, part, parts, cards) for part in range(parts)]
        try:
            for future in concurrent.futures.as_completed(futures):
                if future.exception() is not None:
                    pool.shutdown(cancel_futures=True)
                reports.append(future.result())
                if time.monotonic() - last >= SECONDS_BETWEEN_LINES:
                    last = time.monotonic()
                    print(f"{len(reports)} of {parts} parts of the tests after {last - begin:.0f} s", flush=True)
        except EndedEarly:
            running.end()
            pool.shutdown(cancel_futures=True)
            reports = [future.result() for future in futures if not future.cancelled() and future.result() is not None]
    return reports, parts


def tests_of(report):
    """(name, test) of every test."""
    for suite in report["testsuites"]:
        for test in suite["testsuite"]:
            yield f"{test['classname']}.{test['name']}", test


def tallies(report):
    """(test, mutation, family, noticed, unnoticed) of every test that compared anything."""
    for name, test in tests_of(report):
        for key, value in test.items():
            mutation, _, family = key.partition(": ")
            if mutation in MUTATIONS and family:
                tally = json.loads(value)
                yield name, mutation, family, tally["noticed"], tally["unnoticed"]


def families_of_device(reports):
    """Those that a test of the program says that the device's kernels have (record_families in tests/support/mutation.h)."""
    return {family for report in reports for _, test in tests_of(report) for family in json.loads(test.get("families", "[]"))}


def print_slowest(reports):
    times = [(float(test.get("time", "0s").rstrip("s")), name) for report in reports for name, test in tests_of(report)]
    print("\nthe slowest tests:")
    for seconds, name in sorted(times, reverse=True)[:SLOWEST]:
        print(f"{seconds:8.1f} s  {name}")


def matches(excuse, test, mutation, what):
    return mutation in excuse["mutation"] and fnmatch.fnmatchcase(test, excuse["test"]) and fnmatch.fnmatchcase(what, excuse.get("what", "*"))


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("program")
    parser.add_argument("--device", required=True, choices=["cpu", "cuda"])
    parser.add_argument("--filter", default="*")
    parser.add_argument("--complete", action="store_true", help="all tests of the device run: an excuse must match one")
    parser.add_argument("--processes", type=int, default=2, help="that run at a time; on several GPUs where there are")
    parser.add_argument("--excuses", default=pathlib.Path(__file__).with_name("excuses.toml"), type=pathlib.Path)
    arguments = parser.parse_args()

    excuses = [excuse for excuse in tomllib.loads(arguments.excuses.read_text())["excuse"] if excuse.get("device", arguments.device) == arguments.device]
    used = set()
    noticed_by_family = collections.Counter()
    total_by_family = collections.Counter()
    survivors = []
    cards = gpus() if arguments.device == "cuda" else []
    reports, parts = run(arguments.program, arguments.filter, arguments.processes, cards)
    early = len(reports) < parts
    for report in reports:
        for test, mutation, family, noticed, unnoticed in tallies(report):
            key = (family, mutation)
            noticed_by_family[key] += noticed
            total_by_family[key] += noticed
            for what in unnoticed:
                fitting = [i for i, excuse in enumerate(excuses) if matches(excuse, test, mutation, what)]
                used.update(fitting)
                if not any(noticed > 0 or excuses[i].get("whole") for i in fitting):
                    survivors.append((test, mutation, what))
                    total_by_family[key] += 1
    if not total_by_family:
        print("ended before anything was compared" if early else "nothing was compared: there is no such device")
        return 1 if early else 77

    families = sorted({family for family, _ in total_by_family})
    width = max(map(len, families))
    print(" " * width, *(f"{mutation:>18}" for mutation in MUTATIONS))
    for family in families:
        cells = (f"{noticed_by_family[family, m]}/{total_by_family[family, m]}" if (family, m) in total_by_family else "-" for m in MUTATIONS)
        print(f"{family:{width}}", *(f"{cell:>18}" for cell in cells))
    for test, mutation, what in survivors:
        print(f"\nunnoticed: {mutation} in {test}:\n  " + what.replace("\n", "\n  "))
    expected = families_of_device(reports)
    missing = sorted(expected - set(families)) if expected else ["all: no test says which the device has"]
    if early:  # the rest may have compared them
        missing = []
    for family in missing:
        print(f"\na family of kernels that was compared in nothing: {family}")
    unused = [excuse for i, excuse in enumerate(excuses) if i not in used and arguments.complete and not early]
    for excuse in unused:
        print(f"\nan excuse that nothing needs: {excuse}")
    print_slowest(reports)
    print(f"\n{len(survivors)} unnoticed, {len(missing)} families not compared, {len(unused)} excuses too many")
    if early:
        print(f"told to end after {len(reports)} of {parts} parts of the tests")
    return 1 if survivors or missing or unused or early else 0


if __name__ == "__main__":
    sys.exit(main())
