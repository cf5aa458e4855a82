"""From a case's results to one printed line, the details beside it, and one JSON line."""

import datetime
import json

from . import machine

TOLERANCE = 1e-3  # Relative, on the outputs of one run in float32: a wrong network is off by far more.
MEGABYTE = 1e6


def difference(a, b):
    """Largest |a - b| relative to the largest |b|; None where they cannot be compared."""
    if not a or not b or len(a) != len(b):
        return None
    return max(abs(x - y) for x, y in zip(a, b)) / max(max(abs(y) for y in b), 1e-30)


def compare_outputs(results):
    """Everyone's outputs (or losses) against the first peer that has any."""
    given = {name: result.get("check") for name, result in results.items() if "error" not in result}
    key = next((key for name, check in given.items() if name != "tessera" and check for key in check), None)
    if key is None:
        return None
    reference = next(name for name, check in given.items() if name != "tessera" and check)
    checks = {"of": key, "against": reference, "tolerance": TOLERANCE}
    for name, check in given.items():
        if name == reference:
            continue
        if check and "error" in check:
            checks[name] = {"ok": None, "error": check["error"]}
            continue
        found = difference((check or {}).get(key), given[reference][key])
        checks[name] = {"ok": None if found is None else found <= TOLERANCE, "difference": found}
    return checks


def summarise(case, results, options, moment):
    higher_is_better = case.kind == "throughput"
    peers = {name: r["value"] for name, r in results.items() if name != "tessera" and "error" not in r}
    best = (max if higher_is_better else min)(peers, key=peers.get) if peers else None
    mine = results.get("tessera", {}).get("value")
    ratio = None
    if mine and best:
        ratio = mine / peers[best] if higher_is_better else peers[best] / mine
    versions = {}
    for name, result in results.items():
        versions[name] = result.pop("versions", None)
    return {
        "case": case.name,
        "kind": case.kind,
        "device": case.device,
        "precision": case.precision,
        "time": moment,
        "ratio": ratio,
        "goal": case.goal,
        "ours": mine,
        "peer": peers.get(best),
        "peer_name": best,
        "check": compare_outputs(results) if case.kind == "throughput" else None,
        "versions": {name: value for name, value in versions.items() if value},
        "commit": machine.commit(),
        "machine": machine.describe(options.threads),
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
        peak = (result.get("memory") or {}).get("peak_bytes")
        if peak:
            text += f", peak memory {peak / MEGABYTE:.0f} MB"
        yield text
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
