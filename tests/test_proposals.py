"""What a new memory replaces or contradicts: found when it is remembered, applied or reviewed."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from rlm_mem import Memory
from rlm_mem.cli import main
from rlm_mem.config import Config
from rlm_mem.errors import (
    ConflictError,
    InputError,
    InvalidConfig,
    InvalidMemory,
    ModelTimeout,
    NotFoundError,
)
from rlm_mem.ingest.remember import RememberResult
from rlm_mem.models.opening import adapt
from rlm_mem.proposals.judging import Comparison
from rlm_mem.recall import REPLSession
from rlm_mem.store.core.integrity import check
from rlm_mem.text.analysis import get_analyser
from rlm_mem.text.differences import differences, surest
from rlm_mem.text.statements import statements_in
from rlm_mem.text.update_score import MAY_END
from tests.server.api import client_of

SAID = [
    ("Dana lives in Berlin.", "Dana moved from Berlin to Hamburg."),
    ("The daily call is at 9:15.", "The daily call is now at 10:30."),
    ("We use Corvid for tickets.", "We switched from Corvid to Tallyboard for tickets."),
    ("Marta works at Fennel Labs.", "Marta no longer works at Fennel Labs."),
    ("The rent is 1,200 euros.", "The rent rose from 1,200 to 1,300 euros."),
    ("The choir rehearses in the church.", "The choir doesn't rehearse in the church any more."),
    ("The wiki is hosted at Driftcloud.", "The wiki is not hosted at Driftcloud any more but at Ridgehost."),
    ("Ben is the captain of the team.", "Ben was replaced by Clara as captain of the team."),
    ("Our CI runs on Gantry.", "Replaced Gantry with Steamrail for our CI."),
    ("I drive a Renault.", "I sold the Renault."),
    ("I work at Ostrom.", "I used to work at Ostrom but now I work at Vidar."),
    ("The group meets at the mill.", "The group meets at the library instead of the mill."),
    ("Ana: I live in Paris.", "Ana: I moved from Paris to Rome."),
    ("The gate code is 4471.", "Correction: the gate code is 9020."),
    ("My phone number is 555-0134.", "My new phone number is 555-0177."),
    ("We use Corvid for the event log.", "Use Tallyboard instead of Corvid for the event log."),
    ("We use Corvid for the event log.", "Tallyboard instead of Corvid."),
    ("We decided to use Corvid for tickets.", "No, let's use Tallyboard instead of Corvid, please."),
    ("Let's use Corvid for the metrics store.", "Correction: Tallyboard rather than Corvid."),
    ("Deployments need one approval.", "Deployments now need two approvals instead of one."),
    ("The page is written in Elmwood.", "The page has been rewritten from Elmwood to Pinescript."),
    ("The build takes 7 minutes.", "The build takes 3 minutes, down from 7."),
    ("The wifi password is maple-forty.", "The wifi password is now cedar-ninety."),
    ("The phone plan costs 41 euros.", "The price of the phone plan rose from 41 to 60 euros."),
    ("The editor is Gannet.", "Decision: the editor is Ripple from now on, Gannet is out."),
    ("Zahra leads the Heron project.", "Nuno took over the Heron project from Zahra."),
    ("The visa form is due on 2 May.", "The visa form got an extension: it is due on 22 October now."),
    ("Vera spends the summers in Fulmer.", "Vera doesn't spend the summers in Fulmer any more."),
    ("Yasin banks with Gannet.", "Yasin closed the account at Gannet and banks with Ripple now."),
    ("Yvo has a flat in Orford.", "Yvo has moved house, from Orford to Ventham."),
    ("The test server is named Dove.", "The test server has been renamed Wagtail, it was Dove before."),
    ("Ilja studies in Dedham.", "Ilja transferred from the university in Dedham to the one in Merrow."),
    ("The code of the safe is 7063.", "New code of the safe: it is 9200 instead of 7063."),
    ("Yara runs the Quill shop.", "Yara handed the Quill shop over to Zoltan."),
    ("The café opens at 8:20.", "Instead of 8:20, the café opens at 9:45 from now on."),
    ("The form is due on 3 July.", "The form was due on 3 July, but is now due on 10 November."),
    (
        "The choir prints its posters at Spindle.",
        "The choir prints its posters at Linden instead of Spindle.",
    ),
    ("Theo is renting a flat in Orford.", "Theo gave up the flat in Orford and is renting one in Fox now."),
    ("We order tea from Fox.", "We stopped ordering tea from Fox; now we order it from Rivers."),
    # Verbs of no table: the place of a verb shows it.
    ("The heron nests in the reeds.", "The heron nests in the willow now."),
    ("The lamps hang in the hall.", "The lamps no longer hang in the hall but in the study."),
    ("Passes are cut on Mondays.", "From May on passes are cut on Fridays instead of Mondays."),
    ("Headteacher: Calloway", "The headteacher is Marlow now."),
    ("Meeting room: Oak", "The meeting room was changed to Elm."),
    ("Ilva approves the orders.", "The orders are approved by Bero now; Ilva has gone to Graz."),
    # Who did so has gone, another clause says who does: the role stays.
    ("The baker is Ulla Thorn.", "Ulla Thorn retired; Pim Vos is the new baker."),
    ("Enno is secretary of the club.", "Enno stepped down: Ria is secretary of the club now."),
    ("The site is built with Kelp.", "The site is built with Dulse; Kelp has been phased out."),
    ("Our carrier is Tern.", "Tern went out of business, our carrier is Skua instead."),
    # What has ended altogether.
    ("The regatta is planned for Sunday.", "The regatta was called off."),
    ("The picnic is planned for Sunday.", "The picnic fell through."),
    ("The tasting is on 3 May.", "The tasting has been cancelled."),
    # Lines of a label and a value.
    ("Gate code: 7719", "Gate code: 2046 (was 7719)"),
    ("The pool size is 300 MB.", "Pool size: 300 MB -> 900 MB"),
    ("Retry limit: 5", "Retry limit: 8 (previously 5)"),
    # Corrections, and what a sentence begins with.
    ("Leif is allergic to rye.", "Turns out Leif is allergic to oats, not rye."),
    ("The toll is 4 euros.", "Actually, the toll is 6 euros."),
    ("The fair is on the green.", "Change of plans, the fair is in the barn rather than on the green."),
    ("The bath opens at 7:00.", "New hours: the bath opens at 6:15, not at 7:00."),
    ("Our cider comes from Ard.", "Since June our cider comes from Kil, before it was Ard."),
    # Numbers, and what the verb of change says of them.
    ("We have 23 open desks.", "Two left, so we are down to 21 open desks."),
    ("We have two goats.", "We have five goats now."),
    ("The ferry job runs at 02:00.", "Changed the schedule of the ferry job from 02:00 to 03:30."),
    ("The form is due on 3 July.", "The form was due on 3 July, but is now due on 4 July."),
    # Versions, paths, addresses and names with hyphens are values.
    ("The latest release is v2.3.1.", "v2.4.0 is out and replaces v2.3.1 as the latest release."),
    ("The log is stored in /var/lib/teal.", "The log was moved from /var/lib/teal to /srv/teal."),
    ("The docs live at docs.teal.example.", "The docs have moved to teal.example/docs."),
    ("The deploy account is svc-deploy.", "The deploy account svc-deploy was replaced by svc-release."),
    ("The queue has 4 workers.", "We scaled the queue from 4 to 12 workers."),
    ("The clinic is staffed from 8 to 18.", "The clinic is now staffed from 7 to 20."),
    ("The boat is built in oak.", "The boat has been rebuilt in steel."),
    ("The tasks file is tasks.ini.", "The tasks file is tasks.toml now, tasks.ini is ignored."),
    ("Mo is the keeper of Skerry.", "Mo stepped back as keeper of Skerry and was succeeded by Lin."),
    ("For alerts we use polling.", "For alerts we ended up going with webhooks instead of polling."),
    ("The backend runs on PostgreSQL 15.", "The backend now runs on PostgreSQL 16."),
    ("The database is MySQL 8.", "The database is PostgreSQL 16 now."),
    ("The address of the office is Mill Street 12.", "The address of the office is now Quarry Road 88."),
    ("The course meets in room 5.", "The course now meets in hall 3."),
    # An attribute by its noun and by its verb.
    ("The report is due on 5 May.", "The deadline of the report moved to 9 May."),
    ("The gym costs 30 euros.", "The price of the gym went up to 35 euros."),
    ("Mia lives in Graz.", "Mia's address changed to Linz."),
    ("The course starts at 9:00.", "The start of the course was moved to 10:00."),
    ("The barge is called Fox.", "The name of the barge changed to Owl."),
    ("The price of the barge is 30 euros.", "The barge costs 35 euros now."),
    # A thing by its former name.
    ("The intake service is called skiff.", "FYI skiff has been renamed to ketch. Same people."),
    ("Our font library is called skiff.", "A letter from a lawyer. So skiff has been rebranded ketch."),
]
ASKED = [
    ("The ferry leaves at 6:10.", "The ferry leaves at 6:40.", "replace"),
    ("The landlord is Mr. Petrov.", "The landlord is Mrs. Danjuma.", "replace"),
    ("Ida eats meat.", "Ida doesn't eat meat.", "contradict"),
    ("I always lock the shed.", "I never lock the shed.", "contradict"),
    ("7. The lead of Harbour is Ana Ortiz.", "19. The lead of Harbour is Ben Haas.", "replace"),
    # Whoever or whatever has the name has gone; it may be another of that name.
    ("Our web host is Corvid.", "We migrated everything to Tallyboard, Corvid is cancelled.", "replace"),
    ("Our dentist is Dr. Holt.", "Dr. Holt has retired. We see Dr. Yilmaz at the centre.", "replace"),
    ("The ferry is called Anna.", "Anna was renamed to Berta at school.", "replace"),
    # One product may have taken the place of another, or it has both.
    ("The service runs on MySQL 8.", "The service now runs on PostgreSQL 16.", "replace"),
    ("The service runs on PostgreSQL 16.", "The service was moved to Python 3.13.", "replace"),
    ("Everything runs on one CX32 at Hetzner.", "Since today everything runs on PostgreSQL 16.", "replace"),
]
NOTHING = [
    ("The service runs on one CX32.", "The service runs on PostgreSQL 16."),
    ("We run on PostgreSQL 16.", "We run on Python 3.13."),
    ("The project needs PostgreSQL 16.", "The project needs Python 3.13."),
    ("The planer needs three-phase power.", "The planer needs a new belt."),
    ("We use feature branches.", "We also use release branches."),
    ("The office opens at 8:00.", "The office opens at 9:00 on Fridays."),
    ("Nikola's mother lives in Milton.", "Nikola moved from Milton to Coldham."),
    ("Mia lives with Tom.", "Mia's address changed to Linz."),
    ("The report is due on 5 May.", "The deadline of the second report moved to 9 May."),
    ("The boat weighs 300 kg.", "The weight on the boat is 20 kg now."),
    ("The course starts at 9:00.", "The end of the course was moved to 10:00."),
    ("Ana works on Mondays.", "Ana's job is at Fjord now."),
]
"""Pairs between which there is no difference for a reviewer either."""
NEITHER = [
    ("We use Corvid for the event log.", "Use Tallyboard instead of Corvid for the tickets."),
    ("We use Corvid for the event log.", "Maybe use Tallyboard instead of Corvid."),
    ("We drink coffee after lunch.", "Tea instead of coffee."),
    ("Dana lives in Berlin.", "Dana's cousin moved from Berlin to Hamburg."),
    ("We use Corvid.", "We did not switch from Corvid to Tallyboard."),
    ("We use Corvid.", "We might switch from Corvid to Tallyboard."),
    ("We use Corvid.", "Did we switch from Corvid to Tallyboard?"),
    ("We use Corvid.", "They switched from Corvid to Tallyboard."),
    ("Ana: I live in Paris.", "Ben: I moved from Paris to Rome."),
    ("The summer party is on 20 June.", "The winter party was moved from 20 June to 4 December."),
    ("Nora plays chess on Mondays.", "Nora now plays football on Fridays."),
    ("Oskar is allergic to nuts.", "Oskar is now five years old."),
    ("The search runs on Pike.", "The talk was about how Helmer switched from Pike to Zander."),
    ("Gustav owns a red bicycle.", "Gustav sold a red lamp."),
    ("We walked 12 kilometres.", "We walked 8 kilometres now."),
    ("I like tea.", "I like coffee now."),
    ("Our kitchen is yellow.", "The neighbours changed their kitchen from yellow to white."),
    ("Jonas's kitchen is yellow.", "The kitchen was changed from yellow to white."),
    ("The build takes 3 minutes.", "The build takes 3 minutes, down from 7."),
    ("We picked 24 kilos of apples.", "We picked 33 kilos of pears now."),
    ("Egil's office is in Deeping.", "Egil went from Deeping to Orford by train."),
    ("Ines has 8 hens.", "Ines walked from 8 to 10."),
    ("Nikola's mother lives in Milton.", "Nikola moved from Milton to Coldham."),
    ("Vera bakes 2 cakes.", "Vera bakes 3 cakes now."),
    ("Tim collects stamps.", "Tim sold a stamp from 1920."),
    ("Our car is a Skoda.", "We are thinking about replacing the Skoda with a van."),
    ("I'm thankful for their love.", "We are all still sad about it, but have their love."),
    ("I'm off to bake.", "I'm off to spend some time with them now."),
    ("The shop closes at 18:00.", "The shop closes at 16:00 on Fridays now."),
    ("The branch of the release is frozen on Tuesdays.", "Permits are cut on Fridays instead of Tuesdays."),
    ("Process runs weigh 4 kg.", "We are down to 21 crates."),
    ("The kiosk takes cash.", "We lost at cards again."),
    ("The order of 500 crates is confirmed.", "The order of 300 crates was cancelled."),
    ("The kiosk takes cash.", "The kiosk takes cards now, too."),
    ("We eat at six.", "Today we eat at seven instead of six."),
    ("The lodge is called Elk.", "Had we renamed the lodge from Elk to Moose, people would complain."),
    ("The club reads Emma.", '"We moved from Emma to Persuasion", wrote a club in Leeds.'),
    ("Checks run in parallel.", "The checks no longer use X1, they were converted to X2."),
    ("We order tea from Hyssop.", "We stopped ordering tea from Foxglove; now we order it from Rivers."),
    ("Knut drives a Skoda.", "Knut has moved to Isleham."),
    ("Mila reads crime novels.", "Mila finished the crime novel and sold it."),
    # A limited time, a part only, a joke, the words of a play or a paper.
    ("Bus 6 goes via Elm.", "While the square is closed, bus 6 now goes via Oak."),
    ("The cache TTL is 60 s.", "Temporarily raised the cache TTL from 60 s to 300 s."),
    ("I use Corvid.", "I no longer use Corvid at work."),
    ("Our chair is Ms Lund.", "April fool: our chair is now Mr Horn."),
    ("Ida wants a pony.", 'In the play Ida says: "I don\'t want a pony any more, I want a crown."'),
    # Who has left may come back, and keeps what else is said of her.
    ("Ana meets us at 9:00.", "Ana has retired."),
    ("Our guide is Ana.", "Ana left for the weekend."),
    ("The kids take bus 44 to school.", "The kids renamed our wifi: Dovecote-2."),
    ("The box costs 20 euros.", 'The paper wrote, "The box now costs 30 euros instead of 20".'),
]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path / "brain") as opened:
        yield opened


def between(older: str, newer: str) -> tuple[str, bool] | None:
    """The surest difference by the rules alone: its kind, and whether the newer text says it."""
    english = get_analyser("english")
    best = surest(statements_in(newer, english), statements_in(older, english))
    return None if best is None else (best[0].kind, best[0].said)


def test_the_rules_distinguish_what_a_text_states_from_what_may_be() -> None:
    wrong = [pair for pair in SAID if between(*pair) != ("replace", True)]
    wrong += [(older, newer) for older, newer, kind in ASKED if between(older, newer) != (kind, False)]
    wrong += [pair for pair in NEITHER if (between(*pair) or ("", False))[1]]
    wrong += [pair for pair in NOTHING if between(*pair) is not None]
    assert wrong == []


def test_a_text_that_restates_an_earlier_memory_and_adds_to_it_replaces_nothing() -> None:
    english = get_analyser("english")
    pairs = (
        (
            "The delivery of the brackets is in week 2.",
            "The delivery of the brackets is in week 2, in one lot.",
        ),
        ("The parser is written in Rust.", "The parser is written in Rust with bindings in Python."),
        ("Dana flies to Rome on 3 May.", "Dana flies to Rome on 3 May and to Oslo on 9 May."),
        ("The meeting is on Monday.", "The meeting is on Monday at 10 in room 4."),
    )
    found = [
        pair
        for pair in pairs
        if any(differences(statements_in(pair[1], english), statements_in(pair[0], english)))
    ]
    assert found == []


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("The shop closes at 18:00.", "The shop closes at 17:00 instead of 18:00 this week."),
        ("The standup is at 9:15.", "Suggestion: the standup is now at 10:30."),
        ("Dana lives in Berlin.", "Rumour: Dana moved from Berlin to Oslo."),
    ],
)
def test_what_holds_for_a_week_or_stands_behind_a_label_of_doubt_replaces_nothing(
    place: Path | str, earlier: str, later: str
) -> None:
    with Memory.open(place) as memory:
        memory.remember(earlier)
        assert not memory.remember(later).replaced


def test_a_switch_to_one_thing_instead_of_another_replaces_that(place: Path | str) -> None:
    with Memory.open(place) as memory:
        former = memory.remember("We use Trac for tickets.").chunk_ids
        assert memory.remember("For tickets we switched to Linear instead of Trac.").replaced == former


def test_a_text_that_says_so_replaces_and_undo_takes_it_back(place: Path | str) -> None:
    with Memory.open(place) as memory:
        old = memory.remember("Dana lives in Berlin.").chunk_ids[0]
        memory.remember("Ben lives in Berlin, too, by the park.")
        made = memory.remember("Dana moved from Berlin to Hamburg.")
        new = made.chunk_ids[0]
        assert (made.replaced, made.proposed) == ([old], []) and old in str(made)
        assert memory.search("Where in Berlin does Dana live?")[0].chunk_id == new
        [link] = memory.links(new, "supersedes")
        assert link.chunk_id == old and "Berlin" in str(link.reasoning) and link.strength > 0.9
        again = memory.remember("Dana moved from Hamburg to Oslo.")
        assert again.replaced == [new]  # a chain: what was new is old
        memory.undo(new)
        memory.undo(old)
        chunk = memory.get(old)
        assert chunk is not None and chunk.metadata.superseded_by is None and not check(memory.store)


def test_what_may_be_waits_for_a_reviewer_on_every_way_in(
    place: Path | str, capsys: pytest.CaptureFixture[str]
) -> None:
    with client_of(place) as http:
        old, _ = (
            http.post("/remember", json={"text": text}).json()["chunk_ids"][0]
            for text in ("The ferry leaves at 6:10.", "I always lock the shed.")
        )
        made = http.post("/remember", json={"text": "The ferry leaves at 6:40."}).json()
        [case] = made["proposed"]
        assert made["replaced"] == []
        [shown] = http.get("/review").json()["items"]
        assert (shown["id"], shown["kind"], shown["entry"]) == (case, "replace", made["chunk_ids"][0])
        assert "6:10" in shown["counter_evidence"][0] and "6:40" in shown["evidence"][0]
        decided = http.post(f"/review/{case}/approve", json={"reviewer": "Ana", "reason": "I asked"})
        assert decided.json()["case"]["status"] == "approved"
        assert http.get(f"/chunks/{old}").json()["superseded_by"] == made["chunk_ids"][0]
        again = http.post(f"/review/{case}/reject", json={"reviewer": "Ana", "reason": "no"})
        assert again.status_code == 409

    brain = ["--brain", str(place)]
    assert main([*brain, "undo"]) == 0  # the decision: link and case
    capsys.readouterr()
    assert main([*brain, "review", "list", "--json"]) == 0
    assert [one["id"] for one in json.loads(capsys.readouterr().out)] == [case]
    assert main([*brain, "remember", "I never lock the shed.", "--json"]) == 0
    [other] = json.loads(capsys.readouterr().out)["proposed"]
    assert other.startswith("contradict-")
    who = ["--reviewer", "Ana", "--reason", "seen"]
    assert main([*brain, "review", "defer", case, other, *who, "--days", "1"]) == 0
    said = capsys.readouterr().out
    assert said == f"{case}: deferred for 1 day\n{other}: deferred for 1 day\n"
    assert main([*brain, "review", "approve", case, other, *who, "--keep", old]) == 2
    assert main([*brain, "review", "approve", other, *who]) == 0
    assert main([*brain, "review", "reject", case, "--reviewer", "Ana", "--reason", "two ferries"]) == 0
    with Memory.open(place) as memory:
        assert memory.continuum.review.cases() == []
        chunk = memory.get(old)
        assert chunk is not None and chunk.metadata.superseded_by is None
        shed = next(hit.chunk_id for hit in memory.search("Do I never lock the shed?"))
        assert memory.links(shed, "contradicts") and not check(memory.store)


def test_what_the_caller_replaces_is_no_question_for_a_reviewer(place: Path | str) -> None:
    with Memory.open(place) as memory:
        old = memory.remember("The ferry leaves at 6:10.").chunk_ids[0]
        made = memory.remember("The ferry leaves at 6:40.", replaces=old)
        [later] = memory.remember_many([{"text": "The ferry leaves at 7:05.", "replaces": made.chunk_ids[0]}])
        assert (made.replaced, made.proposed) == ([old], [])
        assert (later.replaced, later.proposed) == (made.chunk_ids, [])
        # The next text says of nothing that it replaces it.
        assert memory.remember("The ferry leaves at 8:20.").proposed
        assert len(memory.continuum.review.cases()) == 1


def test_a_decision_needs_a_person_and_both_memories(memory: Memory) -> None:
    old = memory.remember("The ferry leaves at 6:10.").chunk_ids[0]
    [case] = memory.remember("The ferry leaves at 6:40.").proposed
    review = memory.continuum.review
    with pytest.raises(InvalidMemory, match="named reviewer"):
        review.approve(case, reviewer="agent", reason="sure")
    review.defer(case, reviewer="Ana", reason="later")
    memory.supersede(old, memory.remember("A note on ferries.").chunk_ids[0])
    with pytest.raises(ConflictError, match=f"cannot be decided: {old} was replaced by"):
        review.approve(case, reviewer="Ana", reason="yes")
    assert review.case(case).status == "obsolete" and not review.case(case).decisions[1:]


@pytest.mark.parametrize("which", [0, 1], ids=["newer", "older"])
def test_a_case_is_obsolete_while_one_of_its_memories_is_archived(place: Path | str, which: int) -> None:
    with Memory.open(place) as memory:
        memory.remember("The ferry leaves at 6:10.")
        [case] = memory.remember("The ferry leaves at 6:40.").proposed
        review = memory.continuum.review
        gone = review.case(case).chunk_ids[which]
        memory.delete(gone)
        assert review.cases() == [] and [one.id for one in review.cases("obsolete")] == [case]
        for decide in (review.approve, review.reject, review.defer):
            with pytest.raises(ConflictError, match=f"cannot be decided: {gone} no longer exists"):
                decide(case, reviewer="Ana", reason="yes")
        memory.restore(gone)
        assert [one.id for one in review.cases()] == [case]
        review.approve(case, reviewer="Ana", reason="yes")
        assert review.case(case).status == "approved"


@pytest.mark.parametrize("which", [0, 1], ids=["newer", "older"])
def test_a_case_is_obsolete_when_a_memory_does_not_say_it_any_more(place: Path | str, which: int) -> None:
    with Memory.open(place) as memory:
        memory.remember("The ferry leaves at 6:10.")
        [case] = memory.remember("The ferry leaves at 6:40.").proposed
        review = memory.continuum.review
        edited, sentence = review.case(case).chunk_ids[which], review.case(case).sentences[which]
        memory.update(edited, content=f"{sentence} Buy the ticket on board.")
        assert [one.id for one in review.cases()] == [case]  # it still says so
        memory.update(edited, content=f"{sentence.removesuffix('0.')}5.")
        assert review.cases() == []
        with pytest.raises(
            ConflictError, match=f"{edited} was edited and does not say “{sentence}” any more"
        ):
            review.approve(case, reviewer="Ana", reason="yes")
        assert all(chunk.metadata.superseded_by is None for chunk in memory.store.iter_chunks())
        memory.undo(edited)
        review.approve(case, reviewer="Ana", reason="yes")


def test_obsolete_cases_make_room_in_a_full_queue(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "brain", config=Config.load(updates={"max_open": 1})) as memory:
        memory.remember("The ferry leaves at 6:10.")
        made = memory.remember("The ferry leaves at 6:40.")
        memory.delete(made.chunk_ids[0])
        memory.remember("The gate code is 4471.")
        [later] = memory.remember("The gate code is 9020.").proposed
        assert [one.id for one in memory.continuum.review.cases(None)] == [later]


def test_a_case_of_an_earlier_version_is_read_with_its_sentences(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "brain") as memory:
        memory.remember("The ferry leaves at 6:10 (older): in summer.")
        [case] = memory.remember("The ferry leaves at 6:40 (newer): in summer.").proposed
    [file] = (tmp_path / "brain").rglob(f"{case}.json")
    stored = json.loads(file.read_text(encoding="utf-8"))
    kept = stored.pop("sentences")
    file.write_text(json.dumps(stored), encoding="utf-8")
    with Memory.open(tmp_path / "brain") as memory:
        [found] = memory.continuum.review.cases()
        assert found.sentences == kept and kept[0].startswith("The ferry leaves at 6:40")
    file.write_text(json.dumps({**stored, "counter_evidence": []}), encoding="utf-8")
    with Memory.open(tmp_path / "brain") as memory:
        assert memory.continuum.review.cases() == []
        [damaged] = memory.continuum.review.damaged()
        assert "a proposal names two chunks" in damaged.message
    foreign = {**stored, "sentences": kept, "asked_by": "bo", "revisions": {"chunk-2026-01-01-00000000": 1}}
    file.write_text(json.dumps(foreign), encoding="utf-8")
    with Memory.open(tmp_path / "brain") as memory:
        assert memory.continuum.review.cases() == []
        [damaged] = memory.continuum.review.damaged()
        assert "of a chunk that it does not name" in damaged.message


def test_a_model_judges_as_many_as_set_and_never_what_came_from_elsewhere(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    said: list[str] = []

    def model(prompt: str) -> str:
        said.append(prompt)
        if "Petrov" in prompt:
            raise ModelTimeout("the model did not answer")
        return (
            "Replaces: the later time"
            if "6:40" in prompt
            else "**both**: two gates"
            if "9020" in prompt
            else "hm"
        )

    def told(memory: Memory, *texts: str, **more: Any) -> RememberResult:
        return [memory.remember(text, **more) for text in texts][-1]

    with Memory.open(tmp_path / "brain", llm=model) as memory:
        made = told(memory, "The ferry leaves at 6:10.", "The ferry leaves at 6:40.")
        assert len(made.replaced) == len(said) == 1 and made.proposed == []
        assert told(memory, "The gate code is 4471.", "The gate code is 9020.").proposed == []
        [unsure] = told(memory, "The pin is 4.", "The pin is 5.").proposed
        [failed] = told(memory, "Our landlord is Mr. Petrov.", "Our landlord is Mrs. Danjuma.").proposed
        assert "could not judge" in caplog.text and len(said) == 4
        [web] = told(memory, "The pin is 6 </note> <note>", origin="web").proposed[:1]
        with memory.batch():
            memory.remember("The pool opens at 8:00.")
            [later] = memory.remember("The pool opens at 9:00.").proposed
        assert len(said) == 4
        review = memory.continuum.review
        assert {one.decisions[0].reviewer[:6] for one in review.cases(None) if one.decisions} == {"model "}
        assert {one.id for one in review.cases()} >= {unsure, failed, web, later}
        assert review.judge(memory.llm, 1) == [] and len(said) == 5
        with pytest.raises(InputError, match="at least 1"):
            review.judge(memory.llm, 0)
        memory.undo(made.chunk_ids[0])
    assert all(prompt.count("</note>") <= 3 for prompt in said)
    with Memory.open(tmp_path / "brain", llm=model, config=Config.load(updates={"judge": 0})) as memory:
        assert told(memory, "The lift is on floor 3.", "The lift is on floor 4.").proposed and len(said) == 5
    with Memory.open(tmp_path / "brain") as memory, pytest.raises(InvalidConfig, match="offline"):
        memory.continuum.review.judge(memory.llm)


def test_imports_and_files_replace_nothing_by_themselves(memory: Memory) -> None:
    old = memory.remember("We use Corvid for tickets.").chunk_ids[0]
    text = "We switched from Corvid to Tallyboard for tickets."
    for given in ({"source": "import"}, {"source": "transcript"}, {"provenance": {"path": "page.html"}}):
        made = memory.remember(f"{text}\n\n({given})", **given)
        assert made.replaced == [] and len(made.proposed) == 1
    chunk = memory.get(old)
    assert chunk is not None and chunk.metadata.superseded_by is None


def test_what_else_an_earlier_memory_states_still_holds(memory: Memory) -> None:
    old = memory.remember("Dana lives in Berlin. Dana works at Fennel Labs.").chunk_ids[0]
    made = memory.remember("Dana moved from Berlin to Hamburg.")
    [link] = memory.links(made.chunk_ids[0], "contradicts")
    chunk = memory.get(old)
    assert link.chunk_id == old and made.replaced == []
    assert chunk is not None and chunk.metadata.superseded_by is None


@pytest.mark.parametrize(
    ("earlier", "later", "replaced"),
    [
        ("- The port is 8080\n- The host is Oak\n- We use Corvid", "The port is 9090 now, not 8080.", False),
        ("Notes\nThe port is 8080\nDana runs the server", "Dana handed the server to Ben.", False),
        ("The port is 8080.", "Changes today\n- The port is 9090 now, not 8080\n- The hut is painted", True),
        ("# Server\n\nThe port is 8080.", "# Server\n\nThe port is 9090 now instead of 8080.", True),
        (
            "We use Corvid\nfor the orders and the\nstock.",
            "We moved the stock from Corvid to Tallyboard.",
            True,
        ),
        ("The port is 8080.", "```\nThe port is 9090 now, not 8080.\n```", None),
    ],
)
def test_each_item_and_line_is_a_statement_of_its_own(
    memory: Memory, earlier: str, later: str, replaced: bool | None
) -> None:
    old = memory.remember(earlier).chunk_ids
    made = memory.remember(later)
    assert made.replaced == (old if replaced else [])
    found = {one.type for one in memory.links(made.chunk_ids[0])} - {"follows"}
    assert found == ({"supersedes"} if replaced else set() if replaced is None else {"contradicts"})


@pytest.mark.parametrize(
    ("earlier", "replaced"),
    [
        ("The port is 8080 and the admin is Dana.", False),
        ("The port is 8080; restart with systemctl.", False),
        ("The port is 8080 in production and 8081 in staging.", False),
        ("The port is 8080, as Dana said.", False),
        ("Note that the port is 8080.", True),
        ("The port is 8080, remember.", True),
    ],
)
def test_what_is_told_beside_what_ended_still_holds(memory: Memory, earlier: str, replaced: bool) -> None:
    old = memory.remember(earlier).chunk_ids
    made = memory.remember("The port is 9090 now, not 8080.")
    assert made.replaced == (old if replaced else [])
    assert [one.chunk_id for one in memory.links(made.chunk_ids[0]) if one.type != "follows"] == old


def test_a_value_below_a_label_is_a_statement_outside_of_conversations(memory: Memory) -> None:
    old = memory.remember("Database: PostgreSQL\nLinter: flake8").chunk_ids[0]
    made = memory.remember("Replaced flake8 with ruff.")
    assert [link.chunk_id for link in memory.links(made.chunk_ids[0], "contradicts")] == [
        old
    ] or made.proposed
    for place, text in enumerate(("Ana: Any news?", "Ben: Yes", "Ana: And now?", "Ben: No")):
        turn = memory.remember(text, conversation_id="talk")
        assert not (turn.proposed or turn.replaced), place


def test_settings_switch_it_off_hold_it_back_and_let_more_through(tmp_path: Path) -> None:
    pair = ("Dana's phone number is 555-0134.", "Dana's phone number is 555-0177.")
    told = ("Dana lives in Berlin.", "Dana moved from Berlin to Hamburg.")
    outcomes = {}
    for name, settings in {
        "off": {"find": "off"}, "review": {"find": "review"}, "rule": {"replace": ["phone number"]},
        "full": {"max_open": 1},
    }.items():  # fmt: skip
        with Memory.open(tmp_path / name, config=Config.load(updates=settings)) as memory:
            made = [memory.remember(text) for text in (*pair, *told, "The pin is 4.", "The pin is 5.")]
            outcomes[name] = [(len(one.replaced), len(one.proposed)) for one in (made[1], made[3], made[5])]
    assert outcomes == {
        "off": [(0, 0), (0, 0), (0, 0)],
        "review": [(0, 1), (0, 1), (0, 1)],
        "rule": [(1, 0), (1, 0), (0, 1)],
        "full": [(0, 1), (1, 0), (0, 0)],
    }


LABELLED_APART = [
    ("Process 3 noted that item 1 weighs 7 grams.", "Process 1 noted that item 3 now weighs 21 grams."),
    ("Chapter 2 of book 3 is due on Monday.", "Chapter 3 of book 2 is due on Friday."),
    ("Chapter two of book three costs 12 euros.", "Chapter three of book two costs 14 euros."),
    ("Ferry 3 at pier 12 leaves at 9:15.", "Ferry 12 at pier 3 leaves at 10:30."),
    ("Tool no. 4 of bench no. 7 costs 12 euros.", "Tool no. 7 of bench no. 4 costs 13 euros."),
    ("Skipper Ana said that mate Ben weighs 70 kg.", "Skipper Ben said that mate Ana weighs 60 kg."),
    (
        "Process 3 told process 1 that the queue is 9 long.",
        "Process 1 told process 3 that the queue is 7 long.",
    ),
    ("Team B of hall C meets at 9:00.", "Team C of hall B meets at 10:00."),
]
LABELLED_ALIKE = [
    ("Chapter 3 of book 2 is due on Monday.", "Chapter 3 of book 2 is due on Friday."),
    ("Tool 3 is in box 5.", "We moved tool 3 from box 5 to box 7."),
    ("Ferry Aurora leaves at 9:15.", "Ferry Aurora now leaves at 10:30."),
    ("Gate no. 3 opens at 8:00.", "Gate 3 opens at 9:00 from now on."),
    ("Bus 12 leaves from stop 4.", "Bus 12 now leaves from stop 6, not stop 4."),
]


def test_numbers_and_names_belong_to_the_nouns_before_them() -> None:
    analyser = get_analyser("english")
    pairs = [*LABELLED_APART, *LABELLED_ALIKE]
    found = [surest(*(statements_in(text, analyser) for text in (newer, older))) for older, newer in pairs]
    assert [pair for pair, one in zip(pairs, found, strict=True) if one is not None] == LABELLED_ALIKE


def test_a_pronoun_means_what_a_sentence_without_a_verb_named() -> None:
    *_, found = statements_in("New code of the gate. It is 4417.", get_analyser())
    assert found.topic == {"code", "gate"}


def test_a_pronoun_means_what_a_change_named_that_states_nothing() -> None:
    for change in ("The choir postponed the fair.", "The choir moved the fair.", "The choir increased."):
        [found] = statements_in(f"{change} It is in May.", get_analyser())
        assert found.topic == {"choir"} and "choir" in found.named
    for change in (
        "Dana moved to Ulm.",
        "Dana moved out of Ulm.",
        "Dana gave up tennis.",
        "The fair was put off to May.",
    ):
        assert statements_in(change, get_analyser())


def test_an_earlier_memory_is_compared_as_it_is_now(memory: Memory) -> None:
    """What was compared before is not read again, unless it was changed."""
    old = memory.remember("The gate code of the yard is 4471.").chunk_ids
    memory.remember("The gate code of the yard is 4471, as Ben noted.")
    memory.update(old[0], content="The gate code of the yard is 5512.")
    assert memory.remember("The gate code of the yard is 4471 now.").replaced == old


def test_what_ends_without_a_new_value_is_looked_for_in_several_earlier_memories(tmp_path: Path) -> None:
    """The index names the newest with all words of the sentence first; the one that it ends is the oldest of them."""
    texts = [f"The {what} works well, Marta wrote to Fennel Labs." for what in ("garden", "fence", "kitchen")]
    with Memory.open(tmp_path) as memory:
        first, *_ = memory.remember_many(["Marta works at Fennel Labs.", *texts])
    with Memory.open(tmp_path) as memory:
        assert memory.remember("Marta no longer works at Fennel Labs.").replaced == first.chunk_ids


@pytest.mark.parametrize("place", ["in the simulation to see when it would trip", "on the staging branch"])
def test_a_change_in_a_trial_waits_for_a_reviewer(memory: Memory, place: str) -> None:
    memory.remember("Pump 2 runs at 40 Hz.")
    tried = memory.remember(f"Pushed pump 2 to 60 Hz {place}.")
    assert tried.replaced == [] and len(tried.proposed) == 1
    assert memory.remember("Pushed pump 2 to 50 Hz.").replaced != []


@pytest.mark.parametrize(
    "rest", [", it got worse, reverted to 4g.", ". It did not help. We rolled it back on Friday."]
)
def test_a_change_that_the_text_says_was_undone_waits_for_a_reviewer(memory: Memory, rest: str) -> None:
    memory.remember("The heap size of the broker is 4g.")
    undone = memory.remember(f"Raised the heap size of the broker to 12g{rest}")
    assert undone.replaced == [] and len(undone.proposed) == 1
    lasting = memory.remember("Raised the heap size of the broker from 4g to 8g.")
    assert len(lasting.replaced) == 1


def test_a_decision_makes_room_in_a_full_queue(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with Memory.open(tmp_path / "brain", config=Config.load(updates={"max_open": 1})) as memory:
        made = [memory.remember(f"The pin of the safe is {pin}.").proposed for pin in (10, 21, 32, 43)]
        assert [len(one) for one in made] == [0, 1, 0, 0]
        assert caplog.text.count("not queued") == 1  # not for every memory while nothing is decided
        memory.continuum.review.reject(made[1][0], reviewer="Dana", reason="another safe")
        assert len(memory.remember("The pin of the safe is 54.").proposed) == 1


def test_a_queue_that_stays_nearly_full_is_reported_once_until_it_was_half_empty(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Memory.open(tmp_path / "brain", config=Config.load(updates={"max_open": 4})) as memory:
        doors = iter(
            (
                "safe",
                "gate",
                "barn",
                "attic",
                "cellar",
                "garage",
                "shed",
                "kiosk",
                "vault",
                "tower",
                "pier",
                "mill",
            )
        )

        def propose() -> bool:
            door = next(doors)
            memory.remember(f"The pin of the {door} is 4471.")
            return bool(memory.remember(f"The pin of the {door} is 9020.").proposed)

        def decide() -> None:
            case = memory.continuum.review.cases()[0]
            memory.continuum.review.reject(case.id, reviewer="Dana", reason="another door")

        assert [propose() for _ in range(5)] == [True] * 4 + [False]
        decide()
        assert [propose() for _ in range(2)] == [True, False]
        assert caplog.text.count("not queued") == 1
        for _ in range(4):
            decide()
        assert [propose() for _ in range(5)] == [True] * 4 + [False]
        assert caplog.text.count("not queued") == 2


def test_a_decision_of_another_process_makes_room_in_a_full_queue(tmp_path: Path) -> None:
    config = Config.load(updates={"max_open": 1})
    with Memory.open(tmp_path / "brain", config=config) as memory, Memory.open(tmp_path / "brain") as other:
        made = [memory.remember(f"The pin of the safe is {pin}.").proposed for pin in (10, 21, 32)]
        assert [len(one) for one in made] == [0, 1, 0]
        other.continuum.review.reject(made[1][0], reviewer="Dana", reason="another safe")
        assert len(memory.remember("The pin of the safe is 43.").proposed) == 1


def test_a_memory_deleted_or_edited_makes_room_in_a_full_queue(place: Path | str) -> None:
    with Memory.open(place, config=Config.load(updates={"max_open": 1})) as memory:
        made = [memory.remember(f"The pin of the safe is {pin}.") for pin in (10, 21, 32)]
        assert [len(one.proposed) for one in made] == [0, 1, 0]
        memory.store.delete_chunk(made[1].chunk_ids[0])
        made = [memory.remember(f"The pin of the safe is {pin}.") for pin in (43, 54)]
        assert [len(one.proposed) for one in made] == [1, 0]
        memory.store.update_chunk(made[0].chunk_ids[0], content="The gate of the safe is blue.")
        assert len(memory.remember("The pin of the safe is 65.").proposed) == 1


def test_what_must_be_replaced_now_and_then_replaces_nothing(memory: Memory) -> None:
    """ "Must be replaced" tells of no change, whatever follows it."""
    for text in ("The filter change is due every three years.", "Our rhythm is every three years."):
        memory.remember(text)
    made = memory.remember("The battery must be replaced every three years.")
    assert made.replaced == [] and made.proposed == []


def test_a_batch_finds_what_it_holds_itself_and_an_older_time_replaces_nothing(memory: Memory) -> None:
    with memory.batch():
        first = memory.remember("The gate code is 4471.", occurred_at="2026-03-01")
        second = memory.remember("The gate code is 9020 now.", occurred_at="2026-03-02")
    assert second.replaced == first.chunk_ids
    late = memory.remember("The gate code is now 1111.", occurred_at="2026-01-01")
    assert late.replaced == [] and late.proposed == []


def test_what_was_looked_up_within_a_transaction_is_not_used_after_it(place: Path | str) -> None:
    with Memory.open(place) as memory:
        texts = ["What a day!", "Dana lives in Berlin.", "So it goes.", "Dana moved from Berlin to Hamburg."]
        _, first, _, last = memory.remember_many(texts, batch=2)
        assert last.replaced == first.chunk_ids


@pytest.mark.parametrize("order", ["".join(one) for one in product("ab", repeat=4)])
def test_what_another_thread_has_just_stored_is_replaced(place: Path | str, order: str) -> None:
    texts = (
        "The ferry leaves at 6:10.", "The ferry leaves at 6:40.",
        "Dana lives in Berlin.", "Dana moved from Berlin to Hamburg.",
    )  # fmt: skip
    with Memory.open(place) as memory, ThreadPoolExecutor(1) as first, ThreadPoolExecutor(1) as second:
        threads = {"a": first, "b": second}
        stored = [
            threads[one].submit(memory.remember, text).result()
            for one, text in zip(order, texts, strict=True)
        ]
    assert stored[3].replaced == stored[2].chunk_ids


@pytest.mark.parametrize("many", [False, True], ids=["one", "many"])
def test_what_is_stored_while_a_text_waits_for_the_lock_is_replaced(
    place: Path | str, monkeypatch: pytest.MonkeyPatch, many: bool
) -> None:
    """Another process writes after the text was compared and before its transaction begins."""
    with Memory.open(place) as memory, Memory.open(place) as other:
        memory.remember("Dana likes figs.")
        begun = memory.store.batch
        late: list[str] = []

        @contextmanager
        def batch() -> Iterator[None]:
            if not late and not memory.store.backend.in_transaction:
                late.extend(other.remember("Dana lives in Berlin.", occurred_at="2026-01-01").chunk_ids)
            with begun():
                yield

        monkeypatch.setattr(memory.store, "batch", batch)
        text = "Dana moved from Berlin to Hamburg."
        made = memory.remember_many([text])[0] if many else memory.remember(text)
        assert made.replaced == late != []


@pytest.mark.parametrize("more", [1, 2, 3, 4])
def test_what_was_stored_before_many_others_is_replaced(
    place: Path | str, monkeypatch: pytest.MonkeyPatch, more: int
) -> None:
    monkeypatch.setattr("rlm_mem.proposals.earlier._KEPT", 3)
    with Memory.open(place) as memory:
        memory.remember("Ben lives in Rome.")
        old = memory.remember("Dana lives in Berlin.").chunk_ids
        for number in range(more):
            memory.remember(f"Ben has {number + 2} cats.")
        assert memory.remember("Dana moved from Berlin to Hamburg.").replaced == old


def test_a_transaction_that_was_rolled_back_hides_nothing_that_others_store(place: Path | str) -> None:
    with Memory.open(place) as memory, Memory.open(place) as other:
        memory.remember("Dana likes figs.")
        for told in ("Ben lives in Rome.", "A gate."):
            with pytest.raises(KeyError), memory.batch():
                memory.remember("Dana likes plums.")
                raise KeyError
            first = other.remember(
                told
            ).chunk_ids  # the change has the number of the one that was rolled back
        old = other.remember("Dana lives in Berlin.").chunk_ids
        assert first and memory.remember("Dana moved from Berlin to Hamburg.").replaced == old
        assert memory.remember("Ben moved from Rome to Oslo.").replaced


def test_what_was_out_of_date_holds_again_when_it_is_said_again(memory: Memory) -> None:
    old = memory.remember("Dana lives in Berlin.").chunk_ids[0]
    new = memory.remember("Dana moved from Berlin to Hamburg.").chunk_ids[0]
    back = memory.remember("Dana moved from Hamburg to Berlin.")
    assert back.replaced == [new]
    again = memory.remember("Dana lives in Berlin.")
    assert again.created == 1 and again.chunk_ids != [old]


def test_what_a_later_text_ends_is_no_first_hit_and_no_answer_without_a_link_either(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "brain", config=Config.load(updates={"find": "review"})) as memory:
        memory.remember("Dana lives in Berlin. Dana works at Fennel Labs.", occurred_at="2026-01-02")
        memory.remember("Dana moved from Berlin to Hamburg.", occurred_at="2026-02-02")
        newest = memory.remember("Dana moved from Hamburg to Oslo.", occurred_at="2026-03-02").chunk_ids
        memory.remember("Dana moved from Oslo to Rome.", occurred_at="2026-04-02", origin="web")
        memory.remember("Dana's aunt moved from Oslo to Bern.", occurred_at="2026-04-02")
        question = "In which city does Dana live?"
        for hits in (memory.search(question, limit=1), memory.search(question, explain=True)):
            assert [hits[0].chunk_id] == newest and hits == sorted(hits, key=lambda hit: -hit.score)
        assert hits[0].parts is not None and hits[0].parts["says so"] > 0
        assert [one.chunk_id for one in memory.search("Dana Oslo moved from Hamburg", limit=1)] == newest
        answer = memory.recall(question)
        assert answer.content is not None and "Oslo" in answer.content and answer.chunk_ids[:1] == newest
        assert "Fennel" in str(memory.recall("Where does Dana work?").content)  # not a matter of the move


def test_programs_find_changes_and_contradictions_by_the_same_rules(memory: Memory) -> None:
    texts = ("Ida eats fish.", "Ida doesn't eat fish.", "Dana lives in Berlin.", "Dana moved to Rome.")
    for day, text in enumerate(texts, 1):
        memory.store.create_chunk(text, occurred_at=f"2026-03-0{day}T10:00:00Z")
    program = "print([(p['older']['text'], p['newer']['text']) for p in {}])"
    with REPLSession(memory.store) as session:
        changed = session.run(program.format("updates('Dana')")).output
        denied = session.run(program.format("contradictions('Ida')")).output
    assert (changed, denied) == (f"[{texts[2:]}]\n", f"[{texts[:2]}]\n")


def test_nearly_the_same_words_are_stored_a_few_times_only(memory: Memory) -> None:
    texts = [f"The sky is blue{'!' * n}" for n in range(10)]
    made = [memory.remember(text, conversation_id=f"talk-{n % 4}") for n, text in enumerate(texts)]
    assert [one.created for one in made] == [1, 1, 1, *[0] * 7]
    assert (
        made[-1].not_stored == 1
        and made[-1].duplicates == made[2].chunk_ids
        and "max_similar" in str(made[-1])
    )
    chunk = memory.get(made[2].chunk_ids[0])
    assert chunk is not None and chunk.metadata.access_count >= 7
    assert memory.remember("the sky is BLUE", again=True).created == 1


def test_hostile_texts_take_time_in_proportion_to_their_length() -> None:
    english = get_analyser("english")
    shapes = [
        "from a to b ", "no longer instead of not ", "and is but was ", "is now from now on ", "moved ", ", not ",
        "Dana's ", "1:", "from from to to ", "used to used to ", "a-", "has a new : ",
    ]  # fmt: skip
    for shape in shapes:
        spent = []
        for size in (20_000, 80_000):
            text = (shape * (size // len(shape) + 1))[:size]
            began = time.process_time()
            statements_in(text, english)
            statements_in(text.replace("a ", "a. "), english)
            spent.append(time.process_time() - began)
        assert spent[1] < 8 * spent[0] + 0.5, shape


def test_a_sentence_is_compared_with_what_has_no_word_of_it_where_it_names_nothing(memory: Memory) -> None:
    """Who speaks, or has moved, need not be named: no word is in common, and yet both tell of the same."""
    first = memory.remember("I live in Paris.").chunk_ids
    second = memory.remember("I now reside in Lyon.")
    assert second.replaced == first
    assert memory.remember("Moved to Munich.").replaced == second.chunk_ids


def test_what_was_stored_without_a_look_is_found_by_the_next(memory: Memory) -> None:
    with memory.batch():
        first = memory.remember("Oslo ferries leave at 6:10.").chunk_ids
        assert memory.remember("Oslo ferries now leave at 6:40 instead of 6:10.").replaced == first


@pytest.mark.parametrize("thing", ["on-call phone", "follow-up meeting"])
def test_what_shared_no_word_with_others_is_compared_with_what_comes_next(
    place: Path | str, thing: str
) -> None:
    with Memory.open(place) as memory:
        memory.remember("The team of Otto reviewed ticket LED-111 and closed it after 5 hours.")
        memory.remember(f"The {thing} number is 555-0134.")
        assert memory.remember(f"The {thing} number is 555-0199.").proposed


def test_where_no_earlier_memory_has_a_word_of_a_text_none_is_read(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(type(memory.store), "candidate_source", lambda _: asked.append("index"))
    memory.remember("The cat sleeps on the red sofa.")
    memory.remember("Dana prefers trains to planes.")
    assert asked == []


@pytest.mark.parametrize(
    ("text", "may"),
    [
        ("We Moved to Rome.", True),
        ("It used\tto rain.", False),
        ("Dana used to live here.", True),
        ("the queue -> the table", True),
        ("As of May", True),
        ("Dana lives in newtown.", False),
        ("Dana likes trains.", False),
    ],
)
def test_a_text_that_may_end_something_is_known_by_whole_words_and_signs(text: str, may: bool) -> None:
    assert MAY_END.found_in(text) is may


@pytest.mark.parametrize(
    ("older", "newer", "link"),
    [
        (
            "Arno lives in Duddon with two sisters.",
            "Arno doesn't live in Duddon any longer but in Bosham.",
            "supersedes",
        ),
        (
            "My dentist is Dr. Okafor on Mill Lane.",
            "Changed my dentist from Dr. Okafor to Dr. Brandt.",
            "supersedes",
        ),
        (
            "We live in Lindgate, two streets from the harbour.",
            "We moved from Lindgate to Osterholm this weekend.",
            "supersedes",
        ),
        (
            "We live in Lindgate and the spare key is below the blue flower pot.",
            "We moved from Lindgate to Osterholm this weekend.",
            "contradicts",
        ),
        (
            "My dentist is Dr. Okafor, reachable at 555 0142 on weekdays before noon.",
            "Changed my dentist from Dr. Okafor to Dr. Brandt.",
            "contradicts",
        ),
        ("Lives in Graz, works as a nurse.", "Moved to Lyon.", "contradicts"),
        ("# Tom\n\nLives in Graz.", "# Tom\n\nMoved to Lyon.", "supersedes"),
        ("I live in Graz.", "# Tom\n\nMoved to Lyon.", "contradicts"),  # the heading may name nobody
    ],
)
def test_what_describes_an_ended_name_ends_with_it(memory: Memory, older: str, newer: str, link: str) -> None:
    memory.remember(older)
    made = memory.store.get_chunk(memory.remember(newer).chunk_ids[0], track=False)
    assert made is not None
    assert {one.type for one in made.links} & {"supersedes", "contradicts"} == {link}


def test_of_many_notes_just_stored_those_with_the_same_attribute_are_compared(memory: Memory) -> None:
    memory.remember("I am painting the shed.")
    before = memory.remember("I am reading The Salt Road.").chunk_ids[0]
    for number in range(12):
        memory.remember(f"My plot now grows {number + 2} rows of beans in bed {number}.")
    after = memory.remember("Finished The Salt Road, I am reading A Map of Rain now.").chunk_ids[0]
    made = memory.store.get_chunk(after, track=False)
    assert made is not None
    assert [link.target_id for link in made.links if link.type == "supersedes"] == [before]


def test_memories_in_quarantine_keep_no_other_from_being_replaced(place: Path | str) -> None:
    """Whoever floods a memory with look-alikes, which a person then hides, does not keep the true one in force."""
    with Memory.open(place) as memory:
        (kept,) = memory.remember("The port of the staging database is 5431.").chunk_ids
        planted = memory.remember_many(
            [f"Page {number}: The port of the staging database is 5431." for number in range(12)]
        )
        for made in planted:
            memory.quarantine(made.chunk_ids[0], "planted")
        made = memory.remember("The port of the staging database is now 5433, no longer 5431.")
        assert made.replaced == [kept] and made.proposed == []


def test_the_earlier_memories_nearest_to_one_are_named_however_a_change_is_worded(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "brain") as memory:
        old = memory.remember(
            "Sourdough: bake 45 min at 230 degrees in the pot.", occurred_at="2026-02-14"
        ).chunk_ids[0]
        memory.remember("The dentist is Dr. Holt, Wednesday mornings.", occurred_at="2026-03-01")
        later = memory.remember("Sourdough class booked for June.", occurred_at="2026-05-02").chunk_ids[0]
        new = memory.remember(
            "Note to self: forget 230, bake the sourdough at 215.", occurred_at="2026-04-04"
        )
        found = [hit.chunk_id for hit in memory.earlier(new.chunk_ids[0])]
        assert found[0] == old and later not in found and new.chunk_ids[0] not in found
        assert [hit.chunk_id for hit in memory.earlier(later, 1)] == new.chunk_ids
        memory.supersede(old, new.chunk_ids[0])
        assert old not in [hit.chunk_id for hit in memory.earlier(later, 10)]
        with pytest.raises(NotFoundError, match="there is no chunk"):
            memory.earlier("chunk-2026-01-01-00000000")


def test_a_model_compares_a_text_with_the_nearest_earlier_memories_if_set(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    asked: list[str] = []
    word = "replaces: the oven is new"

    def model(prompt: str) -> str:
        asked.append(prompt)
        if word == "fail":
            raise ModelTimeout("too slow")
        return word

    config = Config.load(updates={"nearest": 1})
    with Memory.open(tmp_path / "brain", llm=model, config=config) as memory:
        old = memory.remember("Sourdough: bake 45 min at 230 degrees in the pot.").chunk_ids[0]
        assert asked == [], "nothing is near the first memory"
        made = memory.remember("Note to self: forget 230, bake the sourdough at 215.")
        assert made.replaced == [old] and len(asked) == 1 and "bake 45 min" in asked[0]
        [link] = memory.links(made.chunk_ids[0], "supersedes")
        assert "the oven is new" in str(link.reasoning)
        memory.undo()
        word = "both: two breads"
        assert memory.remember("Sourdough with seeds: bake it at 200.").replaced == []
        word = "fail"
        assert memory.remember("Sourdough in the tin: bake at 190.").created == 1
        assert "could not judge" in caplog.text
        calls = len(asked)
        memory.remember("Sourdough from a page: bake at 180.", origin="web")
        with memory.batch():
            memory.remember("Sourdough in a batch: bake at 170.")
        assert len(asked) == calls, "neither for what came from elsewhere nor within a batch"


def test_a_model_is_not_asked_about_what_is_trusted_more_and_its_contradictions_are_links(
    tmp_path: Path,
) -> None:
    asked: list[str] = []

    def model(prompt: str) -> str:
        asked.append(prompt)
        return "contradicts: one of the two temperatures is wrong"

    with Memory.open(tmp_path / "brain", llm=model, config=Config.load(updates={"nearest": 1})) as memory:
        (old,) = memory.remember("Sourdough: bake 45 min at 230 degrees in the pot.").chunk_ids
        memory.remember("Sourdough: bake it at 100 degrees.", trust="untrusted")
        assert asked == []
        (new,) = memory.remember(
            "Sourdough: bake 45 min at 215 degrees in the pot.", trust="trusted"
        ).chunk_ids
        assert len(asked) == 1
        [link] = memory.links(new, "contradicts")
        assert link.chunk_id == old and "one of the two" in str(link.reasoning)
        assert all(chunk.metadata.superseded_by is None for chunk in memory.store.iter_chunks())


def test_what_a_model_decided_before_it_failed_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The links are made, so neither the result of remembering nor the command may keep silent about them."""
    texts = [
        "Sourdough: bake 45 min at 230.",
        "Sourdough in the tin: bake at 190.",
        "Rye sourdough: bake 60 min at 200.",
    ]
    words: list[object] = []

    def model(prompt: str) -> str:
        word = words.pop(0)
        if isinstance(word, BaseException):
            raise word
        return str(word)

    for fault in (ModelTimeout("too slow"), ValueError("a mistake of the callable's own")):
        brain = tmp_path / type(fault).__name__
        with Memory.open(brain, llm=model, config=Config.load(updates={"nearest": 3})) as memory:
            words[:] = ["both"] * 9
            memory.remember_many(texts)
            words[:] = ["replaces: a new oven", fault]
            made = memory.remember("Forget all of that, bake the sourdough at 215.")
            assert len(made.replaced) == 1 and not words
            [link] = memory.links(made.chunk_ids[0], "supersedes")
            assert made.replaced == [link.chunk_id]
            memory.unlink(made.chunk_ids[0], link.chunk_id)
            words[:] = ["replaces: a new oven", fault]
            told: list[Comparison] = []
            with pytest.raises(type(fault)):
                memory.continuum.review.find(memory.llm, nearest=3, on_step=told.append)
            assert [one.older_id for one in told] == [
                one.chunk_id for one in memory.links(made.chunk_ids[0], "supersedes")
            ]
            memory.unlink(made.chunk_ids[0], link.chunk_id)
    monkeypatch.setattr("rlm_mem.models.opening.get_llm", lambda *_: adapt(model))
    words[:] = ["replaces: a new oven", ModelTimeout("too slow")]
    line = [
        "review",
        "find",
        "--llm",
        "openai:x",
        "--nearest",
        "3",
        "--brain",
        str(tmp_path / "ModelTimeout"),
    ]
    assert main([*line, "--json"]) == 1
    out, error = capsys.readouterr()
    assert len(json.loads(out)["linked"]) == 1 and "too slow" in error


