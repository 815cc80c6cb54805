"""A batch of prompts under the shipped packs: rows, refusals, seeds, swept numbers, and what may not change."""

import dataclasses
import json
from importlib import resources

import numpy as np
import pytest

import engine.runtime.compose as compose_module
import engine.runtime.evaluate as evaluate_module
import engine.runtime.rows as rows_module
from engine.base.errors import ConfigError, VersorClosureError
from engine.generate.admissibility import padded_size
from engine.generate.surface import Speaker
from engine.runtime import COLUMNS, Runtime, evaluate_many
from engine.runtime.programs import WALKS
from engine.safety.check import SafetyCheck, Status
from engine.safety.citations import CitationResolver
from packs.errors import IdentityPackError, LanguagePackError, SafetyPackError
from packs.safety.loader import REQUIRED_BOUNDARIES
from tests.runtime.conftest import IDENTITIES

PROMPTS = [
    "What is truth?",
    "How does knowledge differ from opinion?",
    "Does truth require coherence?",
    "What is zzyzx?",
    "   ",
    "What is wisdom?",
]


@pytest.fixture(scope="module")
def table(runtimes):
    return evaluate_many(runtimes, PROMPTS)


@pytest.fixture(scope="module")
def shipped(runtimes):
    """The shipped questions under the three packs."""
    text = resources.files("configs").joinpath("prompts/questions.txt").read_text("utf-8")
    questions = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return evaluate_many(runtimes, questions)


def by_identity(table, name):
    return {identity: [row[name] for row in table.select(identity=identity)] for identity in IDENTITIES}


def test_every_prompt_has_a_row_under_every_identity(table):
    assert len(table) == len(PROMPTS) * len(IDENTITIES)
    assert [row["prompt_id"] for row in table.select(identity=IDENTITIES[1])] == [f"{n:04d}" for n in range(1, 7)]
    for row in table:
        assert tuple(row) == COLUMNS
        assert all(isinstance(value, str | int | float | bool | None) for value in row.values())
    assert table.token_ids.shape == (len(table), 12)
    assert table.residuals.shape == (len(table), 13)


def test_a_prompt_that_cannot_be_answered_is_a_row_and_the_others_go_on(table):
    status = dict(
        zip(PROMPTS, [(r["status"], r["refusal"]) for r in table.select(identity=IDENTITIES[0])], strict=True)
    )
    assert status["What is zzyzx?"] == ("refused", "no_known_word")
    assert status["   "] == ("refused", "empty_text")
    assert status["What is truth?"] == ("ok", None)
    assert [incident.shown_in for incident in table.incidents] == ["prompt 0005: refusal"]


def test_answers_are_about_what_was_asked_and_cite_what_states_it(table):
    row = table.select(prompt="Does truth require coherence?", identity=IDENTITIES[0])[0]
    (citation,) = json.loads(row["citations"])
    assert (citation["head"], citation["relation"], citation["tail"]) == ("truth", "requires", "coherence")
    assert row["surface"].endswith("equires coherence.")
    for row, claims in zip(table.rows, table.claims, strict=True):
        assert (row["status"] == "ok") == bool(claims)


def test_verdicts_cover_every_boundary_of_safety_and_identity(table):
    for row, verdicts in zip(table.rows, table.verdicts, strict=True):
        status = {verdict.boundary: verdict.status for verdict in verdicts}
        assert status.keys() >= REQUIRED_BOUNDARIES
        assert ("no_overstatement" in status) == (row["identity"] == "precision_first_v1")
        if "no_overstatement" in status:
            assert status["no_overstatement"] is Status.NOT_CHECKABLE
        if row["status"] == "ok":
            assert {status[name] for name in REQUIRED_BOUNDARIES} == {Status.UPHELD}


