"""Read-only measurements for a human: records, the shadow and amend arms, distances and their anchors.

Importing this package imports neither JAX nor the field; the heavy parts load where they are used.
"""
