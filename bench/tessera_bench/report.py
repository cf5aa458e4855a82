"""From a case's results to one printed line, the details beside it, and one JSON line."""

import datetime
import json
import math

from . import machine

# Relative, on the outputs of one run: a wrong network is off by far more.
TOLERANCES = {"fp32": 1e-3, "tf32": 1e-2, "fp16": 2e-2, "bf16": 1e-1}
VANISHING = 1e-6  # of outputs that are all below it, none says anything
MEGABYTE = 1e6


def difference(a, b):
    """Largest |a - b| relative to the largest |b|; None where there is nothing to compare."""
    if not a or not b:
        return None
    if len(a) != len(b) or not all(map(math.isfinite, (*a, *b))):
        return math.inf
    return max(abs(x - y) for x, y in zip(a, b)) / max(max(abs(y) for y in b), VANISHING)


def compare_outputs(results, tolerance=TOLERANCES["fp32"]):
    """Everyone's outputs (or losses) against the first peer that has any."""
    given = {name: result.get("check") for name, result in results.items() if "error" not in result}
    key = next((key for name, check in given.items() if name != "tessera" and check for key in check), None)
    if key is None:
        return None
    reference = next(name for name, check in given.items() if name != "tessera" and check)
    checks = {"of": key, "against": reference, "tolerance": tolerance}
    for name, check in given.items():
        if name == reference:
            continue
        if check and "error" in check:
            checks[name] = {"ok": None, "error": check["error"]}
            continue
        found = difference((check or {}).get(key), given[reference][key])
        # JSON has no infinity.
        checks[name] = {"ok": None if found is None else found <= tolerance, "difference": None if found == math.inf else found}
    return checks


def ratios_of(case, results):
    """{peer: speed of ours relative to it}"""
    mine = results.get("tessera", {}).get("value")
    others = {name: r["value"] for name, r in results.items() if name != "tessera" and "error" not in r}
    if not mine:
        return {}
    return {name: mine / value if case.kind == "throughput" else value / mine for name, value in others.items()}


def goals_of(case, results, ratios):
    """Each goal with what was reached; None where it was not measured."""
    goals = {}
    for peer, wanted in case.goals:
        reached = [ratio for name, ratio in ratios.items() if name.startswith(peer)]
        goals[f"{peer} {wanted}x"] = {"wanted": wanted, "reached": min(reached, default=None)}
    mine = results.get("tessera", {}).get("value")
    if case.allowed:
        goals[f"allowed {number(case.allowed)}"] = {"wanted": 1.0, "reached": case.allowed / mine if mine else None}
    return goals


def peak_bytes(device, result):
    """The peak of what is scarce: the GPU's memory, or the process's; None where it is not known."""
    return (result.get("memory") or {}).get("peak_bytes" if device == "cpu" else "device_peak_bytes")


def memory_ratio(device, results):
    """Our peak memory to the smaller of PyTorch's."""
    peaks = {name: peak_bytes(device, result) for name, result in results.items() if "error" not in result}
    torch = [peak for name, peak in peaks.items() if name.startswith("torch") and peak]
    return peaks["tessera"] / min(torch) if torch and peaks.get("tessera") else None


def summarise(case, results, options, moment, busy):
    peers = {name: r["value"] for name, r in results.items() if name != "tessera" and "error" not in r}
    best = (max if case.kind == "throughput" else min)(peers, key=peers.get) if peers else None
    ratios = ratios_of(case, results)
    versions = {name: result.pop("versions", None) for name, result in results.items()}
    return {
        "case": case.name,
        "kind": case.kind,
        "device": case.device,
        "precision": case.precision,
        "time": moment,
        "ratio": ratios.get(best),
        "ours": results.get("tessera", {}).get("value"),
        "peer": peers.get(best),
        "peer_name": best,
        "ratios": ratios,
        "goals": goals_of(case, results, ratios),
        "memory_ratio": memory_ratio(case.device, results),
        "check": compare_outputs(results, TOLERANCES[case.precision]) if case.kind == "throughput" else None,
        "versions": {name: value for name, value in versions.items() if value},
        "commit": machine.commit(),
        "before_commit": options.before_commit,
        "machine": machine.describe(options.threads),
        "busy_before": busy,
        "settings": {key: getattr(options, key) for key in ("rounds", "turn_seconds", "iterations", "warmup")},
        "results": results,
    }


def number(value):
    return "-" if value is None else f"{value:.4g}" if abs(value) < 1e4 else f"{value:.0f}"


def line(summary):
    """CASE ratio R ours X peer Y NAME"""
    failed = "error" in summary["results"].get("tessera", {})
    mine = "error" if failed else number(summary["ours"])
    ratio = "-" if summary["ratio"] is None else f"{summary['ratio']:.3f}"
    return f"{summary['case']} ratio {ratio} ours {mine} peer {number(summary['peer'])} {summary['peer_name'] or '-'}"


def details(summary):
    for name, result in summary["results"].items():
        if "error" in result:
            yield f"  {name}: error: {result['error']}"
            continue
        text = f"  {name}: {number(result['value'])}"
        if name in ("tessera", "torch-compile") and result.get("compile_seconds") is not None:
            text += f", compiled in {result['compile_seconds']:.1f} s"
        peak = peak_bytes(summary["device"], result)
        if peak:
            text += f", peak memory {peak / MEGABYTE:.0f} MB"
        yield text
    if summary["memory_ratio"]:
        yield f"  memory: {summary['memory_ratio']:.2f} of PyTorch's"
    for goal, found in summary["goals"].items():
        reached = found["reached"]
        verdict = "not measured" if reached is None else f"{'met' if reached >= found['wanted'] else 'MISSED'} ({reached:.2f})"
        yield f"  goal {goal}: {verdict}"
    checks = summary["check"] or {}
    for name, check in checks.items():
        if not isinstance(check, dict):
            continue
        verdict = {True: "equal", False: "DIFFERENT", None: "not compared"}[check["ok"]]
        found = check.get("difference")
        why = f" ({check['error']})" if "error" in check else "" if found is None else f" ({found:.1e} relative)"
        yield f"  check: {checks['of']} of {name} and {checks['against']}: {verdict}{why}"


def failed(summary):
    """A result that must not pass for a measurement."""
    wrong = any(isinstance(check, dict) and check["ok"] is False for check in (summary["check"] or {}).values())
    return wrong or any("error" in result for result in summary["results"].values())


def append(summary, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(summary) + "\n")


def now():
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
