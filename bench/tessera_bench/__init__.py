"""Runs Tessera and its peers side by side. The driver uses the standard library only; peers live in bench/.venv."""
