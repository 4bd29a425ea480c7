"""Words of the guided path."""

from typing import Final

TITLE: Final = "My first campaign"
NOTE: Final = "Four small steps, and your ad is on a page. Everything can be changed later."
STEPS: Final = ("Where", "What", "How", "Go")
STEP_LABEL: Final = "Step {number} of {count}"
NEXT: Final = "Next"
BACK: Final = "Back"

WHERE_TITLE: Final = "Where shall it appear?"
WHERE_SAMPLE: Final = "On the sample's front page"
WHERE_SAMPLE_NOTE: Final = (
    "The quickest way to see it: {label}, in the magazine that came with this installation."
)
WHERE_EXISTING: Final = "On a placement that is there already"
WHERE_EXISTING_NOTE: Final = "A page of yours asks for it."
WHERE_NEW: Final = "On a new placement"
WHERE_NEW_NOTE: Final = "You get two lines to put into your page."
PLACEMENT: Final = "Placement"
PLACEMENT_LABEL: Final = "What do you call the place?"
PLACEMENT_LABEL_DEFAULT: Final = "Home page, at the top"
LAYOUT: Final = "Layout"
SLUG_NOTE: Final = "Your page will ask for it as {slug}."

WHAT_TITLE: Final = "What do readers see?"
HEADLINE: Final = "Headline"
HEADLINE_DEFAULT: Final = "Something worth a look"
SUBHEADLINE: Final = "A second line"
IMAGE: Final = "Address of a picture"
IMAGE_HINT: Final = "It has to be reachable for readers: https://…"
IMAGES: Final = "Or take one that is there already:"
USE_IMAGE: Final = "Use this picture: {name}"
BUTTON: Final = "Button"
BUTTON_DEFAULT: Final = "Have a look"
LEADS_TO: Final = "Leads to"

HOW_TITLE: Final = "How shall it run?"
NAME: Final = "Name of the campaign"
NAME_DEFAULT: Final = "My first campaign"
ENDS_AT: Final = "Runs until"
ENDS_HINT: Final = "Empty: until you pause it."
BID: Final = "Pays for a thousand impressions"
BID_HINT: Final = "Empty: it costs nothing. Good for a first try."
BUDGET: Final = "A day at most"
BUDGET_HINT: Final = "Empty: no limit. It is never exceeded, not by one impression."

GO_TITLE: Final = "All of it at a glance"
GO: Final = "Put it on the page"
SUMMARY: Final = "«{headline}» on «{placement}», {until}, {cost}."
UNTIL: Final = "until {day}"
WITHOUT_END: Final = "until you pause it"
COSTS: Final = "for {bid} per thousand impressions{budget}"
COSTS_BUDGET: Final = " and at most {budget} a day"
COSTS_NOTHING: Final = "at no cost"
CONSEQUENCE: Final = "The campaign becomes active at once: readers can see the ad within two seconds."

MAKING: Final = {
    "placement": "The placement",
    "banner": "The banner",
    "campaign": "The campaign",
    "link": "The campaign may use the placement",
    "assignment": "The banner is on the placement",
    "active": "The campaign is active",
}
FAILED: Final = "This step was refused. What was made before stays, and you can try again."
TRY_AGAIN: Final = "Try again"

DONE_TITLE: Final = "Your ad is on its way"
DONE_SAMPLE: Final = "Open the page, and look for it."
DONE_PAGE: Final = "Put these two lines into your page, where the ad shall be:"
OPEN_PAGE: Final = "Open the page"
TRY_PAGE: Final = "See it alone"
CHECKS: Final = "Live check"
CHECK_CHOSEN: Final = "Readers get it"
CHECK_CHOSEN_WAIT: Final = "Delivery is learning about it …"
CHECK_SEEN: Final = "It was seen"
CHECK_SEEN_WAIT: Final = "Nobody has seen it yet. It counts when half of it is visible for a second."
CHECK_SEEN_COUNT: Final = "Impressions: {count}"
CHECK_CLICKED: Final = "It was clicked"
CHECK_CLICKED_WAIT: Final = "Nobody has clicked it yet."
CHECK_CLICKED_COUNT: Final = "Clicks: {count}"
TO_CAMPAIGN: Final = "To the campaign"
AGAIN: Final = "Make another one"
