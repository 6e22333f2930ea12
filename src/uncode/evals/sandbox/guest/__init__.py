"""What runs on the other side: the candidate's process, the referee's, and the walls around them.

These files import the standard library and each other, nothing else: they are read by a bare interpreter
(`python -I -S`) that sees this folder and no other part of the project.
"""
