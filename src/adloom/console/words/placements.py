"""Words of the placements' pages."""

from typing import Final

PLACEMENTS: Final = "Placements"
PLACEMENT: Final = "Placement"
NOUN: Final = "placement"
NOTE: Final = "A slot on a page, with a name that the page asks for."
NEW: Final = "New placement"
SEARCH: Final = "Search by slug, label or page"
EMPTY: Final = "No placements yet"
EMPTY_NOTE: Final = "A placement is where ads appear on a page. It needs a slug and a layout."
SLUG: Final = "Slug"
SLUG_HINT: Final = "How a page asks for it, such as home-hero."
LABEL: Final = "Label"
LABEL_HINT: Final = "For you and for those who buy here."
LAYOUT: Final = "Layout"
LAYOUTS: Final = {
    "full_slider": "Slider across the page",
    "full_static": "Across the page",
    "half_pair": "Two beside each other",
    "quarter_grid": "Four in a grid",
    "sidebar_stack": "Several in the sidebar",
    "sidebar_single": "One in the sidebar",
    "interstitial": "Over the whole page",
    "popup": "Popup",
    "inline_card": "Card in the text",
    "sticky_bar": "Bar at the bottom",
}
DELIVERY: Final = "Filled by"
DELIVERIES: Final = {"direct": "Direct", "auction": "Auction", "contextual": "Context"}
DELIVERY_NOTES: Final = {
    "direct": "Assigned banners, in their order.",
    "auction": "Campaigns bid for each request.",
    "contextual": "What fits the page.",
}
SLOTS: Final = "Slots"
SLOTS_HINT: Final = "How many banners at once, at most."
PARTIAL: Final = "Show fallbacks in slots that stay empty"
TYPE: Final = "Type"
TYPE_HINT: Final = "Apps ask for ads of a type; a page asks for a slug."
FLOOR: Final = "Lowest price of a thousand impressions"
SCORING: Final = "Predicted clicks"
SCORINGS: Final = {"heuristic": "By rules of thumb", "learned": "Learned from clicks"}
PAGE_CONTEXT: Final = "Page"
PAGE_HINT: Final = "Where it is, in your words."
WIDTH: Final = "Width of pictures"
HEIGHT: Final = "Height of pictures"
RATIO: Final = "Ratio of pictures"
SORT_ORDER: Final = "Place in lists"
NOTES: Final = "Notes"
PLACEHOLDER: Final = "Picture where there is no ad"
WHAT: Final = "What it is"
HOW: Final = "How it is filled"
SIZE: Final = "What fits"
ACTIVE: Final = "Pages may ask for it"
MADE: Final = "«{name}» is made. Put its two lines into your page."

SNIPPET: Final = "Put it on a page"
SNIPPET_NOTE: Final = "The script stands once on a page, the second line wherever the placement shall be."
FRAME: Final = "For pages without scripts"
TRY: Final = "Try it"
COPIED: Final = "Copied."
SHOWN_HERE: Final = "What is shown here"
SHOWN_NOTE: Final = "In the order in which slots are filled"
NOTHING_SHOWN: Final = "Nothing is shown here yet"
NOTHING_SHOWN_NOTE: Final = "Assign a banner to it in a campaign."
WHY: Final = "Why this ad?"
WHY_LINK: Final = "/console/why?placement={slug}"

SWITCH_ON: Final = "Switch on"
SWITCH_OFF: Final = "Switch off"
ON_TITLE: Final = "Switch «{name}» on?"
OFF_TITLE: Final = "Switch «{name}» off?"
ON_NOTE: Final = "Pages that ask for it get ads within two seconds."
OFF_NOTE: Final = (
    "Pages that ask for it get none within two seconds, and the space stays empty. What is assigned to it stays. Offers "
    "that are already out still count and are charged."
)
IS_ON: Final = "«{name}» is on."
IS_OFF: Final = "«{name}» is off."
DELETE_TITLE: Final = "Remove «{name}» for good?"
DELETE_NOTE: Final = (
    "Pages that ask for it get none. What campaigns had assigned here is gone too, and this cannot be undone. "
    "While an active assignment of a campaign that is not over is on it, it cannot be removed: switch it off instead."
)
REMOVED: Final = "«{name}» is removed."
