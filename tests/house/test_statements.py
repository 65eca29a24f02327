"""Every statement of the PostgreSQL backend finds its rows by the namespace that it names, as a cluster needs it.

On Citus a table without ``ns = %s`` of its own is asked on every worker, a subquery that is correlated by
``x.ns = c.ns`` is refused, and so is a value that each server would compute for itself in ``DO UPDATE``. The rules are
read off the source: no server is needed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from rlm_mem.store.postgres.schema import TABLES
from tests.house.sources import MODULES, listed, named, tree

_STATEMENT = re.compile(r"^rlm_mem\.\w+ |\b(SELECT|INSERT|UPDATE|DELETE|COPY|JOIN|FROM)\b")
_TOKEN = re.compile(r"'(?:[^']|'')*'|%s|::|<=|>=|<>|[\w.§]+|\S")
_TABLE = re.compile(rf"rlm_mem\.({'|'.join(TABLES)}|§)|§name")
_VOLATILE = re.compile(
    r"\b(now|\w*_timestamp|nextval|random|gen_random_uuid|timeofday)\b\s*\(?", re.IGNORECASE
)
#: In an UPDATE alone, a cluster computes ``now()`` and ``statement_timestamp()`` once.
_VOLATILE_IN_UPDATE = re.compile(
    r"\b(DEFAULT|clock_timestamp|nextval|random|gen_random_uuid|timeofday)\b", re.IGNORECASE
)
#: What concerns every namespace on purpose: their listing, the directory of databases, and a migration of rows.
_EVERYWHERE = {"_COUNTED", "_COUNTED_APART", "_NORMAL_TAGS", "shards", "Routes.namespaces"}
#: Of the server, not of its tables: sizes and kinds of tables, and their maintenance and making.
_ABOUT_TABLES = re.compile(r"^\s*(VACUUM|ANALYZE|LOCK TABLE|CREATE|ALTER)\b")


def _values(module: ast.Module) -> dict[str, ast.expr]:
    """Names of a module that stand for a text."""
    return {
        target.id: node.value
        for node in module.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _read(node: ast.expr, known: dict[str, ast.expr]) -> str | None:
    """The text of an expression, with § where it depends on what runs; None where it is no text."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(_read(part, known) or "" for part in node.values)
    if isinstance(node, ast.FormattedValue):
        inner = node.value
        if isinstance(inner, ast.Name) and inner.id in known:
            return _read(known[inner.id], known) or "§"
        return "§name" if isinstance(inner, ast.Attribute) and inner.attr == "name" else "§"
    return None


def _texts(module: ast.Module) -> Iterator[tuple[str, int, str]]:
    """Every text of a module, whole: where it stands, its line, and what it says."""
    known = _values(module)

    def walk(node: ast.AST, place: str) -> Iterator[tuple[str, int, str]]:
        for child in ast.iter_child_nodes(node):
            inside = place
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                inside = f"{place}.{child.name}".lstrip(".")
            elif isinstance(child, ast.Assign) and not place and isinstance(child.targets[0], ast.Name):
                inside = child.targets[0].id
            if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
                continue  # a docstring
            text = _read(child, known) if isinstance(child, ast.Constant | ast.JoinedStr) else None
            if text is None:
                yield from walk(child, inside)
            else:
                yield inside, child.lineno, text  # type: ignore[attr-defined]

    yield from walk(module, "")


def _levels(text: str) -> Iterator[list[str]]:
    """The tokens of each query by itself: what stands in parentheses is one of its own, and so is each part of a union.

    The query around it keeps ``()`` of it, with the first word of a list, which says what an INSERT writes.
    """
    found: list[list[str]] = []
    stack: list[list[str]] = [[]]
    for token in _TOKEN.findall(text):
        if token == "(":
            stack.append([])
        elif token == ")" and len(stack) > 1:
            inner = stack.pop()
            found.append(inner)
            stack[-1] += ["(", *inner[:1], ")"] if "SELECT" not in inner[:1] else ["(", ")"]
        else:
            stack[-1].append(token)
    for level in [*found, *stack]:
        part: list[str] = []
        for token in level:
            if token == "UNION":
                yield part
                part = []
            else:
                part.append(token)
        yield part


