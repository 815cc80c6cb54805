"""`core readings shadow-manifold`: axes found in trajectories alone against the live pack's, and pack divergence."""

import argparse
import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from engine.base.command import complain
from engine.cli.instruments import print_json, print_text, progress

if TYPE_CHECKING:
    from engine.instruments.twin import Trajectories
    from engine.runtime import Runtime

_RANDOM_PACKS = 3


def register(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> argparse.ArgumentParser:
    """Add the action to `core readings` and return its parser."""
    parser = actions.add_parser(
        "shadow-manifold",
        help="axes found in the field's trajectories alone, against the live pack's",
        description="Walk prompts under an identity pack, find the axes that the trajectories alone support, and read "
        "them against the pack's own, with the distance to other packs, to the identity-stripped engine and to random "
        "packs beside it.",
        allow_abbrev=False,
    )
    parser.add_argument("--identity", metavar="ID", default="default_general_v1")
    parser.add_argument("--language", metavar="L", default="en")
    parser.add_argument("--against", metavar="ID", action="append", default=[], help="another pack; may be repeated")
    parser.add_argument("--prompts", metavar="FILE", help="prompt file (default: the shipped questions)")
    parser.add_argument("--limit", metavar="N", type=int, help="take the first N prompts only")
    parser.add_argument("--packs-path", metavar="DIR", help="folder of your own packs")
    parser.add_argument("--log", metavar="FILE", help="append the run to this record log")
    parser.set_defaults(handler=_run)
    return parser


def _run(arguments: argparse.Namespace) -> int:
    from engine.base.precision import enable_x64
    from engine.instruments.notes import NOTES
    from engine.instruments.records import append_record
    from engine.instruments.stamp import take_stamp
    from experiments.prompts import load_prompts

    enable_x64()
    stamp = take_stamp()
    prompts = load_prompts(arguments.prompts, arguments.language, arguments.limit)
    document = _measure(arguments, [(prompt.prompt_id, prompt.text) for prompt in prompts])
    record = {
        "ts": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "event": "shadow_manifold",
        "run_id": uuid.uuid4().hex,
        "schema_version": "1.0.0",
        "engine_version": stamp.engine_version,
        "safety_sha256": stamp.safety_sha256,
        "ratified": stamp.ratified,
        **document,
        "notes": dict(NOTES),
    }
    stamp.recheck()
    recorded = append_record(arguments.log, record) if arguments.log else None
    shown = {name: value for name, value in record.items() if name != "motors_b64"} | {"recorded": recorded}
    if arguments.json:
        print_json(shown)
    else:
        print_text(_table(shown))
    if document["verdict"] != "ok":
        complain("core", f"{document['verdict']}: {document['message']}")
    elif recorded is False:
        complain("core", "the record could not be written")
    return 0 if document["verdict"] == "ok" and recorded is not False else 1


def _measure(arguments: argparse.Namespace, prompts: list[tuple[str, str]]) -> dict[str, Any]:
    import numpy as np

    from engine.instruments import twin
    from engine.runtime import Runtime, evaluate_many
    from engine.runtime.baseline import identity_stripped

    live = Runtime.load(arguments.identity, arguments.language, packs_path=arguments.packs_path)
    others = [Runtime.load(name, arguments.language, packs_path=arguments.packs_path) for name in arguments.against]
    stripped = identity_stripped(live)
    # The live pack stands twice: its rerun is the null pair, which has to be bit-identical.
    runtimes = [live, live, stripped, *others, *_random_packs(live, stripped)]
    names = [arguments.identity, "rerun", "identity-stripped", *arguments.against]
    names += [f"random pack {number + 1}" for number in range(_RANDOM_PACKS)]
    progress(f"walking {len(prompts)} prompts under {len(runtimes)} identities")
    table = evaluate_many(runtimes, prompts)
    finite = np.isfinite(table.final_motors).all(axis=1).reshape(len(prompts), len(runtimes)).all(axis=1)
    rows = [int(row) for row in np.flatnonzero(finite)]
    base = {
        "identity": arguments.identity,
        "language": arguments.language,
        "identity_sha256": live.composition.identity.sha256,
        "language_sha256": live.composition.language.sha256,
        "prompt_count": len(prompts),
        "trajectory_count": len(rows),
    }
    if len(rows) < twin.MIN_TRAJECTORIES:
        message = f"{len(rows)} prompts have a trajectory; at least {twin.MIN_TRAJECTORIES} are needed"
        return {"verdict": "insufficient_patterns", "message": message, **base}
    sides = [_side(table, number, len(runtimes), name).select(rows) for number, name in enumerate(names)]
    return {"verdict": "ok", "message": "found from trajectories alone", **base, **_read(live, sides)}


def _read(live: "Runtime", sides: "list[Trajectories]") -> dict[str, Any]:
    import numpy as np

    from engine.instruments import twin

    own, stripped = sides[0], sides[2]
    directions = np.asarray(live.manifold.axes.directions)
    axes = {name: directions[row].tolist() for row, name in enumerate(live.manifold.axis_ids)}
    value = np.asarray(live.manifold.axes.value_vector).tolist()
    reading = twin.read_axes(own.motors, axes, value)
    return {
        **twin.record_fields(own, reading),
        "cosine_vs_value_vector": reading["cosine_vs_value_vector"],
        "matched_axes": reading["matched"],
        "axis_noise": twin.axis_noise(own.motors),
        "anchors": {
            "identity_stripped": twin.read_axes(stripped.motors, axes, value)["cosine_vs_value_vector"],
            "random_directions": twin.random_band(np.array(reading["shadow_axes"])),
        },
        "divergence": [twin.divergence(own, other) for other in sides[1:]],
    }


def _side(table: Any, number: int, count: int, name: str) -> "Trajectories":
    """Return one identity's rows; the table is ordered by prompt, then identity."""
    from engine.instruments.twin import Trajectories

    paths = tuple(tuple(int(t) for t in row if t >= 0) for row in table.token_ids[number::count])
    return Trajectories(name, table.final_motors[number::count], paths)


def _random_packs(live: "Runtime", stripped: "Runtime") -> "list[Runtime]":
    """Return engines with a random persona: axes drawn on the sphere, as many and as heavy as the live pack's."""
    import dataclasses

    import jax.numpy as jnp
    import numpy as np

    from engine.generate.tables import step_operators
    from engine.identity import persona_motor

    generator, packs = np.random.default_rng(7), []
    axes = live.manifold.axes
    lengths = np.linalg.norm(np.asarray(axes.directions), axis=1, keepdims=True)
    for _ in range(_RANDOM_PACKS):
        drawn = generator.normal(size=np.asarray(axes.directions).shape)
        drawn *= lengths / np.linalg.norm(drawn, axis=1, keepdims=True)
        persona = persona_motor(dataclasses.replace(axes, directions=jnp.asarray(drawn)))
        operators = step_operators(live.lexis.motors, persona[None])
        pack = dataclasses.replace(stripped, persona=persona, operators=operators)
        packs.append(dataclasses.replace(pack, digests=pack.current_digests()))
    return packs


def _table(document: dict[str, Any]) -> str:
    from engine.instruments.notes import notes_text

    lines = [
        f"{document['identity']} in {document['language']}: {document['verdict']}",
        f"{document['trajectory_count']} of {document['prompt_count']} prompts have a trajectory",
    ]
    if document["verdict"] == "ok":
        noise, anchors = document["axis_noise"], document["anchors"]
        band = anchors["random_directions"]
        lines += [
            "",
            f"leading shadow axis, |cosine| to the value vector   {document['cosine_vs_value_vector']:.4f}",
            f"noise floor, |cosine| to itself over redrawn prompts 5% {noise['cosine_5_percent']:.4f}, "
            f"median {noise['cosine_median']:.4f}",
            f"anchor: identity-stripped                           {anchors['identity_stripped']:.4f}",
            f"anchor: random directions                           {band['low']:.4f} to {band['high']:.4f}",
            *(f"  {m['cosine']:.4f}  shadow axis {m['shadow'] + 1} ~ {m['axis']}" for m in document["matched_axes"]),
            "",
            f"{'divergence from':<28} {'angle':>8} {'displacement':>13} {'path':>8}",
        ]
        for pair in document["divergence"]:
            values = "".join(f"{pair[name]['mean']:>{width}.4f}" for name, width in _COLUMNS)
            lines.append(f"{pair['sides'][1]:<28}{values}")
    return "\n".join([*lines, "", notes_text()])


_COLUMNS = (("angle", 9), ("displacement", 14), ("path", 9))
