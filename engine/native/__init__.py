"""The native engine: C sources, the module that builds them, and nothing that runs in Python."""
