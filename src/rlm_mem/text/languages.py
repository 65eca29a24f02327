"""The language of a question, the words that only ask in it, and the analyser by which notes are compared for it."""

from __future__ import annotations

import unicodedata
from collections import Counter
from functools import lru_cache

from rlm_mem.text.analysis import Analyser, get_analyser
from rlm_mem.text.patterns import late
from rlm_mem.text.stopwords import LISTED, stop_words

MAX_CHARACTERS = 400
"""Maximum number of characters read of a question or a sentence."""
WORD = late(r"\w+")
_SCRIPTS = {"CYRILLIC": "russian", "ARABIC": "arabic", "DEVANAGARI": "hindi", "GREEK": "greek"}
_LATIN = tuple(name for name in LISTED if name not in _SCRIPTS.values())
_COMPARED = frozenset(("german", "french", "spanish", "italian", "polish"))
"""Languages besides English for which the rules that compare notes have words (``by_language``)."""
_SPACELESS = late(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f]")

_ASKING = {
    "german": """wer wem wen wessen was wann wo wohin woher warum wieso weshalb wie welche welcher welches welchem
        welchen wieviel heißt heisst""",
    "french": "qui que quoi quel quelle quels quelles quand où pourquoi comment combien est-ce appelle",
    "spanish": """quién quiénes qué cuál cuáles cuándo dónde adónde cómo cuánto cuánta cuántos cuántas llama""",
    "italian": "chi che cosa quale quali quando dove perché come quanto quanta quanti quante chiama",
    "portuguese": "quem qual quais onde porquê quanto quantos",
    "dutch": "wie wat wanneer waar waarom hoe hoeveel welk welke heet",
    "swedish": "vem vad när var varför hur vilken vilket vilka",
    "polish": """kto kogo komu kim czyj czyja co czego czym gdzie kiedy dokąd skąd dlaczego jak jaki jaka jakie jakiego
        jakiej jaką ile ilu który która które którego której którym którą""",
    "russian": "кто что кого кому когда где куда откуда почему зачем как какой какая какое какие сколько чей чья",
    "arabic": "من ما ماذا متى أين اين لماذا كيف كم أي اي هل هو هي",
    "hindi": """कौन क्या कब कहाँ कहां क्यों कैसे कितना कितने कितनी किस किसने है हैं में को का की के से ने पर""",
}
_ASKING_IN = {name: frozenset(words.split()) for name, words in _ASKING.items()}
ASKING = frozenset().union(*_ASKING_IN.values())
"""Question words of languages with spaces, other than English: no answer contains them."""


@lru_cache(maxsize=256)
def language_of(text: str) -> str:
    """The language of a question, as the name of an analyser; ``none`` if its script has none, English by default."""
    plain = text[:MAX_CHARACTERS]
    if _SPACELESS.search(plain):
        return "none"
    scripts = Counter(
        unicodedata.name(char, "").partition(" ")[0]
        for char in plain
        if char.isalpha() and not char.isascii()
    )
    script, count = scripts.most_common(1)[0] if scripts else ("", 0)
    if script not in ("", "LATIN") and 2 * count > sum(char.isalpha() for char in plain):
        return _SCRIPTS.get(script, "none")
    if "¿" in plain:
        return "spanish"
    words = [word.lower() for word in WORD.findall(plain)]
    shares = {name: sum(word in stop_words(name) for word in words) for name in _LATIN}
    if "?" in plain:  # as "Quand déploie-t-on ?", whose other small words are English ones, too
        for name, asking in _ASKING_IN.items():
            if name in shares:
                shares[name] += len(asking.difference(stop_words(name)).intersection(words))
    best = max(shares, key=lambda name: shares[name])
    return best if shares[best] > shares["english"] else "english"


def is_foreign(text: str) -> bool:
    """Whether a question is in a language other than English."""
    return language_of(text) != "english"


@lru_cache(maxsize=16)
def analyser_of(question: str, default: Analyser | None = None) -> Analyser:
    """The analyser by which notes are compared for a question.

    A question in one of the languages above has one of its own, whatever the language of the store: by another one,
    its articles and pronouns would count as words of the subject. Cached, since each rule asks for it.

    Args:
        default: the analyser for a question in any other language; the English one if None.
    """
    language = language_of(question)
    if language in _COMPARED:
        return get_analyser(language)
    return default or get_analyser("english")