def test_the_shipped_packs_really_differ(shipped):
    for values in by_identity(shipped, "alignment").values():
        known = [value for value in values if value is not None]
        assert min(known) < 0.3
        assert max(known) > 0.9
        assert np.std(known) > 0.15
    tokens, surfaces = by_identity(shipped, "tokens"), by_identity(shipped, "surface")
    answered = [s == "ok" for s in by_identity(shipped, "status")[IDENTITIES[0]]]
    for other in IDENTITIES[1:]:
        for values, share in ((tokens, 0.5), (surfaces, 0.3)):
            pairs = zip(values[IDENTITIES[0]], values[other], answered, strict=True)
            assert np.mean([a != b for a, b, known in pairs if known]) > share


def test_seeds_without_perturbation_are_bit_identical_and_with_it_are_not(runtime):
    still = runtime.evaluate(PROMPTS[:3], seeds=(0, 1, 4_294_967_295))
    motors = still.final_motors.reshape(3, 3, 16)
    assert np.array_equal(motors, np.broadcast_to(motors[:, :1], motors.shape))
    for name in ("tokens", "alignment", "surface", "final_motor", "max_residual"):
        values = np.array(still.column(name), dtype=object).reshape(3, 3)
        assert (values == values[:, :1]).all()
    moved = runtime.evaluate(PROMPTS[:3], seeds=(0, 1, 4_294_967_295), perturb=1e-3)
    again = moved.final_motors.reshape(3, 3, 16)
    assert np.abs(again[:, 0] - again[:, 1]).max() > 1e-6
    # First word: the perturbation is small, so that the start moves by about its size.
    assert np.abs(np.array(moved.column("alignment")) - np.array(still.column("alignment"))).max() > 0
    assert all(row["max_residual"] < 1e-12 for row in moved)


def test_a_perturbation_does_not_depend_on_the_batch(runtime):
    alone = runtime.evaluate([PROMPTS[1]], seeds=(7,), perturb=0.1)
    among = runtime.evaluate(PROMPTS[:3], seeds=(3, 7), perturb=0.1)
    assert alone.rows[0]["tokens"] == among.rows[3]["tokens"]
    # Programs of two batch sizes may round differently; the motors are the same motion.
    assert np.allclose(alone.final_motors[0], among.final_motors[3], atol=1e-12)


def test_alpha_changes_the_result_and_word_order_too(runtime):
    alignments = [runtime.evaluate(["What is truth?"], alpha=alpha).rows[0]["alignment"] for alpha in (0.0, 0.3, 1.0)]
    assert len({round(value, 6) for value in alignments}) == 3
    assert alignments[0] == pytest.approx(1.0, abs=1e-12), "at alpha 0 the way back undoes the way out"
    one, other = runtime.evaluate(["truth and trust", "trust and truth"]).final_motors
    assert np.abs(one - other).max() > 1e-3


def test_no_pack_prompt_or_swept_number_traces_the_walk_again(runtimes):
    for identity in runtimes:
        identity.evaluate(PROMPTS[:3])
    before = WALKS.traces
    for number, identity in enumerate(runtimes):
        identity.evaluate(PROMPTS[number:], alpha=0.1 * number, perturb=0.01 * number, seeds=(number,))
        identity.evaluate(PROMPTS[:2], settle_margin=0.1 * number, min_steps=number, mode="ranked", margin=0.2 * number)
    assert WALKS.traces == before


def test_a_larger_batch_in_chunks_is_the_same_as_one_by_one(runtime, monkeypatch):
    monkeypatch.setattr(evaluate_module, "CHUNK", padded_size(1, least=8))
    table = runtime.evaluate(PROMPTS[:3], seeds=tuple(range(5)))
    assert len(table) == 15
    single = runtime.evaluate(PROMPTS[:3])
    assert table.column("tokens")[::5] == single.column("tokens")
    assert np.array_equal(table.final_motors[::5], single.final_motors)


def test_an_empty_batch_is_an_empty_table(runtime):
    table = runtime.evaluate([])
    assert len(table) == 0
    assert table.final_motors.shape == (0, 16)


