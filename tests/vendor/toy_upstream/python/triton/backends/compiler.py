"""The base class of a compiler."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum


class Language(Enum):
    TRITON = 0
    GLUON = 1


@dataclass(frozen=True)
class GPUTarget:
    backend: str
    arch: str
    warp_size: int


class BaseBackend(ABC):
    @staticmethod
    @abstractmethod
    def supports_target(target):
        """Whether it compiles for a target."""
