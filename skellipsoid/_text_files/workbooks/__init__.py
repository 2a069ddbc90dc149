"""Workbooks of Excel and LibreOffice: recognised and bounded, read, written.

Nothing in a file is trusted: ``package`` bounds what is unpacked, ``scan`` bounds what the cells would take, and the
library that reads the cells runs in a process of its own, with bounded memory.
"""
