"""Each of the eight gates passes on a good pack and fails on a planted fault; a seal binds pack and report."""

import dataclasses
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from engine.language import gates
from engine.language.build import build_from_tables
from engine.language.compile import compile_vocabulary
from engine.language.gates import Candidate, measure_gates
from engine.language.ratify import ratify_language_folder
from packs import strict_json
from packs.errors import LanguagePackError
from packs.language.gates import REQUIRED_LANGUAGE_GATES
from packs.language.loader import load_language_folder
from scripts.ratify_language_packs import main
from tests.language.tiny import edit, write_table, write_tables


@pytest.fixture(scope="module")
def aligned(tmp_path_factory: pytest.TempPathFactory, built_folder: Path) -> Candidate:
    """A pack aligned to the tiny pack, and the tiny pack as its anchor."""
    root = tmp_path_factory.mktemp("aligned")
    shutil.copytree(built_folder, root / "tiny")
    tables = write_tables(root / "tables")
    lemmas = load_language_folder(root / "tiny", require_seal=False).lemmas
    write_table(tables / "alignment.tsv", "lemma language other strength", [(w, "tiny", w, "0.9") for w in lemmas[:8]])
    pack = build_from_tables(tables, root / "other")
    anchor = load_language_folder(root / "tiny", require_seal=False)
    return Candidate(pack, compile_vocabulary(pack), {"tiny": (anchor, compile_vocabulary(anchor))}, True)


def failing(candidate: Candidate) -> set[str]:
    """Return the names of the gates that fail."""
    return {gate.name for gate in measure_gates(candidate) if not gate.passed}


def test_a_good_pack_passes_all_eight(aligned: Candidate) -> None:
    assert [gate.name for gate in measure_gates(aligned)] == list(REQUIRED_LANGUAGE_GATES)
    assert failing(aligned) == set()


def vocabulary_with(candidate: Candidate, **arrays: object) -> Candidate:
    return dataclasses.replace(candidate, vocabulary=dataclasses.replace(candidate.vocabulary, **arrays))


def pack_with(candidate: Candidate, **parts: object) -> Candidate:
    return dataclasses.replace(candidate, pack=dataclasses.replace(candidate.pack, **parts))


def lost_edge(candidate: Candidate) -> Candidate:
    vocabulary = candidate.vocabulary
    return vocabulary_with(candidate, edges=vocabulary.edges[2:], edge_relations=vocabulary.edge_relations[2:])


def unreadable_lemma(candidate: Candidate) -> Candidate:
    """A lemma that the look-up was never told of."""
    lexicon = (dataclasses.replace(candidate.pack.lexicon[0], lemma="peony"), *candidate.pack.lexicon[1:])
    return pack_with(candidate, lexicon=lexicon)


def stray_form(candidate: Candidate) -> Candidate:
    forms = (dataclasses.replace(candidate.pack.forms[0], form="ships", lemma="rose"), *candidate.pack.forms)
    return pack_with(candidate, forms=forms)


def moving_operator(candidate: Candidate) -> Candidate:
    """An operator that carries a form away from its lemma."""
    motors = candidate.vocabulary.operator_motors
    return vocabulary_with(candidate, operator_motors=motors.at[:].set(candidate.vocabulary.motors[1]))


def broken_motor(candidate: Candidate) -> Candidate:
    return vocabulary_with(candidate, relation_motors=candidate.vocabulary.relation_motors.at[0, 0].add(1e-3))


def nan_motor(candidate: Candidate) -> Candidate:
    return vocabulary_with(candidate, function_motors=candidate.vocabulary.function_motors.at[0, 0].set(np.nan))


def shared_point(candidate: Candidate) -> Candidate:
    vocabulary = candidate.vocabulary
    return vocabulary_with(candidate, points=vocabulary.points.at[1].set(vocabulary.points[0]))


def swapped_points(candidate: Candidate) -> Candidate:
    points = candidate.vocabulary.points
    return vocabulary_with(candidate, points=points[np.array([1, 0, *range(2, len(points))])])


def moved_last_bit(candidate: Candidate) -> Candidate:
    motors = candidate.vocabulary.motors
    return vocabulary_with(candidate, motors=motors.at[3, 1].add(2.0**-53))


def irreproducible(candidate: Candidate) -> Candidate:
    return dataclasses.replace(candidate, is_reproducible=False)


def scrambled_alignment(candidate: Candidate) -> Candidate:
    edges = candidate.pack.alignment
    others = [edge.other for edge in edges[4:] + edges[:4]]
    mixed = tuple(dataclasses.replace(edge, other=other) for edge, other in zip(edges, others, strict=True))
    return pack_with(candidate, alignment=mixed)


def missing_anchor(candidate: Candidate) -> Candidate:
    return dataclasses.replace(candidate, anchors={})


def stale_anchor(candidate: Candidate) -> Candidate:
    manifest = dataclasses.replace(candidate.pack.manifest, anchors={"tiny": "0" * 64})
    return pack_with(candidate, manifest=manifest)


def lonely_word(candidate: Candidate) -> Candidate:
    relations = tuple(r for r in candidate.pack.relations if "rosary" not in (r.head, r.tail))
    return pack_with(candidate, relations=relations)


def silent_relation(candidate: Candidate) -> Candidate:
    return pack_with(candidate, templates=candidate.pack.templates[1:])


