"""Calls a function after a module has been imported, without importing it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

Action = Callable[[ModuleType], None]


class _Notifying(Loader):
    """A loader that calls actions when the module was executed."""

    def __init__(self, loader: Loader, actions: list[Action]) -> None:
        self._loader, self._actions = loader, actions

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)  # get_source() and the like, which inspect and linecache ask for

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Creates the module as its own loader does."""
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Executes the module as its own loader does, and then runs the actions."""
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        for action in self._actions:
            action(module)


class _Finder(MetaPathFinder):
    """Finds modules that actions wait for, through the other finders."""

    def __init__(self) -> None:
        self.waiting: dict[str, list[Action]] = {}
        #: Actions that wait for modules whose import had begun: a later import tells that it is over.
        self.begun: list[tuple[str, Action]] = []

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module's own spec, with a loader that calls the actions."""
        for entry in [one for one in self.begun if not _is_initializing(one[0])]:
            if entry in self.begun:  # an action may import modules
                self.begun.remove(entry)
                entry[1](sys.modules[entry[0]])
        actions = self.waiting.pop(fullname, None)
        if actions is None:
            return None
        spec = find_spec(fullname)  # asks this finder again, which no longer waits for the module
        if spec is None or spec.loader is None:
            self.waiting[fullname] = actions
            return spec
        spec.loader = _Notifying(spec.loader, actions)
        return spec


_finder = _Finder()


def _is_initializing(name: str) -> bool:
    return bool(getattr(sys.modules[name].__spec__, "_initializing", False))


def after_import(name: str, action: Action) -> None:
    """Calls ``action`` with the module ``name`` at once where it is imported already, otherwise when it is. If its
    import has begun, that is before the first import that follows it."""
    if name in sys.modules and not _is_initializing(name):
        action(sys.modules[name])
        return
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
    if name in sys.modules:
        _finder.begun.append((name, action))
    else:
        _finder.waiting.setdefault(name, []).append(action)
