"""Fields are called the same in forms, in the history, in advice and in errors."""

import ast
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

from adloom.console.history import format_value
from adloom.console.words.field_labels import LABELS, label_field, name_fields
from adloom.resource.audit.difference import describe_creation
from tests.support.builders import a_campaign
from tests.support.for_each import for_each

ADDERS = frozenset(
    {"text", "name", "url", "integer", "price", "money", "choice", "texts", "choices", "flag", "moment"}
)
# The guided path asks questions instead; the others have their own words on the page of another noun.
ELSEWHERE = frozenset({"first_campaign", "moves.py", "campaign_list.py"})
OWN_WORDS = frozenset(
    {"isActive", "isFallback", "isSuspended", "passesClickId", "recurrenceRule", "fallbackPlaceholderUrl"}
)


def list_form_labels() -> Iterator[tuple[str, str, str]]:
    pages = Path(str(resources.files("adloom.console").joinpath("pages")))
    for file in pages.rglob("*.py"):
        if ELSEWHERE & {*file.parts}:
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in ADDERS
            ):
                match node.args[:2]:
                    case [ast.Constant(str(name)), ast.Constant(str(label))]:
                        yield file.name, name, label
                    case _:
                        pass


def test_a_form_calls_a_field_as_everything_else_does() -> None:
    found = [
        (file, name, label)
        for file, name, label in list_form_labels()
        if name in LABELS and name not in OWN_WORDS and LABELS[name] != label
    ]

    assert found == []


def test_every_field_of_a_campaign_has_words_in_the_history() -> None:
    names = describe_creation(a_campaign())

    assert [name for name in names if label_field(name) == name] == []
    assert label_field("budgetDailyPaisa") == "Daily budget"
    assert label_field("somethingNewPaisa") == "Something new"


@for_each(
    ("text", "named"),
    [
        (
            "Raise budgetDailyPaisa of the campaign, or wait.",
            "Raise “Daily budget” of the campaign, or wait.",
        ),
        ("endsAt must be after startsAt.", "“Ends” must be after “Starts”."),
        ("`clickCap` is too small.", "“Maximum clicks in total” is too small."),
        ("Its delivery and timezone stay as they are.", "Its delivery and timezone stay as they are."),
        ("See budgetDailyPaisaX.", "See budgetDailyPaisaX."),
        (
            "The campaign wants the device to be mobile or tablet, and it is desktop.",
            "The campaign wants the device to be phone or tablet, and it is computer.",
        ),
        ("The segment mobile is not known.", "The segment mobile is not known."),
    ],
)
def test_sentences_of_the_api_name_fields_as_the_console_does(text: str, named: str) -> None:
    assert name_fields(text) == named


@for_each(
    ("name", "value", "shown"),
    [
        ("placementId", "0199-some-id", "Front page"),
        ("placementId", "0199-other-id", "0199-other-id"),
        ("value", ["DE", "AT"], "Germany, Austria"),
        ("value", ["mobile", "tablet", "gold"], "Phone, Tablet, gold"),
        ("operator", "not_in", "None of"),
        ("layoutType", "popup", "Popup"),
        ("bidStrategy", "fixed", "Fixed: always its bid"),
        ("budgetDailyPaisa", 1234, "12.34"),
        ("bidAmountMicros", 2_500_000, "2.50"),
        ("isActive", False, "No"),
        ("labels", [], "nothing"),
        ("categories", ["283"], "Home & Garden \u203a Interior Decorating"),
        ("categories", {"283": 0.9}, "Home & Garden \u203a Interior Decorating 90%"),
        ("excludedCategories", ["389"], "War and Conflicts"),
        ("adProductCategory", "1002", "Alcohol"),
        ("adProductBlocklist", 1_000 * "1" + "…", 120 * "1" + "…"),
        ("state", "pending", "Pending"),
        (
            "pacing",
            {"warmup": False, "weekdayShape": None, "dayDurationSeconds": 86400},
            "Warmup: No, Day duration seconds: 86400",
        ),
        ("mediaVariants", {"tablet": "https://cdn.example.com/t"}, "Tablet: https://cdn.example.com/t"),
    ],
)
def test_values_in_the_history_are_words(name: str, value: object, shown: str) -> None:
    assert format_value(name, value, {"0199-some-id": "Front page"}) == shown
