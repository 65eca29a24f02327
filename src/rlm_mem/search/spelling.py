"""Near-misses: a word of the question that the store does not know is read as the known word one edit away.

The candidates come from the word itself by deletion, exchange of neighbours, replacement and insertion of one
letter, so no extra index is kept and the repair always knows exactly the store's current vocabulary. Only words that
occur nowhere are repaired, and never short ones, numbers or identifiers: one typo costs five points of recall, and
repair gives four of them back (docs/benchmarks/retrieval.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from rlm_mem.search.query import EVERYDAY, REPAIR, WORD, Query, with_alternatives
from rlm_mem.text.analysis import Analyser, fold, words

#: Shortest word that is repaired, in letters, and most repairs offered for one word.
SHORTEST, MOST = 4, 3
#: Weight of a repair relative to the word that was meant.
REPAIR_WEIGHT = 0.8
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
#: Words of one question that are looked up; a question of nothing but unknown words is in another language.
_WORDS = 6


def repaired(
    query: Query, analyser: Analyser, term_counts: Callable[[list[str]], Mapping[str, int]]
) -> Query:
    """`query` with near-spellings beside each word that the store does not know.

    `term_counts` gives, for each of some terms that the store holds, the number of chunks with it.
    """
    own = [term for term, role in zip(query.terms, query.roles, strict=True) if role == WORD]
    if not own:
        return query
    known = term_counts(own)
    telling = {term for term, weight in zip(query.terms, query.weights, strict=True) if weight > EVERYDAY}
    unknown = [t for t in own if not known.get(t) and t in telling and _repairable(t)][:_WORDS]
    if not unknown:
        return query
    spelled = _spellings(query.text, analyser, unknown)
    candidates = {term: _candidates(term, spelled.get(term, ()), analyser) for term in unknown}
    counts = term_counts(sorted({c for options in candidates.values() for c in options}))
    found: list[tuple[str, str, float, int]] = []
    for term, options in candidates.items():
        there = [option for option in options if counts.get(option)]
        # The fewest edits first (see _candidates), then the commonest, then by spelling: the same every time.
        there.sort(key=lambda option: (options[option], -counts[option], option))
        found.extend((term, option, REPAIR_WEIGHT, REPAIR) for option in there[:MOST])
    return with_alternatives(query, found)


def one_edit(word: str) -> set[str]:
    """Everything one deletion, exchange of neighbours, replacement or insertion of a letter away from `word`."""
    letters = sorted({*_LETTERS, *word}) if word.isascii() else sorted(set(word))
    splits = [(word[:i], word[i:]) for i in range(len(word) + 1)]
    found = {left + right[1:] for left, right in splits if right}
    found.update(left + right[1] + right[0] + right[2:] for left, right in splits if len(right) > 1)
    found.update(left + letter + right[1:] for left, right in splits if right for letter in letters)
    found.update(left + letter + right for left, right in splits for letter in letters)
    found.discard(word)
    return found


def _repairable(term: str) -> bool:
    return SHORTEST <= len(term) <= 24 and term.isalpha()


def _spellings(text: str, analyser: Analyser, wanted: Iterable[str]) -> dict[str, list[str]]:
    """The words of the question, as they were spelled, behind each wanted term."""
    missing = set(wanted)
    spelled: dict[str, list[str]] = {}
    for word, _, _ in words(text):
        plain = fold(word)
        term = analyser.stem(plain)
        if term in missing and plain not in spelled.setdefault(term, []):
            spelled[term].append(plain)
    return spelled


def _candidates(term: str, spelled: Iterable[str], analyser: Analyser) -> dict[str, int]:
    """Terms that may have been meant, each with a rank: 0 an exchange or deletion in the word, 1 any other edit."""
    found = {option: 1 for option in one_edit(term) if len(option) >= 3}
    for word in spelled:
        # A slip in the ending hides the ending from the stemmer, so the cheap edits are also tried before stemming.
        for i in range(len(word)):
            shorter = word[:i] + word[i + 1 :]
            swapped = word[:i] + word[i + 1 : i + 2] + word[i] + word[i + 2 :]
            for option in (shorter, swapped):
                if option != word and len(option) >= 3:
                    found[analyser.stem(option)] = 0
    found.pop(term, None)
    return found
