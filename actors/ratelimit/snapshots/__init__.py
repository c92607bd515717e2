"""Journals: how counters outlive their partition's process. The format is pure; two files touch the
disk (`journal_file.py`, `journal_folder.py`). Ray, threads and the time of day are the actor's."""
