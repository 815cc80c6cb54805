"""The language loader under hostile files: every row is a change to a good pack and what the one line must say."""

import json
import math
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from packs import strict_json
from packs.errors import CoreError, LanguagePackError
from packs.language.loader import available_language_packs, load_language_folder, load_language_pack
from packs.language.model import LanguagePack
from tests.language.tiny import edit, renew_digest

Change = Callable[[dict[str, Any]], object]


def refusal(folder: Path) -> str:
    """Return the loader's one line; fails the test when the pack loads or the error is of another type."""
    with pytest.raises(LanguagePackError) as caught:
        load_language_folder(folder, require_seal=False)
    line = str(caught.value)
    assert "\n" not in line
    assert line.isprintable()
    return line


def set_row(part: str, number: int, **fields: object) -> Change:
    return lambda value: value[part][number].update(fields)


def drop_field(part: str, number: int, field: str) -> Change:
    return lambda value: value[part][number].pop(field)


def repeat_row(part: str, number: int) -> Change:
    return lambda value: value[part].append(dict(value[part][number]))


def test_the_untouched_pack_loads(pack_folder: Path) -> None:
    pack = load_language_folder(pack_folder, require_seal=False)
    assert (pack.pack_id, pack.ratified, len(pack.lexicon), len(pack.relations)) == ("tiny", False, 12, 16)
    assert pack.cited_text(pack.relations[0].citation) == "A rose is a part of the garden."


def test_loaded_packs_are_frozen_and_equal_by_value(pack_folder: Path, tiny_pack: LanguagePack) -> None:
    again = load_language_folder(pack_folder, require_seal=False)
    assert again == tiny_pack
    with pytest.raises(AttributeError):
        again.lexicon = ()  # type: ignore[misc]
    with pytest.raises(TypeError):
        again.sources["book_one"] = ""  # type: ignore[index]


LEXICON: list[tuple[Change, str]] = [
    (repeat_row("lexemes", 0), "duplicate lemma rose"),
    (set_row("lexemes", 1, lemma="Rosé"), "duplicate lemma"),
    (set_row("lexemes", 0, lemma=""), "lemma is empty"),
    (set_row("lexemes", 0, lemma=7), "lemma 7 is not a string"),
    (set_row("lexemes", 0, lemma=True), "lemma True is not a string"),
    (set_row("lexemes", 0, lemma="…"), "no letter or digit"),
    (set_row("lexemes", 0, lemma=" rose"), "begins or ends with a space"),
    (set_row("lexemes", 0, lemma="r" * 129), "129 characters"),
    (set_row("lexemes", 0, lemma="ro\u202ese"), "bidirectional control, U+202E"),
    (set_row("lexemes", 0, lemma="ro\u200bse"), "invisible format character, U+200B"),
    (set_row("lexemes", 0, lemma="ro\x07se"), "control character, U+0007"),
    (set_row("lexemes", 0, lemma="rose\u0301"), "not in normalisation form C"),
    (set_row("lexemes", 0, lemma="rоse"), "Cyrillic letters in a Latin pack"),
    (set_row("lexemes", 0, pos="thing"), "pos 'thing' is none of"),
    (set_row("lexemes", 0, domain="The Garden"), "is not an identifier"),
    (set_row("lexemes", 0, gloss="x" * 513), "513 characters"),
    (set_row("lexemes", 0, coordinates=[0, 0, 0, 0, 0, 0]), "does not fit the geometry relations"),
    (set_row("lexemes", 0, coordinates=[0, 0, 0]), "not a list of 6 numbers"),
    (set_row("lexemes", 0, colour="red"), "unknown field 'colour'"),
    (drop_field("lexemes", 0, "root"), "without the field root"),
    (lambda v: v.update(lexemes=[]), "no lexeme"),
    (lambda v: v.update(lexemes={}), "not a list"),
    (lambda v: v["lexemes"].append("rose"), "is not an object"),
    (lambda v: v.update(schema_version="2.0.0"), "schema_version"),
    (set_row("function_words", 0, word="rose"), "function word rose is a form of rose"),
    (set_row("function_words", 0, rotor=[4, 4, 4]), "more than a half-turn"),
]


@pytest.mark.parametrize(("change", "message"), LEXICON, ids=[message for _, message in LEXICON])
def test_a_damaged_lexicon_is_refused(pack_folder: Path, change: Change, message: str) -> None:
    edit(pack_folder, "lexicon.json", change)
    assert message in refusal(pack_folder)