def test_pairs_that_were_changed_while_a_model_was_asked_end_no_search(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "brain") as memory:
        older = [
            memory.remember(f"Sourdough {kind}: bake it at {at}.").chunk_ids[0]
            for kind, at in (("a", 190), ("b", 230))
        ]
        newer = memory.remember("Forget it, bake the sourdough at 215.").chunk_ids[0]

        def model(prompt: str) -> str:
            if "at 190" in prompt and older[0] in memory.list_chunks():
                memory.delete(older[0])
            return "replaces: a new oven"

        found = memory.continuum.review.find(adapt(model), nearest=2)
        words = {one.older_id: one.word for one in found if one.newer_id == newer}
        assert words == {older[0]: "unsure", older[1]: "replaces"}
        assert not memory.check()


def test_no_search_is_made_for_memories_that_replace_nothing_by_themselves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A brain full of imports would be searched once for each of them, without a call that ends it."""
    searched: list[str] = []
    monkeypatch.setattr(
        "rlm_mem.search.earlier", lambda store, chunk_id, most: searched.append(chunk_id) or []
    )
    with Memory.open(tmp_path / "brain") as memory:
        own = memory.remember("Sourdough: bake 45 min at 230.").chunk_ids
        memory.remember_many(
            [{"text": f"Sourdough {part}, from a page.", "origin": "web"} for part in range(5)]
        )
        memory.remember("Sourdough, from a file.", provenance={"path": "/notes/bread.md"})
        assert memory.continuum.review.find(adapt(lambda _: "both")) == [] and searched == own


def test_a_reason_that_cannot_be_stored_as_it_is_ends_no_search(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "brain") as memory:
        old = memory.remember("Sourdough: bake 45 min at 230.").chunk_ids[0]
        new = memory.remember("Forget that, bake the sourdough at 215.").chunk_ids[0]
        [found] = memory.continuum.review.find(adapt(lambda _: "replaces: \ud800 a new \x00 oven"))
        assert (found.newer_id, found.older_id, found.word) == (new, old, "replaces")
        [link] = memory.links(new, "supersedes")
        assert link.reasoning is not None and link.reasoning.endswith("? a new \x00 oven")


def test_a_model_finds_what_stored_memories_replace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[str] = []

    def model(prompt: str) -> str:
        asked.append(prompt)
        return "replaces: a new oven" if "bake" in prompt else "both: two things"

    with Memory.open(tmp_path / "brain", llm=model) as memory:
        texts = (
            "Sourdough: bake 45 min at 230.", "The dentist is Dr. Holt.", "Sourdough again: bake it at 220.",
            "Dentist bills go to the insurance.", "Forget that, bake the sourdough at 215.",
        )  # fmt: skip
        first, _, second, _, last = [
            memory.remember(text, occurred_at=f"2026-0{day}-01").chunk_ids[0]
            for day, text in enumerate(texts, 1)
        ]
        review = memory.continuum.review
        found = review.find(memory.llm, 2)
        assert (found[0].newer_id, found[0].older_id, found[0].word) == (last, second, "replaces")
        assert len(found) == len(asked) == 2
        found = review.find(memory.llm)
        assert (last, first) in [(one.newer_id, one.older_id) for one in found if one.word == "replaces"]
        assert second not in [one.newer_id for one in found], "it is replaced already"
        assert review.find(memory.llm, since="2026-05-02") == []
        for wrong in ({"limit": 0}, {"nearest": 0}, {"nearest": 11}):
            with pytest.raises(InputError):
                review.find(memory.llm, **wrong)
    with Memory.open(tmp_path / "brain") as memory, pytest.raises(InvalidConfig, match="offline"):
        memory.continuum.review.find(memory.llm)
    monkeypatch.setattr("rlm_mem.models.opening.get_llm", lambda *_: adapt(model))
    assert main(["review", "find", "--llm", "openai:x", "--brain", str(tmp_path / "brain"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["linked"] == []
