"""Accounts that pay each other: money is neither created nor lost, whatever happens to messages and hosts."""

from datetime import datetime, timedelta

import msgspec

from adloom.core.random import Chance
from adloom.runtime.actors.actor import (
    ActorKind,
    Address,
    Effect,
    Persist,
    Publish,
    RecordRow,
    Reply,
    StepResult,
    Tell,
    Wake,
)

AGAIN_AFTER = timedelta(seconds=1)
NOTED_AFTER = timedelta(seconds=0.5)
LOST = 0.1
REPEATED = 0.1


class Pay(msgspec.Struct, frozen=True):
    """Pay another account; a repeated name is the same payment."""

    name: str
    to: str
    amount: int


class Receive(msgspec.Struct, frozen=True):
    name: str
    payer: str
    amount: int


class Received(msgspec.Struct, frozen=True):
    name: str


class Note(msgspec.Struct, frozen=True):
    """Remember a name, and persist it some time later."""

    name: str


class Look(msgspec.Struct, frozen=True):
    pass


class Changed(msgspec.Struct, frozen=True):
    """Published when a state has reached this serial."""

    key: str
    serial: int


class Owed(msgspec.Struct, frozen=True):
    to: str
    amount: int


class Account(msgspec.Struct, frozen=True):
    key: str
    balance: int = 100
    serial: int = 0  # Grows by one with each record.
    paid: frozenset[str] = frozenset()
    owed: dict[str, Owed] = {}
    received: frozenset[str] = frozenset()
    noted: frozenset[str] = frozenset()
    note_at: datetime | None = None


Message = Pay | Receive | Received | Note | Look

_changed = msgspec.structs.replace


def step(state: Account, message: Message, now: datetime, chance: Chance) -> StepResult[Account]:
    effects: list[Effect] = []
    match message:
        case Pay():
            state = _paid(state, message, chance, effects)
            effects.append(Reply(Changed(state.key, state.serial)))
        case Receive(name=name, payer=payer, amount=amount):
            if name not in state.received:
                state = _changed(state, balance=state.balance + amount, received=state.received | {name})
                state = _recorded(state, effects)
            effects += _lossy(Tell(Address("account", payer), Received(name)), chance)
        case Received(name=name):
            if name in state.owed:
                owed = {one: owed for one, owed in state.owed.items() if one != name}
                state = _recorded(_changed(state, owed=owed), effects)
        case Note(name=name):
            if name not in state.noted:
                state = _changed(
                    state, noted=state.noted | {name}, note_at=state.note_at or now + NOTED_AFTER
                )
        case Look():
            effects += _owed_messages(state, chance)
            if state.note_at is not None and state.note_at <= now:
                state = _changed(state, note_at=None)
                effects.append(Persist())
    due = [AGAIN_AFTER + now] if state.owed else []
    due += [state.note_at] if state.note_at is not None else []
    effects.append(Wake(min(due, default=None)))
    return StepResult(state, tuple(effects))


def _paid(state: Account, pay: Pay, chance: Chance, effects: list[Effect]) -> Account:
    if pay.name in state.paid:
        return state
    state = _changed(
        state,
        balance=state.balance - pay.amount,
        paid=state.paid | {pay.name},
        owed={**state.owed, pay.name: Owed(pay.to, pay.amount)},
    )
    state = _recorded(state, effects)
    effects += _owed_messages(state, chance, only=pay.name)
    return state


def _recorded(state: Account, effects: list[Effect]) -> Account:
    state = _changed(state, serial=state.serial + 1)
    changed = Changed(state.key, state.serial)
    effects += [RecordRow(changed), Publish("changes", changed)]
    return state


def _owed_messages(state: Account, chance: Chance, *, only: str | None = None) -> list[Effect]:
    return [
        effect
        for name, owed in state.owed.items()
        if only in (None, name)
        for effect in _lossy(Tell(Address("account", owed.to), Receive(name, state.key, owed.amount)), chance)
    ]


def _lossy(tell: Tell, chance: Chance) -> list[Effect]:
    drawn = chance.random()
    return [] if drawn < LOST else [tell, tell] if drawn < LOST + REPEATED else [tell]


ACCOUNT = ActorKind("account", Account, step, lambda key, _: Account(key), on_waking=Look())


def an_account(key: str) -> Address:
    return Address("account", key)
