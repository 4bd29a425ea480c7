"""The schemas of the topics: JSON Schema, one file each, in the package."""

from importlib.resources import files

from adloom.events.topics.payload import TOPICS


def read_schema(topic: str) -> str:
    """Give the schema of a topic, as its file has it."""
    assert topic in TOPICS
    return (files(__package__ or "") / f"{topic}.json").read_text(encoding="utf-8")
