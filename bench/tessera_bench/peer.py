"""The driver's end of a peer: a long-lived process of bench/.venv that answers requests over a pipe."""

import json
import os
import select
import subprocess
import sys
import tempfile

from . import machine

PYTHON = machine.ROOT / "bench" / ".venv" / "bin" / "python"


class PeerError(RuntimeError):
    pass


def ensure_environment(python):
    if python == PYTHON:
        subprocess.run([str(machine.ROOT / "bench" / "setup")], check=True, stdout=sys.stderr)


class Peer:
    def __init__(self, name, case, threads, warmup, python=PYTHON):
        self.name = name
        self.batch = case.batch
        self.log = tempfile.TemporaryFile("w+")
        request_read, self.requests = os.pipe()
        self.answers, answer_write = os.pipe()
        self.buffer = b""
        command = [str(python), "-m", "tessera_bench.worker", str(request_read), str(answer_write)]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
            pass_fds=(request_read, answer_write),
            env=machine.environment(threads) | {"PYTHONPATH": str(machine.ROOT / "bench")},
            cwd=machine.ROOT,
        )
        os.close(request_read)
        os.close(answer_write)
        try:
            self.ready = self.ask({"peer": name, "case": vars(case), "threads": threads, "warmup": warmup}, timeout=3600)
        except BaseException:
            self.close()
            raise

    def ask(self, request, timeout=1800):
        try:
            os.write(self.requests, json.dumps(request).encode() + b"\n")
        except BrokenPipeError:
            pass  # The worker is gone; reading says why.
        while b"\n" not in self.buffer:
            if not select.select([self.answers], [], [], timeout)[0]:
                raise PeerError(f"no answer within {timeout} s")
            part = os.read(self.answers, 1 << 16)
            if not part:
                raise PeerError(f"ended with status {self.process.wait()}: {self.last_words()}")
            self.buffer += part
        line, _, self.buffer = self.buffer.partition(b"\n")
        answer = json.loads(line)
        if "error" in answer:
            raise PeerError(answer["error"])
        return answer

    def run(self, iterations):
        """Milliseconds of each iteration."""
        return self.ask({"run": iterations})["milliseconds"]

    def samples(self):
        """Of a batch."""
        return self.batch

    def memory(self):
        return self.ask({"memory": True})

    def last_words(self):
        self.log.seek(0)
        lines = [line.strip() for line in self.log.read().splitlines() if line.strip()]
        return lines[-1] if lines else "no message"

    def close(self):
        os.close(self.requests)
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.answers)
        self.log.close()
