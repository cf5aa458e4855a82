"""Writes stand-ins for the CUDA libraries that torch links but never calls on a CPU.

PyPI has one build of torch for Linux x86-64. It is linked against 4 GB of CUDA libraries, and the loader wants every
one of them and every symbol whose address is stored in a table. Libraries that define those symbols and do nothing
satisfy it; the CPU code is untouched. The CUDA runtime itself is real (3 MB), because torch registers its kernels there.
"""

import pathlib
import re
import subprocess
import sysconfig
import tempfile

# Library -> prefixes of its symbols, for the libraries that do not version them.
LIBRARIES = {
    "libcublas.so.13": (),
    "libcublasLt.so.13": (),
    "libcudnn.so.9": (),
    "libcufft.so.12": (),
    "libcufile.so.0": ("cuFile",),
    "libcusolver.so.12": (),
    "libcusparse.so.12": (),
    "libcusparseLt.so.0": ("cusparseLt",),
    "libnccl.so.2": ("nccl", "pnccl"),
    "libnvrtc.so.13": (),
    "libnvshmem_host.so.3": (),
}


def undefined_symbols(binary):
    """Yields (library or None, version or None, symbol) for what `binary` expects from elsewhere."""
    text = subprocess.run(
        ["readelf", "--wide", "--version-info", "--dyn-syms", str(binary)], capture_output=True, text=True, check=True
    ).stdout
    owners = {}  # version index -> (library, version)
    library = None
    for line in text.splitlines():
        if match := re.search(r"File: (\S+)", line):
            library = match[1]
        if library and (match := re.search(r"Name: (\S+)\s+Flags: .*Version: (\d+)", line)):
            owners[match[2]] = (library, match[1])
    for match in re.finditer(r" UND (\S+?)@(\S+) \((\d+)\)", text):
        yield (*owners.get(match[3], (None, None)), match[1])
    for match in re.finditer(r" UND (\w+)$", text, re.MULTILINE):
        yield None, None, match[1]


def write_placeholder(path, symbols):
    """symbols: {version or None: {name}}."""
    names = sorted(set().union(*symbols.values())) if symbols else []
    source = "".join(f"int {name}[16];\n" for name in names)
    versions = "".join(
        f"{version} {{ global: {' '.join(f'{name};' for name in sorted(group))} }};\n"
        for version, group in symbols.items()
        if version
    )
    command = ["g++", "-shared", "-nostdlib", "-x", "c", "-", f"-Wl,-soname,{path.name}", "-o", str(path)]
    with tempfile.NamedTemporaryFile("w", suffix=".map") as script:
        if versions:
            script.write(versions)
            script.flush()
            command.append(f"-Wl,--version-script={script.name}")
        subprocess.run(command, input=source, text=True, check=True)


def main():
    folder = pathlib.Path(sysconfig.get_paths()["purelib"]) / "torch" / "lib"
    wanted = {library: {} for library in LIBRARIES}
    for binary in sorted(folder.glob("libtorch*.so")):
        for library, version, symbol in undefined_symbols(binary):
            if library is None:
                library = next((name for name, prefixes in LIBRARIES.items() if prefixes and symbol.startswith(prefixes)), None)
            if library in wanted:
                wanted[library].setdefault(version, set()).add(symbol)
    for library, symbols in wanted.items():
        write_placeholder(folder / library, symbols)


if __name__ == "__main__":
    main()
