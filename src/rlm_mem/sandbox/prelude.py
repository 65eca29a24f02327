"""The source of the compatibility layer: Python functions that Monty lacks, in pieces, which run in the sandbox.

A piece is defined in a session only when a program needs it, since each snapshot contains the whole namespace. Names
begin with ``_rlm_``, which programs may not use.
"""

from __future__ import annotations

import ast
from functools import cache

from rlm_mem.sandbox.policy import syntax_tree
from rlm_mem.sandbox.prelude_modules import MODULES

BUILTIN_PREFIX = "_rlm_b_"
"""Prefix of the layer's own names of the built-ins."""

REQUIRES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(MODULES, ("space",)),
    "heapq": ("sorted", "space"),
    "sort": ("sorted",),
    "subn": ("sub",),
}
"""Pieces that other pieces require."""

_BUILTIN_NAMES = (
    "abs all any bool bytes dict enumerate filter float frozenset getattr hasattr int isinstance iter len list locals "
    "map max min next ord chr print range repr reversed round set setattr sorted str sum tuple type zip object id "
    "hash hex bin oct pow divmod slice format property "
    "BaseException Exception ArithmeticError AssertionError AttributeError ImportError IndexError KeyError LookupError "
    "ModuleNotFoundError NameError NotImplementedError OSError OverflowError PermissionError RecursionError "
    "RuntimeError StopIteration SyntaxError TimeoutError TypeError UnicodeDecodeError ValueError "
    "ZeroDivisionError"
)
BUILTINS = tuple(_BUILTIN_NAMES.split())
"""Built-ins of Monty that the layer and programs use, each also available as ``_rlm_b_<name>``."""

START = "\n".join(
    [
        *(f"{BUILTIN_PREFIX}{name} = {name}" for name in BUILTINS),
        # Code generated at run time would bypass the check of names that protects the layer.
        "exec = eval = None",
    ]
)
"""The first source that runs in an empty namespace."""

