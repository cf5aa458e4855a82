"""Tessera's end: one process per turn, started by a command template, answering with JSON on stdout."""

import json
import os
import pathlib
import shlex
import statistics
import subprocess
import tempfile
import time

from . import machine, onnx_files, token_shards

PROGRAM = machine.ROOT / "build" / "release" / "bin" / "tessera"
BENCH = (
    "{program} bench {model} --batch {batch} {sizes} {train} {loader} {nondeterministic} {recompute} --device {device} {tuning} --precision {precision} --json --iterations {iterations} --warmup {warmup}"
)
DATA = "{program} data bench {photographs} --batch {batch} --threads {threads} {arrival} --json --iterations {iterations} --warmup {warmup}"
CHECK = "{program} bench {model} --batch {batch} {sizes} {train} {nondeterministic} {recompute} --device {device} {tuning} --precision {precision} --json --check {below}"


class OursError(RuntimeError):
    pass


def execute(command, threads, timeout=3600, environment=None):
    """Runs a command; returns its stdout, its peak resident memory in bytes and its wall time in seconds."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        begin = time.perf_counter()
        try:
            variables = machine.environment(threads) | (environment or {})
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=variables)
        except OSError as error:
            raise OSError(f"cannot start {command[0]}: {error.strerror}") from error
        pid, status, usage = wait(process, timeout)
        seconds = time.perf_counter() - begin
        out.seek(0)
        err.seek(0)
        code = os.waitstatus_to_exitcode(status)
        process.returncode = code
        if code != 0:
            lines = err.read().strip().splitlines()
            raise OursError(f"`{shlex.join(command)}` ended with status {code}: {lines[-1] if lines else 'no message'}")
        return out.read(), usage.ru_maxrss * 1024, seconds


def clock_of(case):
    """What a batch of photographs costs one thread is the processor's time: what else runs on the machine hardly counts."""
    return "processor_milliseconds" if case.photographs and case.threads == 1 else "milliseconds"


def wait(process, timeout):
    end = time.monotonic() + timeout
    pause = 0.0005
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            return pid, status, usage
        if time.monotonic() > end:
            process.kill()
            os.wait4(process.pid, 0)
            raise OursError(f"no answer within {timeout} s")
        time.sleep(pause)
        pause = min(2 * pause, 0.05) if time.monotonic() > end - timeout + 1 else pause


def recipe_words(case):
    """A recipe with what the case says of its data, as words of a command."""
    settings = [f"data.path={token_shards.path_of(case)}"]
    settings.append(f"data.lengths=[{case.tokens}]" if case.parallel else f"data.tokens={case.tokens}")
    if case.packed > 1:
        settings.append(f"data.packed={case.packed}")
    if case.unpadded:
        settings.append("data.unpadded=true")
    if case.attention_dropout:
        settings.append(f"model.attention_dropout={case.attention_dropout}")
    recipe = machine.ROOT / "bench" / "networks" / f"{case.recipe}.toml"
    return shlex.join([str(recipe), *(word for setting in settings for word in ("--set", setting))])


