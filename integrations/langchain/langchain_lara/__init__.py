"""LARA for LangChain. This version holds the frame of the distribution; its plug-ins follow."""

from lara_plugins.version import __version__

__all__ = ["__version__"]
