"""The guest: the processes of the candidate and of the referee, and the confinement around them.

These files import only the standard library and each other, because a bare interpreter (`python -I -S`) runs them and
sees no other part of the project.
"""
