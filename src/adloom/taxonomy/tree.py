"""A taxonomy: a forest of named nodes whose relations are looked up, not computed."""

# pure

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

_NONE: Final[frozenset[str]] = frozenset()


class TaxonomyNode(msgspec.Struct, frozen=True, kw_only=True):
    """A category; `path` are the names from its root down to its own, `ancestors` the ids from its parent up."""

    id: str
    name: str
    path: tuple[str, ...]
    ancestors: tuple[str, ...]

    @property
    def parent_id(self) -> str | None:
        return self.ancestors[0] if self.ancestors else None

    @property
    def root_id(self) -> str:
        return self.ancestors[-1] if self.ancestors else self.id

    @property
    def tier(self) -> int:
        return len(self.path)


class Taxonomy:
    """Immutable after it is built. Every look-up but `search` takes constant time."""

    def __init__(self, paths: Mapping[str, Sequence[str]]) -> None:
        """Build it from the path of each id. Every path's beginning must be the path of one node too."""
        by_path = {tuple(path): node_id for node_id, path in paths.items()}
        assert len(by_path) == len(paths), "no two nodes have one path"
        self._nodes: dict[str, TaxonomyNode] = {}
        self._children: dict[str | None, list[TaxonomyNode]] = {}
        below: dict[str, set[str]] = {}
        for path, node_id in by_path.items():
            ancestors = tuple(by_path[path[:tier]] for tier in range(len(path) - 1, 0, -1))
            node = TaxonomyNode(id=node_id, name=path[-1], path=path, ancestors=ancestors)
            self._nodes[node_id] = node
            self._children.setdefault(node.parent_id, []).append(node)
            for ancestor in ancestors:
                below.setdefault(ancestor, set()).add(node_id)
        self._descendants = {node_id: frozenset(ids) for node_id, ids in below.items()}
        self._searched = [(_fold(node.name), node) for node in self._nodes.values()]

    def __len__(self) -> int:
        return len(self._nodes)

    def __iter__(self) -> Iterator[TaxonomyNode]:
        """List all nodes, in the order of the published table."""
        return iter(self._nodes.values())

    def __contains__(self, node_id: object) -> bool:
        return node_id in self._nodes

    def find(self, node_id: str) -> TaxonomyNode | None:
        return self._nodes.get(node_id)

    def find_name(self, node_id: str) -> str:
        """Return the name of a node; an unknown one is named by its id."""
        node = self._nodes.get(node_id)
        return node.name if node else node_id

    def find_path(self, node_id: str) -> tuple[str, ...]:
        """Return the names from the root to the node; of an unknown id, nothing."""
        node = self._nodes.get(node_id)
        return node.path if node else ()

    def list_ancestors(self, node_id: str) -> tuple[str, ...]:
        """Return the ids above a node, its parent first."""
        node = self._nodes.get(node_id)
        return node.ancestors if node else ()

    def list_descendants(self, node_id: str) -> frozenset[str]:
        """Return the ids below a node, at any depth."""
        return self._descendants.get(node_id, _NONE)

    def list_children(self, node_id: str | None) -> Sequence[TaxonomyNode]:
        """Return the nodes directly below a node; below None are the roots."""
        return self._children.get(node_id, ())

    def search(self, text: str) -> list[TaxonomyNode]:
        """Find nodes by words of their names, or by id: the best first, then as published."""
        wanted = _fold(text)
        words = wanted.split()
        found = [
            (not name.startswith(wanted), len(name) - len(wanted), position, node)
            for position, (name, node) in enumerate(self._searched)
            if node.id == text.strip() or (words and all(word in name for word in words))
        ]
        found.sort(key=lambda item: item[:3])
        return [node for *_, node in found]


def _fold(text: str) -> str:
    return " ".join(text.casefold().replace("&", " and ").split())
