"""The constitution in force, the views and the prompts."""

import os

import pytest

from engine.instruments.constitution import ConstitutionUnreadable, read_constitution
from engine.instruments.files import text_sha256
from engine.instruments.prompts import PromptFault, load_templates
from engine.instruments.views import ViewFault, load_view, parse_view, seed_text

VIEW = "---\nthreshold: 0.25\ntop_k: 7\nseed_from: ${CONSTITUTION_DIR}/*.md\n---\nfallback seed\n"


def test_all_files_sorted_stripped_joined_by_a_blank_line(tmp_path):
    (tmp_path / "b.md").write_text("\n\nsecond \n")
    (tmp_path / "a.md").write_text("  first\n")
    (tmp_path / "c.md").write_text("\n")
    (tmp_path / "notes.txt").write_text("not read")
    (tmp_path / ".hidden.md").write_text("not read")
    (tmp_path / ".history").mkdir()
    (tmp_path / ".history" / "old.md").write_text("not read")
    constitution = read_constitution(tmp_path)
    assert constitution.text == "first\n\nsecond"
    assert constitution.sha256 == text_sha256("first\n\nsecond")
    assert [file.name for file in constitution.files] == ["a.md", "b.md", "c.md"]
    assert constitution.first.text == "first"


def _folder(path, **files):
    path.mkdir()
    for name, data in files.items():
        (path / f"{name}.md").write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda root: None, "no_constitution_dir"),
        (lambda root: "", "no_constitution_dir"),
        (lambda root: root / "absent", "no_constitution_files"),
        (lambda root: _folder(root / "none"), "no_constitution_files"),
        (lambda root: _folder(root / "latin", a=b"caf\xe9"), "constitution_read_error"),
        (lambda root: _folder(root / "big", a=b"x" * (4 * 2**20 + 1)), "constitution_read_error"),
        (lambda root: _folder(root / "blank", a=b" \n", b=b""), "empty_constitution"),
    ],
)
def test_each_fault_has_its_code(tmp_path, make, code):
    with pytest.raises(ConstitutionUnreadable) as caught:
        read_constitution(make(tmp_path))
    assert caught.value.code == code


def test_a_pipe_and_a_folder_in_the_place_of_a_file_do_not_hang(tmp_path):
    os.mkfifo(tmp_path / "a.md")
    with pytest.raises(ConstitutionUnreadable, match="not a regular file"):
        read_constitution(tmp_path)
    (tmp_path / "a.md").unlink()
    (tmp_path / "a.md").mkdir()
    with pytest.raises(ConstitutionUnreadable, match="not a regular file"):
        read_constitution(tmp_path)


def test_the_view_is_seeded_from_the_live_text_and_falls_back_on_its_own(tmp_path):
    view = parse_view("constitutional", VIEW)
    assert (view.threshold, view.top_k) == (0.25, 7)
    assert seed_text(view, None) == "fallback seed"
    assert seed_text(view, tmp_path / "absent") == "fallback seed"
    odd = tmp_path / "a[1]b"
    odd.mkdir()
    (odd / "x.md").write_text("live")
    assert seed_text(view, odd) == "live"
    (odd / "y.md").write_bytes(b"\xff")
    assert seed_text(view, odd) == "fallback seed"


@pytest.mark.parametrize(
    "text",
    [
        "no front matter",
        "---\nthreshold: 0.1\ntop_k: 3\n",
        "---\nthreshold: 0.1\ntop_k: 3\n---\n",
        "---\nthreshold: nan\ntop_k: 3\n---\nseed",
        "---\nthreshold: 2\ntop_k: 3\n---\nseed",
        "---\nthreshold: 0.1\ntop_k: 0\n---\nseed",
        "---\nthreshold: 0.1\ntop_k: 3\ntop_k: 4\n---\nseed",
        "---\nthreshold: 0.1\ntop_k: 3\ncommand: rm\n---\nseed",
    ],
)
def test_a_malformed_view_is_a_fault(text):
    with pytest.raises(ViewFault):
        parse_view("constitutional", text)


def test_a_registry_without_the_view_is_a_fault(tmp_path):
    with pytest.raises(ViewFault, match="constitutional"):
        load_view(folder=tmp_path)


@pytest.mark.parametrize(
    ("prompt", "system"),
    [
        (None, "s"),
        ("${PATTERNS}", None),
        (" ", "s"),
        ("no place", "s"),
        ("${PATTERNS} ${CONSTITUTION}", "s"),
        ("${PATTERNS}", "${PATTERNS}"),
    ],
)
def test_a_shadow_prompt_that_is_missing_or_asks_for_the_live_text_is_a_fault(tmp_path, prompt, system):
    for name, text in (("shadow.md", prompt), ("shadow-system.md", system)):
        if text is not None:
            (tmp_path / name).write_text(text)
    with pytest.raises(PromptFault):
        load_templates("shadow", tmp_path)


def test_the_shipped_prompts_and_view_are_well_formed():
    assert load_view().top_k == 50
    for arm in ("shadow", "amend"):
        assert "${PATTERNS}" in load_templates(arm).prompt
