"""The reference of the host functions, of which instructions, ``help()`` and docs/reference/functions.md are made."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Literal

from rlm_mem.record import FrozenRecord


class Page(FrozenRecord, frozen=True):
    """The documentation of one function.

    Attributes:
        gives: its result, in one line.
        details: fields, bounds and errors.
        example: a few lines of a program.
        first: whether the instructions list its signature; of other functions they list the name and ``kind``.
        short: its signature in the instructions, if shorter.
        by: what answers it: the store, a model, or the session itself.
        kind: its result in a word, if the instructions need it.
        rebindable: whether a program may give its own variable this name, as models like to: ``turns = turns(…)``.
    """

    name: str
    signature: str
    gives: str
    details: str
    example: str
    first: bool = False
    short: str = ""
    by: Literal["store", "model", "session"] = "store"
    kind: str = ""
    rebindable: bool = False


_LINE = (
    "A line has date, at, speaker, text, reply (the next turn of another speaker), chunk_id, conversation_id, "
    "superseded_by; ended_at if it is no longer valid; untrusted (web, tool, import) if it came from outside."
)

_PAGES = (
    Page(
        "search",
        "search(query, limit=10, tags=None, chunk_type=None, conversation_id=None, start=None, end=None, "
        'speaker=None, by="chunk")',
        "hits, best first: {chunk_id, snippet, date, speaker}",
        "A hit has chunk_id, id, score, snippet, date, speaker (of the snippet), start and end (of the "
        "snippet, in characters), at, type, tags, author (the same as speaker), conversation_id; superseded_by or "
        "ended_at if it is out of date; untrusted (web, tool, import) if it came from outside. "
        "by='segment' ranks single turns or sentences, of which one chunk may have several. limit is "
        "1–100. Dates are '2026-05-01' or ISO times; the end day is included.",
        'for hit in search("Ana guitar lessons", limit=5):\n    print(hit["date"], hit["speaker"], '
        'hit["snippet"])',
        first=True,
        short="search(query, limit=10)",
    ),
    Page(
        "passages",
        "passages(query, limit=10, neighbours=1, conversation_id=None, chars=None)",
        "hits with {chunk_id, date, speaker, text, before, after}; chars=1200: wider text",
        "query is a text, or a list of up to 20 texts, each of which is searched for. A passage is a "
        "turn, a sentence or a short note: chunk_id, score (of the first text that found it), date, at, speaker, "
        "text, heading (those above it, the topmost first, and the header of its table or the term it explains), "
        "document (title and file name of its document), conversation_id, "
        "start (its place in the chunk), parts (chunks that its text was split into), "
        "before and after (lists of the lines around it, `neighbours` each way, 0–5; for the best 5 also from "
        "adjacent chunks), links (of the best 5 chunks: chunk_id, type, text), superseded_by, ended_at if it is "
        "no longer valid, and later_note (chunk_id, at, text) if a later note on the same subject is known. "
        "chars (100–4,000) gives each text with what is around the match in its turn, by whole sentences, up to so "
        "many characters, and a part of a turn only once; print_rows then prints all of it. limit is "
        "1–50; chunks that replaced, contradict, elaborate or support the best three follow beyond it.",
        'for p in passages("when does the lease end", limit=5):\n    print(p["date"], p["speaker"], '
        'p["text"], p["after"])',
        first=True,
        short="passages(query, limit=10)",
        rebindable=True,
    ),
    Page(
        "turns",
        "turns(author=None, contains=None, start=None, end=None, conversation_id=None, limit=50, offset=0, "
        "chunks=None, points=False, whole=False, chars=None, code=False, unseen=False, every=False, heading=None)",
        "what was said, by time: {date, speaker, text, reply, chunk_id}; points=True adds points: reply headings; "
        "chunks=ID, whole=True: text, reply whole (heading=TEXT: only that section)",
        _LINE + " author is the speaker, by the whole name or one word of it. contains is a text, "
        "or a list of which one must occur (every=True: all, anywhere in the turn): as whole words, in any form, as in "
        "search ('art' is not in start); of "
        "several words all, in this order, in one sentence, at most 40 characters apart ('add column': added a new "
        "column); a text with signs ('auth.py', '$500') as it is; a word that no memory has ('revis') as "
        "the beginning of one. matches are the parts that match, match is the "
        "first of them; a turn that has it only in blocks of code counts with code=True, or if no other has it. "
        "start and end are '2026-05-01', '2026-05', 'May 2026' or ISO times; the end is included. A note "
        "without speakers is one line, its speaker None. A line is cut after 4,000 characters, "
        "marked …, the reply after 400, without a preamble (“Great question!”), and a mark "
        "replaces each block of more than three lines of code, unless code=True; whole=True gives both in full, the "
        "turn in text and the reply in reply, even if split into several chunks, up to chars characters each "
        "(100–20,000; default 6,000 for one row, for several 4,000 divided by them, at least 300), cut after a "
        "sentence (a remark says where the first goes on); a turn that is in an earlier row, even as its reply, has "
        "no row of its own. "
        "heading (a text or a list) gives of turn and reply only the sections with this heading or bold label, or with "
        "one that has all of its words, below 200 characters of the turn; of up to limit rows, those without are left "
        "out. "
        "points=True adds points: the headings and bold labels of the reply, the upper levels, "
        "at most 600 characters, with what follows each in below if that leaves room "
        "(for more than ten rows 150, and some 2,000 in all), each once, "
        "except those that begin with a time or occur on three or more days or conversations. "
        "chunks is a chunk id (for one that was shown, its last part is enough), a row, or a list of them: "
        "only their turns (for a row with a speaker, the "
        "speaker's), or the turn that a chunk continues; with whole or points, and without author, the user's turn "
        "replaces the assistant's reply to it. unseen=True leaves out the chunks of <hits>, and those that a function "
        "returned before. limit is 1–500; offset continues. A remark "
        "below the output says how many rows a list of 50 or more left out.",
        'for t in turns(author="Ana", contains="guitar", start="May 2026", end="May 2026"):\n'
        '    print(t["date"], t["text"], "|", t["reply"])\n'
        'print_rows(turns(author="User", contains="garden", points=True))  # with the headings of the replies\n'
        'print_rows(turns(chunks=search("garden plan", limit=1), whole=True))  # all that was said, and the reply',
        first=True,
        short="turns(author=None, contains=[WORDS], start=None, end=None)",
        rebindable=True,
    ),
    Page(
        "grep",
        "grep(pattern, author=None, ignore_case=True, limit=50, offset=0, start=None, end=None, unseen=False)",
        "turns with lines that a regex matches",
        _LINE
        + " text are the lines of the turn with a match, joined by …, at most 500 characters each (from the start, or "
        "around matches far from it) and 1,000 in all; matches are up to 20 matches, match is the first. The syntax "
        "is that of RE2: no lookahead, no lookbehind, no backreference, "
        "repetitions up to 1,000; ^ and $ match the ends of a line. At most 1,000 characters of "
        "pattern. start, end and unseen as in turns. limit is 1–500. Figures of a subject: "
        'grep(r"commits.{0,60}\\d|\\d.{0,60}commits").',
        'for t in grep(r"\\b\\d+ (km|miles)\\b", author="Ana"):\n    print(t["date"], t["match"], t["text"])',
        first=True,
        short="grep(pattern, author=None)",
    ),
    Page(
        "outline",
        "outline(query=None, start=None, end=None, limit=200, chars=4000, author=None, points=True, unseen=False)",
        "what was said and advised about it, by time: {date, text, points, chunk_id}",
        "For summaries and for the order of things. query is a text, or a list of up to 20 texts; the best "
        "turns that share a word with one are listed, for each text in turn (for a text with a "
        "name, first turns with the name, then those whose reply "
        "has it, then only those with a rare word of it; a turn has the name of its speaker, but other turns follow, "
        "too; follow-ups on earlier turns come last). chars (500–20,000) limits all rows as printed; without query "
        "the most informative turns of the first 3,000 chunks of the period. Those that match nearly alike are "
        "spread over the days; a remark below the output says how many there are. Of a chat with an assistant these "
        "are the user's turns, of other text all, or those of author. text is the turn or its informative clauses "
        "without the most "
        "common words, at most 120 "
        "characters (250 if it has a name of the query or, if that has none, matches it well) and 40 of figures and "
        "names that these leave out, what no other row tells first, and after > up to two short questions "
        "that continue a conversation without other turns; points are headings of the replies, or of a note, the first "
        "that tell something (not “Full Code”), at most 75 characters, or 25 for a turn that matches less than "
        "half as well as the best (50 without a query), not in an earlier row, "
        "except those that begin with a time or occur on three or more days or conversations; points=False has "
        "none, and more rows; score is the match of a turn, 1 for the best; rows also have speaker, at and "
        "conversation_id. Turns of one day "
        "keep the order in which they were stored. unseen as in turns. limit is 1–500.",
        'print_rows(outline(["garden plans", "seeds"]))',
        first=True,
        short="outline(TEXTS=None, chars=4000)",
    ),
    Page(
        "instructions",
        "instructions(limit=50)",
        "standing wishes of the user: {date, text, chunk_id}",
        "Sentences such as 'Always … when …', 'never …', 'please remember to …', 'from now on …', found "
        "by rules (English, German, French, Spanish, Italian, Portuguese); rule is the words that matched. "
        "Text of an assistant, of pages and of tools is left out; text of a user in an "
        "imported chat comes last, marked as untrusted. A repeated wish is listed once. "
        "limit is 1–200.",
        'for wish in instructions():\n    print(wish["date"], wish["text"])',
        first=True,
        short="instructions()",
        rebindable=True,
    ),
    Page(
        "preferences",
        "preferences(author=None, limit=50)",
        "standing wishes, likes, dislikes and habits of a person, newest first: {date, text, kind, chunk_id}",
        "Sentences in which a person, by default the user or, without an assistant, anybody, states one, and notes "
        "without speakers about the author, found by rules (English; standing wishes as in instructions). kind is "
        "preference, habit or instruction, match the clause that states it. Text of an assistant, of pages and of "
        "tools is left out; text of a user in an imported chat comes last, marked as untrusted. A repeated sentence "
        "is listed once. limit is 1–200.",
        'print_rows(preferences("Ana"))',
        kind="likes, habits",
        rebindable=True,
    ),
    Page(
        "updates",
        "updates(subject, limit=10)",
        "candidates for what changed about it: {newer, older, shared, why}",
        "Pairs of statements that share words and give different values (numbers of the same unit, dates, names), or "
        "of which the newer one states a change; those with different counts of a thing in the subject first, then the "
        "newest. newer and older have date, at, "
        "speaker, text, chunk_id, match (its number); shared is the words they share; why is the difference. "
        "Candidates by rules: read them and decide. A replaced chunk is paired with its successor. limit is 1–50.",
        'for pair in updates("deadline of the report"):\n    print(pair["older"]["text"], "->", '
        'pair["newer"]["text"])',
        first=True,
        short="updates(subject)",
        rebindable=True,
    ),
    Page(
        "contradictions",
        "contradictions(subject, limit=10)",
        "the same for statements that deny each other",
        "As updates, for pairs of which one denies what the other says (first “I've never …” or “I haven't …” with up "
        "to five statements that have its verb and a rare word of it), and for chunks linked with "
        "'contradicts'. Candidates by rules: read them and decide. limit is 1–50.",
        'for pair in contradictions("Flask routes"):\n    print(pair["older"]["text"], "|", '
        'pair["newer"]["text"])',
        first=True,
        short="contradictions(subject)",
        rebindable=True,
    ),
    Page(
        "timeline",
        "timeline(start=None, end=None, limit=50, offset=0)",
        "chunks in order of time: {chunk_id, date, speaker, content, type, tags}",
        "An item has chunk_id, id, date, at (when it happened, else was written), speaker (the first in "
        "the chunk), speakers, content (cut after 2,000 characters, marked …), type, tags, tokens, "
        "confidence, conversation_id, superseded_by, valid_to. Dates as in turns. limit is 1–500.",
        'for item in timeline("2026-05-01", "2026-05-31"):\n    print(item["date"], item["content"][:200])',
        rebindable=True,
    ),
    Page(
        "dates",
        "dates(expression, at=None, until=None)",
        "{start, end} of 'two weeks ago' at a date; {days, weeks, months} until another",
        "start and end are the first and the last day, both included; text is the part that was "
        "understood, precision is day, week, month, season, year or span. at is a date or time, for "
        "example the at of a hit; None is today. With until, a date in words too: the distance "
        "between the first days of the two, in whole days, weeks, months and years. None if no date is understood. "
        "English words; numeric dates in any language.",
        'dates("two weeks ago", "2026-05-20")["start"]\ndates("3 March 2026", until="15 April 2026")["days"]',
        first=True,
        rebindable=True,
    ),
    Page(
        "read_chunk",
        "read_chunk(chunk_id)",
        "{id, content, links, metadata} or None",
        "The chunk as a dict: id, content, type, tags, tokens, created_at, occurred_at, conversation_id, "
        "confidence, tier, reliability, links (at most 50), metadata (superseded_by, valid_to, source, "
        "…). content is cut after 200,000 characters; content_truncated is then the whole length. None "
        "for an unknown or malformed id. A long reply continues in further chunks: turns(chunks=ID, whole=True) has "
        "all of it, and a remark below the output says so.",
        'chunk = read_chunk("CHUNK_ID")\nprint(chunk["occurred_at"], chunk["content"])',
        first=True,
    ),
    Page(
        "neighbors",
        "neighbors(chunk_id, before=1, after=1, chars=None)",
        "{before, after}: lists of chunks of its conversation",
        "Chunks as read_chunk returns them, in the order of the conversation; at most 20 each way. With chars "
        "(20–2,000) only chunk_id, date, speaker and text, cut after so many characters.",
        'for near in neighbors("CHUNK_ID")["after"]:\n    print(near["content"])',
        kind="{before, after}",
        rebindable=True,
    ),
    Page(
        "all_chunks",
        "all_chunks(limit=50, offset=0)",
        "every chunk in order of time, a page at a time",
        "Chunks as read_chunk returns them. limit is 1–200; an empty list is the end. Use a smaller limit if "
        "chunks are large.",
        "offset = 0\nwhile page_of_chunks := all_chunks(limit=100, offset=offset):\n"
        '    offset += len(page_of_chunks)\n    print(sum("tea" in c["content"] for c in page_of_chunks))',
        rebindable=True,
    ),
    Page(
        "search_chunks",
        "search_chunks(query, limit=10)",
        "ids of the chunks that contain a word of the query, best first",
        "In any form of the word; names of speakers count. limit is 1–100.",
        'search_chunks("green tea")',
    ),
    Page(
        "list_chunks_by_tag",
        "list_chunks_by_tag(tag)",
        "ids of the chunks with a tag",
        "For a list, with all of the tags. At most 2,000.",
        'list_chunks_by_tag("travel")',
    ),
    Page(
        "get_linked_chunks",
        "get_linked_chunks(chunk_id, link_type=None)",
        "chunks linked to or from it, each with _link_type, _link_strength, _link_direction",
        "Chunks as read_chunk returns them, with _link_reasoning too; link_type is for example 'supports', "
        "'contradicts', 'follows'. At most 50.",
        'for other in get_linked_chunks("CHUNK_ID", "contradicts"):\n    print(other["content"])',
    ),
    Page(
        "stats",
        "stats()",
        "counts, speakers, tags and time span of the memory",
        "A dict: chunk_count, conversations, speakers, by_type, first_at, last_at and more.",
        "print(stats())",
        rebindable=True,
    ),
    Page(
        "print_rows",
        "print_rows(rows, chars=None)",
        "prints results as numbered lines; cite them by chunk_ids=[rows[3]]",
        "rows is what a function returned, or a part of it. A line is [index], the speaker where there are several, "
        "and the text on one line, cut between sentences, or else words, after chars characters (20–4,000; by default "
        "100 to 300, so that all texts together have 2,400 if possible); of a longer text with matches of grep or "
        "turns, the sentences that have them and some beside these or, without room for whole ones, the text around "
        "each and the sentence's start (not in a long list); in a short list (+2) is the number of those without room; "
        "for a pair of updates or contradictions both, each in full once. "
        "The date is above the rows when it changes; equal lines come once, counted. An agent that drives the "
        "session itself gets only the beginning of a row that it has seen, marked (above). "
        "Points follow the text; whole turns (whole=True) are printed with the whole reply.",
        'rows = turns(author="Ana", limit=200)\nprint_rows(rows, 90)',
        first=True,
        short="print_rows(rows)",
        by="session",
    ),
    Page(
        "page",
        "page(number=2)",
        "the next page of long output",
        "Longer output is shown a page at a time: page(2) is the next page, as "
        "text to print. It refers to the newest output that was too long, of which the first 400,000 "
        "characters are kept.",
        "print(page(2))",
        first=True,
        short="page(2)",
        by="session",
        rebindable=True,
    ),
    Page(
        "help",
        "help(name=None)",
        "more about a function",
        "Without a name: one line for each function of this session.",
        'help("turns")',
        by="session",
        rebindable=True,
    ),
    Page(
        "llm_query",
        "llm_query(prompt, context=None)",
        "the answer of a model to your prompt",
        "context is data, shown apart from the prompt. At most 400,000 characters.",
        'llm_query("Which of these are about music?", {"lines": lines})',
        first=True,
        by="model",
    ),
    Page(
        "llm_query_batched",
        "llm_query_batched(prompts)",
        "answers in order",
        "8 at a time, at most 200 prompts; a failed one is text that begins with `ERROR:`.",
        'llm_query_batched(["Summarise: " + text for text in texts])',
        first=True,
        by="model",
    ),
    Page(
        "rlm_query",
        "rlm_query(question)",
        "{answer, chunk_ids, confidence} of a sub-question",
        "It spends from the same budget.",
        'rlm_query("Where does Ana work?")["answer"]',
        first=True,
        by="model",
    ),
    Page(
        "rlm_query_batched",
        "rlm_query_batched(questions)",
        "the same for several, at once",
        "At most 20, in order; a repeated question is answered once. They share the budget.",
        'for found in rlm_query_batched(["Where does Ana work?", "Where does Ben work?"]):\n    print(found["answer"])',
        first=True,
        by="model",
    ),
    Page(
        "FINAL",
        "FINAL(answer, chunk_ids=None, confidence=None, suggestion=None)",
        "ends the session",
        "FINAL(None) means that the memory has no answer. answer is plain data of bounded "
        "size, chunk_ids are ids of chunks that were shown or read in this session, confidence is from 0 to "
        "1; anything else is a ValueError in the program, which may continue. A hit, passage, turn or "
        "chunk as the answer is replaced by its text and cited. FINAL(None, chunk_ids=..., suggestion=TEXT) returns "
        "the closest chunks and a guess. A top-level `return FINAL(x)` is accepted.",
        'FINAL("ANSWER IN A FEW WORDS", chunk_ids=["CHUNK_ID"], confidence=0.9)',
        first=True,
        short="FINAL(answer, chunk_ids=[...], confidence=0.8)",
        by="session",
    ),
)

PAGES = {page.name: page for page in _PAGES}
"""Every function of the sandbox, by name, in display order."""


def help_text(
    name: str | None, available: Collection[str], others: Iterable[tuple[str, str]] = ()
) -> str | None:
    """Return the text that ``help`` prints; None if the session has no function of this name.

    Args:
        name: a function, or None for all.
        available: names of the session's functions.
        others: further functions of the session, each with its description.
    """
    described = dict(others)
    if name is None:
        lines = [f"{page.signature}\n    {page.gives}" for page in _PAGES if page.name in available]
        return "\n".join([*lines, *described.values(), 'help("NAME") shows details and an example.'])
    if name in described:
        return described[name]
    if name not in PAGES or name not in available:
        return None
    page = PAGES[name]
    return f"{page.signature}\n    {page.gives}\n{page.details}\nExample:\n{page.example}"
