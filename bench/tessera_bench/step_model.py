"""A training step as `tessera explain --ranks N --json` plans it: what is computed, and what is exchanged beside it."""

import dataclasses
import re


@dataclasses.dataclass(frozen=True)
class Node:
    name: str
    weight: float  # of what is computed, its part of the step; 0 for an exchange
    bytes: float = 0  # of an exchange
    until: str = ""  # which node waits for the exchange; none: the end


@dataclasses.dataclass(frozen=True)
class Timeline:
    seconds: float
    waited: float  # nothing was computed, for an exchange that was not done
    beside: float  # both at once, while computing was slower


def read(plan):
    """The nodes in their order. What was measured counts, or else the least that the hardware allows."""
    timed = any("microseconds" in node for node in plan["nodes"])
    nodes = []
    for node in plan["nodes"]:
        if "lane" in node:
            told = re.fullmatch("until '(.*)'", node["lane"])
            # A collective is said to move what it reads and what it writes, which are as many bytes in an all_reduce.
            nodes.append(Node(node["name"], 0, node["bytes"] / 2, told.group(1) if told else ""))
        else:
            runs = node["candidates"] and not node["once"]
            nodes.append(Node(node["name"], node.get("microseconds" if timed else "limit_microseconds", 0) if runs else 0))
    if not sum(node.weight for node in nodes):
        raise ValueError("a plan without times and without limits: explain it for a GPU")
    return nodes


def exchanged_bytes(nodes):
    return [node.bytes for node in nodes if node.bytes]


def simulate(nodes, seconds, exchange, interference):
    """Of a step that takes so many seconds where nothing is exchanged. `exchange(bytes)` is what an exchange takes, and
    `interference` how much of its time is lost to what is computed beside it: 0 nothing, 1 all."""
    scale = seconds / sum(node.weight for node in nodes)
    now = lane = waited = beside = 0.0
    ends = {}
    for node in nodes:
        if node.bytes:
            lane = max(lane, now) + exchange(node.bytes)
            ends[node.until] = lane
            continue
        end = ends.pop(node.name, 0.0)
        waited += max(end - now, 0.0)
        now = max(now, end)
        left = node.weight * scale
        if now < lane and interference < 1:
            done = min(left, (lane - now) * (1 - interference))
            beside += done / (1 - interference)
            now += done / (1 - interference)
            left -= done
        elif now < lane and left > 0:
            beside += lane - now
            now = lane
        now += left
    return Timeline(max(now, lane), waited + max(lane - now, 0.0), beside)
