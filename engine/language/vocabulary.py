"""A compiled language pack: the words, relations and operators as motors, and the graph the walk steps along."""

from dataclasses import dataclass

from jaxtyping import Array, Float, Int

from packs.language.lookup import FormIndex


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The vocabulary of one pack. Made by `engine.language.compile.compile_vocabulary`; read by everything above.

    Attributes:
      language: the pack's id.
      lemmas: the words, in the order of the lexicon; a word's number is its index here.
      coordinates: (x, r) of each word: translation in scene units, rotation vector in radians.
      points: where each word's motor carries the origin; equals `coordinates[:, :3]`.
      motors: W = T(x) R(r).
      relation_types: names of the directed relation types, named inverses included.
      relation_motors: the rotor G of each; an inverse's is the reverse of its relation's.
      edges: (head, type, tail) of every step the graph allows.
      edge_relations: for each edge, the index of the pack's relation (and so of the citation) it rests on.
      operators: names of the morphological operators.
      operator_motors: the rotor of each.
      root_motors, roots: one motor per word root, and for each word the number of its root or -1.
      function_motors: the rotor of each function word of the pack.
      rotation_weight: scene units per radian in `motor_distance`: the ratio at which both halves of the embedding
        have the scale the graph gave them.
      index: look-up of written words.
    """

    language: str
    lemmas: tuple[str, ...]
    coordinates: Float[Array, "words 6"]
    points: Float[Array, "words 3"]
    motors: Float[Array, "words 16"]
    relation_types: tuple[str, ...]
    relation_motors: Float[Array, "types 16"]
    edges: Int[Array, "edges 3"]
    edge_relations: Int[Array, " edges"]
    operators: tuple[str, ...]
    operator_motors: Float[Array, "operators 16"]
    root_motors: Float[Array, "roots 16"]
    roots: Int[Array, " words"]
    function_motors: Float[Array, "functions 16"]
    rotation_weight: float
    index: FormIndex

    @property
    def size(self) -> int:
        """The number of words."""
        return len(self.lemmas)
