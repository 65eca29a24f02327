"""Stop words: function words that carry no subject, by language.

The English list is complete, for indexing and for questions. The other languages list only their most frequent
articles, pronouns, prepositions and auxiliaries: inverse document frequency takes care of the rest. A language
without a list simply keeps every word.

An index leaves out fewer words: everyday words that can be the subject of a question ("what do I like?", "who is
Will?") are in it, at a lower weight in questions.
"""

from __future__ import annotations

ENGLISH = """
a about above actually after again all also although always am an and any anybody anyone anything anyway are aren
around as at back be became because become been before being both but by came can cannot cause could couldn did didn
do does doesn doing don done down during each either else even ever every everybody everyone everything few for from
get gets getting give go goes going gone gonna got gotta had hadn has hasn have haven having he hello her here hers
herself hey hi him himself his how however i if im in into is isn it its itself just keep kind kinda kinds know let
lets ll like lot lots made make makes many may maybe me might mightn mine more most much must mustn my myself need
no nor not now of off oh ok okay on once one ones only or other others our ours ourselves out over own per perhaps
please quite rather re really s same say says see seem seems shall shan she should shouldn since so some somebody
someone something sometimes somewhere soon still such sure t than that thats the their theirs them themselves then
there these they thing things this those though through till to too toward towards two under until up upon us use
used uses using ve very via wanna want was wasn way ways we well went were weren what whatever when where whether
which while who whoever whom whose why will with within without won would wouldn wow yeah yep yes yet you your
yours yourself yourselves ya ah d m o
"""

# Stop words that are indexed all the same, since a question may have no other words.
_EVERYDAY = """
again always anybody anyone anything back became become cause done down everybody everyone everything few get gets
getting give go goes going gone gonna got gotta hello hey hi keep kind kinds know let lets like lot lots made make makes
many may maybe might mine must need never no now off ok okay once one ones other others over own per please same say
says see seem seems somebody someone something soon still sure thing things two use used uses using want way
ways well went will within without wow yes
"""

_OTHERS: dict[str, str] = {
    "german": """aber als am an auch auf aus bei bin bis da damit dann das dass dem den denn der des die dies diese
        dieser dieses doch du durch ein eine einem einen einer eines er es für hab habe haben hat hatte ich ihr im in
        ist ja kann kein keine mein mich mir mit nach nicht noch nur ob oder ohne schon sein seine sich sie sind so
        sondern um und uns unser vom von vor war waren was wenn wer wie wir wird wo zu zum zur über""",
    "french": """à ai au aux avec c ce ces cette d dans de des du elle elles en es est et été eu il ils j je l la le
        les leur leurs lui m ma mais me même mes moi mon n ne nos notre nous on ont ou où par pas pour qu que qui s
        sa se ses son sont sur t ta te tes toi ton tu un une vos votre vous y""",
    "spanish": """a al algo ante como con contra cual cuando de del desde donde e el él ella ellas ellos en entre era
        es esa ese eso esta está estas este esto estos fue ha había han hasta hay he la las le les lo los más me mi
        mis mucho muy nada ni no nos o os otra otro para pero por porque que qué quien se ser si sí sin sobre son su
        sus también te ti tu tus un una uno y ya yo""",
    "italian": """a ad ai al alla alle anche c che chi ci come con da dal dalla de degli dei del della delle di e è
        ed era gli ha hai hanno ho i il in io l la le lei li lo loro lui ma mi mia mio ne nei nel nella no noi non o
        per più quando quella quello questa questo se si sono su sua sui sul sulla suo ti tra tu un una uno vi voi""",
    "portuguese": """a ao aos as até com como da das de dela dele do dos e é ela elas ele eles em entre era essa
        esse esta está este eu foi há isso isto já lhe mais mas me meu minha muito na não nas nem no nos nós o os ou
        para pela pelo por qual quando que quem se sem ser seu sua são também te tem um uma você""",
    "dutch": """aan al als bij dan dat de der die dit doch door dus een en er ge geen had heb hebben heeft het hij
        hoe hun ik in is ja je kan me mijn met mij na naar niet nog nu of om onder ons ook op over te tot u uit uw
        van veel voor want waren was wat we wel werd wie wij wordt ze zich zij zijn zo zou""",
    "swedish": """alla att av blev bli da de dem den denna det detta dig din du där efter ej eller en er ett från för
        ha hade han har hon hur i icke inte jag kan man med men mig min mot mycket ni nu när och om oss på samma sig
        sin som så till under upp ut vad var vara vi vid är än över""",
    "polish": """a aby albo ale bez być był była było były ci co czy dla do gdzie go i ich ile im ja jak jaka jaki jakie
        je jego jej jest jestem już kiedy kto która które którego której który którym która ma mam mamy mają mi mnie
        mój moja moje my na nad nam nas nasz nasza nasze nie nim no o od on ona one oni ono po pod przez przy są się
        sobie swoje ta tak tam te tego tej ten to tu tylko ty u w we wy z za ze że żeby""",
    "russian": """а без бы был была были было быть в вам вас во вот все всё вы да для до его ее её если есть еще ещё
        же за и из или им их к как ко когда кто ли мне мы на над не него нет ни но о об он она они оно от по под при
        с со так там то того только ты у уже что чтобы это эта этот я""",
}


LISTED = ("english", *_OTHERS)
"""The languages that have a list, by which the language of a question is recognised, too."""


def stop_words(language: str) -> frozenset[str]:
    """The stop words of `language` (a Snowball algorithm), lower case; empty for a language without a list."""
    if language == "english":
        return frozenset(ENGLISH.split())
    return frozenset(_OTHERS.get(language, "").split())


def function_words(language: str) -> frozenset[str]:
    """The stop words of `language` that are not indexed either: articles, pronouns, auxiliaries, prepositions."""
    return stop_words(language) - (frozenset(_EVERYDAY.split()) if language == "english" else frozenset())
