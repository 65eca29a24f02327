"""Tables for the rewriting of idioms: methods of built-in types, and built-ins that cannot call the host."""

from __future__ import annotations

import builtins

TYPE_NAMES = ("str", "list", "dict", "set", "tuple", "int", "float", "bytes", "frozenset")

TYPES_OWN_METHODS = frozenset(
    {"fromkeys", "from_bytes", "fromhex", "__name__", "__init__", "__doc__", "__len__"}
)
"""Attributes of the type itself, not of its instances."""

_METHOD_NAMES = (
    "append extend insert pop remove sort reverse clear copy count index get keys values items update setdefault "
    "popitem add discard union intersection difference issubset issuperset symmetric_difference lower upper strip "
    "lstrip rstrip split rsplit splitlines join replace startswith endswith find rfind title capitalize casefold "
    "swapcase isdigit isalpha isalnum isupper islower isspace isnumeric format encode decode zfill center ljust rjust "
    "partition rpartition removeprefix removesuffix most_common elements appendleft popleft findall search match "
    "fullmatch finditer group groups span isoformat strftime timestamp total_seconds"
)
METHODS = frozenset(_METHOD_NAMES.split())
"""Methods that a program may pass as values (``key=d.get``); fields of the same name take precedence at run time."""

_CALLBACK_SAFE_NAMES = (
    "abs bool bytes chr dict divmod enumerate filter float frozenset hash hex int isinstance len list map max min ord "
    "pow print range repr reversed round set sorted str sum tuple type zip any all bin oct format iter"
)
CALLBACK_SAFE_BUILTINS = frozenset(_CALLBACK_SAFE_NAMES.split())
"""Built-ins that call no function of the program unless one is passed to them."""

EXCEPTIONS = frozenset(
    name
    for name, kind in vars(builtins).items()
    if isinstance(kind, type) and issubclass(kind, BaseException)
)
"""Names of built-in exceptions."""
