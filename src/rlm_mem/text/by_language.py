"""What the rules that compare notes look for, by language: words of change, time, doubt, denial, limits and people.

Each table has a row for a language; to add one, add its rows. English words that also have another use are defined by
:mod:`rlm_mem.text.clauses`. Of Chinese and Japanese, whose words are not separated, only patterns are found.
"""

from __future__ import annotations

import re

from rlm_mem.text.clauses import CHANGES, DAYS, ENDS, MONTHS, REPLACES, TRAVELLED
from rlm_mem.text.patterns import Expressions, late, signed, word_set


def words_of(**rows: str) -> frozenset[str]:
    """The words of all languages."""
    return frozenset(" ".join(rows.values()).split())


def pattern_of(**rows: str) -> re.Pattern[str]:
    """A pattern of what stands in any of the rows."""
    return signed("|".join(rows.values()))


# -- days and figures --------------------------------------------------------------------------------------------------

FOREIGN_DAYS = words_of(
    german="montag dienstag mittwoch donnerstag freitag samstag sonnabend sonntag",
    french="lundi mardi mercredi jeudi vendredi samedi dimanche",
    spanish="lunes martes miércoles jueves viernes sábado domingo",
    italian="lunedì martedì mercoledì giovedì venerdì sabato domenica",
    polish="poniedziałek poniedziałku poniedziałki wtorek wtorku wtorki środa środy środę czwartek czwartku czwartki "
    "piątek piątku piątki sobota soboty sobotę niedziela niedzieli niedzielę niedziele",
)
FOREIGN_MONTHS = words_of(
    german="januar februar märz mai juni juli oktober dezember",
    french="janvier février mars avril juin juillet août septembre octobre novembre décembre",
    spanish="enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    italian="gennaio febbraio aprile maggio giugno luglio settembre ottobre dicembre",
    polish="stycznia lutego kwietnia czerwca lipca sierpnia września października listopada grudnia",
)
"""Months that differ from English, without those that are names or words ("Maja", "marca")."""
FOREIGN_NUMBERS = words_of(
    german="zwei drei vier fünf sechs sieben acht neun zehn zwölf",
    french="deux trois quatre cinq huit neuf dix onze douze",
    spanish="dos tres cuatro cinco seis siete ocho nueve diez doce",
    italian="tre quattro cinque sette nove dieci undici dodici",
    polish="dwa dwie trzy cztery pięć sześć siedem osiem dziewięć dziesięć jedenaście dwanaście",
)
"""Numbers up to twelve, without words that mean something else in English or are a month ("due", "elf", "sept")."""
_CALENDAR = "|".join(sorted(FOREIGN_DAYS | FOREIGN_MONTHS))
DAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"

# -- changes -----------------------------------------------------------------------------------------------------------