BASE = """
def _rlm_base(gateway, nodes, room, digits):
    def write(value, out, left, depth, strict):
        left[0] -= 1
        if left[0] < 0:
            raise ValueError('the value has too many parts; pass on fewer of them')
        if isinstance(value, str):
            size = len(value)
            left[1] -= size if size < 100_000 else len(value.encode('utf-8'))
            if left[1] < 0:
                raise ValueError('the value contains too much text; pass on a part of it')
            out.append('s' + str(size) + ':')
            out.append(value)
        elif value is None:
            out.append('N')
        elif value is True or value is False:
            out.append('T' if value else 'F')
        elif isinstance(value, int):
            if value > digits or value < -digits:
                raise ValueError('the number has more than 4,000 digits')
            out.append('i' + str(value) + ';')
        elif isinstance(value, float):
            out.append('f' + repr(value) + ';')
        else:
            many(value, out, left, depth, strict)
    def start(tag, value, out, left, depth):
        if depth > 38:
            raise ValueError('the value is nested too deep, or contains itself')
        if len(value) > left[0]:
            raise ValueError('the value has too many parts; pass on fewer of them')
        out.append(tag + str(len(value)) + ':')
    def many(value, out, left, depth, strict):
        kind = type(value).__name__
        if isinstance(value, dict):
            start('d', value, out, left, depth)
            for key, item in value.items():
                write(key, out, left, depth + 1, strict)
                write(item, out, left, depth + 1, strict)
        elif isinstance(value, tuple) and hasattr(value, '_asdict'):
            many(value._asdict(), out, left, depth, strict)
        elif isinstance(value, (list, tuple)) or kind in ('dict_keys', 'dict_values', 'dict_items', 'deque', 'range'):
            start('t' if isinstance(value, tuple) else 'l', value, out, left, depth)
            for item in value:
                write(item, out, left, depth + 1, strict)
        elif isinstance(value, (set, frozenset)):
            start('e', value, out, left, depth)
            for item in value:
                write(item, out, left, depth + 1, strict)
        elif isinstance(value, bytes):
            write(value.hex(), out, left, depth, strict)
            out[-2] = 'b' + out[-2][1:]
        elif kind in ('datetime', 'date', 'time'):
            write(kind + ' ' + value.isoformat(), out, left, depth, strict)
            out[-2] = 'D' + out[-2][1:]
        elif kind == 'timedelta':
            parts = [str(value.days), str(value.seconds), str(value.microseconds)]
            write(' '.join(parts), out, left, depth, strict)
            out[-2] = 'M' + out[-2][1:]
        elif kind == 'Decimal':
            write('Decimal ' + str(value), out, left, depth, strict)
            out[-2] = 'D' + out[-2][1:]
        elif strict:
            raise TypeError('no plain data')
        elif kind == 'list_iterator':
            described('<iterator>', out, left, depth)
        else:
            described(repr(value)[:1_000], out, left, depth)
    def described(shown, out, left, depth):
        write(shown, out, left, depth, False)
        out[-2] = 'o' + out[-2][1:]
    def text(value):
        out = []
        write(value, out, [nodes, room], 0, False)
        return out
    def short(value, left, depth):
        if isinstance(value, (str, bytes)):
            return repr(value[:left]) if len(value) <= left else repr(value[:left]) + '…'
        if isinstance(value, (list, tuple, set, frozenset, dict)):
            if depth > 2:
                return '…'
            parts = []
            for item in value:
                if left < 0 or len(parts) > 20:
                    parts.append('…')
                    break
                part = short(item, left, depth + 1)
                if isinstance(value, dict):
                    part = part + ': ' + short(value[item], left - len(part), depth + 1)
                left -= len(part) + 2
                parts.append(part)
            inside = ', '.join(parts)
            if isinstance(value, list):
                return '[' + inside + ']'
            return '(' + inside + ')' if isinstance(value, tuple) else '{' + inside + '}'
        if value is None or isinstance(value, (int, float)) or type(value).__name__ in ('function', 'type', 'module'):
            return repr(value)[:left]
        return '<' + type(value).__name__ + ' object>'
    def state(names, skip):
        out, left = [], [nodes, room]
        for name, value in names.items():
            if name[:5] == '_rlm_' or name[:2] == '__' or name in skip:
                continue
            part, before = [], [left[0], left[1]]
            try:
                write(value, part, [min(left[0], nodes // 5), min(left[1], room // 5)], 0, True)
                left[0] -= len(part)
                left[1] -= sum([len(piece) for piece in part])
            except (ValueError, TypeError):
                kind = type(value).__name__
                shown = short(value, 120, 0)
                shown = shown if len(shown) <= 120 else shown[:119] + '…'
                part = [str(len(kind)) + ':', kind, str(len(shown)) + ':', shown]
                out.append('P' + str(len(name)) + ':' + name)
            else:
                out.append('V' + str(len(name)) + ':' + name)
            out.extend(part)
            if len(out) > nodes:
                break
        return out
    def make(name):
        def call(*args, **named):
            if not named and len(args) == 1 and isinstance(args[0], str) and len(args[0]) < 100_000:
                answer = getattr(gateway, name + '\\nl1:s' + str(len(args[0])) + ':' + args[0] + 'd0:')
            else:
                if len(args) + len(named) > 64:
                    raise TypeError('too many arguments; pass one list')
                out, left = [name + '\\n'], [nodes, room]
                write(list(args), out, left, 0, False)
                write(named, out, left, 0, False)
                answer = getattr(gateway, ''.join(out))
            if len(answer) == 1:
                return answer[0]
            kind, message = answer
            raise errors.get(kind, RuntimeError)(message)
        return call
    errors = {'ValueError': ValueError, 'TypeError': TypeError, 'KeyError': KeyError, 'LookupError': LookupError,
        'NameError': NameError, 'PermissionError': PermissionError}
    return text, state, make
_rlm_value, _rlm_state, _rlm_function = _rlm_base(_rlm_gateway, _rlm_nodes, _rlm_room, _rlm_digits)
_rlm_gateway = None
"""
"""Defined in every session: values leave the sandbox as text (read by ``values``), and calls of host functions as well.

The gateway is an object of the host without a name in the sandbox: looking up one of its attributes passes the
attribute's name, which is always text, to the driver. The bounds here only avoid long texts; ``values`` enforces them.
"""

_EXTREME = """
def _rlm_{name}(*items, key=None, **rest):
    items = list(items[0]) if len(items) == 1 else list(items)
    if not items:
        if 'default' in rest:
            return rest['default']
        raise ValueError('{name}() iterable argument is empty')
    best, score = items[0], key(items[0])
    for item in items[1:]:
        other = key(item)
        if other {sign} score:
            best, score = item, other
    return best
"""

