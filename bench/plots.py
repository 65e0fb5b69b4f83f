"""`python -m bench.plots FILE.json ... --output PAGE.html`: a page of plots from saved runs."""

import argparse
import base64
import html
import io
import json
import statistics
from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402


def load_runs(paths):
    """The saved runs, the oldest first; folders stand for all files in them."""
    files = []
    for path in map(Path, paths):
        files += sorted(path.glob("*.json")) if path.is_dir() else [path]
    runs = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    return sorted(runs, key=lambda run: run["time"])


def figure_as_html(figure):
    """An <img> that carries the figure as SVG."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg", bbox_inches="tight")
    plt.close(figure)
    data = base64.b64encode(buffer.getvalue()).decode()
    return f'<img src="data:image/svg+xml;base64,{data}">'


def plot_history(runs, peer):
    """Geometric means of each suite, commit by commit."""
    figure, axes = plt.subplots(figsize=(9, 4))
    suites = dict.fromkeys(suite for run in runs for suite in run["geomean"])
    for suite in suites:
        points = [(i, run["geomean"].get(suite, {}).get(peer)) for i, run in enumerate(runs)]
        points = [(i, y) for i, y in points if y]
        if points:
            axes.plot(*zip(*points, strict=True), "o-", label=suite)
    axes.axhline(1, color="gray", linewidth=1)
    axes.set_yscale("log")
    axes.set_xticks(range(len(runs)), [run["commit"] for run in runs], rotation=45, ha="right")
    axes.set_ylabel(f"times the speed of {peer}")
    axes.legend()
    return figure


def by_family(rows, peer):
    """The ratios of a suite's cases by family and number of threads."""
    groups = {}
    for row in rows:
        if peer in row["ratios"]:
            label = row["family"] or "all"
            groups.setdefault((label, row["threads"]), []).append(row["ratios"][peer])
    return groups


def plot_families(suite, rows, peer):
    """Each case of a suite as a point on its family's line, with the geometric mean."""
    groups = by_family(rows, peer)
    labels = list(dict.fromkeys(label for label, _ in groups))
    figure, axes = plt.subplots(figsize=(9, 1 + 0.4 * len(labels)))
    colors = {number: f"C{i}" for i, number in enumerate(sorted({n for _, n in groups}))}
    for (label, number), ratios in groups.items():
        shift = 0.15 * (list(colors).index(number) - (len(colors) - 1) / 2)
        y = labels.index(label) + shift
        axes.plot(ratios, [y] * len(ratios), ".", color=colors[number], alpha=0.5)
        axes.plot(statistics.geometric_mean(ratios), y, "|", color=colors[number], markersize=14)
    for limit, style in ((1.0, "-"), (0.9, "--"), (0.7, ":")):
        axes.axvline(limit, color="gray", linewidth=1, linestyle=style)
    for number, color in colors.items():
        axes.plot([], [], ".", color=color, label=f"{number} threads" if number else "as set")
    axes.set_xscale("log")
    axes.set_yticks(range(len(labels)), labels)
    axes.invert_yaxis()
    axes.set_xlabel(f"{suite}: times the speed of {peer}")
    axes.legend(loc="lower right")
    return figure


def page(runs):
    """The page as HTML text."""
    last = runs[-1]
    parts = [f"<h1>facula's bench</h1><p>{html.escape(last['machine'])}</p>"]
    for peer in last["modules"][1:]:
        parts.append(f"<h2>Against {html.escape(peer)}, by commit</h2>")
        parts.append(figure_as_html(plot_history(runs, peer)))
        for suite, rows in last["suites"].items():
            if by_family(rows, peer):
                parts.append(f"<h2>{html.escape(suite)} at {html.escape(last['commit'])}</h2>")
                parts.append(figure_as_html(plot_families(suite, rows, peer)))
    return "<!doctype html><meta charset=utf-8><title>facula's bench</title>" + "\n".join(parts)


def main():
    parser = argparse.ArgumentParser(prog="bench.plots", description=__doc__)
    parser.add_argument("files", nargs="+", help="files of `bench --json`, or folders of them")
    parser.add_argument("--output", default="bench.html")
    options = parser.parse_args()
    runs = load_runs(options.files)
    if not runs:
        parser.error("expected at least one file of `bench --json`; found none")
    Path(options.output).write_text(page(runs), encoding="utf-8")
    print(f"page in {options.output}")


if __name__ == "__main__":
    main()
