"""What the checks share: the files of the project, what they include, and a memory of what already passed."""

import argparse
import concurrent.futures
import hashlib
import os
import pathlib
import re
import subprocess
import sys

CODE_FOLDERS = ("include", "src", "kernels", "tests", "examples", "bench")
CODE_SUFFIXES = (".cpp", ".h", ".cu", ".cuh")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)


def arguments(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent,
                        help="the source tree to check (default: this one)")
    return parser


def code_files(root, folders=CODE_FOLDERS, suffixes=CODE_SUFFIXES):
    """Every source file of ours, sorted; build trees and virtual environments are hidden or elsewhere."""
    found = []
    for folder in folders:
        for path in (root / folder).rglob("*"):
            parts = path.relative_to(root).parts
            if path.suffix in suffixes and path.is_file() and not any(part.startswith(".") for part in parts):
                found.append(path)
    return sorted(found)


def included(path):
    """The names that a file includes in quotes, in order."""
    return INCLUDE.findall(path.read_text(errors="replace"))


def resolve(root, path, name):
    """The file of ours that `#include "name"` in `path` means, or None."""
    for folder in (path.parent, root / "include", root / "src", root / "tests", root):
        candidate = folder / name
        if candidate.is_file():
            return candidate.resolve()
    return None


def closure(root, path):
    """The file and every file of ours that it includes, directly or not."""
    seen, waiting = set(), [path.resolve()]
    while waiting:
        current = waiting.pop()
        if current in seen:
            continue
        seen.add(current)
        waiting += filter(None, (resolve(root, current, name) for name in included(current)))
    return sorted(seen)


def content_key(root, files, *facts):
    """A digest of the files' contents and of whatever else decides the result, equal in every clone."""
    digest = hashlib.sha256("\0".join(facts).encode())
    for path in files:
        digest.update(str(path.relative_to(root.resolve())).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def passed_folder():
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return pathlib.Path(cache) / "tessera" / "checks"


def run_cached(jobs):
    """Runs (label, key, command) jobs on every core, skipping those whose key passed before.

    Yields (label, output) of each that failed. Only passes are remembered.
    """
    folder = passed_folder()
    folder.mkdir(parents=True, exist_ok=True)
    waiting = [job for job in jobs if not (folder / job[1]).exists()]

    def run(job):
        result = subprocess.run(job[2], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, check=False)
        if result.returncode == 0:
            (folder / job[1]).touch()
        return job[0], result

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for label, result in pool.map(run, waiting):
            if result.returncode != 0:
                yield label, result.stdout + result.stderr


def report(name, problems, checked):
    """Prints the problems and ends the program: 0 if there are none."""
    for problem in problems:
        print(problem)
    print(f"{name}: {checked}, {len(problems)} problem{'' if len(problems) == 1 else 's'}")
    sys.exit(1 if problems else 0)