RELATIONS: list[tuple[Change, str]] = [
    (repeat_row("relations", 0), "the triple stands twice"),
    (set_row("relations", 0, head="lily"), "lily is not in the lexicon"),
    (set_row("relations", 0, relation="loves"), "unknown relation loves"),
    (set_row("relations", 0, tail="rose", tail_form="rose"), "related to itself"),
    (set_row("relations", 0, source="../manifest"), "is not an identifier"),
    (set_row("relations", 0, source="book_three"), "which the pack does not have"),
    (set_row("relations", 0, source="book_one"), "another version of book_one.md"),
    (set_row("relations", 0, sha256="0" * 64), "another version of book_two.md"),
    (set_row("relations", 0, end=10**6), "after the end of the file"),
    (set_row("relations", 0, end=10), "end 10 is not an integer from"),
    (set_row("relations", 0, start=-1), "is not an integer"),
    (set_row("relations", 0, start=12.0), "is not an integer"),
    (set_row("relations", 0, start=True), "is not an integer"),
    (set_row("relations", 0, start=15), "inside a word"),
    (set_row("relations", 0, start=0), "not one sentence on one line"),
    (set_row("relations", 0, head_form="garden"), "does not contain both"),
    (set_row("relations", 0, tail_form="harbour"), "does not contain both"),
    (set_row("relations", 0, tail="water", tail_form="water"), "does not contain both"),
    (set_row("types", 0, rotor=[0, 0]), "not a list of 3 numbers"),
    (set_row("types", 0, rotor=[3.0, 3.0, 3.0]), "more than a half-turn"),
    (set_row("types", 0, inverse="needs"), "needs stands twice"),
    (set_row("types", 0, symmetric=True), "has no inverse name"),
    (set_row("types", 1, symmetric=True), "a symmetric relation is a half-turn"),
    (set_row("types", 0, symmetric=1), "is not true or false"),
    (set_row("types", 0, questions=["Why?"]), "is not a question kind"),
    (lambda v: v["types"][1].update(rotor=v["types"][0]["rotor"]), "have the same rotor"),
    (lambda v: v.update(relations=5), "not a list"),
]


@pytest.mark.parametrize(("change", "message"), RELATIONS, ids=[message for _, message in RELATIONS])
def test_damaged_relations_are_refused(pack_folder: Path, change: Change, message: str) -> None:
    edit(pack_folder, "relations.json", change)
    assert message in refusal(pack_folder)


def test_swapped_spans_are_refused(pack_folder: Path) -> None:
    def swap(value: dict[str, Any]) -> None:
        first, second = value["relations"][0], value["relations"][2]
        assert first["source"] == second["source"]
        for field in ("start", "end"):
            first[field], second[field] = second[field], first[field]

    edit(pack_folder, "relations.json", swap)
    assert "does not contain both" in refusal(pack_folder)


def test_every_shift_of_a_span_is_refused(pack_folder: Path) -> None:
    """A span that starts a byte early or late, or ends early, cuts a word or loses an end."""
    good = (pack_folder / "relations.json").read_bytes()
    row = json.loads(good)["relations"][0]
    for start, end in ((-1, 0), (3, 0), (0, -2), (0, -8), (-3, -12)):
        (pack_folder / "relations.json").write_bytes(good)
        edit(pack_folder, "relations.json", set_row("relations", 0, start=row["start"] + start, end=row["end"] + end))
        assert "tiny" not in refusal(pack_folder)


