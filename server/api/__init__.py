"""The endpoints, one module per family, and what they share: body intake, ordered checks, admission,
generation.
"""
