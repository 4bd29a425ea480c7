"""Words of sites, advertisers and publishers."""

from typing import Final

SITES: Final = "Sites"
SITE: Final = "Site"
SITES_NOTE: Final = "A domain whose pages have placements."
NEW_SITE: Final = "New site"
SEARCH_SITES: Final = "Search by domain or name"
NO_SITES: Final = "No sites yet"
NO_SITES_NOTE: Final = "A site is a domain. Advertisers may block domains, and placements may name theirs."
DOMAIN: Final = "Domain"
DOMAIN_HINT: Final = "Such as example.com."
SITE_MADE: Final = "«{name}» is made."
SITE_DELETE_TITLE: Final = "Remove «{name}» for good?"
SITE_DELETE_NOTE: Final = (
    "Its placements stay and go on serving, without a site: what advertisers have blocked by this domain is then "
    "shown there. This cannot be undone."
)
SITE_REMOVED: Final = "«{name}» is removed."
PLACEMENTS_OF: Final = "Its placements"
NO_PLACEMENTS: Final = "No placement is on it yet"
NO_PLACEMENTS_NOTE: Final = "Choose this site in the settings of a placement."

ADVERTISERS: Final = "Advertisers"
ADVERTISER: Final = "Advertiser"
ADVERTISERS_NOTE: Final = "Who pays. An advertiser is an account: people and keys can act for it."
NEW_ADVERTISER: Final = "New advertiser"
SEARCH_ACCOUNTS: Final = "Search by name"
NO_ADVERTISERS: Final = "No advertisers yet"
NO_ADVERTISERS_NOTE: Final = (
    "Campaigns can be the house's own. An advertiser has a daily budget over all its campaigns."
)
DAILY_BUDGET: Final = "Daily budget"
DAILY_BUDGET_HINT: Final = "Over all its campaigns. Empty: no limit."
BLOCKED: Final = "Blocked sites"
BLOCKED_HINT: Final = "Its ads are not shown there. Press Enter after each domain."
SPEND_TODAY: Final = "Today"
CAMPAIGNS_OF: Final = "Its campaigns"
NO_CAMPAIGNS: Final = "No campaigns yet"
NO_CAMPAIGNS_NOTE: Final = "Make one, and choose this advertiser."
ACCOUNT_ID: Final = "Account id"
ADVERTISER_MADE: Final = "«{name}» is made."
DELETE_TITLE: Final = "Delete «{name}»?"
ADVERTISER_DELETE_NOTE: Final = (
    "Its people and keys are refused at once, and nothing of it is offered within two seconds. Offers that are out "
    "still count and are charged. You can undo this: restored, all that it owns is back as it was."
)

PUBLISHERS: Final = "Publishers"
PUBLISHER: Final = "Publisher"
PUBLISHERS_NOTE: Final = "Who shows ads. A publisher is an account that owns sites and placements."
NEW_PUBLISHER: Final = "New publisher"
NO_PUBLISHERS: Final = "No publishers yet"
NO_PUBLISHERS_NOTE: Final = (
    "Sites and placements can be the house's own. Make a publisher for somebody else's pages."
)
PUBLISHER_MADE: Final = "«{name}» is made."
PUBLISHER_DELETE_NOTE: Final = (
    "Its people and keys are refused at once, and its placements are closed within two seconds. Offers that are out "
    "still count. You can undo this: restored, all that it owns is back as it was."
)
SITES_OF: Final = "Its sites"
NO_SITES_OF: Final = "No sites yet"
NO_SITES_OF_NOTE: Final = "Make one, and choose this publisher."