def _wrong(text: str) -> Iterator[str]:
    """What a statement, or a part of one, does that a cluster refuses or sends to every server."""
    for level in _levels(text):
        bound = {
            level[at].rpartition(".")[0]
            for at in range(len(level) - 2)
            if re.fullmatch(r"(\w+\.)?ns", level[at]) and level[at + 1 : at + 3] == ["=", "%s"]
        }
        for at, token in enumerate(level):
            if not _TABLE.fullmatch(token):
                continue
            before, after = level[at - 1] if at else "", level[at + 1 :]
            alias = token.rpartition(".")[2]
            rest = after[1:] if after[:1] == ["AS"] else after
            if rest and re.fullmatch(r"[a-z]\w*", rest[0]):
                alias, after = rest[0], rest[1:]
            if before == "INTO":
                yield from _wrong_insert(token, after, level, bound)
            elif before == "COPY":
                if after[:3] != ["(", "ns", ")"]:
                    yield f"{token} is copied to without its ns first"
            elif alias not in bound and "" not in bound:
                yield f"{token} is read or changed without {alias}.ns = %s of its own"
        if "UPDATE" in level and "DO" in level:
            values = " ".join(level[level.index("DO") :])
            if _VOLATILE.search(values.replace(" (", "(").split(" RETURNING")[0]):
                yield "DO UPDATE sets what each server would compute for itself"
        elif "UPDATE" in level and _VOLATILE_IN_UPDATE.search(" ".join(level).split(" RETURNING")[0]):
            yield "UPDATE sets what each server would compute for itself"
        for at, token in enumerate(level):
            if re.fullmatch(r"\w+\.ns", token) and level[at + 1 : at + 2] == ["="] and level[at + 2] != "%s":
                yield f"{token} = {level[at + 2]} joins by namespace instead of naming it"
            if token == "USING" and level[at + 1 : at + 3] == ["(", "ns"]:
                yield "USING (ns, …) joins by namespace instead of naming it"


def _wrong_insert(table: str, after: list[str], level: list[str], bound: set[str]) -> Iterator[str]:
    if after[:3] != ["(", "ns", ")"]:
        yield f"{table} is written without its ns first"
        return
    values = after[3:]
    at = {"VALUES": 2, "SELECT": 1}.get(values[0] if values else "", len(values))
    first = values[at : at + 1]
    if first != ["%s"] and not (first and first[0].endswith(".ns") and first[0][:-3] in bound):
        yield f"{table} is written with an ns that is not given: {' '.join(values[:4])}"


def _violations(path: Path) -> Iterator[str]:
    for place, line, text in _texts(tree(path)):
        if "rlm_mem" not in text and "§name" not in text:
            continue
        if place in _EVERYWHERE or _ABOUT_TABLES.match(text):
            continue
        if not _STATEMENT.search(text):  # the name of a table, or a message
            continue
        yield from (f"{named(path)}:{line} ({place}): {what}" for what in _wrong(text))


def test_every_table_of_every_statement_is_bound_to_the_namespace_that_is_given() -> None:
    modules = [path for path in MODULES if "store/postgres" in path.as_posix()]
    assert sum(1 for path in modules for _, _, text in _texts(tree(path)) if "rlm_mem." in text) > 120
    violations = [one for path in modules for one in _violations(path)]
    assert not violations, listed(violations)


def test_the_shapes_that_a_cluster_refuses_are_found() -> None:
    insert = "INSERT INTO rlm_mem.files(ns, name) VALUES (%s, %s) ON CONFLICT (ns, name) DO UPDATE SET"
    refused = [
        "SELECT c.id FROM rlm_mem.chunks c WHERE c.id = %s",
        "SELECT 1 FROM rlm_mem.chunks c LEFT JOIN rlm_mem.bodies b ON b.ns = c.ns WHERE c.ns = %s",
        "SELECT 1 FROM rlm_mem.chunks c WHERE c.ns = %s UNION ALL SELECT 1 FROM rlm_mem.links l",
        "SELECT 1 FROM rlm_mem.chunks c WHERE c.ns = %s AND EXISTS (SELECT 1 FROM rlm_mem.tags t WHERE t.doc = c.doc)",
        "UPDATE rlm_mem.terms t SET df = 0 FROM unnest(%s) AS d(term) WHERE t.term = d.term",
        "DELETE FROM rlm_mem.terms WHERE df = %s",
        "INSERT INTO rlm_mem.tags(tag, ns) VALUES (%s, %s)",
        "INSERT INTO rlm_mem.tags(ns, tag) SELECT given.ns, tag FROM given",
        "COPY rlm_mem.chunks(doc, ns) FROM STDIN",
        f"{insert} modified_at = clock_timestamp()",
        "UPDATE rlm_mem.files SET modified_at = DEFAULT WHERE ns = %s",
    ]
    assert [text for text in refused if not list(_wrong(text))] == []
    assert list(_wrong(f"{insert} modified_at = excluded.modified_at")) == []
    assert list(_wrong("UPDATE rlm_mem.files SET modified_at = now() WHERE ns = %s")) == []