PLANTED: list[tuple[str, Callable[[Candidate], Candidate]]] = [
    ("schema", lost_edge),
    ("lexical", unreadable_lemma),
    ("morphology", stray_form),
    ("morphology", moving_operator),
    ("lift", broken_motor),
    ("lift", nan_motor),
    ("lift", shared_point),
    ("readback", swapped_points),
    ("determinism", moved_last_bit),
    ("determinism", irreproducible),
    ("alignment", scrambled_alignment),
    ("alignment", missing_anchor),
    ("alignment", stale_anchor),
    ("coverage", lonely_word),
    ("coverage", silent_relation),
]


@pytest.mark.parametrize(("gate", "plant"), PLANTED, ids=[f"{gate}: {plant.__name__}" for gate, plant in PLANTED])
def test_every_gate_can_fail(aligned: Candidate, gate: str, plant: Callable[[Candidate], Candidate]) -> None:
    measure: Callable[[Candidate], float] = getattr(gates, f"measure_{gate}")
    assert not measure(plant(aligned)) >= REQUIRED_LANGUAGE_GATES[gate]


def test_every_gate_has_a_planted_fault() -> None:
    assert {gate for gate, _ in PLANTED} == set(REQUIRED_LANGUAGE_GATES)


# --- sealing ---


@pytest.fixture(scope="module")
def ratified_folder(built_folder: Path, tables_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = shutil.copytree(built_folder, tmp_path_factory.mktemp("ratified") / "tiny")
    assert ratify_language_folder(folder, tables=tables_folder, issued_at="2026-01-01T00:00:00Z").ratified
    return folder


@pytest.fixture
def sealed(ratified_folder: Path, tmp_path: Path) -> Path:
    """A copy of the ratified pack that a test may damage."""
    return shutil.copytree(ratified_folder, tmp_path / "tiny")


def test_a_ratified_pack_loads_and_says_so(sealed: Path) -> None:
    assert load_language_folder(sealed).ratified


def test_ratifying_again_changes_nothing(sealed: Path) -> None:
    before = {path.name: path.read_bytes() for path in sealed.glob("*.json")}
    outcome = ratify_language_folder(sealed)
    assert outcome.ratified
    assert not outcome.written
    assert {path.name: path.read_bytes() for path in sealed.glob("*.json")} == before


def test_rebuilding_an_unchanged_pack_keeps_its_seal(sealed: Path, tables_folder: Path) -> None:
    build_from_tables(tables_folder, sealed)
    assert load_language_folder(sealed).ratified


def test_rebuilding_a_changed_pack_drops_its_seal(sealed: Path, tmp_path: Path) -> None:
    tables = write_tables(tmp_path / "tables")
    manifest = tables / "manifest.tsv"
    manifest.write_text(manifest.read_text("utf-8").replace("1.0.0", "1.0.1"), "utf-8")
    build_from_tables(tables, sealed)
    assert not (sealed / "tiny.mastery_report.json").exists()
    with pytest.raises(LanguagePackError, match="not ratified"):
        load_language_folder(sealed)


def forge_gate(report: dict[str, object]) -> None:
    report["gates"][0]["measurement"] = 0.5  # type: ignore[index]


def claim_ratified(report: dict[str, object]) -> None:
    report["gates"] = report["gates"][:7]  # type: ignore[index]


@pytest.mark.parametrize("change", [forge_gate, claim_ratified])
def test_a_report_that_was_touched_is_refused(sealed: Path, change: Callable[[dict[str, object]], None]) -> None:
    path = sealed / "tiny.mastery_report.json"
    report = json.loads(path.read_bytes())
    change(report)
    path.write_bytes(strict_json.file_bytes(report))
    with pytest.raises(LanguagePackError, match="altered since it was sealed"):
        load_language_folder(sealed)


def test_a_part_changed_with_its_digest_breaks_the_seal(sealed: Path) -> None:
    edit(sealed, "lexicon.json", lambda value: value["lexemes"][0].update(gloss="a weed"))
    with pytest.raises(LanguagePackError, match="not the one that was ratified"):
        load_language_folder(sealed)
    assert not load_language_folder(sealed, require_seal=False).ratified


def test_a_pack_that_fails_is_left_alone_and_told_why(pack_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edit(
        pack_folder,
        "lexicon.json",
        lambda value: value["lexemes"].append(
            {"lemma": "orphan", "pos": "noun", "gloss": "", "domain": "garden", "root": ""}
        ),
    )
    before = (pack_folder / "manifest.json").read_bytes()
    assert main([str(pack_folder)]) == 1
    assert "coverage: 0.9231 is below 1" in capsys.readouterr().err
    assert (pack_folder / "manifest.json").read_bytes() == before


def test_a_pack_that_does_not_load_fails_every_gate(pack_folder: Path) -> None:
    (pack_folder / "lexicon.json").unlink()
    outcome = ratify_language_folder(pack_folder)
    assert not outcome.ratified
    assert all(gate.measurement == 0.0 for gate in outcome.gates)
    assert "lexicon.json" in outcome.failure_reasons[0]


def test_a_changed_table_fails_determinism(pack_folder: Path, tmp_path: Path) -> None:
    tables = write_tables(tmp_path / "tables")
    lexicon = tables / "lexicon.tsv"
    lexicon.write_text(lexicon.read_text("utf-8").replace("a kind of", "some sort of", 1), "utf-8")
    outcome = ratify_language_folder(pack_folder, tables=tables)
    assert [reason.split(":")[0] for reason in outcome.failure_reasons] == ["determinism"]
