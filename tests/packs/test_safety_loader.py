"""`load_safety_pack()` in this process: variables, the hatch and where it works, and what the result says."""

from pathlib import Path

import pytest

from packs.errors import IdentityPackError, PackFormatError, SafetyOverrideError, SafetyPackError
from packs.identity import loader as identity_loader
from packs.safety import loader, pinned
from packs.safety.loader import check_floor, is_source_checkout, load_safety_pack, refuse_variables
from tests.attacks.workspace import OWN, OWN_ID, SAFETY, edited, layout, load_own


@pytest.fixture(autouse=True)
def every_warning_is_seen() -> None:
    loader._warn.cache_clear()
    identity_loader._warn.cache_clear()


def test_a_variable_that_picks_a_pack_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORE_SAFETY_PACK_ANY", "")
    with pytest.raises(SafetyOverrideError, match="CORE_SAFETY_PACK_ANY"):
        load_safety_pack()


def test_other_variables_are_none_of_the_loaders_business() -> None:
    refuse_variables({"CORE_SAFETY": "1", "MY_CORE_SAFETY_PACK": "1", "CORE_SAFE_PACK": "1"})


def test_the_hatch_says_so_once_and_in_the_result(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(loader, "is_source_checkout", lambda root: True)
    monkeypatch.setenv("CORE_ALLOW_UNRATIFIED_SAFETY", "1")
    first, second = load_safety_pack(), load_safety_pack()
    assert not first.ratified
    assert not second.ratified
    assert first.sha256 == pinned.PACK_SHA256
    warning = capsys.readouterr().err
    assert warning.count("\n") == 1
    assert warning.startswith("WARNING: CORE_ALLOW_UNRATIFIED_SAFETY=1")
    assert "NOT checked" in warning


@pytest.mark.parametrize("value", ["", "0", "true", "1 ", "11", "\uff11"])
def test_any_other_value_of_the_hatch_is_no_hatch(
    value: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(loader, "is_source_checkout", lambda root: True)
    monkeypatch.setenv("CORE_ALLOW_UNRATIFIED_SAFETY", value)
    assert load_safety_pack().ratified
    assert capsys.readouterr().err == ""


def test_outside_a_checkout_the_hatch_has_no_effect_and_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[Path] = []

    def ask(root: Path) -> bool:
        asked.append(root)
        return False

    monkeypatch.setattr(loader, "is_source_checkout", ask)
    monkeypatch.setenv("CORE_ALLOW_UNRATIFIED_SAFETY", "1")
    assert load_safety_pack().ratified
    assert "has no effect outside a source checkout" in capsys.readouterr().err
    assert asked == [loader.INSTALLED_FOLDER.parent.parent]


def test_without_a_hatch_nothing_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert load_safety_pack().ratified
    assert capsys.readouterr().err == ""


def test_a_checkout_has_its_project_file_and_git_and_is_no_site_folder(tmp_path: Path) -> None:
    assert not is_source_checkout(tmp_path)
    (tmp_path / ".git").mkdir()
    assert not is_source_checkout(tmp_path)
    (tmp_path / "pyproject.toml").write_text("")
    assert is_source_checkout(tmp_path)
    (tmp_path / ".git").rmdir()
    assert not is_source_checkout(tmp_path)
    # A worktree has a file in the folder's place.
    (tmp_path / ".git").write_text("gitdir: elsewhere")
    assert is_source_checkout(tmp_path)
    for name in ("site-packages", "dist-packages"):
        site = tmp_path / name
        (site / ".git").mkdir(parents=True)
        (site / "pyproject.toml").write_text("")
        assert not is_source_checkout(site)


def test_under_the_hatch_the_draft_may_have_another_name_but_not_company(tmp_path: Path) -> None:
    pin = (pinned.PACK_ID, pinned.PACK_SHA256)
    draft = layout(edited(SAFETY.pack, lambda pack: pack.update(pack_id="core_safety_axes_v2")))
    (tmp_path / "core_safety_axes_v2.json").write_bytes(draft)
    assert loader.load_folder(tmp_path, pin=pin, unratified=True).pack_id == "core_safety_axes_v2"
    with pytest.raises(SafetyPackError, match=r"core_safety_axes_v1\.json is missing"):
        loader.load_folder(tmp_path, pin=pin)
    (tmp_path / "other.json").write_bytes(draft)
    with pytest.raises(SafetyPackError, match="2 packs in the folder"):
        loader.load_folder(tmp_path, pin=pin, unratified=True)
    (tmp_path / "other.json").rename(tmp_path / "other.mastery_report.json")
    with pytest.raises(SafetyPackError, match="has no place beside"):
        loader.load_folder(tmp_path, pin=pin, unratified=True)
    (tmp_path / "other.mastery_report.json").unlink()
    (tmp_path / "core_safety_axes_v2.json").rename(tmp_path / "Core_safety_axes_v2.json")
    with pytest.raises(SafetyPackError, match="file name"):
        loader.load_folder(tmp_path, pin=pin, unratified=True)


@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), RecursionError("too deep"), PackFormatError("x")])
def test_what_goes_wrong_below_comes_out_as_one_type(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object, **named: object) -> bytes:
        raise error

    monkeypatch.setattr(loader, "read_once", fail)
    with pytest.raises(SafetyPackError, match=r"^safety pack: "):
        load_safety_pack()
    monkeypatch.setattr(identity_loader, "read_once", fail)
    with pytest.raises(IdentityPackError, match=r"^identity pack: "):
        identity_loader.load_identity_manifold("default_general_v1")


