"""ChunkingEngine: splits a text into typed chunks of bounded size at natural boundaries.

A text below the minimum size is one chunk; `ingest/cuts.py` chooses the cuts of longer texts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from msgspec import field, structs

from rlm_mem.chunk import check_content, check_tags
from rlm_mem.config import IngestConfig, SecretAction, SecretsConfig
from rlm_mem.errors import InputError, InvalidChunk
from rlm_mem.ingest.cuts import CutCosts, Cuts, Sizes, find_cuts, pack
from rlm_mem.record import FrozenRecord
from rlm_mem.text import blocks as structure
from rlm_mem.text.analysis import plain_words
from rlm_mem.text.blocks import blocks, units
from rlm_mem.text.dates import MONTH_NAMES
from rlm_mem.text.patterns import folded, late, word_set
from rlm_mem.text.secrets import Screened, screen
from rlm_mem.text.segments import headings_at
from rlm_mem.text.tokens import count_many, count_tokens

_UNITS_PER_TARGET = 10  # approximate number of units in a chunk of target size
_UNITS_PER_CHUNK = 32  # approximate maximum of units in a chunk; bounds the time
_ATTEMPTS = 4
_KEEP_WHOLE = 8.0  # cost of cutting inside a paragraph if no target size is set
_SMALLEST_SECTION = 12  # tokens of a section that is a chunk of its own, if sections are
_SECTION = -6.0  # cost of starting such a chunk: less than any difference in size
_SHORT = 8  # maximum characters, per token of the minimum size, of a text that may be below it


class ChunkResult(FrozenRecord, frozen=True):
    """One chunk of a text, before it is stored.

    `content` is exactly `text[start:end]` of the source. Its first `overlap` characters repeat the end of the chunk
    before (0 unless the cut fell inside running text); without them, the chunks contain every character of the source
    except the space between chunks, in order.
    """

    content: str
    tokens: int
    type: str
    index: int
    start: int
    end: int
    overlap: int = 0
    conversation_id: str | None = None
    tags: list[str] = field(default_factory=list)

    @property
    def chunk_type(self) -> str:
        """The same as `type`, under the parameter name of `create_chunk`."""
        return self.type


class ChunkingEngine:
    """Splits text into chunks (docs/spec/operations.md, Chunking).

    Paragraphs below the minimum are merged with their neighbours, those above the maximum are split at sentence
    ends, the end of one chunk repeated at the start of the next. Dialogue is cut between turns, sections at their
    headings; code blocks, lists, tables and turns are kept whole if they fit. Unbroken runs of characters are cut, too.
    Time and memory are linear in the text.

    Args:
        min_tokens: smallest chunk, in o200k tokens; a whole text below it is one chunk.
        max_tokens: largest chunk, never exceeded.
        target_tokens: preferred size, reached by merging paragraphs. None: as few paragraphs per chunk as the minimum
            allows, and a paragraph is only split when it exceeds the maximum.
        overlap_tokens: tokens repeated after a cut in running text. None: an eighth of the maximum, at most 40.
        sections: start a chunk with each heading, although the section is shorter than the minimum, so that one that
            changes is replaced alone.

    Raises:
        InputError: a size is not a whole number, or the sizes contradict each other.
    """

    def __init__(
        self,
        min_tokens: int = 100,
        max_tokens: int = 800,
        *,
        target_tokens: int | None = None,
        overlap_tokens: int | None = None,
        sections: bool = False,
    ) -> None:
        self._sections = sections
        self.min_tokens = _size(min_tokens, "min_tokens", 1)
        self.max_tokens = _size(max_tokens, "max_tokens", 2)
        if self.min_tokens > self.max_tokens:
            raise InputError(f"min_tokens {min_tokens} is above max_tokens {max_tokens}: swap them")
        self.target_tokens = None if target_tokens is None else _size(target_tokens, "target_tokens", 1)
        if self.target_tokens is not None and not self.min_tokens <= self.target_tokens <= self.max_tokens:
            raise InputError(
                f"target_tokens {target_tokens} must lie between min_tokens {min_tokens} and max_tokens {max_tokens}"
            )
        if sections:
            self.min_tokens = min(self.min_tokens, _SMALLEST_SECTION)
        default = min(40, self.max_tokens // 8)
        self.overlap_tokens = (
            default if overlap_tokens is None else _size(overlap_tokens, "overlap_tokens", 0)
        )
        if self.overlap_tokens > self.max_tokens // 2:
            raise InputError(
                f"overlap_tokens {overlap_tokens} must be at most half of max_tokens {max_tokens}"
            )

    def chunk(
        self, content: str, conversation_id: str | None = None, tags: Sequence[str] | None = None
    ) -> list[ChunkResult]:
        """Split `content` into chunks, in order; white space alone gives an empty list.

        Args:
            content: any text.
            conversation_id: set on every chunk.
            tags: set on every chunk.

        Raises:
            InputError: `content` is not text, or the tags are not a list of words.
        """
        if not isinstance(content, str):
            raise InputError(f"content must be text, not {type(content).__name__}")
        if conversation_id is not None and not isinstance(conversation_id, str):
            raise InputError(f"conversation_id must be text, not {type(conversation_id).__name__}")
        checked = [] if tags is None else check_tags(tags)
        end = len(content.rstrip())
        start = len(content) - len(content.lstrip())
        below = end - start <= _SHORT * self.min_tokens and (start == 0 or content[start - 1] in "\r\n")
        if below and start < end:  # text with indentation is parsed, as the indentation may belong to it
            tokens = count_tokens(content[start:end])
            if tokens < self.min_tokens:
                kind = detect_content_type(content[start:end])
                return [
                    ChunkResult(
                        content[start:end], tokens, kind, 0, start, end, 0, conversation_id, list(checked)
                    )
                ]
        cuts = self._cuts(content)
        spans, counts = self._partition(content, cuts)
        results: list[ChunkResult] = []
        for index, ((first, last), tokens) in enumerate(zip(spans, counts, strict=True)):
            start, end = _slice(cuts, first, last)
            unrepeated = cuts.start[first]
            results.append(
                ChunkResult(
                    content=content[start:end],
                    tokens=tokens,
                    type=detect_content_type(content[unrepeated:end]),
                    index=index,
                    start=start,
                    end=end,
                    overlap=unrepeated - start,
                    conversation_id=conversation_id,
                    tags=list(checked),
                )
            )
        return results

    def detect_content_type(self, content: str) -> str:
        """Detect the type of a text by rules: decision, pattern, preference, fact or note."""
        if not isinstance(content, str):
            raise InputError(f"content must be text, not {type(content).__name__}")
        return detect_content_type(content)

    def _cuts(self, content: str) -> Cuts:
        costs = CutCosts() if self.target_tokens is not None else CutCosts(sentence=_KEEP_WHOLE)
        if self._sections:
            costs = structs.replace(costs, heading=_SECTION)
        aim = self.target_tokens or self.min_tokens
        # Units are small enough that cuts around them can meet both bounds.
        largest = max(1, min(self.max_tokens // 4, max(1, self.max_tokens - self.min_tokens)))
        grain = min(largest, max(aim // _UNITS_PER_TARGET, self.max_tokens // _UNITS_PER_CHUNK, 1))
        return find_cuts(
            content,
            grain=grain,
            largest=largest,
            most=self.max_tokens,
            overlap=self.overlap_tokens,
            costs=costs,
        )

    def _partition(self, content: str, cuts: Cuts) -> tuple[list[tuple[int, int]], list[int]]:
        """Chunks as ranges of units, with exact token counts.

        The sum of parts can differ from the count of the whole; if that violates a bound, the bounds are tightened by
        the same ratio and packing is repeated.
        """

        def exact(first: int, last: int) -> int:
            start, end = _slice(cuts, first, last)
            return count_tokens(content[start:end])

        sizes = Sizes(self.min_tokens, self.target_tokens or self.min_tokens, self.max_tokens)
        spans: list[tuple[int, int]] = []
        counts: list[int] = []
        for _ in range(_ATTEMPTS):
            spans = pack(cuts, sizes, exact)
            counts = count_many([content[slice(*_slice(cuts, *span))] for span in spans])
            closer = self._tighten_bounds(sizes, cuts, spans, counts)
            if closer is None:
                break
            sizes = closer
        return spans, counts

    def _tighten_bounds(
        self, sizes: Sizes, cuts: Cuts, spans: list[tuple[int, int]], counts: list[int]
    ) -> Sizes | None:
        """Bounds for packing again; None if the real bounds are met or cannot be met better."""
        least, most = sizes.least, sizes.most
        for (first, last), count in zip(spans, counts, strict=True):
            if last - first > 1 and count > self.max_tokens:
                most = min(most, self.max_tokens * cuts.estimate(first, last) // count - 1)
            elif count < self.min_tokens and cuts.estimate(first, last) >= sizes.least and len(spans) > 1:
                least = max(least, self.min_tokens * cuts.estimate(first, last) // count + 1)
        if (least, most) == (sizes.least, sizes.most) or least > most:
            return None
        return Sizes(least, min(max(sizes.target, least), most), most)


def _slice(cuts: Cuts, first: int, last: int) -> tuple[int, int]:
    return cuts.repeat_from[first], cuts.end[last - 1]


def _size(value: object, name: str, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InputError(f"{name} must be a whole number of tokens, {least} or more, not {value!r:.40}")
    return value


# --- detecting the type of a text --------------------------------------------------------------------------

# Rules over ordinary English, no model. A label at the start ("Decision: …") determines the type. Otherwise each
# sentence is classified: a decision, something liked or wanted, something recurring, a plain statement about the world,
# or none of these. If several apply, the first in this list wins ("we agreed to meet every Monday" is a decision), but
# a sentence that begins with a condition ("Whenever we …") is a pattern. The type of a longer text is the most frequent
# one of its sentences, the first counting twice; a conversation is a note unless one type dominates it.

_MAX_TEXT = 1_200  # characters that are read
_MAX_SENTENCE = 400  # characters of one sentence that are read
_SHARE = 0.3  # minimum share of a text's weight for its type
_SHARE_IN_DIALOGUE = 0.5
_WEIGHTS = {"decision": 1.0, "preference": 1.0, "pattern": 0.9, "fact": 0.6}


def detect_content_type(content: str) -> str:
    """Detect the type of a text by rules: ``decision``, ``pattern``, ``preference``, ``fact`` or ``note``."""
    text = content[:_MAX_TEXT].replace("’", "'")
    label = _LABEL.match(text)
    if label is not None:
        return _LABELS[folded(label[1])]
    weights = dict.fromkeys(_WEIGHTS, 0.0)
    total, turns = 0.0, 0
    for block in blocks(text):
        if block.kind in (structure.CODE, structure.HEADING, structure.RULE, structure.ROW, structure.HEADER):
            continue
        turns += block.kind == structure.TURN
        for start, end in units(text, block.body_start, block.end):
            weight = 1.0 if total else 2.0
            kind = _sentence_type(text[start : min(end, start + _MAX_SENTENCE)])
            if kind != "note":
                weights[kind] += weight * _WEIGHTS[kind]
            total += weight
    best = max(weights, key=weights.__getitem__)
    needed = _SHARE_IN_DIALOGUE if turns > 1 else _SHARE
    return best if total and weights[best] >= needed * total else "note"


def states_choice(text: str) -> bool:
    """Whether a text or a clause states a preference or a decision."""
    plain = text.replace("’", "'")
    return _PREFERENCE.search(plain) is not None or _DECISION.search(plain) is not None


def leaning(sentence: str, *, own: bool) -> tuple[str, str] | None:
    """The kind (``preference`` or ``habit``) and text of a clause that states what somebody prefers or usually does.

    Args:
        own: it must be about the speaker ("I", "my", "we").
    """
    plain = sentence.replace("’", "'")
    start = 0
    for end in (*(one.end() for one in _CLAUSE_ENDS.finditer(plain)), len(plain)):
        clause = plain[start : min(end, start + _MAX_SENTENCE)].strip(" ,;")
        kind = _sentence_type(clause)
        about = mentions_speaker(clause) and _YOU_LIKE.search(clause) is None
        if kind == "preference" and (not own or (about and _prefers_itself(clause))):
            return "preference", sentence[start:end].strip(" ,;")
        if kind == "pattern" and (not own or about) and _KEEPS.search(clause) is None:
            return "habit", sentence[start:end].strip(" ,;")
        start = end
    return None


def mentions_speaker(text: str) -> bool:
    """Whether a text in English has a word for its speaker ("I", "my", "we")."""
    return _OWN.search(text) is not None


def _prefers_itself(clause: str) -> bool:
    """Whether a preference has the speaker in or just before its words, unlike "my site has parts like cards"."""
    return any(
        _OWN.search(clause, max(0, one.start() - _NEAR), one.end()) for one in _PREFERENCE.finditer(clause)
    )


def _sentence_type(sentence: str) -> str:
    found: Sequence[str] = list(map(str.lower, plain_words(sentence))) or _WORD.findall(sentence.lower())
    opens = not sentence.isascii() or (bool(found) and found[0].partition("'")[0] in _OPENINGS)
    if opens and _CHATTER.match(sentence):
        return "note"
    if sentence.rstrip("\"')").endswith("?"):
        return "note"
    if opens and _RECURRING_OPENING.match(sentence):
        return "pattern"
    words = _CUES.intersection(found)
    if words & _DECISION_WORDS and _DECISION.search(sentence):
        return "decision"
    if words & _PREFERENCE_WORDS and _PREFERENCE.search(sentence):
        return "preference"
    if opens and _TASK.match(sentence):
        return "note"
    if words & _PATTERN_WORDS and _PATTERN.search(sentence):
        return "pattern"
    if words & _TENTATIVE_WORDS and _TENTATIVE.search(sentence):
        return "note"
    if not words & _STATING_WORDS and not _STATEMENT.search(sentence):
        return "note"
    return "note" if opens and _FEELING.match(sentence) else "fact"


def _rules(*alternatives: str) -> re.Pattern[str]:
    return late("|".join(f"(?:{rule})" for rule in alternatives), re.IGNORECASE)


_LABELS = {
    "decision": "decision",
    "decided": "decision",
    "preference": "preference",
    "pattern": "pattern",
    "fact": "fact",
    "note": "note",
    "notes": "note",
    "todo": "note",
    "reminder": "note",
    "idea": "note",
    "ideas": "note",
}
_LABEL = late(rf"\W*({'|'.join(_LABELS)})\b\W{{0,3}}[:：]", re.IGNORECASE)

_ADVERBS = r"(?:\w+ly|just|also|all|both|now|then|have|has|had|'ve|'s|together|instead)"
_BUILD_VERBS = (
    r"(?:use|adopt|switch|migrate|move to|go with|replace|drop|stick with|stay with|keep using|standardi[sz]e on|"
    r"sunset|retire|deprecate|rewrite|choose|pick|hire|launch|ship)"
)
_DECISION = _rules(
    r"\b(?:decided|opted|resolved|elected|voted|agreed|concluded|committed|chosen|chose)\s+"
    r"(?:to|on|that|for|against|not|in favou?r|unanimously)\b",
    rf"\b(?:we|i|they|he|she|team|board|committee|council|group|management|everyone|user|"
    rf"[a-z]+ and i)\s+(?>(?:{_ADVERBS}\s+)*)"
    r"(?:decided|agreed|chose|chosen|picked|selected|approved|rejected|adopted|settled|opted|ruled out|signed off)\b",
    r"\b(?:they|we|i|he|she|who)(?:\s+have|\s+has|'ve|'s)\s+(?:\w+\s+)?(?:chosen|picked|selected|decided|adopted)\b",
    r"^(?:\w+\s+){1,3}(?:chose|approved|rejected|opted for|ruled out|signed off on|settled on|decided)\b",
    r"\b(?:settled on|signed off on|ruled out|opted for|made up (?:my|our|his|her|their) minds?)\b",
    r"\b(?:made|make|took|reached) (?:a|the|my|our|his|her|their) (?:\w+ )?(?:decision|choice|call)\b",
    r"\b(?:final |our |the )decision (?:is|was|has been)\b|\bit (?:was|is|has been|'s been) (?:decided|agreed)\b",
    r"\b(?:the|our) plan is to\b",
    r"^from now on\b|\bgoing forward,? we\b",
    rf"\b(?:we|they|project|team|company|i)(?:'ll| will|'re going to| are going to|'m going to|"
    rf" am going to) {_BUILD_VERBS}\b",
    rf"^let's {_BUILD_VERBS}\b",
    r"\b(?:we|they|i)(?:'re| are|'m| am) (?:\w+ly )?(?:going with|dropping|switching (?:to|from)|adopting|replacing|"
    r"migrating (?:to|from)|moving (?:to|from|off)|retiring|deprecating|standardi[sz]ing on)\b",
    r"\b(?:we|they|i) went with\b|\bchoice (?:fell on|is|was)\b|\baccepted (?:the|an|a|his|her|"
    r"their) (?:\w+ )?offer\b",
    r"^we (?:\w+ly |have |then )?(?:switched|migrated) (?:from|to|over)\b",
)
_NEAR = 20
"""Maximum characters between the speaker and the words of a preference."""
_CLAUSE_ENDS = late(r"[,;](?= )")
_YOU_LIKE = late(r"\byou (?:\w+ly )?(?:like|love|enjoy|prefer)\b", re.IGNORECASE)
_KEEPS = late(r"\b(?:keeps?|kept) (?:on )?\w+ing\b", re.IGNORECASE)
"""Matches what goes on for a while, which is no habit."""
_OWN = late(r"\b(?:i|my|me|mine|we|our|us)\b", re.IGNORECASE)
_SUBJECT = (
    r"(?:i|you|we|they|who|people|users?|customers?|clients?|kids|children|everyone|[a-z]+ and (?:i|[a-z]+))"
)
_LIKING = r"(?:like|love|enjoy|hate|dislike|adore|despise|detest|loathe|appreciate|want|favou?r)"
_PREFERENCE = _rules(
    r"\bprefer(?:s|red|ring)?\b|\bpreferences?\b|\bfavou?rites?\b",
    r"\b(?:likes|loves|enjoys|hates|dislikes|adores|despises|detests|loathes|favou?rs)\b",
    rf"\b{_SUBJECT}\s+(?>(?:{_ADVERBS}\s+|do\s+|don't\s+|do not\s+|would\s+|never\s+|always\s+|still\s+)*)"
    r"(?:like|love|enjoy|hate|dislike|adore|despise|detest|loathe)\b(?! to (?:see|hear|know) (?:you|that|from))",
    rf"\b(?:doesn't|does not|don't|do not|didn't|never)\s+(?:{_ADVERBS}\s+)?{_LIKING}\b",
    r"\b(?:would|'d) (?:much |far )?(?:rather|prefer|sooner)\b",
    r"\b(?:user|customer|client|he|she|[A-Z]\w+) (?:would|'d) like\b|\b(?:user|customer|client)s? wants?\b|"
    r"\bi want you to\b",
    r"^(?:use|write|keep|give) .{0,60}\b(?:in|for) (?:your|all|the) (?:answers?|repl(?:y|ies)|responses?|"
    r"outputs?|code|examples?)\b",
    r"\b(?:can't|cannot|can not|couldn't) stand\b",
    r"\b(?:fond of|fan of|keen on|partial to|crazy about|passionate about|obsessed with|addicted to|"
    r"(?:really|so|totally) into|not into)\b",
    r"^(?:please |kindly )(?:always|never|don't|do not|use|keep|avoid|answer|reply|respond|write|call me|address)\b",
    r"^(?:always|never) (?:answer|reply|respond|use|write|include|call|address|give|show)\b",
)
_DAYS = r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?"
_MONTHS = "|".join(MONTH_NAMES)
_PERIOD = (
    rf"(?:{_DAYS}|{_MONTHS}|mornings?|evenings?|nights?|afternoons?|days?|weeks?|weekends?|months?|years?|"
    rf"quarters?|summers?|winters?)"
)
_RECURRING_OPENING = _rules(
    r"^(?:every time|each time|whenever|every (?:single |other |few |couple of )?[a-z]+ (?!is\b|was\b|has\b)|"
    rf"each {_PERIOD}|usually|typically|normally|generally|as a rule|most {_DAYS}|most (?:mornings|days|"
    rf"weekends|nights))\b",
    r"^(?:when|if|after|before|once)\b.{0,120}\b(?:never|always|usually|often|typically)\b",
)
_PATTERN = _rules(
    rf"\bevery other\b|\b(?:every|each) (?:time|single|few|couple of|\d+|two|three|four|five|six|{_PERIOD}|release|"
    rf"sprint|deploy\w*|commit|hour|minute)\b",
    r"\b(?:whenever|usually|typically|generally|normally|regularly|frequently|often|repeatedly|routinely|habitually|"
    r"consistently|constantly|invariably|occasionally|intermittently|seldom|rarely|always)\b",
    r"\btends? to\b|\b(?:keeps?|kept) (?:on )?\w+ing\b|\bin the habit of\b|\brecurring\b|\bover and over\b|"
    r"\btime and again\b",
    rf"\b(?:on|most|in the) (?:weekends|weekdays|mornings|evenings|{_DAYS[:-2]}s)\b",
    rf"\b(?:once|twice|three times|four times|five times|\d+ times|several times|many times) (?:a|an|per|"
    rf"every) {_PERIOD}\b",
)
_TASK = _rules(
    r"^(?:please |also |then |now )?(?:remember|remind|call|ask|check|look|buy|get|send|email|write|read|"
    r"fix|add|update|review|"
    r"follow|schedule|book|finish|draft|prepare|submit|try|test|talk|let|need|don't forget|make sure|see|"
    r"find|pick up|bring|"
    r"reply|investigate|meeting notes?|notes? (?:from|on|about)|ideas? (?:for|about)|todo|to do)\b"
)
_CHATTER = _rules(
    r"^(?:hey|hi|hello|thanks|thank you|haha|lol|wow|oh|ok|okay|yeah|yep|sure|cool|great|awesome|congrats|good luck|"
    r"good (?:morning|night|evening|one|job)|sounds|see you|bye|welcome|sorry|well done|nice|hope|hoping|"
    r"looking forward)\b[^.]{0,60}\.?$"
)
_TENTATIVE = _rules(
    r"\b(?:maybe|perhaps|might|(?-i:may)|could|should|shall|would|probably|possibly|i think|i guess|"
    r"i wonder|i hope|hopefully|i suppose|not sure|seems?|going to|need to|needs to|have to|want to|let's|let me)\b"
)
_FEELING = _rules(
    r"^(?:i'm|i am|i was|we're|we are|we were|it's|it is|it was|that's|that is|that was|this is|this was|"
    r"here is|here are|here's|there's|you're|you are|so |(?:that|this|it) (?:sounds|looks|feels|seemed|seems)) ?\b"
)
_STATEMENT = _rules(
    r"'s\s+(?:a|an|the|in|on|at|name)\b",
    r"\b[a-z]{3,}ed (?:the|a|an|its|his|her|their|my|our|in|on|at|to|from|by|for|about)\b",
)
_STATING_WORDS = word_set(
    """
    is are was were has have had isn't aren't wasn't weren't hasn't contain contains consist consists include
    includes cost costs weigh weighs measure measures equal equals mean means live lives lived work works worked
    belong belongs speak speaks teaches taught study studies studied graduated married moved joined own owns owned
    born die died run runs ran require requires support supports use uses used store stores stored return returns
    expire expires expired take takes took open opens opened close closes closed start starts started end ends
    ended begin begins hold holds boil boils freeze freezes melt melts released founded invented wrote written
    built made won lost bought sold visited met adopted attended gave got went came became painted listen listens
    accept accepts allow allows depend depends provide provides produce produces connect connects handle handles
    default defaults point points refer refers arrive arrives arrived come comes goes makes gets sits stands lies
    """
)

# A rule set is tried only on sentences with one of its words, which most sentences lack.
_WORD = late(r"[a-z']+")
_DECISION_WORDS = word_set(
    """
    decided opted resolved elected voted agreed concluded committed chosen chose picked selected approved rejected
    adopted settled ruled signed mind minds made make took reached decision choice plan now forward let's will
    we'll they'll i'll going dropping switching adopting replacing migrating moving retiring deprecating
    standardising standardizing went accepted switched migrated
    """
)
_PREFERENCE_WORDS = word_set(
    """
    prefer prefers preferred preferring preference preferences favourite favourites favorite favorites like likes
    love loves enjoy enjoys hate hates dislike dislikes adore adores despise despises detest detests loathe
    loathes favours favors favour favor appreciate want wants rather sooner stand fond fan keen partial crazy
    passionate obsessed addicted into please kindly always never use write keep give
    """
)
_TENTATIVE_WORDS = word_set(
    """
    maybe perhaps might may could should shall would probably possibly think guess wonder hope hopefully suppose
    sure seem seems going need needs have want let's let
    """
)
_PATTERN_WORDS = word_set(
    """
    every each whenever usually typically generally normally regularly frequently often repeatedly routinely
    habitually consistently constantly invariably occasionally intermittently seldom rarely always tend tends keep
    keeps kept habit recurring over again weekends weekdays mornings evenings mondays tuesdays wednesdays thursdays
    fridays saturdays sundays once twice times
    """
)

_OPENINGS = word_set(
    """
    hey hi hello thanks thank haha lol wow oh ok okay yeah yep sure cool great awesome congrats good sounds see you bye
    welcome sorry well nice hope hoping looking
    every each whenever usually typically normally generally as most when if after before once
    please also then now remember remind call ask check look buy get send email write read fix add update review follow
    schedule book finish draft prepare submit try test talk let need don make find pick bring reply investigate meeting
    note notes idea ideas todo to
    i we it that this here there so
    """
)
"""First words, up to any apostrophe, of the sentences that the rules for openings match."""
_CUES = _DECISION_WORDS | _PREFERENCE_WORDS | _TENTATIVE_WORDS | _PATTERN_WORDS | _STATING_WORDS


# --- a whole text, ready to be stored ------------------------------------------------------------------------------


class AnalysedText(FrozenRecord, frozen=True):
    """A text ready to be stored: screened for secrets, split into chunks, with the headings above each chunk."""

    screened: Screened
    pieces: list[ChunkResult]
    headings: list[list[str]]


_engine = lru_cache(maxsize=16)(ChunkingEngine)  # caches the validation of sizes


def analyse(
    text: str,
    sizes: IngestConfig,
    secrets: SecretsConfig,
    action: SecretAction | None = None,
    *,
    sections: bool = False,
) -> AnalysedText:
    """Screen a text for secrets and split it into chunks, without a store.

    Args:
        text: not empty, and within ``sizes.max_content_bytes``.
        secrets, action: how to handle secrets; ``action`` None: as configured.
        sections: each section is a chunk (``ChunkingEngine``).

    Raises:
        InvalidChunk: there is nothing to remember, it is too long, or there is a secret and secrets are refused.
    """
    text = _checked_text(text, sizes.max_content_bytes)
    # The whole text is screened at once, since chunking could split a private key.
    screened = screen(text, secrets, action)
    engine = _engine(
        sizes.min_tokens,
        sizes.max_tokens,
        target_tokens=sizes.target_tokens,
        overlap_tokens=sizes.overlap_tokens,
        sections=sections,
    )
    pieces = engine.chunk(screened.text)
    above: list[list[str]] = [[]]
    if len(pieces) > 1:
        above = headings_at(screened.text, [piece.start + piece.overlap for piece in pieces])
    return AnalysedText(screened, pieces, above)


def _checked_text(text: object, limit: int) -> str:
    if not isinstance(text, str):
        remedy = None
        if isinstance(text, bytes | bytearray):
            remedy = "decode it first: data.decode('utf-8')"
        elif isinstance(text, list | tuple):
            remedy = "remember_many stores several texts"
        raise InvalidChunk(f"the text to remember must be str, not {type(text).__name__}", hint=remedy)
    if not text.strip():
        raise InvalidChunk("there is nothing to remember: the text is empty")
    # The characters are counted first, so that a text of gigabytes is refused without encoding it.
    if len(text) > limit or len(check_content(text).encode()) > limit:
        raise InvalidChunk(
            f"content of {len(text):,} characters is larger than the {limit:,} bytes that one remember takes",
            hint="split it, or raise ingest.max_content_bytes",
        )
    return text