class Ours:
    name = "tessera"

    def __init__(self, case, options):
        self.case, self.options = case, options
        self.last = {}
        self.peak = 0
        self.folder = tempfile.TemporaryDirectory(prefix="tessera-tuning-")
        # The first call writes the tuning file; what it takes is not part of any turn.
        self.run(2)
        self.ready = {
            "iteration_seconds": self.last[clock_of(case)][-1] / 1e3,
            "check": self.check(),
            "versions": versions(options),
        }

    def command(self, template, **fields):
        fields |= {
            "program": shlex.quote(str(self.options.program)),
            "photographs": shlex.quote(str(self.options.photographs)),
            "threads": self.options.threads,
            "model": self.model(),
            "batch": self.case.batch,
            "below": f"--below {self.case.below}" if self.case.below != 2 else "",
            "sizes": " ".join(f"--size {shlex.quote(f'{name}={size}')}" for name, size in self.case.sizes),
            "train": "--train" if self.case.train else "",
            "loader": self.loader(),
            # What a GPU's network does by itself is none of the pipeline's work.
            "arrival": "--device cuda" if self.case.device == "cuda" else "--normalize",
            "nondeterministic": "" if self.case.deterministic else "--nondeterministic",
            "recompute": "--recompute" if self.case.recompute else "",
            "device": self.case.device,
            # As PyTorch's cudnn.benchmark; on a CPU nothing is gained beyond the order of the candidates.
            "tuning": f"--tune --tuning-file {self.folder.name}/tuning" if self.case.device == "cuda" else "",
            "precision": self.case.precision,
        }
        return shlex.split(template.format(**fields))

    def model(self):
        """Its name, its file, or a recipe with what the case says of its data."""
        if self.case.onnx:
            return shlex.quote(str(onnx_files.path_of(self.case.model, self.case.batch, self.case.package)))
        if not self.case.recipe:
            return self.case.model
        return recipe_words(self.case)

    def loader(self):
        if not self.case.loader:
            return ""
        folder = f" --files {shlex.quote(str(self.options.photographs))}" if self.case.files else ""
        return f"--loader {self.case.loader}{folder}"

    def run(self, iterations):
        template = DATA if self.case.photographs else self.options.bench_command
        command = self.command(template, iterations=iterations, warmup=self.options.warmup)
        text, peak, _ = execute(command, self.options.threads)
        try:
            self.last = json.loads(text)
            milliseconds = [float(value) for value in self.last[clock_of(self.case)]]
        except (ValueError, KeyError, TypeError) as error:
            raise OursError(f"`{shlex.join(command)}` did not print the agreed JSON: {error}") from error
        if not milliseconds:
            raise OursError(f"`{shlex.join(command)}` reported no iteration")
        self.peak = max(self.peak, peak)
        # Batches that threads made ahead come at once, and others after a wait.
        return [statistics.fmean(milliseconds)] if self.case.photographs else milliseconds

    def check(self):
        """Outputs or losses for the correctness check; None where the program has no --check."""
        # Random crops, gaps and dropout: tests/data/golden has Pillow's pixels, tests/golden PyTorch's and transformers' losses.
        if self.case.photographs or self.case.recipe:
            return None
        try:
            text, _, _ = execute(self.command(self.options.check_command), self.options.threads)
            return dict(json.loads(text))
        except (OursError, OSError, ValueError, TypeError) as error:
            return {"error": str(error)}

    def samples(self):
        """Of a batch: its rows, or the texts that they hold."""
        if not self.case.counted:
            return self.case.batch
        try:
            return self.last["weights"][self.case.counted]
        except KeyError as error:
            raise OursError(f"the program does not tell how much '{self.case.counted}' counts") from error

    def memory(self):
        return {
            "peak_bytes": self.peak,
            "reported_peak_bytes": self.last.get("peak_memory_bytes"),
            "device_peak_bytes": self.last.get("device_peak_bytes"),
        }

    def close(self):
        self.folder.cleanup()


def add_options(parser, batch):
    """Of a script that times one network by the program alone: which, where, and where its line goes."""
    parser.add_argument("network", nargs="?", default="resnet50", help="%(default)s")
    parser.add_argument("--batch", type=int, default=batch, help="%(default)s")
    parser.add_argument("--device", default="cuda", help="%(default)s")
    parser.add_argument("--program", type=pathlib.Path, default=PROGRAM)
    parser.add_argument("--threads", type=int, default=len(machine.CORES), help="of the program (%(default)s)")
    parser.add_argument("--results", type=pathlib.Path, default=machine.ROOT / "bench" / "results", help="folder")


def origin(options, moment):
    """Where a line of results comes from."""
    return {"time": moment, "commit": machine.commit(), "machine": machine.describe(options.threads), "versions": versions(options)}


def versions(options):
    """The program's, those of its devices' libraries, and the GPU; what else the doctor says names paths of the machine."""
    try:
        doctor = json.loads(execute([str(options.program), "doctor", "--json"], options.threads)[0])
        found = {"tessera": doctor["version"]}
        for device in doctor["devices"]:
            found |= device["versions"] if device["found"] else {}
            if device["found"] and device["name"] == "cuda":
                found["gpu"] = device["detail"].partition(",")[0]
        return found
    except (OursError, OSError, ValueError, KeyError, TypeError) as error:
        return {"error": str(error)}


def startup_milliseconds(options, runs=21):
    execute([str(options.program), "models"], options.threads)
    return [1e3 * execute([str(options.program), "models"], options.threads)[2] for _ in range(runs)]


def program_size(options):
    """Bytes on disk of the program and of the libraries beside it that it is linked against, stripped or as they are."""
    program = pathlib.Path(options.program).resolve(strict=True)
    libraries = subprocess.run(["ldd", str(program)], capture_output=True, text=True).stdout
    tree = program.parents[1]
    parts = {program}
    for line in libraries.splitlines():
        _, arrow, rest = line.partition("=> ")
        if arrow and rest.startswith(str(tree)):
            parts.add(pathlib.Path(rest.split(" (")[0]).resolve())
    sizes = {}
    with tempfile.TemporaryDirectory() as folder:
        for part in sorted(parts):
            stripped = pathlib.Path(folder) / part.name
            subprocess.run(["strip", "-o", str(stripped), str(part)], check=True)
            sizes[part.name] = {"bytes": part.stat().st_size, "stripped_bytes": stripped.stat().st_size}
    return sizes
