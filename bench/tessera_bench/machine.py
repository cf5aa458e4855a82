"""What a result needs to be understood later: the machine, the commit, the load."""

import os
import pathlib
import platform
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]


def cpu_model():
    fields = {}
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        key, _, value = line.partition(":")
        fields.setdefault(key.strip(), value.strip())
    flags = fields.get("flags", "").split()
    wanted = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16")
    return {"model": fields.get("model name", platform.machine()), "extensions": [flag for flag in wanted if flag in flags]}


def memory_bytes():
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def commit():
    # A copy without its repository is told.
    if "TESSERA_BENCH_COMMIT" in os.environ:
        return os.environ["TESSERA_BENCH_COMMIT"]

    def git(*arguments):
        try:
            return subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True).stdout.strip()
        except FileNotFoundError:  # nothing to ask: a machine without git
            return ""

    changed = git("status", "--porcelain", "--untracked-files=no")
    return git("rev-parse", "HEAD") + ("+changes" if changed else "") if git("rev-parse", "HEAD") else None


def busy_fraction(seconds=1.0):
    """Share of all cores' time that someone used during the next moment."""

    def ticks():
        values = [int(text) for text in pathlib.Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
        return sum(values), values[3] + values[4]  # All; idle and waiting for a disk.

    total, idle = ticks()
    time.sleep(seconds)
    total_after, idle_after = ticks()
    return 1 - (idle_after - idle) / max(total_after - total, 1)


def describe(threads):
    return {
        "cpu": cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "threads": threads,
        "memory_bytes": memory_bytes(),
        "system": platform.platform(),
        "load_average": list(os.getloadavg()),
    }


CORES = sorted(os.sched_getaffinity(0))


def threads_of(case, wanted):
    """How many threads each gets where none were asked for. The compilers of a GPU's networks use all that there are."""
    return wanted or case.threads or (len(CORES) if case.device == "cuda" else min(2, len(CORES)))


def limit_cores(threads):
    """Everything started from here shares the first `threads` cores."""
    os.sched_setaffinity(0, CORES[:threads])


def environment(threads):
    count = str(threads)
    return os.environ | {"OMP_NUM_THREADS": count, "MKL_NUM_THREADS": count, "TESSERA_THREADS": count}
