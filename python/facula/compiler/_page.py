"""One HTML page about a call of a compiled function: its graph, groups, code and timeline."""

from __future__ import annotations

from html import escape

from facula._dynamo.units import shown_bytes

_STYLE = """
body { font: 14px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 1100px; color: #1c2430; }
h1 { font-size: 22px; } h2 { font-size: 17px; margin-top: 1.8em; }
table { border-collapse: collapse; width: 100%; }
td, th { text-align: left; padding: 3px 10px 3px 0; border-bottom: 1px solid #dde3ea; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
pre { background: #f4f6f9; padding: 12px; overflow-x: auto; font-size: 12.5px; }
svg { display: block; max-width: 100%; height: auto; }
.input { fill: #e8f1fb; stroke: #5b8fc7; } .call { fill: #fff; stroke: #8a96a5; }
.result { fill: #e9f6ec; stroke: #58a068; } .edge { stroke: #aab4c0; fill: none; }
.group { fill: #e39a3b; } .alone { fill: #7f93ab; } .break { color: #a33; }
.chip { display: inline-block; width: 10px; height: 10px; margin-right: 6px; }
"""
_BOX, _GAP, _ROW = 190, 16, 58
_KINDS = {"placeholder": "input", "output": "result"}


def _layers(graph):
    """The nodes of a graph by their distance from its inputs, as lists."""
    depth = {}
    for node in graph.nodes:
        depth[node] = 1 + max((depth[n] for n in node.all_input_nodes), default=-1)
    rows = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for node, level in depth.items():
        rows[level].append(node)
    return rows


def _place_rows(graph):
    """The middle of each node's upper edge, in units of the drawing, and the drawing's size."""
    rows = _layers(graph)
    width = max((len(row) for row in rows), default=1) * (_BOX + _GAP) + _GAP
    places = {}
    for level, row in enumerate(rows):
        # A node stands below the nodes that it reads, as far as there is room.
        above = lambda n: [places[i][0] for i in n.all_input_nodes if i in places]  # noqa: E731
        row.sort(key=lambda n: sum(above(n)) / len(above(n)) if above(n) else 0)
        left = (width - len(row) * (_BOX + _GAP)) / 2
        for at, node in enumerate(row):
            places[node] = (left + at * (_BOX + _GAP) + (_BOX + _GAP) / 2, level * _ROW + 10)
    return places, width, len(rows) * _ROW + 10


def _text_of(node):
    value = node.meta.get("example_value")
    shape = getattr(value, "shape", None)
    dtype = str(getattr(value, "dtype", "")).rpartition(".")[2]
    target = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
    title = node.name if node.op in _KINDS else target
    return title, f"{list(shape)} {dtype}" if shape is not None else ""


def graph_drawing(graph):
    """An SVG of a graph, inputs at the top."""
    places, width, height = _place_rows(graph)
    parts = []
    for node, (x, y) in places.items():
        for source in node.all_input_nodes:
            from_x, from_y = places[source]
            low = from_y + 38
            middle = (low + y) / 2
            parts.append(
                f'<path class="edge" d="M{from_x:.0f} {low:.0f} C{from_x:.0f} {middle:.0f} '
                f'{x:.0f} {middle:.0f} {x:.0f} {y:.0f}"/>'
            )
    for node, (x, y) in places.items():
        title, shape = _text_of(node)
        kind = _KINDS.get(node.op, "call")
        parts.append(
            f"<g><title>{escape(node.format_node() or node.name)}</title>"
            f'<rect class="{kind}" x="{x - _BOX / 2:.0f}" y="{y:.0f}" width="{_BOX}" height="38" '
            f'rx="5"/><text x="{x:.0f}" y="{y + 16:.0f}" text-anchor="middle" font-size="12">'
            f'{escape(_short(title))}</text><text x="{x:.0f}" y="{y + 31:.0f}" '
            f'text-anchor="middle" font-size="10" fill="#667">{escape(shape)}</text></g>'
        )
    return (
        f'<svg class="graph" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'xmlns="http://www.w3.org/2000/svg">{"".join(parts)}</svg>'
    )


