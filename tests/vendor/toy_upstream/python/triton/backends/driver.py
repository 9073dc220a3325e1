"""The base class of a driver."""

from abc import ABC, abstractmethod


class DriverBase(ABC):
    @classmethod
    @abstractmethod
    def is_active(cls):
        """Whether it can be used now."""
