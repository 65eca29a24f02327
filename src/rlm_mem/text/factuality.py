"""Classifies whether a sentence states a lasting fact, or a guess, hearsay, denial, draft, trial or story.

Also detects limited and earlier times. English, with words for these in German, Spanish and French, and for guesses in
Chinese.
"""

from __future__ import annotations

import re
from collections.abc import Set
from typing import TYPE_CHECKING

from rlm_mem.text.clauses import (
    CHANGES,
    DETERMINERS,
    ENDS,
    NUMBERS,
    PASTS,
    POSSESSIVES,
    PREPOSITIONS,
    REPLACES,
    UNSURE,
    words,
)
from rlm_mem.text.patterns import late
from rlm_mem.text.present import ROLES, WORD, is_german

if TYPE_CHECKING:
    from rlm_mem.text.analysis import Analyser

_DAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"

_TEMPORARY = late(
    r"^\W*while (?!\w{1,20}ing\b|at\b|i\b|we\b|there\b)|\bwhile\b[^,.;]{1,60}\b(?:is|are|was|were)\b|\bduring\b"
    r"|\b(?:un)?till? then\b|\btemporar"
    r"|\bfor (?:the time being|now|the duration)\b|\bstand(?:s|ing)? in\b|\bfill(?:s|ing) in\b"
    r"|\bexceptionally\b|\bon the (?:last )?day (?:of|before)\b|^\W*last night\b"
    r"|\bthis time\b|^\W*this (?:week|weekend)\b(?!'s|’s)"
    r"|(?<!not )\b(?:only|just) (?:this|today|tonight|tomorrow|for (?:the|this|that|one|now|today))\b"
    rf"|\b(?:this|that) (?:[a-z]{{3,9}}|{_DAY}) only\b"
    r"|\b(?:one|two|three|four|five|\d{1,2}) (?:morning|afternoon|evening|night|day|week|weekend)s? only\b",
    re.IGNORECASE,
    signs="while|during|till then|til then|temporar|for the |for now|stand in|stands in|standing in|fills in"
    "|filling in|exceptionally|on the day|on the last day|last |this time|this week|only|just this|just to"
    "|just for",
)
"""A sentence about a limited time, after which the former value is in force again."""
_WHEN_CHANGED = late(
    r"\bwhile\b[^,.;]{1,60}\b(?:was|were) \w{2,20}ing\b"
    rf"(?=[^.;]{{0,60}}\b(?:{'|'.join(sorted(CHANGES | REPLACES))})\b)",
    re.IGNORECASE,
    signs="while",
)
"""A clause that dates a change: "while the varnish was drying I swapped the belt"."""
_TEMPORARY_ABROAD = late(
    r"\b(?:vorübergehend|ausnahmsweise|vorläufig|einstweilen|einmalig|solange|nur (?:heute|morgen|diese\w?)"
    r"|provisional(?:mente)?|temporalmente|excepcionalmente|de momento|por ahora|mientras"
    r"|s[oó]lo (?:por )?(?:hoy|est[ae])"
    r"|provisoire(?:ment)?|temporairement|exceptionnellement|pour l['’]instant|pour le moment|tant que"
    r"|temporaneamente|provvisoriamente|eccezionalmente|per (?:ora|adesso|il momento)|finché"
    r"|sol[oa] (?:per )?(?:oggi|quest)"
    r"|tymczasowo|wyjątkowo|na razie|chwilowo|dopóki|tylko (?:dziś|dzisiaj|jutro|ten|w tym)"
    r"|(?:seulement|juste) (?:aujourd['’]hui|cette))\b"
    r"|\b(?:für|durante|por|pendant|pour|per|przez) "
    r"(?:(?:eine?n?|zwei|drei|un|une|una|uno|dos|tres|deux|trois|due|tre|dwa|dwie|trzy|\d{1,2}) )?"
    r"(?:stunden?|tage?|wochen?|horas?|días?|semanas?|heures?|jours?|semaines?|giorn[oi]|settiman[ae]|dni|tydzień|tygodnie)\b"
    r"|\b(?:zwei|drei|vier|\d{1,2}) (?:stunden|tage|wochen) lang\b",
    re.IGNORECASE,
    signs="vorübergehend|ausnahmsweise|vorläufig|einstweilen|einmalig|solange|nur |provisional|temporalmente"
    "|excepcionalmente|de momento|por |mientras|solo |sólo |provisoire|temporairement|exceptionnellement"
    "|pour |tant que|seulement |juste |für |durante |pendant | lang|temporane|provvisoria|eccezional|per |finché|sola "
    "|tymczasowo|wyjątkowo|na razie|chwilowo|dopóki|tylko |przez ",
)
"""The same in German, Spanish, French, Italian and Polish."""
_FOR_A_WHILE = late(
    r"\bfor (?:(?:a|an|one|two|three|four|five|six|that|this|just|only|the|several|\d{1,3}) ){1,2}"
    r"(minute|hour|morning|afternoon|evening|day|night|week|weekend|match|game|lesson|session|meeting)s?\b",
    re.IGNORECASE,
    signs="for ",
)
_HAS_BEEN = late(r"\b(?:been|running|in a row)\b", re.IGNORECASE, signs="been|running|in a row")
"""Words with which a duration is not a limit: "has been at nine for a week"."""
_TRIED = late(
    r"\b(?:in|on|for|to|at|with) (?:the |our |my |an? )?(?:\w{1,20}[ -])?"
    r"(?P<place>staging|demo|sandbox|tests?|preview|beta|trial|pilot|canary|simulat(?:ion|or)|mock|branch|fork|rehearsal)\b",
    re.IGNORECASE,
    signs="staging|demo|sandbox|test|preview|beta|trial|pilot|canary|simulat|mock|branch|fork|rehearsal",
)
"""Places and stages where something is only tried out."""
_TRIED_ABROAD = late(
    r"\b(?:im|auf dem|auf der|in der|en|dans (?:le|la|l['’])|à la|nel|nella|nell['’]|w|na) ?(?:\w{1,20} )?"
    r"(?P<place>test(?:system|umgebung|betrieb|server|instanz)|probebetrieb|vorschau|préprod(?:uction)?|recette"
    r"|preproducción|entorno de pruebas|environnement de tests?|ambiente di (?:test|prova)|preproduzione"
    r"|środowisku testowym|serwerze testowym)\b",
    re.IGNORECASE,
    signs="test|probebetrieb|vorschau|préprod|recette|preprod|pruebas|ambiente",
)
_TOLD = late(
    r"\bin (?:the|an?|my|his|her|our|their|this|that|some) (?:\w{1,20}[ -]){0,3}?"
    r"(?P<place>sketch|play|novel|film|movie|stor(?:y|ies)|tale|skit|musical|comic|cartoon|sitcom|nightmare|dream)\b"
    r"|\b(?:im|in (?:der|einem|einer)|en (?:el|la|un|una)|dans (?:le|la|un|une)) (?:\w{1,20} )?"
    r"(?P<there>roman|märchen|geschichte|theaterstück|traum|novela|cuento|película|sueño|conte|pièce|rêve)\b",
    re.IGNORECASE,
    signs="sketch|play|novel|film|movie|stor|tale|skit|musical|comic|cartoon|sitcom|nightmare|dream|roman"
    "|märchen|geschichte|theaterstück|traum|cuento|película|sueño|conte|pièce|rêve",
)
"""Words for works of fiction."""
_IN_IT = late(r"\W*in (?:it|this one|that one)\b", re.IGNORECASE)
_FICTION = late(
    r"\b(?P<place>sketch|play|novel|film|movie|story|tale|skit|musical|comic|cartoon|sitcom|nightmare|dream)\b",
    re.IGNORECASE,
)
"""Works in the previous sentence to which "In it" may refer."""
_NOT_IN_FORCE = late(
    r"\((?:rejected|declined|withdrawn|not adopted)\)|\b(?:draft(?! (?:19|20)\d\d)|not adopted|april fools?)\b"
    r"|\b(?:proposal|motion|referendum|rfc|bill|vote)\b[^.]{0,120}\b(?:rejected|failed|declined|withdrawn|tabled)\b",
    re.IGNORECASE,
    signs="rejected|declined|withdrawn|not adopted|draft|april fool|failed|tabled",
)
UNDONE = r"(?:rolled (?:it |that |them )?back|reverted|undid|undone)"
"""A pattern for words of an undone change, to be used between word boundaries."""
_TAKEN_BACK = late(rf"\b{UNDONE}\b", re.IGNORECASE, signs="rolled|reverted|undid|undone")
_STATED = late(r"\b(?:to|at|is|are|was|were|by)\b", re.IGNORECASE)
_CLAUSE = late(r"[,:;.!?()–—]\s|\s(?:so|and|but|because|as|since|which|who|where|that|until|und|y|et)\s")
_WORD = late(r"[^\W_]+(?:['’./-][^\W_]+)*")
_WAS = words(
    "was were had wasn't weren't hadn't war waren hatte hatten era eran estaba estaban tenía tenían tuvo hubo fue "
    "fueron était étaient avait avaient erano aveva avevano fu furono był była było były miał miała miało miały"
)
_LAST = words("war waren hatte hatten")
"""Those that end a German subordinate clause: "als der Laden noch am Markt war"."""
_BESIDE_PARTICIPLE = words(
    "is are was were be been being has have had get gets got isn't aren't wasn't i've we've"
)
_OPENS_VALUE = DETERMINERS | POSSESSIVES | PREPOSITIONS | NUMBERS
"""Words that begin a value after "was" and "had", unlike "was too small"."""
_NO_VERB_AFTER = DETERMINERS | POSSESSIVES | PREPOSITIONS
_NEAR = 800
"""Number of leading characters searched for a change and its reversal."""
_DOUBTED = (
    UNSURE
    | words(
        "might previous previously formerly originally ago also additionally besides "
        "begs begged demands demanded dreams"
    )
) - words(
    "will shall how who which whose when until unless why need needed decide decided going asked ask asks i'll we'll "
    "he'll she'll they'll 'll thinking think try tries trying tried heard story novel example claims claimed discuss "
    "discussed discussing almost nearly won't plan plans planned planning"
)
"""Words of a sentence about a wish, a guess, another time, or an additional thing."""
_PLANNED = late(
    r"\b(?:i|we|they|he|she) plan(?:s|ned)?\b|\bplan(?:s|ned)? (?:is )?to\b|\bplanned for\b|\bplanning to\b"
    r"|\bbefore last\b|\bproposal to\b|\bwhen (?:i|he|she|we|they) (?:was|were)\b|^\W*tried\b"
    r"|\b(?:someone|somebody) claims?\b"
    r"|\b(?:was|were) (?:meant |supposed |due )?to (?!the\b|an?\b|my\b|our\b|his\b|her\b|their\b)(?=[a-z])"
    r"|\bonce\b(?! (?:a|an|per|every|in)\b)|\bas well\b|\btoo(?:[.,;!)]|$)",
    re.IGNORECASE,
    signs="i plan|e plan|y plan|plan to|plans to|planned to|plan is to|plans is to|planned is to|planned for"
    "|planning to|before last|proposal to|when |tried|claim|was to|were to|meant to|supposed to|due to|once"
    "|as well|too",
)
_ONE_DAY = late(
    r"(?<!from )(?<!as of )(?<!since )(?<!started )(?<!starting )(?<!beginning )"
    r"\b(?:today|tonight|tomorrow|this (?:mon|tues|wednes|thurs|fri|satur|sun)day"
    rf"|last (?:year|month|week|season|spring|summer|autumn|winter|time|{_DAY})|the other day)\b",
    re.IGNORECASE,
    signs="today|tonight|tomorrow|this mon|this tue|this wed|this thu|this fri|this sat|this sun|last |other day",
)
"""A sentence about one day, unless it has a word of change: "bumped to 3.12 today"."""
_YEAR = late(
    r"\b(?:19|20)\d\d\b(?![./-]\d)"
    r"(?! ?(?:[%°€$£]|[kMGTcmµ]?(?:[hsglmtWVAJNB]|Hz|Pa|Wh|min|bar|rpm|px|EUR|USD))(?!\w))"
)
"""A year, not a figure with a unit: "2000 h"."""
QUOTES = '"“”„«»'
"""Opening quotation marks."""
_QUOTED = late(
    r"[\"“„«]([^\"“”„«»]{12,400})[\"”“»]",
    signs='"|“|„|«',
)
_DOUBTED_ABROAD = late(
    r"\b(?:vielleicht|könnten?|würden?|falls|wenn|quizás?|tal vez|podrían?|si|angeblich|hieß es|se dice"
    r"|dicen? (?:(?:que|el|la)|(?:\w{1,20} ){1,3}que)|on dit|il paraît|il est question"
    r"|croi(?:t|ent) savoir|serai(?:en)?t"
    r"|sei|solle[nt]?|wären?|hätten?|ojalá|forse|potrebb(?:e|ero)|si dice"
    r"|dicono|pare che|sembra che|może|podobno|ponoć|jeśli|gdyby"
    r"|(?:wir|ich|sie|er) (?:wollen|will|möchten?|überlegen|überlegt|erwäg\w{1,5}|planen?|plant)"
    r"|(?:on|nous|il|elle|je) (?:envisage|veut|voulons|songe|songeons|prévoit|prévoyons|pensons)"
    r"|(?:queremos|quiere|quieren|pensamos|planea(?:mos|n)?|se estudia|prevé(?:n)?)"
    r"|(?:vogliamo|vuole|vogliono|pensiamo di|prevede di|prevediamo|intende"
    r"|chcemy|chce|chcą|planujemy|planuje|zamierza\w{0,3}))\b|可能|听说|如果|也许|或许|吗"
    r"|的(?:弟弟|哥哥|妹妹|姐姐|妈妈|爸爸|儿子|女儿|朋友|同事|邻居)",
    re.IGNORECASE,
    signs="vielleicht|könnte|würde|falls|wenn|quizá|quiza|tal vez|podría|si|angeblich|hieß es|dice|on dit"
    "|il para|il est question|croi|serai|sei"
    "|solle|wäre|hätte|ojal|forse|potrebb|dicono|pare che|sembra|estudia|może|podobno|ponoć|jeśli|gdyby"
    "|wir |ich |sie |er |on |nous |il |elle |je |quer|quiere|pensa|planea|prev|vogli|vuole|pensia|intend|chce|chcą"
    "|planuj|zamierza|可能|听说|如果|也许|或许|吗|的",
)
"""Words of guesses and hearsay; for Chinese, also of relatives."""
_DENIED_ABROAD = late(
    r"\bn['’](?:a|ai|ont|avons|est|était) (?:pas|jamais) \w{2,20}[éisu]e?s?\b"
    r"|\bno (?:se )?(?:ha|han|hemos) \w{2,20}[ai]do\b"
    r"|\b(?:hat|haben|ist|sind|wurden?) (?:[\w.]{1,20} ){0,5}nicht (?!mehr)\w{2,20}(?:t|en)\b"
    r"|\bnon (?:si )?(?:è|ha|hanno|abbiamo) (?:ancora |mai )?(?:stat[oaie] )?\w{2,20}[aiu]t[oaie]\b"
    r"|\bnie (?:został|zmieni|przenie)\w{0,8}\b",
    re.IGNORECASE,
    signs="pas |jamais |no ha|no he|no se ha|no se he|nicht |non |nie ",
)
"""Words for things not done, in French, Spanish, German, Italian and Polish."""
_REFUSED = late(
    r"\b(?:(?:wouldn|couldn)['’]t|want(?:s|ed))\b(?=[^.!?;]{1,200}?\b(?:so|thus|hence|therefore)\b)",
    re.IGNORECASE,
    signs="n't|n’t|want",
)
"""A refusal or wish with its consequence, which is a fact."""
_NO_DOUBT = late(
    r"\b(?:minutes?|hours?|days?|weeks?|a month) ago\b|\bmay (?=(?:he|she|it|they|you|god)\b)",
    re.IGNORECASE,
    signs=" ago|may ",
)
"""A recent time, which is not before the earlier note, and blessings: "may she enjoy it"."""
_WISHES = words("want wants wish wishes hope hopes")
_CONDITIONS = words("if whether unless would wouldn't could might")
"""Words that express doubt in any clause of a sentence."""
_DENIED = late(
    r"\b(?:isn['’]t|is not|not) true\b|\b(?:did|has|have|was|were)(?:n['’]t| not) (?:\w{1,20} )?"
    rf"(?:{'|'.join(sorted(CHANGES | REPLACES | ENDS))}"
    r"|become|been (?:changed|moved)|change|move|switch|swap|extend|raise)\b"
    r"|\badded\b(?![^.]{0,120}\b(?:makes?|puts?|brings?|takes?)\b)"
    r"|\ba (?:second|third|further)\b(?=\s+[a-z])(?!\s+(?:of|and|or|\w{1,20}er)\b)",
    re.IGNORECASE,
    signs="n't|n’t| not |not true|added|a second|a third|a further",
)
"""A change that did not happen, or a thing in addition to the first."""
_HEARSAY = late(
    r"^\W*(?:an?|some|somebody|someone|people|everybody|everyone|half|they)\s(?:[\w'’-]{1,30}\s){0,4}?"
    r"(?:said|says?|wrote|writes?|claim(?:s|ed)?|tells?|told|thinks?|thought|reckon(?:s|ed)?|believe[sd]?|insist(?:s|ed)?"
    r"|swears?|swore|guess(?:es|ed)?)\b"
    r"|^\W*(?:rumou?r|gossip|word|legend|talk) has it\b"
    r"|^\W*there(?:['’]s| is| are) (?:an? |some )?(?:rumou?rs?|talk|gossip)\b"
    r"|^\W*(?:overheard|angeblich|man munkelt|es heißt,|se rumorea|corre el rumor|le bruit court|on raconte que"
    r"|corre voce|si mormora|podobno|ponoć)\b",
    re.IGNORECASE,
    signs="has it|rumour|rumor|talk|gossip|overheard|angeblich|munkelt|es heißt|le bruit|on raconte|corre voce"
    "|si mormora|podobno|ponoć|said|say|wrote|write|claim|tell|told|think|thought|reckon|believe|insist|swear|swore"
    "|guess",
)
"""Hearsay: a verb of saying without a particular speaker, or a rumour."""