ENDED = Expressions(
    ((CHANGES | ENDS | REPLACES) - TRAVELLED - word_set("given gave brought"))
    | words_of(
        english="longer anymore now nowadays history goodbye dismissed split broke finally finished complete completed",
        german="jetzt umgezogen verlegt gewechselt ersetzt abgelöst umgestellt umbenannt abgegeben übergeben "
        "übernommen verkauft gekündigt aufgegeben aufgehört ausgeschieden eingestellt abgeschafft "
        "wechselt ersetzt übernimmt verkauft verlässt",
        french="déménagé déplacé déplacée transféré transférée remplacé remplacée changé changée renommé renommée "
        "vendu vendue quitté quittée cédé cédée résilié résiliée abandonné abandonnée supprimé supprimée démissionné "
        "déménage remplace quitte cède vend abandonne démissionne",
        spanish="ahora mudado mudada mudó cambiado cambiada cambió trasladado trasladada trasladó sustituido "
        "sustituida sustituyó reemplazado reemplazada reemplazó vendido vendida vendió renunció jubilado jubilada "
        "jubiló cancelado cancelada abandonado abandonada cambia traslada sustituye reemplaza vende renuncia jubila "
        "deja cancela abandona "
        "mudé mudamos cambié cambiamos trasladé trasladamos sustituí sustituimos reemplacé reemplazamos vendí vendimos "
        "renuncié renunciamos jubilé cancelé cancelamos abandoné abandonamos",
        italian="adesso trasferito trasferita spostato spostata sostituito sostituita cambiato cambiata rinominato "
        "rinominata venduto venduta lasciato lasciata disdetto disdetta abbandonato abbandonata dimesso dimessa "
        "trasferisce sposta sostituisce cambia vende lascia abbandona",
        polish="teraz przeniesiony przeniesiona przeniesione przeniósł przeniosła przenieśliśmy zmieniony zmieniona "
        "zmienione zmienił zmieniła zmieniliśmy zastąpił zastąpiła zastąpiono przekazał przekazała przeprowadził "
        "przeprowadziła przejął przejęła sprzedał sprzedała zrezygnował zrezygnowała odszedł odeszła zlikwidowano "
        "przenosi zmienia zastępuje przekazuje przejmuje sprzedaje rezygnuje odchodzi "
        "przeniosłem przeniosłam zmieniłem zmieniłam przekazałem przekazałam przejąłem przejęłam sprzedałem sprzedałam "
        "sprzedaliśmy zrezygnowałem zrezygnowałam zrezygnowaliśmy odszedłem odeszłam",
    ),
    pattern_of(
        english=r"\b(?:gone off|(?:any|no) more|these days|at (?:long )?last|called off|(?:fell|fallen) through"
        r"|phased out|(?:closed|shut|wound) down|(?:ran|run) out(?! of)|not (?:been )?renewed"
        r"|(?:gave|given|handed in) (?:(?:my|his|her|our|their) )?notice)\b|->|→",
        german=r"\bnicht mehr\b|\bkein\w{0,2} (?:\w{1,40} ){0,4}mehr\b|\bab sofort\b",
        french=r"\bn(?:e |['’])\w{1,40} (?:\w{1,40} )?plus\b|\b(?:est|sont|sommes) passée?s? (?:à|au|aux)\b"
        r"|\b(?:a|ont) (?:cessé|passé la main)\b",
        spanish=r"\bya no\b|\b(?:dej[óé]|dejaron|dejamos|ha dejado|han dejado) de\b",
        italian=r"\bnon (?:\w{1,40} ){1,4}più\b|\b(?:ha|hanno|abbiamo) smesso\b"
        r"|(?:^|[;:,.] )ora\b|\b(?:è|sono|c['’]è) ora\b",
        polish=r"\bnie (?:\w{1,40} ){1,3}już\b|\bjuż nie\b",
        chinese=r"不再|现在|改[到成为]|换[了成]|搬[到了]|变[成为更]|接[任手]",
        japanese=r"変更|移転|引っ越|(?:代|替|換)わ[りっ]|切り替え|になりました|なくなりました",
    ),
)
"""Words that mark a value in the same sentence as ended."""
HINTS = Expressions(
    words_of(
        english="starting effective beginning since new newly correction corrections corrected update updated updates "
        "edit actually wrong mistake mistaken misread misheard mistyped typo scratch instead successor passed became "
        "become becomes turned formerly previously gone went so hence therefore thus because",
        german="neue neuer neues neuen neuem seit statt stattdessen künftig nunmehr mittlerweile inzwischen "
        "letztlich schließlich korrektur berichtigung aktualisierung zurückgekehrt",
        french="nouveau nouvelle finalement désormais dorénavant depuis rectification rectificatif actualisation",
        spanish="desde nuevo nueva nuevos nuevas corrección rectificación actualización",
        italian="nuovo nuova nuovi nuove ormai invece infine correzione rettifica aggiornamento",
        polish="nowy nowa nowe nowego nowej odtąd zamiast ostatecznie korekta sprostowanie aktualizacja",
    ),
    pattern_of(
        english=r"\b(?:as of|in the end|from (?:now|today|tomorrow|here|this|next|(?:the )?\d)|mixed up|rather than"
        r"|back to|return(?:s|ed)? to"
        r"|(?:took|takes?|taken) over|hand(?:ed|s) |used to|goes to"
        rf"|from (?:{'|'.join(sorted(DAYS | MONTHS))}))\b|\bnot \d|=>",
        german=r"\b(?:am ende|zurück (?:zu[mr]?|auf|in|bei))\b|\bab (?:heute|morgen|nächste[mnrs]?|dem \d)",
        french=r"\b(?:à la fin|mise à jour|de retour [àa]u?|(?:à partir|à compter) d(?:[eu]|es)?)\b|\bau lieu d[eu'’]",
        spanish=r"\b(?:al final|en lugar de|vuelven? a|a partir del?)\b",
        italian=r"\b(?:alla fine|al posto d(?:i|el|ella|ell['’])|d['’]ora in (?:poi|avanti)|torna(?:no|t[oaie])? a"
        r"|a partire da(?:l|lla)?)\b",
        of_days=rf"\b(?:ab|dès|desde el|da|dal|dalla|od) (?:{_CALENDAR})\b",
    ),
)
"""Weaker words of change."""
ASKS_WHERE = pattern_of(
    english=r"\bwhere\b", german=r"\bwo(?:hin)?\b", french=r"\boù\b", spanish=r"\bd[oó]nde\b", italian=r"\bdove?\b",
    polish=r"\bgdzie\b",
)  # fmt: skip
SETTLED = late(
    r"([^\W\d_]{1,40}) (?:[^\W\d_]{1,20} ){0,3}?(?:"
    r"(?:moved|relocated) to|déménagé (?:à|en|au|aux)|(?:mudado|mudada|mudó|trasladado|trasladada|trasladó) a"
    r"|(?:trasferit[oa]|traslocato) (?:a|in)|(?:przeprowadziła?|przeniósł|przeniosła) (?:się )?do"
    r"|nach(?= [^\W\d_]{1,40} (?:um)?gezogen\b)) (\w)"
)
"""A sentence that says of its first word that it is at another place now, which is the answer to "where", and the
first letter of that place."""
PRESENT = Expressions(
    words_of(
        english="is are has have does goes gets", german="ist sind hat haben", french="est sont",
        spanish="es está están", italian="ha han è sono hanno abbiamo", polish="jest są ma mają mamy",
    ),
    pattern_of(english=r"\b(?:it|he|she|that|there)['’]s\b"),
)  # fmt: skip
"""Verbs of present states."""
CONDITION = Expressions(
    words_of(
        english="would could should might may if unless perhaps maybe",
        german="würde würden könnte könnten sollte sollten falls wenn vielleicht",
        french="si serait seraient aurait auraient pourrait pourraient",
        spanish="si podría podrían sería serían quizá quizás",
        italian="forse potrebbe potrebbero dovrebbe dovrebbero sarebbe sarebbero magari",
        polish="może gdyby jeśli jeżeli mógłby mogłaby mogłoby byłby byłaby byłoby",
    ),
    pattern_of(french=r"\bpeut-être\b", spanish=r"\btal vez\b"),
)
"""Words of uncertainty and conditions."""
HEADINGS = words_of(
    german="korrektur berichtigung aktualisierung nachtrag notiz hinweis beschluss",
    french="rectificatif avis décision",
    spanish="corrección rectificación actualización nota aviso decisión",
    italian="correzione rettifica aggiornamento avviso decisione",
    polish="korekta sprostowanie aktualizacja notatka uwaga decyzja",
)
"""Labels of notes that are no speakers."""

