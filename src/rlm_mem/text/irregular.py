"""Irregular English forms and close derivations, mapped to the form that is passed to the stemmer.

Snowball strips regular endings but does not relate "bought" to "buy" or "children" to "child". Each entry is a base
followed by its forms. The table is worth 0.7 points of recall (docs/benchmarks/retrieval.md). Regular forms of a noun
or derivation ("lengths", "filmed") are mapped to its base, too.
"""

from __future__ import annotations

from functools import cache
from itertools import chain

_VERBS = """
arise arose arisen; awake awoke awoken; bear bore borne; beat beaten; begin began begun; bend bent; bet
betted; bite bit bitten; bleed bled; blow blew blown; break broke broken; breed bred; bring brought; build
built; burn burnt; buy bought; catch caught; choose chose chosen choice choices; cling clung; come coming;
creep crept; deal dealt; dig dug; dive dove; draw drew drawn; dream dreamt; drink drank drunk; drive drove
driven; eat ate eaten; fall fell fallen; feed fed; feel felt; fight fought; find found; flee fled; fly flew
flown flight flights; forbid forbade forbidden; forget forgot forgotten; forgive forgave forgiven; freeze
froze frozen; grow grew grown growth; hang hung; hear heard; hide hid hidden; hold held; keep kept; kneel
knelt; knit knitted; lay laid; lead led; lean leant; leap leapt; learn learnt; leave left; lend lent; light
lit; lose lost; mean meant; meet met; mistake mistook mistaken; pay paid; prove proven; quit quitted; ride
rode ridden; ring rang rung; rise rose risen; run ran; see saw seen; seek sought; sell sold; send sent; sew
sewn; shake shook shaken; shine shone; shoot shot; show shown; shrink shrank shrunk; sing sang sung; sink
sank sunk; sit sat; sleep slept; slide slid; smell smelt; speak spoke spoken speech speeches; speed sped;
spend spent; spill spilt; spin spun; spoil spoilt; spread spreading; spring sprang sprung; stand stood;
steal stole stolen; stick stuck; sting stung; strike struck stricken; strive strove; swear swore sworn;
sweep swept; swell swollen; swim swam swum; swing swung; take took taken; teach taught; tear tore torn; tell
told; think thought thoughts; throw threw thrown; understand understood; wake woke woken; wear wore worn;
weave wove woven; weep wept; win won; wind wound; withdraw withdrew withdrawn; write wrote written; overcome
overcame; undergo underwent undergone; rebuild rebuilt; retell retold; outgrow outgrew; foresee foresaw
"""

_NOUNS = """
child children; man men; woman women; person people persons; foot feet; tooth teeth; goose geese; mouse
mice; ox oxen; leaf leaves; life lives; wife wives; knife knives; wolf wolves; shelf shelves; half halves;
calf calves; thief thieves; loaf loaves; self selves; scarf scarves; hero heroes; potato potatoes; tomato
tomatoes; analysis analyses; crisis crises; thesis theses; basis bases; criterion criteria; phenomenon
phenomena; index indices indexes; matrix matrices; vertex vertices; appendix appendices; cactus cacti;
fungus fungi; curriculum curricula; medium media; datum data; family families; hobby hobbies; memory
memories
"""

_ADJECTIVES = (
    "good better best; bad worse worst; far farther further farthest furthest; happy happier happiest"
)

# Derivations across word classes that a stemmer does not merge; only pairs that mean the same event or quality.
_DERIVED = """
marry marriage marriages married wedding weddings; decide decision decisions; move relocation relocate
relocated; grief grieve grieving; believe belief beliefs; lose loss losses; die death deaths dead died
dying; birth born; choose chose; arrive arrival; propose proposal; succeed success successful; strong
strength strengths; long length; high height; deep depth; proud pride; free freedom; wise wisdom; true
truth; warm warmth; young youth; advise advice; prefer preference preferences favorite favourite
favorites favourites fave; perform performance performances; volunteer volunteering voluntary; gift gifted;
invite invitation; inspire inspiration inspirational; describe description; explain explanation; apply
application applications applicant; educate education educational; receive receipt; nature natural; music
musical musician musicians; art artistic artist artists artwork; photo photograph photographs photography
photographer photographic photos pic pics; athlete athletic athletics; science scientific scientist
scientists; hobby hobbyist; fit fitness; injure injury injuries injured; destroy destruction; produce
production; reduce reduction; introduce introduction; compete competition competitions competitive
competitor; create creation creative creativity; celebrate celebration celebrations; donate donation
donations; graduate graduation; meditate meditation; relax relaxation; motivate motivation; adopt adoption;
organize organise organization organisation; realize realise realization; recommend recommendation
recommendations; suggest suggestion suggestions; react reaction reactions; discuss discussion; connect
connection; collect collection collections; direct direction; attend attendance; assist assistance; allergy
allergic allergies; anxious anxiety; curious curiosity; energy energetic; emotion emotional; fear afraid;
color colour colors colours colorful colourful; neighbor neighbour neighborhood neighbourhood neighbors
neighbours; center centre; theater theatre; travel traveling travelling traveled travelled traveler; mom mum
mommy mother mothers moms mums; dad daddy father fathers dads; grandma grandmother granny nana; grandpa
grandfather granddad; bike bicycle bikes bicycles biking cycling; tv television; phone telephone cellphone
smartphone; fridge refrigerator; movie movies film films; kid kids; vet veterinarian; gym gymnasium; exam
exams examination; math maths mathematics; lab laboratory; ad advertisement advert; repo repository
repositories; config configuration configurations; doc docs documentation documentations; db database
databases; auth authentication; perf performance; env environment
"""


@cache
def irregular_forms() -> dict[str, str]:
    """All listed forms with their base (lower case); a form listed twice keeps its first base."""
    forms: dict[str, str] = {}
    for table in (_VERBS, _NOUNS, _ADJECTIVES, _DERIVED):
        for line in table.split(";"):
            words = line.split()
            for form in words[1:]:
                if form != words[0]:
                    forms.setdefault(form, words[0])
    for table in (_NOUNS, _DERIVED):  # after all listed forms; the past of a verb has no endings of its own
        for base, *others in map(str.split, table.split(";")):
            for inflected in chain.from_iterable(map(_inflected, others)):
                if inflected != base:
                    forms.setdefault(inflected, base)
    return forms


def _inflected(form: str) -> tuple[str, str, str]:
    """The regular plural, past and participle of a form, whether or not they exist."""
    if form.endswith("y") and form[-2] not in "aeiou":
        return f"{form[:-1]}ies", f"{form[:-1]}ied", f"{form}ing"
    if form.endswith("e"):
        return f"{form}s", f"{form}d", f"{form[:-1]}ing"
    plural = f"{form}es" if form.endswith(("s", "x", "z", "ch", "sh")) else f"{form}s"
    return plural, f"{form}ed", f"{form}ing"


def irregular_pasts() -> frozenset[str]:
    """Past forms of irregular verbs: "bought", "written"."""
    verbs, nouns = (line.split() for line in _VERBS.split(";")), frozenset(_DERIVED_NOUNS.split())
    return frozenset(form for verb in verbs for form in verb[1:] if form not in nouns)


_DERIVED_NOUNS = "choice choices flight flights growth speech speeches thoughts coming spreading"
