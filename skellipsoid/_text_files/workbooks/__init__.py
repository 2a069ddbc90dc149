"""Reads and writes workbooks of Excel and LibreOffice.

Nothing in a file is trusted: ``package`` bounds what is unpacked, ``scan`` bounds what the cells would take, and the
library that reads the cells runs in a process of its own, with bounded memory.
"""