OTHER_PARTS: list[tuple[str, Change, str]] = [
    ("morphology.json", set_row("forms", 0, lemma="lily"), "belongs to no lemma"),
    ("morphology.json", set_row("forms", 0, form="ship"), "already means ship"),
    ("morphology.json", set_row("forms", 0, operators=["dual"]), "unknown operator dual"),
    ("morphology.json", set_row("forms", 2, operators=["plural", "diminutive"]), "not in the order"),
    ("morphology.json", set_row("forms", 0, operators=[1]), "not a list of identifiers"),
    ("morphology.json", set_row("operators", 0, **{"class": "root"}), "is none of stem"),
    ("morphology.json", set_row("operators", 0, surface="-"), "neither a prefix"),
    ("morphology.json", set_row("operators", 0, productive=True), "needs a surface"),
    ("morphology.json", repeat_row("operators", 0), "operator diminutive stands twice"),
    ("templates.json", set_row("templates", 0, text="{head} is in {place}"), "placeholder"),
    ("templates.json", set_row("templates", 0, text="{head.__class__} {tail}"), "placeholder"),
    ("templates.json", set_row("templates", 0, text="{head} is in {tail"), "placeholder"),
    ("templates.json", set_row("templates", 0, text="{head} is a part."), "needs both"),
    ("templates.json", set_row("templates", 0, kind="poem"), "is none of"),
    ("templates.json", set_row("templates", 0, key="loves"), "unknown relation 'loves'"),
    ("templates.json", lambda v: v["templates"].pop(2), "no statement for the relation needs"),
    ("alignment.json", lambda v: v["edges"].append(edge()), "no anchor for other"),
    ("alignment.json", lambda v: v["edges"].append(edge(lemma="lily")), "lily is not in the lexicon"),
    ("alignment.json", lambda v: v["edges"].append(edge(language="tiny")), "within its own language"),
    ("alignment.json", lambda v: v["edges"].append(edge(strength=0.0)), "a strength of 0"),
    ("alignment.json", lambda v: v["edges"].append(edge(strength=1.5)), "not a number from 0.0 to 1.0"),
    ("alignment.json", lambda v: v["edges"].append(edge(target=[99.0] * 6)), "not a number from -16.0 to 16.0"),
    ("manifest.json", lambda v: v.update(pack_id="other"), "not the folder's name"),
    ("manifest.json", lambda v: v.update(version="1.0"), "not a version"),
    ("manifest.json", lambda v: v.update(script="Elvish"), "is none of"),
    ("manifest.json", lambda v: v.update(normalisation="NFD"), "is none of"),
    ("manifest.json", lambda v: v.update(mastery_report_sha256="abc"), "not a SHA-256"),
    ("manifest.json", lambda v: v["files"].pop("alignment.json"), "files must name exactly"),
    ("manifest.json", lambda v: v["sources"].update({"../x.md": "0" * 64}), "not of the form"),
    ("manifest.json", lambda v: v["sources"].pop("book_one.md"), "not named by the manifest"),
    ("manifest.json", lambda v: v["sources"].update({"book_nine.md": "0" * 64}), "book_nine.md: cannot be opened"),
]


def edge(**fields: object) -> dict[str, object]:
    row: dict[str, object] = {"lemma": "rose", "language": "other", "other": "x", "strength": 1.0, "target": [0.0] * 6}
    return {**row, **fields}


@pytest.mark.parametrize(("name", "change", "message"), OTHER_PARTS, ids=[row[2] for row in OTHER_PARTS])
def test_damage_elsewhere_is_refused(pack_folder: Path, name: str, change: Change, message: str) -> None:
    edit(pack_folder, name, change)
    assert message in refusal(pack_folder)


RAW: list[tuple[str, bytes, str]] = [
    ("empty", b"", "empty"),
    ("not UTF-8", b'{"a": "\xff"}', "not UTF-8"),
    ("byte order mark", b"\xef\xbb\xbf{}", "byte order mark"),
    ("repeated key", b'{"a": 1, "a": 2}', "repeated"),
    ("NaN", b'{"a": NaN}', "not JSON"),
    ("deep nesting", b'{"a":' * 40 + b"1" + b"}" * 40, "nested"),
    ("lone surrogate", b'{"a": "\\ud800"}', "surrogate"),
    ("a list", b"[]", "root must be an object"),
    ("trailing bytes", b"{} x", "not JSON"),
]


@pytest.mark.parametrize(("raw", "message"), [row[1:] for row in RAW], ids=[row[0] for row in RAW])
@pytest.mark.parametrize("name", ["manifest.json", "relations.json"])
def test_bytes_that_are_no_strict_json_are_refused(pack_folder: Path, name: str, raw: bytes, message: str) -> None:
    (pack_folder / name).write_bytes(raw)
    if name != "manifest.json":
        renew_digest(pack_folder, "files", name)
    assert message in refusal(pack_folder)


def test_bytes_that_the_manifest_does_not_name_are_refused(pack_folder: Path) -> None:
    path = pack_folder / "templates.json"
    path.write_bytes(path.read_bytes().replace(b"perhaps", b"surely!"))
    assert "not those the manifest names" in refusal(pack_folder)


