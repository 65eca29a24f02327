"""The CPython worker: a script in a separate process, locked down before it receives the first program.

Imported and started by ``python -I -S -B -c "…" <folder> <flags>``, since Python would compile a script anew at each
start, with an empty environment and two pipes. It loads the modules that programs may import, sets its limits, installs
the system-call filter, and then serves frames.
The host does not trust it: the program shares this process and can do anything that this code can.
"""

from __future__ import annotations

import abc
import ast
import builtins
import gc
import os
import reprlib
import signal
import sys
import time
import types
from typing import Any

HELLO, RUN, CALL, ANSWER, FAILURE, DONE, ERROR, NAMES, RESTORE = range(1, 10)
"""Kinds of frames. To the worker: RUN, ANSWER, FAILURE, NAMES, RESTORE. From it: HELLO, CALL, DONE, ERROR."""

_MODULE_NAMES = (
    "re json math collections collections.abc itertools functools datetime time bisect random decimal typing "
    "dataclasses copy csv hashlib base64 binascii unicodedata operator statistics string textwrap heapq difflib pprint "
    "contextlib enum io abc fractions numbers calendar uuid html queue array struct reprlib graphlib shlex fnmatch "
    "cmath warnings traceback types __future__ zlib locale _strptime"
)
MODULES = tuple(_MODULE_NAMES.split())
IMPORTABLE = frozenset(MODULES) - {"traceback", "types", "warnings", "locale", "_strptime"}
"""Modules that a program may import. The rest of ``MODULES`` is loaded because these need it at run time."""

RECURSION = 1_000
STATE_BYTES = 2_000_000
"""Maximum bytes of the plain data that is kept for the next worker; definitions are kept as source."""

_WITHHELD = (
    "open exec eval compile input breakpoint help exit quit memoryview copyright credits license __loader__ __spec__ "
    "__import__"
)
_NO_BUILTINS = frozenset(_WITHHELD.split())


class _Return(BaseException):
    """A top-level ``return``, with its value."""


class _Expired(BaseException):
    """The program's time is up. If a program catches this, the host kills the worker."""


