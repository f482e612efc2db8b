"""The one version of the three distributions."""

__version__ = "0.1.0"
