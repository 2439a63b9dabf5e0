"""What a layer has of each kind of a family: kinds register themselves.

Only the standard library is used here: the lab program imports this module inside the guest too.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, TypeVar

T = TypeVar("T")


class Registry(Mapping[str, T]):
    """Kinds of a family by name, as one layer knows them.

    They register themselves when their modules are imported: those that the finder knows at the first look, so that no
    module needs another one's kinds before it is imported itself; others whenever somebody imports them. `plain`: what
    a kind is that nothing is said of in this layer; without it, the layer does not know such a kind.
    """

    # Imports a layer's modules of a family, and says the kinds' names in their order; scpslab.kinds sets it.
    finder: ClassVar[Callable[[str, str], Iterable[str]]] = lambda _family, _layer: ()
    # Folders with kinds that are not the project's; and all registries that there are.
    folders: ClassVar[list[Path]] = []
    every: ClassVar[list[Registry[Any]]] = []

    def __init__(self, family: str, layer: str) -> None:
        self.family, self.layer = family, layer
        self.plain: T | None = None
        self._registered: dict[str, T] = {}
        Registry.every.append(self)

    @classmethod
    def add(cls, folder: Path) -> None:
        """Lets the kinds of a folder be found, too."""
        if folder in cls.folders:
            return
        cls.folders.append(folder)
        sys.modules["scpslab.kinds"].__path__.append(str(folder))
        for one in cls.every:
            one.__dict__.pop("_kinds", None)

    @cached_property
    def _kinds(self) -> dict[str, T]:
        found = {name: self._registered.get(name, self.plain) for name in Registry.finder(self.family, self.layer)}
        self._registered = {name: kind for name, kind in found.items() if kind is not None} | self._registered
        return self._registered

    def register(self, name: str, kind: T) -> None:
        """Adds a kind; raises ValueError where another one has its name."""
        if name in self._registered:
            raise ValueError(f"{self.family}: found a second kind {name}; expected a name of its own")
        self._registered[name] = kind

    def __getitem__(self, name: str) -> T:
        """The kind; raises KeyError for what is none."""
        if name not in self._kinds:
            raise KeyError(f"{self.family}: found no kind {name}; expected one of {', '.join(self._kinds)}")
        return self._kinds[name]

    def __iter__(self) -> Iterator[str]:
        """The names, in their order."""
        return iter(self._kinds)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._kinds)


class Registered:
    """The base of a family's classes in a layer: it says their `registry`, where each class below with a `kind` is.

    `is_plain`: kinds without a class of their own are the base itself.
    """

    registry: ClassVar[Registry[Any]]

    def __init_subclass__(
        cls, *, registry: Registry[Any] | None = None, is_plain: bool = False, kind: str = "", **more: Any
    ) -> None:
        super().__init_subclass__(**more)
        if registry is not None:
            cls.registry = registry
        if is_plain:
            cls.registry.plain = cls
        if kind:
            cls.registry.register(kind, cls)
