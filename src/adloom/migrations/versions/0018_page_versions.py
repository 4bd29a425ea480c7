"""Versions of pages in the order of their commits, when pages were removed, and sites as a noun of the index."""

from alembic import op

from adloom.migrations.statements import run

revision = "0018"
down_revision = "0017"

# A follower of a site reads on from the last version that it knows, so a lower one must not be committed later:
# writers of one site's pages wait for each other's commits. Whatever they write as the version, it is the next one.
NEXT_VERSION = """
    CREATE FUNCTION take_next_page_version() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        PERFORM pg_advisory_xact_lock('site_pages'::regclass::oid::integer, NEW.site_id);
        NEW.version := nextval('page_versions');
        RETURN NEW;
    END $$
"""
VERSIONED = """
    CREATE TRIGGER site_pages_are_versioned BEFORE INSERT OR UPDATE ON site_pages
        FOR EACH ROW EXECUTE FUNCTION take_next_page_version();
    DROP INDEX site_pages_version;
    CREATE INDEX site_pages_site_version ON site_pages (site_id, version);
"""

# A page that is gone has no version. After a removal followers read all pages of the site again.
REMOVALS = """
    CREATE TABLE site_page_removals (
        site_id integer PRIMARY KEY REFERENCES sites (id) ON DELETE CASCADE,
        version bigint NOT NULL
    );
"""
# Pages that go with their site are not noted: then the site is gone already.
NOTE_REMOVAL = """
    CREATE FUNCTION note_page_removal() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        PERFORM pg_advisory_xact_lock('site_pages'::regclass::oid::integer, site_id)
           FROM (SELECT DISTINCT site_id FROM removed ORDER BY site_id) AS concerned;
        INSERT INTO site_page_removals (site_id, version)
        SELECT site.id, nextval('page_versions')
          FROM sites AS site WHERE site.id IN (SELECT site_id FROM removed)
        ON CONFLICT (site_id) DO UPDATE SET version = excluded.version;
        RETURN NULL;
    END $$
"""
REMOVED = """
    CREATE TRIGGER site_pages_removal_is_noted AFTER DELETE ON site_pages
        REFERENCING OLD TABLE AS removed
        FOR EACH STATEMENT EXECUTE FUNCTION note_page_removal()
"""

# Delivery checks whose page asks, and whether a site is verified.
INDEXED_SITES = """
    ALTER TABLE catalog_changes
        DROP CONSTRAINT catalog_changes_noun_check,
        ADD CONSTRAINT catalog_changes_noun_check
            CHECK (noun IN ('placement', 'banner', 'campaign', 'advertiser', 'site'));
"""


def upgrade() -> None:
    op.execute(NEXT_VERSION)
    run(VERSIONED, REMOVALS)
    op.execute(NOTE_REMOVAL)
    op.execute(REMOVED)
    run(INDEXED_SITES)