@pytest.mark.parametrize(
    "values",
    [
        {"alpha": 1.5},
        {"alpha": float("nan")},
        {"perturb": -1.0},
        {"steps": 0},
        {"window": True},
        {"seeds": ()},
        {"seeds": (-1,)},
        {"mode": "nearest"},
        {"weight": 1.0},
    ],
)
def test_settings_that_do_not_hold_are_refused(runtime, values):
    with pytest.raises(ConfigError):
        runtime.evaluate(PROMPTS[:1], **values)


def test_one_text_is_not_a_list_of_prompts(runtime):
    with pytest.raises(ConfigError, match="list of prompts"):
        runtime.evaluate("What is truth?")


def test_the_safety_pack_is_looked_at_when_a_run_starts_and_when_it_ends(runtime):
    genuine, calls = runtime.composition.safety, []
    other = dataclasses.replace(genuine, sha256="f" * 64)

    def swapped_after(looks):
        def reload():
            calls.append(looks)
            return genuine if len(calls) <= looks else other

        return reload

    for looks in (0, 1):
        calls.clear()
        composition = dataclasses.replace(runtime.composition, reload=swapped_after(looks))
        with pytest.raises(SafetyPackError, match="changed while the engine ran"):
            dataclasses.replace(runtime, composition=composition).evaluate(PROMPTS[:1])
        assert len(calls) == looks + 1


def test_load_refuses_what_is_not_there():
    with pytest.raises(LanguagePackError):
        Runtime.load("default_general_v1", None)
    with pytest.raises(LanguagePackError):
        Runtime.load("default_general_v1", "null")
    with pytest.raises(IdentityPackError, match="precision_first_v1"):
        Runtime.load("precision_fist_v1")
    with pytest.raises(ConfigError):
        Runtime.load(packs_path="/nowhere/at/all")
    with pytest.raises(TypeError):
        Runtime.load(safety="core_safety_axes_v1")


@pytest.mark.parametrize("absent", [None, "", "null"])
def test_an_absent_identity_is_the_default_one(runtime, monkeypatch, absent):
    monkeypatch.setattr(compose_module, "load_language_pack", lambda *_, **__: runtime.composition.language)
    assert compose_module.compose(absent, "en").identity.pack_id == "default_general_v1"


def test_what_was_digested_at_the_start_has_not_moved(runtimes, shipped):
    for runtime in runtimes:
        assert runtime.current_digests() == runtime.digests
    assert len({runtime.digests["operators"] for runtime in runtimes}) == 3
    assert len({runtime.digests["vocabulary"] for runtime in runtimes}) == 1


SEAMS = {
    "prepare": (evaluate_module, "prepare"),
    "encode_prompts": (evaluate_module, "encode_prompts"),
    "start_motors": (evaluate_module, "start_motors"),
    "read_motors": (evaluate_module, "read_motors"),
    "write_rows": (evaluate_module, "write_rows"),
    "startup_proofs": (evaluate_module, "startup_proofs"),
    "the walk's program": (WALKS, "get"),
    "choose_hedge": (rows_module, "choose_hedge"),
    "the speaker": (Speaker, "say"),
    "the check": (SafetyCheck, "judge"),
    "the citations": (CitationResolver, "fault"),
    "the digests": (Runtime, "current_digests"),
}


@pytest.mark.parametrize("seam", sorted(SEAMS))
def test_a_fault_at_any_seam_comes_out_as_itself(runtime, monkeypatch, seam):
    def fail(*_, **__):
        raise VersorClosureError("planted")

    monkeypatch.setattr(*SEAMS[seam], fail)
    with pytest.raises(VersorClosureError, match="planted"):
        runtime.evaluate(PROMPTS[:1])


def test_a_default_phrase_is_entered_in_the_account(runtime, monkeypatch):
    monkeypatch.setattr(Speaker, "lacks", lambda self, key: True)
    table = runtime.evaluate(["What is zzyzx?"])
    (incident,) = table.incidents
    assert (incident.kind.value, incident.shown_in) == ("fallback", "prompt 0001: surface")
