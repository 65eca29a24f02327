"""A change, a limit and a plan are recognised in German, French, Spanish, Italian and Polish as in English."""

from __future__ import annotations

import pytest

from rlm_mem.text.languages import analyser_of
from rlm_mem.text.present import PresentQuestion
from rlm_mem.text.update_score import LIKELY, may_state_change, retelling


def odds(question: str, earlier: str, later: str) -> float:
    analyser = analyser_of(question)
    asked = PresentQuestion.of(question, analyser)
    assert asked is not None
    texts = {text: frozenset(analyser.terms(text)) for text in (earlier, later)}
    return retelling(asked, earlier, later, texts, analyser, year=2025, least=-9.0, is_next=True)


@pytest.mark.parametrize(
    ("question", "earlier", "later"),
    [
        (
            "Wann tagt der Rat?",
            "Der Rat tagt montags im Saal.",
            "Ab Oktober trifft man sich im Foyer, der Rat tagt mittwochs.",
        ),
        (
            "Wer liefert das Brot?",
            "Der Bäcker Huth liefert das Brot.",
            "Wir nehmen von Huth kein Brot mehr, sondern backen selbst.",
        ),
        (
            "Quel jour passe le facteur ?",
            "Le facteur passe le lundi matin.",
            "À compter de mars, le facteur ne passe plus que le jeudi.",
        ),
        (
            "¿Quién lleva la caja?",
            "La caja la lleva Inés Robles.",
            "A partir del martes lleva la caja Tomás Gil.",
        ),
        (
            "Chi porta la posta?",
            "La posta la porta Piero Sala.",
            "Piero non porta più la posta, la porta Gino Conti.",
        ),
        (
            "¿Quién dirige la banda?",
            "El director de la banda es Lucas.",
            "Lucas deja la banda en mayo y Nuria lo sustituye.",
        ),
        (
            "Que mange le poney ?",
            "Le poney mange du foin.",
            "Le poney tousse, il est passé aux granulés et ne mange que cela.",
        ),
        (
            "Qui est notre notaire ?",
            "Notre notaire est M. Blin.",
            "M. Blin a vendu son étude et c'est Mme Roux qui tient nos actes.",
        ),
        (
            "Kto prowadzi chór?",
            "Chór prowadzi Jan Maj.",
            "Od środy chór prowadzi Ewa Lis, Jan Maj odszedł.",
        ),
        ("¿Dónde vive Marta?", "Marta vive en Sevilla.", "Marta se ha mudado a Bilbao."),
        ("¿Qué coche tengo?", "Coche: Seat Ibiza", "Vendí el Ibiza y compré un Toyota Yaris."),
        ("Wo wohnt Jonas?", "Jonas wohnt in Bremen.", "Jonas ist nach Trier gezogen."),
        ("Dove abita Carla?", "Carla abita a Siena.", "Carla si è trasferita a Bari."),
    ],
)
def test_a_change_in_another_language_is_a_change(question: str, earlier: str, later: str) -> None:
    assert may_state_change(earlier, later, analyser_of(question))
    assert odds(question, earlier, later) > LIKELY


