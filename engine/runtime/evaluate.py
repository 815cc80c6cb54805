"""One evaluation: prepare prompts on the host, run every row in one program per shape bucket, judge, and tell.

The safety pack is looked at when a run starts and when it ends, and so are the digests of what a run may not change.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Array
from numpy.typing import NDArray

from engine.base.errors import ConfigError
from engine.field.mesh import padded_rows, place_rows, place_whole, to_host
from engine.generate.admissibility import RegionTable, padded_size
from engine.generate.tables import WalkTables
from engine.generate.walk import WalkReason, WalkRows
from engine.identity import ValueAxes
from engine.language.encode import bucket_length
from engine.runtime.compose import recheck_safety
from engine.runtime.programs import WALKS, encode_prompts, read_motors, start_motors
from engine.runtime.prompts import PreparedPrompt, named_prompts, prepare
from engine.runtime.proofs import startup_proofs
from engine.runtime.result import ResultTable
from engine.runtime.rows import Outcome, RunRecord, write_rows
from engine.runtime.runtime import Runtime
from engine.runtime.settings import Placement, Settings
from engine.safety.account import Account
from engine.safety.hotpath import HotPathReport

CHUNK = 4096
"""Rows that one call of the compiled programs handles on a device; larger batches run chunk after chunk."""


@dataclass(frozen=True)
class _Batch:
    """What all rows share: prompt motors, stacked identities, operator table, regions."""

    mesh: Mesh | None
    prompts: Array
    personas: Array
    axes: ValueAxes
    operators: Array
    tables: WalkTables
    regions: RegionTable
    first_region: NDArray[np.int32]
    starts: NDArray[np.int32]
    keys: NDArray[np.uint32]


def run_batch(
    runtimes: tuple[Runtime, ...],
    prompts: Sequence[str | tuple[str, str]],
    settings: Settings,
    place: Placement,
) -> ResultTable:
    """Evaluate prompts under every runtime and seed. See `engine.runtime.runtime.evaluate_many`."""
    _require_one_language(runtimes)
    for runtime in runtimes:
        recheck_safety(runtime.composition)
    before = [{**runtime.digests} for runtime in runtimes]
    account = Account()
    lexis = runtimes[0].lexis
    prepared = [prepare(prompt_id, text, lexis, account) for prompt_id, text in named_prompts(prompts)]
    walked = [number for number, prompt in enumerate(prepared) if prompt.refusal is None]
    outcomes, proofs = _walk_all(runtimes, [prepared[number] for number in walked], settings, place)
    for runtime in runtimes:
        recheck_safety(runtime.composition)
    record = RunRecord(
        runtimes=runtimes,
        prepared=tuple(prepared),
        settings=settings,
        outcomes=dict(zip(walked, outcomes, strict=True)),
        digests_before=tuple(before),
        digests_after=tuple(runtime.current_digests() for runtime in runtimes),
        proofs={**startup_proofs(), **proofs},
        account=account,
    )
    return write_rows(record)


def _require_one_language(runtimes: tuple[Runtime, ...]) -> None:
    if not runtimes:
        raise ConfigError("at least one runtime is needed")
    digests = {runtime.composition.language.sha256 for runtime in runtimes}
    if len(digests) > 1:
        raise ConfigError("runtimes of different language packs cannot share a batch; evaluate them one by one")


def _walk_all(
    runtimes: tuple[Runtime, ...], prompts: list[PreparedPrompt], settings: Settings, place: Placement
) -> tuple[list[list[Outcome]], dict[str, HotPathReport]]:
    """Return, for each prompt, its outcomes by (runtime, seed), and the proofs of the walks that ran."""
    per_prompt = len(runtimes) * len(settings.seeds)
    if not prompts:
        return [], {}
    batch = _share(runtimes, prompts, settings, place.mesh)
    total = len(prompts) * per_prompt
    outcomes: list[Outcome] = []
    proofs: dict[str, HotPathReport] = {}
    # A chunk of the same number of rows on each device, so that a device of many has no more to hold than one alone.
    devices = 1 if place.mesh is None else place.mesh.size
    size = padded_rows(min(CHUNK * devices, padded_size(total, least=8)), place.mesh)
    for begin in range(0, total, size):
        rows = np.arange(begin, min(begin + size, total))
        found, report = _walk_chunk(batch, rows, size, len(runtimes), settings)
        if place.progress is not None:
            place.progress(int(rows[-1]) + 1, total)
        proofs["walk"] = report if "walk" not in proofs or proofs["walk"].upheld else proofs["walk"]
        outcomes.extend(found)
    grouped = [outcomes[at : at + per_prompt] for at in range(0, total, per_prompt)]
    return grouped, proofs


def _share(
    runtimes: tuple[Runtime, ...], prompts: list[PreparedPrompt], settings: Settings, mesh: Mesh | None
) -> _Batch:
    """Encode the prompts and stack what differs between identities."""
    lexis = runtimes[0].lexis
    stacked = padded_size(len(runtimes), least=1)
    padded = [*runtimes, *[runtimes[0]] * (stacked - len(runtimes))]
    distinct = list(dict.fromkeys(prompt.region for prompt in prompts))
    number = {region: index + 1 for index, region in enumerate(distinct)}
    operators = [runtime.operators for runtime in padded]
    axes = jax.tree.map(lambda *leaves: jnp.stack(leaves), *[runtime.manifold.axes for runtime in padded])
    return _Batch(
        mesh=mesh,
        prompts=_whole(mesh, _encode(prompts, settings.alpha)),
        personas=_whole(mesh, jnp.stack([runtime.persona for runtime in padded])),
        axes=_whole(mesh, axes),
        operators=_whole(mesh, operators[0] if stacked == 1 else jnp.concatenate(operators)),
        tables=_whole(mesh, lexis.tables),
        regions=_whole(mesh, lexis.lower(distinct)),
        first_region=np.array([number[prompt.region] for prompt in prompts], np.int32),
        starts=np.array([prompt.start for prompt in prompts], np.int32),
        keys=np.array([_key(prompt) for prompt in prompts], np.uint32),
    )


def _encode(prompts: list[PreparedPrompt], alpha: float) -> Array:
    """Return the prompts' holonomy motors, (padded prompts, 16); words and prompts are padded with the identity."""
    length = bucket_length(max(len(prompt.motors) for prompt in prompts))
    motors = np.zeros((padded_size(len(prompts), least=8), length, 16))
    motors[..., 0] = 1.0
    for row, prompt in enumerate(prompts):
        motors[row, : len(prompt.motors)] = prompt.motors
    return encode_prompts(jnp.asarray(motors), jnp.asarray(np.float64(alpha)))


