"""A run that is killed at random moments, also while it saves, goes on to the same bytes.

TESSERA_KILLS=200 kills so often, TESSERA_KILL_SEED=2 at other moments.
"""

import os
import random
import struct
import time
import unittest

from program import ProgramTest, checkpoint

KILLS = int(os.environ.get("TESSERA_KILLS", "6"))
SEED = int(os.environ.get("TESSERA_KILL_SEED", "1"))
EVERY = 2  # steps between checkpoints: most of the time goes into saving
WORDS = ("--set", "train.epochs=40", "--set", "model.hidden=[400]", "--set", "optimizer.name=adam", "--set", "optimizer.learning_rate=0.01",
         "--set", f"train.checkpoint_steps={EVERY}", "--set", "train.keep_checkpoints=3")


def varint(data, at):
    value, shift = 0, 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value


def logged_step(folder):
    """The last step of which the log holds a whole event: an event is its time, its step (field 2), and the rest."""
    last = 0
    for file in folder.glob("events.out.tfevents.*"):
        content, at = file.read_bytes(), 0
        while at + 12 <= len(content):
            length = struct.unpack_from("<Q", content, at)[0]
            event = content[at + 12:at + 12 + length]
            if len(event) == length and event[9:10] == b"\x10":
                last = max(last, varint(event, 10))
            at += 16 + length
    return last


class KillTest(ProgramTest):
    def kill(self, out, delay):
        """Kills the run, fresh or resumed, after so many seconds; whether it was still at work."""
        resume = ["--resume"] if (out / "checkpoints" / "last.safetensors").exists() else []
        process = self.start("train", self.recipe, "--out", out, "--quiet", *WORDS, *resume)
        time.sleep(delay)
        process.kill()
        output, errors = process.communicate(timeout=60)
        self.assertIn(process.returncode, (0, -9), output + errors)
        return process.returncode != 0

    def saved_step(self, out):
        """Of the last checkpoint, which is whole where there is one."""
        last = out / "checkpoints" / "last.safetensors"
        if not last.exists():
            return 0
        for file in last.parent.glob("*.safetensors"):
            checkpoint(file)
        return int(checkpoint(last)[0]["step"])

    def test_kills_at_random_moments(self):
        begin = time.monotonic()
        self.call("train", self.recipe, "--out", self.root / "straight", "--quiet", *WORDS)
        whole = time.monotonic() - begin
        expected = checkpoint(self.root / "straight" / "checkpoints" / "last.safetensors")[1]
        moments = random.Random(SEED)
        kills, saving, early, runs, lacking = 0, 0, 0, 0, []
        while kills < KILLS:
            out, reached, runs = self.root / f"run{runs}", 0, runs + 1
            for _ in range(3):
                if kills == KILLS or not self.kill(out, moments.uniform(0, 1.1 * whole)):
                    break
                kills += 1
                saved, logged = self.saved_step(out), logged_step(out)
                self.assertGreaterEqual(saved, reached)  # never back before a checkpoint that was there
                # The log lacks some steps, those of its buffer, and is never ahead.
                self.assertLessEqual(logged - saved, EVERY)
                lacking.append(logged - saved)
                saving += any(out.rglob("*.partial-*"))
                early += saved == 0
                reached = saved
            resume = ["--resume"] if self.saved_step(out) else []
            self.call("train", self.recipe, "--out", out, "--quiet", *WORDS, *resume)
            self.assertEqual(self.weights(out), self.weights("straight"))
            self.assertEqual(checkpoint(out / "checkpoints" / "last.safetensors")[1], expected)
            self.assertFalse(list(out.rglob("*.partial-*")) + list(out.glob(".*")))
        print(f"{kills} kills of {runs} runs of {whole:.2f} s: {saving} while a file was being written, {early} before the "
              f"first checkpoint; the checkpoint lacked {max(lacking)} steps of the log at most, of {EVERY} allowed")


if __name__ == "__main__":
    unittest.main()
