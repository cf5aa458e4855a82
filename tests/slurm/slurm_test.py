"""Runs of a real Slurm: started on one machine and on two, stopped, and stopped by the limit of its time and begun anew.

usage: slurm_test.py PROGRAM"""

import os
import pathlib
import re
import sys
import tempfile
import unittest

if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    os.environ["TESSERA_PROGRAM"] = str(pathlib.Path(sys.argv.pop()).resolve())
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
from program import ENDLESS, PROGRAM, ProgramTest, checkpoint  # pylint: disable=wrong-import-position

import cluster  # pylint: disable=wrong-import-position

PLUGIN = pathlib.Path(PROGRAM).parents[1] / "lib" / "libtessera_mpi.so"

JOB = pathlib.Path(__file__).resolve().parents[2] / "examples" / "slurm_job"

# What a job finds as `tessera`: the test says in a file when its second part ends.
WRAPPER = """#!/bin/sh
exec {program} "$@" $(cat {words} 2>/dev/null)
"""


class SlurmTest(ProgramTest):
    slurm = None

    def launch(self, out, *words):
        self.call("launch", "--ranks", 2, "--", "train", self.recipe, "--out", self.root / out, "--quiet", *words)

    def srun(self, out, *words, launcher=()):
        return self.slurm.run("srun", "-n2", *launcher, *self.words("train", self.recipe, "--out", self.root / out, "--quiet", *words))

    def state(self, out):
        return checkpoint(self.root / out / "checkpoints" / "last.safetensors")

    def test_ranks_of_one_machine_meet(self):
        self.launch("launched")
        ended = self.srun("run", launcher=("-N1",))
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertEqual(self.weights("run"), self.weights("launched"))

    @unittest.skipUnless(PLUGIN.exists(), "built without MPI")
    def test_ranks_of_two_machines_meet_by_mpi(self):
        self.launch("launched")
        ended = self.srun("run", launcher=("-N2", "--mpi=pmix"))
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertEqual(self.weights("run"), self.weights("launched"))
        refused = self.srun("refused", launcher=("-N2",))
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("srun --mpi=pmix", refused.stderr)

    def test_a_job_that_is_cancelled_saves(self):
        job = self.submit("run", *ENDLESS)
        log = self.root / "run" / "rank-1.log"
        self.slurm.wait_until(log.exists, "ranks that do not begin")
        self.slurm.call("scancel", "--signal=TERM", job)
        self.slurm.wait_until(lambda: "Go on with:" in (self.root / "run.txt").read_text(), "ranks that do not stop")
        self.slurm.call("scancel", job)
        self.slurm.wait_until(lambda: self.slurm.state_of(job) in ("CANCELLED", "COMPLETED", ""), "a job that does not end")
        self.assertIn("srun -n 2 tessera train", (self.root / "run.txt").read_text())
        self.assertGreater(int(self.state("run")[0]["step"]), 0)

    def test_a_job_whose_time_is_over_saves_and_goes_on(self):
        job = self.submit("run", *ENDLESS)
        said = self.root / "run.txt"
        self.slurm.wait_until(lambda: said.exists() and "Go on with:" in said.read_text(), "a signal that does not come")
        steps = int(re.search(r"stopped after step (\d+)", said.read_text()).group(1))
        (self.root / "words").write_text(f"--max-steps {steps + 7}")
        self.slurm.wait_until(lambda: self.slurm.state_of(job) == "PENDING", "a job that is not begun anew")
        # Slurm would wait two minutes, and revokes what begins in the second in which the job before it ended.
        self.slurm.call("scontrol", "update", f"JobId={job}", "StartTime=now+3")
        self.slurm.wait_until(lambda: said.read_text().count("Go on with:") == 2, "a job that does not go on")
        self.assertEqual(self.state("run")[0]["step"], str(steps + 7))
        self.launch("straight", "--max-steps", steps + 7, *ENDLESS)
        self.assertEqual(self.state("run")[1], self.state("straight")[1])

    def submit(self, out, *words):
        wrapper = self.root / "tessera"
        wrapper.write_text(WRAPPER.format(program=PROGRAM, words=self.root / "words"))
        wrapper.chmod(0o755)
        job = self.slurm.call("sbatch", "--parsable", f"--export=ALL,PATH={self.root}:{os.environ['PATH']}", "--nodes=1", "--ntasks=2",
                              "--time=1", "--signal=TERM@50", f"--output={self.root / out}.txt", JOB, "train", self.recipe,
                              "--out", self.root / out, "--quiet", *words)
        self.assertRegex(job, r"^\d+$")
        return job


def main():
    reason = cluster.why_not()
    if reason:
        print(f"slurm: skipped: {reason}")
        return
    with tempfile.TemporaryDirectory(prefix="tessera-slurm-") as folder, cluster.Cluster(folder) as SlurmTest.slurm:
        unittest.main()


if __name__ == "__main__":
    main()
