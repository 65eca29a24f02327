"""Programs that try to escape from the sandbox or to exhaust the host, as data: (group, name, code).

``{MARK}`` is a path that must never come into being, ``{PORT}`` a port on this machine that must never be
called, ``{SECRET}`` names an environment variable of the host whose value must never be seen.
"""

from __future__ import annotations

__all__ = ["PROGRAMS"]

_GROUPS: dict[str, dict[str, str]] = {
    "object graph": {
        "subclasses of object": "().__class__.__bases__[0].__subclasses__()",
        "subclasses by getattr": (
            "c = getattr((), '__cl' + 'ass__')\nb = getattr(c, '__ba' + 'se__')\n"
            "s = getattr(b, '__subcl' + 'asses__')()\n"
            "print([getattr(x, '__name__', '') for x in s if 'Popen' in str(x) or 'FileLoader' in str(x)])\n"
            "for x in s:\n    if 'FileLoader' in str(x):\n"
            "        print(x('a', '/etc/passwd').get_data('/etc/passwd')[:20])"
        ),
        "mro walk": "x = type('').mro()[-1]\nx.__subclasses__(x)",
        "builtins through print": "getattr(getattr(print, '__se' + 'lf__'), 'open')('/etc/passwd').read()",
        "import through builtins name": "__builtins__['__import__']('os').system('touch {MARK}')",
        "import through builtins attribute": "__builtins__.__import__('os').system('touch {MARK}')",
        "globals of a lambda": "(lambda: 0).__globals__['__builtins__']['open']('{MARK}', 'w').write('x')",
        "globals by getattr": (
            "g = getattr((lambda: 0), '__glo' + 'bals__')\nb = g['__buil' + 'tins__']\n"
            "i = b['__imp' + 'ort__']\ni('os').system('touch {MARK}')"
        ),
        "code object replaced": "def f():\n    return 1\ng = lambda: 2\nf.__code__ = g.__code__\nf()",
        "code constructor": (
            "def f(): pass\nC = type(getattr(f, '__co' + 'de__'))\nprint(C)\n"
            "C(0, 0, 0, 0, 0, 0, b'', (), (), (), '', '', '', 1, b'', b'', (), ())"
        ),
        "function constructor": (
            "F = type(lambda: 0)\nc = getattr(lambda: 1, '__co' + 'de__')\nprint(F(c, dict())())"
        ),
        "type with three arguments": "T = type('T', (), dict(a=1))\nT.a",
        "metaclass": "class M(type):\n    def __call__(c): return c.__subclasses__()\nclass A(metaclass=M): pass\nA()",
        "dict of the type": "vars(type)['__subclasses__'](object)",
        "reduce": "x = getattr([], '__reduce' + '_ex__')(2)\nx[0].__globals__['sys']",
        "closure cells": "def f():\n    a = 1\n    return lambda: a\nf().__closure__[0].cell_contents",
        "class cell swap": "class A: pass\na = A()\na.__class__ = int\na",
        "match class pattern": "match ():\n    case object(__class__=c):\n        print(c.__subclasses__())",
    },
    "format": {
        "format class": "'{0.__class__.__bases__}'.format(1)",
        "format globals": "def f(): pass\n'{0.__globals__}'.format(f)",
        "format built at run time": "('{0.__cl' + 'ass__.__ba' + 'ses__}').format(1)",
        "format map": "('{x.__cl' + 'ass__}').format_map({'x': read_chunk})",
        "format of a host function": "('{0.__glo' + 'bals__}').format(search_chunks)",
        "format with a huge width": "'{:>9999999999}'.format(1)",
        "f-string attribute": "f'{().__class__.__bases__}'",
        "percent width": "'%9999999999d' % 1",
        "formatter class": "import string\nstring.Formatter().get_field('0.__class__', [1], {})",
    },
    "frames": {
        "traceback frames": (
            "try:\n    1 / 0\nexcept Exception as e:\n    tb = e.__traceback__\n    print(tb.tb_frame.f_back.f_globals)"
        ),
        "traceback by getattr": (
            "try:\n    1 / 0\nexcept Exception as e:\n    t = getattr(e, '__trace' + 'back__')\n"
            "    f = getattr(t, 'tb_' + 'frame')\n    while f:\n"
            "        print(sorted(getattr(f, 'f_glo' + 'bals'))[:50])\n        f = getattr(f, 'f_' + 'back')"
        ),
        "generator frame": "g = (x for x in [1])\nprint(g.gi_frame.f_back.f_globals)",
        "generator frame by getattr": "g = (x for x in [1])\nf = getattr(g, 'gi_' + 'frame')\nprint(f)",
        "sys._getframe": "import sys\nprint(sys._getframe(1).f_globals)",
        "coroutine frame": "async def f(): pass\nc = f()\nprint(getattr(c, 'cr_' + 'frame'))",
        "inspect": "import inspect\nprint(inspect.stack())",
        "context of an error": (
            "try:\n    read_chunk()\nexcept Exception as e:\n    print(repr(e), getattr(e, '__con' + 'text__', None))"
        ),
    },
    "host functions": {
        "globals of a host function": "read_chunk.__globals__",
        "self of a host function": "getattr(read_chunk, '__se' + 'lf__', None)._store.base_path",
        "closure of a host function": "getattr(read_chunk, '__clo' + 'sure__')[0].cell_contents",
        "code of a host function": "getattr(search, '__co' + 'de__').co_filename",
        "attribute set on a host function": "read_chunk.limit = 10 ** 9\nread_chunk('x')",
        "defaults of a host function": "setattr(read_chunk, '__def' + 'aults__', (1,))\nread_chunk()",
        "wrapped": "getattr(llm_query, '__wra' + 'pped__')",
        "a host function as an argument": "read_chunk(read_chunk)",
        "huge argument": "read_chunk('x' * 30_000_000)",
        "many arguments": "read_chunk(*range(300_000))",
        "huge limit": "search('tea', limit=10 ** 30)",
        "negative limit": "search_chunks('tea', -5)",
        "not a number": "search_chunks('tea', float('nan'))",
        "path for an id": "read_chunk('../../../../etc/passwd')",
        "path with a null byte": "read_chunk('chunk-1\\x00/etc/passwd')",
        "SQL in a tag": 'list_chunks_by_tag("x\' OR 1=1; DROP TABLE chunks; --")',
        "SQL in a query": "search_chunks('\"; DROP TABLE chunks; --')",
        "surrogates": "search_chunks('\\ud800\\udfff')",
        "cyclic argument": "a = []\na.append(a)\nread_chunk(a)",
        "argument that shares itself": "a = [1]\nfor i in range(40): a = [a, a]\nread_chunk(a)",
        "deep argument": "a = []\nfor i in range(100_000): a = [a]\nread_chunk(a)",
        "keyword flood": "read_chunk(**{f'k{i}': i for i in range(50_000)})",
        "unknown host function": "write_chunk('x')",
        "result mutated": "r = stats()\nr['chunk_count'] = 10 ** 9\nstats()['chunk_count']",
        "endless host calls": "while True:\n    stats()",
    },
    "imports": {
        "os": "import os\nos.system('touch {MARK}')",
        "environment": "import os\nprint(os.environ['{SECRET}'])",
        "environment by getattr": (
            "import re\nos = getattr(getattr(re, 'en' + 'um'), 'sys').modules['os']\n"
            "print(os.environ.get('{SECRET}'))\n"
            "os.system('touch {MARK}')"
        ),
        "sys modules": "import sys\nsys.modules['os'].system('touch {MARK}')",
        "subprocess": "import subprocess\nsubprocess.run(['touch', '{MARK}'])",
        "importlib": "import importlib\nimportlib.import_module('os').system('touch {MARK}')",
        "ctypes": "import ctypes\nctypes.CDLL(None).system(b'touch {MARK}')",
        "socket": "import socket\nsocket.create_connection(('127.0.0.1', {PORT}))",
        "socket through loaded modules": (
            "import collections\nsys = getattr(collections, '_sys')\n"
            "s = sys.modules.get('_socket') or sys.modules.get('socket')\n"
            "if s:\n    c = s.socket()\n    c.connect(('127.0.0.1', {PORT}))\nelse:\n    import _socket"
        ),
        "pickle": "import pickle\npickle.loads(b\"cos\\nsystem\\n(S'touch {MARK}'\\ntR.\")",
        "from os": "from os import system as s\ns('touch {MARK}')",
        "relative import": "from . import store",
        "module of the package": "import rlm_mem.store.core.chunk_store as a\na.ChunkStore('/tmp')",
        "posix through loaded modules": (
            "import collections\np = getattr(collections, '_sys').modules['posix']\n"
            "fd = p.open('{MARK}', p.O_CREAT | p.O_WRONLY)\np.write(fd, b'x')"
        ),
        "fork through loaded modules": (
            "import collections\np = getattr(collections, '_sys').modules['posix']\nwhile True:\n    p.fork()"
        ),
        "kill the parent": (
            "import collections\np = getattr(collections, '_sys').modules['posix']\np.kill(p.getppid(), 9)"
        ),
        "threads": (
            "import functools\nt = getattr(functools, 'RL' + 'ock')\nimport _thread\n"
            "while True:\n    _thread.start_new_thread(print, ())"
        ),
    },
    "files": {
        "open for writing": "open('{MARK}', 'w').write('x')",
        "open the password file": "print(open('/etc/passwd').read())",
        "open through io": "import io\nio.open('{MARK}', 'w')",
        "pathlib": "import pathlib\npathlib.Path('{MARK}').write_text('x')",
        "exec": "exec(\"open('{MARK}', 'w')\")",
        "eval": "eval(\"__import__('os').system('touch {MARK}')\")",
        "compile": "compile('1', 'x', 'exec')",
        "code module": "import code\ncode.interact()",
        "breakpoint": "breakpoint()",
        "input": "input('?')",
        "exit": "exit(1)",
        "raise SystemExit": "raise SystemExit(9)",
        "raise KeyboardInterrupt": "raise KeyboardInterrupt",
        "raise GeneratorExit": "raise GeneratorExit",
        "raise BaseException": "raise BaseException('x')",
    },
    "memory": {
        "huge string": "'a' * 10 ** 12",
        "growing string": "x = 'a'\nwhile True:\n    x = x + x",
        "growing list": "x = []\nwhile True:\n    x.append('a' * 10_000)",
        "huge list": "[0] * 10 ** 10",
        "huge dict": "{i: str(i) for i in range(10 ** 8)}",
        "huge set": "set(range(10 ** 9))",
        "huge integer": "x = 10 ** 10 ** 8",
        "shift": "1 << (1 << 40)",
        "factorial": "import math\nmath.factorial(10 ** 7)",
        "string returned": "'a' * 9_000_000",
        "string too long returned": "'a' * 15_000_000",
        "wide characters returned": "'\\U0001F600' * 4_000_000",
        "list that shares itself returned": "x = [1]\nfor i in range(60): x = [x, x]\nx",
        "list that holds itself returned": "x = []\nx.append(x)\nx",
        "deep list returned": "x = []\nfor i in range(200_000): x = [x]\nx",
        "class beside its instance": "class A: pass\n[A, A()]",
        "many small values returned": "[[i] for i in range(200_000)]",
        "join": "','.join(['a' * 10_000] * 10_000_000)",
        "repeat": "import itertools\nlist(itertools.repeat('x', 10 ** 10))",
        "product": "import itertools\nlist(itertools.product(range(1000), repeat=5))",
        "state filled to the brim": "keep = ['a' * 1000 + str(i) for i in range(30_000)]\nlen(keep)",
        "replace grows": "x = 'a' * 10_000\nfor i in range(10):\n    x = x.replace('a', 'aaaaaaaaaa')",
        "zip bomb": "import zlib\nzlib.decompress(zlib.compress(b'0' * 10 ** 9))",
        "format nested": "x = '{0}' * 1000\nfor i in range(6):\n    x = x.format(x)",
        "repr that explodes": "class A:\n    def __repr__(self): return 'x' * 10 ** 9\nA()",
    },
    "time": {
        "endless loop": "while True: pass",
        "loop that swallows": "while True:\n    try:\n        while True: pass\n    except: pass",
        "loop in a finally": "try:\n    1 / 0\nfinally:\n    while True: pass",
        "sum of lists": "sum([[0] * 1000 for _ in range(2000)], [])",
        "power": "x = 7 ** 7 ** 8",
        "decimal digits": "str(2 ** 200_000)",
        "sleep": "import time\ntime.sleep(10 ** 6)",
        "endless iterator": "import itertools\nsum(1 for _ in itertools.count())",
        "recursion": "def f(n): return f(n + 1)\nf(0)",
        "mutual recursion that swallows": "def f():\n    try:\n        f()\n    except Exception:\n        f()\nf()",
        "y combinator": "(lambda f: f(f))(lambda f: f(f))",
        "sort with a slow key": "sorted(range(10 ** 6), key=lambda x: sum(range(100)))",
        "endless printing": "while True:\n    print('x' * 1000)",
        "hash collisions": "{(i * (2 ** 61 - 1)): i for i in range(60_000)}",
        "endless comprehension": "[0 for i in iter(int, 1)]",
        "slow repr in an error": "class A:\n    def __repr__(self):\n        while True: pass\nraise ValueError(A())",
        "endless generator": "def g():\n    while True:\n        yield 1\nfor x in g(): pass",
        "endless del": "class A:\n    def __del__(self):\n        while True: pass\nA()\nx = 1",
        "busy eq": "class A:\n    def __eq__(self, o):\n        while True: pass\n    __hash__ = None\nA() == A()",
    },
    "patterns": {
        "nested quantifier": "import re\nre.match(r'(a+)+$', 'a' * 60 + 'b')",
        "alternation": "import re\nre.match(r'(a|aa)+$', 'a' * 80 + 'b')",
        "look-ahead": "import re\nre.search(r'(?=(a+))\\1+b$', 'a' * 20_000)",
        "huge repeat": "import re\nre.compile('(?:' * 5 + 'a{1000}' + '){1000}' * 5)",
        "many groups": "import re\nre.compile('(' * 5000 + 'a' + ')' * 5000)",
        "polynomial": "import re\nre.search(r'\\s*\\s*\\s*\\s*x$', ' ' * 30_000)",
    },
    "nesting": {
        "parentheses": "(" * 5000 + ")" * 5000,
        "brackets": "x = " + "[" * 20_000 + "]" * 20_000,
        "unary minus": "-" * 100_000 + "1",
        "additions": "1" + "+1" * 20_000,
        "attribute chain": "x" + ".a" * 20_000,
        "nested functions": "\n".join(" " * i + f"def f{i}():" for i in range(90)) + "\n" + " " * 90 + "pass",
        "lambda chain": "lambda: " * 5_000 + "1",
        "string concatenation": "'a' " * 20_000,
        "null byte": "1\x00 + 1",
        "not text": "\ud800 = 1",
        "huge program": "x = 1\n" * 60_000,
        "not chain": "not " * 20_000 + "True",
        "comparison chain": "1" + " < 2" * 20_000,
        "nested dicts": "{0:" * 3_000 + "0" + "}" * 3_000,
        "nested f-strings": "f'{' * 3 + '1' + \"}'\" * 3",
    },
    "forgery": {
        "FINAL redefined": "def FINAL(x): return x\nFINAL(1)",
        "FINAL assigned": "FINAL = print\nFINAL('not final')",
        "FINAL as a loop variable": "for FINAL in [print]: pass\nFINAL('not final')",
        "FINAL imported": "from math import sqrt as FINAL\nFINAL(4)",
        "FINAL through locals": "locals()['FINAL'] = print\nprint('kept')",
        "FINAL through a global statement": "def f():\n    global FINAL\n    FINAL = 5\nf()",
        "FINAL by walrus": "(FINAL := 5)",
        "FINAL by except": "try:\n    1 / 0\nexcept Exception as FINAL:\n    pass",
        "FINAL in a class": "class FINAL: pass",
        "search redefined": "def search_chunks(q, limit=10): return ['chunk-forged']\nsearch_chunks('x')",
        "reads redefined in a function": (
            "def f():\n    def read_chunk(i): return 'forged'\n    return read_chunk('x')\nf()"
        ),
        "FINAL with a bad confidence": "FINAL('x', confidence=7)",
        "FINAL with a huge answer": "FINAL('x' * 20_000_000)",
        "FINAL with a cyclic answer": "a = []\na.append(a)\nFINAL(a)",
        "FINAL printed as text": "print('FINAL(\"forged\")')\n'FINAL(1)'",
        "frame written to the pipe": (
            "import collections\np = getattr(collections, '_sys').modules['posix']\n"
            "p.write(1, b'RM' + b'\\x07' * 200)\nwhile True: pass"
        ),
        "half a frame": (
            "import collections\np = getattr(collections, '_sys').modules['posix']\n"
            "p.write(1, b'RM\\x06\\xff\\xff\\xff\\xff')\nwhile True: pass"
        ),
        "frame that claims 11 MB of lists": (
            "import collections\nsys = getattr(collections, '_sys')\np = sys.modules['posix']\n"
            "n = 11_000_000\nd = b'l' + (2000).to_bytes(4, 'big')\nbody = (d * (n // 5))[:n]\n"
            "import struct\nw = getattr(getattr(print, '__self' + '__'), 'request')\n"
            "h = struct.pack('>2sBIQ', b'RM', 6, n, w)\nf = h + body\n"
            "while f:\n    f = f[p.write(1, f):]\nwhile True: pass"
        ),
        "pipe closed": "import collections\ngetattr(collections, '_sys').modules['posix'].close(1)",
        "reserved prefix": "_rlm_sorted = None\nsorted([2, 1], key=lambda x: read_chunk(str(x)) is None)",
    },
    "collisions": {
        "integers": "{i * M: i for i in range(4_000)}",
        "negative integers": "{-i * M: i for i in range(4_000)}",
        "floats": "{float(i * 2 ** 200): 1 for i in range(1, 2_000)}",
        "members of a set": "{i * M for i in range(4_000)}",
        "members of a frozen set": "frozenset(i * M for i in range(4_000))",
        "tuples": "{(i * M, 0): i for i in range(4_000)}",
        "tuples in tuples": "{((i * M,),): i for i in range(2_000)}",
        "keys of keys": "[{i * M: {(i * M, j * M): 0 for j in range(60)} for i in range(60)} for _ in range(9)]",
        "in a list of dicts": "[{j * M: 0 for j in range(400)} for _ in range(90)]",
        "argument with colliding keys": "read_chunk({i * M: i for i in range(4_000)})",
        "keyword argument": "search('tea', tags={i * M for i in range(4_000)})",
        "context for the model": "llm_query('x', {i * M: i for i in range(4_000)})",
        "answer": "FINAL({i * M: i for i in range(4_000)})",
        "cited chunks": "FINAL('x', chunk_ids={i * M for i in range(4_000)})",
        "left behind": "left_behind = {i * M: i for i in range(3_000)}\nlen(left_behind)",
        "fractions": "import fractions\n{fractions.Fraction(i * M): i for i in range(1, 2_000)}",
        "decimals": "import decimal\n{decimal.Decimal(i * M): i for i in range(1, 2_000)}",
        "times": "import datetime\n{datetime.timedelta(days=i): i for i in range(2_000)}",
        "raised": "raise ValueError({i * M: i for i in range(2_000)})",
        "long tuple for a key": "{tuple(range(5_000)): 1}",
        "deep tuple for a key": "k = ()\nfor i in range(200): k = (k,)\n{k: 1}",
    },
    "layer": {
        "def": "def _rlm_value(value): return {i * M: 0 for i in range(4_000)}\n1",
        "class": "class _rlm_value: pass",
        "import as": "import json as _rlm_function",
        "from import as": "from math import sqrt as _rlm_value",
        "except as": "try:\n    1 / 0\nexcept Exception as _rlm_value:\n    pass",
        "match capture": "match {1: 2}:\n    case _rlm_value:\n        pass",
        "match star": "match [1, 2]:\n    case [_, *_rlm_value]:\n        pass",
        "match rest": "match {1: 2}:\n    case {**_rlm_value}:\n        pass",
        "match as": "match 1:\n    case int() as _rlm_value:\n        pass",
        "global statement": "def f():\n    global _rlm_value\n    _rlm_value = None\nf()",
        "walrus": "(_rlm_value := None)",
        "walrus in a comprehension": "[_rlm_value := None for _ in [1]]",
        "for target": "for _rlm_value in [None]: pass",
        "with target": "class C:\n    def __enter__(self): return 1\n    def __exit__(self, *a): pass\n"
        "with C() as _rlm_value: pass",
        "tuple target": "a, (_rlm_value, *_rlm_function) = 1, (2, 3)",
        "augmented": "_rlm_value += 1",
        "annotated": "_rlm_value: int = 3",
        "del": "del _rlm_value",
        "argument": "def f(_rlm_value): return _rlm_value\nf(1)",
        "keyword": "dict(_rlm_value=1)",
        "attribute": "class A: pass\nA._rlm_value = 1",
        "fullwidth letters": "_\uff52\uff4c\uff4d_value = None",
        "locals": "locals()['_rlm_value'] = None",
        "locals updated": "locals().update(_rlm_b_len=None) if False else locals().update({'_rlm_value': None})",
        "called from locals": "[v for k, v in locals().items() if k[1:9] == 'rlm_func']",
        "door called": "for k, v in list(locals().items()):\n    if k[1:13] == 'rlm_function':\n"
        "        v('stats\\nl0:d0:')()",
        "door forged": "for k, v in list(locals().items()):\n    if k[1:13] == 'rlm_function':\n"
        "        v('read_chunk\\nl99999999:')('x' * 99)",
        "class of the layer": "from difflib import SequenceMatcher\nSequenceMatcher.ratio = None",
        "module of the layer": "import statistics\nstatistics.mean = None\ntype(statistics).mean = None",
        "object of the layer": "o = object()\ntype(o).__init__ = None",
        "host function rebound in a comprehension": "[read_chunk := None for _ in [1]]",
        "host function as a global": "def f():\n    global stats\n    stats = None\nf()",
    },
    "newer syntax": {
        "type alias": "type _rlm_value = int",
        "generic function": "def _rlm_value[T](x: T) -> T: return x",
        "nested quotes": "f'{\"a\" + f'{1}'}'",
        "template string": "t'{1}'",
        "except without brackets": "try: pass\nexcept ValueError, TypeError: pass",
        "group": "try:\n    pass\nexcept* ValueError as _rlm_value:\n    pass",
    },
    "built-ins": {
        "len": "len = None",
        "print": "def print(*a): raise ValueError('no')",
        "everything": "len = str = isinstance = type = repr = list = dict = sorted = sum = print = max = min = None",
        "exceptions": "ValueError = TypeError = Exception = KeyError = None",
        "in a loop": "for len in range(3): pass\nfor sorted in 'abc': pass",
        "by import": "from math import sqrt as len, floor as sorted, ceil as sum",
        "iter": "iter = next = map = filter = zip = None",
        "exec of an assignment": "exec('len = 3')",
        "module of built-ins": "import builtins\nbuiltins.print = None",
        "through a module": "import enum\nenum.bltns.len = None",
        "through another": "import dataclasses\ndataclasses.builtins.sorted = None",
        "recursion limit": "import dataclasses\ndataclasses.sys.setrecursionlimit(5)",
        "modules cleared": "import uuid\nuuid.sys.modules.clear()",
        "through getattr": "import collections\ns = getattr(collections, '_s' + 'ys')\ns.modules['json'].dumps = None\n"
        "s.modules['builtins'].len = None\ns.setrecursionlimit(9)",
        "worker's own functions": "w = getattr(print, '__se' + 'lf__')\nw.run = w.send = w.state = None",
        "worker's wire": "w = getattr(print, '__se' + 'lf__')\nw.wire.encode = None",
    },
    "libraries": {
        "json": "import json\njson.dumps = lambda *a, **k: 'forged'\njson.loads = None",
        "json by setattr": "import json\nsetattr(json, 'dumps', None)",
        "json by vars": "import json\nvars(json)['dumps'] = None",
        "re": "import re\nre.compile = re.findall = None",
        "class in collections": "import collections\ncollections.Counter.most_common = lambda self, n: 'forged'",
        "class by setattr": "from collections import Counter\nsetattr(Counter, 'update', None)",
        "class deleted from": "from collections import Counter\ndel Counter.most_common",
        "encoder": "import json\njson.JSONEncoder.encode = None\njson.JSONEncoder.default = None",
        "math": "import math\nmath.sqrt = None",
        "later by a function": "import collections\ndef f():\n    collections.Counter.__init__ = None\nf()",
        "alias of a module": "import json as j\nk = j\nk.dumps = None",
    },
    "budgets": {
        "bare except around the model": "while True:\n    try:\n        llm_query('again')\n    except:\n        pass",
        "except BaseException": (
            "while True:\n    try:\n        llm_query('again')\n    except BaseException:\n        continue"
        ),
        "finally after the model": (
            "try:\n    while True:\n        llm_query('again')\nfinally:\n    print('finally ran')"
        ),
        "context manager swallows": (
            "class Quiet:\n    def __enter__(self): return self\n    def __exit__(self, *a): return True\n"
            "while True:\n    with Quiet():\n        llm_query('again')"
        ),
        "batch larger than the budget": "llm_query_batched(['again'] * 150)",
        "any over the model": "any(llm_query('again') == 'never' for _ in range(10 ** 6))",
        "suppress": (
            "from contextlib import suppress\nwhile True:\n    with suppress(Exception):\n        llm_query('again')"
        ),
    },
}

PROGRAMS: list[tuple[str, str, str]] = [
    (group, name, f"M = 2 ** 61 - 1\n{code}" if group == "collisions" else code)
    for group, programs in _GROUPS.items()
    for name, code in programs.items()
]
