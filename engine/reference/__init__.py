"""The reference engine: a numpy transformer that plays the engine side of the serve protocol."""
