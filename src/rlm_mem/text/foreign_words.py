"""Words of change, time, doubt and limits in German, French, Spanish, Italian and Polish; of change also in Chinese and
Japanese.

The rules that compare notes (`distinct`, `factuality`, `update_score`) combine them with those of English.
"""

from __future__ import annotations

from rlm_mem.text.clauses import words

DAYS = words(
    "montag dienstag mittwoch donnerstag freitag samstag sonnabend sonntag "
    "lundi mardi mercredi jeudi vendredi samedi dimanche lunes martes miércoles jueves viernes sábado domingo "
    "lunedì martedì mercoledì giovedì venerdì sabato domenica "
    "poniedziałek poniedziałku poniedziałki wtorek wtorku wtorki środa środy środę czwartek czwartku czwartki piątek "
    "piątku piątki sobota soboty sobotę niedziela niedzieli niedzielę niedziele"
)
MONTHS = words(
    "januar februar märz mai juni juli oktober dezember "
    "janvier février mars avril juin juillet août septembre octobre novembre décembre "
    "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre "
    "gennaio febbraio aprile maggio giugno luglio settembre ottobre dicembre "
    "stycznia lutego kwietnia czerwca lipca sierpnia września października listopada grudnia"
)
"""Months that differ from English, without those that are names or words ("Maja", "marca")."""
_CALENDAR = "|".join(sorted(DAYS | MONTHS))

NUMBERS = words(
    "zwei drei vier fünf sechs sieben acht neun zehn zwölf deux trois quatre cinq huit neuf dix onze douze "
    "dos tres cuatro cinco seis siete ocho nueve diez doce tre quattro cinque sette nove dieci undici dodici "
    "dwa dwie trzy cztery pięć sześć siedem osiem dziewięć dziesięć jedenaście dwanaście"
)
"""Numbers up to twelve, without words that mean something else in English or are a month ("due", "elf", "sept")."""

CHANGED = words(
    "jetzt umgezogen verlegt gewechselt ersetzt abgelöst umgestellt umbenannt abgegeben übergeben übernommen verkauft "
    "gekündigt aufgegeben aufgehört ausgeschieden eingestellt abgeschafft "
    "déménagé déplacé déplacée transféré transférée remplacé remplacée changé changée renommé renommée "
    "vendu vendue quitté quittée cédé cédée résilié résiliée abandonné abandonnée supprimé supprimée démissionné "
    "ahora mudado mudada mudó cambiado cambiada cambió trasladado trasladada trasladó sustituido sustituida sustituyó "
    "reemplazado reemplazada reemplazó "
    "vendido vendida vendió renunció jubilado jubilada jubiló cancelado cancelada abandonado abandonada "
    "adesso trasferito trasferita spostato spostata sostituito sostituita cambiato cambiata rinominato rinominata "
    "venduto venduta lasciato lasciata disdetto disdetta abbandonato abbandonata dimesso dimessa "
    "teraz przeniesiony przeniesiona przeniesione przeniósł przeniosła przenieśliśmy zmieniony zmieniona zmienione "
    "zmienił zmieniła zmieniliśmy zastąpił zastąpiła zastąpiono przekazał przekazała przeprowadził przeprowadziła "
    "przejął przejęła sprzedał sprzedała zrezygnował zrezygnowała odszedł odeszła zlikwidowano"
)
"""Words that mark a value in the same sentence as ended."""
CHANGED_OTHERS = (
    r"\bnicht mehr\b|\bkein\w{0,2} (?:\w{1,40} ){0,4}mehr\b|\bab sofort\b"
    r"|\bn(?:e |['’])\w{1,40} (?:\w{1,40} )?plus\b|\b(?:a|ont) cessé\b|\b(?:a|ont) passé la main\b"
    r"|\bya no\b|\b(?:dej[óé]|dejaron|dejamos|ha dejado|han dejado) de\b"
    r"|\bnon (?:\w{1,40} ){1,4}più\b|\b(?:ha|hanno|abbiamo) smesso\b|(?:^|[;:,.] )ora\b|\b(?:è|sono|c['’]è) ora\b"
    r"|\bnie (?:\w{1,40} ){1,3}już\b|\bjuż nie\b"
    r"|不再|现在|改[到成为]|换[了成]|搬[到了]|变[成为更]|接[任手]"
    r"|変更|移転|引っ越|(?:代|替|換)わ[りっ]|切り替え|になりました|なくなりました"
)
CHANGED_SIGNS = (
    "nicht mehr|kein|ab sofort|plus|cess|passé la main|ya no|dej|più|smesso|ora|już"
    "|不再|现在|改|换|搬|变|接|変|移転|引っ越|わ|切り替え|になりました|なくなりました"
)