@pytest.mark.parametrize(
    ("question", "earlier", "later"),
    [
        (
            "Where do guests leave their coats?",
            "Guests leave their coats in room 4.",
            "On concert evenings guests leave their coats in room 9.",
        ),
        (
            "How many copies do we print?",
            "We print 30 copies.",
            "Only for Dr. Amsel do we print 45 copies.",
        ),
        ("Wann öffnet das Bad?", "Das Bad öffnet um 7 Uhr.", "Nur am Ostermontag öffnet das Bad um 10 Uhr."),
        (
            "À quelle heure ferme le parc ?",
            "Le parc ferme à 21 h.",
            "Pendant les travaux, le parc ferme à 18 h.",
        ),
        ("¿A qué hora cierra el bar?", "El bar cierra a las 23.", "En invierno el bar cierra a las 21."),
        ("A che ora apre il forno?", "Il forno apre alle 7.", "Solo durante le feste il forno apre alle 9."),
        ("O której otwieramy sklep?", "Sklep otwieramy o 8.", "Tylko w święta sklep otwieramy o 11."),
        (
            "Where does Rolf work?",
            "Rolf works at the mill.",
            "Rumour has it Rolf now works at the quarry.",
        ),
        (
            "What is the queue limit?",
            "The queue limit is 40.",
            "Raised the queue limit to 90. It broke the export, so I rolled that back.",
        ),
        (
            "Wo hängt der Schlüssel für den Schuppen?",
            "Der Schlüssel für den Schuppen hängt im Flur.",
            "Der Schlüssel für die Garage hängt im Bad.",
        ),
        (
            "Combien de ruches a notre club ?",
            "Notre club a 9 ruches.",
            "Vu les voisins de Nantes : leur club a 20 ruches.",
        ),
        (
            "Wie lang ist ein Passwort?",
            "Ein Passwort ist zwölf Zeichen lang.",
            "Auf dem Testsystem ist ein Passwort vier Zeichen lang.",
        ),
        (
            "À quoi est chauffé le hangar ?",
            "Le hangar est chauffé au bois.",
            "Du temps de Lucien le hangar était chauffé au charbon et on y gelait.",
        ),
        ("Gdzie mamy magazyn?", "Magazyn mamy na Polnej.", "Planujemy przenieść magazyn na Leśną."),
        ("Wo probt die Band?", "Die Band probt im Keller.", "Wir überlegen, ob die Band in der Aula probt."),
        (
            "Quel est le loyer de l'atelier ?",
            "Le loyer de l'atelier est de 600 euros.",
            "Le propriétaire envisage de porter le loyer de l'atelier à 700 euros.",
        ),
        (
            "¿Cuánto es el alquiler del local?",
            "El alquiler del local es de 850 euros.",
            "El dueño propone subir el alquiler del local a 950 euros.",
        ),
        (
            "Wie hoch ist die Miete der Werkstatt?",
            "Die Miete der Werkstatt ist 600 Euro.",
            "Der Besitzer erwägt die Miete der Werkstatt auf 700 Euro zu erhöhen.",
        ),
        ("¿Dónde vive Marta?", "Marta vive en Sevilla.", "La hermana de Marta se ha mudado a Cádiz."),
        (
            "Womit heizen wir?",
            "Wir heizen nicht mit Öl, sondern mit Holz.",
            "Wir kochen jetzt nicht mit Strom, sondern mit Gas.",
        ),
        (
            "Wo probt der Chor?",
            "Der Chor probt nicht im Saal, sondern im Keller.",
            "Der Chor singt nicht auf Latein, sondern auf Polnisch.",
        ),
    ],
)
def test_what_holds_elsewhere_or_is_not_sure_to_hold_does_not_come_first(
    question: str, earlier: str, later: str
) -> None:
    assert odds(question, earlier, later) <= LIKELY


def test_what_opens_with_a_year_or_the_place_of_the_former_is_no_limit() -> None:
    question, earlier = "What does a seat cost?", "A seat costs 40 euros."
    assert odds(question, earlier, "In 2026 a seat costs 55 euros.") > LIKELY
    assert (
        odds("Which lathe do we have?", "We have a Myford lathe.", "In its place we have a Boxford lathe.")
        > LIKELY
    )


def test_a_note_without_spaces_that_repeats_another_but_for_its_value_changes_it() -> None:
    question = "玄関の暗証番号は何ですか?"
    earlier = "玄関の暗証番号は4471です。"
    assert odds(question, earlier, "玄関の暗証番号は8036です。") > LIKELY
    assert odds(question, earlier, "金庫の暗証番号は8036です。") <= LIKELY


def test_an_amount_of_money_is_no_year() -> None:
    assert odds("Ile wynosi czynsz?", "Czynsz wynosi 1800 złotych.", "Czynsz wynosi 1950 złotych.") > LIKELY
