"""The runtime: packs composed into a running engine. It is made whole or not at all, and never changed afterwards."""

import os
from collections.abc import Sequence
from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array, Float

from engine.base.precision import require_x64
from engine.field.closure import assert_closed, measure_closure
from engine.generate.tables import step_operators
from engine.identity import IdentityManifold, persona_motor
from engine.language.compile import compile_vocabulary
from engine.runtime.compose import Composition, compose
from engine.runtime.digests import digest_arrays, digest_manifold, digest_values
from engine.runtime.lexis import Lexis, build_lexis
from engine.runtime.proofs import startup_proofs
from engine.runtime.result import ResultTable
from engine.runtime.settings import HERE, Placement, Settings, settings
from engine.safety.check import SafetyCheck
from engine.safety.citations import CitationResolver
from packs.errors import SafetyPackError
from packs.language.model import LanguagePack


@dataclass(frozen=True, eq=False)
class Runtime:
    """A composed engine for one identity and one language.

    Attributes:
      composition: the packs.
      manifold: the identity's axes with the union of identity and safety boundaries.
      lexis: the language at run time.
      persona: the persona motor M, (16,).
      operators: the walk's operator table, `W_B G_r reverse(W_A) M` for every directed edge, (edges, 16).
      check: the safety check; predicates for an identity's own boundaries can be registered on it.
      digests: of manifold, policy, vocabulary and operators, taken when the runtime was made.
    """

    composition: Composition
    manifold: IdentityManifold
    lexis: Lexis
    persona: Float[Array, "16"]
    operators: Float[Array, "edges 16"]
    check: SafetyCheck
    digests: dict[str, str]

    @classmethod
    def load(
        cls,
        identity: str | None = "default_general_v1",
        language: str | None = "en",
        *,
        packs_path: str | os.PathLike[str] | None = None,
    ) -> "Runtime":
        """Load, compose, compile and prove; return a runtime or raise.

        Args:
          identity: id of an identity pack; None means the default pack, since an identity is always loaded.
          language: id of a language pack.
          packs_path: a user's folder of packs (`identity/` and language folders in it). The safety pack has no door.

        Raises:
          SafetyPackError, IdentityPackError, LanguagePackError: a pack cannot be trusted or does not exist.
          PrecisionError: 64-bit types are off.
          VersorClosureError: a persona, word or step motor is no unit versor.
        """
        require_x64()
        return runtime_from(compose(identity, language, packs_path=packs_path))

    @property
    def identity_id(self) -> str:
        """Id of the identity pack."""
        return self.composition.identity.pack_id

    @property
    def language_id(self) -> str:
        """Id of the language pack."""
        return self.composition.language.pack_id

    def current_digests(self) -> dict[str, str]:
        """Return the digests of manifold, policy, vocabulary and operators as they are now."""
        return _digests(self.composition, self.manifold, self.lexis, self.persona, self.operators)

    def evaluate(
        self,
        prompts: Sequence[str | tuple[str, str]],
        *,
        seeds: Sequence[int] = (0,),
        place: Placement = HERE,
        **values: object,
    ) -> ResultTable:
        """Evaluate prompts, texts or (id, text) pairs, as one batch; a row per prompt and seed.

        Keyword arguments are those of `engine.runtime.settings.Settings` (`perturb`, `alpha`, `steps`, `window`,
        `mode`, ...). A prompt that cannot be answered is a row with status `refused` and its reason; the others go on.
        Raises `ConfigError` for a setting, and `SafetyPackError` if the installed safety pack is no longer the one in
        force.
        """
        return evaluate_many([self], prompts, seeds=seeds, place=place, **values)


def evaluate_many(
    runtimes: Sequence[Runtime],
    prompts: Sequence[str | tuple[str, str]],
    *,
    seeds: Sequence[int] = (0,),
    place: Placement = HERE,
    **values: object,
) -> ResultTable:
    """Evaluate prompts under several identities of one language in one compiled program; a row each per seed.

    Rows are ordered by prompt, then runtime, then seed. `place` spreads them over a mesh of devices
    (`engine.field.data_mesh`), of several processes too, where each makes this call with the same arguments and has the
    whole table; and it names a function to be told how far the rows are. Settings and errors as for `Runtime.evaluate`;
    `ConfigError` where the runtimes do not share a language pack.
    """
    from engine.runtime.evaluate import run_batch

    chosen: Settings = settings(seeds, **values)
    return run_batch(tuple(runtimes), prompts, chosen, place)


def runtime_from(composition: Composition) -> Runtime:
    """Return the runtime of a composition, with every motor checked and every start-up proof made."""
    lexis = _lexis(composition.language)
    persona = persona_motor(composition.manifold.axes)
    operators = step_operators(lexis.motors, persona[None])
    everything = jnp.concatenate([persona[None], lexis.motors.words, lexis.motors.relations, operators])
    assert_closed(measure_closure(everything))
    failed = [f"{name}: {report}" for name, report in startup_proofs().items() if not report.upheld]
    if failed:
        raise SafetyPackError(f"no_hot_path_repair does not hold: {failed[0]}")
    manifold = composition.manifold
    return Runtime(
        composition=composition,
        manifold=manifold,
        lexis=lexis,
        persona=persona,
        operators=operators,
        check=SafetyCheck(manifold.boundary_ids, CitationResolver([composition.language])),
        digests=_digests(composition, manifold, lexis, persona, operators),
    )


_LEXES: dict[tuple[str, str, bool], Lexis] = {}


def _lexis(pack: LanguagePack) -> Lexis:
    """Return the run-time form of a language pack; identities of one language share it, since nothing changes it."""
    key = (pack.pack_id, pack.sha256, pack.ratified)
    if key not in _LEXES:
        _LEXES[key] = build_lexis(pack, compile_vocabulary(pack))
    return _LEXES[key]


def _digests(
    composition: Composition, manifold: IdentityManifold, lexis: Lexis, persona: Array, operators: Array
) -> dict[str, str]:
    preferences = manifold.surface_preferences
    policy = {
        "identity": manifold.pack_id,
        "alignment_threshold": manifold.alignment_threshold,
        "boundaries": sorted(manifold.boundary_ids),
        "safety": composition.safety.sha256,
        "preferences": None if preferences is None else repr(preferences),
    }
    return {
        "manifold": digest_manifold(manifold),
        "policy": digest_values(policy),
        "vocabulary": digest_arrays((lexis.motors, lexis.tables)),
        "operators": digest_arrays((persona, operators)),
    }