def _key(prompt: PreparedPrompt) -> int:
    """Return 32 bits of the text's digest: a prompt's perturbation does not depend on its place in a batch."""
    return int.from_bytes(sha256(prompt.text.encode("utf-8", "surrogatepass")).digest()[:4], "big")


def _walk_chunk(
    batch: _Batch, rows: NDArray[np.int64], size: int, identities: int, settings: Settings
) -> tuple[list[Outcome], HotPathReport]:
    seeds = np.array(settings.seeds, np.uint32)
    prompt, rest = np.divmod(rows, identities * len(seeds))
    identity, seed = np.divmod(rest, len(seeds))
    regions = np.zeros((size, settings.steps), np.int32)
    regions[: len(rows), 0] = batch.first_region[prompt]
    keys = np.stack([seeds[seed], batch.keys[prompt]], axis=1)
    start = np.full(size, -1, np.int32)
    start[: len(rows)] = batch.starts[prompt]
    placed: Any = place_rows(
        batch.mesh,
        (_pad(identity.astype(np.int32), size), _pad(prompt.astype(np.int32), size), _pad(keys, size), start, regions),
    )
    which, prompt_of, keys_of, start_of, regions_of = placed
    perturb, policy, window = _whole(
        batch.mesh, (np.float64(settings.perturb), settings.policy(), np.zeros(settings.window, np.int32))
    )
    motors = start_motors(batch.prompts, batch.personas, prompt_of, which, keys_of, perturb)
    walk_rows = WalkRows(motors, start_of, which, regions_of)
    arguments = (walk_rows, batch.operators, batch.tables, batch.regions, policy, window)
    program = WALKS.get(*arguments)
    result = program.compiled(*arguments)
    reading = read_motors(batch.axes, which, result.motor)
    result, reading = to_host((result, reading))
    return [_outcome(result, reading, row) for row in range(len(rows))], program.report


def _whole(mesh: Mesh | None, tree: Any) -> Any:
    """Return a tree that every device holds; without a mesh it is where it is."""
    return jax.tree.map(jnp.asarray, tree) if mesh is None else place_whole(mesh, tree)


def _pad(values: NDArray, size: int) -> NDArray:
    return np.concatenate([values, np.zeros((size - len(values), *values.shape[1:]), values.dtype)])


def _outcome(result: Any, reading: Any, row: int) -> Outcome:
    """Return one row of a `WalkResult` and an `IdentityReading` whose leaves are NumPy arrays."""
    length = int(result.length[row])
    return Outcome(
        token_ids=result.tokens[row],
        edges=tuple(int(edge) for edge in result.edges[row][:length]),
        motor=result.motor[row],
        reason=WalkReason(int(result.reason[row])),
        residuals=result.residuals[row],
        max_residual=float(result.closure.max_residual[row]),
        first_violation=int(result.closure.first_violation[row]),
        closed=bool(result.closure.ok[row]),
        alignment=float(reading.alignment[row]),
        axis_alignments=reading.axis_alignments[row],
        deviating=reading.deviating[row],
        leakage=float(reading.leakage[row]),
        flagged=bool(reading.flagged[row]),
    )