class Worker:
    """Serves frames over descriptors 0 and 1."""

    def __init__(self, wire: Any, states: dict[str, tuple[str, str]], output_limit: int) -> None:
        self.wire = wire
        self.functions: set[str] = set()
        self.deadline = 0.0
        self.classes = _copy_classes()
        self.registered = _registered(self.classes)
        self.module_state: dict[str, Any] = {}
        for note, _ in states.values():
            exec(note, self.module_state)
        put_back = "".join(source for _, source in states.values())
        self.put_state_back = compile(put_back, "<module-state>", "exec")
        self.output_limit = output_limit
        self.request = 0
        self.host = os.getppid()
        self.output: list[str] = []
        self.printed = 0
        self.programs = 0
        self.interruptible = False
        self.space: dict[str, Any] = {}
        self.restore_builtins()

    # Frames.

    def _read(self, count: int) -> bytes:
        pieces = []
        while count:
            piece = os.read(0, min(count, 1 << 20))
            if not piece:
                os._exit(0)
            pieces.append(piece)
            count -= len(piece)
        return b"".join(pieces)

    def receive(self) -> tuple[int, Any]:
        """Return kind and value of the next frame; end the process if the host no longer exists."""
        kind, self.request, length = self.wire.parse_header(self._read(self.wire.HEADER.size))
        return kind, self.wire.decode(self._read(length))

    def send(self, kind: int, value: Any, state: bytes | None = None) -> None:
        """Send a frame with the output so far."""
        output, self.output = "".join(self.output), []
        body = self.wire.encode([output, self.printed, value, state])
        data = self.wire.frame_header(kind, self.request, len(body)) + body
        view = memoryview(data)
        while view:
            view = view[os.write(1, view) :]

    # Namespace.

    def restore_builtins(self) -> None:
        """Put the built-ins into the namespace before each program, since an earlier one may have changed them."""
        names = dict(_BUILTINS)
        names["__import__"] = self._import
        self.space["__name__"] = "__main__"
        self.space["__builtins__"] = names
        sys.setrecursionlimit(RECURSION)
        # Flushing does nothing: output is sent with the next frame.
        sys.stdout = sys.stderr = types.SimpleNamespace(write=self.write, flush=lambda: None)
        signal.signal(signal.SIGALRM, self.expired)

    def restore_modules(self) -> None:
        """Undo what earlier programs changed in the state of modules, and registered with abstract classes."""
        exec(self.put_state_back, self.module_state)
        for kind, kept in self.registered:
            if len(_ABC._get_dump(kind)[0]) != len(kept):
                _ABC._reset_registry(kind)
                for one in kept:
                    kind.register(one)
                _ABC._reset_caches(kind)

    def restore_classes(self) -> None:
        """Undo changes of a program to classes of the standard library."""
        for kind, kept in self.classes:
            now = vars(kind)
            if len(now) == len(kept) and all(now.get(name) is value for name, value in kept.items()):
                continue
            for name in set(now) - set(kept):
                type.__delattr__(kind, name)
            for name, value in kept.items():
                if now.get(name) is not value:
                    type.__setattr__(kind, name, value)

    def _import(
        self, name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
    ) -> Any:
        """Import a module that was loaded before the lock-down; nothing else can be loaded.

        A program gets a copy of the module's public names, so that assigning to it changes no other module.
        """
        # datetime and time import _strptime with the globals of the caller of strptime.
        if (globals is not None and globals is not self.space) or name == "_strptime":
            return _real_import(name, globals, locals, fromlist, level)
        if level or (name not in IMPORTABLE and name.partition(".")[0] not in IMPORTABLE):
            raise ModuleNotFoundError(f"No module named '{name}'")
        _real_import(name, globals, locals, fromlist, 0)
        return _public_copy(name if fromlist else name.partition(".")[0])

    def write(self, text: str) -> None:
        """Collect output; it is sent with the next frame."""
        self.printed += len(text)
        room = self.output_limit - (self.printed - len(text))
        if room > 0:
            self.output.append(text[:room])

    def _stub(self, name: str) -> Any:
        def function(*args: Any, **keywords: Any) -> Any:
            # The timer must not interrupt a frame; it fires again once the program continues.
            self.interruptible = False
            self.send(CALL, [name, list(args), keywords])
            kind, value = self.receive()
            self.interruptible = True
            if kind == ANSWER:
                return value
            if kind == FAILURE:
                error = getattr(builtins, value[0], RuntimeError)
                raise error(value[1])
            os._exit(3)

        function.__name__ = function.__qualname__ = name
        return function

    # Programs.

    def run(
        self,
        code: str,
        functions: list[str],
        seconds: float,
        restored_builtins: list[str],
        restore_classes: bool,
        keep: bool,
    ) -> None:
        """Run one program and send its value or error.

        Args:
            functions: names of host functions.
            seconds: time until the timer stops it.
            restored_builtins: built-ins whose names earlier programs may have bound.
            restore_classes: earlier programs may have changed classes of the standard library.
            keep: send the data for restoring the namespace.
        """
        if restore_classes:
            self.restore_classes()
        self.restore_modules()
        self.restore_builtins()
        for name in restored_builtins:
            self.space.pop(name, None)
        self.functions.update(functions)
        for name in functions:
            self.space[name] = self._stub(name)
        self.printed, self.output = 0, []
        self.programs += 1
        filename = f"<program-{self.programs}>"
        try:
            # The timer also fires every 0.2 s, to check whether the host still exists.
            self.deadline = time.monotonic() + seconds
            signal.setitimer(signal.ITIMER_REAL, min(seconds, 0.2), 0.2)
            self.interruptible = True
            value = self._evaluate(code, filename)
            self.interruptible = False
            kind, reply = DONE, value
        except _Expired:
            self.interruptible = False
            kind, reply = ERROR, ["_Expired", "", None]
        except BaseException as error:  # noqa: BLE001 - SystemExit and KeyboardInterrupt of the program too
            self.interruptible = False
            kind, reply = ERROR, _error_parts(error, filename)
            error.__traceback__ = None
        signal.setitimer(signal.ITIMER_REAL, 0)
        state = self.state() if keep else None
        try:
            self.send(kind, reply, state)
        except self.wire.Malformed as error:
            text = f"the value of the last expression is too large: {error}"
            self.send(ERROR, ["ValueError", text, None], state)

    def _program_names(self) -> list[tuple[str, Any]]:
        return [
            (name, value)
            for name, value in list(self.space.items())
            if isinstance(name, str) and not name.startswith("_") and name not in self.functions
        ]

    def state(self) -> bytes:
        """Return the namespace for the next worker: plain data as bytes, other values as empty bytes."""
        kept, left = [], STATE_BYTES
        for name, value in self._program_names()[:5_000]:
            data = self._plain(value, left)
            left -= len(data) + len(name)
            kept.append([name, data])
        return self.wire.encode(kept)  # type: ignore[no-any-return]

    def _plain(self, value: Any, room: int) -> bytes:
        if isinstance(value, types.FunctionType | types.ModuleType | type):
            return b""
        try:
            return self.wire.encode(value, max_nodes=10_000, max_bytes=room, strict=True)  # type: ignore[no-any-return]
        except (ValueError, TypeError):
            return b""

    def restore(self, definitions: list[str], state: bytes) -> None:
        """Restore the namespace: imports, functions and classes from their source, then the plain data."""
        kept: dict[str, bytes] = dict(self.wire.decode(state)) if state else {}
        self.deadline = time.monotonic() + 2.0
        signal.setitimer(signal.ITIMER_REAL, 0.2, 0.2)
        try:
            self.interruptible = True
            for source in definitions:
                try:
                    exec(compile(source, "<earlier-program>", "exec"), self.space)
                except Exception:  # noqa: BLE001 - it may need a host function; the rest is restored
                    continue
            self.interruptible = False
        except BaseException:  # noqa: BLE001 - the timer, or a program's SystemExit: the data is restored anyway
            self.interruptible = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        for name, _ in self._program_names():
            if name not in kept:
                del self.space[name]
        for name, data in kept.items():
            if data:
                self.space[name] = self.wire.decode(data)
        self.printed, self.output = 0, []
        self.send(DONE, None)

    def _evaluate(self, code: str, filename: str) -> Any:
        tree = ast.parse(code, filename)
        _TopLevelReturn().visit(tree)
        last = tree.body[-1] if tree.body else None
        self.space["__rlm_return__"] = _raise_return
        try:
            if isinstance(last, ast.Expr):
                head = ast.Module(tree.body[:-1], [])
                exec(compile(head, filename, "exec"), self.space)
                return eval(compile(ast.Expression(last.value), filename, "eval"), self.space)
            exec(compile(tree, filename, "exec"), self.space)
        except _Return as returned:
            return returned.args[0]
        finally:
            self.space.pop("__rlm_return__", None)
        return None

    def names(self) -> None:
        """Send the namespace: for each name its bytes if it is plain data, its type, and a preview if it is not."""
        found, left = [], self.wire.MAX_BYTES // 2
        for name, value in self._program_names()[:2_000]:
            data = self._plain(value, min(left, 2_000_000))
            left -= len(data)
            found.append([name, data, type(value).__name__[:100], "" if data else _preview(value)])
        self.printed, self.output = 0, []
        self.send(DONE, found)

    def expired(self, _signal: int, _frame: Any) -> None:
        """Handle the timer's signal."""
        if os.getppid() != self.host:
            # The host was killed while the program ran.
            os._exit(0)
        if self.interruptible and time.monotonic() >= self.deadline:
            raise _Expired

    def serve(self) -> None:
        """Serve frames until the host closes the pipe."""
        while True:
            kind, value = self.receive()
            if kind == RUN:
                self.run(*value)
            elif kind == NAMES:
                self.names()
            elif kind == RESTORE:
                self.restore(*value)
            else:
                os._exit(3)


