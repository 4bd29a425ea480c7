"""Takes an upload in: looks at it, stores its files, and notes whose it is."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from datetime import datetime
from typing import Final
from uuid import UUID
from weakref import WeakValueDictionary

from adloom.catalog.asset import store
from adloom.catalog.asset.model import Asset, AssetNotFoundError, PreparedAsset
from adloom.catalog.asset.prepare import prepare_asset
from adloom.core.caller import Role
from adloom.core.errors import UnavailableError, make_field_error
from adloom.core.ids import IdSource
from adloom.resource.access import EVERYTHING, Scope
from adloom.resource.audit.entry import OWNED_NOUNS, AuditSubject, NewAuditEntry
from adloom.resource.changes import Catalog, CatalogWrite
from adloom.resource.quotas import QuotaReachedError
from adloom.runtime.files.place import AssetSettings
from adloom.runtime.files.store import FilesAwayError, FileStore

NOUN: Final = "asset"
DECODED_AT_ONCE: Final = 2  # A picture takes up to 100 MB and a processor while it is decoded.
READ_AT_ONCE: Final = 6  # Each has up to 64 MB.
READ_AT_ONCE_OF_ACCOUNT: Final = 2
WAIT_SECONDS_MAX: Final = 20.0  # Less than the time that the server gives a body.
RETRY_SECONDS: Final = 5
OTHERS_FIRST: Final = "Other uploads are under way. Try again in a moment."
STORE_AWAY: Final = "The store of files does not take them just now. Try again in a moment."

OWNED_NOUNS[Role.ADVERTISER].append(NOUN)


class UploadTurns:
    """Bounds how many uploads are in memory, of one account and of all. A client without a turn has sent nothing yet.

    The server cuts a connection whose body takes too long, which ends its turn. The bound of an account is lower, so
    that one whose files come slowly keeps no other waiting.
    """

    def __init__(self) -> None:
        self.wait_seconds_max = WAIT_SECONDS_MAX
        self._all = asyncio.Semaphore(READ_AT_ONCE)
        self._accounts = WeakValueDictionary[UUID | None, asyncio.Semaphore]()

    @contextlib.asynccontextmanager
    async def take(self, account_id: UUID | None) -> AsyncGenerator[None]:
        """Wait for a turn and keep it; raises UnavailableError if there is none for a while."""
        own = self._accounts.setdefault(account_id, asyncio.Semaphore(READ_AT_ONCE_OF_ACCOUNT))
        async with contextlib.AsyncExitStack() as held:
            try:
                async with asyncio.timeout(self.wait_seconds_max):
                    await held.enter_async_context(own)
                    await held.enter_async_context(self._all)
            except TimeoutError:
                raise UnavailableError(OTHERS_FIRST, retry_after_seconds=RETRY_SECONDS) from None
            yield


class AssetUploads:
    """The uploads of a process: a few are looked at, at a time."""

    def __init__(self, files: FileStore, settings: AssetSettings, ids: IdSource) -> None:
        self._files = files
        self.settings = settings
        self._ids = ids
        self._turn = asyncio.Semaphore(DECODED_AT_ONCE)
        self.turns = UploadTurns()

    async def take_in(
        self, catalog: Catalog, owner_id: UUID | None, name: str, data: bytes, now: datetime
    ) -> tuple[Asset, bool]:
        """Store a file; return it, and whether the account did not have it yet."""
        async with self._turn:
            prepared = await asyncio.to_thread(prepare_asset, data, self.settings)
        async with catalog.write() as write:
            # Until the end: a file that is removed as unused just now must not vanish after we have written it.
            await store.lock_bytes(write.connection, prepared.sha256)
            owner_key = None if owner_id is None else await _find_owner(write, owner_id)
            asset_id = await store.find_same(write.connection, owner_key, prepared.sha256, now=now)
            is_new = asset_id is None
            if asset_id is None:
                asset_id = self._ids.make()
                await store.insert(write.connection, asset_id, owner_key, name, prepared, now=now)
                if owner_id is not None:
                    await self._check_quota(write, owner_key)
                changes = {
                    "name": {"from": None, "to": name},
                    "sha256": {"from": None, "to": prepared.sha256},
                }
                write.entries.append(
                    NewAuditEntry(AuditSubject(NOUN, str(asset_id), owner_id), "create", changes)
                )
            asset = await store.find(write.connection, EVERYTHING, asset_id)
            assert asset is not None, "it was written in this transaction"
            # Last, because only rows are undone by themselves; also for what is there, whose files may be lost.
            await self._write(write, asset, prepared, is_new=is_new)
        return asset, is_new

    async def _write(
        self, write: CatalogWrite, asset: Asset, prepared: PreparedAsset, *, is_new: bool
    ) -> None:
        try:
            for file in prepared.files:
                await self._files.write(file.key, file.data, file.mime)
        except FilesAwayError as error:
            if is_new:
                with contextlib.suppress(FilesAwayError):
                    await self._files.delete(await store.delete(write.connection, asset))
            raise UnavailableError(STORE_AWAY) from error

    async def _check_quota(self, write: CatalogWrite, owner_key: int | None) -> None:
        used = await store.sum_bytes(write.connection, owner_key)
        most = self.settings.account_bytes_max
        if used > most:
            raise QuotaReachedError(
                f"The files of this account may have {most:,} bytes and would have {used:,}. Delete some, or ask the operator."
            )

    async def remove(self, catalog: Catalog, scope: Scope, asset_id: UUID) -> None:
        """Remove an asset and its files; AssetInUseError where something shows it."""
        async with catalog.write() as write:
            asset = await store.find(write.connection, scope, asset_id)
            if asset is None:
                raise AssetNotFoundError("There is no asset with this id.")
            await store.lock_bytes(write.connection, asset.sha256)
            await store.check_unshown(write.connection, asset)
            keys = await store.delete(write.connection, asset)
            about = AuditSubject(NOUN, str(asset.id), asset.advertiser_id)
            write.entries.append(NewAuditEntry(about, "delete", {"name": {"from": asset.name, "to": None}}))
            try:
                await self._files.delete(keys)
            except FilesAwayError as error:
                raise UnavailableError(STORE_AWAY) from error


async def _find_owner(write: CatalogWrite, owner_id: UUID) -> int:
    key = await store.find_owner(write.connection, owner_id)
    if key is None:
        raise make_field_error("advertiserId", "names no advertiser")
    return key
