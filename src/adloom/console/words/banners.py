"""Words of the banners' pages, and of previews."""

from typing import Final

BANNERS: Final = "Banners"
BANNER: Final = "Banner"
NOUN: Final = "banner"
NOTE: Final = "One creative: a picture, words, and where they lead."
NEW: Final = "New banner"
SEARCH: Final = "Search by title, headline or description"
EMPTY: Final = "No banners yet"
EMPTY_NOTE: Final = "A banner is what readers see. It needs a title and the address of a picture."
TITLE: Final = "Title"
TITLE_HINT: Final = "For you; readers do not see it."
SCHEDULE: Final = "Schedule"
SCHEDULE_STATUSES: Final = {
    "draft": "Draft",
    "evergreen": "Always",
    "scheduled": "Scheduled",
    "active": "In its dates",
    "expired": "Expired",
}
ADDRESS: Final = "Leads to"

PREVIEW: Final = "Preview"
TAB_LOOK: Final = "Look and words"
PREVIEW_ON: Final = {"desktop": "Preview on a computer", "phone": "Preview on a phone"}
DESKTOP: Final = "Computer"
PHONE: Final = "Phone"
BOTH: Final = "Both"
LAYOUT: Final = "In the layout"
ANOTHER_AD: Final = "Another ad"
IMAGE_FAILS: Final = "This picture could not be loaded:"
NOTHING_TO_SHOW: Final = "Give it a picture to see it here."

PICTURE: Final = "Picture"
IMAGE_URL: Final = "Address of the picture"
IMAGE_ALT: Final = "What the picture shows"
IMAGE_ALT_HINT: Final = "Read aloud to those who cannot see it."
MOBILE_IMAGE_URL: Final = "Picture on phones"
MOBILE_HINT: Final = "Empty: the same picture."
VIDEO_URL: Final = "Video"
VIDEO_HINT: Final = "Played without sound; the picture is shown before it."
VARIANTS: Final = "Variants of the picture"
VARIANTS_HINT: Final = "One a line: a language (de) or a screen (tablet), a space, and the address. html is a creative in a frame."
VARIANT_LINE: Final = "must be lines with a name, a space and an address"
WORDS: Final = "Words"
HEADLINE: Final = "Headline"
SUBHEADLINE: Final = "Subheadline"
CTA_LABEL: Final = "Button"
CTA_URL: Final = "Leads to"
CTA_HINT: Final = "Without an address it cannot be clicked."
NEW_TAB: Final = "Opens in a new tab"
COLOUR: Final = "Background"
COLOUR_HINT: Final = "Such as #ff8800: seen while the picture loads."
COUNTING: Final = "Counting and sorting"
UTM_SOURCE: Final = "utm_source"
UTM_MEDIUM: Final = "utm_medium"
UTM_CAMPAIGN: Final = "utm_campaign"
UTM_CONTENT: Final = "utm_content"
TAGS: Final = "Tags"
TAGS_HINT: Final = "Press Enter after each."
EVERGREEN: Final = "Shown where a placement has nothing else at all"
PLACEHOLDER_URL: Final = "Picture where it cannot be shown"
REFERENCES: Final = {"brand": "Brand", "category": "Category", "product": "Product", "seo": "SEO record"}

MADE: Final = "«{name}» is made."
USE_IT: Final = "Give it to a campaign to show it."
WHERE: Final = "Where it is shown"
NOT_USED: Final = "Not shown anywhere yet"
NOT_USED_NOTE: Final = "Open a campaign, and assign this banner to one of its placements."
TO_CAMPAIGNS: Final = "To the campaigns"
STATS: Final = "The last 14 days"

SWITCH_ON: Final = "Switch on"
SWITCH_OFF: Final = "Switch off"
ON_TITLE: Final = "Switch «{name}» on?"
OFF_TITLE: Final = "Switch «{name}» off?"
ON_NOTE: Final = "Campaigns that have it can show it within two seconds, in its schedule."
OFF_NOTE: Final = (
    "It is not offered within two seconds, in no campaign. Offers that are already on readers' pages still count and "
    "are charged. Its assignments stay."
)
IS_ON: Final = "«{name}» is on."
IS_OFF: Final = "«{name}» is off."
DELETE_TITLE: Final = "Delete «{name}»?"
DELETE_NOTE: Final = (
    "It is not offered within two seconds, and leaves the lists. Offers that are out still count and are charged, and "
    "reports keep it. You can undo this: restored, it is where it was in its campaigns."
)
SCHEDULE_SAVED: Final = "The schedule is saved."
IS_DRAFT: Final = "Still a draft: not shown, whatever the dates say"