# -- limits of time ----------------------------------------------------------------------------------------------------

TEMPORARY = pattern_of(
    english=r"\bwhile\b[^,.;]{1,60}\b(?:is|are|was|were)\b|\bduring\b"
    r"|\b(?:un)?till? then\b|\btemporar"
    r"|\bfor (?:the time being|now|the duration)\b|\bstand(?:s|ing)? in\b|\bfill(?:s|ing) in\b"
    r"|\bexceptionally\b|^\W*this (?:week|weekend)\b(?!'s|’s)"
    r"|(?<!not )\b(?:only|just) (?:this|today|tonight|tomorrow|for (?:the|this|that|one|now|today))\b"
    rf"|\b(?:this|that) (?:[a-z]{{3,9}}|{DAY}) only\b"
    r"|\b(?:one|two|three|four|five|\d{1,2}) (?:morning|afternoon|evening|night|day|week|weekend)s? only\b",
    german=r"\b(?:vorübergehend|ausnahmsweise|vorläufig|einstweilen|einmalig|solange|nur (?:heute|morgen|diese\w?))\b"
    r"|\bfür (?:(?:eine?n?|zwei|drei|\d{1,2}) )?(?:stunden?|tage?|wochen?)\b"
    r"|\b(?:zwei|drei|vier|\d{1,2}) (?:stunden|tage|wochen) lang\b",
    french=r"\b(?:provisoire(?:ment)?|temporairement|exceptionnellement|pour l['’]instant|pour le moment|tant que"
    r"|(?:seulement|juste) (?:aujourd['’]hui|cette))\b"
    r"|\b(?:pendant|pour) (?:(?:une?|deux|trois|\d{1,2}) )?(?:heures?|jours?|semaines?)\b",
    spanish=r"\b(?:provisional(?:mente)?|temporalmente|excepcionalmente|de momento|por ahora|mientras"
    r"|s[oó]lo (?:por )?(?:hoy|est[ae]))\b"
    r"|\b(?:durante|por) (?:(?:un[ao]?|dos|tres|\d{1,2}) )?(?:horas?|días?|semanas?)\b",
    italian=r"\b(?:temporaneamente|provvisoriamente|eccezionalmente|per (?:ora|adesso|il momento)|finché"
    r"|sol[oa] (?:per )?(?:oggi|quest))\b"
    r"|\bper (?:(?:un|una|uno|due|tre|\d{1,2}) )?(?:giorn[oi]|settiman[ae])\b",
    polish=r"\b(?:tymczasowo|wyjątkowo|na razie|chwilowo|dopóki|tylko (?:dziś|dzisiaj|jutro|ten|w tym))\b"
    r"|\bprzez (?:(?:dwa|dwie|trzy|\d{1,2}) )?(?:dni|tydzień|tygodnie)\b",
)
"""A sentence about a limited time, after which the former value is in force again."""
PAST = words_of(
    english="was were had wasn't weren't hadn't", german="war waren hatte hatten",
    french="fueron était étaient avait avaient", spanish="era eran estaba estaban tenía tenían tuvo hubo fue",
    italian="erano aveva avevano fu furono", polish="był była było były miał miała miało miały",
)  # fmt: skip
"""Past forms of "be" and "have"."""
LAST_IN_CLAUSE = words_of(german="war waren hatte hatten")
"""Those that end a subordinate clause: "als der Laden noch am Markt war"."""
ONLY = words_of(
    english="only just", german="nur lediglich", french="seulement uniquement",
    spanish="sólo solo solamente únicamente", italian="soltanto unicamente", polish="tylko jedynie",
)  # fmt: skip
"""Words of a limit."""
WITHIN = {
    "english": word_set("on in at for during under"),
    "german": word_set("am an auf bei für im in während zum zur"),
    "french": word_set("à dans durant en lors pendant pour"),
    "spanish": word_set("durante en para"),
    "italian": word_set("a durante in nei nel nella nelle per"),
    "polish": word_set("dla na podczas przy w"),
}
"""Prepositions, by language, with which a sentence begins that may hold for a part, a case or a time only."""