def test_a_programming_error_is_not_dressed_up_as_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object, **named: object) -> bytes:
        raise ZeroDivisionError

    monkeypatch.setattr(loader, "read_once", fail)
    with pytest.raises(ZeroDivisionError):
        load_safety_pack()


def test_the_floor_names_what_is_missing() -> None:
    check_floor(loader.REQUIRED_BOUNDARIES | {"no_x"}, pack_id="x")
    with pytest.raises(PackFormatError, match="no_hot_path_repair, no_silent_correction"):
        check_floor(loader.REQUIRED_BOUNDARIES - {"no_silent_correction", "no_hot_path_repair"}, pack_id="x")


def test_a_candidate_never_says_that_it_is_ratified() -> None:
    assert not loader.candidate(pinned.PACK_ID, SAFETY.pack).ratified
    assert not identity_loader.candidate(OWN_ID, OWN.pack).ratified
    blank = layout(edited(SAFETY.pack, lambda pack: pack.update(mastery_report_sha256="")))
    assert loader.candidate(pinned.PACK_ID, blank).boundary_ids == loader.REQUIRED_BOUNDARIES


def test_the_caps_are_what_the_documents_say() -> None:
    assert loader.MAX_PACK_BYTES == 65_536
    assert identity_loader.MAX_PACK_BYTES == 262_144


def test_the_hatch_of_identity_packs_skips_the_seal_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    OWN.write(tmp_path)
    (tmp_path / OWN.report_name).unlink()
    monkeypatch.setenv("CORE_ALLOW_UNRATIFIED_IDENTITY", "1")
    assert not load_own(tmp_path).ratified
    assert OWN_ID in capsys.readouterr().err
    assert load_safety_pack().ratified
    (tmp_path / OWN.pack_name).write_bytes(layout(edited(OWN.pack, lambda pack: pack.update(boundary_ids=[]))))
    with pytest.raises(IdentityPackError, match="at least one id"):
        load_own(tmp_path)
    monkeypatch.setenv("CORE_ALLOW_UNRATIFIED_IDENTITY", "yes")
    OWN.write(tmp_path)
    assert load_own(tmp_path).ratified


def test_search_paths_are_a_list_of_folders() -> None:
    with pytest.raises(IdentityPackError, match="a list of folders"):
        identity_loader.load_identity_manifold("default_general_v1", search_paths="packs")  # type: ignore[arg-type]


def test_a_search_path_that_is_absent_adds_nothing(tmp_path: Path) -> None:
    known = identity_loader.available_packs()
    assert identity_loader.available_packs(search_paths=[tmp_path / "absent"]) == known
    with pytest.raises(IdentityPackError, match="nearest: precision_first_v1"):
        identity_loader.load_identity_manifold("precision_frist_v1", search_paths=[tmp_path / "absent"])
