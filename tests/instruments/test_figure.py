"""The figure: drawn for whole, degraded and empty readings, without touching the host's plotting state."""

import sys

import pytest

from engine.base.errors import UsageError
from engine.instruments.figure import draw_reading

BANDS = {"unrelated_band": [0.0, 0.2], "same_genre_band": [0.4, 0.6], "top_band": None, "corpus_mean": 0.3}


def reading(cosines, sd, bands=BANDS):
    known = [value for value in cosines if value is not None]
    return {
        "verdict": "ok" if known else "llm_failure",
        "runs": [{"cosine": value} for value in cosines],
        "noise_floor": {"sd": sd},
        "cosine": {"mean": sum(known) / len(known)} if known else None,
        "calibration": bands,
        "embedding_model": "hashing:512",
    }


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
@pytest.mark.parametrize(
    "content",
    [reading([0.8, 0.82], 0.01), reading([0.8], None), reading([None], None), reading([0.8, None], None, bands=None)],
    ids=["whole", "one run", "no reading", "no anchors"],
)
def test_a_figure_is_drawn(tmp_path, suffix, content):
    path = tmp_path / f"figure{suffix}"
    draw_reading(content, path)
    assert path.stat().st_size > 2000
    assert "matplotlib.pyplot" not in sys.modules or not sys.modules["matplotlib.pyplot"].get_fignums()


@pytest.mark.parametrize("name", ["figure", "figure.gif", "absent/figure.png"])
def test_another_ending_or_folder_is_a_usage_error(tmp_path, name):
    with pytest.raises(UsageError, match="figure"):
        draw_reading(reading([0.8], None), tmp_path / name)
