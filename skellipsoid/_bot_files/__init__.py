"""Training texts from the files of bots: Rasa, Dialogflow, LUIS, fastText, a folder of classes.

In comes a path. Out come texts, labels and one sentence on what was read and what was not (``bot_reader.py``), or
nothing if the path is none of these. A reader takes files, of a folder, a zip or a single one (``bot_members.py``).
"""
