"""The version, in this one place: the distribution and the documentation take it from here."""

__version__ = "0.2.0"