def _short(text, most=27):
    return text if len(text) <= most else f"{text[: most // 2]}…{text[-most // 2 + 1 :]}"


def timeline_drawing(units):
    """An SVG with a bar for each unit, over the time since the first began."""
    if not units:
        return "<p>Nothing was put off.</p>"
    begin = min(u.start for u in units)
    whole = max(max(u.start + u.nanoseconds for u in units) - begin, 1)
    scale, bars = 820 / whole, []
    for at, unit in enumerate(units):
        x, y = 200 + (unit.start - begin) * scale, at * 22 + 6
        length = max(unit.nanoseconds * scale, 1)
        kind = "group" if unit.is_group else "alone"
        bars.append(
            f"<g><title>{escape(str(unit))}</title>"
            f'<text x="192" y="{y + 12}" text-anchor="end" font-size="11">'
            f'{escape(_short(" ".join(unit.calls)))}</text><rect class="{kind}" x="{x:.1f}" '
            f'y="{y}" width="{length:.1f}" height="15"/></g>'
        )
    height = len(units) * 22 + 30
    axis = "".join(
        f'<text x="{200 + 820 * part / 4:.0f}" y="{height - 6}" font-size="10" '
        f'text-anchor="middle">{whole * part / 4000:.1f} us</text>'
        for part in range(5)
    )
    return (
        f'<svg class="timeline" width="1060" height="{height}" viewBox="0 0 1060 {height}" '
        f'xmlns="http://www.w3.org/2000/svg">{"".join(bars)}{axis}</svg>'
    )


def _units_table(units):
    rows = []
    for at, unit in enumerate(units, 1):
        kind = "group" if unit.is_group else "alone"
        numbers = (shown_bytes(unit.bytes_alone), shown_bytes(unit.bytes_moved))
        cells = "".join(f'<td class="number">{text}</td>' for text in numbers)
        rows.append(
            f'<tr><td class="number">{at}</td><td><span class="chip" style="background:'
            f'{"#e39a3b" if unit.is_group else "#7f93ab"}"></span>{kind}</td>'
            f"<td>{escape(' · '.join(unit.calls))}</td><td>{list(unit.sizes)}</td>{cells}"
            f'<td class="number">{unit.nanoseconds / 1000:.1f} us</td></tr>'
        )
    head = "".join(f"<th>{name}</th>" for name in ("", "Kind", "Calls", "Sizes"))
    head += "".join(f'<th class="number">{n}</th>' for n in ("One by one", "Moved", "Time"))
    return f'<table class="units"><tr>{head}</tr>{"".join(rows)}</table>'


def _breaks_list(breaks):
    if not breaks:
        return "<p>No break: the function is one segment.</p>"
    items = "".join(f'<li class="break">{escape(str(b))}</li>' for b in breaks)
    return f"<ol>{items}</ol>"


def page(name, graphs, breaks, units):
    """The page, which loads nothing from elsewhere.

    Args:
        name (str): the function's.
        graphs (list of GraphModule): its segments; `breaks`: what ended all but the last.
        units (list of Unit): what ran.
    """
    before = shown_bytes(sum(u.bytes_alone for u in units))
    after = shown_bytes(sum(u.bytes_moved for u in units))
    groups = sum(u.is_group for u in units)
    segments = "".join(
        f"<h3>Segment {at}</h3>{graph_drawing(module.graph)}<details><summary>Code</summary>"
        f"<pre>{escape(module.code.strip())}</pre></details>"
        for at, module in enumerate(graphs, 1)
    )
    title = escape(name)
    return (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}</style></head><body><h1>{title}</h1>"
        f"<p>{len(graphs)} segments, {groups} groups, {len(units) - groups} calls by themselves; "
        f"{before} one by one, {after} moved.</p>"
        f"<h2>Breaks</h2>{_breaks_list(breaks)}<h2>Groups and calls</h2>{_units_table(units)}"
        f"<h2>Timeline</h2>{timeline_drawing(units)}<h2>Graph</h2>{segments}</body></html>\n"
    )
