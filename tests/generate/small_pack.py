"""A language pack of five words made in memory: enough to ask and to answer, independent of the shipped content."""

from hashlib import sha256
from types import MappingProxyType

from packs.language.lookup import FormIndex
from packs.language.model import (
    Citation,
    Form,
    FunctionWord,
    LanguagePack,
    Lexeme,
    Manifest,
    Operator,
    Relation,
    RelationType,
    Template,
)

SENTENCES = (
    "A dog is an animal.",
    "A cat is an animal.",
    "The dog opposes the cat.",
    "Fire causes smoke.",
)
SOURCE = "# zoo\n\n" + "\n\n".join(SENTENCES) + "\n"
TRIPLES = (
    ("dog", "is_a", "animal"),
    ("cat", "is_a", "animal"),
    ("dog", "opposes", "cat"),
    ("fire", "causes", "smoke"),
)
IS_A, OPPOSES, CAUSES = range(3)
TYPES = 3
WORDS = ("dog", "cat", "animal", "fire", "smoke", "red panda")
DOG, CAT, ANIMAL, FIRE, SMOKE, PANDA = range(6)

_FUNCTION = {
    "article": ("a", "an", "the"),
    "copula": ("is", "are"),
    "auxiliary": ("does", "do", "could"),
    "pronoun": ("you", "me"),
    "negation": ("not",),
    "particle": ("please", "about", "to"),
    "question_what": ("what",),
    "question_why": ("why",),
}
_TEMPLATES = (
    ("statement", "is_a", "{head} is a kind of {tail}"),
    ("inverse", "is_a", "{tail} includes {head}"),
    ("statement", "opposes", "{head} opposes {tail}"),
    ("statement", "causes", "{head} causes {tail}"),
    ("inverse", "causes", "{tail} comes from {head}"),
    ("question", "definition", "what is {head}"),
    ("question", "cause", "what causes {head}"),
    ("question", "effect", "what does {head} cause"),
    ("question", "comparison", "how does {head} differ from {tail}"),
    ("question", "relation", "does {head} {relation} {tail}"),
    ("question", "example", "give an example of {head}"),
    ("relation_word", "causes", "cause"),
    ("relation_word", "causes", "leads to"),
    ("relation_word", "opposes", "oppose"),
    ("phrase", "unknown_word", "the word {word} is not known here"),
    ("phrase", "hedge_soft", "it seems that {claim}"),
)


def make_pack(*, role: str = "articulation", oov_policy: str = "tagged_fallback") -> LanguagePack:
    """Return the pack; its sentences stand in one source, in order."""
    digest = sha256(SOURCE.encode()).hexdigest()
    relations = tuple(
        Relation(head, kind, tail, Citation("zoo", digest, start, start + len(sentence), head, tail))
        for (head, kind, tail), sentence in zip(TRIPLES, SENTENCES, strict=True)
        for start in [SOURCE.index(sentence)]
    )
    types = (
        RelationType("is_a", "has_kind", False, ("definition", "what", "~example"), "", (0.5, 0.0, 0.0)),
        RelationType("opposes", "", True, ("comparison", "definition"), "", (0.0, 0.7, 0.0)),
        RelationType("causes", "caused_by", False, ("effect", "what", "~cause", "~why"), "", (0.0, 0.0, 0.9)),
    )
    manifest = Manifest(
        pack_id="zoo",
        version="1.0.0",
        description="A zoo.",
        role=role,
        script="Latin",
        direction="ltr",
        normalisation="NFC",
        oov_policy=oov_policy,
        geometry="spectral",
        files=MappingProxyType({}),
        sources=MappingProxyType({"zoo.md": digest}),
        anchors=MappingProxyType({}),
    )
    return LanguagePack(
        pack_id="zoo",
        manifest=manifest,
        lexicon=tuple(Lexeme(word, "noun", "", "zoo", "") for word in WORDS),
        function_words=tuple(
            FunctionWord(word, role, (0.0, 0.0, 0.01 * len(word)))
            for role, words in _FUNCTION.items()
            for word in words
        ),
        relation_types=types,
        relations=relations,
        operators=(Operator("plural", "inflection", "number=plural", "-s", True, (0.1, 0.0, 0.0)),),
        forms=(Form("dogs", "dog", ("plural",)),),
        templates=tuple(Template(*row) for row in _TEMPLATES),
        alignment=(),
        sources=MappingProxyType({"zoo": SOURCE}),
        sha256="0" * 64,
        ratified=False,
    )


def make_index(pack: LanguagePack) -> FormIndex:
    """Return the pack's look-up."""
    return FormIndex(pack.lexicon, pack.forms, pack.operators, pack.function_words)