CHANGE_HINTS = words(
    "neue neuer neues neuen neuem seit statt stattdessen künftig nunmehr mittlerweile inzwischen sondern letztlich "
    "schließlich korrektur "
    "berichtigung aktualisierung zurückgekehrt "
    "nouveau nouvelle finalement désormais dorénavant depuis rectification rectificatif actualisation "
    "desde nuevo nueva nuevos nuevas corrección rectificación actualización sino "
    "nuovo nuova nuovi nuove ormai invece infine correzione rettifica aggiornamento "
    "nowy nowa nowe nowego nowej odtąd zamiast ostatecznie korekta sprostowanie aktualizacja"
)
"""Weaker words of change."""
CHANGE_HINTS_OTHERS = (
    r"\b(?:am ende|à la fin|al final|alla fine)\b|\ben lugar de\b|\bau lieu d[eu']|\bal posto d(?:i|el|ella|ell['’])\b"
    r"|\bd['’]ora in (?:poi|avanti)\b"
    r"|\b(?:à partir|à compter|a partir|a partire) d(?:[eu]|el|es|al|alla|a)?\b"
    r"|\b(?:mise à jour|vuelven? a|de retour [àa]u?|zurück (?:zu[mr]?|auf|in|bei)|torna(?:no|t[oaie])? a)\b"
    rf"|\b(?:ab|dès|desde el|da|dal|dalla|od) (?:{_CALENDAR})\b"
    r"|\bab (?:heute|morgen|nächste[mnrs]?|dem \d)"
)
CHANGE_HINTS_SIGNS = (
    "am ende|fin|en lugar|au lieu|al posto|ora in|partir|compter|mise à jour|vuelve|de retour|zurück |torna|ab |dès "
    "|desde el|da |dal|od "
)

HEADINGS = words(
    "korrektur berichtigung aktualisierung nachtrag notiz hinweis beschluss rectificatif avis décision corrección "
    "rectificación actualización nota aviso decisión correzione rettifica aggiornamento avviso decisione korekta "
    "sprostowanie aktualizacja notatka uwaga decyzja"
)
"""Labels of notes that are no speakers."""

PRESENT = words("ist sind hat haben est sont es está están ha han è sono hanno abbiamo jest są ma mają mamy")
"""Verbs of present states."""

CONDITION = words(
    "würde würden könnte könnten sollte sollten falls wenn vielleicht si serait seraient aurait auraient pourrait "
    "pourraient podría podrían sería serían quizá quizás forse potrebbe potrebbero dovrebbe dovrebbero sarebbe "
    "sarebbero magari może gdyby jeśli jeżeli mógłby mogłaby mogłoby byłby byłaby byłoby"
)
"""Words of uncertainty and conditions."""

LINKS = words(
    "für von vom im am zum zur mit aus de du des pour d del para con di della dello dell dei per z do dla"
)
"""Prepositions between a noun and what distinguishes it from others of its sort."""
ARTICLES = words(
    "der die das den dem des ein eine einen einem einer unser unsere unseren unserem unserer le la les l un une "
    "notre nos el los las una nuestro nuestra il lo gli i uno nostro nostra"
)

ONLY = words(
    "nur lediglich seulement uniquement sólo solo solamente únicamente soltanto unicamente tylko jedynie"
)
"""Words of a limit."""
WITHIN = {
    "german": words("am an auf bei für im in während zum zur"),
    "french": words("à dans durant en lors pendant pour"),
    "spanish": words("durante en para"),
    "italian": words("a durante in nei nel nella nelle per"),
    "polish": words("dla na podczas przy w"),
}
"""Prepositions, by language, with which a sentence begins that may hold for a part, a case or a time only."""