PIECES: dict[str, str] = {
    "map": """
def _rlm_map(function, *lists):
    return iter([function(*items) for items in zip(*lists)])
""",
    "filter": """
def _rlm_filter(function, items):
    if function is None:
        return iter([item for item in items if item])
    return iter([item for item in items if function(item)])
""",
    "sorted": """
def _rlm_sorted(items, *, key=None, reverse=False):
    items = list(items)
    if key is None:
        return sorted(items, reverse=bool(reverse))
    keys = [key(item) for item in items]
    if reverse:
        order = sorted([(keys[i], -i) for i in range(len(items))], reverse=True)
        return [items[-i] for _, i in order]
    order = sorted([(keys[i], i) for i in range(len(items))])
    return [items[i] for _, i in order]
""",
    "min": _EXTREME.format(name="min", sign="<"),
    "max": _EXTREME.format(name="max", sign=">"),
    "sort": """
def _rlm_sort(items, *, key=None, reverse=False):
    items[:] = _rlm_sorted(items, key=key, reverse=reverse)
""",
    "next": """
def _rlm_next(items, *default):
    if isinstance(items, list):
        if items:
            return items[0]
        if default:
            return default[0]
        raise StopIteration()
    return next(items, *default)
""",
    "method": """
def _rlm_method(value, name, make):
    if hasattr(value, name):
        return getattr(value, name)
    return make(value)
""",
    "callable": """
def _rlm_callable(value):
    text = str(type(value))
    return text == "<class 'type'>" or 'function' in text or 'method' in text or hasattr(value, '__call__')
""",
    "object": """
def _rlm_object():
    class plain_object:
        pass
    return plain_object()
""",
    "space": """
def _rlm_space(**names):
    class module:
        pass
    space = module()
    for name, value in names.items():
        setattr(space, name, value)
    return space
""",
    "maketrans": """
def _rlm_maketrans(source, target=None, remove=''):
    if target is None:
        return {(ord(k) if isinstance(k, str) else k): v for k, v in source.items()}
    table = {ord(a): b for a, b in zip(source, target)}
    for character in remove:
        table[ord(character)] = None
    return table
""",
    "translate": """
def _rlm_translate(text, table):
    out = []
    for character in text:
        to = table.get(ord(character), character)
        if to is not None:
            out.append(chr(to) if isinstance(to, int) else to)
    return ''.join(out)
""",
    "sub": """
import re as _rlm_re
def _rlm_sub_count(target, args, named):
    args = list(args)
    if hasattr(target, 'compile'):
        pattern = args.pop(0) if args else named.pop('pattern')
        names = ['repl', 'string', 'count', 'flags']
    else:
        pattern = target
        names = ['repl', 'string', 'count']
    for name, value in zip(names, args):
        named[name] = value
    repl, text, count = named['repl'], named['string'], named.get('count', 0)
    if isinstance(pattern, str):
        pattern = _rlm_re.compile(pattern, named.get('flags', 0))
    if isinstance(repl, str):
        found = len(list(pattern.finditer(text)))
        return pattern.sub(repl, text, count), min(found, count) if count else found
    out, at, done = [], 0, 0
    for found in pattern.finditer(text):
        if count and done >= count:
            break
        out.append(text[at:found.start()])
        out.append(repl(found))
        at = found.end()
        done += 1
    out.append(text[at:])
    return ''.join(out), done
def _rlm_sub(target, *args, **named):
    repl = named.get('repl', args[1] if hasattr(target, 'compile') and len(args) > 1 else args[0] if args else None)
    if isinstance(repl, str):
        return target.sub(*args, **named)
    return _rlm_sub_count(target, args, named)[0]
""",
    "subn": """
def _rlm_subn(target, *args, **named):
    return _rlm_sub_count(target, args, named)
""",
    "dumps": """
def _rlm_plain(value, default):
    if isinstance(value, dict):
        return {k: _rlm_plain(v, default) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_rlm_plain(v, default) for v in value]
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    return _rlm_plain(default(value), default)
""",
    "cmp": """
def _rlm_sorted_cmp(items, compare, reverse=False):
    items = list(items)
    if len(items) < 2:
        return items
    middle = len(items) // 2
    left = _rlm_sorted_cmp(items[:middle], compare, reverse)
    right = _rlm_sorted_cmp(items[middle:], compare, reverse)
    out = []
    while left and right:
        order = compare(left[0], right[0])
        take = left if (order >= 0 if reverse else order <= 0) else right
        out.append(take.pop(0))
    return out + left + right
""",
    "namedtuple": """
from collections import namedtuple as _rlm_namedtuple
""",
    "wraps": """
def _rlm_wraps(function):
    return lambda wrapper: wrapper
""",
}


class _BuiltinRenamer(ast.NodeTransformer):
    """Renames built-ins to the layer's own names, since a program may assign ``len`` or ``sum``."""

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id in BUILTINS and isinstance(node.ctx, ast.Load):
            node.id = BUILTIN_PREFIX + node.id
        return node


@cache
def source(piece: str) -> str:
    """Return the source of a piece of the layer (``base``, or a key of ``PIECES`` or ``MODULES``) for the sandbox."""
    text = BASE if piece == "base" else PIECES[piece] if piece in PIECES else MODULES[piece][1]
    return ast.unparse(_BuiltinRenamer().visit(syntax_tree(text)))
