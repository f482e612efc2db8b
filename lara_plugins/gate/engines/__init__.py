"""The engines that run cross-encoders; each module is imported only when it is used."""
