"""The ``lara`` command."""
