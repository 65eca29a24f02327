"""`rlm-mem mcp` and `rlm-mem serve`: the servers for agents, programs and people."""

from __future__ import annotations

import gc
import os
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Annotated

from rlm_mem.access.tokens import token_path
from rlm_mem.capture.projects import project_of
from rlm_mem.cli import options
from rlm_mem.cli.call import Where
from rlm_mem.cli.options import flag, option
from rlm_mem.config import Config, locate, nearest_brain, working_folder
from rlm_mem.errors import InputError, RlmMemError
from rlm_mem.operations.context import Settings

NETWORK = "Other machines"


class ServerCall(Where, frozen=True):
    """Options of both `mcp` and `serve`."""

    tools: options.Tools = "default"
    read_only: options.ReadOnly = False
    llm: options.Llm = None

    def settings(self, actor: str, tokens: Path | None = None) -> Settings:
        """Return the server's settings; the audit log records the actor of each write."""
        return Settings(
            brain=self.named_brain,
            namespace=self.namespace,
            llm=self.llm,
            read_only=self.read_only,
            every_tool=self.tools == "all",
            actor=actor,
            tokens=tokens,
        )


class ServeCall(ServerCall, frozen=True):
    """Options of `serve` for connections from other machines, beside those of every server."""

    host: Annotated[
        str,
        option(
            "--host",
            "ADDRESS",
            "The address to listen on; other addresses need tokens, and TLS or a proxy.",
            NETWORK,
        ),
    ] = "127.0.0.1"
    public_url: Annotated[
        str | None,
        option(
            "--public-url", "URL", "The server's address for other machines: https://memory.example.", NETWORK
        ),
    ] = None
    tls_cert: Annotated[Path | None, option("--tls-cert", "FILE", "Certificate chain, PEM.", NETWORK)] = None
    tls_key: Annotated[Path | None, option("--tls-key", "FILE", "Its key, PEM.", NETWORK)] = None
    proxy: Annotated[
        list[str] | None,
        option(
            "--proxy",
            "ADDRESS",
            "A reverse proxy that terminates TLS, by address or network; repeatable.",
            NETWORK,
        ),
    ] = None
    oauth_issuer: Annotated[
        str | None,
        option(
            "--oauth-issuer", "URL", "An OAuth authorization server whose tokens are also accepted.", NETWORK
        ),
    ] = None


def mcp(
    call: ServerCall,
    project: Annotated[
        bool,
        flag(
            "--project",
            "Serve the project of this folder: write to its namespace, read it and the shared one.",
        ),
    ] = False,
    folder: Annotated[
        Path | None,
        option(
            "--folder",
            "PATH",
            "With --project: the project's folder. Default: this folder.",
            parser=options.path,
        ),
    ] = None,
    http: Annotated[
        bool, flag("--http", "Serve over HTTP on 127.0.0.1 instead of stdin and stdout.")
    ] = False,
    port: Annotated[
        int, option("--port", "N", "With --http: the port; 0 takes a free one.", min=0, max=65535)
    ] = 7411,
    tokens: Annotated[
        Path | None,
        options.tokens(
            "With --http: the file with the named tokens. Default: tokens.json in the brain folder."
        ),
    ] = None,
) -> None:
    """Serve the memory to agents over MCP; started by clients (rlm-mem install)."""
    settings = call.settings("mcp", _tokens(call, tokens) if http else None)
    if project:
        settings = _project_settings(settings, folder)
    elif folder is not None:
        raise InputError("--folder needs --project", hint="give both, or neither")
    run = _server_module()
    if http:
        run.serve_all(settings, run.Network(port), api=False, dashboard=False)
    else:
        run.serve_stdio(settings)


def _project_settings(settings: Settings, folder: Path | None) -> Settings:
    """Return the settings for the folder's project, with the configured namespace as the shared one.

    They are unchanged if the folder belongs to no project. A relative path of the brain comes from a committed file,
    whose folder may be above this one.
    """
    if settings.namespace is not None:
        raise InputError("--project and --namespace exclude each other", hint="give only one of them")
    if folder is not None and not folder.is_dir():
        raise InputError(f"{folder} is not a folder", hint="name a folder of the project with --folder")
    # Claude Code sets this variable to the project's folder, whichever folder it starts the server in.
    project = project_of(folder or Path(os.environ.get("CLAUDE_PROJECT_DIR", "")))
    if project is None:
        return settings
    brain = settings.brain
    if isinstance(brain, Path) and not brain.is_absolute():
        brain = nearest_brain(brain, working_folder(), project.root) or brain
    shared = Config.load(locate(brain)).store.namespace
    return replace(settings, brain=brain, namespace=project.namespace, shared=shared)


def serve(
    call: ServeCall,
    port: Annotated[
        int, option("--port", "N", "The port on 127.0.0.1; 0 takes a free one.", min=0, max=65535)
    ] = 7412,
    token_file: Annotated[
        Path | None, option("--token-file", "FILE", "The file with the token; created if it is missing.")
    ] = None,
    tokens: Annotated[
        Path | None,
        options.tokens(
            "The file with the named tokens (rlm-mem token). Default: tokens.json in the brain folder."
        ),
    ] = None,
    drain: Annotated[
        float,
        option(
            "--drain", "SECONDS", "Maximum seconds to finish requests when the server stops.", min=0, max=3600
        ),
    ] = 30.0,
    open_browser: Annotated[bool, flag("--open", "Open the dashboard in a browser.")] = False,
    no_dashboard: Annotated[bool, flag("--no-dashboard", "Serve MCP and HTTP only.")] = False,
    rate: Annotated[
        float, option("--rate", "N", "Maximum HTTP requests per second and client; 0: no limit.", min=0)
    ] = 50.0,
) -> None:
    """Serve MCP, the HTTP interface and the dashboard, to this machine or to a team with tokens."""
    run = _server_module()
    run.serve_all(
        call.settings("server", _tokens(call, tokens)),
        run.Network(
            port,
            host=call.host,
            public_url=call.public_url,
            tls_cert=call.tls_cert,
            tls_key=call.tls_key,
            proxies=tuple(call.proxy or ()),
            oauth_issuer=call.oauth_issuer,
        ),
        token_file=token_file,
        dashboard=not no_dashboard,
        open_browser=open_browser,
        rate=rate,
        drain_seconds=drain,
    )


def _tokens(call: ServerCall, named: Path | None) -> Path | None:
    """Return the file with the tokens; a database without a named file has none."""
    place = call.place
    return token_path(place, named) if named is not None or isinstance(place, Path) else None


def _server_module() -> ModuleType:
    """Load the module that runs servers, which needs an extra that `--help` does not."""
    # Loaded modules are never freed, so collecting garbage meanwhile would only take time.
    gc.disable()
    try:
        from rlm_mem.serving import run
    except ModuleNotFoundError as error:
        raise RlmMemError(
            f"the server needs the package {error.name}",
            hint='install it with: pip install "rlm-mem[server]"',
        ) from None
    finally:
        gc.freeze()
        gc.enable()
    return run
