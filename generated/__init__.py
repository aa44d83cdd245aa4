# Generated from spec/protocol.yaml (target python, template python/__init__.py.j2). Do not edit.
# Regenerate with: python -m codegen generate

"""The serve protocol, version 1.1.0, as code: everything here follows from spec/protocol.yaml.

Only the standard library is imported (``testing`` also imports hypothesis). ``wire``, ``frames`` and ``commands`` are the
two directions of the engine's pipe, ``states`` the tables both sides walk, ``errors``, ``fields`` and ``http`` the HTTP API,
``families`` and ``settings`` what an operator chooses from, ``markup`` what marks the parts of a chat, ``limits`` the numbers
nobody may go over.
"""
