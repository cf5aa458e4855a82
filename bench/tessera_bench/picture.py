"""Loss curves as an SVG picture: panels in rows, ours as a broad line with PyTorch's dashed upon it."""

import math
from xml.sax.saxutils import escape

PANEL_WIDTH, PANEL_HEIGHT = 380, 240
LEFT, RIGHT, TOP, BOTTOM = 50, 14, 34, 38  # Around the axes of a panel.
HEAD = 56  # Title and legend above the panels.
OURS = 'stroke="#8ab4f8" stroke-width="5"'
PEERS = 'stroke="#202124" stroke-width="1.4" stroke-dasharray="5 3"'


def ticks(low, high, wanted=5):
    """Round numbers in [low, high]: about `wanted` multiples of 1, 2 or 5 times a power of ten."""
    rough = max(high - low, 1e-12) / wanted
    power = 10 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    return [index * step for index in range(first, math.floor(high / step + 1e-9) + 1)]


def text(x, y, words, size=12, anchor="start", fill="#202124"):
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{fill}">{escape(words)}</text>'


def line(x1, y1, x2, y2, style='stroke="#dadce0"'):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" {style}/>'


def panel(x0, y0, name, curve, low, high):
    """One panel whose upper left corner is (x0, y0); losses from low to high."""
    losses = curve["tessera"]
    width, height = PANEL_WIDTH - LEFT - RIGHT, PANEL_HEIGHT - TOP - BOTTOM

    def at_step(step):
        return x0 + LEFT + width * (step - 1) / max(len(losses) - 1, 1)

    def at_loss(loss):
        return y0 + TOP + height * (high - loss) / (high - low)

    parts = [text(x0 + LEFT, y0 + TOP - 12, f"{name}: at most {curve['difference']:.1e} apart, relatively", 11)]
    for loss in ticks(low, high):
        parts.append(line(x0 + LEFT, at_loss(loss), x0 + LEFT + width, at_loss(loss)))
        parts.append(text(x0 + LEFT - 6, at_loss(loss) + 4, f"{loss:g}", 11, "end"))
    for step in sorted({1, *(int(tick) for tick in ticks(1, len(losses)) if tick == int(tick))}):
        parts.append(text(at_step(step), y0 + TOP + height + 16, str(step), 11, "middle"))
    parts.append(text(x0 + LEFT + width, y0 + TOP + height + 32, "step", 11, "end"))
    for whose, style in (("tessera", OURS), ("torch", PEERS)):
        points = " ".join(f"{at_step(step):.1f},{at_loss(loss):.2f}" for step, loss in enumerate(curve[whose], 1))
        parts.append(f'<polyline fill="none" {style} points="{points}"/>')
    return parts


def range_of(curves):
    """The least and the greatest loss of some panels, with a margin."""
    losses = [loss for curve in curves for name in ("tessera", "torch") for loss in curve[name]]
    margin = 0.05 * (max(losses) - min(losses)) or 0.5
    return min(losses) - margin, max(losses) + margin


def draw(title, rows):
    """The SVG document of rows of panels, {name: curve} each, whose losses have one range in a row."""
    width, height = max(map(len, rows), default=1) * PANEL_WIDTH, HEAD + len(rows) * PANEL_HEIGHT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" font-family="sans-serif">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        text(LEFT, 22, title, 15),
        line(LEFT, 40, LEFT + 30, 40, OURS),
        text(LEFT + 36, 44, "Tessera"),
        line(LEFT + 110, 40, LEFT + 140, 40, PEERS),
        text(LEFT + 146, 44, "PyTorch, from the same weights and data"),
    ]
    for place, row in enumerate(rows):
        for column, (name, curve) in enumerate(row.items()):
            parts += panel(column * PANEL_WIDTH, HEAD + place * PANEL_HEIGHT, name, curve, *range_of(row.values()))
    return "\n".join([*parts, "</svg>", ""])


def draw_record(record):
    """That of a result of bench/curves, two precisions in a row; those that failed are left out."""
    curves = [(name, curve) for name, curve in record["curves"].items() if "error" not in curve]
    settings = record["settings"]
    title = f"Training loss of {settings['model']}, batch {settings['batch']}, on {record['device']}"
    return draw(title, [dict(curves[first : first + 2]) for first in range(0, len(curves), 2)])
