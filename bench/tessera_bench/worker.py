"""A peer's process: `python -m tessera_bench.worker REQUESTS ANSWERS`, two file descriptors carrying a JSON object per line.

The first request names the peer, the case and the threads; the answer holds its versions, the seconds its first iteration
took beyond the second, and the outputs for the correctness check. Then {"run": n} -> {"milliseconds": [...]}, {"memory": true} -> bytes.
"""

import importlib
import json
import os
import pathlib
import sys
import time

MODULES = {"torch-eager": "torch_peer", "torch-compile": "torch_peer", "onnxruntime": "onnx_peer", "torchvision": "torchvision_peer", "torchvision-gpu": "torchvision_gpu_peer", "dali": "dali_peer"}


def status_bytes(field):
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    return None


def forget_peak():
    """So that the peak that follows is of the steady state and not of a compiler that ran before."""
    try:
        pathlib.Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        pass


def works_ahead(peer):
    """Whether it reads what a step gave while the next one is under way."""
    return hasattr(peer, "finish")


def clock_of(case):
    return time.process_time if case.get("photographs") and case["threads"] == 1 else time.perf_counter


def start(request):
    module = importlib.import_module("." + MODULES[request["peer"]], __package__)
    imported = status_bytes("VmRSS")
    peer = module.make(request["peer"], request["case"], request["threads"])
    results, seconds = [], []
    for _ in range(2 + request["warmup"]):
        begin = time.perf_counter()
        results = (results + [peer.iterate()])[:2]
        seconds.append(time.perf_counter() - begin)
    if works_ahead(peer):
        peer.finish()
    answer = {
        "versions": module.versions(),
        "compile_seconds": seconds[0] - seconds[1],
        "iteration_seconds": seconds[-1],
        "check": peer.check(results),
    }
    memory = {"after_import_bytes": imported, "peak_with_compiling_bytes": status_bytes("VmHWM")}
    forget_peak()
    return peer, answer, memory


def turn_of_photographs(peer, case, iterations):
    """Milliseconds of a batch, the mean: those that threads made ahead come at once, and others after a wait."""
    clock = clock_of(case)
    begin = clock()
    for _ in range(iterations):
        peer.iterate()
    return [1e3 * (clock() - begin) / iterations]


def turn(peer, iterations):
    """Milliseconds of each iteration; as ours, each gives a step to the device and then waits for the one before."""
    milliseconds = []
    if works_ahead(peer):
        peer.iterate()
    for _ in range(iterations):
        begin = time.perf_counter()
        peer.iterate()
        milliseconds.append(1e3 * (time.perf_counter() - begin))
    if works_ahead(peer):
        peer.finish()
    return milliseconds


def serve(requests, answers):
    peer, memory, case = None, {}, {}
    for line in requests:
        request = json.loads(line)
        try:
            if peer is None:
                peer, answer, memory = start(request)
                case = request["case"]
            elif "run" in request:
                count = request["run"]
                answer = {"milliseconds": turn_of_photographs(peer, case, count) if case.get("photographs") else turn(peer, count)}
            else:
                module = sys.modules[type(peer).__module__]
                device = module.device_peak_bytes() if hasattr(module, "device_peak_bytes") else None
                answer = {"peak_bytes": status_bytes("VmHWM"), "device_peak_bytes": device, **memory}
        except Exception as error:  # Whatever goes wrong in a peer is its result.
            text = str(error).strip().splitlines()
            answer = {"error": f"{type(error).__name__}: {text[0] if text else ''}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    serve(os.fdopen(int(sys.argv[1])), os.fdopen(int(sys.argv[2]), "w"))
