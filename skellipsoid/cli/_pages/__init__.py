"""HTML pages for labelling, naming groups and reports: one file each, without a server and without a network.

``page.py`` fills the template ``page.html`` with one JSON; the scripts build all else from it as text.
"""
