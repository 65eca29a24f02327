"""Sandbox-side source of the compatibility layer: small Python functions that Monty lacks, by piece.

Nothing here runs in the host. A piece is fed to a session only when a program needs it, because everything
in the namespace is part of each snapshot. Names begin with ``_rlm_``, which programs may not use.
"""

from __future__ import annotations

__all__ = ["BASE", "PIECES", "REQUIRES"]

REQUIRES: dict[str, tuple[str, ...]] = {
    "min": ("sorted",),
    "max": ("sorted",),
    "sort": ("sorted",),
    "subn": ("sub",),
    "heapq": ("sorted", "space"),
    "operator": ("space",),
    "statistics": ("space",),
    "string": ("space",),
    "textwrap": ("space",),
    "difflib": ("space", "sorted"),
    "pprint": ("space",),
    "itertools": ("space",),
}
"""Pieces that a piece needs before it."""

BASE = """
def _rlm_value(value):
    if value is None or value is True or value is False or isinstance(value, float):
        return value
    if isinstance(value, str) and len(value) < 100_000:
        return value
    return _rlm_copy(value, [_rlm_nodes, _rlm_bytes], 0)
def _rlm_copy(value, left, depth):
    left[0] -= 1
    if left[0] < 0:
        raise ValueError('the value has too many parts; pass on fewer of them')
    if value is None or isinstance(value, (bool, float)):
        return value
    if isinstance(value, int):
        if value > _rlm_digits or value < -_rlm_digits:
            raise ValueError('the number has more than 4,000 digits')
        return value
    if isinstance(value, str):
        left[1] -= len(value) if len(value) < 100_000 else len(value.encode('utf-8'))
        if left[1] < 0:
            raise ValueError('the value holds too much text; pass on a part of it')
        return value
    if depth > 38:
        raise ValueError('the value is nested too deep, or holds itself')
    kind = type(value).__name__
    if isinstance(value, dict):
        if len(value) > left[0]:
            raise ValueError('the value has too many parts; pass on fewer of them')
        out, odd = {}, 0
        for key, item in value.items():
            if not isinstance(key, str):
                odd += 0 if isinstance(key, int) and -2147483648 < key < 2147483648 else 1
                if odd > 1_000:
                    raise ValueError('the value has too many keys that are not text; use text keys')
                key = _rlm_copy(key, left, depth + 1)
            out[key] = _rlm_copy(item, left, depth + 1)
        return out
    if isinstance(value, tuple) and hasattr(value, '_asdict'):
        return _rlm_copy(value._asdict(), left, depth)
    if kind in ('dict_keys', 'dict_values', 'dict_items', 'deque', 'list_iterator', 'range') or isinstance(
        value, (list, tuple)
    ):
        if kind == 'list_iterator':
            return {'_rlm_described': '<iterator>'}
        if len(value) > left[0]:
            raise ValueError('the value has too many parts; pass on fewer of them')
        out = [_rlm_copy(item, left, depth + 1) for item in value]
        return tuple(out) if isinstance(value, tuple) else out
    if isinstance(value, (set, frozenset)):
        if len(value) > left[0]:
            raise ValueError('the value has too many parts; pass on fewer of them')
        odd = sum([0 if isinstance(item, str) else 1 for item in value])
        if odd > 1_000 and not all([isinstance(i, (str, int)) and (isinstance(i, str) or abs(i) < 2147483648)
                                    for i in value]):
            raise ValueError('the set has too many members that are not text; pass on a list')
        return set([_rlm_copy(item, left, depth + 1) for item in value])
    if isinstance(value, bytes):
        left[1] -= len(value)
        if left[1] < 0:
            raise ValueError('the value holds too much text; pass on a part of it')
        return value
    if kind in ('datetime', 'date', 'time', 'timedelta', 'Decimal'):
        return value
    return {'_rlm_described': repr(value)[:1_000]}
def _rlm_host(function):
    def call(*args, **named):
        if not named and len(args) == 1 and isinstance(args[0], str) and len(args[0]) < 100_000:
            return function(args[0])
        if len(args) + len(named) > 64:
            raise TypeError('too many arguments; pass one list')
        left = [_rlm_nodes, _rlm_bytes]
        args = [_rlm_copy(value, left, 0) for value in args]
        return function(*args, **{name: _rlm_copy(value, left, 0) for name, value in named.items()})
    return call
"""
"""What every session has: values are copied as bounded plain data *before* they cross to the host.

The host turns whatever crosses into Python objects before any check of its own could run, and a dict whose keys
all have one hash takes it minutes to build. So the bounds of ``values.py`` are kept here first.
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
    "reduce": """
_rlm_missing = ['missing']
def _rlm_reduce(function, items, start=_rlm_missing):
    items = list(items)
    if start is _rlm_missing:
        if not items:
            raise TypeError('reduce() of empty iterable with no initial value')
        start = items.pop(0)
    for item in items:
        start = function(start, item)
    return start
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
    "min": """
def _rlm_min(*items, key=None, **rest):
    items = list(items[0]) if len(items) == 1 else list(items)
    if not items:
        if 'default' in rest:
            return rest['default']
        raise ValueError('min() iterable argument is empty')
    best, score = items[0], key(items[0])
    for item in items[1:]:
        other = key(item)
        if other < score:
            best, score = item, other
    return best
""",
    "max": """
def _rlm_max(*items, key=None, **rest):
    items = list(items[0]) if len(items) == 1 else list(items)
    if not items:
        if 'default' in rest:
            return rest['default']
        raise ValueError('max() iterable argument is empty')
    best, score = items[0], key(items[0])
    for item in items[1:]:
        other = key(item)
        if other > score:
            best, score = item, other
    return best
""",
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
    "preview": """
def _rlm_short(value, room, depth):
    if isinstance(value, (str, bytes)):
        return repr(value[:room]) if len(value) <= room else repr(value[:room]) + '…'
    if isinstance(value, (list, tuple, set, frozenset)):
        kind = type(value).__name__
        if depth > 2:
            return '…'
        parts = []
        for item in value:
            if room < 0 or len(parts) > 20:
                parts.append('…')
                break
            part = _rlm_short(item, room, depth + 1)
            room -= len(part) + 2
            parts.append(part)
        inside = ', '.join(parts)
        return '[' + inside + ']' if kind == 'list' else '(' + inside + ')' if kind == 'tuple' else '{' + inside + '}'
    if isinstance(value, dict):
        if depth > 2:
            return '…'
        parts = []
        for key, item in value.items():
            if room < 0 or len(parts) > 20:
                parts.append('…')
                break
            part = _rlm_short(key, room, depth + 1) + ': ' + _rlm_short(item, room, depth + 1)
            room -= len(part) + 2
            parts.append(part)
        return '{' + ', '.join(parts) + '}'
    return repr(value)[:room]
def _rlm_preview(value):
    text = _rlm_short(value, 120, 0)
    return (type(value).__name__, text if len(text) <= 120 else text[:119] + '…')
""",
    "callable": """
def _rlm_callable(value):
    text = str(type(value))
    return text == "<class 'type'>" or 'function' in text or 'method' in text or hasattr(value, '__call__')
""",
    "object": """
class _rlm_object:
    pass
""",
    "space": """
class _rlm_space:
    def __init__(self, **names):
        for name, value in names.items():
            setattr(self, name, value)
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
