"""Ranks that mpirun starts and that talk by MPI: what they train, and how they end together."""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import time
import unittest

from program import ENDLESS, PROGRAM, ProgramTest, checkpoint

BOUND = 60  # seconds in which all must have ended
PLUGIN = pathlib.Path(PROGRAM).parents[1] / "lib" / "libtessera_mpi.so"

# Starts Open MPI's daemon of another machine on this one, with a folder for temporary files of its own: two that make the
# same there at once fail.
AGENT = """#!/bin/sh
export TMPDIR="$0.$1"
mkdir "$TMPDIR"
shift
exec sh -c "$*"
"""


@unittest.skipUnless(shutil.which("mpirun"), "no mpirun: Debian's openmpi-bin")
@unittest.skipUnless(PLUGIN.exists(), "built without MPI: Debian's libopenmpi-dev")
class MpiTest(ProgramTest):
    def start_mpirun(self, *words, communicator="mpi", **variables):
        variables = {**os.environ, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive", **variables}
        if communicator:
            variables["TESSERA_COMMUNICATOR"] = communicator
        process = subprocess.Popen(["mpirun", *map(str, words)], text=True, cwd=self.root, env=variables,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def train_words(self, out, *words):
        return self.words("train", self.recipe, "--out", self.root / out, "--quiet", *words)

    def mpirun(self, ranks, out, *words, launcher=(), **options):
        process = self.start_mpirun(*launcher, "-n", ranks, *self.train_words(out, *words), **options)
        output, errors = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, output + errors)
        return output

    def begin(self, out):
        """Two ranks that have made a step, and their processes in the order of the ranks. mpirun leaves it to them to miss
        each other."""
        process = self.start_mpirun("--enable-recovery", "-n", 2, *self.train_words(out, *ENDLESS), TESSERA_HEARTBEAT_SECONDS="10")
        logs = [self.root / out / f"rank-{rank}.log" for rank in (0, 1)]
        end = time.monotonic() + BOUND
        while not all(log.exists() and "is process" in log.read_text() for log in logs):
            if process.poll() is not None:
                self.fail(process.stderr.read())
            self.assertLess(time.monotonic(), end, "ranks that do not begin")
            time.sleep(0.02)
        return process, [int(re.search(r"is process (\d+)", log.read_text()).group(1)) for log in logs]

    def check_ended(self, process, ranks, said):
        errors = process.communicate(timeout=BOUND)[1]
        complaints = re.findall("tessera: .*", errors)
        self.assertEqual(len(complaints), 1, errors)
        self.assertRegex(complaints[0], f"^tessera: {said}")
        for rank in ranks:
            self.assertFalse(pathlib.Path(f"/proc/{rank}").exists(), rank)


class TrainingTest(MpiTest):
    def test_ranks_train_to_the_bytes_of_local_ones(self):
        for ranks in (2, 4):
            self.call("launch", "--ranks", ranks, "--", "train", self.recipe, "--out", self.root / f"local-{ranks}", "--quiet")
            self.mpirun(ranks, f"mpi-{ranks}")
            self.assertEqual(self.weights(f"mpi-{ranks}"), self.weights(f"local-{ranks}"))
            for rank in range(ranks):
                self.assertTrue((self.root / f"mpi-{ranks}" / f"rank-{rank}.log").exists())
        self.mpirun(4, "again")
        self.assertEqual(self.weights("again"), self.weights("mpi-4"))

    def test_a_run_goes_on_with_other_ranks(self):
        stopped = self.mpirun(2, "run", "--max-steps", 5)
        self.assertIn("mpirun -n 2 tessera train", stopped)
        self.mpirun(4, "run", "--resume", "--max-steps", 11)
        self.train("run", "--quiet", "--resume")
        self.assertEqual(checkpoint(self.root / "run" / "checkpoints" / "last.safetensors")[0]["step"], "24")

    def test_ranks_on_several_machines_talk_by_mpi(self):
        agent = self.root / "agent"
        agent.write_text(AGENT)
        agent.chmod(0o755)
        machines = ("--mca", "plm_rsh_agent", agent, "--host", "one:1,two:1")
        self.mpirun(2, "machines", launcher=machines, communicator=None)
        self.mpirun(2, "machine")
        self.assertEqual(self.weights("machines"), self.weights("machine"))


class FaultTest(MpiTest):
    def test_another_recipe_is_named(self):
        process = self.start_mpirun("-n", 1, *self.train_words("run"), ":", "-n", 1, *self.train_words("run", "--set", "train.seed=2"))
        self.check_ended(process, (), "rank 1 has another recipe than rank 0: 'seed = 2' in place of 'seed = 1'")
        self.assertFalse((self.root / "run" / "checkpoints").exists())

    def test_a_batch_that_three_cannot_share_is_refused_once(self):
        for communicator in ("mpi", "local"):
            process = self.start_mpirun("-n", 3, *self.train_words("run"), communicator=communicator)
            self.check_ended(process, (), r"3 ranks cannot share a batch of \d+ evenly")

    def test_a_rank_that_dies_ends_all(self):
        process, ranks = self.begin("run")
        os.kill(ranks[1], signal.SIGKILL)
        self.check_ended(process, ranks, rf"rank 1 \(process {ranks[1]} on \S+\) has died, is stopped or cannot be reached: ")

    def test_a_rank_that_hangs_ends_all(self):
        process, ranks = self.begin("run")
        os.kill(ranks[1], signal.SIGSTOP)
        self.addCleanup(self.end, ranks[1])
        while pathlib.Path(f"/proc/{ranks[0]}").exists():
            time.sleep(0.02)
        self.end(ranks[1])
        self.check_ended(process, ranks, rf"rank 1 \(process {ranks[1]} on \S+\) has died, is stopped or cannot be reached: ")

    def end(self, process):
        if pathlib.Path(f"/proc/{process}").exists():
            os.kill(process, signal.SIGKILL)

    def test_mpi_of_another_launcher_is_refused(self):
        environment = {**os.environ, "TESSERA_COMMUNICATOR": "mpi", "TESSERA_RANKS": "2", "TESSERA_RANK": "1"}
        process = subprocess.run(self.train_words("run"), env=environment, text=True, capture_output=True, timeout=BOUND, check=False)
        self.assertEqual(process.returncode, 2, process.stderr)
        self.assertIn("the launcher says rank 1 of 2, and MPI rank 0 of 1", process.stderr)


if __name__ == "__main__":
    unittest.main()
