"""LARA, latency-aware retrieval augmentation: what replaces the fixed top-k.

The public names stand in ``__init__.pyi``. Each is imported when it is first used, so that
``import lara_plugins`` loads no numpy, onnxruntime, pydantic or framework.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