def is_temporary(sentence: str, known: str) -> bool:
    """Whether a sentence is limited to a time that neither the question nor the earlier note mentions."""
    low = known.lower()
    lasting = _HAS_BEEN.search(sentence)
    found = None if lasting else _FOR_A_WHILE.search(sentence)
    if found is not None and found[1].lower() not in low:  # otherwise the duration is the value
        return True
    found = _TEMPORARY.search(_WHEN_CHANGED.sub("", sentence)) or _TEMPORARY_ABROAD.search(sentence)
    return found is not None and found.group().lower() not in low


def is_elsewhere(sentence: str, known: str, before: str = "") -> bool:
    """Whether a sentence is about a trial or story that neither the question nor the earlier note mentions.

    Args:
        before: the preceding text, which names the story if the sentence begins with "In it".
    """
    low = known.lower()
    matches = [pattern.search(sentence) for pattern in (_TRIED, _TRIED_ABROAD, _TOLD)]
    if before and _IN_IT.match(sentence):
        matches.append(_FICTION.search(before))
    return any(found is not None and str(found[found.lastgroup or 0]).lower() not in low for found in matches)


def is_past(sentence: str, asked: Set[str], known: str, value: Set[str], analyser: Analyser) -> bool:
    """Whether a sentence states in the past tense what question and earlier note have in the present.

    "Our band practised in a garage", beside "The band practises in Hall B". A clause with the earlier note's value
    does not count, since it states that the former value has ended.

    Args:
        asked: the question's stems.
        known: the question and the earlier note.
        value: stems of the earlier note that are not in the question.
    """
    known_words = _WORD.findall(known.lower())
    if not {"was", "were", "did"}.isdisjoint(known_words):
        return False
    present = {
        stem
        for word in known_words
        if not word.endswith("ed") and word not in PASTS
        for stem in analyser.terms(word)
    }
    for clause in _CLAUSE.split(sentence):
        found = _WORD.findall(clause.lower().replace("’", "'"))
        stems = set(analyser.terms(clause))
        if asked.isdisjoint(stems) or not value.isdisjoint(stems):
            continue
        for place, word in enumerate(found):
            if word in _WAS:
                after = found[place + 1 : place + 3]
                if after and not (after[0] in _OPENS_VALUE or after[0][0].isdigit()):
                    continue
                if not after and word not in _LAST:
                    continue
                if not any(one.endswith("ed") or one in PASTS for one in after) and 2 * len(
                    asked & stems
                ) > len(asked):
                    return True
            elif (
                (word.endswith("ed") or word in PASTS)
                and not present.isdisjoint(analyser.terms(word))
                and place
                and found[place - 1] not in _NO_VERB_AFTER
                and _BESIDE_PARTICIPLE.isdisjoint(found[max(0, place - 2) : place])
            ):
                return True
    return False


