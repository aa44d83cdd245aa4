# Generated from spec/protocol.yaml (target testing, template testing/__init__.py.j2). Do not edit.
# Regenerate with: python -m codegen generate

"""Test material that follows from the spec: hypothesis strategies for every message, well formed and not."""
