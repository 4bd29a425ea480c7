"""Words of the page about the installation itself."""

from typing import Final

TITLE: Final = "System"
PARTS: Final = "Parts of the system"
TABS: Final = {
    "processes": "Processes",
    "ledger": "Ledger",
    "dead": "Dead letters",
    "keys": "API keys",
    "accounts": "Accounts",
    "settings": "Settings",
}

PROCESS: Final = "Process"
HOST: Final = "Machine"
PID: Final = "PID"
UPTIME: Final = "Up since"
INDEX: Final = "Index"
INDEX_OLD: Final = "{version}, behind {catalog}"
RATE: Final = "Requests/s"
LATENCY: Final = "Median / 99 %"
MEDIAN_AND_MOST: Final = "{median} / {most}"
WAITING: Final = "Waiting"
WAITING_HINT: Final = "{pending} events, {spool} bytes on disk"
CATALOG_VERSION: Final = "Catalog version"
PROCESSES_RUNNING: Final = "Processes"
REQUESTS_NOW: Final = "Requests a second"
FILLED_SHARE: Final = "Filled, last hour"
NO_PROCESSES: Final = "No process was heard of"
NO_PROCESSES_NOTE: Final = (
    "Each tells how it is once a second, over Valkey. See that it runs, and that REDIS_URL is the same."
)

LEDGER_ENTRIES: Final = "Entries in the ledger"
LEDGER_MEMORY: Final = "Memory"
LEDGER_DEAD: Final = "Dead letters"
PROJECTION: Final = "Projection"
BEHIND: Final = "Behind"
BEHIND_SHOWN: Final = "{entries} events, {age}"
BEHIND_NONE: Final = "nothing"
OWNER: Final = "BatchResult by"
NOBODY: Final = "nobody"
FAILING: Final = "Failing"
DEAD: Final = "Given up"

DEAD_NOTE: Final = (
    "Events that could not be counted. They wait here until you have them tried again or forget them."
)
DEAD_NONE: Final = "There are no dead letters"
DEAD_NONE_NOTE: Final = "Every event that was accepted could be counted."
LETTER: Final = "Letter"
GIVEN_UP: Final = "Given up"
TRIES: Final = "Tries"
REASON: Final = "Reason"
SHOW: Final = "Show"
RETRY: Final = "Try again"
RETRIED: Final = "It is in the ledger again; what fails again comes back here."
FORGET: Final = "Forget"
FORGET_TITLE: Final = "Forget this letter?"
FORGET_CONSEQUENCE: Final = "Its event is never counted. This cannot be undone."
FORGOTTEN: Final = "The letter is forgotten."
MORE_LETTERS: Final = "Show more"
EVENT: Final = "Event"

KEYS_NOTE: Final = "Keys for machines. A key is shown once, when it is made."
NEW_KEY: Final = "New key"
KEY_NAME: Final = "Name"
KEY_NAME_HINT: Final = "What uses it, such as «nightly import»."
ROLE: Final = "Role"
ROLES: Final = {
    "admin": "Admin: everything",
    "viewer": "Viewer: reads everything",
    "advertiser": "Advertiser: its own campaigns",
    "publisher": "Publisher: its own placements",
}
ACCOUNT: Final = "Account"
ACCOUNT_HINT: Final = "The id of the advertiser or publisher that it acts for."
KEY_HINT: Final = "Begins with"
CREATED: Final = "Made"
STATE: Final = "State"
IN_USE: Final = "in use"
REVOKED: Final = "revoked"
REVOKE: Final = "Revoke"
REVOKE_TITLE: Final = "Revoke «{name}»?"
REVOKE_CONSEQUENCE: Final = "Whatever uses it is refused from now on. This cannot be undone."
KEY_REVOKED: Final = "The key is revoked."
KEY_MADE_TITLE: Final = "Here is the key"
KEY_MADE_NOTE: Final = "Copy it now: it is not shown again, and only its hash is kept."
KEY_DONE: Final = "I have it"
NO_KEYS: Final = "There are no API keys yet"
NO_KEYS_NOTE: Final = "Make one for each machine that uses the admin API."

ACCOUNTS_NOTE: Final = "People who may log in, here and by the API."
NEW_ACCOUNT: Final = "New account"
EMAIL: Final = "E-mail address"
PASSWORD: Final = "Password"
PASSWORD_HINT: Final = "At least 10 characters. Hand it over in private; its owner can change it."
ACCOUNT_MADE: Final = "{email} can log in now."
DISABLED: Final = "disabled"
ACTIVE: Final = "active"
DISABLE: Final = "Disable"
DISABLE_TITLE: Final = "Disable {email}?"
DISABLE_CONSEQUENCE: Final = (
    "They are logged out everywhere at once and cannot log in until you enable the account again."
)
ACCOUNT_DISABLED: Final = "{email} is disabled."
ENABLE: Final = "Enable"
ACCOUNT_ENABLED: Final = "{email} can log in again."
SET_PASSWORD: Final = "Set password"
SET_PASSWORD_TITLE: Final = "A new password for {email}"
PASSWORD_SET: Final = "The password is set; {email} is logged out everywhere."
SEARCH_ACCOUNTS: Final = "Search by e-mail address"

SETTINGS_NOTE: Final = "What each process runs with. Secrets, and addresses that carry some, are masked."
SETTING: Final = "Setting"
NOT_SET: Final = "not set"
