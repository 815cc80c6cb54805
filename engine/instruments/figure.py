"""One figure that a person reads at a glance: the anchors as bands, the runs as points, the noise floor as error
bar."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.base.errors import ConfigError, UsageError
from engine.instruments.notes import NOT_A_CANDIDATE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BANDS = (
    ("unrelated_band", "unrelated documents", "0.55"),
    ("same_genre_band", "same genre", "tab:orange"),
    ("top_band", "selected patterns", "tab:blue"),
)
_SUFFIXES = (".png", ".svg", ".pdf")


def check_figure_path(path: str | os.PathLike[str]) -> None:
    """Raise `UsageError` unless `path` ends in .png, .svg or .pdf and its folder is there: before minutes are spent."""
    if Path(path).suffix.lower() not in _SUFFIXES:
        raise UsageError(f"a figure is written as {', '.join(_SUFFIXES)}: {Path(path).name!r} has another ending")
    if not Path(path).parent.is_dir():
        raise UsageError(f"the folder of the figure {Path(path).name!r} is not there")


def draw_reading(reading: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Draw what `report.read_runs` returned into `path`. Raises `UsageError` for the path, `ConfigError` for the
    disk."""
    check_figure_path(path)
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    # No pyplot: its state is global, and a figure of ours must not appear among the host's.
    figure = Figure(figsize=(8.0, 4.8), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    _draw_bands(axes, reading["calibration"])
    _draw_runs(axes, reading)
    axes.set_yticks([])
    axes.set_ylim(0.0, 1.0)
    axes.set_xlabel(f"cosine to the live constitution ({reading['embedding_model']})")
    axes.set_title(_title(reading))
    axes.legend(loc="upper left", fontsize="small")
    note = f"{NOT_A_CANDIDATE}\nConvergence is partly circular; see the notes of the reading."
    figure.supxlabel(note, fontsize="small")
    try:
        figure.savefig(path, dpi=150)
    except OSError as error:
        raise ConfigError(f"{Path(path).name}: cannot be written: {error.strerror}") from None


def _draw_bands(axes: "Axes", bands: Mapping[str, Any] | None) -> None:
    if bands is None:
        return
    for name, label, colour in _BANDS:
        if bands[name] is not None:
            axes.axvspan(*bands[name], color=colour, alpha=0.3, label=label)
    if bands["corpus_mean"] is not None:
        axes.axvline(bands["corpus_mean"], color="tab:blue", linestyle=":", label="corpus mean")


def _draw_runs(axes: "Axes", reading: Mapping[str, Any]) -> None:
    values = [run["cosine"] for run in reading["runs"] if run["cosine"] is not None]
    if not values:
        axes.text(0.5, 0.5, f"no reading: {reading['verdict']}", ha="center", transform=axes.transAxes)
        return
    heights = [0.5 + 0.3 * (index + 1) / (len(values) + 1) for index in range(len(values))]
    axes.plot(values, heights, "k.", label=f"shadow runs ({len(values)})")
    sd = reading["noise_floor"]["sd"]
    mean = reading["cosine"]["mean"]
    spread = None if sd is None else [sd]
    axes.errorbar([mean], [0.35], xerr=spread, fmt="kD", capsize=5, label="mean and noise floor (sd)")
    axes.axvline(1.0, color="tab:green", label="the live text itself")


def _title(reading: Mapping[str, Any]) -> str:
    if reading["cosine"] is None:
        return "shadow constitution: no reading"
    mean, sd = reading["cosine"]["mean"], reading["noise_floor"]["sd"]
    spread = f" ± {sd:.4f}" if sd is not None else " (one run: wiring proof, not evidence)"
    return f"shadow constitution: cosine {mean:.4f}{spread}"
