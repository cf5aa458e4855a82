"""Several ranks as processes: what they leave, and how they end together whatever ends one of them."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time
import unittest

from program import ENDLESS, LONG, PROGRAM, ProgramTest, checkpoint

BOUND = 20  # seconds in which all must have ended; sanitizers and busy machines are slow


def children(process):
    with open(f"/proc/{process}/task/{process}/children", encoding="ascii") as file:
        return [int(word) for word in file.read().split()]


def is_alive(process):
    try:
        with open(f"/proc/{process}/stat", encoding="ascii") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


class LaunchTest(ProgramTest):
    def launch(self, out, *words, ranks=2, launcher=(), code=0):
        process = self.start("launch", "--ranks", ranks, *launcher, "--", "train", self.recipe, "--out", out, *words)
        output, errors = process.communicate(timeout=120)
        self.assertEqual(process.returncode, code, output + errors)
        return errors if code else output

    def state(self, out):
        return checkpoint(self.root / out / "checkpoints" / "last.safetensors")

    def begin_ranks(self, out, *words, ranks=2, launcher=(), every=ENDLESS):
        """A launcher whose ranks have made a step, and their processes."""
        process = self.start("launch", "--ranks", ranks, *launcher, "--", "train", self.recipe, "--out", out, "--quiet", *every, *words)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        self.wait_for(process, out / f"rank-{ranks - 1}.log")
        return process, children(process.pid)

    def wait_for(self, process, path):
        while not path.exists():
            if process.poll() is not None:
                self.fail(process.stderr.read())
            time.sleep(0.005)

    def wait_for_the_end_of(self, ranks):
        end = time.monotonic() + BOUND
        while any(map(is_alive, ranks)):
            self.assertLess(time.monotonic(), end, "ranks that outlive the others")
            time.sleep(0.01)

    def check_failed(self, process, ranks, *parts):
        output, errors = process.communicate(timeout=BOUND)
        self.assertNotIn(process.returncode, (0, 130), output + errors)
        self.assertEqual(errors.count("\n"), 1, errors)
        self.assertTrue(errors.startswith("tessera: "), errors)
        for part in parts:
            self.assertRegex(errors, part)
        for rank in ranks:
            self.assertFalse(is_alive(rank), rank)
        return process.returncode


class BenchTest(LaunchTest):
    def test_ranks_are_timed_together(self):
        words = ("bench", "mlp", "--batch", 8, "--train", "--device", "cpu", "--iterations", 3, "--json")
        timed = json.loads(self.call("launch", "--ranks", 2, "--", *words, "--bucket-mib", 0.1))
        self.assertEqual((timed["ranks"], timed["batch"], len(timed["milliseconds"])), (2, 8, 3))
        for rate, milliseconds in zip(timed["samples_per_second"], timed["milliseconds"]):
            self.assertAlmostEqual(rate, 16 / milliseconds * 1e3, delta=1e-3 * rate)

    def test_local_steps_are_timed_with_their_average(self):
        words = ("bench", "mlp", "--batch", 8, "--train", "--device", "cpu", "--json")
        local = ("launch", "--ranks", 2, "--", *words, "--local-steps", 3)
        timed = json.loads(self.call(*local, "--iterations", 4))
        self.assertEqual((timed["local_steps"], len(timed["milliseconds"])), (3, 4))
        self.assertEqual(json.loads(self.call(*words, "--iterations", 1, "--local-steps", 3))["local_steps"], 1)
        # Both kinds of steps train the same variables: ranks with the same images have the losses of one.
        check = ("--check", "--steps", 7, "--learning-rate", 0.01)
        self.assertEqual(json.loads(self.call(*local, *check)), json.loads(self.call(*words, *check)))
        self.refuses([*local, "--shard-optimizer"], 2, "local_steps and shard_optimizer exclude each other")

    def test_a_profile_says_what_of_the_collectives_is_exposed(self):
        out = self.root / "trace.json"
        words = ("mlp", "--batch", 8, "--train", "--device", "cpu", "--iterations", 2, "--out", out)
        told = self.call("launch", "--ranks", 2, "--", "profile", *words, "--bucket-mib", 0.1)
        self.assertRegex(told, r"collectives of 2 ranks \d+\.\d\d ms, in \d+\.\d\d ms of which nothing else went on: \d+\.\d % of the step")
        for path in (out, self.root / "trace.json.rank-1"):
            trace = json.loads(path.read_text())
            found = trace["otherData"]["collectives"]
            # A processor exchanges on the queue itself, beside nothing.
            nodes = [event for event in trace["traceEvents"] if "flops" in event.get("args", {})]
            times = [node["dur"] / 1e3 for node in nodes if node["args"]["operator"] == "all_reduce"]
            self.assertGreater(len(times), 1)
            self.assertAlmostEqual(found["all"], sum(times), delta=1e-3 * len(times))
            self.assertAlmostEqual(found["exposed"], found["all"], delta=1e-9)
            self.assertAlmostEqual(found["exposed_share"], found["exposed"] / found["step"])
            self.assertLess(found["all"], found["step"])
        self.assertNotIn("collectives", self.call("profile", *words))
        self.assertEqual(json.loads(out.read_text())["otherData"]["collectives"], {})

    def test_inference_is_none_of_several_ranks(self):
        self.refuses(["launch", "--ranks", 2, "--", "bench", "mlp", "--device", "cpu"], 2, "several ranks make a training step")
        self.refuses(["launch", "--ranks", 2, "--", "predict"], 2, "'predict'", "bench, eval, profile, train")


class TrainingTest(LaunchTest):
    def test_ranks_leave_what_one_leaves_and_a_log_each(self):
        self.train("alone")
        output = self.launch(self.root / "ranks", "--set", "train.threads=1")
        self.assertEqual(output.count("results in"), 1, output)
        names = {str(path.relative_to(self.root / "ranks")) for path in (self.root / "ranks").rglob("*") if path.is_file()}
        of_one = {str(path.relative_to(self.root / "alone")) for path in (self.root / "alone").rglob("*") if path.is_file()}
        logs = {"rank-0.log", "rank-1.log"}
        self.assertEqual({re.sub(r"tfevents.*", "tfevents", name) for name in names - logs},
                         {re.sub(r"tfevents.*", "tfevents", name) for name in of_one})
        for rank in (0, 1):
            self.assertIn(f"rank {rank} is process", (self.root / "ranks" / f"rank-{rank}.log").read_text())
        self.launch(self.root / "again", "--quiet", "--set", "train.threads=1")
        self.assertEqual(self.weights("ranks"), self.weights("again"))

    def test_a_run_goes_on_with_other_ranks(self):
        self.launch(self.root / "run", "--quiet", "--max-steps", 5)
        self.train("run", "--quiet", "--resume", "--max-steps", 11)
        self.launch(self.root / "run", "--quiet", "--resume", ranks=4)
        self.assertEqual(self.state("run")[0]["step"], "24")

    def test_a_batch_fits_the_data_and_the_ranks_and_stays(self):
        fitted = ("--set", "train.fit_batch=true")
        told = "batch 16 -> 12: 8 updates in an epoch, 4 images of which are left out"
        self.assertIn(told, self.launch(self.root / "run", *fitted, "--max-steps", 5, ranks=3))
        self.assertIn(told, self.launch(self.root / "run", *fitted, "--resume", ranks=2))
        metadata = self.state("run")[0]
        self.assertEqual((metadata["step"], metadata["fitted_batch"]), ("32", "12"))

    def test_ranks_share_out_the_state_and_go_on_with_others(self):
        sharded = ("--set", "train.shard_optimizer=true", "--set", "train.threads=1")
        self.launch(self.root / "whole", "--quiet", "--set", "train.threads=1")
        self.launch(self.root / "parts", "--quiet", *sharded)
        whole = self.state("whole")[1]
        self.assertEqual(self.state("parts")[1], whole)
        self.launch(self.root / "run", "--quiet", *sharded, "--max-steps", 5)
        self.train("run", "--quiet", *sharded, "--resume", "--max-steps", 11)
        self.launch(self.root / "run", "--quiet", *sharded, "--resume", ranks=4)
        metadata, tensors = self.state("run")
        self.assertEqual(metadata["step"], "24")
        self.assertEqual(len(tensors), len(whole))

    def test_a_signal_saves_first_and_resuming_gives_the_same_bytes(self):
        self.launch(self.root / "straight", "--quiet", *LONG)
        for number in (signal.SIGINT, signal.SIGTERM):
            out = self.root / f"stopped-{number}"
            process, ranks = self.begin_ranks(out, every=LONG)
            process.send_signal(number)
            output, errors = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 130, output + errors)
            self.assertEqual(output.count("Go on with:"), 1, output)
            self.assertFalse(any(map(is_alive, ranks)))
            told = output.split("Go on with:")[1].split()[1:]
            self.assertEqual(told[:5], ["launch", "--ranks", "2", "--", "train"])
            self.call(*told, "--quiet")
            self.assertEqual(self.weights(out), self.weights("straight"))

    def test_what_is_refused_is_refused_once(self):
        self.assertIn("5 ranks cannot share a batch of 16 evenly", self.launch(self.root / "run", ranks=5, code=2))
        self.assertFalse((self.root / "run").exists())
        errors = self.launch(self.root / "run", "--set", "train.epoch=3", code=2)
        self.assertEqual(errors.count("\n"), 1, errors)
        self.call("launch", "--ranks", 2, "--", "models", code=2)
        self.call("launch", "--ranks", 0, "--", "train", self.recipe, code=2)


class EvaluationTest(LaunchTest):
    def test_ranks_find_together_what_one_finds(self):
        self.train("run", "--quiet", "--max-steps", 5)
        self.train("run", "--quiet", "--resume")
        for limit in ((), ("--count", 21)):
            words = ("eval", self.root / "run", "--json", *limit)
            alone = json.loads(self.call(*words))
            several = [self.call(*words, "--devices", 3), self.call("launch", "--devices", 2, "--", *words)]
            for output in several:
                together = json.loads(output)
                self.assertEqual(together.keys(), alone.keys())
                for name, value in alone.items():
                    self.assertAlmostEqual(together[name], value, delta=1e-5 * abs(value), msg=name)

    def test_what_fails_is_told_once(self):
        errors = self.call("eval", self.root / "nothing", "--devices", 2, code=5)
        self.assertEqual(errors.count("\n"), 1, errors)
        self.assertIn("nothing", errors)


class FaultTest(LaunchTest):
    def test_a_rank_that_dies_ends_all_and_is_named(self):
        for rank in (0, 2):
            process, ranks = self.begin_ranks(self.root / f"run{rank}", "--set", "train.batch=15", ranks=3)
            os.kill(ranks[rank], signal.SIGKILL)
            self.check_failed(process, ranks, rf"rank {rank} \(process {ranks[rank]}\) was ended by signal 9")

    def test_a_rank_that_dies_is_named_when_all_have_ended(self):
        process, ranks = self.begin_ranks(self.root / "run")
        os.kill(process.pid, signal.SIGSTOP)
        os.kill(ranks[1], signal.SIGKILL)
        self.wait_for_the_end_of(ranks)
        os.kill(process.pid, signal.SIGCONT)
        self.check_failed(process, ranks, rf"rank 1 \(process {ranks[1]}\) was ended by signal 9")

    def test_a_rank_that_hangs_ends_all_and_is_named(self):
        process, ranks = self.begin_ranks(self.root / "run", launcher=("--heartbeat", 2))
        os.kill(ranks[1], signal.SIGSTOP)
        self.check_failed(process, ranks, rf"rank 1 \(process {ranks[1]}\) hangs: it has given no sign of life for [23] s")

    def test_a_rank_that_fails_says_why(self):
        errors = self.launch(self.root / "run", "--set", "optimizer.learning_rate=1e30", "--quiet", code=8)
        self.assertEqual(errors.count("tessera: "), 1, errors)
        self.assertRegex(errors, "^tessera: rank [01]: step ")

    def test_no_rank_outlives_its_launcher(self):
        process, ranks = self.begin_ranks(self.root / "run")
        process.kill()
        process.wait()
        self.wait_for_the_end_of(ranks)

    def test_a_checkpoint_is_whole_whenever_a_rank_is_killed(self):
        out = self.root / "run"
        process, ranks = self.begin_ranks(out, "--set", "train.checkpoint_steps=1")
        self.wait_for(process, out / "checkpoints" / "last.safetensors")
        os.kill(ranks[0], signal.SIGKILL)
        self.check_failed(process, ranks, "rank 0 ")
        step = int(checkpoint(out / "checkpoints" / "last.safetensors")[0]["step"])
        self.launch(out, "--quiet", "--resume", "--max-steps", step + 2, *ENDLESS)

    def restart_after_a_death(self, *launcher, ranks, left):
        """What the launcher says when rank 1 is killed after the first checkpoint, and the places of so many that are left."""
        out = self.root / "run"
        process, processes = self.begin_ranks(out, "--set", "train.checkpoint_steps=10", ranks=ranks, launcher=("--restarts", 1, *launcher), every=LONG)
        self.wait_for(process, out / "checkpoints" / "last.safetensors")
        os.kill(processes[1], signal.SIGKILL)
        self.wait_for_the_end_of(processes)
        places = []
        while len(places) < left:
            self.assertIsNone(process.poll(), "it has ended already")
            time.sleep(0.005)
            environments = [self.environment_of(child) for child in children(process.pid)]
            places = [one["TESSERA_PLACE"] for one in environments if one.get("TESSERA_RANKS") == str(left)]
        output, errors = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, output + errors)
        self.assertIn("was ended by signal 9", errors)
        return errors, places

    def environment_of(self, process):
        try:
            words = pathlib.Path(f"/proc/{process}/environ").read_text(encoding="utf8").split("\0")
        except (FileNotFoundError, ProcessLookupError):
            words = []
        return dict(word.split("=", 1) for word in words if "=" in word)

    def test_a_restart_goes_on_from_the_last_checkpoint(self):
        self.launch(self.root / "straight", "--quiet", *LONG)
        errors, places = self.restart_after_a_death("--all-ranks", ranks=2, left=2)
        self.assertIn("going on with 2 ranks from the last checkpoint", errors)
        self.assertEqual(places, ["0", "1"])
        self.assertEqual(self.weights("run"), self.weights("straight"))

    def test_a_restart_goes_on_with_the_ranks_that_are_left(self):
        # Three cannot share a batch of 16.
        errors, places = self.restart_after_a_death(ranks=4, left=2)
        self.assertEqual(places, ["0", "2"])
        self.assertIn("going on with 3 ranks from the last checkpoint", errors)
        self.assertIn("3 ranks cannot share a batch of 16 evenly", errors)
        self.assertIn("going on with 2 ranks from the last checkpoint", errors)
        self.assertEqual(self.state("run")[0]["step"], "2400")  # 400 epochs of 6


class DifferenceTest(LaunchTest):
    """Ranks that somebody starts one by one, and not alike."""

    def start_rank(self, rank, *words, folder=None, ranks=2, heartbeat=5, program=PROGRAM):
        environment = {**os.environ, "TESSERA_RANK": str(rank), "TESSERA_RANKS": str(ranks), "TESSERA_ADDRESS": str(self.root / "meeting"),
                       "TESSERA_HEARTBEAT_SECONDS": str(heartbeat), "OMP_NUM_THREADS": "1"}
        return self.start_in(environment, *words, folder=folder, program=program)

    def start_in(self, environment, *words, folder=None, program=PROGRAM):
        command = self.words("train", self.recipe, "--out", self.root / "run", "--quiet", *words)
        process = subprocess.Popen([program, *command[1:]], text=True,
                                   cwd=folder or self.root, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.kill)
        return process

    def ends_of(self, *processes):
        ends = []
        for process in processes:
            output, errors = process.communicate(timeout=BOUND)
            ends.append((process.returncode, output + errors))
        return ends

    def check_ends(self, ends, *parts):
        for code, said in ends:
            self.assertIn(code, (2, 10), said)
            for part in parts:
                self.assertIn(part, said)
        self.assertFalse((self.root / "run" / "checkpoints").exists())

    def test_the_same_train(self):
        for code, said in self.ends_of(self.start_rank(0), self.start_rank(1)):
            self.assertEqual(code, 0, said)
        self.assertTrue((self.root / "run" / "model.safetensors").exists())

    def test_another_recipe_is_named(self):
        ends = self.ends_of(self.start_rank(0), self.start_rank(1, "--set", "train.seed=2"))
        self.check_ends(ends, "rank 1 has another recipe than rank 0: 'seed = 2' in place of 'seed = 1'")

    def test_another_program_is_named(self):
        # What the linker calls a build: a note of the lengths of its name and of its content, and its kind.
        content = bytearray(pathlib.Path(PROGRAM).read_bytes())
        (note,) = re.finditer(rb"\x04\0\0\0([\x08\x10\x14])\0\0\0\x03\0\0\0GNU\0", content)
        place, size = note.end(), note[1][0]
        known = content[place:place + size].hex()
        content[place] ^= 1
        other = self.root / "tessera"
        other.write_bytes(content)
        other.chmod(0o755)
        ends = self.ends_of(self.start_rank(0), self.start_rank(1, program=other))
        self.check_ends(ends, "rank 1 has another program than rank 0: ", known, content[place:place + size].hex())

    def test_other_data_are_named(self):
        # One path, with something else after it for one of them.
        for name in ("here", "there"):
            shutil.copytree(self.data, self.root / name / "images")
        images = self.root / "there" / "images" / "train-images-idx3-ubyte"
        content = images.read_bytes()
        images.write_bytes(content[:16] + content[:15:-1])
        ends = self.ends_of(*(self.start_rank(rank, "--set", "data.path=images", folder=self.root / name)
                              for rank, name in enumerate(("here", "there"))))
        self.check_ends(ends, "rank 1 has another data set than rank 0: 'a first batch of images")

    def test_a_rank_that_never_comes_is_named(self):
        (code, said), = self.ends_of(self.start_rank(0, heartbeat=1))
        self.assertEqual(code, 10, said)
        self.assertIn("rank 1 has not come within 1 s", said)

    MPIRUN = {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_SIZE": "2", "PMIX_NAMESPACE": "../no.folder"}
    SRUN = {"SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_NUM_NODES": "1", "SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0"}

    def test_ranks_of_other_launchers_train_as_ours_do(self):
        alone = self.root / "alone"
        self.call("launch", "--ranks", 2, "--", "train", self.recipe, "--out", alone, "--quiet")
        for rank_variable, others in (("OMPI_COMM_WORLD_RANK", self.MPIRUN), ("SLURM_PROCID", self.SRUN)):
            shutil.rmtree(self.root / "run", ignore_errors=True)
            environment = {**os.environ, **others, "OMP_NUM_THREADS": "1"}
            ends = self.ends_of(*(self.start_in({**environment, rank_variable: str(rank)}) for rank in (0, 1)))
            for code, said in ends:
                self.assertEqual(code, 0, said)
            self.assertEqual(self.weights("run"), self.weights("alone"))
        self.assertEqual(list(pathlib.Path("/dev/shm").glob(f"tessera-{os.getuid()}-*run-*")), [])

    def test_what_mpirun_starts_is_one_run(self):
        if shutil.which("mpirun") is None:
            self.skipTest("no mpirun")
        root = ["--allow-run-as-root"] if os.getuid() == 0 else []
        process = subprocess.run(["mpirun", *root, "--oversubscribe", "-n", "2", *map(str, self.words(
            "train", self.recipe, "--out", self.root / "run", "--quiet"))], cwd=self.root, text=True, timeout=BOUND,
            env={**os.environ, "OMP_NUM_THREADS": "1"}, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        self.assertEqual(process.returncode, 0, process.stdout + process.stderr)
        self.assertTrue((self.root / "run" / "model.safetensors").exists())

    def test_ranks_of_other_launchers_on_several_machines_need_mpi(self):
        mpirun = {**self.MPIRUN, "OMPI_COMM_WORLD_LOCAL_SIZE": "1", "OMPI_COMM_WORLD_RANK": "0"}
        srun = {**self.SRUN, "SLURM_STEP_NUM_NODES": "2", "SLURM_PROCID": "0"}
        local, nothing = {"TESSERA_COMMUNICATOR": "local"}, {"TESSERA_PLUGIN_PATH": str(self.root)}
        for others, words in (({**mpirun, **nothing}, ("libtessera_mpi.so, which is not there", "libopenmpi-dev", "TESSERA_ENABLE_MPI")),
                              ({**srun, **nothing}, ("libtessera_mpi.so",)),
                              ({**mpirun, **local}, ("mpirun", "several machines", "TESSERA_COMMUNICATOR is local")),
                              ({**srun, **local}, ("srun", "several machines")),
                              ({**mpirun, "TESSERA_COMMUNICATOR": "mpj"}, ("there is no communicator 'mpj'",)),
                              (self.SRUN, ("srun", "SLURM_PROCID"))):
            (code, said), = self.ends_of(self.start_in({**os.environ, **others}))
            self.assertIn(code, (2, 7), said)
            for word in words:
                self.assertIn(word, said)

    def test_half_an_environment_is_refused(self):
        for given, missing in (({"TESSERA_RANKS": "2"}, "TESSERA_RANK"), ({"TESSERA_RANKS": "2", "TESSERA_RANK": "1"}, "TESSERA_ADDRESS")):
            (code, said), = self.ends_of(self.start_in({**os.environ, **given}))
            self.assertEqual(code, 2, said)
            self.assertIn(f"{missing} is missing", said)


if __name__ == "__main__":
    unittest.main()
