"""Serves a GGUF model with llama.cpp, with the addresses of its own server: OpenAI's and Anthropic's.

    python tools/serve_model.py MODEL.gguf PORT [--context 4096] [--threads 2]

For `make test-models` and `benchmarks/small_models.py`; needs the package xllamacpp, whose wheels hold llama.cpp for
ordinary processors. Listens on 127.0.0.1 and runs until it is killed.
"""

from __future__ import annotations

import argparse
import threading
from pathlib import Path

import xllamacpp


def main() -> None:
    """Run from the command line."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("model", type=Path)
    options.add_argument("port", type=int)
    options.add_argument("--context", type=int, default=4096, help="tokens of its window")
    options.add_argument("--threads", type=int, default=2)
    chosen = options.parse_args()
    settings = xllamacpp.CommonParams()
    settings.model.path = str(chosen.model)
    settings.port = chosen.port
    settings.n_ctx = chosen.context
    settings.n_parallel = 1
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = chosen.threads
    settings.warmup = False
    settings.ui = False
    server = xllamacpp.Server(settings)
    print(server.listening_address, flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