# -- trials and stories ------------------------------------------------------------------------------------------------

TRIED = pattern_of(
    english=r"\b(?:in|on|for|to|at|with) (?:the |our |my |an? )?(?:\w{1,20}[ -])?"
    r"(staging|demo|sandbox|tests?|preview|beta|trial|pilot|canary|simulat(?:ion|or)|mock|branch|fork|rehearsal)\b",
    german=r"\b(?:im|auf dem|auf der|in der) (?:\w{1,20} )?"
    r"(test(?:system|umgebung|betrieb|server|instanz)|probebetrieb|vorschau)\b",
    french=r"\b(?:en|dans (?:le|la|l['’])|à la) ?(?:\w{1,20} )?(préprod(?:uction)?|recette|environnement de tests?)\b",
    spanish=r"\ben (?:\w{1,20} )?(preproducción|entorno de pruebas)\b",
    italian=r"\b(?:in|nel|nella|nell['’]) ?(?:\w{1,20} )?(ambiente di (?:test|prova)|preproduzione)\b",
    polish=r"\b(?:w|na) (?:\w{1,20} )?(środowisku testowym|serwerze testowym)\b",
)
"""Places and stages where something is only tried out."""
TOLD = pattern_of(
    english=r"\bin (?:the|an?|my|his|her|our|their|this|that|some) (?:\w{1,20}[ -]){0,3}?"
    r"(sketch|play|novel|film|movie|stor(?:y|ies)|tale|skit|musical|comic|cartoon|sitcom|nightmare|dream)\b",
    german=r"\b(?:im|in (?:der|einem|einer)) (?:\w{1,20} )?(roman|märchen|geschichte|theaterstück|traum)\b",
    french=r"\bdans (?:le|la|un|une) (?:\w{1,20} )?(roman|conte|pièce|rêve)\b",
    spanish=r"\ben (?:el|la|un|una) (?:\w{1,20} )?(novela|cuento|película|sueño)\b",
)
"""Words for works of fiction."""

