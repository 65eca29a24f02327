"""Realistic retrieval programs as data: (name, code). Each ends in FINAL(answer) or in a value.

What each must give is what plain CPython gives for the same text with the same functions, so nothing is written
down twice. They are the everyday Python that models write, not the Python that suits an engine.
"""

from __future__ import annotations

__all__ = ["PROGRAMS"]

_TEXT = r'''
### loop with a return at top level
candidates = search_chunks("tea")
for chunk_id in candidates[:5]:
    chunk = read_chunk(chunk_id)
    if chunk and "green" in chunk["content"]:
        FINAL(chunk["content"])
### first hit
hits = search("green tea", limit=5)
FINAL(hits[0]["snippet"] if hits else None, chunk_ids=[h["chunk_id"] for h in hits[:1]])
### read in a comprehension
texts = [read_chunk(i)["content"] for i in search_chunks("coffee", limit=5)]
FINAL(" | ".join(texts))
### walrus filter
found = [c["id"] for i in search_chunks("tea") if (c := read_chunk(i)) and "tea" in c["tags"]]
FINAL(sorted(found))
### map a host function
chunks = list(map(read_chunk, search_chunks("tea", limit=3)))
FINAL([c["id"] for c in chunks])
### filter with a host call
ids = list(filter(lambda i: "Ben" in read_chunk(i)["content"], search_chunks("coffee")))
FINAL(sorted(ids))
### sorted by a host call
ids = sorted(list_chunks_by_tag("tea"), key=lambda i: read_chunk(i)["created_at"])
FINAL(ids)
### sort in place by a host call
ids = list_chunks_by_tag("tea")
ids.sort(key=lambda i: read_chunk(i)["tokens"], reverse=True)
FINAL(ids[0])
### max by a host call
best = max(list_chunks_by_tag("tea"), key=lambda i: len(read_chunk(i)["content"]))
FINAL(best)
### min with a default
first = min(list_chunks_by_tag("nothing-has-this"), key=lambda i: read_chunk(i)["created_at"], default=None)
FINAL(first)
### max by dict get
counts = {}
for i in list_chunks_by_tag("tea"):
    for word in read_chunk(i)["content"].lower().split():
        counts[word] = counts.get(word, 0) + 1
FINAL(max(sorted(counts), key=counts.get))
### sorted by dict get reversed
scores = {"a": 3, "b": 7, "c": 5}
FINAL(sorted(scores, key=scores.get, reverse=True))
### next with a default
hit = next((h for h in search("tea") if "black" in h["snippet"]), None)
FINAL(hit["chunk_id"] if hit else "none")
### next over host calls
first = next((i for i in list_chunks_by_tag("tea") if "Ana" in read_chunk(i)["content"]), None)
FINAL(first)
### next without a default
FINAL(next(i for i in list_chunks_by_tag("travel")))
### any over host calls
FINAL(any("Lisbon" in read_chunk(i)["content"] for i in list_chunks_by_tag("travel")))
### all over host calls
FINAL(all(read_chunk(i)["type"] for i in list_chunks_by_tag("travel")))
### sum over host calls
FINAL(sum(read_chunk(i)["tokens"] for i in list_chunks_by_tag("travel")))
### join of a generator over host calls
FINAL("\n".join(read_chunk(i)["content"][:20] for i in sorted(list_chunks_by_tag("travel"))))
### bound append
out = []
add = out.append
for i in list_chunks_by_tag("tea"):
    add(i)
FINAL(len(out))
### key str.lower
FINAL(sorted({"Ben", "ana", "Cleo"}, key=str.lower))
### map str.strip
FINAL(list(map(str.strip, " a , b ,c ".split(","))))
### map a method of a value
known = {"Ana": "tea", "Ben": "coffee"}
FINAL(list(map(known.get, ["Ana", "Ben", "Cleo"])))
### unbound method call
FINAL(str.join("-", [str.upper(w) for w in "a b".split()]))
### delete a key
chunk = read_chunk(list_chunks_by_tag("tea")[0])
del chunk["links"], chunk["metadata"]
FINAL(sorted(chunk))
### delete an item and a slice
items = list(range(10))
del items[0]
del items[2:5]
FINAL(items)
### delete a name
big = [read_chunk(i) for i in list_chunks_by_tag("tea")]
n = len(big)
del big
FINAL(n)
### generator function
def pages(ids, size):
    for start in range(0, len(ids), size):
        yield ids[start:start + size]
FINAL([len(p) for p in pages(list_chunks_by_tag("tea"), 2)])
### generator with host calls and return
def contents(tag):
    for i in list_chunks_by_tag(tag):
        c = read_chunk(i)
        if c is None:
            return
        yield c["content"]
FINAL(sorted(contents("travel")))
### yield from
def both(*tags):
    for tag in tags:
        yield from list_chunks_by_tag(tag)
FINAL(len(list(both("tea", "travel"))))
### generator consumed by next
def numbers():
    yield 1
    yield 2
g = numbers()
FINAL([next(g), next(g), next(g, "end")])
### generator expression kept
lengths = (len(read_chunk(i)["content"]) for i in list_chunks_by_tag("travel"))
first = next(lengths)
FINAL([first > 0, len(list(lengths))])
### zip kept and consumed
pairs = zip("abc", [1, 2, 3])
head = next(pairs)
FINAL([head, list(pairs)])
### statistics
import statistics
ages = [int(w) for w in "31 45 27 45".split()]
FINAL([statistics.mean(ages), statistics.median(ages), statistics.mode(ages)])
### statistics by name
from statistics import mean, median as mid, stdev
FINAL([mean([1, 2, 3, 4]), mid([5, 1, 3]), round(stdev([1, 2, 3, 4]), 4)])
### string constants
import string
text = "Tea, please! (green)"
FINAL("".join(ch for ch in text if ch not in string.punctuation))
### from string import
from string import ascii_lowercase, digits
FINAL([c for c in "a1B2" if c in ascii_lowercase + digits])
### translate with maketrans
import string
FINAL("Tea, please!".translate(str.maketrans("", "", string.punctuation)).lower())
### translate characters
FINAL("a-b_c".translate(str.maketrans("-_", "  ")))
### operator itemgetter
from operator import itemgetter
rows = [{"n": 2, "s": "b"}, {"n": 1, "s": "a"}]
FINAL([r["s"] for r in sorted(rows, key=itemgetter("n"))])
### operator itemgetter of pairs
import operator
counts = {"x": 1, "y": 3}
FINAL(sorted(counts.items(), key=operator.itemgetter(1), reverse=True))
### heapq nlargest
import heapq
hits = search("tea coffee", limit=10)
best = heapq.nlargest(2, hits, key=lambda h: h["score"])
FINAL([b["chunk_id"] for b in best])
### heapq push and pop
from heapq import heappush, heappop
heap = []
for n in [5, 1, 4]:
    heappush(heap, n)
FINAL([heappop(heap), heappop(heap)])
### textwrap shorten
import textwrap
FINAL(textwrap.shorten("green tea in the morning and coffee at noon", width=24, placeholder="..."))
### textwrap dedent and fill
import textwrap
FINAL(textwrap.fill("one two three four five six", width=12))
### difflib close matches
from difflib import get_close_matches
FINAL(get_close_matches("lisbonn", ["lisbon", "porto", "london"], n=1))
### difflib ratio
import difflib
FINAL(round(difflib.SequenceMatcher(None, "green tea", "green teas").ratio(), 3))
### pprint
from pprint import pprint
pprint({"a": 1})
FINAL("printed")
### contextlib suppress
from contextlib import suppress
value = None
with suppress(KeyError, TypeError):
    value = read_chunk("chunk-none")["content"]
FINAL(value)
### collections Counter
from collections import Counter
words = Counter()
for i in list_chunks_by_tag("tea"):
    words.update(read_chunk(i)["content"].lower().split())
FINAL(words["tea"])
### Counter most common
from collections import Counter
FINAL(Counter("abracadabra").most_common(2))
### defaultdict by conversation
from collections import defaultdict
by = defaultdict(list)
for h in search("tea coffee", limit=20):
    by[h["conversation_id"]].append(h["chunk_id"])
FINAL({k: len(v) for k, v in sorted(by.items())})
### OrderedDict
from collections import OrderedDict
seen = OrderedDict()
for i in list_chunks_by_tag("tea") + list_chunks_by_tag("travel"):
    seen[i] = True
FINAL(list(seen)[:2])
### deque breadth first over links
from collections import deque
start = list_chunks_by_tag("travel")[0]
queue, seen = deque([start]), {start}
while queue:
    here = queue.popleft()
    for linked in get_linked_chunks(here):
        if linked["id"] not in seen:
            seen.add(linked["id"])
            queue.append(linked["id"])
FINAL(sorted(seen))
### namedtuple
from collections import namedtuple
Hit = namedtuple("Hit", ["id", "score"])
hits = [Hit("a", 2), Hit("b", 3)]
FINAL(max(hits, key=lambda h: h.score).id)
### typing NamedTuple class
from typing import NamedTuple
class Fact(NamedTuple):
    who: str
    what: str = "tea"
FINAL([Fact("Ana").what, Fact("Ben", "coffee").who])
### dataclass
from dataclasses import dataclass, field
@dataclass
class Note:
    who: str
    items: list = field(default_factory=list)
n = Note("Ana")
n.items.append("tea")
FINAL(f"{n.who}: {n.items}")
### plain class with methods
class Collector:
    def __init__(self, tag):
        self.tag = tag
        self.ids = []
    def run(self):
        for i in list_chunks_by_tag(self.tag):
            self.ids.append(read_chunk(i)["id"])
        return self
    def __repr__(self):
        return f"Collector({len(self.ids)})"
FINAL(repr(Collector("tea").run()))
### exception class without a body
class NotFound(Exception):
    pass
try:
    if not search("xylophone"):
        raise NotFound("nothing")
except NotFound as error:
    FINAL(str(error))
### class with object base
class Box(object):
    size = 3
FINAL(Box().size)
### datetime from isoformat
from datetime import datetime
c = read_chunk(list_chunks_by_tag("travel")[0])
when = datetime.fromisoformat(c["occurred_at"].replace("Z", "+00:00"))
FINAL(when.strftime("%d %B %Y"))
### datetime strptime
from datetime import datetime
FINAL(datetime.strptime("8 May, 2023", "%d %B, %Y").strftime("%Y-%m-%d"))
### date arithmetic
from datetime import date, timedelta
FINAL(str(date(2026, 1, 31) + timedelta(days=1)))
### days between chunks
from datetime import datetime
ids = sorted(list_chunks_by_tag("travel"), key=lambda i: read_chunk(i)["occurred_at"])
a, b = [datetime.fromisoformat(read_chunk(i)["occurred_at"][:19]) for i in (ids[0], ids[-1])]
FINAL((b - a).days)
### regular expression search
import re
text = read_chunk(list_chunks_by_tag("travel")[0])["content"]
m = re.search(r"(\d{4})-(\d{2})", text)
FINAL(m.group(1) if m else None)
### regular expression named groups
import re
m = re.match(r"(?P<who>\w+): (?P<what>.*)", "Ana: green tea")
FINAL(m.groupdict())
### regular expression substitution by a function
import re
FINAL(re.sub(r"\b(\w)", lambda m: m.group(1).upper(), "green tea"))
### regular expression substitution with a compiled pattern
import re
pattern = re.compile(r"\d+")
FINAL(pattern.sub(lambda m: str(int(m.group()) * 2), "2 cups, 3 spoons"))
### regular expression substitution by text
import re
FINAL(re.sub(r"\s+", " ", "a   b \n c").strip())
### regular expression subn
import re
FINAL(re.subn("tea", "coffee", "tea and tea"))
### regular expression names
import re
names = set()
for i in list_chunks_by_tag("tea"):
    names.update(re.findall(r"^(\w+):", read_chunk(i)["content"], re.MULTILINE))
FINAL(sorted(names))
### regular expression split into sentences
import re
FINAL(re.split(r"(?<=[.!?])\s+", "One. Two! Three?"))
### verbose pattern
import re
p = re.compile(r"""
    (\d{4})   # year
    -(\d{2})  # month
""", re.VERBOSE)
FINAL(p.search("on 2026-02-03").groups())
### json dumps
import json
FINAL(json.dumps({"ids": list_chunks_by_tag("travel")}, indent=2, sort_keys=True))
### json dumps of a set
import json
FINAL(json.dumps({"tags": {"tea"}}, default=list))
### json round trip
import json
FINAL(json.loads(json.dumps([1, {"a": None}])))
### itertools chain and islice
from itertools import chain, islice
ids = list(islice(chain(list_chunks_by_tag("tea"), list_chunks_by_tag("travel")), 3))
FINAL(len(ids))
### itertools groupby
from itertools import groupby
rows = sorted([("b", 1), ("a", 2), ("b", 3)])
FINAL({k: [n for _, n in g] for k, g in groupby(rows, key=lambda r: r[0])})
### itertools combinations
from itertools import combinations
FINAL(list(combinations(["a", "b", "c"], 2)))
### functools reduce
from functools import reduce
FINAL(reduce(lambda a, b: a + b, [read_chunk(i)["tokens"] for i in list_chunks_by_tag("tea")]))
### functools reduce over host calls
from functools import reduce
FINAL(reduce(lambda total, i: total + read_chunk(i)["tokens"], list_chunks_by_tag("tea"), 0))
### lru cache around a host call
from functools import lru_cache
@lru_cache(maxsize=None)
def text_of(i):
    return read_chunk(i)["content"]
i = list_chunks_by_tag("tea")[0]
FINAL(text_of(i) == text_of(i))
### partial of a host function
from functools import partial
few = partial(search_chunks, limit=2)
FINAL(len(few("tea")))
### cmp_to_key
from functools import cmp_to_key
FINAL(sorted([3, 1, 2], key=cmp_to_key(lambda a, b: b - a)))
### decorator with wraps
from functools import wraps
def logged(f):
    @wraps(f)
    def inner(*args, **kwargs):
        return f(*args, **kwargs)
    return inner
@logged
def double(x):
    return 2 * x
FINAL(double(4))
### alias of a host function
look = search_chunks
FINAL(len(look("tea", limit=2)))
### host functions in a dict
tools = {"read": read_chunk, "find": search_chunks}
FINAL(tools["read"](tools["find"]("tea")[0])["type"])
### host function as an argument
def first(find, words):
    found = find(words)
    return found[0] if found else None
FINAL(first(search_chunks, "green tea"))
### callable test
FINAL([callable(read_chunk), callable("x")])
### isinstance checks
x = read_chunk("chunk-none")
FINAL([isinstance(x, dict), x is None, isinstance([], (list, tuple))])
### try and except around a missing chunk
try:
    text = read_chunk("chunk-missing")["content"]
except (TypeError, KeyError):
    text = "missing"
FINAL(text)
### error of a host function is caught
try:
    read_chunk(42)
except TypeError as error:
    FINAL("text" in str(error))
### keyword arguments
FINAL(len(search(query="tea", limit=3)) <= 3)
### search with filters
FINAL(sorted(h["chunk_id"] for h in search("tea", tags=["green"], limit=5)))
### neighbors around a hit
hit = search("Lisbon", limit=1)[0]
near = neighbors(hit["chunk_id"], before=1, after=1)
FINAL([[c["id"] for c in near["before"]], [c["id"] for c in near["after"]]])
### timeline between dates
FINAL([t["id"] for t in timeline("2026-01-02", "2026-01-04")])
### stats of the memory
FINAL(stats()["chunk_count"])
### linked chunks by type
i = list_chunks_by_tag("travel")[0]
FINAL([(c["id"], c["_link_type"], c["_link_strength"]) for c in get_linked_chunks(i, link_type="supports")])
### two tags
FINAL(list_chunks_by_tag(["tea", "green"]))
### model as a reader
answer = llm_query("Which drink?", {"text": read_chunk(search_chunks("tea")[0])["content"]})
FINAL(answer.strip())
### model over a batch
prompts = [f"Is tea named here? {read_chunk(i)['content']}" for i in list_chunks_by_tag("tea")[:3]]
FINAL(llm_query_batched(prompts))
### any over the model
ids = list_chunks_by_tag("tea")
FINAL(any(llm_query(f"tea? {read_chunk(i)['content']}") == "yes" for i in ids))
### f-string formats
score, name = 0.12345, "tea"
FINAL(f"{name:>6}|{score:.2f}|{1234567:,}|{0.5:.0%}|{name!r}")
### percent and format
FINAL(["%s has %d" % ("Ana", 3), "{:<5}|{name}".format("a", name="b"), "{0}{1}{0}".format("x", "y")])
### format map
FINAL("{who} drinks {what}".format_map({"who": "Ana", "what": "tea"}))
### print and look
for h in search("tea", limit=2):
    print(h["chunk_id"], h["snippet"][:30], sep=" | ")
FINAL("done")
### print unpacked
print(*["a", "b"], sep="\n", end="!\n")
FINAL("done")
### dict comprehension and merge
a = {i: read_chunk(i)["type"] for i in list_chunks_by_tag("travel")}
FINAL(sorted((a | {"x": "y"}).values()))
### set operations
tea, green = set(list_chunks_by_tag("tea")), set(list_chunks_by_tag("green"))
FINAL([sorted(tea & green), len(tea | green), sorted(tea - green) != []])
### deduplicate keeping order
ids = search_chunks("tea") + search_chunks("coffee")
unique = list(dict.fromkeys(ids))
seen = set()
other = [i for i in ids if not (i in seen or seen.add(i))]
FINAL(unique == other)
### star unpacking
first, *rest = list_chunks_by_tag("tea")
FINAL([first, len(rest)])
### nested functions and nonlocal
def count(ids):
    total = 0
    def add(i):
        nonlocal total
        total += read_chunk(i)["tokens"]
    for i in ids:
        add(i)
    return total
FINAL(count(list_chunks_by_tag("tea")) > 0)
### recursion over links
def follow(i, depth, seen):
    if depth == 0 or i in seen:
        return seen
    seen.add(i)
    for c in get_linked_chunks(i):
        follow(c["id"], depth - 1, seen)
    return seen
FINAL(sorted(follow(list_chunks_by_tag("travel")[0], 3, set())))
### while loop with break and else
queries, found = ["xylophone", "zeppelin", "tea"], None
while queries:
    q = queries.pop(0)
    if search_chunks(q):
        found = q
        break
else:
    found = "nothing"
FINAL(found)
### match statement
c = read_chunk(list_chunks_by_tag("tea")[0])
match c:
    case {"type": "preference", "content": text}:
        r = "preference"
    case {"type": kind}:
        r = kind
    case _:
        r = "none"
FINAL(r)
### type hints
from typing import Any, Dict, List, Optional
def best(hits: List[Dict[str, Any]]) -> Optional[str]:
    top: Optional[dict] = hits[0] if hits else None
    return top["chunk_id"] if top else None
FINAL(best(search("tea")))
### collections.abc hints
from collections.abc import Iterable
def total(values: Iterable[int]) -> int:
    return sum(values)
FINAL(total([1, 2, 3]))
### main guard
def main():
    return len(list_chunks_by_tag("tea"))
if __name__ == "__main__":
    FINAL(main())
### superseded chunks skipped
current = [i for i in list_chunks_by_tag("tea") if not read_chunk(i)["metadata"]["superseded_by"]]
FINAL(len(current))
### scoring by hand
words = "green tea morning".split()
scored = []
for i in list_chunks_by_tag("tea"):
    text = read_chunk(i)["content"].lower()
    scored.append((sum(w in text for w in words), i))
scored.sort(key=lambda p: (-p[0], p[1]))
FINAL(scored[0][1])
### sentinel object
MISSING = object()
value = {"a": 1}.get("b", MISSING)
FINAL(value is MISSING)
### locals test
if "results" not in locals():
    results = []
results.append(1)
FINAL(results)
### globals test
if "cache" not in globals():
    cache = {}
FINAL(cache)
### enumerate and conditional
FINAL([f"{n}. {i}" for n, i in enumerate(sorted(list_chunks_by_tag("travel")), 1) if n % 2])
### string methods
s = "  Ana: Green Tea, please.  "
FINAL([s.strip().casefold(), s.partition(":")[0].strip(), s.count("e"), s.strip().endswith("."), s.title().split()])
### sorted by several keys
rows = [("b", 2), ("a", 2), ("c", 1)]
FINAL(sorted(rows, key=lambda r: (-r[1], r[0])))
### math
import math
FINAL([round(math.log(10), 3), math.sqrt(16), math.ceil(1.2), math.isclose(0.1 + 0.2, 0.3)])
### random with a seed is repeatable
import random
random.seed(4)
picked = random.sample(list_chunks_by_tag("tea"), 2)
FINAL(len(set(picked)))
### hash of a text
import hashlib
FINAL(hashlib.sha256("tea".encode()).hexdigest()[:8])
### csv text
FINAL("\n".join(",".join(map(str, row)) for row in [("id", "n"), ("a", 1)]))
### chained comparison and conditional expression
n = len(list_chunks_by_tag("tea"))
FINAL("few" if 0 < n <= 3 else "many")
### bisect
import bisect
FINAL(bisect.bisect_left([1, 3, 5], 4))
### async helper
import asyncio
async def fetch(i):
    return read_chunk(i)["id"]
FINAL(asyncio.run(fetch(list_chunks_by_tag("tea")[0])))
### enum
from enum import Enum
class Kind(Enum):
    FACT = "fact"
FINAL(Kind.FACT.value)
### property
class Chunk:
    def __init__(self, i):
        self.i = i
    @property
    def text(self):
        return read_chunk(self.i)["content"]
FINAL(len(Chunk(list_chunks_by_tag("tea")[0]).text) > 0)
### inheritance
class Base:
    def name(self):
        return "base"
class Child(Base):
    def name(self):
        return "child of " + super().name()
FINAL(Child().name())
### static method
class Tools:
    @staticmethod
    def clean(text):
        return text.strip().lower()
FINAL(Tools.clean("  Tea "))
### ordering of instances
class Scored:
    def __init__(self, n):
        self.n = n
    def __lt__(self, other):
        return self.n < other.n
FINAL(sorted([Scored(2), Scored(1)])[0].n)
### StringIO
import io
out = io.StringIO()
out.write("a")
print("b", file=out)
FINAL(out.getvalue())
### defaultdict that calls the host
from collections import defaultdict
class Cache(dict):
    def __missing__(self, key):
        self[key] = read_chunk(key)
        return self[key]
c = Cache()
FINAL(c[list_chunks_by_tag("tea")[0]]["type"])
### text from a value last
hits = search("tea", limit=2)
len(hits)
### value of a conditional expression last
[h["chunk_id"] for h in search("coffee", limit=3)]
'''

PROGRAMS: list[tuple[str, str]] = []
for _block in _TEXT.strip("\n").removeprefix("### ").split("\n### "):
    _name, _, _code = _block.partition("\n")
    PROGRAMS.append((_name, _code))
