"""A small vocabulary made from random numbers with a fixed seed, and a slow oracle of the walk over it."""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

from engine.algebra import apply as move
from engine.algebra import even_product, even_reverse, point_coordinates, sandwich
from engine.algebra.point import embed_point
from engine.algebra.rigid import rigid_motor, rotor_about
from engine.generate.admissibility import UNCONSTRAINED, admissibility, lower_regions
from engine.generate.tables import build_tables, step_operators
from engine.generate.walk import WalkPolicy, WalkRows

WORDS, RELATIONS, EDGES = 40, 4, 90
STEPS, WINDOW, ROWS = 6, 3, 16
LONELY = WORDS - 1
"""A word without any relation."""


@dataclass(frozen=True)
class World:
    words: np.ndarray
    points: np.ndarray
    relations: np.ndarray
    edges: np.ndarray
    tables: object
    motors: object


def random_motors(generator, count, reach, turn):
    axis = generator.normal(size=(count, 3))
    axis /= np.linalg.norm(axis, axis=1, keepdims=True)
    angle = generator.uniform(0, turn, count)
    shift = reach * generator.normal(size=(count, 3))
    return np.asarray(rigid_motor(jnp.asarray(shift), rotor_about(jnp.asarray(axis), jnp.asarray(angle)))), shift


def make_world(seed=0):
    generator = np.random.default_rng(seed)
    words, points = random_motors(generator, WORDS, 0.7, 3.0)
    forward, _ = random_motors(generator, RELATIONS, 0.0, 2.0)
    relations = np.concatenate([forward, np.asarray(even_reverse(jnp.asarray(forward)))])
    heads = generator.integers(0, LONELY, EDGES)
    tails = (heads + generator.integers(1, LONELY, EDGES)) % LONELY
    kinds = generator.integers(0, RELATIONS, EDGES)
    edges = np.concatenate([np.stack([heads, kinds, tails], 1), np.stack([tails, kinds + RELATIONS, heads], 1)])
    edges = np.unique(edges, axis=0)
    tables, motors, order = build_tables(words, points, relations, edges)
    return World(words, points, relations, edges[order], tables, motors)


def make_arguments(world, *, regions=(), schedule=None, policy=None, starts=None, seed=1, personas=2, motors=None):
    """Return the arguments of a walk of ROWS rows."""
    generator = np.random.default_rng(seed)
    made, _ = random_motors(generator, personas, 0.3, 1.0)
    operators = step_operators(world.motors, jnp.asarray(made))
    state, _ = random_motors(generator, ROWS, 0.5, 3.0)
    rows = WalkRows(
        motor=jnp.asarray(state if motors is None else motors),
        start=jnp.asarray(
            np.asarray(generator.integers(0, LONELY, ROWS) if starts is None else starts).astype(np.int32)
        ),
        identity=jnp.asarray(generator.integers(0, personas, ROWS).astype(np.int32)),
        regions=jnp.asarray((np.zeros((ROWS, STEPS)) if schedule is None else schedule).astype(np.int32)),
    )
    table = lower_regions([UNCONSTRAINED, *regions], world.tables.points.shape[0], world.motors.relations.shape[0])
    return rows, operators, world.tables, table, policy or make_policy(), jnp.zeros(WINDOW, jnp.int32), made


def make_policy(*, min_steps=3, settle_margin=0.0, **check):
    return WalkPolicy(admissibility(**check), jnp.asarray(np.int32(min_steps)), jnp.asarray(float(settle_margin)))


def slow_walk(world, persona, motor, start, *, min_steps=3, settle_margin=0.0):
    """Walk one row with the public algebra, one step at a time; return words and final motor."""
    recent, word, said = [start], start, []
    origin = embed_point(jnp.zeros(3))
    motor = jnp.asarray(motor)
    for _ in range(STEPS):
        point = np.asarray(point_coordinates(move(motor, origin)))
        options = [(t, r) for h, r, t in world.edges if h == word and t not in recent[:WINDOW]]
        if not options:
            break
        distances = [np.linalg.norm(world.points[t] - point) for t, _ in options]
        here = np.linalg.norm(world.points[word] - point)
        if len(said) >= min_steps and here + settle_margin < min(distances):
            break
        tail, relation = options[int(np.argmin(distances))]
        onto = even_product(jnp.asarray(world.words[tail]), jnp.asarray(world.relations[relation]))
        step = even_product(even_product(onto, even_reverse(jnp.asarray(world.words[word]))), jnp.asarray(persona))
        motor = sandwich(step, motor)
        word = tail
        said.append(int(tail))
        recent.insert(0, tail)
    return said, np.asarray(motor)
