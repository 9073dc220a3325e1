"""The base class of a compiler."""
from abc import ABC, abstractmethod


class BaseBackend(ABC):

    @staticmethod
    @abstractmethod
    def supports_target(target):
        """Whether it compiles for a target."""
