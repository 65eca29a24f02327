"""Words related to those of a question: the members of classes, and words of much the same meaning.

A question often names a class where the memory names a member ("instrument" is answered by "violin"), which the
statistics of a small store cannot relate. The table of classes is general knowledge of English words, written by
hand; it only *adds* alternatives to a question, at a lower weight, never to the index.
"""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache

from rlm_mem.text.analysis import Analyser
from rlm_mem.text.irregular import irregular_forms

_CLASSES = """
instrument: guitar piano violin clarinet drum flute cello saxophone trumpet ukulele keyboard harp bass banjo
    trombone harmonica accordion
music musical genre: song album band concert jazz rock pop classical guitar piano playlist tune melody
    singer rap hip-hop blues metal folk opera reggae
artist band musician singer composer: band singer song concert album music
song: music lyrics tune melody album sing
concert: band gig festival stage live music
pet animal: dog cat puppy pup kitten kitty hamster rabbit bunny parrot fish turtle snake guinea lizard bird
    horse cow goat sheep gecko ferret
dog: puppy pup doggo labrador retriever shepherd poodle beagle terrier bulldog husky
cat: kitten kitty tabby
martial: karate judo kickboxing taekwondo boxing aikido kung jiu-jitsu wrestling fencing
sport athletic: basketball football soccer tennis baseball hockey volleyball golf running swimming boxing
    skiing snowboarding surfing cycling climbing badminton cricket rugby rowing sailing skating gymnastics
    wrestling team match
exercise workout fitness training: gym running yoga swimming weights aerobics jogging marathon pilates
    cardio boxing stretching cycling lifting treadmill hike
outdoor: hiking camping kayaking fishing climbing trail surfing skiing biking picnic canoe backpacking
hobby interest activity pastime: painting reading hiking camping swimming pottery gardening cooking baking
    photography dancing writing knitting running yoga fishing gaming chess biking drawing surfing singing
    puzzle birdwatching woodworking
craft handmade: knitting sewing pottery crochet origami woodworking quilting embroidery
art artwork artistic: painting drawing sculpture pottery sketch mural watercolor portrait photography canvas
    gallery
paint: canvas watercolor acrylic portrait mural sketch
dessert sweet treat: cake pie cookie ice-cream brownie pudding pastry chocolate cupcake muffin donut candy
    tart cheesecake
food dish meal cuisine recipe snack: pizza pasta soup salad sandwich burger chicken steak sushi taco curry
    rice bread salmon fish cake cookie stew noodles grilled roasted veggie dinner lunch breakfast
cook bake: recipe dish cake bread oven kitchen roast grill meal
vegetable: carrot tomato cucumber broccoli spinach lettuce potato pepper onion cabbage kale
fruit: apple banana strawberry blueberry orange mango grape lemon peach pear cherry melon
drink beverage: coffee tea beer wine juice soda smoothie water cocktail milk lemonade
restaurant eat: dinner lunch cafe diner menu food brunch
health medical illness disease condition diagnosis: doctor hospital pain injury surgery diabetes asthma
    allergy flu fever cancer anxiety heart sick virus blood medication migraine
injury: hurt sprain twisted broke ankle knee wrist shoulder accident
diet nutrition: vegetable fruit healthy sugar calories soda snack vegan protein weight
allergy: peanut pollen gluten dairy sneeze asthma
family relative: mom dad brother sister son daughter kid wife husband cousin aunt uncle grandma grandpa
    niece nephew parent
parent: mom dad
sibling: brother sister
child kid: son daughter kid baby toddler boy girl
spouse partner: husband wife girlfriend boyfriend fiance married
husband wife: married marriage wedding
relationship marital status: single married dating divorced girlfriend boyfriend wife husband breakup
    partner engaged
friend: buddy pal mate bestie colleague teammate
country nation abroad: usa america england uk france spain italy germany japan china india canada mexico
    brazil australia ireland scotland sweden norway greece turkey thailand switzerland portugal netherlands
    peru egypt vietnam indonesia korea russia ukraine poland austria denmark finland iceland argentina chile
    colombia morocco kenya zealand
european europe: england france spain italy germany ireland scotland sweden norway greece switzerland
    portugal netherlands paris london rome barcelona berlin
asian asia: japan china india thailand vietnam indonesia korea tokyo bali
state: california texas florida oregon colorado washington minnesota nevada arizona carolina michigan alaska
    hawaii georgia ohio
city town: london paris york boston chicago seattle tokyo berlin rome barcelona toronto vancouver miami
    sydney amsterdam dublin edinburgh lisbon francisco angeles denver austin madrid vienna prague
location place: beach park mountain lake city country forest museum island river cafe
travel trip vacation journey holiday tour: trip flight visited roadtrip tour hotel tickets traveling explore
    cruise abroad passport airport itinerary
vehicle transport transportation car: truck bike motorcycle bus train van boat suv engine drive scooter taxi
book novel: series author trilogy story chapter literature read
read: book novel story magazine
author writer: book novel poem write
movie film cinema: trilogy scene watch actor director
show series: episode season watch
game gaming: console playstation xbox nintendo pc multiplayer rpg chess tournament board
console: playstation xbox nintendo switch
job career work profession occupation: office engineer teacher nurse doctor lawyer chef writer designer
    manager business company store salary hired boss promotion internship freelance interview
business company startup: store shop studio customer client investor brand launch
degree education study school: university college class course degree exam graduate student professor major
    semester
subject major: math history biology physics chemistry literature psychology economics
feeling emotion mood: happy sad proud nervous excited anxious grateful scared upset angry thrilled relieved
stress destress relax unwind calm: yoga meditation running bath walk reading music peaceful soothing
    therapeutic
religion religious spiritual faith: church god pray faith bible temple mosque
political politics: campaign election vote policy liberal conservative office mayor
charity cause volunteer: shelter donation fundraiser homeless donate community veterans foodbank nonprofit
event: conference concert festival parade party workshop wedding race tournament meeting fair fundraiser
    exhibition gala show competition
competition contest: tournament race championship prize won award medal trophy
award achievement accomplishment: trophy medal prize won championship certificate
lgbtq queer: pride transgender gay lesbian rainbow trans
weather: rain sunny storm snow hot cold wind
season: summer winter spring fall
celebrate celebration: christmas thanksgiving halloween easter birthday party anniversary
clothes clothing outfit: dress shirt jacket shoes hat coat jeans sweater boots suit
jewelry accessory: necklace ring bracelet earring watch
furniture decor: couch table chair lamp shelf bed sofa desk rug
gift present: gave bought birthday surprise
purchase buy shop: bought ordered got new store
device gadget gear equipment electronics: phone laptop computer camera headphones tablet smartwatch watch
    monitor keyboard mouse tv
software technology tech: python javascript java app code program database framework api
language: english spanish french german italian japanese chinese mandarin korean python java rust
programming coding code: python java javascript rust code developer software programmer
money financial finance: dollar budget salary cost price loan savings afford broke debt
age old: birthday born year
plant flower garden: rose sunflower tulip basil succulent tree lily daisy herb orchid cactus
nature outdoors: forest mountain beach lake river trail sunset ocean park waterfall
beach: ocean sea surfing sand coast waves
color: red blue green yellow purple pink black white orange gold silver
symbol: flag tattoo represents meaning
personality trait character: kind thoughtful brave driven caring patient passionate authentic selfless
    determined honest
advice tip suggestion: try should remember recommend
support: encouraged there motivate helped
problem challenge difficulty obstacle struggle setback: tough hard struggling injury failed difficult lost
    issue error
fear phobia: scared afraid terrified
destination: visit trip travel beach mountain island
bug defect issue: error crash exception failure broken fix
database: postgres sqlite mysql index query table schema
server deployment deploy: production release rollout kubernetes docker staging container
test: pytest unit suite coverage ci assertion
password credential secret: token key login vault
"""

