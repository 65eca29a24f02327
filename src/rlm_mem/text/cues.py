"""Patterns of the cues in segments: times, places, people, feelings, plans. English only."""

from __future__ import annotations

MONTHS = (
    "january|february|march|april|may|june|july|august|september|october|november|december|"
    "jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec"
)
NUMBER_WORDS = (
    "two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|couple|few|several|hundred|thousand"
)
TIME = (
    r"\b(?:yesterday|today|tonight|tomorrow|ago|recently|lately|currently|nowadays|weekend|monday|tuesday|wednesday|"
    r"thursday|friday|saturday|sunday|(?:last|next|this|past|each|every|coming|previous|following)\s+(?:\w+\s+)?"
    r"(?:day|night|morning|afternoon|evening|week|weekend|month|year|summer|winter|spring|fall|autumn|monday|tuesday|"
    r"wednesday|thursday|friday|saturday|sunday|january|february|march|april|may|june|july|august|september|october|"
    r"november|december)|january|february|april|june|july|august|september|october|november|december|"
    r"(?:in|since|by|early|late|mid|of|on)\s+(?:march|may)|\d{1,2}(?:st|nd|rd|th)|(?:19|20)\d\d(?:-\d\d-\d\d)?|"
    r"the other (?:day|night|week)|just now|a while (?:back|ago)|"
    r"\d{1,2}(?::\d\d)?\s?(?:am|pm)|christmas|thanksgiving|halloween|new year'?s?|easter|birthday)\b"
)
DURATION = (
    r"\b(?:(?:\d+|an?|one|" + NUMBER_WORDS + r"|half an?|many|some|couple of|over a)(?:\s+\w+)?[\s-]+"
    r"(?:second|minute|hour|day|night|week|month|year|decade)s?|since\s+\w+|"
    r"for\s+(?:\w+\s+)?(?:years|months|weeks|days|"
    r"hours|ages|a while|a long time)|all (?:day|week|month|year)|so far)\b"
)
PLACE = (
    r"\b(?:in|at|to|from|near|around|across|through|visit(?:ed|ing)?|outside|inside|"
    r"of)\s+(?:the\s+|a\s+|an\s+|my\s+|our\s+)?"
    r"(?:[A-Z][\w'’]+|(?:\w+\s+)?(?:beach|park|city|town|country|home|school|office|"
    r"church|museum|mountains?|forest|lake|river|cafe|café|"
    r"restaurant|gym|studio|store|shop|library|hospital|shelter|center|centre|island|"
    r"village|coast|state|woods|trail)\b)"
)
QUOTED = r"[\"“”«»„][^\"“”«»„]{2,}[\"“”«»]|(?<!\w)'[A-Z][^']{2,}'(?!\w)|`[^`]+`|\*[^*\s][^*]*\*"
CAPITAL = r"(?<![.!?:\n])(?<![.!?:]\s)(?<=\s)[\"“'‘(]?(?!I\b|I['’])[A-Z][\w'’&-]+"
NUMERAL = r"\d|\b(?:one|once|twice|both|first|second|third|" + NUMBER_WORDS + r")\b"
FIRST = r"\b(?:I|[Mm]y|[Mm]e|[Mm]ine|[Ww]e|[Oo]ur|[Uu]s|I'm|I've|I'd)\b"
SECOND = r"\b(?:you|your|yours|you're|you've|ya|u)\b"
REASON = (
    r"\b(?:because|'?cause|cuz|since|so that|in order to|that's why|reason|inspir\w+|motivat\w+|due to|thanks to|"
    r"led to|made me|makes me|wanted to|to help|therefore|hence|reminds?|as a result|why)\b"
)
FEELING = (
    r"\b(?:feel\w*|felt|happy|happier|sad|glad|proud|grateful|thankful|excited|"
    r"exciting|nervous|anxious|scared|afraid|"
    r"angry|upset|amazing|awesome|great|incredible|inspired|inspiring|relieved|worried|stress\w*|overwhelm\w+|joy|"
    r"peace\w*|calm\w*|lov(?:e|ed|ing)|hurt|lonely|tired|exhausted|free|awe|blast|"
    r"disappoint\w+|frustrat\w+|reward\w+)\b"
)
PERSON = (
    r"\b(?:mom|mum|mother|dad|father|parents?|brother|sister|siblings?|son|daughter|"
    r"kids?|children|husband|wife|partner|boyfriend|girlfriend|fianc[eé]e?|friends?|buddy|buddies|cousin|aunt|uncle|"
    r"grandma|grandpa|grandmother|grandfather|"
    r"granny|niece|nephew|boss|colleagues?|coworkers?|teammates?|team|coach|teacher|"
    r"mentor|neighbou?rs?|roommate|doctor|manager|client|customer|maintainer|author|owner)\b"
)
PLAN = (
    r"\b(?:going to|gonna|plan\w*|thinking (?:about|of)|will|'ll|can't wait|"
    r"look(?:ing)? forward|hop(?:e|ing) to|want to|"
    r"next|upcoming|soon|tomorrow|schedul\w+|goals?|dream\w*|aim\w*|consider\w*|intend\w*|decided)\b"
)
PREFERENCE = (
    r"\b(?:lov(?:e|es|ed|ing)|like[sd]?|enjoy\w*|favou?rites?|fave|prefer\w*|fan of|"
    r"into|passion\w*|obsess\w*|hat(?:e|es|ed)|adore\w*|best|interest\w*|hobb\w+|always)\b"
)
ATTACHMENT = (
    r"\b(?:photos?|pictures?|pics?|images?|snap(?:shot)?|screenshot|attached|"
    r"attachment|here's|check (?:this|it) out|look at|take a look|shared?)\b"
)
OPINION = (
    r"\b(?:think|thought|believe|should|recommend\w*|suggest\w*|advice|advise|opinion|guess|agree|important|matters?|"
    r"better|try|tip|tips|mean[st]?|represent\w*|symboli\w+|remind\w*)\b"
)
NEGATION = r"\b(?:not|never|no|none|nothing|n't|without|cannot|can't|don't|didn't|won't|isn't|wasn't)\b"