_ABC: Any = __import__("_abc")
"""What ``abc`` is made of: only there can a registration be taken back."""
_real_import = builtins.__import__
_BUILTINS = {name: value for name, value in vars(builtins).items() if name not in _NO_BUILTINS}


def _public_copy(name: str) -> types.ModuleType:
    """Return a copy of a module with its public names and the modules below it."""
    module = sys.modules[name]
    copy = types.ModuleType(name, module.__doc__)
    for key in getattr(module, "__all__", None) or dir(module):
        value = getattr(module, key, None)
        if (key.startswith("_") and name != "__future__") or isinstance(value, types.ModuleType):
            continue
        setattr(copy, key, value)
    for inner in IMPORTABLE:
        if inner.rpartition(".")[0] == name:
            setattr(copy, inner.rpartition(".")[2], _public_copy(inner))
    return copy


def _copy_classes() -> list[tuple[type, dict[str, Any]]]:
    """Return every class written in Python, with a copy of its attributes."""
    found: dict[int, tuple[type, dict[str, Any]]] = {}
    for module in list(sys.modules.values()):
        for value in list(vars(module).values()):
            if isinstance(value, type) and value.__flags__ & _HEAP_TYPE:
                found[id(value)] = (value, dict(vars(value)))
    return list(found.values())