# Groups of words with similar meanings: each is an alternative to all others of its group.
_SYNONYMS = """
begin start launch kick-off open; finish complete end done conclude; buy purchase order; get receive obtain;
visit travel trip go; depart leave; return back; host organize hold held throw arrange; win won victory;
lose lost; meet met encounter; help assist support aid; teach train coach mentor; learn study; fix repair
restore mend; damage break broke destroy ruin wreck; build construct make create; choose pick select opt;
enjoy love like fun; dislike hate; like love enjoy prefer; want wish hope dream; goal aim dream ambition
aspiration; plan intend going; decide chose; quit resign leave stop; fire layoff laid-off; hire recruit job;
earn make paid; pay cost price; talk chat speak discuss conversation; say tell mention; show display
exhibit; share post; explain describe; think believe feel opinion; realize understand learn; remember recall
memory; forget forgot; worry anxious nervous stress; scared afraid fear frightened; happy glad joy thrilled;
sad upset down; angry mad furious; excited stoked thrilled pumped; proud pride; grateful thankful
appreciate; tired exhausted; calm relax peace soothing; hot heat; hurt injure pain; sick ill unwell; heal recover
recovery; die death pass passed; funny humor laugh comedy; smart clever intelligent; famous popular well-
known; beautiful pretty gorgeous stunning; big large huge; small little tiny; new recent; old ancient
vintage antique; difficult tough hard challenging; easy simple; important significant crucial key; favorite
best; unique special; photo picture image snapshot; home house apartment flat place; kid child; festival
fest; tournament tourney; competition comp contest; family fam; pup puppy dog; bike bicycle cycling; car
vehicle; job work career; company firm business; boss manager; colleague coworker; doctor physician; hobby
pastime; movie film; tv television; picture drawing painting; road route way; roadtrip trip drive; vacation
holiday trip; walk stroll hike; run jog race; marathon race run; gym workout fitness; team squad; match
game; coach trainer; fan supporter; concert gig show; song track tune; band group; book novel; class course
lesson workshop; school college university; exam test; grade score; speech talk presentation; meeting
session; party celebration bash; wedding marriage marry; birthday bday; gift present; letter note; message
text; call phone; neighborhood area; church faith; volunteer charity; donate donation give; fundraiser
charity raise; shelter homeless; garden yard plant; tree plant; lake river water; ocean sea beach; mountain
hill peak; forest woods; camp camping tent; recipe cook dish; meal dinner food; snack treat; drink beverage;
weight diet; healthy health; habit routine; advice tip suggestion; reason motivate inspire cause; inspire
motivate encourage; symbolize represent mean remind; attend join participate went; join sign-up enroll; move
relocate; adopt adoption; pregnant baby expecting; date dating; break-up breakup split; argue fight
conflict; accident crash collision; storm hurricane flood; fire blaze; police cop; military army veteran;
election vote campaign; money cash fund; cheap affordable; expensive pricey costly; error bug issue failure;
crash failure outage incident; fix patch resolve; deploy release ship rollout; remove delete drop; add
include; change update modify; choose decide adopt; config setting option; slow latency delay; fast quick
speed; memory ram; limit cap maximum; schedule cron timetable; document doc guide; test check verify
"""