# -- doubt and denial --------------------------------------------------------------------------------------------------

_NEGATION = (
    r"not|never|no|nobody|nothing|none|neither|nor|without|cannot|[^\W\d_]{1,8}n['’]t"
    r"|(?:ca|could|did|do|does|had|has|have|is|are|might|must|need|should|was|were|wo|would)n.?t"
)
ENGLISH_NEGATION = late(rf"\b(?:{_NEGATION})\b", re.IGNORECASE)
"""An English word that denies what follows."""
NEGATION = late(
    rf"\b(?:{_NEGATION}"
    r"|nicht|nie|kein\w{0,3}|ohne|pas|jamais|sans|aucune?|nunca|jamás|ningún|sin|non|mai|senza|não|sem)\b",
    re.IGNORECASE,
)
"""A word that denies what follows, in any of these languages and in Portuguese."""

DOUBTED_ABROAD = pattern_of(
    german=r"\b(?:vielleicht|könnten?|würden?|falls|wenn|angeblich|hieß es|sei|solle[nt]?|wären?|hätten?"
    r"|(?:wir|ich|sie|er) (?:wollen|will|möchten?|überlegen|überlegt|erwäg\w{1,5}|planen?|plant)"
    r"|(?:überleg|erwäg|plan|beabsichtig)(?:e|t|en) [^.;!?]{0,80}\bzu \w{2,20}n"
    r"|schlägt [^.;!?]{0,80}\bvor)\b",
    french=r"\b(?:si|on dit|il paraît|il est question|croi(?:t|ent) savoir|serai(?:en)?t"
    r"|(?:on|nous|il|elle|je) (?:envisage|veut|voulons|songe|songeons|prévoit|prévoyons|pensons)"
    r"|(?:(?:envisag|propos|song|pens|compt|souhait|espèr)(?:e|es|ent|e?ons|ez)|prévoi(?:t|ent)|veut|veulent)"
    r" (?:de |d['’]|à )?\w{2,20}(?:er|ir|re))\b",
    spanish=r"\b(?:si|quizás?|tal vez|podrían?|se dice|dicen? (?:(?:que|el|la)|(?:\w{1,20} ){1,3}que)|ojalá"
    r"|queremos|quiere|quieren|pensamos|planea(?:mos|n)?|se estudia|prevé(?:n)?"
    r"|(?:propon(?:e|en|emos)|piensan?|plante(?:a|an|amos)|esperan?|pretenden?) \w{2,20}[aei]r)\b",
    italian=r"\b(?:forse|potrebb(?:e|ero)|si dice|dicono|pare che|sembra che"
    r"|vogliamo|vuole|vogliono|pensiamo di|prevede di|prevediamo|intende)\b",
    polish=r"\b(?:może|podobno|ponoć|jeśli|gdyby|chcemy|chce|chcą|planujemy|planuje|zamierza\w{0,3})\b",
    chinese=r"可能|听说|如果|也许|或许|吗|的(?:弟弟|哥哥|妹妹|姐姐|妈妈|爸爸|儿子|女儿|朋友|同事|邻居)",
)
"""Words of guesses and hearsay, and verbs of a plan with an infinitive; for Chinese, also words for relatives."""
DENIED = pattern_of(
    english=r"\b(?:isn['’]t|is not|not) true\b|\b(?:did|has|have|was|were)(?:n['’]t| not) (?:\w{1,20} )?"
    rf"(?:{'|'.join(sorted(CHANGES | REPLACES | ENDS))}"
    r"|become|been (?:changed|moved)|change|move|switch|swap|extend|raise)\b"
    r"|\badded\b(?![^.]{0,120}\b(?:makes?|puts?|brings?|takes?)\b)"
    r"|\ba (?:second|third|further)\b(?=\s+[a-z])(?!\s+(?:of|and|or|\w{1,20}er)\b)",
    german=r"\b(?:hat|haben|ist|sind|wurden?) (?:[\w.]{1,20} ){0,5}nicht (?!mehr)\w{2,20}(?:t|en)\b",
    french=r"\bn['’](?:a|ai|ont|avons|est|était) (?:pas|jamais) \w{2,20}[éisu]e?s?\b",
    spanish=r"\bno (?:se )?(?:ha|han|hemos) \w{2,20}[ai]do\b",
    italian=r"\bnon (?:si )?(?:è|ha|hanno|abbiamo) (?:ancora |mai )?(?:stat[oaie] )?\w{2,20}[aiu]t[oaie]\b",
    polish=r"\bnie (?:został|zmieni|przenie)\w{0,8}\b",
)
"""A change that did not happen; in English also a thing in addition to the first."""
HEARSAY = pattern_of(
    english=r"^\W*(?:an?|some|somebody|someone|people|everybody|everyone|half|they)\s(?:[\w'’-]{1,30}\s){0,4}?"
    r"(?:said|says?|wrote|writes?|claim(?:s|ed)?|tells?|told|thinks?|thought|reckon(?:s|ed)?|believe[sd]?"
    r"|insist(?:s|ed)?|swears?|swore|guess(?:es|ed)?)\b"
    r"|^\W*(?:rumou?r|gossip|word|legend|talk) has it\b"
    r"|^\W*there(?:['’]s| is| are) (?:an? |some )?(?:rumou?rs?|talk|gossip)\b|^\W*overheard\b",
    german=r"^\W*(?:angeblich|man munkelt)\b|^\W*es heißt,",
    french=r"^\W*(?:le bruit court|on raconte que)\b",
    spanish=r"^\W*(?:se rumorea|corre el rumor)\b",
    italian=r"^\W*(?:corre voce|si mormora)\b",
    polish=r"^\W*(?:podobno|ponoć)\b",
)
"""Hearsay: a verb of saying without a particular speaker, or a rumour."""
DENIAL = pattern_of(
    english=r"(?:^|[.!?;:,(–—]\s{0,2})(?:but |and |well,? |no,? )?(?:it|he|she|they|that|this|we|i) "
    r"(?:is|was|are|were|do|does|did|has|have|had|will|would|can)(?:n['’]t| not)?(?: really| at all)?[.!)]"
    r"|\b(?:denie[sd]|untrue"
    r"|(?:reports?|claims?|rumou?rs?|story) (?:[\w'’]{1,20} ){0,12}(?:is|are) (?:false|not true))\b",
    german=r"\bstimmt (?:es )?nicht\b",
    french=r"\b(?:dément(?:i|ent)?|n['’]est pas vrai)\b",
    spanish=r"\bno es (?:cierto|verdad)\b",
)
"""A sentence that only denies or affirms the previous one ("It isn't.", "He does."), or a word of denial."""
CALLED_OFF = pattern_of(
    english=r"\b(?:(?<!the )false alarm|no (?:decision|vote)|decided against"
    r"|(?:not|n['’]t) (?:yet )?(?:answered|decided|voted)|voted down|nothing (?:has )?changed"
    r"|(?:stays|left|remains) as (?:it )?(?:is|was)|(?:normal|usual|old|regular) (?:\w{2,20} )?appl(?:y|ies)"
    r"|it stays?(?=[.!;,])|left (?:\w{2,20} ){1,3}alone|at the (?:usual|normal)|the (?:usual|normal) \w{2,20} again"
    r"|(?:is|are|was|were|keeps?|says?) what (?:it|they|we|he|she) (?:(?:always|had|have|has) ){0,2}"
    r"(?:was|were|are|have|been|had|said|did)|it lasted|declared void)\b",
    german=r"\b(?:(?:alles|rest) (?:\w{2,20} ){0,2}wie (?:immer|bisher|vorher)|rückgängig)\b",
    french=r"\b(?:(?:tout|reste) (?:\w{2,20} ){0,2}comme (?:avant|toujours)|retour à la normale|marche arrière)\b",
    spanish=r"\b(?:(?:todo|resto) (?:\w{2,20} ){0,2}como (?:siempre|antes)|como estaba|sin efecto)\b",
)
"""Words that state, in any sentence, that an event did not happen or nothing has changed."""
CANCELLED = pattern_of(
    english=r"\b(?:called off|cancell?ed|scrapped|withdrawn|abandoned|shelved|(?:is|are|was|were) off(?=[,.;!]|$))",
    german=r"\b(?:abgesagt|abgeblasen|gestrichen|verworfen|fällt aus|vom tisch)\b",
    french=r"\b(?:annulée?s?|abandonnée?s?|tomb(?:e|ent|ée?s?) à l['’]eau)\b",
    spanish=r"\b(?:cancelad[oa]s?|anulad[oa]s?|suspendid[oa]s?)\b",
    italian=r"\b(?:annullat[oaie]|cancellat[oaie]|disdett[oaie])\b",
    polish=r"\b(?:odwołan\w{1,2}|anulowan\w{1,2})\b",
)
"""Words that say of an event or a plan that it does not take place."""

