"""The runtime: composes packs into a running engine, evaluates batches of prompts, and talks."""

from engine.runtime.chat import ChatResponse as ChatResponse
from engine.runtime.chat import ChatRuntime as ChatRuntime
from engine.runtime.compose import Composition as Composition
from engine.runtime.result import COLUMNS as COLUMNS
from engine.runtime.result import ResultTable as ResultTable
from engine.runtime.runtime import Runtime as Runtime
from engine.runtime.runtime import evaluate_many as evaluate_many
from engine.runtime.runtime import runtime_from as runtime_from
from engine.runtime.settings import Settings as Settings