#: Most alternatives added for one word of a question.
MAX_MEMBERS = 48
#: First letters that a class head and the question's term must share (stemming keeps the beginning).
_PREFIX = 3


@lru_cache(maxsize=1)
def _members() -> dict[str, list[str]]:
    """Return, by head, the members of its classes and the words of its groups, possibly with itself and repetitions."""
    table: dict[str, list[str]] = defaultdict(list)
    for line in _CLASSES.strip().replace("\n    ", " ").splitlines():
        heads, _, members = line.partition(":")
        for head in heads.split():
            table[head] += members.split()
    for group in _SYNONYMS.split(";"):
        words = group.split()
        for word in words:
            table[word] += words
    return table


@lru_cache(maxsize=1)
def _heads() -> dict[str, tuple[str, ...]]:
    """Return class heads by the first letters of the form to be stemmed, so that few need to be stemmed."""
    heads: dict[str, list[str]] = {}
    forms = irregular_forms()
    for head in _members():
        heads.setdefault(forms.get(head, head)[:_PREFIX], []).append(head)
    return {prefix: tuple(found) for prefix, found in heads.items()}


@lru_cache(maxsize=2048)
def related_terms(term: str, analyser: Analyser) -> tuple[str, ...]:
    """Return the terms of the members of the classes that `term` names, as `analyser` forms them; only for English.

    Only the classes needed are analysed: stemming the whole table would take longer than a search.
    """
    if analyser.language != "english":
        return ()
    found: dict[str, None] = {}
    for head in _heads().get(term[:_PREFIX], ()):
        if head.isalpha() and analyser.stem(head) == term:
            for member in dict.fromkeys(_members()[head]):
                found.update(dict.fromkeys(analyser.terms(member)))
    found.pop(term, None)
    return tuple(found)[:MAX_MEMBERS]
