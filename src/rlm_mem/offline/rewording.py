"""Other words for a question: its rarest words alone, and members of the classes it names."""

from __future__ import annotations

from rlm_mem.offline.question import Question
from rlm_mem.search.relations import related_terms
from rlm_mem.text.analysis import get_analyser

__all__ = ["other_words"]

_MOST = 4


def other_words(question: Question) -> list[str]:
    """Up to four further searches: the content words without everyday ones, then each class word with its members."""
    analyser = get_analyser("english")
    people = " ".join(question.names)
    plain = [
        word
        for word in question.text.replace("?", " ").split()
        if set(analyser.terms(word)) & question.strong
    ]
    found = [" ".join([people, *plain])] if plain else []
    for word in plain:
        members = [member for term in analyser.terms(word) for member in related_terms(term, analyser)]
        if members:
            found.append(f"{people} {' '.join(members[:8])}".strip())
    if people and plain:
        found.append(" ".join(plain))
    return list(dict.fromkeys(query for query in found if query.strip() and query != question.text))[:_MOST]
