"""Finds standing instructions in a person's text, such as "Always answer in metres", "from now on …", "never …".

A sentence is one if it asks for something from now on: it begins with a word of lasting command, or has a phrase that
makes a request permanent. A statement about oneself ("I always drink tea") is not one. By rules, for English, German,
French, Spanish, Italian and Portuguese.
"""

from __future__ import annotations

import re

from rlm_mem.text.patterns import late
from rlm_mem.text.sentences import sentences

_LEAD = (
    r"(?:(?:also|and|but|so|ok(?:ay)?|well|oh|hey|btw|by the way|one more thing|note|remember(?! (?:to|that)\b))"
    r"[,:]?\s++){0,2}+"
)
_POLITE = r"(?:please|kindly|bitte|por favor|per favore|s'il (?:te|vous) pla[iî]t)"
_NOT_A_WISH = (
    r"(?!(?:a|an|the|been|had|have|has|seen|heard|thought|was|were|is|are|mind|knew|felt|wanted|loved|liked|good|nice|"
    r"great|fun|happy|again|ever|once)\b)"
)
_OPENS = late(
    rf"{_LEAD}(?:{_POLITE}[,:]?\s++)?(?:"
    rf"(?P<rule>always|never|do(?:n't|n’t| not)(?: ever)?|make sure|be sure to|remember to|remember that|avoid|"
    rf"keep in mind|from now on|going forward|in (?:the )?future|whenever|every time|each time|any time|"
    rf"(?:if|when) (?:i|we|you|someone) [^.?!\n]{{1,120}}?, (?:please|always|never|make|give|use|show|include|add|tell|"
    rf"remind|answer|write|keep|don't|do not)|"
    rf"immer|niemals|nie|ab (?:jetzt|sofort)|von nun an|künftig|denk daran|achte darauf|"
    rf"toujours|jamais|à partir de maintenant|dorénavant|désormais|n'oublie[zs]? pas|"
    rf"siempre|nunca|a partir de ahora|de ahora en adelante|recuerda|"
    rf"sempre|mai|d'ora in poi|da ora in poi|ricorda(?:ti)?|a partir de agora|daqui em diante|lembra-te|lembre-se)"
    rf"\b[,:]?\s*+{_NOT_A_WISH})",
    re.IGNORECASE,
)
_PLEASE = late(
    rf"(?P<rule>{_POLITE})\b[^.?!\n]{{0,200}}?\b(?:always|never|every time|each time|whenever|from now on|in (?:the )?"
    r"future|remember|make sure|immer|nie(?:mals)?|toujours|jamais|siempre|nunca|sempre)\b",
    re.IGNORECASE,
)
_HOLDS = late(
    r"\b(?P<rule>from now on|going forward|i(?:'d|’d| would) (?:like|prefer|want) you to|i (?:want|need|expect) you to|"
    r"you should (?:always|never)|you must (?:always|never)|ab jetzt|von nun an|dorénavant|désormais|"
    r"à partir de maintenant|a partir de ahora|de ahora en adelante|d'ora in poi|a partir de agora)\b",
    re.IGNORECASE,
)
_NO_MEANING_OF_LAST = frozenset(
    ("don't", "don’t", "do not", "avoid", "remember that", "in the future", "in future")
)
_CONDITION = late(
    r"\b(?:when(?:ever)?|if|unless|(?:every|each|any) time|wenn|falls|sobald|quand|lorsque|si|chaque fois|cuando|"
    r"siempre que|cada vez|quando|se|ogni volta|toda vez)\b",
    re.IGNORECASE,
)
_MAX_SENTENCE = 600  # number of characters read per sentence
_SCREEN = late(
    r"always|never|ever\b|don.t|do not|sure to|make sure|remember|avoid|keep in mind|from now|forward|future|"
    r"time\b|you to\b|you should|you must|\bif |\bwhen |immer|nie|künftig|jetzt|nun an|denk|achte|sofort|toujours|"
    r"jamais|maintenant|dor|désormais|oubli|siempre|nunca|ahora|recuerda|sempre|\bmai\b|ricorda|ora in poi|agora|"
    r"diante|lembr",
    re.IGNORECASE,
)


def standing_instructions(text: str, start: int = 0, end: int | None = None) -> list[tuple[str, str]]:
    """Sentences of `text[start:end]` with a standing instruction, each with the words that mark it."""
    found = []
    stop = len(text) if end is None else end
    if _SCREEN.search(text, start, stop) is None:
        return []
    for first, last in sentences(text, start, stop):
        sentence = text[first : min(last, first + _MAX_SENTENCE)]
        match = _OPENS.match(sentence) or _HOLDS.search(sentence) or _PLEASE.search(sentence)
        if match is None or sentence.endswith("?"):
            continue
        rule = " ".join(match["rule"].lower().split())
        # "Don't worry" and "avoid it" are for the moment, unless the sentence has words of permanence.
        if rule in _NO_MEANING_OF_LAST and not re.search(
            r"\b(?:always|ever|never|when(?:ever)?|if|any|again|every)\b",
            sentence[match.end("rule") :].lower(),
        ):
            continue
        found.append((" ".join(text[first:last].split()), rule))
    return found


def condition_of(wish: str) -> str:
    """The condition of a standing instruction: "when I ask about sources"; empty if it applies to all answers."""
    match = _CONDITION.search(wish)
    return wish[match.start() :] if match else ""
