"""The figures of a sweep, drawn with Matplotlib's Agg canvas: no window, no global state."""

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.results import Row
from experiments.rundir import write_bytes

PALETTE = ("#3b6ea5", "#d1793b", "#4f9a5b", "#8b5fa8", "#b8524f", "#6f6f6f")


def draw_figures(folder: Path, rows: Sequence[Row], summary: Mapping[str, Any]) -> None:
    """Write `alignment.png`, one `divergence_<language>.png` for each language, and `residual.png` into `folder`."""
    folder.mkdir(exist_ok=True)
    for name, figure in figures(rows, summary).items():
        write_bytes(folder / f"{name}.png", rendered(figure, "png"))


def figures(rows: Sequence[Row], summary: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures by name; one that has nothing to show is left out."""
    drawn: dict[str, Any] = {}
    answered = [row for row in rows if row["status"] == "ok" and row["alignment"] is not None]
    if answered:
        drawn["alignment"] = draw_alignment(answered)
        drawn["residual"] = draw_residual(answered)
    for language, matrix in summary["divergence"].items():
        if len(matrix["identities"]) > 1:
            drawn[f"divergence_{language}"] = draw_divergence(matrix, language)
    return drawn


def rendered(figure: Any, form: str) -> bytes:
    """Return the bytes of `figure` as `png` or `svg`; the same figure gives the same bytes."""
    import matplotlib

    sink = io.BytesIO()
    metadata = {"Software": None} if form == "png" else {"Date": None, "Creator": None}
    # The salt makes the ids inside an SVG depend on its content alone.
    with matplotlib.rc_context({"svg.hashsalt": "corefield"}):
        figure.savefig(sink, format=form, dpi=144, metadata=metadata)
    return sink.getvalue()


def draw_alignment(rows: Sequence[Row]) -> Any:
    """Return a strip of every row's alignment in [0, 1], one line for each identity, with its mean."""
    groups = _by_identity(rows)
    figure, axes = _new_figure(7.0, 0.9 + 0.62 * len(groups))
    for position, members in enumerate(groups.values()):
        values = np.array([row["alignment"] for row in members])
        # A fixed spread in place of random jitter, so that the figure is the same every time.
        offsets = 0.28 * np.cos(np.arange(len(values)) * 2.399963)
        colour = PALETTE[position % len(PALETTE)]
        axes.scatter(values, position + offsets, s=12, alpha=0.55, color=colour, linewidths=0)
        axes.plot([values.mean()] * 2, [position - 0.38, position + 0.38], color="black", linewidth=1.6)
    axes.set_yticks(range(len(groups)), list(groups))
    axes.invert_yaxis()
    axes.set_xlim(-0.02, 1.02)
    axes.set_xlabel("alignment (bar: mean)")
    return figure


def draw_divergence(matrix: Mapping[str, Any], language: str) -> Any:
    """Return the share of changed token paths between every two identities as an annotated matrix."""
    names = matrix["identities"]
    shares = np.array(
        [[np.nan if value is None else value for value in line] for line in matrix["changed_paths"]], dtype=np.float64
    )
    figure, axes = _new_figure(2.6 + 1.1 * len(names), 1.6 + 0.8 * len(names))
    axes.imshow(shares, vmin=0.0, vmax=1.0, cmap="Blues")
    axes.set_xticks(range(len(names)), names, rotation=20, ha="right")
    axes.set_yticks(range(len(names)), names)
    for line, column in np.ndindex(*shares.shape):
        share = shares[line, column]
        text = "–" if np.isnan(share) else f"{share:.0%}"
        axes.text(column, line, text, ha="center", va="center", color="white" if share > 0.6 else "black")
    axes.set_title(f"share of changed token paths ({language})", fontsize=10)
    return figure


def draw_residual(rows: Sequence[Row]) -> Any:
    """Return each identity's closure residuals, sorted, on a logarithmic scale against the tolerance of 1e-6."""
    groups = _by_identity(rows)
    figure, axes = _new_figure(7.0, 3.2)
    for position, (label, members) in enumerate(groups.items()):
        values = np.sort(np.array([row["max_residual"] for row in members], dtype=np.float64))
        shown = np.clip(np.nan_to_num(values, nan=1.0, posinf=1.0), 1e-18, 1.0)
        axes.plot(np.linspace(0, 1, len(shown)), shown, color=PALETTE[position % len(PALETTE)], label=label)
    axes.axhline(1e-6, color="black", linewidth=1, linestyle="--", label="tolerance")
    axes.set_yscale("log")
    axes.set_xlabel("share of rows")
    axes.set_ylabel("worst closure residual")
    axes.legend(frameon=False, fontsize=8)
    return figure


def draw_residual_by_step(by_step: Mapping[str, Sequence[float | None]]) -> Any:
    """Return the worst closure residual of each identity over the steps of its walks; a gap is not finite."""
    figure, axes = _new_figure(7.0, 3.2)
    for position, (label, values) in enumerate(by_step.items()):
        shown = [np.nan if value is None else max(value, 1e-18) for value in values]
        axes.plot(range(len(shown)), shown, color=PALETTE[position % len(PALETTE)], label=label)
    axes.axhline(1e-6, color="black", linewidth=1, linestyle="--", label="tolerance")
    axes.set_yscale("log")
    axes.set_xlabel("step")
    axes.set_ylabel("worst closure residual")
    axes.legend(frameon=False, fontsize=8)
    return figure


def _new_figure(width: float, height: float) -> tuple[Any, Any]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _by_identity(rows: Sequence[Row]) -> dict[str, list[Row]]:
    has_several_languages = len({row["language"] for row in rows}) > 1
    groups: dict[str, list[Row]] = {}
    for row in rows:
        label = f"{row['identity']} ({row['language']})" if has_several_languages else row["identity"]
        groups.setdefault(label, []).append(row)
    return groups
