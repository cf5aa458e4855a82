"""bench/kernels: what `tessera explain --times --json` says of each node, as a table in Markdown."""

import argparse
import json
import pathlib
import sys

from . import machine, report

HEADER = (
    "| Work | Nodes | Kernel | us each | MB each | GFLOP each | Limit, us | Share | ms in all |",
    "|---|---|---|---|---|---|---|---|---|",
)
LEAST_MICROSECONDS = 10.0  # of a row; what takes less is one row for each operator


def groups_of(nodes):
    """Nodes with the same work and kernel, the most expensive first: lists of nodes."""
    groups = {}
    for node in nodes:
        small = node["microseconds"] < LEAST_MICROSECONDS
        work = () if small else (node["bytes"], node["flops"])
        groups.setdefault((node["operator"], node["kernel"], small, *work), []).append(node)
    return sorted(groups.values(), key=lambda group: -total(group, "microseconds"))


def total(nodes, name):
    return sum(node[name] for node in nodes)


def number(value):
    return f"{value:.1f}" if value < 10 else f"{value:.0f}"


def row(group):
    first, count = group[0], len(group)
    microseconds, limit = total(group, "microseconds"), total(group, "limit_microseconds")
    name = f"`{first['name']}`, {first['operator']}"
    each = [number(value / count) for value in (microseconds, total(group, "bytes") / 1e6, total(group, "flops") / 1e9, limit)]
    return (
        f"| {name} | {count} | {first['kernel']} | {each[0]} | {each[1]} | {each[2]} | {each[3]} "
        f"| {100 * limit / microseconds:.0f} % | {microseconds / 1e3:.3f} |"
    )


def measured_nodes(explained):
    return [node for node in explained["nodes"] if not node["once"] and node["microseconds"] > 0]


def record(explained, case, step_milliseconds):
    """What bench/results keeps of a run: the rows of its table, with sums in place of what each node took."""
    sums = ("microseconds", "bytes", "flops", "limit_microseconds")
    groups = groups_of(measured_nodes(explained))
    return {
        "case": case,
        "kind": "kernels",
        "time": report.now(),
        "commit": machine.commit(),
        "device_model": explained["device"]["model"],
        "step_milliseconds": step_milliseconds,
        "groups": [
            {key: group[0][key] for key in ("name", "operator", "kernel")}
            | {"nodes": len(group)}
            | {key: round(total(group, key), 3) for key in sums}
            for group in groups
        ],
    }


def table(explained, step_milliseconds):
    """The lines of the table of one run. `step_milliseconds`: of a whole run without marks between its nodes, or None."""
    nodes = measured_nodes(explained)
    microseconds, limit = total(nodes, "microseconds"), total(nodes, "limit_microseconds")
    yield from HEADER
    yield from (row(group) for group in groups_of(nodes))
    yield (
        f"| all | {len(nodes)} | | | {number(total(nodes, 'bytes') / 1e6)} in all | {number(total(nodes, 'flops') / 1e9)} in all "
        f"| {limit:.0f} in all | {100 * limit / microseconds:.0f} % | {microseconds / 1e3:.3f} |"
    )
    if step_milliseconds is not None:
        yield f"| the whole run, without marks between nodes | | | | | | | {limit / 10 / step_milliseconds:.0f} % | {step_milliseconds:.3f} |"


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="bench/kernels",
        description="Prints a table in Markdown of the nodes that `tessera explain MODEL --times --json` has timed: equal ones in one row, "
        "named after the first; bytes and operations as the graph counts them.",
    )
    parser.add_argument("report", type=pathlib.Path, help="what explain printed")
    parser.add_argument("--step-ms", type=float, help="milliseconds of a whole run, from `tessera bench`, as the last row")
    parser.add_argument("--record", metavar="CASE", help="append the rows under this name to bench/results/DATE-kernels.jsonl")
    parser.add_argument("--results", type=pathlib.Path, help="another file to append to")
    options = parser.parse_args(arguments)
    try:
        explained = json.loads(options.report.read_text(encoding="utf-8"))
        lines = list(table(explained, options.step_ms))
        found = record(explained, options.record, options.step_ms) if options.record else None
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"bench/kernels: {options.report}: {type(error).__name__}: {error}", file=sys.stderr)
        return 1
    print("\n".join(lines))
    if found:
        report.append(found, options.results or machine.ROOT / "bench" / "results" / f"{found['time'][:10]}-kernels.jsonl")
    return 0


if __name__ == "__main__":
    sys.exit(main())
