"""`load_identity_manifold` in this process: the hatch and what it says, drafts, folders, and the common fields."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from packs import strict_json
from packs.errors import IdentityPackError, PackFormatError
from packs.identity import loader
from packs.identity.loader import available_packs, candidate, load_identity_manifold
from packs.identity.schema import parse_body
from packs.safety.schema import parse_body as parse_safety_body
from packs.seal import SEAL_FIELD
from tests.attacks.workspace import IDENTITY_ID, IDENTITY_PACK, OWN, OWN_ID, SAFETY, SAFETY_ID, load_own


@pytest.fixture(autouse=True)
def every_warning_is_seen() -> None:
    loader._warn.cache_clear()


def test_a_pack_cannot_be_changed_once_it_is_loaded() -> None:
    pack = load_identity_manifold(IDENTITY_ID)
    with pytest.raises(dataclasses.FrozenInstanceError):
        pack.alignment_threshold = 0.0  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        parse_body(json.loads(IDENTITY_PACK), stem=IDENTITY_ID).alignment_threshold = 0.0  # type: ignore[misc]
    assert pack.ratified


def test_the_hatch_lets_an_altered_pack_in_says_so_once_and_stamps_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / OWN.pack_name).write_bytes(OWN.pack.replace(b"0.55", b"0.56", 1))
    with pytest.raises(IdentityPackError, match="mastery_report"):
        load_own(tmp_path)
    assert capsys.readouterr().err == ""
    monkeypatch.setenv(loader.UNRATIFIED_VARIABLE, "1")
    assert not load_own(tmp_path).ratified
    assert not load_own(tmp_path).ratified
    warning = capsys.readouterr().err
    assert warning.count("\n") == 1
    assert warning.startswith(f"WARNING: {loader.UNRATIFIED_VARIABLE}=1")
    assert OWN_ID in warning
    # A draft that was never ratified has no seal at all.
    (tmp_path / OWN.pack_name).write_text(json.dumps({**json.loads(OWN.pack), SEAL_FIELD: ""}))
    (tmp_path / OWN.report_name).unlink(missing_ok=True)
    assert not load_own(tmp_path).ratified


@pytest.mark.parametrize("value", ["", "0", "true", "1 ", "11"])
def test_any_other_value_of_the_hatch_is_no_hatch(value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / OWN.pack_name).write_bytes(OWN.pack)
    monkeypatch.setenv(loader.UNRATIFIED_VARIABLE, value)
    with pytest.raises(IdentityPackError, match="mastery_report"):
        load_own(tmp_path)


def test_a_candidate_is_checked_and_never_ratified() -> None:
    draft = {**json.loads(OWN.pack), SEAL_FIELD: ""}
    pack = candidate(OWN_ID, json.dumps(draft).encode())
    assert not pack.ratified
    with pytest.raises(PackFormatError, match="alignment_threshold"):
        candidate(OWN_ID, json.dumps({**draft, "alignment_threshold": 2.0}).encode())


def test_search_paths_are_a_list_of_folders_that_may_be_missing(tmp_path: Path) -> None:
    with pytest.raises(IdentityPackError, match="not one path"):
        available_packs(search_paths=str(tmp_path))
    with pytest.raises(IdentityPackError, match="not one path"):
        load_identity_manifold(IDENTITY_ID, search_paths=tmp_path)  # type: ignore[arg-type]
    shipped = available_packs()
    assert available_packs(search_paths=[tmp_path / "missing"]) == shipped
    OWN.write(tmp_path)
    for name in ("Upper_v1.json", "x" * 70 + ".json", "dotted.v1.json", "notes.txt"):
        (tmp_path / name).write_text("{}")
    assert available_packs(search_paths=[tmp_path]) == tuple(sorted([*shipped, OWN_ID]))
    linked = tmp_path.with_name("linked")
    linked.symlink_to(tmp_path)
    assert load_own(linked).pack_id == OWN_ID
    (tmp_path / "file").write_text("")
    with pytest.raises(IdentityPackError):
        available_packs(search_paths=[tmp_path / "file"])


def test_an_unknown_id_is_answered_with_the_nearest_and_without_any_with_all() -> None:
    with pytest.raises(IdentityPackError, match="nearest: precision_first_v1"):
        load_identity_manifold("precison_first_v1")
    with pytest.raises(IdentityPackError) as caught:
        load_identity_manifold("qqqqq")
    assert all(name in str(caught.value) for name in available_packs())


SEALS = [("abc", False), ("", None), ("0" * 64, True), ("A" * 64, False), (None, False), (0, False)]


@pytest.mark.parametrize(("seal", "sound"), SEALS)
@pytest.mark.parametrize("sealed", [True, False])
def test_the_seal_is_a_digest_or_in_a_draft_empty(seal: Any, sound: bool | None, sealed: bool) -> None:
    expected = (not sealed) if sound is None else sound
    for parse, pack, stem in ((parse_body, OWN.pack, OWN_ID), (parse_safety_body, SAFETY.pack, SAFETY_ID)):
        value = {**strict_json.loads(pack, source="pack"), SEAL_FIELD: seal}
        if expected:
            assert parse(value, stem=stem, sealed=sealed).pack_id == stem
        else:
            with pytest.raises(PackFormatError, match=SEAL_FIELD):
                parse(value, stem=stem, sealed=sealed)


def test_a_body_is_read_as_sealed_unless_it_is_said_to_be_a_draft() -> None:
    for parse, pack, stem in ((parse_body, OWN.pack, OWN_ID), (parse_safety_body, SAFETY.pack, SAFETY_ID)):
        with pytest.raises(PackFormatError, match=SEAL_FIELD):
            parse({**strict_json.loads(pack, source="pack"), SEAL_FIELD: ""}, stem=stem)