def test_a_changed_source_is_refused(pack_folder: Path) -> None:
    path = pack_folder / "sources" / "book_one.md"
    path.write_bytes(path.read_bytes().replace(b"soil", b"salt"))
    assert "not those the manifest names" in refusal(pack_folder)


@pytest.mark.parametrize(
    ("body", "message"), [(b"\xff\xfe", "not UTF-8"), ("a\u202eb".encode(), "bidirectional"), (b"a\rb", "control")]
)
def test_a_source_with_bad_bytes_is_refused(pack_folder: Path, body: bytes, message: str) -> None:
    (pack_folder / "sources" / "book_one.md").write_bytes(body)
    renew_digest(pack_folder, "sources", "book_one.md")
    assert message in refusal(pack_folder)


def test_foreign_files_missing_files_and_links_are_refused(pack_folder: Path) -> None:
    (pack_folder / "notes.txt").write_text("x")
    assert "does not belong" in refusal(pack_folder)
    (pack_folder / "notes.txt").unlink()
    (pack_folder / "sources" / "extra.md").write_text("x")
    assert "not named by the manifest" in refusal(pack_folder)
    (pack_folder / "sources" / "extra.md").unlink()
    lexicon = pack_folder / "lexicon.json"
    lexicon.rename(pack_folder.parent / "elsewhere.json")
    assert "lexicon.json: cannot be opened" in refusal(pack_folder)
    lexicon.symlink_to(pack_folder.parent / "elsewhere.json")
    assert "lexicon.json: cannot be opened" in refusal(pack_folder)


def test_a_fifo_does_not_hang_the_loader(pack_folder: Path) -> None:
    (pack_folder / "lexicon.json").unlink()
    os.mkfifo(pack_folder / "lexicon.json")
    assert "not a regular file" in refusal(pack_folder)


def test_every_truncation_of_the_manifest_is_refused(pack_folder: Path) -> None:
    whole = (pack_folder / "manifest.json").read_bytes()
    for length in range(0, len(whole) - 1, 37):
        (pack_folder / "manifest.json").write_bytes(whole[:length])
        refusal(pack_folder)


@pytest.mark.parametrize(
    "lang",
    [
        None,
        "",
        "null",
        "EN",
        "../en",
        "en/",
        "/etc",
        "safety",
        "identity",
        "language",
        "xx",
        "e\u200bn",
        "еn",
        5,
        b"en",
        ("en",),
    ],
)
def test_names_that_are_no_pack_are_refused(lang: Any) -> None:
    load: Callable[..., LanguagePack] = getattr(load_language_pack, "__wrapped__", load_language_pack)
    with pytest.raises((LanguagePackError, TypeError)) as caught:
        load(lang)
    assert isinstance(caught.value, CoreError) or not isinstance(lang, str | None)


def test_a_pack_is_found_on_a_search_path_but_not_twice(pack_folder: Path, tmp_path: Path) -> None:
    root = pack_folder.parent
    assert "tiny" in available_language_packs([root])
    assert "tiny" not in available_language_packs()
    assert load_language_pack("tiny", search_paths=[root], require_seal=False).pack_id == "tiny"
    shutil.copytree(pack_folder, tmp_path / "second" / "tiny")
    with pytest.raises(LanguagePackError, match="there 2 times"):
        load_language_pack("tiny", search_paths=[root, tmp_path / "second"], require_seal=False)


def test_a_single_path_as_search_paths_is_refused(pack_folder: Path) -> None:
    with pytest.raises((LanguagePackError, TypeError)):
        load_language_pack("tiny", search_paths=str(pack_folder.parent))  # type: ignore[arg-type]


def test_a_pack_without_a_seal_is_refused_by_default(pack_folder: Path) -> None:
    with pytest.raises(LanguagePackError, match="not ratified"):
        load_language_folder(pack_folder)


def test_numbers_that_json_cannot_hold_never_reach_the_pack(pack_folder: Path) -> None:
    value = json.loads((pack_folder / "relations.json").read_bytes())
    value["types"][0]["rotor"] = [math.inf, 0, 0]
    (pack_folder / "relations.json").write_bytes(json.dumps(value).encode())
    renew_digest(pack_folder, "files", "relations.json")
    assert "not JSON" in refusal(pack_folder)


def test_the_error_survives_pickling(pack_folder: Path) -> None:
    (pack_folder / "manifest.json").write_bytes(strict_json.file_bytes({}))
    with pytest.raises(LanguagePackError) as caught:
        load_language_folder(pack_folder)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
