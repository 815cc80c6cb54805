"""One figure that a person reads at a glance: the anchors as bands, the runs as points, the noise floor as error
bar."""

import os
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.base.errors import ConfigError, UsageError
from engine.instruments.notes import CIRCULARITY, NOT_A_CANDIDATE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BANDS = (("unrelated_band", "0.5"), ("same_genre_band", "tab:orange"), ("top_band", "tab:blue"))
_LANES = (
    "unrelated documents",
    "same genre",
    "selected patterns",
    "every pattern (mean)",
    "shadow runs",
    "mean ± noise floor (sd)",
)
"""The lanes from bottom to top; the first three are the bands above."""

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
    figure = Figure(figsize=(9.0, 5.0), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    _draw_anchors(axes, reading["calibration"])
    _draw_runs(axes, reading)
    axes.axvline(1.0, color="tab:green", linewidth=1.0)
    axes.set_yticks(range(len(_LANES)), labels=_LANES)
    axes.set_ylim(-0.6, len(_LANES) - 0.4)
    axes.grid(axis="x", alpha=0.3)
    axes.set_xlabel(f"cosine to the live constitution, which is 1 ({reading['embedding_model']})")
    axes.set_title(_title(reading))
    figure.supxlabel("\n".join(textwrap.wrap(f"{NOT_A_CANDIDATE}. {CIRCULARITY}", 120)), fontsize="small")
    try:
        figure.savefig(path, dpi=150)
    except OSError as error:
        raise ConfigError(f"{Path(path).name}: cannot be written: {error.strerror}") from None


def _draw_anchors(axes: "Axes", bands: Mapping[str, Any] | None) -> None:
    for lane, (name, colour) in enumerate(_BANDS):
        band = None if bands is None else bands[name]
        if band is not None:
            # A band of one reading has no width; the edge keeps it visible.
            axes.barh(lane, band[1] - band[0], left=band[0], height=0.5, color=colour, alpha=0.5, edgecolor=colour)
    if bands is not None and bands["corpus_mean"] is not None:
        axes.plot([bands["corpus_mean"]], [_LANES.index("every pattern (mean)")], "d", color="tab:blue")


def _draw_runs(axes: "Axes", reading: Mapping[str, Any]) -> None:
    values = [run["cosine"] for run in reading["runs"] if run["cosine"] is not None]
    if not values:
        return
    axes.plot(values, [_LANES.index("shadow runs")] * len(values), "k|", markersize=18)
    sd = reading["noise_floor"]["sd"]
    lane = _LANES.index("mean ± noise floor (sd)")
    axes.errorbar([reading["cosine"]["mean"]], [lane], xerr=None if sd is None else [sd], fmt="kD", capsize=6)


def _title(reading: Mapping[str, Any]) -> str:
    if reading["cosine"] is None:
        return f"shadow constitution: no reading ({reading['verdict']})"
    mean, sd = reading["cosine"]["mean"], reading["noise_floor"]["sd"]
    spread = f" ± {sd:.4f}" if sd is not None else " (one run: wiring proof, not evidence)"
    return f"shadow constitution: cosine {mean:.4f}{spread}"
