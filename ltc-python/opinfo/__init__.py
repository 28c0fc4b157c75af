"""PyTorch's operator database, run on the ltc device and on the CPU and compared.

``python -m opinfo`` from ``ltc-python`` runs it; ``--help`` lists the options. The modules, in the order data flows:
``database`` names the entries, ``samples`` moves their inputs to a device, ``check`` compares one entry, ``worker``
does so in a process of its own, ``run`` drives workers, ``report`` tells the result.
"""
