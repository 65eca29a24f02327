"""The alternatives of a question: "tabs" and "spaces" of "Do we use tabs or spaces?"."""

from __future__ import annotations

import re

from rlm_mem.text.patterns import late

_OR = late(r"(?<=[\w'’.,-])(?<!\s)\s++or\s++(?P<second>[^?.,;]+)", re.IGNORECASE)
_OPTION = late(r"\w[\w'’.-]*")
_LEADS_ON = late(r"(?<!\s)\s++(?:in|on|at|for|when|because|if|during|after|before)\s")
_MAX_OPTION = 200  # characters read before "or"


def options_of(text: str) -> tuple[str, ...]:
    """The alternatives at the end of a question ("tea or coffee"), without articles and lead-in words."""
    if " or " not in text.lower():
        return ()
    pairs = ((found, _words_before(text, found.start())) for found in _OR.finditer(text))
    match, words = next(((found, before) for found, before in pairs if before), (None, []))
    if match is None:
        return ()
    second = _LEADS_ON.split(match["second"].strip(), maxsplit=1)[0]
    # The first option ends right before "or"; it is assumed to be as long as the second, at least one word.
    wanted = max(1, len(second.split()))
    first = " ".join(words[-wanted:])
    cleaned = tuple(
        re.sub(r"^(?:the|a|an|to|of|by|in|more|rather)\s+", "", part, flags=re.IGNORECASE)
        for part in (first, second)
    )
    if (
        not all(cleaned)
        or len(second.split()) > 6
        or cleaned[1].lower() in {"not", "else", "more", "so", "less"}
    ):
        return ()
    return cleaned


def _words_before(text: str, end: int) -> list[str]:
    """Up to five words that end right before a place; none if something else does."""
    words: list[str] = []
    for word in reversed(text[max(0, end - _MAX_OPTION) : end].removesuffix(",").split()):
        if len(words) == 5:
            break
        if _OPTION.fullmatch(word):
            words.append(word)
            continue
        # Text before a bracket or a quote is not part of an option: "(tea or coffee".
        parts = [part for part in _OPTION.findall(word) if word.endswith(part)]
        words.extend(parts[-1:])
        break
    return words[::-1]
