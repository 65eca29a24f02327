"""Remedies for errors of programs: what a model should write instead."""

from __future__ import annotations

from difflib import get_close_matches

from rlm_mem.sandbox.prelude_modules import MODULES
from rlm_mem.sandbox.reference import PAGES
from rlm_mem.text.patterns import late

_BY_MESSAGE = tuple(
    (late(pattern), hint)
    for pattern, hint in {
        r"f-string: (?:expecting|unmatched|unterminated|invalid syntax)": "inside the braces of an "
        "f-string use the other kind of quotes, or put the value into a variable first",
        r"cannot suspend in this synchronous context": "host functions cannot be called from inside a "
        "built-in here: use a for loop or a list comprehension",
        r"support class inheritance": "classes cannot inherit here: write a plain class, a @dataclass, or a dict",
        r"support method decorators": "no @property, @staticmethod or @classmethod here: write an "
        "ordinary method or a function",
        r"support yield": "use 'yield' only as its own statement in a plain def, or build and return a list",
        r"exceptions can only be called with": "write ValueError(str(value)): an exception takes one text here",
        r"support the 'del' statement": "write d.pop(key), or assign None",
        r"support async comprehensions|exception groups": "write a plain for loop with try and except",
        r"has no attribute '(?:VERBOSE|X)'": "write the pattern on one line, without re.VERBOSE",
        r"object has no attribute '(?:get|items|keys|values)'": "this is not a dict; look at type(value) first",
        r"'dict' object has no attribute": "chunks and hits are dicts: write chunk['content'], hit['snippet']",
        r"\A(?:KeyError: )?'(?:text|snippet|content)'\Z": "the text is hit['snippet'] of search, row['text'] of "
        "passages and turns, chunk['content'] of read_chunk",
        r"'NoneType' object": "read_chunk returns None for an unknown id: test it before use",
        r"indices must be|unsupported operand|unhashable|concatenate|(?:expected|must be)[^:]{0,40} str\b"
        r"|object is not (?:iterable|callable)": "search, passages and turns give lists of dicts, "
        "search_chunks gives ids: look at type(value) first",
        r"'list' object is not an iterator": "wrap it: next(iter(items), None)",
        r"not supported between instances": "classes cannot be ordered here: pass key=lambda item: item.field",
        r"object of type '[^']{0,200}' has no len|is not subscriptable": "look at type(value) first; "
        "use dicts and lists",
        r"name '(?:dir|vars|globals)' is not defined": "use the names you assigned; print what you want to see",
        r"name '(?:super|issubclass|property|staticmethod|classmethod)' is not defined": "use functions and dicts",
        r"name 'bytearray' is not defined": "use bytes, or a list of numbers",
        r"name '\w{1,200}+' is not defined": "assign it first, or import its module; earlier programs' names persist",
        r"Exceeds the limit \(\d{1,20} digits\)": "work with smaller numbers",
    }.items()
)

_BY_KIND: dict[str, str] = {
    "TimeoutError": "do less in one program; check that every loop ends",
    "MemoryError": "keep less at a time: slice texts and lists, and print parts",
    "RecursionError": "use a loop instead of recursion",
    "KeyError": "use d.get(key), or print(list(d)) to see the keys",
    "AttributeError": "chunks and hits are dicts: write hit['snippet'], not hit.snippet",
    "IndexError": "the list may be empty: check len(items) first",
    "SyntaxError": "send the whole program again, with closed brackets and quotes and even indentation",
    "PermissionError": "there is no file system, network or clock of the host in the sandbox",
}

_MAX_MESSAGE_CHARS = 2_000
"""Maximum characters of a message that are searched, since the program controls its length."""

_UNKNOWN_NAME = late(r"\Aname '(\w{1,60})' is not defined")
_MISSING_MODULE = late(r"No module named '([\w.]{1,200}+)'")


def hint_for(kind: str, message: str) -> str | None:
    """Return a sentence on what to write instead, or None if there is no general remedy."""
    message = message[:_MAX_MESSAGE_CHARS]
    missing = _MISSING_MODULE.search(message)
    if missing is not None:
        module = missing.group(1)
        if module in MODULES:
            return f"{module} provides {', '.join(MODULES[module][0])}"
        if module == "contextlib":
            return "contextlib provides suppress; otherwise write try and except"
        return "use one of the available modules, for example re, json, math, datetime or collections"
    unknown = _UNKNOWN_NAME.search(message)
    if unknown is not None:
        # A function of a model may be missing in the session, so it is not named.
        known = [name for name, page in PAGES.items() if page.by != "model"]
        if near := get_close_matches(unknown.group(1), known, n=1, cutoff=0.7):
            return f"write {near[0]}, or assign {unknown.group(1)} first"
    for pattern, hint in _BY_MESSAGE:
        if pattern.search(message):
            return hint
    return _BY_KIND.get(kind)