def _registered(classes: list[tuple[type, dict[str, Any]]]) -> list[tuple[Any, list[type]]]:
    """Return the abstract classes, each with the classes that are registered with it."""
    found = [kind for kind, _ in classes if isinstance(kind, abc.ABCMeta)]
    return [(kind, [one for ref in _ABC._get_dump(kind)[0] if (one := ref()) is not None]) for kind in found]


_HEAP_TYPE = 1 << 9


def _preview(value: Any) -> str:
    """Return a short text for a value without running code of the program."""
    if isinstance(value, types.FunctionType | type | types.ModuleType):
        text = f"<{type(value).__name__} {value.__name__}>"
    elif type(value) in (list, dict, set, frozenset, tuple, str, bytes, int, float):
        text = reprlib.repr(value)
    else:
        text = f"<{type(value).__name__} object>"
    return text if len(text) <= 120 else text[:119] + "…"


def _raise_return(value: Any = None) -> None:
    raise _Return(value)


def _error_parts(error: BaseException, filename: str) -> list[Any]:
    """Return kind and message of an error, and its deepest line in this program."""
    if isinstance(error, SyntaxError):
        return [type(error).__name__, str(error.msg), error.lineno]
    line, step = None, error.__traceback__
    while step is not None:
        if step.tb_frame.f_code.co_filename == filename:
            line = step.tb_lineno
        step = step.tb_next
    kind = type(error).__name__
    return ["ValueError" if kind == "Malformed" else kind, _text(error), line]


def _text(error: BaseException) -> str:
    if isinstance(error, KeyError) and error.args:
        return repr(error.args[0])[:2000]
    try:
        return str(error)[:2000]
    except Exception:  # noqa: BLE001 - the program's own __str__ may raise anything
        return "<no message>"


class _TopLevelReturn(ast.NodeTransformer):
    """``return x`` outside functions ends the program with that value (docs/spec/sandbox.md, Functions)."""

    def _unchanged(self, node: ast.AST) -> ast.AST:
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = _unchanged

    def visit_Return(self, node: ast.Return) -> ast.AST:
        call = ast.Call(
            ast.Name("__rlm_return__", ast.Load()), [node.value] if node.value is not None else [], []
        )
        return ast.fix_missing_locations(ast.copy_location(ast.Expr(call), node))


def _limit(resource: Any, memory_mb: int) -> None:
    total = (memory_mb + 96) * 1024 * 1024
    for name, value in (
        ("RLIMIT_AS", total),
        ("RLIMIT_CORE", 0),
        ("RLIMIT_FSIZE", 0),
        ("RLIMIT_NOFILE", 3),
        ("RLIMIT_NPROC", 0),
        ("RLIMIT_MEMLOCK", 0),
    ):
        which = getattr(resource, name, None)
        if which is not None:
            try:
                resource.setrlimit(which, (value, value))
            except (ValueError, OSError):
                # macOS refuses some of them, where weaker isolation was allowed explicitly.
                continue


def main() -> None:
    """Load the modules, lock the process down, and serve frames."""
    memory_mb, output_limit, filtered = int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    wire, seccomp, module_state = map(__import__, ("wire", "seccomp", "module_state"))
    for name in MODULES:
        try:
            __import__(name)
        except ImportError:
            continue
    try:
        resource = __import__("resource")
    except ImportError:  # some systems lack it
        resource = None
    sys.path.clear()
    sys.meta_path.clear()
    sys.path_hooks.clear()
    sys.argv.clear()
    sys.stdin = None
    # Output of library code, such as pprint, is collected like that of print.
    worker = Worker(wire, module_state.STATES, output_limit)
    gc.freeze()  # what is loaded stays
    gc.enable()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.closerange(3, 256)  # libffi keeps a file open
    if resource is not None:
        _limit(resource, memory_mb)
    confined = "none"
    if filtered == "filter":
        seccomp.install()
        confined = "seccomp"
    worker.send(HELLO, confined)
    worker.serve()
