#!/usr/bin/env python3
"""Runs a program of tests with wrong results (TESSERA_TEST_MUTATION) and lists what no test noticed.

usage: check.py PROGRAM --device cpu|cuda [--filter GTEST_FILTER] [--complete]

Prints per family of kernels and mutation how many comparisons noticed of how many there were. Exit codes: 0 every
comparison noticed or is excused in excuses.toml, 1 otherwise (with --complete also where an excuse matches nothing), 77
no test compared anything, for there is no such device.
"""

import argparse
import collections
import fnmatch
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import tomllib

MUTATIONS = ["zeros", "left_out_row", "dropped_operand", "wrong_rounding"]


def run(program, tests, shards):
    """The reports of GoogleTest, one per process."""
    with tempfile.TemporaryDirectory() as folder:
        processes = []
        for shard in range(shards):
            environment = dict(
                os.environ,
                TESSERA_TEST_MUTATION=",".join(MUTATIONS),
                GTEST_TOTAL_SHARDS=str(shards),
                GTEST_SHARD_INDEX=str(shard),
            )
            command = [program, f"--gtest_filter={tests}", "--gtest_brief=1", f"--gtest_output=json:{folder}/{shard}.json"]
            processes.append(subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE))
        for process in processes:
            _, errors = process.communicate()
            # 1: tests failed, which they shall.
            if process.returncode not in (0, 1):
                sys.exit(f"{program} ended with {process.returncode}:\n{errors.decode(errors='replace')}")
        return [json.loads(path.read_text()) for path in sorted(pathlib.Path(folder).glob("*.json"))]


def tallies(report):
    """(test, mutation, family, noticed, unnoticed) of every test that compared anything."""
    for suite in report["testsuites"]:
        for test in suite["testsuite"]:
            name = f"{test['classname']}.{test['name']}"
            for key, value in test.items():
                mutation, _, family = key.partition(": ")
                if mutation in MUTATIONS and family:
                    tally = json.loads(value)
                    yield name, mutation, family, tally["noticed"], tally["unnoticed"]


def matches(excuse, test, mutation, what):
    return mutation in excuse["mutation"] and fnmatch.fnmatchcase(test, excuse["test"]) and fnmatch.fnmatchcase(what, excuse.get("what", "*"))


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("program")
    parser.add_argument("--device", required=True, choices=["cpu", "cuda"])
    parser.add_argument("--filter", default="*")
    parser.add_argument("--complete", action="store_true", help="all tests of the device run: an excuse must match one")
    parser.add_argument("--shards", type=int, default=2)
    parser.add_argument("--excuses", default=pathlib.Path(__file__).with_name("excuses.toml"), type=pathlib.Path)
    arguments = parser.parse_args()

    excuses = [excuse for excuse in tomllib.loads(arguments.excuses.read_text())["excuse"] if excuse.get("device", arguments.device) == arguments.device]
    used = set()
    noticed_by_family = collections.Counter()
    total_by_family = collections.Counter()
    survivors = []
    for report in run(arguments.program, arguments.filter, arguments.shards):
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
        print("nothing was compared: there is no such device")
        return 77

    families = sorted({family for family, _ in total_by_family})
    width = max(map(len, families))
    print(" " * width, *(f"{mutation:>18}" for mutation in MUTATIONS))
    for family in families:
        cells = (f"{noticed_by_family[family, m]}/{total_by_family[family, m]}" if (family, m) in total_by_family else "-" for m in MUTATIONS)
        print(f"{family:{width}}", *(f"{cell:>18}" for cell in cells))
    for test, mutation, what in survivors:
        print(f"\nunnoticed: {mutation} in {test}:\n  " + what.replace("\n", "\n  "))
    unused = [excuse for i, excuse in enumerate(excuses) if i not in used and arguments.complete]
    for excuse in unused:
        print(f"\nan excuse that nothing needs: {excuse}")
    print(f"\n{len(survivors)} unnoticed, {len(unused)} excuses too many")
    return 1 if survivors or unused else 0


if __name__ == "__main__":
    sys.exit(main())