# -- other people, things and parts ------------------------------------------------------------------------------------

OTHERS = words_of(
    english="mother father sister brother neighbour neighbours neighbor neighbors cousin aunt uncle daughter son wife "
    "husband friend friends guests competitor competitors opposing rival rivals colleague colleagues parents mum dad "
    "grandma grandpa nephew niece tenants boss",
    german="mutter vater schwester bruder nachbarin nachbar tochter sohn tante onkel freundin kollegin konkurrenz",
    french="mère père maman papa sœur frère voisine voisin fille fils tante oncle amie ami cousine mari",
    spanish="madre padre hermana hermano vecina vecino hija hijo tía tío amiga amigo marido prima primo competencia",
    italian="fratello sorella figlio figlia zio zia amico amica cugino cugina moglie marito concorrenza",
    polish="brat brata siostra siostry matka ojciec syn córka sąsiad sąsiadka sąsiedzi kolega koleżanka konkurencja",
)
"""Words for other people than those in the earlier note, unless it also contains them."""
OURS = pattern_of(
    english=r"\b(?:my|our)\b",
    german=r"\b(?:unser|mein)\w{0,2}\b",
    french=r"\b(?:notre|nos|chez nous|mon|ma|mes)\b",
    spanish=r"\bnuestr[oa]s?\b",
    italian=r"\bnostr[oaei]\b",
    polish=r"\b(?:nasz\w{0,3}|mój|moj\w)\b",
)
THEIRS = words_of(
    english="their his her", german="ihr ihre ihren ihrer ihrem seine seinen seiner seinem", french="leur leurs",
    spanish="su sus", italian="loro", polish="ich jego jej",
)  # fmt: skip
PART = pattern_of(
    english=r"^\W*(?:the|an?|our|my) (?:\w{1,40} ){0,2}?(\w{1,40}) of (?:(?:the|our|my) )?(\w{1,40})",
    french=r"^\W*(?:la|le) (?:\w{1,40} ){0,2}?(\w{1,40}) (?:de|du) (?:(?:la|le) )?(\w{1,40})",
    german=r"^\W*(?:der|die|das) (?:\w{1,40} ){0,2}?(\w{1,40}) (?:von|der|des) (\w{1,40})",
)
"""A sentence about a part or relative of something: "The platform of the tower"."""
LINKS = words_of(
    german="für von vom im am zum zur mit aus", french="de du des pour d", spanish="para con del",
    italian="di della dello dell dei per", polish="z do dla",
)  # fmt: skip
"""Prepositions between a noun and what distinguishes it from others of its sort; for English see ``distinct``."""
ARTICLES = words_of(
    german="der die das den dem des ein eine einen einem einer unser unsere unseren unserem unserer",
    french="le la les l un une notre nos", spanish="el los las una nuestro nuestra",
    italian="il lo gli i uno nostro nostra",
)  # fmt: skip
