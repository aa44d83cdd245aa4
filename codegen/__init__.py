"""Compiler from ``spec/protocol.yaml`` to the committed ``generated`` layer and the tables in ``docs``.

Data flows one way: located tree (:mod:`~codegen.source`) → shape (:mod:`~codegen.shape`) → resolved model
(:mod:`~codegen.resolve`) → lint (:mod:`~codegen.lint`) → views → templates → files (:mod:`~codegen.output`).
Build time only: nothing here is imported by ``generated``, ``engine`` or ``server``.
"""
