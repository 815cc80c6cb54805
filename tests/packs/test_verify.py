"""`core packs`: every kind of path, in one line, with exit 0 or 1 and without the heavy half of the engine."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from engine.cli import main
from packs import seal
from packs.errors import CoreError, IdentityPackError, PackFormatError, SafetyPackError
from packs.safety import pinned
from packs.verify import verify_path
from tests.attacks.workspace import OWN, OWN_ID, PACKS, SAFETY, edited, layout, resealed


def test_installed_folders_and_files_verify() -> None:
    (safety,) = verify_path(PACKS / "safety")
    assert (safety.kind, safety.pack_id, safety.sha256) == ("safety", pinned.PACK_ID, pinned.PACK_SHA256)
    assert "pins" in safety.line()
    assert verify_path(PACKS / "safety" / SAFETY.pack_name) == (safety,)
    assert verify_path(PACKS / "safety" / SAFETY.report_name) == (safety,)
    assert [pack.pack_id for pack in verify_path(PACKS / "identity")] == [
        "default_general_v1",
        "generosity_first_v1",
        "precision_first_v1",
    ]


def test_a_copy_elsewhere_verifies_and_says_whether_it_is_the_pinned_one(tmp_path: Path) -> None:
    SAFETY.write(tmp_path)
    (copy,) = verify_path(tmp_path)
    assert copy.remark == "the pack that this installation pins"
    other = edited(SAFETY.pack, lambda pack: pack.update(description="Other words."))
    resealed(other, SAFETY).write(tmp_path)
    (copy,) = verify_path(tmp_path / SAFETY.pack_name)
    assert copy.remark == "not the pack that this installation pins"


def test_what_is_wrong_is_said_with_the_error_of_its_kind(tmp_path: Path) -> None:
    OWN.write(tmp_path)
    assert verify_path(tmp_path)[0].pack_id == OWN_ID
    (tmp_path / OWN.pack_name).write_bytes(OWN.pack.replace(b"0.55", b"0.56", 1))
    with pytest.raises(IdentityPackError, match="not the one that was ratified"):
        verify_path(tmp_path)
    (tmp_path / OWN.pack_name).unlink()
    with pytest.raises(PackFormatError, match="a report without its pack"):
        verify_path(tmp_path)
    (tmp_path / OWN.report_name).unlink()
    with pytest.raises(PackFormatError, match="no pack in this folder"):
        verify_path(tmp_path)
    for name in ("missing.json", "missing"):
        with pytest.raises(PackFormatError, match="there is no such file or folder"):
            verify_path(tmp_path / name)
    (tmp_path / "link.json").symlink_to(tmp_path / "nowhere.json")
    with pytest.raises(PackFormatError, match="cannot be opened"):
        verify_path(tmp_path / "link.json")
    (tmp_path / "pack.txt").write_text("{}")
    with pytest.raises(PackFormatError, match=r"ends in \.json"):
        verify_path(tmp_path / "pack.txt")


def test_a_folder_of_all_kinds_is_verified_with_the_folders_in_it() -> None:
    packs = [(pack.kind, pack.pack_id) for pack in verify_path(PACKS)]
    assert [kind for kind, _ in packs] == ["language"] * 3 + ["identity"] * 3 + ["safety"]
    assert packs[-1] == ("safety", pinned.PACK_ID)


def test_a_gutted_and_resealed_safety_pack_fails_the_floor(tmp_path: Path) -> None:
    def gut(pack: dict) -> None:
        pack["boundary_ids"].remove("no_identity_override")
        del pack["boundary_descriptions"]["no_identity_override"]

    resealed(edited(SAFETY.pack, gut), SAFETY).write(tmp_path)
    with pytest.raises(SafetyPackError, match="without the boundary no_identity_override"):
        verify_path(tmp_path / SAFETY.pack_name)


def test_a_folder_of_users_packs_is_verified_whole(tmp_path: Path) -> None:
    OWN.write(tmp_path)
    shutil.copy(PACKS / "identity" / "default_general_v1.json", tmp_path)
    with pytest.raises(CoreError, match=f"default_general_v1{seal.REPORT_ENDING}"):
        verify_path(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["packs", "verify", str(PACKS / "safety")], 0),
        (["packs", "verify", str(PACKS / "identity")], 0),
        (["packs", "verify", str(PACKS / "missing.json")], 1),
        (["packs", "verify", str(PACKS / "safety" / "loader.py")], 1),
        (["packs", "show", "default_general_v1"], 0),
        (["packs", "show", "core_safety_axes_v1"], 0),
        (["packs", "show", "defualt_general_v1"], 1),
        (["packs", "show", "../safety/core_safety_axes_v1"], 1),
    ],
)
def test_commands_answer_or_refuse_in_one_line(
    arguments: list[str], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == code
    captured = capsys.readouterr()
    assert captured.err.count("\n") == code
    assert bool(captured.out) == (code == 0)


def test_list_as_json_names_every_shipped_pack(capsys: pytest.CaptureFixture[str]) -> None:
    main(["packs", "list", "--json"])
    documents = json.loads(capsys.readouterr().out)
    by_kind = {(item["kind"], item["pack_id"]) for item in documents}
    assert ("safety", "core_safety_axes_v1") in by_kind
    assert {name for kind, name in by_kind if kind == "identity"} == {
        "default_general_v1",
        "generosity_first_v1",
        "precision_first_v1",
    }
    assert all(item["ratified"] for item in documents if item["kind"] != "language")


def test_show_as_json_gives_boundaries_with_descriptions(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["packs", "show", "core_safety_axes_v1", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["sha256"] == pinned.PACK_SHA256
    assert document["ratified"] is True
    assert {item["id"] for item in document["boundaries"]} == set(json.loads(SAFETY.pack)["boundary_ids"])
    assert all(item["description"] and item["required"] for item in document["boundaries"])


def test_users_packs_are_listed_through_their_door(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Language packs take seconds to read, and are not what this is about.
    monkeypatch.setattr("engine.cli.packs._language_list", lambda packs_path: [])
    (tmp_path / "identity").mkdir()
    OWN.write(tmp_path / "identity")
    assert main(["packs", "show", OWN_ID, "--packs-path", str(tmp_path)]) == 0
    assert OWN_ID in capsys.readouterr().out
    broken = edited(OWN.pack, lambda pack: pack.update(alignment_threshold=0.1))
    (tmp_path / "identity" / OWN.pack_name).write_bytes(layout(broken))
    assert main(["packs", "list", "--packs-path", str(tmp_path)]) == 1
    assert "not the one that was ratified" in capsys.readouterr().out


def test_verification_imports_neither_jax_nor_hydra() -> None:
    program = (
        "import sys; from engine.cli import main; code = main(['packs', 'verify', sys.argv[1]]); "
        "heavy = {'jax', 'numpy', 'hydra', 'omegaconf'} & set(sys.modules); print(code, sorted(heavy))"
    )
    result = subprocess.run(
        [sys.executable, "-c", program, str(PACKS / "identity")],
        cwd=PACKS.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.splitlines()[-1] == "0 []"
