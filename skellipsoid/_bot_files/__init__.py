"""Readers of the training files of bots: Rasa, Dialogflow, LUIS, fastText, a folder of classes.

``bot_reader.py`` takes a path, and gives texts, labels and one sentence on what was read and what was not, or nothing
if the path is none of these. Each reader takes the files of a folder, a zip or a single one (``bot_members.py``).
"""
