"""`rlm-mem mcp` and `rlm-mem serve`: the memory served to agents, programs and people."""

from __future__ import annotations

import gc
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer

from rlm_mem.cli import options
from rlm_mem.cli.call import Where
from rlm_mem.errors import RlmMemError
from rlm_mem.operations.context import Settings


@dataclass(frozen=True)
class ServerCall(Where):
    """Options of both commands."""

    tools: options.Tools = "default"
    read_only: options.ReadOnly = False
    llm: options.Llm = None

    def settings(self, actor: str) -> Settings:
        """The server's settings; writes are logged with the actor."""
        return Settings(
            brain=self.named_brain,
            namespace=self.namespace,
            llm=self.llm,
            read_only=self.read_only,
            every_tool=options.every_tool(self.tools),
            actor=actor,
        )


def mcp(
    call: ServerCall,
    http: Annotated[
        bool, options.flag("--http", help="Serve over HTTP on 127.0.0.1 instead of stdin and stdout.")
    ] = False,
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=0, max=65535, help="With --http; 0 takes a free one.")
    ] = 7411,
) -> None:
    """Serve the memory to agents over MCP; clients start this themselves (rlm-mem install)."""
    run, settings = _server(), call.settings("mcp")
    if http:
        run.serve_http(settings, port)
    else:
        run.serve_stdio(settings)


def serve(
    call: ServerCall,
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=0, max=65535, help="On 127.0.0.1; 0 takes a free one.")
    ] = 7412,
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file", metavar="FILE", help="Holds the token; made with a new one if it is missing."
        ),
    ] = None,
    open_browser: Annotated[bool, options.flag("--open", help="Open the dashboard in a browser.")] = False,
    no_dashboard: Annotated[bool, options.flag("--no-dashboard", help="Serve MCP and HTTP only.")] = False,
    rate: Annotated[
        float,
        typer.Option(
            "--rate",
            metavar="N",
            min=0,
            help="Requests a second over HTTP that a client may go on with; 0: any.",
        ),
    ] = 50.0,
) -> None:
    """Serve the memory on this machine: MCP, an HTTP interface with an OpenAPI document, and a dashboard."""
    _server().serve_all(
        call.settings("server"),
        port,
        token_file=token_file,
        dashboard=not no_dashboard,
        open_browser=open_browser,
        rate=rate,
    )


def _server() -> ModuleType:
    """The module that runs servers; it needs an extra, which `--help` does not."""
    # Loaded modules live as long as the server: scanning them for garbage would only cost time.
    gc.disable()
    try:
        from rlm_mem.serving import run
    except ModuleNotFoundError as error:
        raise RlmMemError(
            f"the server needs the package {error.name}",
            hint='Install it with: pip install "rlm-mem[server]"',
        ) from None
    finally:
        gc.freeze()
        gc.enable()
    return run
