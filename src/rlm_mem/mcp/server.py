"""The MCP server: the service over the protocol, independent of the transport."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import mcp_types as types
from mcp.server.caching import CacheHint
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from rlm_mem import __version__
from rlm_mem.access.grants import OWNER, Caller, name_of_client
from rlm_mem.errors import RlmMemError
from rlm_mem.mcp import prompts, resources
from rlm_mem.mcp.service import OfferedTool, Service, input_schema, output_schema
from rlm_mem.operations.problems import problem_of
from rlm_mem.sandbox.engine import Stop
from rlm_mem.telemetry import with_current_context

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp.server.context import ServerRequestContext
    from starlette.types import Scope

    Context = ServerRequestContext[dict[str, Any], Any]

_WORKERS = 4
_PROGRESS_SECONDS = 1.0  # maximum seconds to wait until a client has taken a report
_PROGRESS_INTERVAL = 0.1  # minimum seconds between reports, since a long text has thousands of chunks

_R = TypeVar("_R")


class McpServer:
    """Answers MCP clients from a service.

    Tools run in a few worker threads that end with the server, so that the store keeps a bounded number of
    connections. `initialize` needs neither a worker nor the memory.

    Args:
        client_of: returns the client that sent a request, given its ASGI scope; None: every client is the owner of the
            memory, as on stdin and stdout.
    """

    def __init__(self, service: Service, client_of: Callable[[Scope], Caller] | None = None) -> None:
        self.service = service
        self._client_of = client_of
        self._pool = ThreadPoolExecutor(max_workers=_WORKERS, thread_name_prefix="rlm-mem")
        self._closing = False
        self._open: set[Stop] = set()
        fixed = CacheHint(ttl_ms=3_600_000, scope="public")
        # The list of tools depends on the token.
        own = CacheHint(ttl_ms=3_600_000, scope="public" if client_of is None else "private")
        self.protocol: Server[dict[str, Any]] = Server(
            "rlm-mem",
            version=__version__,
            title="RLM-MEM",
            description="Long-term memory for LLM agents",
            instructions=prompts.INSTRUCTIONS,
            cache_hints={"tools/list": own, "prompts/list": fixed, "resources/templates/list": fixed},
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
        )

    def close(self) -> None:
        """Cancel running calls, then close the service."""
        self._closing = True
        for stop in list(self._open):
            stop.set()
        self._pool.shutdown(wait=True, cancel_futures=True)
        self.service.close()

    def _client(self, context: Context) -> Caller:
        if self._client_of is None:
            about = context.session.client_params
            self.service.opened.name_session("" if about is None else about.client_info.name)
            return Caller(OWNER)
        if context.request is None:
            return Caller()
        caller, about = self._client_of(context.request.scope), context.session.client_params
        if caller.session or about is None:
            return caller
        return replace(caller, session=name_of_client(about.client_info.name))

    # --- tools -----------------------------------------------------------------------------------------

    async def _list_tools(
        self, context: Context, _: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        tools = self.service.tools_of(self._client(context))
        return types.ListToolsResult(tools=[_tool_description(tool) for tool in tools])

    async def _call_tool(self, context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        client = self._client(context)
        stop = Stop()
        self._open.add(stop)
        if self._closing:
            stop.set()
        progress = self._progress(context, asyncio.get_running_loop())
        try:
            answer = await self._run_or_refuse(
                lambda: self.service.call(
                    params.name, params.arguments, progress=progress, stop=stop, client=client
                )
            )
        except asyncio.CancelledError:
            stop.set()
            raise
        finally:
            self._open.discard(stop)
        return types.CallToolResult(
            content=[types.TextContent(text=answer.text)],
            structured_content=answer.data,
            is_error=answer.failed,
        )

    def _progress(
        self, context: Context, loop: asyncio.AbstractEventLoop
    ) -> Callable[[float, float | None, str], None]:
        """Return a function that reports progress from a worker thread, at a bounded rate.

        A client that does not take a report gets no more of them: the call may hold the write lock of the store.
        """
        last = float("-inf")

        def report(done: float, total: float | None, message: str) -> None:
            nonlocal last
            now = time.monotonic()
            if now - last < _PROGRESS_INTERVAL and (done != total or last == float("inf")):
                return
            last = now
            sending = context.session.report_progress(done, total, message)
            try:
                sent = asyncio.run_coroutine_threadsafe(sending, loop)
            except RuntimeError:  # the loop has ended
                sending.close()
                return
            try:
                sent.result(timeout=_PROGRESS_SECONDS)
            except Exception:  # noqa: BLE001 - failing to report progress must not abort the call
                sent.cancel()
                last = float("inf")

        return report

    # --- resources -------------------------------------------------------------------------------------

    async def _list_resources(
        self, context: Context, _: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        client = self._client(context)
        newest = await self._run_or_refuse(
            lambda: resources.recent(self.service.opened.admit(client, "read").reading.memory)
        )
        return types.ListResourcesResult(resources=[*resources.FIXED, *newest])

    async def _list_templates(
        self, _: Context, __: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=list(resources.TEMPLATES))

    async def _read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri, client = str(params.uri), self._client(context)
        text = await self._run_or_refuse(
            lambda: resources.read_resource(self.service.opened.admit(client, "read").reading.memory, uri)
        )
        return types.ReadResourceResult(
            contents=[types.TextResourceContents(uri=uri, mime_type="application/json", text=text)]
        )

    async def _run_or_refuse(self, work: Callable[[], _R]) -> _R:
        """Run a function in a worker, and turn an RlmMemError into an error of the protocol."""
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._pool, with_current_context(work))
        except RlmMemError as error:
            raise MCPError(types.INVALID_PARAMS, problem_of(error).sentence) from None

    # --- prompts ---------------------------------------------------------------------------------------

    async def _list_prompts(
        self, _: Context, __: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=[prompt for prompt, _ in prompts.PROMPTS])

    async def _get_prompt(self, _: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        found, text = await self._run_or_refuse(lambda: prompts.render(params.name, params.arguments))
        message = types.PromptMessage(role="user", content=types.TextContent(text=text))
        return types.GetPromptResult(description=found.description, messages=[message])


def _tool_description(tool: OfferedTool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.tool.title,
        description=tool.tool.description,
        input_schema=input_schema(tool),
        output_schema=output_schema(tool),
        annotations=types.ToolAnnotations(
            title=tool.tool.title,
            read_only_hint=tool.read_only,
            destructive_hint=tool.tool.destructive,
            idempotent_hint=tool.tool.idempotent,
            open_world_hint=tool.tool.open_world,
        ),
    )
