"""The source of emulations of standard modules that Monty lacks, with only the parts that programs use."""

from __future__ import annotations

MODULES: dict[str, tuple[tuple[str, ...], str]] = {
    "operator": (
        (
            *("itemgetter", "attrgetter", "add", "sub", "mul", "truediv", "lt", "gt", "le", "ge", "eq", "ne"),
            *("contains", "getitem", "neg", "not_", "methodcaller", "or_", "and_"),
        ),
        """
def _rlm_operator_itemgetter(*keys):
    if len(keys) == 1:
        return lambda value: value[keys[0]]
    return lambda value: tuple([value[key] for key in keys])
def _rlm_operator_attrgetter(*names):
    if len(names) == 1:
        return lambda value: getattr(value, names[0])
    return lambda value: tuple([getattr(value, name) for name in names])
def _rlm_operator_methodcaller(name, *args):
    table = {'lower': lambda v: v.lower(), 'upper': lambda v: v.upper(), 'strip': lambda v: v.strip(*args)}
    table['split'] = lambda v: v.split(*args)
    table['get'] = lambda v: v.get(*args)
    return table[name]
_rlm_operator_add = lambda a, b: a + b
_rlm_operator_sub = lambda a, b: a - b
_rlm_operator_mul = lambda a, b: a * b
_rlm_operator_truediv = lambda a, b: a / b
_rlm_operator_lt = lambda a, b: a < b
_rlm_operator_gt = lambda a, b: a > b
_rlm_operator_le = lambda a, b: a <= b
_rlm_operator_ge = lambda a, b: a >= b
_rlm_operator_eq = lambda a, b: a == b
_rlm_operator_ne = lambda a, b: a != b
_rlm_operator_contains = lambda a, b: b in a
_rlm_operator_getitem = lambda a, b: a[b]
_rlm_operator_neg = lambda a: -a
_rlm_operator_not_ = lambda a: not a
_rlm_operator_or_ = lambda a, b: a | b
_rlm_operator_and_ = lambda a, b: a & b
""",
    ),
    "statistics": (
        ("mean", "fmean", "median", "mode", "stdev", "pstdev", "variance", "pvariance", "multimode"),
        """
def _rlm_statistics_mean(data):
    data = list(data)
    if not data:
        raise ValueError('mean requires at least one data point')
    total = sum(data)
    if isinstance(total, int) and total % len(data) == 0:
        return total // len(data)
    return total / len(data)
def _rlm_statistics_fmean(data):
    return float(_rlm_statistics_mean(data))
def _rlm_statistics_median(data):
    data = sorted(data)
    if not data:
        raise ValueError('no median for empty data')
    half = len(data) // 2
    return data[half] if len(data) % 2 else (data[half - 1] + data[half]) / 2
def _rlm_statistics_multimode(data):
    counts = {}
    for item in data:
        counts[item] = counts.get(item, 0) + 1
    most = max(counts.values()) if counts else 0
    return [item for item, count in counts.items() if count == most]
def _rlm_statistics_mode(data):
    best = _rlm_statistics_multimode(data)
    if not best:
        raise ValueError('no mode for empty data')
    return best[0]
def _rlm_statistics_pvariance(data):
    data = list(data)
    middle = sum(data) / len(data)
    return sum([(x - middle) ** 2 for x in data]) / len(data)
def _rlm_statistics_variance(data):
    data = list(data)
    if len(data) < 2:
        raise ValueError('variance requires at least two data points')
    return _rlm_statistics_pvariance(data) * len(data) / (len(data) - 1)
def _rlm_statistics_stdev(data):
    return _rlm_statistics_variance(data) ** 0.5
def _rlm_statistics_pstdev(data):
    return _rlm_statistics_pvariance(data) ** 0.5
""",
    ),
    "heapq": (
        ("nlargest", "nsmallest", "heappush", "heappop", "heapify", "heappushpop", "merge"),
        """
def _rlm_heapq_nlargest(n, items, key=None):
    return _rlm_sorted(items, key=key, reverse=True)[:n]
def _rlm_heapq_nsmallest(n, items, key=None):
    return _rlm_sorted(items, key=key)[:n]
def _rlm_heapq_heapify(heap):
    heap.sort()
def _rlm_heapq_heappush(heap, item):
    low, high = 0, len(heap)
    while low < high:
        middle = (low + high) // 2
        if heap[middle] < item:
            low = middle + 1
        else:
            high = middle
    heap.insert(low, item)
def _rlm_heapq_heappop(heap):
    heap.sort()
    return heap.pop(0)
def _rlm_heapq_heappushpop(heap, item):
    _rlm_heapq_heappush(heap, item)
    return heap.pop(0)
def _rlm_heapq_merge(*lists, key=None, reverse=False):
    return iter(_rlm_sorted([item for items in lists for item in items], key=key, reverse=reverse))
""",
    ),
    "string": (
        (
            *("ascii_letters", "ascii_lowercase", "ascii_uppercase", "digits", "punctuation", "whitespace"),
            *("hexdigits", "capwords", "printable"),
        ),
        """
_rlm_string_ascii_lowercase = 'abcdefghijklmnopqrstuvwxyz'
_rlm_string_ascii_uppercase = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ'
_rlm_string_ascii_letters = _rlm_string_ascii_lowercase + _rlm_string_ascii_uppercase
_rlm_string_digits = '0123456789'
_rlm_string_hexdigits = '0123456789abcdefABCDEF'
_rlm_string_punctuation = '!"#$%&\\'()*+,-./:;<=>?@[\\\\]^_`{|}~'
_rlm_string_whitespace = ' \\t\\n\\r\\x0b\\x0c'
_rlm_string_printable = (
    _rlm_string_digits + _rlm_string_ascii_letters + _rlm_string_punctuation + _rlm_string_whitespace
)
def _rlm_string_capwords(text):
    return ' '.join([word.capitalize() for word in text.split()])
""",
    ),
    "textwrap": (
        ("shorten", "dedent", "wrap", "fill", "indent"),
        """
def _rlm_textwrap_wrap(text, width=70, **options):
    lines, line = [], ''
    for word in text.split():
        if line and len(line) + 1 + len(word) > width:
            lines.append(line)
            line = ''
        while len(word) > width:
            lines.append(word[:width])
            word = word[width:]
        line = line + ' ' + word if line else word
    if line:
        lines.append(line)
    return lines
def _rlm_textwrap_fill(text, width=70, **options):
    return '\\n'.join(_rlm_textwrap_wrap(text, width))
def _rlm_textwrap_shorten(text, width, placeholder=' [...]', **options):
    words = text.split()
    whole = ' '.join(words)
    if len(whole) <= width:
        return whole
    out = ''
    for word in words:
        longer = out + ' ' + word if out else word
        if len(longer) + len(placeholder) > width:
            break
        out = longer
    return out + placeholder if out else placeholder.strip()
def _rlm_textwrap_indent(text, prefix, predicate=None):
    return ''.join([prefix + l if l.strip() else l for l in text.splitlines(True)])
def _rlm_textwrap_dedent(text):
    lines = text.split('\\n')
    margins = [len(l) - len(l.lstrip()) for l in lines if l.strip()]
    margin = min(margins) if margins else 0
    return '\\n'.join([l[margin:] if l.strip() else '' for l in lines])
""",
    ),
    "pprint": (
        ("pprint", "pformat"),
        """
def _rlm_pprint_pformat(value, indent=1, width=80, **options):
    text = repr(value)
    if len(text) <= width:
        return text
    if isinstance(value, dict) and value:
        rows = [repr(k) + ': ' + _rlm_pprint_pformat(v, indent, width) for k, v in sorted(value.items())]
        return '{' + ',\\n '.join(rows) + '}'
    if isinstance(value, list) and value:
        return '[' + ',\\n '.join([_rlm_pprint_pformat(v, indent, width) for v in value]) + ']'
    return text
def _rlm_pprint_pprint(value, *rest, **options):
    print(_rlm_pprint_pformat(value))
""",
    ),
    "difflib": (
        ("SequenceMatcher", "get_close_matches"),
        """
def _rlm_difflib_blocks(a, b):
    total, todo = 0, [(0, len(a), 0, len(b))]
    while todo:
        a1, a2, b1, b2 = todo.pop()
        best, besti, bestj = 0, a1, b1
        lengths = {}
        for i in range(a1, a2):
            fresh = {}
            for j in range(b1, b2):
                if a[i] == b[j]:
                    k = fresh[j] = lengths.get(j - 1, 0) + 1
                    if k > best:
                        best, besti, bestj = k, i - k + 1, j - k + 1
            lengths = fresh
        if best:
            total += best
            todo.append((a1, besti, b1, bestj))
            todo.append((besti + best, a2, bestj + best, b2))
    return total
def _rlm_difflib_ratio(a, b):
    size = len(a) + len(b)
    return 2.0 * _rlm_difflib_blocks(a, b) / size if size else 1.0
def _rlm_difflib_SequenceMatcher():
    class SequenceMatcher:
        def __init__(self, isjunk=None, a='', b='', autojunk=True):
            self.a = a
            self.b = b
        def ratio(self):
            return _rlm_difflib_ratio(self.a, self.b)
        def quick_ratio(self):
            return _rlm_difflib_ratio(self.a, self.b)
    return SequenceMatcher
def _rlm_difflib_get_close_matches(word, possibilities, n=3, cutoff=0.6):
    scored = [(_rlm_difflib_ratio(other, word), other) for other in possibilities]
    best = sorted([pair for pair in scored if pair[0] >= cutoff], reverse=True)
    return [other for _, other in best[:n]]
""",
    ),
}
"""Emulated modules: public names, and the source that defines each as ``_rlm_<module>_<name>``."""

CLASSES = frozenset({("difflib", "SequenceMatcher")})
"""Emulated classes: ``_rlm_<module>_<name>()`` creates a new one for each import, since a program can change it."""
