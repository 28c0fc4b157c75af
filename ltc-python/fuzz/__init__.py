"""Random programs on ltc and on the CPU, compared: ``python -m fuzz --seconds 60 --seed 1``.

A program is text: Python statements over tensors with names, each in a part (``setup``, ``in``, ``step``, ``after 3``,
``thread 1``). It is made from a seed (`generate`), runs on both devices in one of the modes of `modes`, in a child that
may crash or hang (`children`), and when the two differ it is cut down to the statements it takes (`shrink`) and kept in
``regressions``.
"""