def is_in_force(sentence: str, known: str) -> bool:
    """Whether a sentence mentions no draft or rejected proposal, apart from one that ``known`` mentions."""
    found = _NOT_IN_FORCE.search(sentence)
    return found is None or found.group().lower() in known.lower()


def is_taken_back(text: str) -> bool:
    """Whether a text states a change and then its reversal: "raised to 12g, reverted to 4g"."""
    stated = _STATED.search(text[:_NEAR])
    return stated is not None and _TAKEN_BACK.search(text[stated.end() : _NEAR]) is not None


def is_denied(sentence: str, asked: str, year: int) -> bool:
    """Whether a sentence denies a change, or is about a draft, an additional thing, hearsay or an earlier year.

    Args:
        year: the year of the earlier note.
    """
    sentence = _NO_DOUBT.sub("", _REFUSED.sub("", sentence))
    return (
        not is_in_force(sentence, asked)
        or _DENIED.search(sentence) is not None
        or _HEARSAY.match(sentence) is not None
        or _DENIED_ABROAD.search(sentence) is not None
        or any(int(one) < year for one in _YEAR.findall(sentence))
    )


def is_doubted(sentence: str, asked: str, *, tells_of_change: bool, main_part: str) -> bool:
    """Whether a sentence may be about a wish, a plan or one day, or report another person's words.

    Args:
        asked: the question, whose words ("if we lose each other") do not express doubt.
        tells_of_change: whether the sentence has a word of change, so that a day in it dates the change.
        main_part: the sentence up to the end of the relevant clause; wishes and reports after it are ignored.
    """
    sentence = _NO_DOUBT.sub("", _REFUSED.sub("", sentence))
    main_part = _NO_DOUBT.sub("", _REFUSED.sub("", main_part))
    lows = _lows(main_part) | (_lows(sentence) & _CONDITIONS)
    if is_german(asked):
        lows.discard("also")  # "so"
    known = set(WORD.findall(asked.lower()))
    known = known if _WISHES.isdisjoint(known) else known | _WISHES  # a wish answers a question about wishes
    quoted = _QUOTED.search(sentence)
    own = quoted is not None and sentence[: quoted.start()].strip(" :").lower() in ROLES
    return (
        not lows.isdisjoint(_DOUBTED - known)
        or sentence[:1] in QUOTES
        or (quoted is not None and not own and len(quoted[1].split()) > 3)
        or _PLANNED.search(main_part) is not None
        or _DOUBTED_ABROAD.search(main_part) is not None
        or (_ONE_DAY.search(sentence) is not None and not tells_of_change and sentence.rstrip()[-1:] != ":")
    )


def _lows(text: str) -> set[str]:
    """The lower-cased words of a text, without "May" as a month."""
    return {word.lower().replace("’", "'") for word in WORD.findall(text) if word != "May"}
